//! Sums of multiples by secret scalars: as many additions of points whatever the scalars are, given how long they can be.
//!
//! Buckets are those of [`crate::msm`], but each value has the digits of its public width, a digit that is zero has a bucket
//! too, which is thrown away, and each bucket starts with a point, so that none is empty. What the scalars still decide is
//! which bucket a point goes to: the addresses that are written, and with them how additions group.
use ark_bn254::Fr;
use ark_ec::short_weierstrass::Projective;
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, BigInt, Field, PrimeField, Zero};
use ragaudit_core::sums::{Coordinate, Point};
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use crate::field::{to_plain, Group};
use crate::msm::weigh;
use crate::widths::{Widths, WHOLE};

/// Points whose bucket sums are formed together: what fits the second-level cache once pairs are added.
const BLOCK: usize = 1 << 14;
/// The widest digits: what a 16-bit integer with a sign holds.
const WIDEST: usize = 15;
/// The point that a bucket starts with is a multiple of the generator's by this, and by the bucket's number.
const START: u64 = 0x7261_675f_6175_6469;

/// One digit of each scalar that has it: those of a run of [`Digits::order`].
struct Window {
    from: usize,
    /// The lowest bit.
    shift: usize,
    width: usize,
    digits: Zeroizing<Vec<i16>>,
}

/// Signed digits of many secret scalars.
pub struct Digits {
    /// The longest scalars first.
    order: Vec<u32>,
    windows: Vec<Window>,
}

/// How scalars are cut: those of at most `short` bits into one digit, the others into digits of `width` bits.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    short: usize,
    width: usize,
}

impl Cut {
    /// That with the fewest additions: one for each digit and three for each bucket, and what a window takes besides.
    fn of(widths: &Widths) -> Self {
        // For each length, how many scalars are at least as long.
        let mut longer = [0usize; WHOLE as usize + 2];
        for bits in &widths.0 {
            longer[usize::from(*bits)] += 1;
        }
        for bits in (0..longer.len() - 1).rev() {
            longer[bits] += longer[bits + 1];
        }
        let window = |count: usize, width: usize| match count {
            0 => 0,
            _ => count + 3 * (1 << (width - 1)) + 500,
        };
        let cost = |cut: &Self| {
            // Digit w is there from w width bits on.
            let digits = (0..digits_of(WHOLE, cut.width))
                .map(|w| window(longer[(w * cut.width).max(cut.short + 1)], cut.width));
            let short = widths.0.len() - longer[cut.short + 1];
            window(short, cut.short + 1) + digits.sum::<usize>()
        };
        let cuts = (0..12).flat_map(|short| (3..=WIDEST).map(move |width| Self { short, width }));
        cuts.min_by_key(cost).expect("there are some")
    }
}

/// Signed digits of a magnitude, of which the last takes what is left and has room for the carry.
fn digits_of(bits: u8, width: usize) -> usize {
    (usize::from(bits) + 1).div_ceil(width)
}

/// 2^(width - 1) in each digit but the last: with it added, a digit is what stands there less 2^(width - 1).
fn raise(digits: usize, width: usize) -> [u64; 4] {
    let mut words = [0; 4];
    for w in 1..digits {
        let bit = w * width - 1;
        words[bit / 64] |= 1 << (bit % 64);
    }
    words
}

fn plus(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut carry = 0;
    std::array::from_fn(|i| {
        let sum = u128::from(a[i]) + u128::from(b[i]) + carry;
        carry = sum >> 64;
        sum as u64
    })
}

/// The magnitude below half of the group order, with the sign in its highest bit, by the same steps whatever the scalar is.
fn split(scalar: &BigInt<4>) -> [u64; 4] {
    let mut negated = [0; 4];
    let mut borrow = 0;
    for (i, out) in negated.iter_mut().enumerate() {
        let difference = i128::from(Fr::MODULUS.0[i]) - i128::from(scalar.0[i]) + borrow;
        (*out, borrow) = (difference as u64, difference >> 64);
    }
    let mut borrow = 0;
    for (other, own) in negated.iter().zip(&scalar.0) {
        borrow = (i128::from(*other) - i128::from(*own) + borrow) >> 64;
    }
    // All ones where x is above r - x; and the compiler knows no more than that it is an integer.
    let negative = std::hint::black_box(borrow as u64);
    let mut out = std::array::from_fn(|i| scalar.0[i] ^ negative & (scalar.0[i] ^ negated[i]));
    out[3] |= negative << 63;
    out
}

