//! Sums of multiples of G1's points, many at a time; generators and encodings are the argument's, on all lanes.
use std::sync::{Arc, OnceLock};

use ark_ec::AffineRepr;
use ark_ff::AdditiveGroup;
pub use ragaudit_field_simd::g1::fold as fold_points;
use ragaudit_field_simd::g1::segment_sums;
use ragaudit_field_simd::multiples::{odd_digits, read_all, SmallMultiples, SMALL, SMALL_DIGITS};
use ragaudit_scan_protocol::group::bases;
pub use ragaudit_scan_protocol::group::{
    decode_scalar, encode_point, encode_points, encode_scalar, Fr, G1Affine, G1Projective, ENCODED,
    NO_POINT, WIDTH,
};
use rayon::prelude::*;
use zeroize::Zeroize;

use crate::engine::Fast;
use crate::error::Result;
pub(crate) use crate::msm::join_windows;
pub use crate::msm::{msm, small_msm};

/// See [`ragaudit_scan_protocol::group::decode_points`].
pub fn decode_points(bytes: &[u8]) -> Result<Vec<G1Affine>> {
    ragaudit_scan_protocol::group::decode_points::<Fast>(bytes)
}

/// See [`ragaudit_scan_protocol::group::vector_generators`].
pub fn vector_generators(count: usize) -> Arc<Vec<G1Affine>> {
    ragaudit_scan_protocol::group::vector_generators::<Fast>(count)
}

/// See [`ragaudit_scan_protocol::group::query_generators`].
pub fn query_generators(count: usize) -> Arc<Vec<G1Affine>> {
    ragaudit_scan_protocol::group::query_generators::<Fast>(count)
}

/// See [`ragaudit_scan_protocol::prepared::table`].
pub fn prepared_generators() -> Vec<u8> {
    ragaudit_scan_protocol::prepared::table::<Fast>()
}

/// Multiples of one point by table, by the same steps whatever the factor is.
pub struct FixedBase {
    pub point: G1Affine,
    /// Multiples of 2^([`SMALL`] i) P.
    windows: Vec<SmallMultiples>,
}

/// The number of factors with multiples computed in one step.
const FACTORS: usize = 64;

impl FixedBase {
    pub fn new(point: G1Affine) -> Self {
        let mut windows = Vec::with_capacity(SMALL_DIGITS);
        let mut base = point.into_group();
        for _ in 0..SMALL_DIGITS {
            windows.push(SmallMultiples::of(base));
            (0..SMALL).for_each(|_| _ = base.double_in_place());
        }
        Self { point, windows }
    }

    /// Points with the sum x P; their number does not depend on x. None is neutral. If other points are summed with them, or x
    /// is uniform, two partial sums have the same x-coordinate only by chance.
    pub(crate) fn terms(&self, x: &Fr, out: &mut Vec<G1Affine>) {
        let mut digits = odd_digits(x);
        read_all(&self.windows, &digits, out);
        digits.zeroize();
    }

    pub fn add_multiple(&self, sum: &mut G1Projective, x: &Fr) {
        *sum += self.multiples(std::slice::from_ref(x))[0];
    }

    /// x P for each x.
    pub fn multiples(&self, xs: &[Fr]) -> Vec<G1Affine> {
        let run = |xs: &[Fr]| {
            let mut terms = Vec::with_capacity(xs.len() * SMALL_DIGITS);
            xs.iter().for_each(|x| self.terms(x, &mut terms));
            segment_sums(terms, &vec![SMALL_DIGITS as u32; xs.len()])
        };
        if xs.len() <= FACTORS {
            return run(xs);
        }
        xs.par_chunks(FACTORS).flat_map_iter(run).collect()
    }
}

/// The sum of multiples of several fixed points, by the same steps whatever the factors are. One of them is uniform.
pub fn fixed_sum<'a>(parts: impl IntoIterator<Item = (&'a FixedBase, &'a Fr)>) -> G1Projective {
    let mut terms = Vec::new();
    for (base, x) in parts {
        base.terms(x, &mut terms);
    }
    let count = terms.len() as u32;
    segment_sums(terms, &[count])[0].into()
}

/// Tables for many small commitments.
pub struct Tables {
    /// Blinds.
    pub h: FixedBase,
    /// Carries single scalars.
    pub u: FixedBase,
    /// G_0 .. G_15, which carry messages.
    pub g: Vec<FixedBase>,
}

