//! Points of BN254's G1, many at a time on [`lanes`](crate::lanes): roots for decoding, sums of pairs and of segments
//! with shared inversions, and multiples of many points by one public factor.
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use ark_bn254::{g1::Config, Fq, Fr, G1Affine, G1Projective};
use ark_ec::scalar_mul::glv::GLVConfig;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField};
use rayon::prelude::*;

use crate::dispatch;
use crate::lanes::Lanes;

/// Values of one task.
const TASK: usize = 256;

/// The square root of each x by the exponent (p + 1) / 4; None if x is no square.
pub fn square_roots(xs: &[Fq]) -> Vec<Option<Fq>> {
    let mut roots = vec![Fq::ZERO; xs.len()];
    let tasks = roots.par_chunks_mut(TASK).zip(xs.par_chunks(TASK));
    tasks.for_each(|(roots, xs)| dispatch!(l => powers(l, xs, roots)));
    let checked = roots.into_iter().zip(xs);
    checked
        .map(|(y, x)| (y.square() == *x).then_some(y))
        .collect()
}

/// Bits of a digit of the exponent.
const DIGIT: usize = 4;
/// Vectors in one exponentiation.
const TOGETHER: usize = 2;

/// x^((p + 1) / 4) for all x, p = 3 mod 4. The exponent is public.
#[inline(always)]
fn powers<L: Lanes<Fq>>(l: L, xs: &[Fq], out: &mut [Fq]) {
    let mut exponent = Fq::MODULUS;
    exponent >>= 2;
    exponent.add_with_carry(&1u64.into());
    let digit = |i: usize| {
        let (limb, shift) = (i * DIGIT / 64, i * DIGIT % 64);
        (exponent.0[limb] >> shift) as usize % (1 << DIGIT)
    };
    let digits = (exponent.num_bits() as usize).div_ceil(DIGIT);
    let runs = out.chunks_mut(TOGETHER * L::N);
    for (out, xs) in runs.zip(xs.chunks(TOGETHER * L::N)) {
        // Loops instead of closures: the compiler does not inline every closure, and compiles such closures without lanes.
        let mut x = [l.zero(); TOGETHER];
        for (k, x) in x.iter_mut().enumerate() {
            *x = l.load(|i| xs.get(k * L::N + i).unwrap_or(&Fq::ONE));
        }
        let mut table = [x; 1 << DIGIT];
        for d in 2..1 << DIGIT {
            for k in 0..TOGETHER {
                table[d][k] = match d % 2 {
                    0 => l.square(table[d / 2][k]),
                    _ => l.mul(table[d - 1][k], x[k]),
                };
            }
        }
        let mut y = table[digit(digits - 1)];
        for i in (0..digits - 1).rev() {
            for _ in 0..DIGIT {
                for y in &mut y {
                    *y = l.square(*y);
                }
            }
            if digit(i) != 0 {
                for (y, factor) in y.iter_mut().zip(&table[digit(i)]) {
                    *y = l.mul(*y, *factor);
                }
            }
        }
        for (k, y) in y.into_iter().enumerate() {
            l.store(y, |i, y| {
                if let Some(out) = out.get_mut(k * L::N + i) {
                    *out = y;
                }
            });
        }
    }
}

/// Additions that share an inversion.
const BLOCK: usize = 1 << 10;

/// Affine coordinates of a vector of points, below 3 p or as loaded by `load`.
pub(crate) type Points<L> = [<L as Lanes<Fq>>::V; 2];

/// Whether two points have a chord: neither point is neutral, and their x coordinates differ.
#[inline(always)]
fn has_chord(p: &G1Affine, q: &G1Affine) -> bool {
    !p.is_zero() && !q.is_zero() && p.x != q.x
}