const SIGN: u64 = 1 << 63;

impl Digits {
    /// None if a scalar is longer than its width.
    pub fn new(scalars: &[BigInt<4>], widths: &Widths) -> Option<Self> {
        let cut = Cut::of(widths);
        let mut order: Vec<u32> = (0..scalars.len() as u32).collect();
        order.sort_by_key(|i| std::cmp::Reverse(widths.0[*i as usize]));
        let bits: Vec<u8> = order.iter().map(|i| widths.0[*i as usize]).collect();
        let long = bits.partition_point(|bits| usize::from(*bits) > cut.short);
        let raises: Vec<[u64; 4]> = (0..=WHOLE)
            .map(|bits| match usize::from(bits) > cut.short {
                true => raise(digits_of(bits, cut.width), cut.width),
                false => [0; 4],
            })
            .collect();
        let mut raised = Zeroizing::new(vec![[0u64; 4]; scalars.len()]);
        let longer = raised
            .par_iter_mut()
            .zip(order.par_iter().zip(&bits))
            .with_min_len(1 << 10)
            .map(|(out, (i, bits))| {
                let words = split(&scalars[*i as usize]);
                *out = plus(&words, &raises[usize::from(*bits)]);
                beyond(&words, *bits)
            })
            .reduce(|| 0, |a, b| a | b);
        if longer != 0 {
            return None;
        }
        let count = |w: usize| bits[..long].partition_point(|b| digits_of(*b, cut.width) > w);
        let mut shapes: Vec<(usize, usize, usize, usize)> = (0..digits_of(WHOLE, cut.width))
            .map(|w| (0, count(w), w * cut.width, cut.width))
            .collect();
        shapes.push((long, order.len(), 0, cut.short + 1));
        let windows = shapes
            .into_par_iter()
            .filter(|(from, to, ..)| from < to)
            .map(|(from, to, shift, width)| {
                let of = |(x, bits): (&[u64; 4], &u8)| {
                    let last = usize::from(*bits) < shift + width || from == long;
                    digit(x, shift, width, last)
                };
                let run = raised[from..to].iter().zip(&bits[from..to]);
                Window {
                    from,
                    shift,
                    width,
                    digits: Zeroizing::new(run.map(of).collect()),
                }
            })
            .collect();
        Some(Self { order, windows })
    }
}

/// The bits of a magnitude that are beyond its width.
fn beyond(words: &[u64; 4], bits: u8) -> u64 {
    let mut rest = 0;
    for (i, word) in words.iter().enumerate() {
        let own = usize::from(bits).saturating_sub(64 * i);
        let word = word & if i == 3 { !SIGN } else { u64::MAX };
        rest |= match own {
            0..64 => word >> own,
            _ => 0,
        };
    }
    rest
}

/// The digit that stands at `shift` of a raised magnitude, with the scalar's sign.
fn digit(x: &[u64; 4], shift: usize, width: usize, last: bool) -> i16 {
    let word = |i: usize| match i {
        3 => x[3] & !SIGN,
        _ => x.get(i).copied().unwrap_or(0),
    };
    let (limb, bit) = (shift / 64, shift % 64);
    let pair = u128::from(word(limb + 1)) << 64 | u128::from(word(limb));
    let here = (pair >> bit) as u64;
    let digit = match last {
        true => here as i64,
        false => (here & ((1 << width) - 1)) as i64 - (1 << (width - 1)),
    };
    let negative = -((x[3] >> 63) as i64);
    ((digit ^ negative) - negative) as i16
}

/// sum_i scalar_(skip + i) base_i: the digits of the scalars are shared by several sets of bases.
pub fn msm_plain<P: Group>(
    bases: &[Point<P::BaseField>],
    digits: &Digits,
    skip: usize,
) -> Projective<P> {
    sum_in_blocks(bases, digits, skip, BLOCK)
}

