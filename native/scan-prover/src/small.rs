//! Sums of small integers times field elements, reduced once a sum instead of once a product.
use ark_bn254::FrConfig;
use ark_ff::{AdditiveGroup, BigInt, Field, MontConfig, PrimeField};
use ragaudit_field_simd::dispatch;
use ragaudit_field_simd::lanes::{Integers, PRODUCTS};
use rayon::prelude::*;

use ragaudit_scan_protocol::group::Fr;

const R: [u64; 4] = Fr::MODULUS.0;
const INV: u64 = <FrConfig as MontConfig<4>>::INV;
/// Entries of one task.
const TASK: usize = 1 << 10;

/// The divisor of a reduction: two limbs.
fn radix() -> Fr {
    Fr::from(1u128 << 127).double()
}

/// A factor and its negative, times 2^128.
#[derive(Clone, Copy)]
struct Factor([[u64; 4]; 2]);

impl Factor {
    fn new(x: Fr) -> Self {
        let x = x * radix();
        Self([x, -x].map(|x| x.0 .0))
    }
}

/// Six limbs: 2^64 products of 64 bits and a residue.
#[derive(Clone, Copy, Default)]
struct Sum([u64; 6]);

impl Sum {
    #[inline(always)]
    fn add(&mut self, v: u64, x: &[u64; 4]) {
        let mut carry = 0u64;
        for (limb, x) in self.0.iter_mut().zip(x) {
            let t = u128::from(v) * u128::from(*x) + u128::from(*limb) + u128::from(carry);
            (*limb, carry) = (t as u64, (t >> 64) as u64);
        }
        let over;
        (self.0[4], over) = self.0[4].overflowing_add(carry);
        self.0[5] += u64::from(over);
    }

    #[inline(always)]
    fn add_signed(&mut self, v: i64, factor: &Factor) {
        // The sign by mask.
        let mask = std::hint::black_box((v >> 63) as u64);
        let [plain, negative] = &factor.0;
        let x = std::array::from_fn(|i| plain[i] ^ mask & (plain[i] ^ negative[i]));
        self.add(v.unsigned_abs(), &x);
    }

    /// The sum divided by 2^128: two of Montgomery's steps. A sum below 2^381 leaves less than 2r.
    #[inline(always)]
    fn reduce(mut self) -> Fr {
        for i in 0..2 {
            let m = self.0[i].wrapping_mul(INV);
            let mut carry = 0u64;
            for (limb, x) in self.0[i..].iter_mut().zip(&R) {
                let t = u128::from(m) * u128::from(*x) + u128::from(*limb) + u128::from(carry);
                (*limb, carry) = (t as u64, (t >> 64) as u64);
            }
            for limb in &mut self.0[i + 4..] {
                let t = u128::from(*limb) + u128::from(carry);
                (*limb, carry) = (t as u64, (t >> 64) as u64);
            }
        }
        // Subtracts r, and adds it again by mask if the result is negative.
        let value = [self.0[2], self.0[3], self.0[4], self.0[5]];
        let (mut less, mut borrow) = ([0u64; 4], 0);
        for ((less, x), r) in less.iter_mut().zip(value).zip(R) {
            let t = u128::from(x)
                .wrapping_sub(u128::from(r))
                .wrapping_sub(borrow);
            (*less, borrow) = (t as u64, t >> 127);
        }
        let keep = (borrow as u64).wrapping_neg();
        let reduced = std::array::from_fn(|i| less[i] ^ keep & (less[i] ^ value[i]));
        Fr::new_unchecked(BigInt(reduced))
    }
}

/// The constants that convert short integers to residues, N at a time.
pub(crate) struct Converting<V> {
    long: V,
    lowered: V,
    exact: Factor,
}

impl<V: Copy> Converting<V> {
    pub(crate) fn new<L: Integers<Fr, V = V>>(l: L) -> Self {
        Self {
            long: l.splat(&shortening()),
            lowered: l.splat(&-Fr::from(1u64 << 51)),
            exact: Factor::new(Fr::ONE),
        }
    }

