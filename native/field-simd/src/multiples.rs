//! Sums of secret multiples of public points, with the same steps for all factors.
//!
//! A factor's digit d of [`DIGIT`] bits represents the odd number 2 d - (2^[`DIGIT`] - 1). A table has the positive odd
//! multiples of its point; a read scans the whole table, selects one entry by a mask or by a permutation within registers,
//! and applies the sign by a mask. No multiple is neutral, so no addition is omitted and no addition is a special case.
use std::hint::black_box;
use std::sync::OnceLock;

use ark_bn254::{Fq, Fr, G1Affine, G1Projective};
use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, BigInt, Field, PrimeField};
use zeroize::Zeroize;

use crate::dispatch;
use crate::g1::{combine, invert, normalize, Points};
use crate::lanes::pick::{masks, scan};
pub use crate::lanes::pick::{Words, DIGIT, ENTRIES};
use crate::lanes::{Lanes, Picks};
use crate::limbs::{from_field, to_integer};

/// The number of sums with digits is padded to a multiple of this number.
pub const SUMS: usize = 8;

/// (2 j + 1) P for j below [`ENTRIES`].
#[repr(C, align(64))]
pub struct Multiples([Words; 2]);

impl Multiples {
    /// The tables of points, none of which is neutral.
    pub fn of(points: &[G1Affine]) -> Vec<Self> {
        let mut out: Vec<Self> = (points.iter())
            .map(|_| Self([[[0; ENTRIES]; 4]; 2]))
            .collect();
        dispatch!(l => fill(l, points, &mut out));
        out
    }

    /// The odd multiple that a digit of the signed representation selects.
    fn entry(&self, digit: u8) -> G1Affine {
        let [x, y] = [0, 1].map(|c| Fq::new_unchecked(BigInt(scan(&self.0[c], digit))));
        let negative = usize::from(digit) < ENTRIES;
        G1Affine::new_unchecked(x, if negative { -y } else { y })
    }
}

/// Compute odd multiples in one level for each bit of a digit except one: the known ones, and each plus an even multiple.
#[inline(always)]
fn fill<L: Lanes<Fq>>(l: L, points: &[G1Affine], out: &mut [Multiples]) {
    let vectors = points.len().div_ceil(L::N);
    let at = |i: usize| points.get(i).unwrap_or(&points[0]);
    let mut odd: Vec<Points<L>> = Vec::with_capacity(vectors * ENTRIES);
    for v in 0..vectors {
        odd.push([
            l.load(|i| &at(v * L::N + i).x),
            l.load(|i| &at(v * L::N + i).y),
        ]);
    }
    let mut even = combine(l, &odd, None);
    while odd.len() < vectors * ENTRIES {
        let mut shift = Vec::with_capacity(odd.len());
        while shift.len() < odd.len() {
            shift.extend_from_slice(&even);
        }
        let next = combine(l, &odd, Some(&shift));
        odd.extend(next);
        even = combine(l, &even, None);
    }
    for (at, [x, y]) in odd.into_iter().enumerate() {
        let (j, first) = (at / vectors, at % vectors * L::N);
        for (c, coordinate) in [x, y].into_iter().enumerate() {
            l.store(coordinate, |i, value| {
                if let Some(table) = out.get_mut(first + i) {
                    for (word, limb) in table.0[c].iter_mut().zip(value.0 .0) {
                        word[j] = limb;
                    }
                }
            });
        }
    }
}

/// An unfinished sum, with the values of its current addition.
#[derive(Clone, Copy)]
struct Slot<V> {
    x: V,
    y: V,
    /// The other point's coordinates.
    other: V,
    /// The product of the denominators of earlier slots.
    before: V,
}

/// The approximate number of vectors of sums that share an inversion.
const TOGETHER: usize = 256;

