//! The objects of a run: committed columns, and linear claims about them. `docs/scan/session.md`.
use std::sync::Arc;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{Fr, G1Affine};
use crate::index::{IndexCommitment, Layout};
use crate::mle::{eq_at, Weight};

/// A public bound on a column's values: bits of an unsigned or of a signed integer. Only this bound determines the time of a
/// commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// 0 to 2^bits - 1.
    Unsigned(usize),
    /// -2^(bits - 1) to 2^(bits - 1) - 1.
    Signed(usize),
}

impl Bound {
    /// Every i64.
    pub const ANY: Self = Self::Signed(64);

    /// Integers from 0 to `maximum`.
    pub fn up_to(maximum: usize) -> Self {
        Self::Unsigned((usize::BITS - maximum.leading_zeros()) as usize)
    }

    /// Integers from -`maximum` to `maximum`.
    pub fn within(maximum: usize) -> Self {
        Self::Signed((usize::BITS - maximum.leading_zeros()) as usize + 1)
    }

    pub fn bits(self) -> usize {
        match self {
            Self::Unsigned(bits) | Self::Signed(bits) => bits,
        }
    }

    /// Whether all values are within the bound. An honest prover commits to no other values.
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

/// A column's private side: small integers in rows of equal length, and one blinding for each row.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Opening {
    pub values: Vec<i64>,
    pub blindings: Vec<Fr>,
}

/// A committed column of at most 2^variables small integers; entries beyond its rows are zero.
#[derive(Clone)]
pub struct Column {
    pub variables: usize,
    /// Row commitments; empty for the column that the index link commits to.
    pub rows: Vec<G1Affine>,
    pub opening: Option<Arc<Opening>>,
}

impl Column {
    /// A column over the positions of a layout, from the stored values of an earlier proof. `field` is its name in errors.
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

/// Columns whose rows have 2^row_variables entries each, in a run that commits to columns in longer rows. The run opens them by an
/// argument of their own: `docs/scan/closing.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    pub row_variables: usize,
    pub columns: Vec<ColumnId>,
}

/// A public linear functional on a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Functional {
    Weight(Weight),
    /// Some entries, each with its weight; every other entry has the weight 0.
    Entries(Vec<(usize, Fr)>),
}

impl Functional {
    /// The extension of all entries' weights at `at`.
    pub fn evaluate(&self, at: &[Fr]) -> Fr {
        match self {
            Self::Weight(weight) => weight.evaluate(at),
            Self::Entries(entries) => entries.iter().map(|(x, w)| *w * eq_at(at, *x)).sum(),
        }
    }
}

/// <functional, sum of factors_i columns_i> = value.
pub struct Claim {
    pub functional: Functional,
    pub columns: Vec<(ColumnId, Fr)>,
    pub value: Expr,
}

/// <F, column> = value, with F = sum of factors_j T_j for the columns T_j of a published table, whose commitments have no
/// blinding.
pub struct TableClaim<'a> {
    pub table: &'a IndexCommitment,
    /// One factor for each column of the table.
    pub factors: Vec<Fr>,
    /// F, for a party that has the table itself.
    pub functional: Option<Vec<Fr>>,
    pub column: ColumnId,
    pub value: Expr,
}
