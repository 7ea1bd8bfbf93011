//! Multi-scalar multiplication by public scalars: Pippenger's buckets with signed windows, all sums of points in affine form
//! on lanes. The time depends on the scalars; [`crate::hidden`] is for the secret scalars of a prover.
//!
//! Scalars above r/2 are negated with their point, so that small negative values are as cheap as small
//! positive ones: a digit of zero and a point at infinity need no addition.
use ark_bn254::Fr;
use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInt, BigInteger, PrimeField, Zero};
use ragaudit_field_simd::sums::{Coordinate, Point};
use rayon::prelude::*;
use zeroize::Zeroize;

use crate::affine::{add_assign, BATCH};
use crate::field::{from_plain, to_plain, Group};

/// |scalar| < 2^253 without its sign, and two more bits for the carry of the signed digits.
const BITS: usize = 255;

/// Signed digits of many scalars, base 2^width: `windows[w][i]` in -2^(width-1)..2^(width-1).
pub struct Digits {
    width: usize,
    count: usize,
    windows: Vec<Vec<i16>>,
}

impl Digits {
    /// Chooses the window width with the fewest additions: one for each non-zero digit, two for each bucket, and a constant
    /// for each window. Circuits have many bits among their wires, so the lengths of the scalars matter.
    pub fn new(scalars: &[BigInt<4>]) -> Self {
        let mut lengths = [0usize; 257];
        for scalar in scalars {
            lengths[scalar.num_bits() as usize] += 1;
        }
        let cost = |width: usize| {
            let digits: usize = lengths
                .iter()
                .enumerate()
                .map(|(bits, n)| bits.div_ceil(width) * n)
                .sum();
            digits + BITS.div_ceil(width) * ((2 << (width - 1)) + 500)
        };
        Self::with_width(scalars, (3..=16).min_by_key(|&c| cost(c)).unwrap_or(3))
    }

    pub fn with_width(scalars: &[BigInt<4>], width: usize) -> Self {
        const BLOCK: usize = 1 << 10;
        let count = BITS.div_ceil(width);
        let mut windows = vec![vec![0i16; scalars.len()]; count];
        let mut blocks: Vec<Vec<&mut [i16]>> = (0..scalars.len().div_ceil(BLOCK))
            .map(|_| Vec::with_capacity(count))
            .collect();
        for window in &mut windows {
            for (block, part) in blocks.iter_mut().zip(window.chunks_mut(BLOCK)) {
                block.push(part);
            }
        }
        blocks
            .par_iter_mut()
            .zip(scalars.par_chunks(BLOCK))
            .for_each(|(block, scalars)| {
                for (i, scalar) in scalars.iter().enumerate() {
                    recode(scalar, width, |w, digit| block[w][i] = digit);
                }
            });
        Self {
            width,
            count: scalars.len(),
            windows,
        }
    }
}

/// Call `digit(w, d)` for the non-zero signed digits of `scalar` (below the group order), base 2^width.
pub fn recode(scalar: &BigInt<4>, width: usize, mut digit: impl FnMut(usize, i16)) {
    let negative = *scalar > Fr::MODULUS_MINUS_ONE_DIV_TWO;
    let mut magnitude = *scalar;
    if negative {
        magnitude = Fr::MODULUS;
        magnitude.sub_with_borrow(scalar);
    }
    let top = magnitude.num_bits() as usize;
    let (half, full) = (1i32 << (width - 1), 1i32 << width);
    let mut carry = 0i32;
    let mut w = 0;
    while w * width < top || carry != 0 {
        let bit = w * width;
        let raw = if bit < 256 {
            let (limb, shift) = (bit / 64, bit % 64);
            let mut word = magnitude.0[limb] >> shift;
            if shift + width > 64 && limb < 3 {
                word |= magnitude.0[limb + 1] << (64 - shift);
            }
            (word & (full as u64 - 1)) as i32
        } else {
            0
        };
        let mut d = raw + carry;
        carry = i32::from(d >= half);
        if carry == 1 {
            d -= full;
        }
        if d != 0 {
            digit(w, (if negative { -d } else { d }) as i16);
        }
        w += 1;
    }
}

/// Points with bucket sums that are formed at the same time: they fit into the second-level cache while pairs are added.
const BLOCK_POINTS: usize = 1 << 14;

/// sum_i scalar_i base_i: the digits of the scalars are shared by several sets of bases.
pub fn msm_plain<P: Group>(bases: &[Point<P::BaseField>], digits: &Digits) -> Projective<P> {
    let count = bases.len().min(digits.count);
    let sums: Vec<Projective<P>> = digits
        .windows
        .par_iter()
        .with_max_len(1)
        .map(|window| window_sum(&bases[..count], &window[..count], digits.width))
        .collect();
    sums.into_iter()
        .rev()
        .fold(Projective::zero(), |mut total, sum| {
            for _ in 0..digits.width {
                total.double_in_place();
            }
            total + sum
        })
}

pub fn msm_digits<P: Group>(bases: &[Affine<P>], digits: &Digits) -> Projective<P> {
    let plain: Vec<_> = bases.par_iter().map(to_plain).collect();
    msm_plain(&plain, digits)
}

/// sum_i scalar_i base_i for plain integers below the group order.
pub fn msm<P: Group>(bases: &[Affine<P>], scalars: &[BigInt<4>]) -> Projective<P> {
    msm_digits(bases, &Digits::new(scalars))
}