/// `put(to, i, p + q)` for (p, q) = `pair(to, i)` and all i below `count`, in any order within a
/// block. The function reads all pairs of a block before it puts the first sum, and each pair again before its own sum.
#[inline(always)]
fn add_lanes<L: Lanes<Fq>, T>(
    l: L,
    to: &mut T,
    count: usize,
    pair: impl for<'a> Fn(&'a T, usize) -> (&'a G1Affine, &'a G1Affine),
    mut put: impl FnMut(&mut T, usize, G1Affine),
) {
    #[cfg(feature = "count")]
    {
        crate::count::add(&crate::count::ADDITIONS, count);
        crate::count::add(&crate::count::INVERSIONS, count.div_ceil(BLOCK));
    }
    let size = BLOCK.min(count).div_ceil(L::N);
    // Products of the chords' denominators, lane by lane, each before its own vector's.
    let mut before = vec![l.zero(); size];
    // The lanes without a chord or without a pair.
    let mut without = vec![0u8; size];
    let mut sums = [[Fq::ZERO; 2]; 8];
    for start in (0..count).step_by(BLOCK) {
        let vectors = BLOCK.min(count - start).div_ceil(L::N);
        let mut product = l.splat(&Fq::ONE);
        for v in 0..vectors {
            let first = start + v * L::N;
            let mut flags = 0u8;
            for i in 0..L::N {
                let chord = first + i < count && {
                    let (p, q) = pair(to, first + i);
                    has_chord(p, q)
                };
                flags |= u8::from(!chord) << i;
            }
            without[v] = flags;
            before[v] = product;
            let [p, q] = operands(l, to, &pair, first, flags);
            product = l.mul(product, l.sub(q[0], p[0]));
        }
        let mut inverse = invert(l, product).expect("every chord has a slope");
        for v in (0..vectors).rev() {
            let (first, flags) = (start + v * L::N, without[v]);
            let [p, q] = operands(l, to, &pair, first, flags);
            let slope = l.mul(l.sub(q[1], p[1]), l.mul(inverse, before[v]));
            inverse = l.mul(inverse, l.sub(q[0], p[0]));
            let x = l.weak(l.sub(l.sub(l.square(slope), p[0]), q[0]));
            let y = l.sub(l.mul(slope, l.sub(p[0], x)), p[1]);
            l.store(x, |i, x| sums[i][0] = x);
            l.store(y, |i, y| sums[i][1] = y);
            for (i, [x, y]) in sums.into_iter().enumerate().take(L::N) {
                if flags >> i & 1 == 0 {
                    put(to, first + i, G1Affine::new_unchecked(x, y));
                } else if first + i < count {
                    #[cfg(feature = "count")]
                    crate::count::add(&crate::count::SPECIAL, 1);
                    let (p, q) = pair(to, first + i);
                    let sum = (*p + *q).into_affine();
                    put(to, first + i, sum);
                }
            }
        }
    }
}

/// The coordinates of a vector of pairs, with denominator 1 in the flagged lanes.
#[inline(always)]
fn operands<L: Lanes<Fq>, T>(
    l: L,
    to: &T,
    pair: &impl for<'a> Fn(&'a T, usize) -> (&'a G1Affine, &'a G1Affine),
    first: usize,
    flags: u8,
) -> [Points<L>; 2] {
    const LOW: G1Affine = G1Affine::new_unchecked(Fq::ZERO, Fq::ZERO);
    const HIGH: G1Affine = G1Affine::new_unchecked(Fq::ONE, Fq::ONE);
    let of = |i: usize| match flags >> i & 1 {
        0 => pair(to, first + i),
        _ => (&LOW, &HIGH),
    };
    [
        [l.load(|i| &of(i).0.x), l.load(|i| &of(i).0.y)],
        [l.load(|i| &of(i).1.x), l.load(|i| &of(i).1.y)],
    ]
}

