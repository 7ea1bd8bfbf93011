//! From values on a domain of n points to values on the odd points of the domain of 2n, on lanes.
//!
//! The computation has three steps: a transform by decimation in frequency, which leaves the coefficients in bit-reversed
//! order; the scaling of the coefficients; and a transform by decimation in time, which reads them in that order. No step
//! permutes values. Both transforms use the powers of w, not of 1/w, so coefficient -i is at the place of coefficient i,
//! and value -j is at the place of value j.
use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, BigInt, FftField, Field};
use ragaudit_field_simd::dispatch;
use ragaudit_field_simd::lanes::Lanes;
use rayon::prelude::*;

/// The minimum number of points for the lanes.
pub const MINIMUM: usize = 1 << 8;
/// log2 of the maximum number of points of one transform: they fit into the second-level cache.
const LEAF: u32 = 12;
/// Neighbours that the middle layers transform at the same time, because they are in the same vector.
const NEAR: usize = 8;
/// Vectors of one task.
const TASK: usize = 256;

/// A B - C on the odd points of the doubled domain, as plain integers. A, B and C are the polynomials of degree below n
/// with the values a, b and a b on the domain. n is a power of two, at least [`MINIMUM`] and at most 2^27.
pub fn quotient(a: &[Fr], b: &[Fr]) -> Vec<BigInt<4>> {
    dispatch!(l => quotient_lanes(l, a, b))
}

fn quotient_lanes<L: Lanes<Fr>>(l: L, a: &[Fr], b: &[Fr]) -> Vec<BigInt<4>> {
    let n = a.len();
    let tables = Tables::new(l, n.ilog2());
    let load = |values: &[Fr]| -> Vec<L::V> {
        let mut out = vec![l.zero(); n / L::N];
        let tasks = out.par_chunks_mut(TASK).zip(values.par_chunks(TASK * L::N));
        tasks.for_each(|(out, values)| {
            l.run(
                #[inline(always)]
                || load(l, values, out),
            )
        });
        out
    };
    let (mut a, mut b) = (load(a), load(b));
    let mut c = vec![l.zero(); a.len()];
    let tasks = c
        .par_chunks_mut(TASK)
        .zip(a.par_chunks(TASK).zip(b.par_chunks(TASK)));
    tasks.for_each(|(c, (a, b))| {
        l.run(
            #[inline(always)]
            || multiply(l, a, b, c),
        )
    });
    for values in [&mut a, &mut b, &mut c] {
        tables.to_odd(l, values);
    }
    let mut out = vec![BigInt([0; 4]); n];
    let sets = a
        .par_chunks(TASK)
        .zip(b.par_chunks(TASK).zip(c.par_chunks(TASK)));
    let tasks = out.par_chunks_mut(TASK * L::N).zip(sets);
    tasks.for_each(|(out, (a, (b, c)))| {
        l.run(
            #[inline(always)]
            || differences(l, a, b, c, out),
        )
    });
    // The transform wrote value -j to the place of value j.
    out[1..].reverse();
    out
}

#[inline(always)]
fn load<L: Lanes<Fr>>(l: L, values: &[Fr], out: &mut [L::V]) {
    for (out, values) in out.iter_mut().zip(values.chunks_exact(L::N)) {
        *out = l.weak(l.load(|i| &values[i]));
    }
}

#[inline(always)]
fn multiply<L: Lanes<Fr>>(l: L, a: &[L::V], b: &[L::V], out: &mut [L::V]) {
    for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *out = l.mul(*a, *b);
    }
}

/// a b - c as integers: the product of an element's Montgomery form and the element with the form 1.
#[inline(always)]
fn differences<L: Lanes<Fr>>(l: L, a: &[L::V], b: &[L::V], c: &[L::V], out: &mut [BigInt<4>]) {
    let plain = l.splat(&Fr::new_unchecked(BigInt([1, 0, 0, 0])));
    let runs = out.chunks_exact_mut(L::N);
    for (out, ((a, b), c)) in runs.zip(a.iter().zip(b).zip(c)) {
        let difference = l.sub(l.mul(*a, *b), l.weak(*c));
        l.store(l.mul(difference, plain), |i, x| out[i] = x.0);
    }
}

type Quarters<'a, L> = [&'a mut [<L as Lanes<Fr>>::V]; 4];
/// The roots of the first layer for either half of its pairs, and the roots of the second layer.
type Roots<'a, L> = [&'a [<L as Lanes<Fr>>::V]; 3];

/// The factors of the transforms.
struct Tables<L: Lanes<Fr>> {
    log: u32,
    /// `roots[k]`: the powers of a root of order 2^k below its half.
    roots: Vec<Vec<L::V>>,
    /// The powers 0, 1, 2 and 3 of a root of order [`NEAR`].
    near: [L::V; NEAR / 2],
    /// The scaling factor of the coefficient at each place.
    factors: Vec<Fr>,
}