/// For each s below `sums`, the sum over all tables t of t's point times the odd number of the digit
/// `digits[t * sums + s]`. `sums` is a multiple of [`SUMS`]. The steps depend only on the numbers of tables and of sums,
/// except if two added points have the same x, which requires a known relation between the points.
pub fn sums(tables: &[Multiples], digits: &[u8], sums: usize) -> Vec<G1Affine> {
    assert!(sums.is_multiple_of(SUMS) && digits.len() == tables.len() * sums);
    let mut out = vec![G1Affine::zero(); sums];
    if sums == 0 || tables.is_empty() {
        return out;
    }
    #[cfg(feature = "count")]
    crate::count::add(&crate::count::READS, 2 * digits.len() * ENTRIES);
    if !dispatch!(l => sum_lanes(l, tables, digits, &mut out)) {
        let one = |s: usize| -> G1Projective {
            let terms = tables.iter().zip(digits[s..].iter().step_by(sums));
            terms.map(|(table, digit)| table.entry(*digit)).sum()
        };
        out = normalize(&(0..sums).map(one).collect::<Vec<_>>());
    }
    out
}

/// Returns false if two added points have the same x.
#[inline(always)]
fn sum_lanes<L: Picks<Fq>>(
    l: L,
    tables: &[Multiples],
    digits: &[u8],
    out: &mut [G1Affine],
) -> bool {
    let sums = out.len();
    let vectors = sums / L::N;
    let streams = (TOGETHER * SUMS / sums).clamp(1, tables.len());
    let zero = Slot {
        x: l.zero(),
        y: l.zero(),
        other: l.zero(),
        before: l.zero(),
    };
    let mut slots = vec![zero; streams * vectors];
    for (k, slot) in slots.iter_mut().enumerate() {
        let (table, at) = (&tables[k / vectors], &digits[k * L::N..][..L::N]);
        slot.x = l.pick(&table.0[0], at);
        slot.y = l.signed(l.pick(&table.0[1], at), at);
    }
    let rest = tables[streams..].chunks(streams);
    for (tables, digits) in rest.zip(digits[streams * sums..].chunks(streams * sums)) {
        if !step(
            l,
            &mut slots,
            tables.len() * vectors,
            Some((tables, digits, vectors)),
        ) {
            return false;
        }
    }
    let mut left = streams;
    while left > 1 {
        let added = left / 2;
        // Adds the last slots to the first slots.
        slots.truncate(left * vectors);
        left -= added;
        if !step(l, &mut slots, added * vectors, None) {
            return false;
        }
    }
    for (v, slot) in slots[..vectors].iter().enumerate() {
        let mut xs = [Fq::ZERO; 8];
        l.store(slot.x, |i, x| xs[i] = x);
        l.store(slot.y, |i, y| {
            out[v * L::N + i] = G1Affine::new_unchecked(xs[i], y);
        });
    }
    // Overwrites the slots, so that no sum of secret multiples remains in memory.
    slots.fill(zero);
    black_box(&slots);
    true
}

/// Tables, their digits and the number of vectors of sums.
type Reads<'a> = (&'a [Multiples], &'a [u8], usize);

/// Adds the entries that are read, or without reads the last slots, to the first `count` slots.
#[inline(always)]
fn step<L: Picks<Fq>>(l: L, slots: &mut [Slot<L::V>], count: usize, reads: Option<Reads>) -> bool {
    #[cfg(feature = "count")]
    {
        crate::count::add(&crate::count::ADDITIONS, count * L::N);
        crate::count::add(&crate::count::INVERSIONS, 1);
    }
    let last = slots.len() - count;
    let mut product = l.splat(&Fq::ONE);
    for k in 0..count {
        let other = match reads {
            Some((tables, digits, vectors)) => {
                l.pick(&tables[k / vectors].0[0], &digits[k * L::N..][..L::N])
            }
            None => slots[last + k].x,
        };
        let slot = &mut slots[k];
        slot.other = other;
        slot.before = product;
        product = l.mul(product, l.sub(other, slot.x));
    }
    let Some(mut inverse) = invert(l, product) else {
        return false;
    };
    for k in (0..count).rev() {
        let y = match reads {
            Some((tables, digits, vectors)) => {
                let digits = &digits[k * L::N..][..L::N];
                l.signed(l.pick(&tables[k / vectors].0[1], digits), digits)
            }
            None => slots[last + k].y,
        };
        let slot = &mut slots[k];
        let slope = l.mul(l.sub(y, slot.y), l.mul(inverse, slot.before));
        inverse = l.mul(inverse, l.sub(slot.other, slot.x));
        let x = l.weak(l.sub(l.sub(l.square(slope), slot.x), slot.other));
        slot.y = l.weak(l.sub(l.mul(slope, l.sub(slot.x, x)), slot.y));
        slot.x = x;
    }
    true
}

