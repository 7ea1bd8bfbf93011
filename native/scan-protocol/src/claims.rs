//! What a run is about: committed columns, and linear claims about them. `docs/scan/session.md`.
use std::sync::Arc;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{Fr, G1Affine};
use crate::index::{IndexCommitment, Layout};
use crate::mle::Weight;

/// What a column's values are, whatever the secrets: bits of an integer from 0 on, or of one with a sign. Public, and the
/// only thing that decides how long a commitment takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// 0 to 2^bits - 1.
    Unsigned(usize),
    /// -2^(bits - 1) to 2^(bits - 1) - 1.
    Signed(usize),
}

impl Bound {
    /// Whatever fits into an i64.
    pub const ANY: Self = Self::Signed(64);

    /// Of integers from 0 to `most`.
    pub fn up_to(most: usize) -> Self {
        Self::Unsigned((usize::BITS - most.leading_zeros()) as usize)
    }

    /// Of integers from -`most` to `most`.
    pub fn within(most: usize) -> Self {
        Self::Signed((usize::BITS - most.leading_zeros()) as usize + 1)
    }

    pub fn bits(self) -> usize {
        match self {
            Self::Unsigned(bits) | Self::Signed(bits) => bits,
        }
    }

    /// Whether all values are within it. An honest prover commits to no others.
    pub fn holds(self, values: &[i64]) -> bool {
        let raise = match self {
            Self::Unsigned(_) => 0,
            Self::Signed(bits) => 1u64 << (bits - 1),
        };
        let beyond = |v: &i64| match self.bits() {
            64 => 0,
            bits => (*v as u64).wrapping_add(raise) >> bits,
        };
        values.iter().fold(0, |all, v| all | beyond(v)) == 0
    }
}

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

impl Column {
    /// A certificate's column over the positions of a layout, from what was kept of it: `field` is what an error calls it.
    pub fn opened(
        field: &str,
        rows: Vec<G1Affine>,
        values: Vec<i64>,
        blindings: Vec<Fr>,
        layout: Layout,
    ) -> Result<Self> {
        if rows.len() != layout.rows()
            || blindings.len() != rows.len()
            || values.len() != layout.capacity
        {
            let count = |rows: usize, blindings: &str, values: usize| {
                format!("{rows} commitments, {blindings} and {values} values")
            };
            return Err(Error::invalid(
                field,
                count(layout.rows(), "as many blindings", layout.capacity),
                count(
                    rows.len(),
                    &format!("{} blindings", blindings.len()),
                    values.len(),
                ),
            ));
        }
        Ok(Self {
            variables: layout.variables,
            rows,
            opening: Some(Arc::new(Opening { values, blindings })),
        })
    }
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
