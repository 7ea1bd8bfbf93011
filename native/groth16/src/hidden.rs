//! Sums of multiples by secret scalars. The number of point additions depends only on the public widths of the scalars.
//!
//! The module uses the buckets of [`crate::msm`], with three differences. Each value has the digits of its public width;
//! a longer value is split into its [`halves`](crate::halves) first. A digit of zero has a bucket too, which is dropped.
//! Each bucket starts with a point, so no bucket is empty. The scalars still determine the bucket of each point: the
//! written addresses, and the grouping of the additions.
use ark_bn254::Fr;
use ark_ec::short_weierstrass::Projective;
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, BigInt, Field, PrimeField, Zero};
use ragaudit_field_simd::sums::{Coordinate, Point};
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use crate::field::{to_plain, Group};
use crate::halves::{halves, Halved, HALF};
use crate::msm::weigh;
use crate::widths::Widths;

/// Points with bucket sums that are formed at the same time: they fit into the second-level cache while pairs are added.
const BLOCK: usize = 1 << 14;
/// Bits of all digits of a half: the bits of its magnitude, and its sign.
const BITS: usize = HALF as usize + 1;
/// The minimum and the maximum number of windows. Digits then have 3 to 15 bits, and fit into a signed 16-bit integer.
const WINDOWS: [usize; 2] = [9, 42];
/// The number of points between the prefetch of a point and its use. The points are at scattered addresses.
const AHEAD: usize = 16;
/// The place of a base that is missing or neutral.
const NOWHERE: u32 = u32::MAX;
/// Each bucket starts with the generator times this number and the bucket's number.
const START: u64 = 0x7261_675f_6175_6469;

/// One digit of each scalar that is long enough: the scalars are a run of [`Digits::order`].
struct Window {
    from: usize,
    /// The lowest bit.
    shift: usize,
    width: usize,
    digits: Zeroizing<Vec<i16>>,
}

/// Signed digits of many secret scalars.
pub struct Digits {
    /// The number of scalars. The value at this number plus i is the second half of scalar i, if scalar i is long.
    scalars: usize,
    /// Scalars and halves, the longest first.
    order: Vec<u32>,
    windows: Vec<Window>,
}

/// The division of values of at most [`HALF`] bits into digits. A value of at most `short` bits has one digit; the other
/// values have one digit for each of `windows` windows, with widths that differ by at most one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    short: usize,
    windows: usize,
}

impl Cut {
    /// The division with the fewest additions: one for each digit, two for each bucket, and a constant for each window.
    fn of(bits: &[u8]) -> Self {
        // The number of values of at least each length.
        let mut longer = [0usize; BITS + 1];
        for bits in bits {
            longer[usize::from(*bits)] += 1;
        }
        for bits in (0..BITS).rev() {
            longer[bits] += longer[bits + 1];
        }
        let window = |count: usize, width: usize| match count {
            0 => 0,
            _ => count + (2 << (width - 1)) + 500,
        };
        let cost = |cut: &Self| {
            // A window has a digit of each value that is long enough.
            let digits = (0..cut.windows)
                .map(|w| window(longer[cut.shift(w).max(cut.short + 1)], cut.width(w)));
            let short = bits.len() - longer[cut.short + 1];
            window(short, cut.short + 1) + digits.sum::<usize>()
        };
        let [fewest, maximum] = WINDOWS;
        let cuts = (0..12)
            .flat_map(|short| (fewest..=maximum).map(move |windows| Self { short, windows }));
        cuts.min_by_key(cost).expect("there are some")
    }

    /// The lowest bit of a window.
    fn shift(&self, w: usize) -> usize {
        w * BITS / self.windows
    }

    fn width(&self, w: usize) -> usize {
        self.shift(w + 1) - self.shift(w)
    }

    /// The number of signed digits of a value. The last digit has the remaining bits, the sign and the carry.
    fn digits(&self, bits: u8) -> usize {
        (1..self.windows)
            .find(|w| self.shift(*w) > usize::from(bits))
            .unwrap_or(self.windows)
    }