/// Bits of a digit of a single multiple.
pub const SMALL: usize = 6;
const SMALL_ENTRIES: usize = 1 << (SMALL - 1);
/// Digits of a single multiple.
pub const SMALL_DIGITS: usize = (Fr::MODULUS_BIT_SIZE as usize).div_ceil(SMALL);

/// The digits d with odd numbers 2 d - (2^[`SMALL`] - 1) that represent x: the digits of a number X with
/// 2 X - (2^258 - 1) = x modulo r. The steps are the same for all x.
pub fn odd_digits(x: &Fr) -> [u8; SMALL_DIGITS] {
    static SHIFT: OnceLock<[u64; 4]> = OnceLock::new();
    let shift = SHIFT.get_or_init(|| {
        let power = Fr::from(2u8).pow([(SMALL * SMALL_DIGITS) as u64]);
        (power - Fr::ONE).into_bigint().0
    });
    // Half of x + 2^258 - 1 (below 2 r), after adding r if it is odd.
    let mut number = to_integer(&from_field(x));
    plus(&mut number, shift);
    let odd = (number[0] & 1).wrapping_neg();
    plus(&mut number, &Fr::MODULUS.0.map(|word| word & odd));
    let mut digits = [0u8; SMALL_DIGITS];
    for (i, digit) in digits.iter_mut().enumerate() {
        let (limb, bit) = ((SMALL * i + 1) / 64, (SMALL * i + 1) % 64);
        let low = number.get(limb).map_or(0, |word| word >> bit);
        let high = match (bit, number.get(limb + 1)) {
            (1.., Some(word)) => word << (64 - bit),
            _ => 0,
        };
        *digit = (low | high) as u8 % (1 << SMALL);
    }
    number.zeroize();
    digits
}

/// a + b in the place of a, without a carry from the last word.
fn plus(a: &mut [u64; 4], b: &[u64; 4]) {
    let mut carry = 0;
    for (a, b) in a.iter_mut().zip(b) {
        let sum = u128::from(*a) + u128::from(*b) + carry;
        (*a, carry) = (sum as u64, sum >> 64);
    }
}

/// The coordinates of one entry.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Entry([u64; 8]);

/// (2 j + 1) P for j below half of 2^[`SMALL`]: a table for few reads.
pub struct SmallMultiples([Entry; SMALL_ENTRIES]);

impl SmallMultiples {
    /// The table of a point that is not neutral.
    pub fn of(point: G1Projective) -> Self {
        let twice = point.double();
        let mut next = point;
        let all: Vec<G1Projective> = (0..SMALL_ENTRIES)
            .map(|_| {
                let own = next;
                next += twice;
                own
            })
            .collect();
        let mut out = Self([Entry([0; 8]); SMALL_ENTRIES]);
        for (entry, point) in out.0.iter_mut().zip(normalize(&all)) {
            entry.0[..4].copy_from_slice(&point.x.0 .0);
            entry.0[4..].copy_from_slice(&point.y.0 .0);
        }
        out
    }

    /// 2 d - (2^[`SMALL`] - 1) times the point, for d below 2^[`SMALL`].
    #[inline(always)]
    fn read(&self, digit: u8) -> G1Affine {
        let high = digit >> (SMALL - 1);
        let place = u64::from((digit ^ high.wrapping_sub(1)) & (SMALL_ENTRIES - 1) as u8);
        let mut words = [0u64; 8];
        for (entry, mask) in self.0.iter().zip(masks::<SMALL_ENTRIES>(place)) {
            for (word, value) in words.iter_mut().zip(&entry.0) {
                *word |= value & mask;
            }
        }
        let x = BigInt([words[0], words[1], words[2], words[3]]);
        let y = BigInt([words[4], words[5], words[6], words[7]]);
        let point = G1Affine::new_unchecked(Fq::new_unchecked(x), Fq::new_unchecked(y));
        signed(&point, u64::from(high).wrapping_sub(1))
    }
}