/// A random factor. The time of an inversion depends on its input, and the product of any input with this factor is
/// uniform.
pub(crate) fn blind() -> Fq {
    thread_local! {
        // Keys from the operating system, one pair a thread; a counter under them.
        static KEYED: (RandomState, Cell<u64>) = (RandomState::new(), const { Cell::new(0) });
    }
    KEYED.with(|(keys, counter)| {
        let word = || {
            counter.set(counter.get() + 1);
            keys.hash_one(counter.get())
        };
        loop {
            let limbs = [word(), word(), word(), word() >> 2];
            match Fq::from_bigint(ark_ff::BigInt(limbs)) {
                Some(factor) if factor != Fq::ZERO => return factor,
                _ => (),
            }
        }
    })
}

/// 1 / x for all x by one inversion; None if one x is 0.
fn invert_all(xs: &mut [Fq]) -> Option<()> {
    let mut before = Vec::with_capacity(xs.len());
    let blind = blind();
    let mut product = blind;
    for x in xs.iter() {
        before.push(product);
        product *= x;
    }
    let mut inverse = product.inverse()?;
    for (x, before) in xs.iter_mut().zip(before).rev() {
        let own = inverse * before;
        inverse *= *x;
        *x = own;
    }
    Some(())
}

/// 1 / x in each lane, with one inversion; None if a lane is 0.
#[inline(always)]
pub(crate) fn invert<L: Lanes<Fq>>(l: L, x: L::V) -> Option<L::V> {
    let mut lanes = [Fq::ONE; 8];
    l.store(x, |i, x| lanes[i] = x);
    invert_all(&mut lanes[..L::N])?;
    Some(l.load(|i| &lanes[i]))
}

/// The affine form of each point.
pub fn normalize(points: &[G1Projective]) -> Vec<G1Affine> {
    let place = |p: &G1Projective| if p.z == Fq::ZERO { Fq::ONE } else { p.z };
    let mut zs: Vec<Fq> = points.iter().map(place).collect();
    invert_all(&mut zs).expect("no factor is 0");
    let one = |(p, inverse): (&G1Projective, Fq)| {
        if p.z == Fq::ZERO {
            return G1Affine::zero();
        }
        let square = inverse.square();
        G1Affine::new_unchecked(p.x * square, p.y * square * inverse)
    };
    points.iter().zip(zs).map(one).collect()
}

/// p_i + q_i in the place of p_i.
pub fn add_each(p: &mut [G1Affine], q: &[G1Affine]) {
    let count = p.len().min(q.len());
    let mut both = (p, q);
    dispatch!(l => add_lanes(
        l,
        &mut both,
        count,
        |(p, q), i| (&p[i], &q[i]),
        |(p, _), i, sum| p[i] = sum,
    ));
}

/// The sum of each of the consecutive segments of `points`, whose lengths are `lengths`; neutral for an empty one.
pub fn segment_sums(mut points: Vec<G1Affine>, lengths: &[u32]) -> Vec<G1Affine> {
    let mut lengths = lengths.to_vec();
    let (mut next, mut pairs) = (Vec::new(), Vec::<[u32; 2]>::new());
    while lengths.iter().any(|n| *n > 1) {
        pairs.clear();
        // Every entry is written below.
        let count = lengths.iter().map(|n| n.div_ceil(2) as usize).sum();
        next.resize(count, G1Affine::zero());
        let (mut from, mut to) = (0, 0);
        for n in &mut lengths {
            pairs.extend((0..*n / 2).map(|k| [from + 2 * k, to + k]));
            if *n % 2 == 1 {
                next[(to + *n / 2) as usize] = points[(from + *n - 1) as usize];
            }
            from += *n;
            *n = n.div_ceil(2);
            to += *n;
        }
        let mut lists = (&points[..], &mut next[..]);
        dispatch!(l => add_lanes(
            l,
            &mut lists,
            pairs.len(),
            |(from, _), i| {
                let first = pairs[i][0] as usize;
                (&from[first], &from[first + 1])
            },
            |(_, to), i, sum| to[pairs[i][1] as usize] = sum,
        ));
        std::mem::swap(&mut points, &mut next);
    }
    let mut sums = points.into_iter();
    let sum = |n: &u32| (0..*n).find_map(|_| sums.next()).unwrap_or_default();
    lengths.iter().map(sum).collect()
}

