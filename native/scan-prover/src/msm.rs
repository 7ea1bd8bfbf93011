//! Sums of many multiples of points, by buckets.
use ark_ec::{AffineRepr, VariableBaseMSM};
use ark_ff::{AdditiveGroup, PrimeField, Zero};
use ragaudit_field_simd::g1::segment_sums;
use ragaudit_scan_protocol::group::{Fr, G1Affine, G1Projective};
use ragaudit_scan_protocol::numbers::log2_ceil;
use rayon::prelude::*;

/// The size of the largest sum in one step. Each thread needs memory for one point per point.
const MSM: usize = 1 << 18;

/// sum of x_i P_i, by buckets of signed digits. The time depends on the scalars; a prover's scalars here are public, or
/// uniform for all of its secrets.
pub fn msm(points: &[G1Affine], scalars: &[Fr]) -> G1Projective {
    debug_assert_eq!(points.len(), scalars.len());
    points
        .chunks(MSM)
        .zip(scalars.chunks(MSM))
        .map(|(points, scalars)| match points.len() {
            0..256 => G1Projective::msm_unchecked(points, scalars),
            _ => window_msm(points, scalars),
        })
        .sum()
}

fn window_msm(points: &[G1Affine], scalars: &[Fr]) -> G1Projective {
    let (windows, bits) = windows(Fr::MODULUS_BIT_SIZE as usize + 1, points.len());
    let integers: Vec<[u64; 4]> = scalars.par_iter().map(|x| x.into_bigint().0).collect();
    // Signed digits: a window's value plus the carry below it, minus 2^bits from half of the range upwards. The last window
    // has no carry, because it has one bit more than the modulus, which begins with the bits 110000.
    let mut carries = vec![false; points.len()];
    let digits: Vec<Vec<i32>> = (0..windows)
        .map(|w| {
            let (limb, shift) = (w * bits / 64, w * bits % 64);
            let digit = |(x, carry): (&[u64; 4], &mut bool)| {
                let low = x.get(limb).copied().unwrap_or(0) >> shift;
                let high = match shift {
                    0 => 0,
                    _ => x.get(limb + 1).copied().unwrap_or(0) << (64 - shift),
                };
                let value = ((low | high) & ((1 << bits) - 1)) as i32 + i32::from(*carry);
                *carry = value >= 1 << (bits - 1);
                value - (i32::from(*carry) << bits)
            };
            let pairs = integers.par_iter().zip(&mut carries);
            pairs.with_min_len(1 << 12).map(digit).collect()
        })
        .collect();
    let sums: Vec<G1Projective> = digits
        .par_iter()
        .map(|digits| weigh(bucket_sums(points, digits)))
        .collect();
    join_windows(&sums, bits)
}

/// How many windows of how many bits take the fewest additions for that many points. [`weigh`] adds a bucket twice, and
/// takes as long as some hundred additions more, whatever their number.
fn windows(bits: usize, points: usize) -> (usize, usize) {
    (1..=bits.max(1))
        .map(|count| (count, bits.div_ceil(count).max(1)))
        .filter(|(_, width)| *width <= 16)
        .min_by_key(|(count, width)| count * (points + (2 << (width - 1)) + 500))
        .unwrap_or((1, 1))
}

/// sum of v_i P_i for small integers, by buckets of signed digits. The time depends on the integers, so only data without
/// eager proofs uses it; [`crate::prover::columns`] commits to the columns of proofs.
pub fn small_msm(points: &[G1Affine], values: &[i64]) -> G1Projective {
    let maximum = values.iter().map(|v| v.unsigned_abs()).max().unwrap_or(0);
    let (count, bits) = windows(64 - maximum.leading_zeros() as usize, points.len());
    let mut rest: Vec<i128> = values.iter().map(|v| i128::from(*v)).collect();
    let mut digits = vec![0i32; rest.len()];
    let half = 1i128 << (bits - 1);
    let sums: Vec<G1Projective> = (0..count)
        .map(|window| {
            for (v, digit) in rest.iter_mut().zip(&mut digits) {
                // The last window has the remaining value: at most 2^bits with the carry.
                *digit = match window + 1 == count {
                    true => *v as i32,
                    false => ((*v + half).rem_euclid(2 * half) - half) as i32,
                };
                *v = (*v - i128::from(*digit)) >> bits;
            }
            weigh(bucket_sums(points, &digits))
        })
        .collect();
    join_windows(&sums, bits)
}

/// sum of 2^(bits w) sums_w.
pub(crate) fn join_windows(sums: &[G1Projective], bits: usize) -> G1Projective {
    sums.iter().rev().fold(G1Projective::zero(), |acc, window| {
        (0..bits).fold(acc, |x, _| x.double()) + window
    })
}

/// sum of k times the k-th point, from 1. With k = side a + b it is side times the weighted sum of the sums of rows a, plus
/// the weighted sum of the sums of columns b; the inner sums have no weights.
fn weigh(mut buckets: Vec<G1Affine>) -> G1Projective {
    if buckets.len() < 24 {
        let (mut running, mut sum) = (G1Projective::zero(), G1Projective::zero());
        for bucket in buckets.iter().rev() {
            running += bucket;
            sum += running;
        }
        return sum;
    }
    let bits = log2_ceil(buckets.len() + 1) / 2;
    let side = 1 << bits;
    buckets.insert(0, G1Affine::zero());
    buckets.resize(buckets.len().next_multiple_of(side), G1Affine::zero());
    let rows = buckets.len() / side;
    let column = |b: usize| buckets.iter().skip(b).step_by(side).copied();
    let list = buckets
        .iter()
        .copied()
        .chain((1..side).flat_map(column))
        .collect();
    let lengths = [vec![side as u32; rows], vec![rows as u32; side - 1]].concat();
    let mut sums = segment_sums(list, &lengths);
    let columns = sums.split_off(rows);
    let rows = weigh(sums.split_off(1));
    (0..bits).fold(rows, |x, _| x.double()) + weigh(columns)
}

/// For k = 1, 2, .. up to the largest |digit|: the sum of the points with digit k minus the sum of the points with digit -k.
fn bucket_sums(points: &[G1Affine], digits: &[i32]) -> Vec<G1Affine> {
    let largest = digits.iter().map(|d| d.unsigned_abs()).max().unwrap_or(0);
    let mut lengths = vec![0u32; largest as usize];
    for digit in digits.iter().filter(|d| **d != 0) {
        lengths[digit.unsigned_abs() as usize - 1] += 1;
    }
    let mut next = 0;
    let mut places: Vec<usize> = lengths
        .iter()
        .map(|l| {
            next += *l as usize;
            next - *l as usize
        })
        .collect();
    let mut list = vec![G1Affine::zero(); next];
    for (point, digit) in points.iter().zip(digits).filter(|(_, d)| **d != 0) {
        let place = &mut places[digit.unsigned_abs() as usize - 1];
        list[*place] = if *digit < 0 { -*point } else { *point };
        *place += 1;
    }
    segment_sums(list, &lengths)
}
