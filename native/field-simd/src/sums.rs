//! Sums of many points of BN254's groups, G1 over Fq and G2 over Fq2, on [`lanes`](crate::lanes): the affine formulas
//! with one inversion for many additions.
use ark_bn254::{Fq, Fq2};
use ark_ff::{BigInt, Field};

use crate::dispatch;
use crate::g1::blind;
use crate::lanes::quadratic::Extend;
use crate::lanes::Lanes;

/// A point in affine form. The neutral point has both coordinates 0, because neither curve contains that point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Point<F> {
    pub x: F,
    pub y: F,
}

impl<F: Field> Point<F> {
    #[inline(always)]
    pub fn is_neutral(&self) -> bool {
        self.x == F::ZERO && self.y == F::ZERO
    }
}

impl<F> Point<F> {
    /// Lets the processor fetch the point from memory during other work.
    #[inline(always)]
    pub fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            const LINE: usize = 64;
            let start = std::ptr::from_ref(self).cast::<i8>();
            for line in (0..size_of::<Self>()).step_by(LINE) {
                // SAFETY: every processor of this kind has the instruction, and it reads nothing: it is a hint.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line)) };
            }
        }
    }
}

impl<F: Coordinate> Point<F> {
    /// The negative of the point if `negative` is 1, the point itself if it is 0, without a branch.
    #[inline(always)]
    pub fn signed(&self, negative: u32) -> Self {
        Self {
            x: self.x,
            y: self.y.or(&-self.y, u64::from(negative & 1).wrapping_neg()),
        }
    }
}

/// The field of a group's coordinates.
pub trait Coordinate: Field<BasePrimeField = Fq> {
    /// The sum of each of the consecutive segments of `points`, whose lengths are `lengths`, and neutral for an empty one,
    /// in the place of the points. `spare` is scratch memory.
    fn segment_sums(points: &mut Vec<Point<Self>>, spare: &mut Vec<Point<Self>>, lengths: &[u32]);
    /// `other` if all bits of the mask are ones, the element itself if the mask is 0.
    fn or(&self, other: &Self, mask: u64) -> Self;
    /// The first point, except neutral points, that is not on y^2 = x^3 + b.
    fn off_curve(points: &[Point<Self>], b: &Self) -> Option<usize>;
}

impl Coordinate for Fq {
    fn segment_sums(points: &mut Vec<Point<Fq>>, spare: &mut Vec<Point<Fq>>, lengths: &[u32]) {
        dispatch!(l => segments(l, points, spare, lengths));
    }

    #[inline(always)]
    fn or(&self, other: &Fq, mask: u64) -> Fq {
        let (a, b) = (self.0 .0, other.0 .0);
        // Reads single words, because reading an array at another width than it was written stalls the processor.
        Fq::new_unchecked(BigInt([
            a[0] ^ mask & (a[0] ^ b[0]),
            a[1] ^ mask & (a[1] ^ b[1]),
            a[2] ^ mask & (a[2] ^ b[2]),
            a[3] ^ mask & (a[3] ^ b[3]),
        ]))
    }

    fn off_curve(points: &[Point<Fq>], b: &Fq) -> Option<usize> {
        dispatch!(l => off_curve(l, points, b))
    }
}

impl Coordinate for Fq2 {
    fn segment_sums(points: &mut Vec<Point<Fq2>>, spare: &mut Vec<Point<Fq2>>, lengths: &[u32]) {
        dispatch!(l => segments(l.extended(), points, spare, lengths));
    }

    #[inline(always)]
    fn or(&self, other: &Fq2, mask: u64) -> Fq2 {
        Fq2::new(self.c0.or(&other.c0, mask), self.c1.or(&other.c1, mask))
    }

    fn off_curve(points: &[Point<Fq2>], b: &Fq2) -> Option<usize> {
        dispatch!(l => off_curve(l.extended(), points, b))
    }
}

#[inline(always)]
fn segments<F: Field<BasePrimeField = Fq>, L: Lanes<F>>(
    l: L,
    points: &mut Vec<Point<F>>,
    spare: &mut Vec<Point<F>>,
    lengths: &[u32],
) {
    let mut left = lengths.to_vec();
    let mut pairs = Vec::<[u32; 2]>::new();
    let mut room = Vec::new();
    while left.iter().any(|n| *n > 1) {
        pairs.clear();
        let count = left.iter().map(|n| n.div_ceil(2) as usize).sum();
        // Every entry is written below.
        spare.resize(count, Point::default());
        let (mut from, mut to) = (0, 0);
        for n in &mut left {
            pairs.extend((0..*n / 2).map(|k| [from + 2 * k, to + k]));
            if *n % 2 == 1 {
                spare[(to + *n / 2) as usize] = points[(from + *n - 1) as usize];
            }
            from += *n;
            *n = n.div_ceil(2);
            to += *n;
        }
        add_pairs(l, points, spare, &pairs, &mut room);
        std::mem::swap(points, spare);
    }
    if left.contains(&0) {
        let mut sums = points.iter();
        let mut next = || sums.next().copied().unwrap_or_default();
        let sum = |n: &u32| if *n == 0 { Point::default() } else { next() };
        *points = left.iter().map(sum).collect();
    }
}