/// Bits of a digit of the multiples in [`fold`], and the number of odd multiples for it.
const WINDOW: usize = 5;
const ODD: usize = 1 << (WINDOW - 2);

/// One addition in the chain of a multiple: the number of an odd multiple of the point or of its image, and the sign.
#[derive(Clone, Copy)]
struct Term {
    multiple: usize,
    image: bool,
    negative: bool,
}

/// The terms that are added after each doubling to compute u P, from the highest digit on. The curve's endomorphism
/// splits u into two factors of half its length.
fn chain(u: &Fr) -> Vec<[Option<Term>; 2]> {
    let (first, second) = Config::scalar_decomposition(*u);
    let digits = [first, second].map(|(positive, part)| {
        let digits = part.into_bigint().find_wnaf(WINDOW).unwrap_or_default();
        let sign = if positive { 1 } else { -1 };
        digits.into_iter().map(|d| d * sign).collect::<Vec<_>>()
    });
    let length = digits.iter().map(Vec::len).max().unwrap_or(0);
    let term = |bit: usize, k: usize| {
        let digit = *digits[k].get(bit)?;
        (digit != 0).then_some(Term {
            multiple: digit.unsigned_abs() as usize / 2,
            image: k == 1,
            negative: digit < 0,
        })
    };
    (0..length)
        .rev()
        .map(|bit| [0, 1].map(|k| term(bit, k)))
        .skip_while(|terms| terms.iter().all(Option::is_none))
        .collect()
}

/// low_i + u high_i for all i: with one public factor, so all points have the same doublings and additions.
pub fn fold(low: &[G1Affine], high: &[G1Affine], u: &Fr) -> Vec<G1Affine> {
    let chain = chain(u);
    if chain.is_empty() {
        return low.to_vec();
    }
    let mut out = vec![G1Affine::zero(); low.len()];
    out.par_chunks_mut(TASK)
        .zip(low.par_chunks(TASK).zip(high.par_chunks(TASK)))
        .for_each(|(out, (low, high))| {
            let special = dispatch!(l => fold_lanes(l, low, high, &chain, out));
            for i in special {
                out[i] = (high[i] * u + low[i]).into_affine();
            }
        });
    out
}

