//! The verifier's arithmetic in a page.
use ark_bn254::{g1, Fr, G1Affine, G1Projective};
use ark_ff::PrimeField;
use ragaudit_scan_protocol::engine::Engine;

/// The default computations, with the sparse form of the hash and sums of points without threads.
pub struct Web;

impl Engine for Web {
    #[cfg(target_arch = "wasm32")]
    fn square_roots(xs: &[ark_bn254::Fq]) -> Vec<Option<ark_bn254::Fq>> {
        use crate::pairs::{decode, encode, quarter_powers, Pair};
        use ark_bn254::Fq;
        use ark_ff::{AdditiveGroup, Field};
        let of_two = |two: &[Fq]| {
            let other = two.get(1).copied().unwrap_or(Fq::ZERO);
            let powers = quarter_powers(&Pair::load(&encode(&two[0]), &encode(&other))).store();
            let root = |(x, y): (&Fq, &_)| {
                let y = decode(y);
                (y.square() == *x).then_some(y)
            };
            two.iter().zip(&powers).map(root).collect::<Vec<_>>()
        };
        xs.chunks(2).flat_map(of_two).collect()
    }

    fn msm(points: &[G1Affine], scalars: &[Fr]) -> G1Projective {
        let scalars: Vec<_> = scalars.iter().map(|x| x.into_bigint()).collect();
        ragaudit_groth16::msm::msm::<g1::Config>(points, &scalars)
    }

    fn hash(inputs: &[Fr]) -> Fr {
        ragaudit_field_simd::poseidon::hash(inputs).expect("at most 16 elements")
    }
}