    /// Below 3 p, for N values from -2^51 to 2^51 - 1.
    #[inline(always)]
    pub(crate) fn of<L: Integers<Fr, V = V>>(&self, l: L, values: &[i64]) -> V {
        if L::N == 1 {
            let mut sum = Sum::default();
            sum.add_signed(values[0], &self.exact);
            let residue = sum.reduce();
            return l.weak(l.load(|_| &residue));
        }
        let raised = l.shorten(l.scale(l.wide(), l.raised(values), self.long));
        l.weak(l.add(raised, self.lowered))
    }
}

/// start + the sum of factors_c values_c row by row; values that are missing count 0.
pub(crate) fn combine(start: Fr, columns: &[(&[i64], Fr)], out: &mut [Fr]) {
    dispatch!(l => combine_on(l, start, columns, out));
}

fn combine_on<L: Integers<Fr>>(l: L, start: Fr, columns: &[(&[i64], Fr)], out: &mut [Fr]) {
    let long = shortening();
    let factors: Vec<L::V> = columns.iter().map(|(_, f)| l.splat(&(long * f))).collect();
    // The integers are raised; the columns that reach a row subtract the difference.
    let raise = Fr::from(1u64 << 51);
    let exact: Vec<Factor> = columns.iter().map(|(_, f)| Factor::new(*f)).collect();
    let tasks = out.par_chunks_mut(TASK).enumerate();
    tasks.for_each(|(task, out)| {
        let values = columns.iter().map(|(v, _)| *v);
        let here: Vec<&[i64]> = values
            .map(|v| v.get(task * TASK..).unwrap_or_default())
            .collect();
        let whole = here.iter().map(|v| v.len()).filter(|n| *n > 0).min();
        // Whole rows of lanes before the end of every column, if all values are short.
        let rows = out.len().min(whole.unwrap_or(0)) / L::N * L::N;
        let short = |v: &&[i64]| v.is_empty() || are_short(&v[..rows]);
        let rows = if L::N > 1 && here.iter().all(short) {
            rows
        } else {
            0
        };
        let (run, rest) = out.split_at_mut(rows);
        let reached = here.iter().zip(&factors).filter(|(v, _)| !v.is_empty());
        let reached: Vec<(&[i64], L::V)> = reached.map(|(v, f)| (*v, *f)).collect();
        let raised = here.iter().zip(columns).filter(|(v, _)| !v.is_empty());
        let start_here = start - raise * raised.map(|(_, (_, f))| *f).sum::<Fr>();
        l.run(
            #[inline(always)]
            || combine_lanes(l, start_here, &reached, run),
        );
        let mut sums = vec![Sum::default(); rest.len()];
        for (values, factor) in here.iter().zip(&exact) {
            for (sum, v) in sums.iter_mut().zip(values.get(rows..).unwrap_or_default()) {
                sum.add_signed(*v, factor);
            }
        }
        for (out, sum) in rest.iter_mut().zip(sums) {
            *out = start + sum.reduce();
        }
    });
}

/// start + the sum of the raised integers' multiples, over 2^104.
#[inline(always)]
fn combine_lanes<L: Integers<Fr>>(l: L, start: Fr, columns: &[(&[i64], L::V)], out: &mut [Fr]) {
    let start = l.splat(&start);
    for (run, out) in out.chunks_exact_mut(L::N).enumerate() {
        let mut total = start;
        for columns in columns.chunks(PRODUCTS) {
            let mut sum = l.wide();
            for (values, factor) in columns {
                sum = l.scale(sum, l.raised(&values[run * L::N..]), *factor);
            }
            total = l.weak(l.add(total, l.shorten(sum)));
        }
        l.store(total, |i, x| out[i] = x);
    }
}

/// Whether all are from -2^51 to 2^51 - 1: all values within their columns' bounds are, but limbs of salts.
fn are_short(values: &[i64]) -> bool {
    let high = |v: &i64| v.wrapping_add(1 << 51) as u64 >> 52;
    values.iter().fold(0, |all, v| all | high(v)) == 0
}

/// The divisor of [`Integers::shorten`].
fn shortening() -> Fr {
    Fr::from(1u128 << 104)
}

/// sum of values_x weights_x, over the shorter of both.
pub(crate) fn dot(values: &[i64], weights: &[Fr]) -> Fr {
    let length = values.len().min(weights.len());
    dispatch!(l => dot_on(l, &values[..length], &weights[..length]))
}