/// [`fold`] of at most [`TASK`] points. Returns the places for which the formulas have no result.
#[inline(always)]
fn fold_lanes<L: Lanes<Fq>>(
    l: L,
    low: &[G1Affine],
    high: &[G1Affine],
    chain: &[[Option<Term>; 2]],
    out: &mut [G1Affine],
) -> Vec<usize> {
    // Replaces neutral points, which have special sums, and fills the places after the last point.
    const OTHER: G1Affine =
        G1Affine::new_unchecked(ark_bn254::g1::G1_GENERATOR_X, ark_bn254::g1::G1_GENERATOR_Y);
    fn at(points: &[G1Affine], i: usize) -> &G1Affine {
        points.get(i).filter(|p| !p.is_zero()).unwrap_or(&OTHER)
    }
    let vectors = high.len().div_ceil(L::N);
    // P, 3 P, 5 P, ..; the multiples below 2^WINDOW of a point are distinct and not neutral.
    let mut once = vec![[l.zero(); 2]; vectors];
    for (v, once) in once.iter_mut().enumerate() {
        *once = [
            l.load(|i| &at(high, v * L::N + i).x),
            l.load(|i| &at(high, v * L::N + i).y),
        ];
    }
    let twice = combine(l, &once, None);
    let mut odd = Vec::with_capacity(ODD);
    odd.push(once);
    for k in 1..ODD {
        odd.push(combine(l, &odd[k - 1], Some(&twice)));
    }
    let beta = l.splat(&Config::ENDO_COEFFS[0]);
    let one = l.splat(&Fq::ONE);
    let mut sums = vec![(one, one, one); vectors];
    let mut zs = vec![Fq::ONE; vectors * L::N];
    for (v, out) in sums.iter_mut().enumerate() {
        // x and its image, y and its negative.
        let mut table = [[[l.zero(); 2]; 2]; ODD];
        for (own, odd) in table.iter_mut().zip(&odd) {
            let [x, y] = odd[v];
            *own = [[x, l.mul(x, beta)], [y, l.sub(l.zero(), y)]];
        }
        let mut sum = None;
        for terms in chain {
            if let Some(own) = sum {
                sum = Some(double(l, own));
            }
            for term in terms.iter().flatten() {
                let [x, y] = &table[term.multiple];
                let (x, y) = (x[usize::from(term.image)], y[usize::from(term.negative)]);
                sum = Some(match sum {
                    None => (l.weak(x), l.weak(y), one),
                    Some(sum) => add(l, sum, [x, y]),
                });
            }
        }
        let first = v * L::N;
        let low = [
            l.load(|i| &at(low, first + i).x),
            l.load(|i| &at(low, first + i).y),
        ];
        *out = add(l, sum.expect("a chain starts with a term"), low);
        l.store(out.2, |i, z| zs[first + i] = z);
    }
    // A sum of equal or opposite points has z = 0, and all values computed from it have z = 0.
    let mut special = Vec::new();
    for (i, z) in zs.iter_mut().enumerate() {
        let neutral = i < low.len() && (low[i].is_zero() || high[i].is_zero());
        if neutral || *z == Fq::ZERO {
            special.push(i);
            *z = Fq::ONE;
        }
    }
    special.retain(|i| *i < low.len());
    let mut before = vec![one; vectors];
    let mut product = one;
    for (v, before) in before.iter_mut().enumerate() {
        *before = product;
        product = l.mul(product, l.load(|i| &zs[v * L::N + i]));
    }
    let mut inverse = invert(l, product).expect("every chord has a slope");
    for v in (0..vectors).rev() {
        let (x, y, _) = sums[v];
        let own = l.mul(inverse, before[v]);
        inverse = l.mul(inverse, l.load(|i| &zs[v * L::N + i]));
        let square = l.square(own);
        let (x, y) = (l.mul(x, square), l.mul(y, l.mul(square, own)));
        let mut xs = [Fq::ZERO; 8];
        l.store(x, |i, x| xs[i] = x);
        l.store(y, |i, y| {
            if let Some(out) = out.get_mut(v * L::N + i) {
                *out = G1Affine::new_unchecked(xs[i], y);
            }
        });
    }
    special
}

/// p_v + q_v, or 2 p_v, in affine form with one inversion; every pair has a chord and no point is neutral.
#[inline(always)]
pub(crate) fn combine<L: Lanes<Fq>>(
    l: L,
    p: &[Points<L>],
    q: Option<&[Points<L>]>,
) -> Vec<Points<L>> {
    let mut denominators = p.to_vec();
    let mut product = l.splat(&Fq::ONE);
    for (v, [d, before]) in denominators.iter_mut().enumerate() {
        *d = match q {
            Some(q) => l.sub(q[v][0], p[v][0]),
            None => l.shl::<1>(p[v][1]),
        };
        *before = product;
        product = l.mul(product, *d);
    }
    let mut inverse = invert(l, product).expect("every chord has a slope");
    let mut out = p.to_vec();
    for v in (0..p.len()).rev() {
        let [d, before] = denominators[v];
        let [px, py] = p[v];
        let (rise, qx) = match q {
            Some(q) => (l.sub(q[v][1], py), q[v][0]),
            None => {
                let square = l.square(px);
                (l.add(square, l.shl::<1>(square)), px)
            }
        };
        let slope = l.mul(rise, l.mul(inverse, before));
        inverse = l.mul(inverse, d);
        let x = l.weak(l.sub(l.sub(l.square(slope), px), qx));
        let y = l.weak(l.sub(l.mul(slope, l.sub(px, x)), py));
        out[v] = [x, y];
    }
    out
}