/// Reads one digit in each table.
pub fn read_all(tables: &[SmallMultiples], digits: &[u8], out: &mut Vec<G1Affine>) {
    #[cfg(feature = "count")]
    crate::count::add(&crate::count::READS, tables.len() * SMALL_ENTRIES);
    dispatch!(l => Lanes::<Fq>::run(
        l,
        #[inline(always)]
        || {
            for (table, digit) in tables.iter().zip(digits) {
                out.push(table.read(*digit));
            }
        },
    ));
}

/// -P if all bits of the mask are ones, P if the mask is 0; P is not neutral.
#[inline(always)]
pub fn signed(point: &G1Affine, mask: u64) -> G1Affine {
    let (negative, mask) = ((-point.y).0 .0, black_box(mask));
    let mut y = point.y.0 .0;
    for (y, negative) in y.iter_mut().zip(negative) {
        *y ^= mask & (*y ^ negative);
    }
    G1Affine::new_unchecked(point.x, Fq::new_unchecked(BigInt(y)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::tracked::Tracked;
    use crate::lanes::Portable;
    use ark_ec::CurveGroup;
    use ark_ff::UniformRand;

    fn times(point: &G1Affine, factor: i64) -> G1Projective {
        let multiple = *point * Fr::from(factor.unsigned_abs());
        if factor < 0 {
            -multiple
        } else {
            multiple
        }
    }

    #[test]
    fn digits_stand_for_odd_multiples() {
        let mut rng = ark_std::test_rng();
        let points: Vec<G1Affine> = (0..9).map(|_| G1Affine::rand(&mut rng)).collect();
        let tables = Multiples::of(&points);
        let small = SmallMultiples::of(points[8].into());
        for digit in 0..=255u8 {
            let odd = 2 * i64::from(digit) - 255;
            for (table, point) in tables.iter().zip(&points) {
                assert_eq!(table.entry(digit), times(point, odd));
            }
            if digit < 64 {
                let odd = 2 * i64::from(digit) - 63;
                assert_eq!(small.read(digit), times(&points[8], odd));
            }
        }
        assert!(Multiples::of(&[]).is_empty());
    }

    #[test]
    fn odd_digits_make_their_number() {
        let mut rng = ark_std::test_rng();
        let mut all = vec![Fr::ZERO, Fr::ONE, -Fr::ONE, -Fr::from(2u8)];
        all.extend((0..20).map(|_| Fr::rand(&mut rng)));
        for x in all {
            let sum = odd_digits(&x).iter().rev().fold(Fr::ZERO, |sum, d| {
                sum * Fr::from(64u8) + Fr::from(2 * u64::from(*d)) - Fr::from(63u8)
            });
            assert_eq!(sum, x);
        }
    }

    #[test]
    fn sums_are_those_of_the_digits() {
        let mut rng = ark_std::test_rng();
        let points: Vec<G1Affine> = (0..37).map(|_| G1Affine::rand(&mut rng)).collect();
        for (count, width) in [(1, 8), (2, 16), (37, 8), (37, 72), (5, 2056)] {
            let tables = Multiples::of(&points[..count]);
            let digits: Vec<u8> = (0..count * width).map(|i| (i * i + i / 7) as u8).collect();
            let plain: Vec<G1Affine> = (0..width)
                .map(|s| {
                    let terms = digits[s..].iter().step_by(width).zip(&points);
                    let sum: G1Projective =
                        terms.map(|(d, p)| times(p, 2 * i64::from(*d) - 255)).sum();
                    sum.into_affine()
                })
                .collect();
            assert_eq!(sums(&tables, &digits, width), plain);
            let mut actual = vec![G1Affine::zero(); width];
            assert!(sum_lanes(Portable, &tables, &digits, &mut actual));
            assert_eq!(actual, plain);
            assert!(sum_lanes(Tracked, &tables, &digits, &mut actual));
            assert_eq!(actual, plain);
        }
    }

    /// Sums of equal and of opposite points, which have no chord.
    #[test]
    fn related_points_are_summed_too() {
        let point = G1Affine::generator();
        let tables = Multiples::of(&[point, point, -point]);
        let digits: Vec<u8> = [200; 8]
            .into_iter()
            .chain([200; 8])
            .chain([200; 8])
            .collect();
        let actual = sums(&tables, &digits, 8);
        assert!(actual.iter().all(|p| *p == times(&point, 145)));
    }
}