fn window_sum<P: Group>(
    bases: &[Point<P::BaseField>],
    digits: &[i16],
    width: usize,
) -> Projective<P> {
    let buckets = 1usize << (width - 1);
    let live = |base: &Point<P::BaseField>, digit: i16| digit != 0 && !base.is_neutral();
    let mut ends = vec![0u32; buckets + 1];
    for (base, &digit) in bases.iter().zip(digits) {
        if live(base, digit) {
            ends[usize::from(digit.unsigned_abs())] += 1;
        }
    }
    let lengths = ends[1..].to_vec();
    let mut start = 0;
    for end in &mut ends {
        let n = *end;
        *end = start;
        start += n;
    }
    // Counting sort: the index of each point by bucket, its sign in the lowest bit.
    let mut order = vec![0u32; start as usize];
    for (i, (base, &digit)) in bases.iter().zip(digits).enumerate() {
        if live(base, digit) {
            let slot = &mut ends[usize::from(digit.unsigned_abs())];
            order[*slot as usize] = (i as u32) << 1 | u32::from(digit < 0);
            *slot += 1;
        }
    }
    let mut sums = Vec::with_capacity(buckets + 1);
    sums.push(Point::default());
    let (mut points, mut spare) = (Vec::new(), Vec::new());
    let (mut bucket, mut first) = (0, 0);
    while bucket < buckets {
        let (from, begin) = (bucket, first);
        loop {
            first += lengths[bucket] as usize;
            bucket += 1;
            if bucket == buckets || first - begin + lengths[bucket] as usize > BLOCK_POINTS {
                break;
            }
        }
        points.clear();
        let terms = order[begin..first].iter();
        points.extend(terms.map(|entry| bases[(entry >> 1) as usize].signed(entry & 1)));
        Coordinate::segment_sums(&mut points, &mut spare, &lengths[from..bucket]);
        sums.extend_from_slice(&points);
    }
    weigh(&sums)
}

/// The sum of k times the k-th point, from k = 0. With k = side a + b it is side times the weighed sum of the rows a plus
/// the weighed sum of the columns b; rows and columns are sums without weights.
pub(crate) fn weigh<P: Group>(points: &[Point<P::BaseField>]) -> Projective<P> {
    if points.len() < 24 {
        let (mut running, mut total) = (Projective::<P>::zero(), Projective::zero());
        for point in points.iter().skip(1).rev() {
            running += from_plain::<P>(point);
            total += running;
        }
        return total;
    }
    let bits = (points.len().ilog2() / 2) as usize;
    let side = 1usize << bits;
    let rows = points.len().div_ceil(side);
    let (mut list, mut lengths) = (Vec::with_capacity(2 * points.len()), Vec::new());
    let mut end = 0;
    let mut segment = |own: &mut dyn Iterator<Item = &Point<P::BaseField>>| {
        list.extend(own.filter(|p| !p.is_neutral()));
        lengths.push((list.len() - end) as u32);
        end = list.len();
    };
    for row in points.chunks(side) {
        segment(&mut row.iter());
    }
    for column in 0..side {
        segment(&mut points.iter().skip(column).step_by(side));
    }
    Coordinate::segment_sums(&mut list, &mut Vec::new(), &lengths);
    let (by_row, by_column) = list.split_at(rows);
    let mut total = weigh(by_row);
    for _ in 0..bits {
        total = total + total;
    }
    total + weigh(by_column)
}

/// Multiples of one base: `table[w][d - 1]` = d 2^(width w) base.
pub struct FixedBase<P: Group> {
    width: usize,
    table: Vec<Vec<Affine<P>>>,
}

impl<P: Group> FixedBase<P> {
    pub fn new(base: Affine<P>, width: usize) -> Self {
        let mut powers = vec![base.into_group()];
        for w in 1..BITS.div_ceil(width) {
            let mut next = powers[w - 1];
            for _ in 0..width {
                next.double_in_place();
            }
            powers.push(next);
        }
        let table = Projective::normalize_batch(&powers)
            .into_par_iter()
            .map(|power| {
                let mut row = vec![power];
                let mut scratch = Vec::new();
                while row.len() < 1 << (width - 1) {
                    let top = row[row.len() - 1];
                    let mut next = row.clone();
                    add_assign(&mut next, &mut scratch, |_| top);
                    row.extend(next);
                }
                row
            })
            .collect();
        Self { width, table }
    }

    /// scalar_i base, affine.
    pub fn multiply(&self, scalars: &[Fr]) -> Vec<Affine<P>> {
        let mut out = vec![Affine::<P>::zero(); scalars.len()];
        out.par_chunks_mut(BATCH)
            .zip(scalars.par_chunks(BATCH))
            .for_each(|(out, scalars)| {
                let mut digits = vec![0i16; self.table.len() * out.len()];
                for (i, scalar) in scalars.iter().enumerate() {
                    recode(&scalar.into_bigint(), self.width, |w, d| {
                        digits[w * out.len() + i] = d;
                    });
                }
                // Scalars may be secret. The digits and all data derived from them are wiped, so no vector may reallocate.
                let mut scratch = Vec::with_capacity(out.len());
                for (row, digits) in self.table.iter().zip(digits.chunks_exact(out.len())) {
                    add_assign(out, &mut scratch, |i| {
                        let d = digits[i];
                        match usize::from(d.unsigned_abs()) {
                            0 => Affine::zero(),
                            k if d < 0 => -row[k - 1],
                            k => row[k - 1],
                        }
                    });
                }
                digits.zeroize();
                scratch.zeroize();
            });
        out
    }
}
