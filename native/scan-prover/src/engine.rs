//! The verifier's arithmetic on all lanes and threads.
use ark_bn254::Fq;
use ragaudit_scan_protocol::engine::Engine;
use ragaudit_scan_protocol::group::{Fr, G1Affine, G1Projective};
use rayon::prelude::*;

use crate::mle::Weights;

/// The operations of [`ragaudit_scan_protocol::engine::Plain`], computed faster.
pub struct Fast;

impl Engine for Fast {
    fn square_roots(xs: &[Fq]) -> Vec<Option<Fq>> {
        ragaudit_field_simd::g1::square_roots(xs)
    }

    fn add_each(p: &mut [G1Affine], q: &[G1Affine]) {
        ragaudit_field_simd::g1::add_each(p, q);
    }

    fn msm(points: &[G1Affine], scalars: &[Fr]) -> G1Projective {
        crate::msm::msm(points, scalars)
    }

    fn bind_highest(table: &mut Vec<Fr>, r: Fr) {
        crate::mle::bind_highest(table, r);
    }

    fn extend(values: &[i64], point: &[Fr]) -> Fr {
        Weights::new(point).dot(values)
    }

    fn hash(inputs: &[Fr]) -> Fr {
        ragaudit_field_simd::poseidon::hash(inputs).expect("at most 16 elements")
    }

    fn fold<T: Default + Send>(
        count: usize,
        add: impl Fn(T, usize) -> T + Send + Sync,
        join: impl Fn(T, T) -> T + Send + Sync,
    ) -> T {
        let all = (0..count).into_par_iter();
        all.fold(T::default, add).reduce(T::default, join)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::vector_generators;
    use ark_ff::{AdditiveGroup, Field, UniformRand};
    use ragaudit_scan_protocol::engine::Plain;

    /// The verdict does not depend on the engine.
    #[test]
    fn both_engines_compute_the_same() {
        let mut rng = ark_std::test_rng();
        let mut xs: Vec<Fq> = (0..40).map(|_| Fq::rand(&mut rng)).collect();
        xs[7] = Fq::ZERO;
        assert_eq!(Fast::square_roots(&xs), Plain::square_roots(&xs));
        let g = vector_generators(600);
        let mut scalars: Vec<Fr> = (0..600).map(|_| Fr::rand(&mut rng)).collect();
        scalars[..3].copy_from_slice(&[Fr::ZERO, Fr::ONE, -Fr::ONE]);
        for count in [0, 1, 100, 600] {
            let (points, scalars) = (&g[..count], &scalars[..count]);
            assert_eq!(Fast::msm(points, scalars), Plain::msm(points, scalars));
        }
        // Equal, opposite and neutral points too.
        let mut sums = [g[..4].to_vec(), g[..4].to_vec()];
        let others = [g[9], g[1], -g[2], G1Affine::default()];
        Fast::add_each(&mut sums[0], &others);
        Plain::add_each(&mut sums[1], &others);
        assert_eq!(sums[0], sums[1]);
        let mut tables = [scalars[..64].to_vec(), scalars[..64].to_vec()];
        Fast::bind_highest(&mut tables[0], scalars[70]);
        Plain::bind_highest(&mut tables[1], scalars[70]);
        assert_eq!(tables[0], tables[1]);
        let values: Vec<i64> = (0..1000).map(|x| (x - 500) << (x % 50)).collect();
        for variables in [10, 12] {
            let point = &scalars[..variables];
            assert_eq!(Fast::extend(&values, point), Plain::extend(&values, point));
        }
        assert_eq!(Fast::hash(&scalars[..16]), Plain::hash(&scalars[..16]));
        assert_eq!(Fast::hash(&[Fr::ZERO]), Plain::hash(&[Fr::ZERO]));
        let add = |mut all: Vec<usize>, i| {
            all.push(i);
            all
        };
        let join = |mut all: Vec<usize>, more: Vec<usize>| {
            all.extend(more);
            all
        };
        assert_eq!(Fast::fold(500, add, join), Plain::fold(500, add, join));
    }
}