impl<L: Lanes<Fr>> Tables<L> {
    fn new(l: L, log: u32) -> Self {
        let n = 1usize << log;
        let root = |order: usize| Fr::get_root_of_unity(order as u64).expect("at most 2^28");
        let w = root(n);
        let mut roots = vec![Vec::new(); log as usize + 1];
        let mut largest = vec![l.zero(); n / 2 / L::N];
        let tasks = largest.par_chunks_mut(TASK).enumerate();
        tasks.for_each(|(task, out)| {
            let mut first = vec![w.pow([(task * TASK * L::N) as u64])];
            for i in 1..L::N {
                first.push(first[i - 1] * w);
            }
            l.run(
                #[inline(always)]
                || powers(l, &first, &w.pow([L::N as u64]), out),
            );
        });
        roots[log as usize] = largest;
        for k in (NEAR.ilog2() as usize + 1..log as usize).rev() {
            roots[k] = l.run(
                #[inline(always)]
                || squares(l, &roots[k + 1]),
            );
        }
        let near = root(NEAR);
        let near = [0, 1, 2, 3].map(|i| {
            l.run(
                #[inline(always)]
                || l.splat(&near.pow([i])),
            )
        });
        Self {
            log,
            roots,
            near,
            factors: factors(log),
        }
    }

    /// The polynomial's values on the odd points, both in the order of the module's head.
    fn to_odd(&self, l: L, values: &mut [L::V]) {
        // An even number of layers above the leaves, which are taken two at a time.
        let leaf = match self.log.checked_sub(LEAF) {
            Some(above) => LEAF - above % 2,
            None => self.log,
        };
        let above: Vec<u32> = (leaf + 2..=self.log).rev().step_by(2).collect();
        for k in &above {
            self.layers(l, values, *k, true);
        }
        let size = 1usize << leaf;
        let tasks = values
            .par_chunks_mut(size / L::N)
            .zip(self.factors.par_chunks(size));
        tasks.for_each(|(values, factors)| {
            l.run(
                #[inline(always)]
                || self.leaf(l, values, leaf as usize, factors),
            )
        });
        for k in above.iter().rev() {
            self.layers(l, values, *k, false);
        }
    }

    /// Two layers of every block of 2^k points, downwards or upwards.
    fn layers(&self, l: L, values: &mut [L::V], k: u32, down: bool) {
        let size = (1usize << k) / L::N;
        let k = k as usize;
        for block in values.chunks_mut(size) {
            let (low, high) = block.split_at_mut(size / 2);
            let (a, b) = low.split_at_mut(size / 4);
            let (c, d) = high.split_at_mut(size / 4);
            let (first, second) = self.roots[k].split_at(size / 4);
            let near = a.par_chunks_mut(TASK).zip(b.par_chunks_mut(TASK));
            let far = c.par_chunks_mut(TASK).zip(d.par_chunks_mut(TASK));
            let own = first.par_chunks(TASK).zip(second.par_chunks(TASK));
            let half = self.roots[k - 1].par_chunks(TASK);
            let tasks = near.zip(far).zip(own.zip(half));
            tasks.for_each(|(((a, b), (c, d)), ((first, second), half))| {
                l.run(
                    #[inline(always)]
                    || match down {
                        true => two_down(l, [a, b, c, d], [first, second, half]),
                        false => two_up(l, [a, b, c, d], [first, second, half]),
                    },
                );
            });
        }
    }

    /// All layers of 2^k points, downwards, with the scaling, and upwards.
    #[inline(always)]
    fn leaf(&self, l: L, values: &mut [L::V], k: usize, factors: &[Fr]) {
        let near = NEAR.ilog2() as usize;
        let odd = (k - near) % 2 == 1;
        if odd {
            one_down(l, values, &self.roots[k]);
        }
        let mut own = k - usize::from(odd);
        while own > near {
            for block in values.chunks_exact_mut((1 << own) / L::N) {
                let (quarters, roots) = self.quarters(block, own);
                two_down(l, quarters, roots);
            }
            own -= 2;
        }
        for (values, factors) in values
            .chunks_exact_mut(NEAR)
            .zip(factors.chunks_exact(NEAR * L::N))
        {
            middle(l, values, &self.near, factors);
        }
        while own < k - usize::from(odd) {
            own += 2;
            for block in values.chunks_exact_mut((1 << own) / L::N) {
                let (quarters, roots) = self.quarters(block, own);
                two_up(l, quarters, roots);
            }
        }
        if odd {
            one_up(l, values, &self.roots[k]);
        }
    }