#[inline(always)]
fn dot_on<L: Integers<Fr>>(l: L, values: &[i64], weights: &[Fr]) -> Fr {
    let mut total = Fr::ZERO;
    let chunks = values
        .chunks(L::N * PRODUCTS)
        .zip(weights.chunks(L::N * PRODUCTS));
    for (values, weights) in chunks {
        if L::N == 1 || values.len() % L::N > 0 || !are_short(values) {
            total += dot_exact(values, weights);
            continue;
        }
        // The raised integers' sum, and how much of it is the raise.
        let (mut sums, one) = ([l.wide(); 2], l.raised(&[1 - (1 << 51); 8]));
        let runs = values.chunks_exact(L::N).zip(weights.chunks_exact(L::N));
        for (values, weights) in runs {
            let w = l.load(|i| &weights[i]);
            sums[0] = l.scale(sums[0], l.raised(values), w);
            sums[1] = l.scale(sums[1], one, w);
        }
        let [all, raise] = [l.sum(l.shorten(sums[0])), l.sum(l.shorten(sums[1]))];
        total += (all - raise * Fr::from(1u64 << 51)) * shortening();
    }
    total
}

fn dot_exact(values: &[i64], weights: &[Fr]) -> Fr {
    // Magnitudes of one sign in each sum, the others as 0.
    let mut sums = [Sum::default(); 2];
    for (v, w) in values.iter().zip(weights) {
        let mask = std::hint::black_box((v >> 63) as u64);
        sums[0].add(v.unsigned_abs() & !mask, &w.0 .0);
        sums[1].add(v.unsigned_abs() & mask, &w.0 .0);
    }
    (sums[0].reduce() - sums[1].reduce()) * radix()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::from_small;
    use ark_ff::UniformRand;
    use ragaudit_field_simd::lanes::tracked::Tracked;
    use ragaudit_field_simd::lanes::Portable;

    /// For short values, and for others.
    #[test]
    fn sums_agree_with_the_field() {
        let short = (1 << 51) - 1;
        for extreme in [
            [0, 1, -1, i64::MAX, i64::MIN, 65_535, -(1 << 40)],
            [0, 1, -1, short, -short - 1, 65_535, -(1 << 40)],
        ] {
            agree(extreme);
        }
    }

    fn agree(extreme: [i64; 7]) {
        let mut rng = ark_std::test_rng();
        let values: Vec<i64> = (0..3000).map(|i| extreme[i % 7]).collect();
        let mut weights: Vec<Fr> = (0..3000).map(|_| Fr::rand(&mut rng)).collect();
        weights[3] = -Fr::from(1u8);
        for count in [3000, 2048, 13] {
            let products = values.iter().zip(&weights[..count]);
            let expected: Fr = products.map(|(v, w)| from_small(*v) * w).sum();
            assert_eq!(dot(&values, &weights[..count]), expected);
            assert_eq!(
                dot_on(Portable, &values[..count], &weights[..count]),
                expected
            );
            assert_eq!(
                dot_on(Tracked, &values[..count], &weights[..count]),
                expected
            );
        }
        let columns: Vec<(&[i64], Fr)> = (0..30)
            .map(|k| (&values[k..1500 + k], weights[k]))
            .chain([
                (&values[..1024], weights[31]),
                (&values[..1100], weights[32]),
            ])
            .collect();
        let combined = |combine: &dyn Fn(&mut [Fr])| {
            let mut out = vec![Fr::ZERO; 2000];
            combine(&mut out);
            out
        };
        let out = combined(&|out| combine(weights[9], &columns, out));
        assert_eq!(
            combined(&|out| combine_on(Portable, weights[9], &columns, out)),
            out
        );
        assert_eq!(
            combined(&|out| combine_on(Tracked, weights[9], &columns, out)),
            out
        );
        for x in [0, 1, 5, 6, 1023, 1024, 1099, 1100, 1499, 1500, 1999] {
            let terms = columns
                .iter()
                .map(|(v, f)| from_small(v.get(x).copied().unwrap_or(0)) * f);
            assert_eq!(out[x], weights[9] + terms.sum::<Fr>());
        }
    }
}