/// Additions that share an inversion.
const BLOCK: usize = 1 << 12;
/// Products of denominators that are computed at the same time, because each step of a product waits for the previous step.
const CHAINS: usize = 2;

/// `to[b] = from[a] + from[a + 1]` for each [a, b] of `pairs`.
#[inline(always)]
fn add_pairs<F: Field<BasePrimeField = Fq>, L: Lanes<F>>(
    l: L,
    from: &[Point<F>],
    to: &mut [Point<F>],
    pairs: &[[u32; 2]],
    before: &mut Vec<L::V>,
) {
    // The lanes without a chord, vector by vector.
    let mut special = [0u8; BLOCK];
    let one = l.splat(&F::ONE);
    for block in pairs.chunks(BLOCK) {
        #[cfg(feature = "count")]
        {
            crate::count::add(&crate::count::ADDITIONS, block.len());
            crate::count::add(&crate::count::INVERSIONS, 1);
        }
        before.clear();
        let mut products = [one; CHAINS];
        for (v, pairs) in block.chunks(L::N).enumerate() {
            let mut flags = 0u8;
            for i in 0..L::N {
                let chord = i < pairs.len() && {
                    let (p, q) = pair(from, pairs, i);
                    p.x != q.x && !p.is_neutral() && !q.is_neutral()
                };
                flags |= u8::from(!chord) << i;
            }
            #[cfg(feature = "count")]
            crate::count::add(
                &crate::count::SPECIAL,
                (0..pairs.len()).filter(|i| flags >> i & 1 == 1).count(),
            );
            special[v] = flags;
            let product = &mut products[v % CHAINS];
            before.push(*product);
            let denominator = match flags {
                0 => l.sub(
                    l.load(|i| &pair(from, pairs, i).1.x),
                    l.load(|i| &pair(from, pairs, i).0.x),
                ),
                _ => {
                    let (denominators, _) = without_chord::<F>(from, pairs, flags);
                    l.load(|i| &denominators[i])
                }
            };
            *product = l.mul(denominator, *product);
        }
        let mut inverses = inverted(l, products);
        for (v, pairs) in block.chunks(L::N).enumerate().rev() {
            let flags = special[v];
            let inverse = &mut inverses[v % CHAINS];
            let own = l.mul(*inverse, before[v]);
            let (p, q, denominator, rise) = match flags {
                0 => {
                    let p = [
                        l.load(|i| &pair(from, pairs, i).0.x),
                        l.load(|i| &pair(from, pairs, i).0.y),
                    ];
                    let q = [
                        l.load(|i| &pair(from, pairs, i).1.x),
                        l.load(|i| &pair(from, pairs, i).1.y),
                    ];
                    (p, q[0], l.sub(q[0], p[0]), l.sub(q[1], p[1]))
                }
                _ => {
                    let (denominators, rises) = without_chord(from, pairs, flags);
                    let of = |i: usize| pair(from, pairs, i.min(pairs.len() - 1));
                    let p = [l.load(|i| &of(i).0.x), l.load(|i| &of(i).0.y)];
                    let x = l.load(|i| &of(i).1.x);
                    (p, x, l.load(|i| &denominators[i]), l.load(|i| &rises[i]))
                }
            };
            *inverse = l.mul(denominator, *inverse);
            let slope = l.mul(rise, own);
            let x = l.weak(l.sub(l.sub(l.square(slope), p[0]), q));
            let y = l.sub(l.mul(l.sub(p[0], x), slope), p[1]);
            if flags == 0 {
                l.store(x, |i, x| to[pairs[i][1] as usize].x = x);
                l.store(y, |i, y| to[pairs[i][1] as usize].y = y);
            } else {
                let mut sums = [Point::default(); 8];
                l.store(x, |i, x| sums[i].x = x);
                l.store(y, |i, y| sums[i].y = y);
                for (i, own) in pairs.iter().enumerate() {
                    let (p, q) = pair(from, pairs, i);
                    to[own[1] as usize] = match () {
                        () if p.is_neutral() => *q,
                        () if q.is_neutral() => *p,
                        () if p.x == q.x && p.y != q.y => Point::default(),
                        () => sums[i],
                    };
                }
            }
        }
    }
}