    #[inline(always)]
    fn quarters<'a>(&'a self, block: &'a mut [L::V], k: usize) -> (Quarters<'a, L>, Roots<'a, L>) {
        let quarter = block.len() / 4;
        let (low, high) = block.split_at_mut(2 * quarter);
        let (a, b) = low.split_at_mut(quarter);
        let (c, d) = high.split_at_mut(quarter);
        let (first, second) = self.roots[k].split_at(quarter);
        ([a, b, c, d], [first, second, &self.roots[k - 1]])
    }
}

#[inline(always)]
fn powers<L: Lanes<Fr>>(l: L, first: &[Fr], step: &Fr, out: &mut [L::V]) {
    let step = l.splat(step);
    let mut next = l.weak(l.load(|i| &first[i]));
    for out in out {
        *out = next;
        next = l.mul(next, step);
    }
}

/// The squares of the powers: every second power.
#[inline(always)]
fn squares<L: Lanes<Fr>>(l: L, powers: &[L::V]) -> Vec<L::V> {
    let mut out = vec![l.zero(); powers.len() / 2];
    for (out, pair) in out.iter_mut().zip(powers.chunks_exact(2)) {
        *out = match L::N {
            1 => pair[0],
            _ => l.unzip(pair[0], pair[1])[0],
        };
    }
    out
}

/// The scaling factors in bit-reversed order, for g of order 2 n: at the place of i, the factor g^-i / n of coefficient -i.
fn factors(log: u32) -> Vec<Fr> {
    let n = 1u64 << log;
    let g = Fr::get_root_of_unity(2 * n).expect("at most 2^28");
    let inverse = Fr::from(n).inverse().expect("n is not 0");
    // g^n = -1, and coefficient -i is n - i for all i but 0.
    let mut out = vec![-inverse];
    let mut step = g.inverse().expect("a root is not 0");
    let mut steps = Vec::new();
    for _ in 0..log {
        steps.push(step);
        step.square_in_place();
    }
    out.reserve(n as usize);
    for step in steps.iter().rev() {
        let half = out.len();
        out.resize(2 * half, Fr::ZERO);
        let (low, high) = out.split_at_mut(half);
        let tasks = high.par_chunks_mut(1 << 10).zip(low.par_chunks(1 << 10));
        tasks.for_each(|(high, low)| {
            for (high, low) in high.iter_mut().zip(low) {
                *high = *low * step;
            }
        });
    }
    out[0] = inverse;
    out
}

/// One layer of decimation in frequency.
#[inline(always)]
fn one_down<L: Lanes<Fr>>(l: L, values: &mut [L::V], roots: &[L::V]) {
    let (a, b) = values.split_at_mut(values.len() / 2);
    for ((a, b), w) in a.iter_mut().zip(b).zip(roots) {
        (*a, *b) = (l.weak(l.add(*a, *b)), l.mul(l.sub(*a, *b), *w));
    }
}

/// One layer of decimation in time.
#[inline(always)]
fn one_up<L: Lanes<Fr>>(l: L, values: &mut [L::V], roots: &[L::V]) {
    let (a, b) = values.split_at_mut(values.len() / 2);
    for ((a, b), w) in a.iter_mut().zip(b).zip(roots) {
        let (low, high) = (l.weak(*a), l.mul(*b, *w));
        (*a, *b) = (l.add(low, high), l.sub(low, high));
    }
}

/// Two layers of decimation in frequency over the quarters of a block. Inputs below 3.4 p give outputs below 3.4 p.
#[inline(always)]
fn two_down<L: Lanes<Fr>>(l: L, [a, b, c, d]: [&mut [L::V]; 4], roots: [&[L::V]; 3]) {
    let count = a.len();
    let (b, c, d) = (&mut b[..count], &mut c[..count], &mut d[..count]);
    let [first, second, half] = roots.map(|roots| &roots[..count]);
    for v in 0..count {
        let low = [l.add(a[v], c[v]), l.add(b[v], d[v])];
        let high = [
            l.mul(l.sub(a[v], c[v]), first[v]),
            l.mul(l.sub(b[v], d[v]), second[v]),
        ];
        a[v] = l.weak(l.add(low[0], low[1]));
        b[v] = l.mul(l.sub(low[0], low[1]), half[v]);
        c[v] = l.add(high[0], high[1]);
        d[v] = l.mul(l.sub(high[0], high[1]), half[v]);
    }
}

/// Two layers of decimation in time over the quarters of a block. Inputs below 35 p give outputs below 35 p.
#[inline(always)]
fn two_up<L: Lanes<Fr>>(l: L, [a, b, c, d]: [&mut [L::V]; 4], roots: [&[L::V]; 3]) {
    let count = a.len();
    let (b, c, d) = (&mut b[..count], &mut c[..count], &mut d[..count]);
    let [first, second, half] = roots.map(|roots| &roots[..count]);
    for v in 0..count {
        let (own, other) = (l.weak(a[v]), l.mul(b[v], half[v]));
        let low = [l.add(own, other), l.sub(own, other)];
        let (own, other) = (c[v], l.mul(d[v], half[v]));
        let high = [
            l.mul(l.add(own, other), first[v]),
            l.mul(l.sub(own, other), second[v]),
        ];
        a[v] = l.add(low[0], high[0]);
        b[v] = l.add(low[1], high[1]);
        c[v] = l.sub(low[0], high[0]);
        d[v] = l.sub(low[1], high[1]);
    }
}

