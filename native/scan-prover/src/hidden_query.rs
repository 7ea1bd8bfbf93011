//! A prover's query, and the multiplicities of its lookups.
pub use ragaudit_scan_protocol::hidden_query::*;

use crate::index::COMPONENT;
use crate::nibbles::NIBBLE_VARIABLES;
use crate::numbers::{log2_ceil, pad};
use crate::prover::columns::count;

/// How often each row of the components' table is looked up.
pub(crate) fn count_components(components: &[i8]) -> Vec<i64> {
    let mut rows = vec![0; 1 << NIBBLE_VARIABLES];
    let values: Vec<i64> = components.iter().map(|v| i64::from(*v)).collect();
    pad(&values, log2_ceil(values.len()))
        .iter()
        .for_each(|v| count(&mut rows, v + i64::from(COMPONENT)));
    rows
}

/// How often each row of the table of scores is looked up.
pub(crate) fn count_scores(scores: &[i64], dimension: usize) -> Vec<i64> {
    let mut rows = vec![0; 1 << score_variables(dimension)];
    let maximum = SCORE * dimension as i64;
    scores.iter().for_each(|s| count(&mut rows, s + maximum));
    rows
}