#[inline(always)]
fn pair<'a, F>(from: &'a [Point<F>], pairs: &[[u32; 2]], i: usize) -> (&'a Point<F>, &'a Point<F>) {
    let first = pairs[i][0] as usize;
    (&from[first], &from[first + 1])
}

/// The slopes' denominators and numerators for pairs that include equal, opposite, neutral or missing points. Tangents have
/// their own, and sums without a slope have 1 and 0. No point of either group has y = 0.
#[inline(never)]
fn without_chord<F: Field>(from: &[Point<F>], pairs: &[[u32; 2]], flags: u8) -> ([F; 8], [F; 8]) {
    let (mut denominators, mut rises) = ([F::ONE; 8], [F::ZERO; 8]);
    for i in 0..pairs.len() {
        let (p, q) = pair(from, pairs, i);
        if flags >> i & 1 == 0 {
            (denominators[i], rises[i]) = (q.x - p.x, q.y - p.y);
        } else if p == q && !p.is_neutral() {
            let square = p.x.square();
            (denominators[i], rises[i]) = (p.y.double(), square.double() + square);
        }
    }
    (denominators, rises)
}

/// 1 / x in each lane of all vectors, by one inversion of a product with a random factor; no lane is 0.
#[inline(always)]
fn inverted<F: Field<BasePrimeField = Fq>, L: Lanes<F>>(
    l: L,
    products: [L::V; CHAINS],
) -> [L::V; CHAINS] {
    let mut all = [[F::ONE; 8]; CHAINS];
    for (product, out) in products.into_iter().zip(&mut all) {
        l.store(product, |i, x| out[i] = x);
    }
    let mut before = [[F::ONE; 8]; CHAINS];
    let mut product = F::from_base_prime_field(blind());
    for (own, before) in all.iter().zip(&mut before) {
        for i in 0..L::N {
            before[i] = product;
            product *= own[i];
        }
    }
    let mut inverse = product.inverse().expect("no denominator is 0");
    for (own, before) in all.iter_mut().zip(&before).rev() {
        for i in (0..L::N).rev() {
            let next = inverse * own[i];
            own[i] = inverse * before[i];
            inverse = next;
        }
    }
    let mut out = [l.zero(); CHAINS];
    for (own, out) in all.iter().zip(&mut out) {
        *out = l.load(|i| &own[i]);
    }
    out
}

