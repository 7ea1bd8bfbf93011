//! The arithmetic that dominates a verifier's time: [`Plain`] defines each operation, and a faster engine gives the same
//! results.
use ark_bn254::{Fq, Fr, G1Affine, G1Projective};
use ark_ec::{CurveGroup, VariableBaseMSM};
use ark_ff::{BigInteger, Field, PrimeField};

use crate::mle::eq_table;
use crate::numbers::from_small;

/// Every operation has exactly one result, so no verdict depends on the engine. The default implementations compute step by
/// step, with the field's and the curve's own operations.
pub trait Engine: Sized + 'static {
    /// The square root of each x that the exponent (p + 1) / 4 gives; none where x is no square.
    fn square_roots(xs: &[Fq]) -> Vec<Option<Fq>> {
        let mut exponent = Fq::MODULUS;
        exponent >>= 2;
        exponent.add_with_carry(&1u64.into());
        let root = |x: &Fq| {
            let y = x.pow(exponent);
            (y.square() == *x).then_some(y)
        };
        xs.iter().map(root).collect()
    }

    /// p_i + q_i in the place of p_i.
    fn add_each(p: &mut [G1Affine], q: &[G1Affine]) {
        let sums: Vec<G1Projective> = p.iter().zip(q).map(|(p, q)| *p + *q).collect();
        let sums = G1Projective::normalize_batch(&sums);
        p.iter_mut().zip(sums).for_each(|(p, sum)| *p = sum);
    }

    /// sum of x_i P_i.
    fn msm(points: &[G1Affine], scalars: &[Fr]) -> G1Projective {
        G1Projective::msm_unchecked(points, scalars)
    }

    /// Binds the highest variable of a table to r.
    fn bind_highest(table: &mut Vec<Fr>, r: Fr) {
        let keep = table.len() / 2;
        let (low, high) = table.split_at_mut(keep);
        let pairs = low.iter_mut().zip(high);
        pairs.for_each(|(low, high)| *low += r * (*high - *low));
        table.truncate(keep);
    }

    /// The extension at a point of the column with these first values, 0 after them.
    fn extend(values: &[i64], point: &[Fr]) -> Fr {
        let pairs = values.iter().zip(eq_table(point));
        pairs.map(|(v, e)| from_small(*v) * e).sum()
    }

    /// The relation's H of at most 16 elements.
    fn hash(inputs: &[Fr]) -> Fr {
        ragaudit_relation::poseidon::hash(inputs).expect("at most 16 elements")
    }

    /// Combines the results of `add` for the numbers below `count`, in order. An engine may compute runs of numbers separately
    /// and combine them in order with `join`; both ways must give the same result.
    fn fold<T: Default + Send>(
        count: usize,
        add: impl Fn(T, usize) -> T + Send + Sync,
        _: impl Fn(T, T) -> T + Send + Sync,
    ) -> T {
        (0..count).fold(T::default(), add)
    }
}

/// Every operation by its default.
pub struct Plain;

impl Engine for Plain {}