/// The three layers between neighbours, downwards, the scaling, and those layers upwards.
#[inline(always)]
fn middle<L: Lanes<Fr>>(l: L, values: &mut [L::V], roots: &[L::V; NEAR / 2], factors: &[Fr]) {
    let mut turned = [Fr::ZERO; 8 * NEAR];
    for (k, value) in values.iter().enumerate() {
        l.store(*value, |i, x| turned[k * L::N + i] = x);
    }
    // Neighbours are in consecutive vectors: each group of eight points is in one lane.
    let mut x = [l.zero(); NEAR];
    for (k, x) in x.iter_mut().enumerate() {
        *x = l.load(|i| &turned[NEAR * i + k]);
    }
    for half in [4, 2, 1] {
        for first in (0..NEAR).step_by(2 * half) {
            for j in 0..half {
                let (low, high) = (x[first + j], x[first + half + j]);
                x[first + j] = l.weak(l.add(low, high));
                let difference = l.sub(low, high);
                x[first + half + j] = match j {
                    0 => l.weak(difference),
                    _ => l.mul(difference, roots[j * (NEAR / 2 / half)]),
                };
            }
        }
    }
    for (k, x) in x.iter_mut().enumerate() {
        *x = l.mul(*x, l.load(|i| &factors[NEAR * i + k]));
    }
    for half in [1, 2, 4] {
        for first in (0..NEAR).step_by(2 * half) {
            for j in 0..half {
                let low = x[first + j];
                let high = match j {
                    0 => x[first + half],
                    _ => l.mul(x[first + half + j], roots[j * (NEAR / 2 / half)]),
                };
                x[first + j] = l.weak(l.add(low, high));
                x[first + half + j] = l.weak(l.sub(low, high));
            }
        }
    }
    for (k, x) in x.into_iter().enumerate() {
        l.store(x, |i, x| turned[NEAR * i + k] = x);
    }
    for (k, value) in values.iter_mut().enumerate() {
        *value = l.load(|i| &turned[k * L::N + i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{PrimeField, UniformRand};
    use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
    use ragaudit_field_simd::lanes::tracked::Tracked;
    use ragaudit_field_simd::lanes::Portable;

    /// The same values by the transforms of arkworks.
    fn expected(a: &[Fr], b: &[Fr]) -> Vec<BigInt<4>> {
        let domain = Radix2EvaluationDomain::<Fr>::new(a.len()).unwrap();
        let g = Fr::get_root_of_unity(2 * a.len() as u64).unwrap();
        let odd = domain.get_coset(g).unwrap();
        let c: Vec<Fr> = a.iter().zip(b).map(|(a, b)| *a * b).collect();
        let [a, b, c] = [a, b, &c].map(|values| odd.fft(&domain.ifft(values)));
        let all = a.iter().zip(b).zip(c);
        all.map(|((a, b), c)| (*a * b - c).into_bigint()).collect()
    }

    fn samples(n: usize) -> [Vec<Fr>; 2] {
        let mut rng = ark_std::test_rng();
        let edge = [
            Fr::ZERO,
            Fr::ONE,
            -Fr::ONE,
            Fr::from(1u64 << 52),
            -Fr::from(2u8),
        ];
        [3, 4].map(|k| {
            let one = |i: usize| match i % k {
                0 => edge[i / k % edge.len()],
                _ => Fr::rand(&mut rng),
            };
            (0..n).map(one).collect()
        })
    }

    #[test]
    fn quotients_are_those_of_ark() {
        for log in MINIMUM.ilog2()..=15 {
            let [a, b] = samples(1 << log);
            assert!(quotient(&a, &b) == expected(&a, &b), "2^{log}");
        }
    }

    #[test]
    fn all_lanes_agree() {
        for log in [8, 9, 13, 14] {
            let [a, b] = samples(1 << log);
            let expected = expected(&a, &b);
            assert!(quotient_lanes(Portable, &a, &b) == expected, "2^{log}");
            assert!(quotient_lanes(Tracked, &a, &b) == expected, "2^{log}");
        }
    }

    /// Inputs that consist of the largest residues, and inputs that consist of zeros.
    #[test]
    fn extreme_values_are_transformed() {
        for x in [Fr::ZERO, Fr::ONE, -Fr::ONE] {
            let a = vec![x; MINIMUM];
            assert_eq!(quotient(&a, &a), expected(&a, &a));
        }
    }
}