#[inline(always)]
fn off_curve<F: Field, L: Lanes<F>>(l: L, points: &[Point<F>], b: &F) -> Option<usize> {
    let all_b = l.splat(b);
    for (v, points) in points.chunks(L::N).enumerate() {
        let of = |i: usize| &points[i.min(points.len() - 1)];
        let (x, y) = (l.load(|i| &of(i).x), l.load(|i| &of(i).y));
        let right = l.add(l.mul(x, l.weak(l.square(x))), all_b);
        let mut on = true;
        l.store(l.sub(l.weak(l.square(y)), l.weak(right)), |i, off| {
            on &= off == F::ZERO || of(i).is_neutral();
        });
        if !on {
            let off = |p: &Point<F>| !p.is_neutral() && p.y.square() != p.x.square() * p.x + b;
            return points.iter().position(off).map(|i| v * L::N + i);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::tracked::Tracked;
    use crate::lanes::Portable;
    use ark_bn254::{g1, g2};
    use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
    use ark_ec::{AffineRepr, CurveGroup};
    use ark_ff::{UniformRand, Zero};

    fn plain<P: SWCurveConfig>(p: &Affine<P>) -> Point<P::BaseField> {
        let (x, y) = p.xy().unwrap_or_default();
        Point { x, y }
    }

    /// Successive multiples of a random point, with neutral, equal and opposite neighbours among them.
    fn points<P: SWCurveConfig>(count: usize) -> Vec<Affine<P>> {
        let step = Projective::<P>::rand(&mut ark_std::test_rng());
        let mut next = step + step;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            next += step;
            all.push(next);
        }
        let mut all = Projective::normalize_batch(&all);
        for i in 1..count {
            all[i] = match i % 37 {
                5 | 6 => all[i - 1],
                7 => -all[i - 1],
                11 | 12 | 20 => Affine::zero(),
                _ => all[i],
            };
        }
        all
    }

    fn segments_of<P, L>(l: L, lengths: &[u32])
    where
        P: SWCurveConfig<BaseField: Coordinate>,
        L: Lanes<P::BaseField>,
    {
        let total = lengths.iter().sum::<u32>() as usize;
        let all = points::<P>(total);
        let mut rest = &all[..];
        let mut expected = Vec::new();
        for n in lengths {
            let (own, after) = rest.split_at(*n as usize);
            rest = after;
            let sum: Projective<P> = own.iter().copied().sum();
            expected.push(plain(&sum.into_affine()));
        }
        let list: Vec<_> = all.iter().map(plain).collect();
        let mut actual = list.clone();
        Coordinate::segment_sums(&mut actual, &mut Vec::new(), lengths);
        assert!(actual == expected, "{lengths:?}");
        let mut actual = list;
        segments(l, &mut actual, &mut Vec::new(), lengths);
        assert!(actual == expected, "{lengths:?}");
    }

    #[test]
    fn segments_are_summed() {
        let many = vec![2; 4200];
        for lengths in [
            &[][..],
            &[0],
            &[1],
            &[2],
            &[0, 0, 3],
            &[1, 0, 7, 2],
            &[16],
            &[5, 17, 0, 100, 1, 37, 37, 0],
            &many,
        ] {
            segments_of::<g1::Config, _>(Portable, lengths);
            segments_of::<g2::Config, _>(Portable.extended(), lengths);
        }
        // Two that are equal, two that are opposite and sums that meet both: P + P + P - P - P - P.
        let p: Affine<g1::Config> = points(3)[0];
        for (signs, sum) in [
            (&[0, 0][..], p + p),
            (&[0, 1], p - p),
            (&[0, 0, 0, 1, 1, 1, 0], p.into()),
        ] {
            let mut list: Vec<_> = signs.iter().map(|s| plain(&p).signed(*s)).collect();
            Coordinate::segment_sums(&mut list, &mut Vec::new(), &[signs.len() as u32]);
            assert_eq!(list, [plain(&sum.into_affine())]);
        }
    }

    /// Checks the bounds of every value, which do not depend on the points.
    #[test]
    fn bounds_hold() {
        let lengths = [9u32, 0, 30, 2, 1];
        let all: Vec<_> = points::<g1::Config>(42).iter().map(plain).collect();
        let (mut actual, mut expected) = (all.clone(), all.clone());
        segments(Tracked, &mut actual, &mut Vec::new(), &lengths);
        segments(Portable, &mut expected, &mut Vec::new(), &lengths);
        assert_eq!(actual, expected);
        assert_eq!(off_curve(Tracked, &all, &g1::Config::COEFF_B), None);
        let all: Vec<_> = points::<g2::Config>(42).iter().map(plain).collect();
        let (mut actual, mut expected) = (all.clone(), all.clone());
        segments(Tracked.extended(), &mut actual, &mut Vec::new(), &lengths);
        segments(
            Portable.extended(),
            &mut expected,
            &mut Vec::new(),
            &lengths,
        );
        assert_eq!(actual, expected);
        assert_eq!(
            off_curve(Tracked.extended(), &all, &g2::Config::COEFF_B),
            None
        );
    }

    fn off<P: SWCurveConfig>()
    where
        P::BaseField: Coordinate,
    {
        for count in [1, 7, 8, 9, 30] {
            let all: Vec<_> = points::<P>(count).iter().map(plain).collect();
            assert_eq!(Coordinate::off_curve(&all, &P::COEFF_B), None);
            for place in 0..count {
                let mut wrong = all.clone();
                wrong[place].y += P::BaseField::ONE;
                let last = wrong.len() - 1;
                wrong[last].x += P::BaseField::ONE;
                assert_eq!(Coordinate::off_curve(&wrong, &P::COEFF_B), Some(place));
            }
        }
        assert_eq!(Coordinate::off_curve(&[], &P::COEFF_B), None);
    }

    #[test]
    fn points_that_are_not_on_the_curve_are_found() {
        off::<g1::Config>();
        off::<g2::Config>();
    }

    #[test]
    fn signs_are_the_curves() {
        for p in points::<g2::Config>(14) {
            assert_eq!(plain(&p).signed(0), plain(&p));
            assert_eq!(plain(&p).signed(1), plain(&-p));
        }
        assert!(plain(&Affine::<g1::Config>::zero()).signed(1).is_neutral());
        assert!(g1::Config::COEFF_B != Fq::zero() && g2::Config::COEFF_B != Fq2::zero());
    }
}
