//! The prover's commitments to a hidden query and to the scores that it gives, by the same steps whatever the query is:
//! `docs/scan/time.md`.
use std::sync::{Arc, RwLock};

use ark_ec::AffineRepr;
use ragaudit_field_simd::g1::{normalize, segment_sums};
use ragaudit_field_simd::multiples::signed;
use rayon::prelude::*;

use crate::group::{
    fold_points, join_windows, msm, query_generators, small_msm, tables, FixedBase, Fr, G1Affine,
    G1Projective,
};
use crate::index::IndexCommitment;
use crate::numbers::half;

/// C_q.
pub fn commit_query(query: &[i8], salt: &Fr, blinding: &Fr) -> G1Projective {
    let bases = query_generators(query.len());
    let base = query_base(query.len());
    let [odd, _] = odd_sums(&bases[..query.len()], query);
    let mut terms = vec![base.minus_half];
    base.salt.terms(salt, &mut terms);
    tables().h.terms(blinding, &mut terms);
    let count = terms.len() as u32;
    fold_points(&segment_sums(terms, &[count]), &odd, &half())[0].into()
}

/// Row by row the sum of q_j times the index points, the rows and the queries weighted by public factors; and the blinding.
pub(crate) fn commit_scores(
    index: &IndexCommitment,
    queries: &[(&[i8], Fr)],
    rows: &[Fr],
    blinding: Fr,
) -> G1Projective {
    let count = index.layout.rows();
    let row = |a: usize| index.points.iter().skip(a).step_by(count).copied();
    let by_row: Vec<G1Affine> = (0..count).flat_map(row).collect();
    // Half of the odd sums less the plain ones.
    let (mut points, mut factors) = (Vec::new(), Vec::new());
    for (query, factor) in queries {
        let [odd, plain] = odd_sums(&by_row, query);
        points.extend([odd, plain].concat());
        let halves: Vec<Fr> = rows.iter().map(|e| *e * half() * factor).collect();
        factors.extend(halves.iter().copied());
        factors.extend(halves.iter().map(|f| -*f));
    }
    msm(&points, &factors) + tables().h.multiples(&[blinding])[0]
}

/// For each row of `points`, as long as `values`, the sums of (2 v_i + 1) P_i for secret v from -8 to 7, and of P_i: by
/// the same steps whatever the v are, with as many additions as four windows have. Neither is neutral for points without
/// relations.
fn odd_sums(points: &[G1Affine], values: &[i8]) -> [Vec<G1Affine>; 2] {
    const BITS: usize = 4;
    if points.is_empty() {
        return [Vec::new(), Vec::new()];
    }
    // With v + 8 = sum of 2^k b_k, the signs 2 b_k - 1 make 2 v + 1.
    let row = |row: &[G1Affine]| {
        let sign = |(k, (point, v)): (usize, (&G1Affine, &i8))| {
            let bit = ((*v as u8).wrapping_add(8) >> k) & 1;
            signed(point, u64::from(bit).wrapping_sub(1))
        };
        let digits = (0..BITS).flat_map(|k| row.iter().zip(values).map(move |pair| (k, pair)));
        let terms: Vec<G1Affine> = digits.map(sign).chain(row.iter().copied()).collect();
        let sums = segment_sums(terms, &[values.len() as u32; BITS + 1]);
        let windows: Vec<G1Projective> = sums[..BITS].iter().map(|p| p.into_group()).collect();
        (join_windows(&windows, 1), sums[BITS])
    };
    let rows = points.par_chunks(values.len());
    let (mut odd, plain): (Vec<G1Projective>, Vec<G1Affine>) = rows.clone().map(row).unzip();
    let beyond = |v: &i8| (*v as u8).wrapping_add(8) >> BITS;
    if values.iter().fold(0, |all, v| all | beyond(v)) != 0 {
        // Only a cheating prover has such values.
        let values: Vec<i64> = values.iter().map(|v| 2 * i64::from(*v) + 1).collect();
        odd = rows.map(|row| small_msm(row, &values)).collect();
    }
    [normalize(&odd), plain]
}

/// The tables for commitments to queries of one dimension.
struct QueryBase {
    /// Q_d, which carries the salt.
    salt: FixedBase,
    /// -1/2 of the sum of Q_0 .. Q_(d-1).
    minus_half: G1Affine,
}

/// The stored tables of the dimension that was requested last.
fn query_base(dimension: usize) -> Arc<QueryBase> {
    static LAST: RwLock<Option<(usize, Arc<QueryBase>)>> = RwLock::new(None);
    let lock = |e| std::sync::PoisonError::into_inner(e);
    if let Some((d, known)) = &*LAST.read().unwrap_or_else(lock) {
        if *d == dimension {
            return Arc::clone(known);
        }
    }
    let bases = query_generators(dimension + 1);
    let sum: G1Projective = bases[..dimension].iter().map(|p| p.into_group()).sum();
    let base = Arc::new(QueryBase {
        salt: FixedBase::new(bases[dimension]),
        minus_half: normalize(&[sum * -half()])[0],
    });
    let mut last = LAST
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    *last = Some((dimension, Arc::clone(&base)));
    base
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::vector_generators;
    use ark_ff::AdditiveGroup;

    #[test]
    fn steady_sums_agree_with_plain_ones() {
        let g = vector_generators(60);
        let values: Vec<i8> = (0..20).map(|i| i % 16 - 8).collect();
        let rows = |values: &[i8]| {
            let small: Vec<i64> = values.iter().map(|v| i64::from(*v)).collect();
            let each = g[..60].chunks(20).map(|row| small_msm(row, &small));
            each.collect::<Vec<_>>()
        };
        for values in [&values[..], &[0; 20], &[7; 20], &[8; 20], &[-100; 20]] {
            let [odd, plain] = odd_sums(&g[..60], values);
            let twice = rows(values).into_iter().map(|sum| sum.double());
            let expected = twice.zip(&plain).map(|(sum, plain)| sum + plain);
            assert!(expected.eq(odd), "{values:?}");
            assert!(plain.into_iter().eq(rows(&[1; 20])));
        }
        assert!(odd_sums(&[], &[]).concat().is_empty());
        let base = query_base(5);
        assert!(Arc::ptr_eq(&base, &query_base(5)));
        assert_eq!(base.salt.point, query_generators(6)[5]);
    }
}
