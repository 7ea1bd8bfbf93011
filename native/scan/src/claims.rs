//! What a run is about: committed columns, and linear claims about them. `docs/scan/session.md`.
use std::sync::Arc;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::expr::Expr;
use crate::group::{Fr, G1Affine};
use crate::index::IndexCommitment;
use crate::mle::Weight;

/// A column's private side: small integers in rows of equal length, each row with its blinding.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Opening {
    pub values: Vec<i64>,
    pub blindings: Vec<Fr>,
}

/// A committed column of at most 2^variables small integers, zero beyond its rows.
#[derive(Clone)]
pub struct Column {
    pub variables: usize,
    /// Row commitments; none for the column that the index link commits to.
    pub rows: Vec<G1Affine>,
    pub opening: Option<Arc<Opening>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnId(pub usize);

/// <weight, sum of factors_i columns_i> = value.
pub struct Claim {
    pub weight: Weight,
    pub columns: Vec<(ColumnId, Fr)>,
    pub value: Expr,
}

/// <F, column> = value, where F = sum of factors_j T_j for the columns T_j of a published table, committed to without
/// blinding.
pub struct TableClaim<'a> {
    pub table: &'a IndexCommitment,
    /// One for each column of the table.
    pub factors: Vec<Fr>,
    /// F, of whoever has the table itself.
    pub functional: Option<Vec<Fr>>,
    pub column: ColumnId,
    pub value: Expr,
}
