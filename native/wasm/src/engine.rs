//! The verifier's arithmetic in a page.
use ark_bn254::{g1, Fq, Fr, G1Affine, G1Projective};
use ark_ff::PrimeField;
use ragaudit_scan_protocol::engine::{Engine, Plain};

/// [`Plain`], with the hash's sparse form, and sums of points that ask for no threads.
pub struct Web;

#[cfg(target_arch = "wasm32")]
fn square_roots(xs: &[Fq]) -> Vec<Option<Fq>> {
    use crate::pairs::{decode, encode, quarter_powers, Pair};
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

#[cfg(not(target_arch = "wasm32"))]
fn square_roots(xs: &[Fq]) -> Vec<Option<Fq>> {
    Plain::square_roots(xs)
}

impl Engine for Web {
    fn square_roots(xs: &[Fq]) -> Vec<Option<Fq>> {
        square_roots(xs)
    }

    fn add_each(p: &mut [G1Affine], q: &[G1Affine]) {
        Plain::add_each(p, q);
    }

    fn msm(points: &[G1Affine], scalars: &[Fr]) -> G1Projective {
        let scalars: Vec<_> = scalars.iter().map(|x| x.into_bigint()).collect();
        ragaudit_groth16::msm::msm::<g1::Config>(points, &scalars)
    }

    fn bind_highest(table: &mut Vec<Fr>, r: Fr) {
        Plain::bind_highest(table, r);
    }

    fn extend(values: &[i64], point: &[Fr]) -> Fr {
        Plain::extend(values, point)
    }

    fn hash(inputs: &[Fr]) -> Fr {
        ragaudit_field_simd::poseidon::hash(inputs).expect("at most 16 elements")
    }

    fn fold<T: Default + Send>(
        count: usize,
        add: impl Fn(T, usize) -> T + Send + Sync,
        join: impl Fn(T, T) -> T + Send + Sync,
    ) -> T {
        Plain::fold(count, add, join)
    }
}