pub fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    if let Some(known) = TABLES.get() {
        return known;
    }
    // Outside the initialisation, which must not wait for the thread pool: its threads may be waiting for it.
    let (g, bases) = (vector_generators(WIDTH), bases::<Fast>());
    let tables = Tables {
        h: FixedBase::new(bases.h),
        u: FixedBase::new(bases.u),
        g: g[..WIDTH].iter().map(|p| FixedBase::new(*p)).collect(),
    };
    TABLES.get_or_init(|| tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::CurveGroup;
    use ark_ec::VariableBaseMSM;
    use ark_ff::Field;
    use ark_ff::UniformRand;
    use ark_ff::Zero;

    fn rng() -> impl ark_std::rand::Rng {
        ark_std::test_rng()
    }

    #[test]
    fn prepared_generators_are_the_hashed_ones_and_no_others() {
        use ragaudit_scan_protocol::prepared::{read, take, QUERY, VECTOR};
        let table = prepared_generators();
        let points = read(&table).unwrap();
        assert_eq!(points[..VECTOR], vector_generators(VECTOR)[..VECTOR]);
        assert_eq!(points[VECTOR..], query_generators(QUERY)[..QUERY]);
        assert_eq!(take(&table), Ok(()));
        let mut other = table.clone();
        other[64] ^= 1;
        for wrong in [&other, &table[1..], &[]] {
            let refused = take(wrong).unwrap_err().to_string();
            assert!(
                refused.starts_with("generators: expected 56f48d95"),
                "{refused}"
            );
        }
    }

    #[test]
    fn small_and_fixed_multiples_agree_with_plain_ones() {
        let g = vector_generators(8);
        let values = [0, 1, -1, 127, -128, i64::from(u32::MAX), -(1 << 40), 12345];
        let plain: G1Projective = g
            .iter()
            .zip(values)
            .map(|(p, v)| {
                let m = *p * Fr::from(v.unsigned_abs());
                if v < 0 {
                    -m
                } else {
                    m
                }
            })
            .sum();
        assert_eq!(small_msm(&g[..8], &values), plain);
        // Equal, opposite and neutral points, where no chord exists.
        let same = [g[0], g[0], -g[0], g[1], -g[1], G1Affine::zero(), g[2], g[2]];
        let ones = [1, 1, 1, 1, 1, 1, -1, 2];
        assert_eq!(small_msm(&same, &ones), g[0] + g[2]);
        assert_eq!(small_msm(&same, &[0; 8]), G1Projective::zero());
        let mut rng = rng();
        for x in [Fr::ZERO, -Fr::ONE, Fr::rand(&mut rng)] {
            let mut sum = G1Projective::zero();
            tables().u.add_multiple(&mut sum, &x);
            assert_eq!(sum, tables().u.point * x);
        }
    }

    #[test]
    fn large_sums_and_folds_agree_with_plain_ones() {
        let mut rng = rng();
        let g = vector_generators(600);
        let mut points = g[..600].to_vec();
        points[7] = G1Affine::zero();
        points[8] = points[9];
        points[10] = -points[9];
        let mut scalars: Vec<Fr> = (0..600).map(|_| Fr::rand(&mut rng)).collect();
        scalars[..4].copy_from_slice(&[Fr::ZERO, Fr::ONE, -Fr::ONE, -Fr::from(2u8)]);
        scalars[8..10].fill(-Fr::ONE);
        let plain = G1Projective::msm_unchecked(&points, &scalars);
        assert_eq!(msm(&points, &scalars), plain);
        let (low, high) = points.split_at(300);
        for u in [Fr::ZERO, Fr::ONE, -Fr::ONE, Fr::from(6u8), scalars[20]] {
            let sums = low
                .iter()
                .zip(high)
                .map(|(l, h)| (*h * u + l).into_affine());
            assert_eq!(fold_points(low, high, &u), sums.collect::<Vec<_>>());
        }
    }

    #[test]
    fn fixed_multiples_agree_with_plain_ones() {
        let mut rng = rng();
        for x in [Fr::ZERO, Fr::ONE, -Fr::ONE, Fr::rand(&mut rng)] {
            let other = Fr::rand(&mut rng);
            let Tables { h, u, .. } = tables();
            let sum = fixed_sum([(u, &x), (h, &other)]);
            assert_eq!(sum, u.point * x + h.point * other);
        }
        let xs: Vec<Fr> = (0..150).map(|_| Fr::rand(&mut rng)).collect();
        let plain = xs.iter().map(|x| tables().u.point * x);
        assert!(tables().u.multiples(&xs).into_iter().eq(plain));
    }
}
