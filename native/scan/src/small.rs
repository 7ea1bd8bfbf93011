//! Sums of small integers times field elements, reduced once a sum instead of once a product.
use ark_bn254::FrConfig;
use ark_ff::{AdditiveGroup, BigInt, MontConfig, PrimeField};
use rayon::prelude::*;

use crate::group::Fr;

const R: [u64; 4] = Fr::MODULUS.0;
const INV: u64 = <FrConfig as MontConfig<4>>::INV;
/// Entries of one task.
const TASK: usize = 1 << 10;

/// What a reduction divides by: two limbs.
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
        self.add(v.unsigned_abs(), &factor.0[usize::from(v < 0)]);
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
        let value = BigInt([self.0[2], self.0[3], self.0[4], self.0[5]]);
        Fr::new_unchecked(if value >= Fr::MODULUS {
            let mut less = value;
            ark_ff::BigInteger::sub_with_borrow(&mut less, &Fr::MODULUS);
            less
        } else {
            value
        })
    }
}

/// start + the sum of factors_c values_c row by row; values that are missing count 0.
pub(crate) fn combine(start: Fr, columns: &[(&[i64], Fr)], out: &mut [Fr]) {
    let columns: Vec<(&[i64], Factor)> =
        columns.iter().map(|(v, f)| (*v, Factor::new(*f))).collect();
    out.par_chunks_mut(TASK)
        .enumerate()
        .for_each(|(task, out)| {
            let mut sums = [Sum::default(); TASK];
            for (values, factor) in &columns {
                let values = values.get(task * TASK..).unwrap_or_default();
                for (sum, v) in sums.iter_mut().zip(values) {
                    sum.add_signed(*v, factor);
                }
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = start + sum.reduce();
            }
        });
}

/// sum of values_x weights_x, over the shorter of both.
pub(crate) fn dot(values: &[i64], weights: &[Fr]) -> Fr {
    let mut sums = [Sum::default(); 2];
    for (v, w) in values.iter().zip(weights) {
        sums[usize::from(*v < 0)].add(v.unsigned_abs(), &w.0 .0);
    }
    (sums[0].reduce() - sums[1].reduce()) * radix()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::from_small;
    use ark_ff::UniformRand;

    #[test]
    fn sums_agree_with_the_field() {
        let mut rng = ark_std::test_rng();
        let extreme = [0, 1, -1, i64::MAX, i64::MIN, 65_535, -(1 << 40)];
        let values: Vec<i64> = (0..3000).map(|i| extreme[i % 7]).collect();
        let mut weights: Vec<Fr> = (0..3000).map(|_| Fr::rand(&mut rng)).collect();
        weights[3] = -Fr::from(1u8);
        let expected: Fr = values
            .iter()
            .zip(&weights)
            .map(|(v, w)| from_small(*v) * w)
            .sum();
        assert_eq!(dot(&values, &weights), expected);
        let columns: Vec<(&[i64], Fr)> = (0..30)
            .map(|k| (&values[k..1500 + k], weights[k]))
            .collect();
        let mut out = vec![Fr::ZERO; 2000];
        combine(weights[9], &columns, &mut out);
        for x in [0, 1, 5, 6, 1023, 1024, 1499, 1500, 1999] {
            let terms = columns
                .iter()
                .map(|(v, f)| from_small(v.get(x).copied().unwrap_or(0)) * f);
            assert_eq!(out[x], weights[9] + terms.sum::<Fr>());
        }
    }
}