/// The point (x / z^2, y / z^3); z = 0 after a sum outside of the formulas.
type Jacobian<L> = (
    <L as Lanes<Fq>>::V,
    <L as Lanes<Fq>>::V,
    <L as Lanes<Fq>>::V,
);

/// dbl-2009-l of the Explicit-Formulas Database, with 4 X Y^2 as a product.
#[inline(always)]
fn double<L: Lanes<Fq>>(l: L, (x, y, z): Jacobian<L>) -> Jacobian<L> {
    let (xx, yy) = (l.square(x), l.square(y));
    let slope = l.add(xx, l.shl::<1>(xx));
    let four = l.shl::<2>(l.mul(x, yy));
    let next = l.weak(l.sub(l.square(slope), l.shl::<1>(four)));
    let fourth = l.shl::<3>(l.square(yy));
    let next_y = l.sub(l.mul(slope, l.sub(four, next)), fourth);
    (next, next_y, l.shl::<1>(l.mul(y, z)))
}

/// The sum with an affine point; z = 0 where the two are equal or opposite.
#[inline(always)]
fn add<L: Lanes<Fq>>(l: L, (x, y, z): Jacobian<L>, q: Points<L>) -> Jacobian<L> {
    let zz = l.square(z);
    let h = l.sub(l.mul(q[0], zz), x);
    let r = l.sub(y, l.mul(q[1], l.mul(z, zz)));
    let hh = l.square(h);
    let (hhh, v) = (l.mul(h, hh), l.mul(x, hh));
    let next = l.weak(l.sub(l.sub(l.square(r), hhh), l.shl::<1>(v)));
    let next_y = l.sub(l.mul(r, l.sub(next, v)), l.mul(y, hhh));
    (next, l.weak(next_y), l.mul(z, h))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::tracked::Tracked;
    use crate::lanes::Portable;
    use ark_ff::UniformRand;

    #[test]
    fn affine_forms_are_the_curves() {
        let mut all: Vec<G1Projective> = points(9).iter().map(|p| p.into_group()).collect();
        all.iter_mut().skip(1).for_each(|p| *p = *p + *p);
        all[4] = G1Projective::default();
        let expected: Vec<G1Affine> = all.iter().map(|p| p.into_affine()).collect();
        assert_eq!(normalize(&all), expected);
        assert!(normalize(&[]).is_empty());
        assert_ne!(blind(), blind());
    }

    fn points(count: usize) -> Vec<G1Affine> {
        let mut rng = ark_std::test_rng();
        (0..count).map(|_| G1Affine::rand(&mut rng)).collect()
    }

    #[test]
    fn roots_are_roots() {
        let mut rng = ark_std::test_rng();
        let mut xs: Vec<Fq> = (0..300).map(|_| Fq::rand(&mut rng)).collect();
        xs[..3].copy_from_slice(&[Fq::ZERO, Fq::ONE, -Fq::ONE]);
        let roots = square_roots(&xs);
        for (x, root) in xs.iter().zip(&roots) {
            assert_eq!(x.sqrt(), *root, "ark takes the same power");
        }
        assert!(roots[2].is_none() && roots.iter().flatten().count() > 100);
        for count in [1, 8, 9, 35] {
            let mut expected = vec![Fq::ZERO; count];
            powers(Portable, &xs[..count], &mut expected);
            let mut actual = vec![Fq::ZERO; count];
            powers(Tracked, &xs[..count], &mut actual);
            assert_eq!(actual, expected);
            dispatch!(l => powers(l, &xs[..count], &mut actual));
            assert_eq!(actual, expected);
        }
    }

    /// Neutral, equal and opposite points among others.
    fn pairs(count: usize) -> (Vec<G1Affine>, Vec<G1Affine>) {
        let mut p = points(2 * count);
        let mut q = p.split_off(count);
        p[0] = G1Affine::zero();
        if count > 12 {
            q[7] = G1Affine::zero();
            q[8] = p[8];
            q[9] = -p[9];
            (p[10], q[10]) = (G1Affine::zero(), G1Affine::zero());
        }
        (p, q)
    }

    #[test]
    fn sums_of_pairs_are_the_curves() {
        for count in [1, 2, 8, 13, 40, 1030] {
            let (p, q) = pairs(count);
            let plain: Vec<G1Affine> = p
                .iter()
                .zip(&q)
                .map(|(p, q)| (*p + q).into_affine())
                .collect();
            let mut sums = p.clone();
            add_each(&mut sums, &q);
            assert_eq!(sums, plain);
            type Both<'b> = (&'b mut [G1Affine], &'b [G1Affine]);
            fn pair<'a>(both: &'a Both, i: usize) -> (&'a G1Affine, &'a G1Affine) {
                (&both.0[i], &both.1[i])
            }
            let put = |both: &mut Both, i: usize, sum| both.0[i] = sum;
            let mut one = p.clone();
            add_lanes(Portable, &mut (&mut one[..], &q[..]), count, pair, put);
            let mut eight = p.clone();
            add_lanes(Tracked, &mut (&mut eight[..], &q[..]), count, pair, put);
            assert!(one == plain && eight == plain);
        }
    }

    #[test]
    fn segments_are_summed() {
        let (p, q) = pairs(40);
        let list = [p, q].concat();
        let lengths = [0, 1, 30, 2, 0, 3, 44, 0];
        let mut rest = &list[..];
        let plain: Vec<G1Affine> = lengths
            .iter()
            .map(|n| {
                let (run, after) = rest.split_at(*n as usize);
                rest = after;
                run.iter()
                    .map(|p| p.into_group())
                    .sum::<ark_bn254::G1Projective>()
                    .into_affine()
            })
            .collect();
        assert_eq!(segment_sums(list, &lengths), plain);
        assert!(segment_sums(Vec::new(), &[]).is_empty());
    }

    #[test]
    fn folds_are_the_curves() {
        let mut rng = ark_std::test_rng();
        for count in [1, 9, 20, 300] {
            let (mut low, mut high) = pairs(count);
            let random = Fr::rand(&mut rng);
            for u in [
                Fr::ZERO,
                Fr::ONE,
                -Fr::ONE,
                Fr::from(6u8),
                Config::LAMBDA,
                random,
            ] {
                if count > 12 {
                    low[11] = (high[11] * u).into_affine();
                    low[12] = (high[12] * -u).into_affine();
                    high[13] = -high[11];
                }
                let sum = |(l, h): (&G1Affine, &G1Affine)| (*h * u + l).into_affine();
                let plain: Vec<G1Affine> = low.iter().zip(&high).map(sum).collect();
                assert_eq!(fold(&low, &high, &u), plain);
                let chain = chain(&u);
                if count <= TASK && !chain.is_empty() {
                    let mut ends = [vec![G1Affine::zero(); count], vec![G1Affine::zero(); count]];
                    let one = fold_lanes(Portable, &low, &high, &chain, &mut ends[0]);
                    let eight = fold_lanes(Tracked, &low, &high, &chain, &mut ends[1]);
                    assert_eq!(one, eight);
                    assert!(
                        count <= 12 || one.contains(&11) && one.contains(&12) && one.len() < count
                    );
                    for end in &mut ends {
                        one.iter().for_each(|i| end[*i] = plain[*i]);
                        assert_eq!(*end, plain);
                    }
                }
            }
        }
    }
}