    /// Half of the range of each digit except the last. After adding it, a digit is the value at its place minus that half.
    fn raise(&self, digits: usize) -> i128 {
        (1..digits).map(|w| 1 << (self.shift(w) - 1)).sum()
    }
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
    // All bits are one if x is above r - x. `black_box` hides this fact from the compiler.
    let negative = std::hint::black_box(borrow as u64);
    let mut out = std::array::from_fn(|i| scalar.0[i] ^ negative & (scalar.0[i] ^ negated[i]));
    out[3] |= negative << 63;
    out
}

const SIGN: u64 = 1 << 63;

/// The values that give a scalar's digits (the scalar itself and 0, or its halves), and the bits beyond its width.
fn parts(scalar: &BigInt<4>, bits: u8) -> ([i128; 2], u64) {
    let words = split(scalar);
    let parts = match bits > HALF {
        true => halves(scalar),
        false => {
            let magnitude = i128::from(words[0]) | i128::from(words[1]) << 64;
            let negative = -i128::from(words[3] >> 63);
            [(magnitude ^ negative) - negative, 0]
        }
    };
    (parts, beyond(&words, bits))
}

impl Digits {
    /// The digits of the scalars; None if a scalar is longer than its width.
    pub fn new(scalars: &[BigInt<4>], widths: &Widths) -> Option<Self> {
        let mut cut_from = Zeroizing::new(vec![[0i128; 2]; scalars.len()]);
        let longer = cut_from
            .par_iter_mut()
            .zip(scalars.par_iter().zip(&widths.0))
            .with_min_len(1 << 10)
            .map(|(out, (scalar, bits))| {
                let beyond;
                (*out, beyond) = parts(scalar, *bits);
                beyond
            })
            .reduce(|| 0, |a, b| a | b);
        if longer != 0 {
            return None;
        }
        let count = scalars.len();
        let length = |i: u32| match (i as usize).checked_sub(count) {
            None => widths.0[i as usize].min(HALF),
            Some(_) => HALF,
        };
        let long = (0..count).filter(|i| widths.0[*i] > HALF);
        let mut order: Vec<u32> = (0..count)
            .chain(long.map(|i| count + i))
            .map(|i| i as u32)
            .collect();
        order.sort_by_key(|i| std::cmp::Reverse(length(*i)));
        let bits: Vec<u8> = order.iter().map(|i| length(*i)).collect();
        let cut = Cut::of(&bits);
        let long = bits.partition_point(|bits| usize::from(*bits) > cut.short);
        let raises: Vec<i128> = (0..=HALF)
            .map(|bits| match usize::from(bits) > cut.short {
                true => cut.raise(cut.digits(bits)),
                false => 0,
            })
            .collect();
        let mut raised = Zeroizing::new(vec![0i128; order.len()]);
        raised
            .par_iter_mut()
            .zip(order.par_iter().zip(&bits))
            .with_min_len(1 << 10)
            .for_each(|(out, (i, bits))| {
                let part = match (*i as usize).checked_sub(count) {
                    None => cut_from[*i as usize][0],
                    Some(i) => cut_from[i][1],
                };
                *out = part + raises[usize::from(*bits)];
            });
        let reach = |w: usize| bits[..long].partition_point(|b| cut.digits(*b) > w);
        let mut shapes: Vec<(usize, usize, usize, usize)> = (0..cut.windows)
            .map(|w| (0, reach(w), cut.shift(w), cut.width(w)))
            .collect();
        shapes.push((long, order.len(), 0, cut.short + 1));
        let windows = shapes
            .into_par_iter()
            .filter(|(from, to, ..)| from < to)
            .map(|(from, to, shift, width)| {
                let of = |(x, bits): (&i128, &u8)| {
                    let last = usize::from(*bits) < shift + width || from == long;
                    digit(*x, shift, width, last)
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
        Some(Self {
            scalars: count,
            order,
            windows,
        })
    }

    /// The place of each value's base in the list of `bases` followed by their images.
    fn places<F: Coordinate>(&self, bases: &[Point<F>]) -> Vec<u32> {
        let place = |i: &u32| {
            let (scalar, first) = match (*i as usize).checked_sub(self.scalars) {
                None => (*i as usize, 0),
                Some(scalar) => (scalar, bases.len()),
            };
            // The presence of a base is public.
            match bases.get(scalar).is_some_and(|base| !base.is_neutral()) {
                true => (first + scalar) as u32,
                false => NOWHERE,
            }
        };
        self.order
            .par_iter()
            .with_min_len(1 << 12)
            .map(place)
            .collect()
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

/// The digit at `shift` of a raised value.
fn digit(x: i128, shift: usize, width: usize, last: bool) -> i16 {
    let here = (x >> shift) as i64;
    let digit = match last {
        true => here,
        false => (here & ((1 << width) - 1)) - (1 << (width - 1)),
    };
    digit as i16
}

/// sum_i scalar_i base_i, for as many as there are bases: the digits of the scalars are shared by several sets of bases.
pub fn msm_plain<P: Halved>(bases: &[Point<P::BaseField>], digits: &Digits) -> Projective<P> {
    sum_in_blocks(bases, digits, BLOCK)
}

fn sum_in_blocks<P: Halved>(
    bases: &[Point<P::BaseField>],
    digits: &Digits,
    block: usize,
) -> Projective<P> {
    let widest = digits.windows.iter().map(|w| w.width).max().unwrap_or(1);
    let starts = starts::<P>((1 << (widest - 1)) + 1);
    let places = digits.places(bases);
    let images = match digits.order.len() > digits.scalars {
        true => P::with_images(bases),
        false => Vec::new(),
    };
    let bases = if images.is_empty() { bases } else { &images };
    let sums: Vec<Projective<P>> = digits
        .windows
        .par_iter()
        .with_max_len(1)
        .map(|window| window_sum::<P>(bases, &places, window, &starts, block))
        .collect();
    // The windows of the long scalars in descending order, and the window of the short scalars.
    let (mut total, mut short) = (Projective::zero(), Projective::zero());
    // The contribution of the buckets' first points: the sum over k of k (k + 1) times the first point.
    let mut surplus = Fr::zero();
    let mut above = 0;
    for (window, sum) in digits.windows.iter().zip(&sums).rev() {
        let maximum = 1u128 << (window.width - 1);
        surplus += Fr::from(2u8).pow([window.shift as u64])
            * Fr::from(maximum * (maximum + 1) * (maximum + 2) / 3);
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

/// The sum of digit times base over one window, plus the contribution of the buckets' first points.
fn window_sum<P: Group>(
    bases: &[Point<P::BaseField>],
    places: &[u32],
    window: &Window,
    starts: &[Point<P::BaseField>],
    block: usize,
) -> Projective<P> {
    // One bucket more, for digit 0.
    let buckets = (1usize << (window.width - 1)) + 1;
    let places = &places[window.from..][..window.digits.len()];
    let entries = || {
        let pairs = places.iter().zip(window.digits.iter());
        pairs.filter(|(place, _)| **place != NOWHERE)
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
    for (place, digit) in entries() {
        let slot = &mut next[usize::from(digit.unsigned_abs())];
        sorted[*slot as usize] = place << 1 | u32::from(digit.to_le_bytes()[1] >> 7);
        *slot += 1;
    }
    let mut sums = Vec::with_capacity(buckets);
    let (mut points, mut spare) = (Vec::new(), Vec::new());
    let (mut bucket, mut at) = (0, 0);
    let base = |i: usize| {
        if let Some(later) = sorted.get(i + AHEAD) {
            bases[(later >> 1) as usize].prefetch();
        }
        bases[(sorted[i] >> 1) as usize].signed(sorted[i] & 1)
    };
    while bucket < buckets {
        let from = bucket;
        points.clear();
        // A bucket that is longer than a block is summed block by block.
        let mut start = starts[bucket];
        while lengths[bucket] as usize > block {
            points.push(start);
            points.extend((at..at + block - 1).map(base));
            Coordinate::segment_sums(&mut points, &mut spare, &[block as u32]);
            start = points[0];
            points.clear();
            at += block - 1;
            lengths[bucket] -= block as u32 - 1;
        }
        loop {
            let own = lengths[bucket] as usize - 1;
            points.push(start);
            points.extend((at..at + own).map(base));
            at += own;
            bucket += 1;
            if bucket == buckets || points.len() + lengths[bucket] as usize > block {
                break;
            }
            start = starts[bucket];
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