fn sum_in_blocks<P: Group>(
    bases: &[Point<P::BaseField>],
    digits: &Digits,
    skip: usize,
    block: usize,
) -> Projective<P> {
    let widest = digits.windows.iter().map(|w| w.width).max().unwrap_or(1);
    let starts = starts::<P>((1 << (widest - 1)) + 1);
    let sums: Vec<Projective<P>> = digits
        .windows
        .par_iter()
        .with_max_len(1)
        .map(|window| window_sum(bases, &digits.order, window, skip, &starts, block))
        .collect();
    // Those of the long scalars from the highest down, and that of the short ones.
    let (mut total, mut short) = (Projective::zero(), Projective::zero());
    // What the buckets' first points have added: sum over k of k (k + 1) times the first.
    let mut surplus = Fr::zero();
    let mut above = 0;
    for (window, sum) in digits.windows.iter().zip(&sums).rev() {
        let most = 1u128 << (window.width - 1);
        surplus +=
            Fr::from(2u8).pow([window.shift as u64]) * Fr::from(most * (most + 1) * (most + 2) / 3);
        if window.from > 0 {
            short += sum;
            continue;
        }
        for _ in window.shift..above {
            total.double_in_place();
        }
        above = window.shift;
        total += sum;
    }
    total + short - first::<P>() * surplus
}

fn first<P: Group>() -> Projective<P> {
    Projective::from(P::GENERATOR) * Fr::from(START)
}

/// The first `count` multiples of the first point, from 1.
fn starts<P: Group>(count: usize) -> Vec<Point<P::BaseField>> {
    let mut row = vec![to_plain(&first::<P>().into_affine())];
    let mut spare = Vec::new();
    while row.len() < count {
        let top = row[row.len() - 1];
        let mut next: Vec<_> = row.iter().flat_map(|p| [*p, top]).collect();
        Coordinate::segment_sums(&mut next, &mut spare, &vec![2; row.len()]);
        row.extend(next);
    }
    row.truncate(count);
    row
}

/// sum of digit times base, and what the buckets start with.
fn window_sum<P: Group>(
    bases: &[Point<P::BaseField>],
    order: &[u32],
    window: &Window,
    skip: usize,
    starts: &[Point<P::BaseField>],
    block: usize,
) -> Projective<P> {
    // The place of 0 too.
    let buckets = (1usize << (window.width - 1)) + 1;
    let wires = &order[window.from..][..window.digits.len()];
    // Which bases there are is public.
    let live = |wire: u32| {
        let place = (wire as usize).wrapping_sub(skip);
        bases.get(place).is_some_and(|base| !base.is_neutral())
    };
    let entries = || {
        let pairs = wires.iter().zip(window.digits.iter());
        pairs.filter(|(wire, _)| live(**wire))
    };
    let mut lengths = vec![1u32; buckets];
    for (_, digit) in entries() {
        lengths[usize::from(digit.unsigned_abs())] += 1;
    }
    let mut next = Vec::with_capacity(buckets);
    let mut total = 0;
    for length in &lengths {
        next.push(total);
        total += length - 1;
    }
    // Counting sort: the place of each base by bucket, its sign in the lowest bit.
    let mut sorted = Zeroizing::new(vec![0u32; total as usize]);
    for (wire, digit) in entries() {
        let slot = &mut next[usize::from(digit.unsigned_abs())];
        sorted[*slot as usize] = (wire - skip as u32) << 1 | u32::from(digit.to_le_bytes()[1] >> 7);
        *slot += 1;
    }
    let mut sums = Vec::with_capacity(buckets);
    let (mut points, mut spare) = (Vec::new(), Vec::new());
    let (mut bucket, mut at) = (0, 0);
    let base = |entry: &u32| bases[(entry >> 1) as usize].signed(entry & 1);
    while bucket < buckets {
        let from = bucket;
        points.clear();
        // A bucket that is longer than a block is summed block by block.
        let (mut start, mut own) = (
            starts[bucket],
            &sorted[at..][..lengths[bucket] as usize - 1],
        );
        while own.len() >= block {
            let (now, rest) = own.split_at(block - 1);
            points.push(start);
            points.extend(now.iter().map(base));
            Coordinate::segment_sums(&mut points, &mut spare, &[block as u32]);
            (start, own) = (points[0], rest);
            points.clear();
            at += now.len();
            lengths[bucket] -= now.len() as u32;
        }
        loop {
            points.push(start);
            at += own.len();
            points.extend(own.iter().map(base));
            bucket += 1;
            if bucket == buckets || points.len() + lengths[bucket] as usize > block {
                break;
            }
            (start, own) = (
                starts[bucket],
                &sorted[at..][..lengths[bucket] as usize - 1],
            );
        }
        Coordinate::segment_sums(&mut points, &mut spare, &lengths[from..bucket]);
        sums.extend_from_slice(&points);
    }
    lengths.zeroize();
    next.zeroize();
    weigh(&sums)
}

#[cfg(test)]
#[path = "hidden_tests.rs"]
mod tests;
