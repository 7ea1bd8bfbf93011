//! The prover's sums over a published table.
use ark_ff::AdditiveGroup;
use rayon::prelude::*;

use crate::group::Fr;
use crate::index::COMPONENT;

/// sum of factors_j column_j of the table, by row: one addition an entry.
pub(crate) fn functional(rows: &[i8], factors: &[Fr], size: usize) -> Vec<Fr> {
    let multiples: Vec<[Fr; COMPONENT as usize + 1]> = factors
        .iter()
        .map(|f| std::array::from_fn(|k| *f * Fr::from(k as u64)))
        .collect();
    let mut out: Vec<Fr> = rows
        .par_chunks(factors.len())
        .map(|row| {
            let mut sum = Fr::ZERO;
            for (v, multiples) in row.iter().zip(&multiples) {
                let multiple = multiples[usize::from(v.unsigned_abs())];
                if *v < 0 {
                    sum -= multiple;
                } else {
                    sum += multiple;
                }
            }
            sum
        })
        .collect();
    out.resize(size, Fr::ZERO);
    out
}
