//! The inputs of the prover of a list, and the values that follow from them.
use std::sync::Arc;

use ark_ff::{BigInt, PrimeField};
use ragaudit_scan_protocol::prover::Blindings;
use ragaudit_scan_protocol::randomized_response::Private;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::claims::{Bound, Column, Opening};
use crate::engine::Fast;
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
use crate::hidden_query::{count_components, count_scores, HiddenQuery, SCORE};
use crate::index::{IndexCommitment, IndexKey, Layout};
use crate::numbers::from_small;
use crate::prover::columns;
use ragaudit_scan_protocol::randomized_response::statement::*;

/// The private side of a list.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct ListWitness {
    /// int4 components.
    pub query: Vec<i8>,
    pub query_salt: Fr,
    /// The salt of htopk.
    pub list_salt: Fr,
    /// The score of every position, by the rows of the index commitment.
    pub scores: Vec<i64>,
}

impl ListWitness {
    pub(super) fn hidden_query(&self) -> HiddenQuery<'_> {
        HiddenQuery {
            components: &self.query,
            salt: self.query_salt,
        }
    }
}

/// The columns of bits that a statement has commitments to, with their openings.
#[derive(Clone, Copy)]
pub struct Bits<'a> {
    pub flips: &'a Column,
    pub sample: &'a Column,
    pub disclosed: &'a Column,
}

/// The resulting values of all positions of a list.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub struct Outcome {
    pub(super) relevant: Vec<i64>,
    pub(super) listed: Vec<i64>,
    /// 1 up to the position at which the list ends.
    pub(super) within: Vec<i64>,
    pub(super) count: i64,
    pub(crate) after: Vec<i64>,
}

impl Outcome {
    /// The steps do not depend on the listed positions.
    pub fn new(
        index: &IndexCommitment,
        (threshold, maximum): (i64, usize),
        witness: &ListWitness,
        bits: &Bits,
    ) -> Result<Self> {
        check_constants(index, threshold, maximum)?;
        let (capacity, dimension) = (index.layout.capacity, index.dimension);
        if witness.scores.len() != capacity {
            let actual = format!("{} scores", witness.scores.len());
            return Err(Error::invalid(
                "scores",
                format!("{capacity} scores"),
                actual,
            ));
        }
        if witness.query.len() != dimension {
            return Err(Error::invalid(
                "query",
                format!("{dimension} components"),
                format!("{} components", witness.query.len()),
            ));
        }
        let largest = SCORE * dimension as i64;
        if witness.scores.iter().any(|s| s.abs() > largest) {
            return Err(Error::Unsatisfied(format!(
                "the magnitude of a score is above {largest}"
            )));
        }
        let flips = values_of("chance", bits.flips, capacity)?;
        let sample = values_of("kept", bits.sample, capacity)?;
        let disclosed = values_of("held before", bits.disclosed, capacity)?;
        let mut out = Self::default();
        let mut left = maximum as i64;
        for (i, score) in witness.scores.iter().enumerate() {
            // The top bit of a difference of small numbers shows the larger one.
            let relevant = 1 + ((score - threshold) >> 63);
            let within = 1 + ((left - 1) >> 63);
            let listed = (flips[i] | (relevant & sample[i] & (1 - disclosed[i]))) & within;
            left -= listed;
            out.relevant.push(relevant);
            out.within.push(within);
            out.listed.push(listed);
            out.after.push(disclosed[i] | listed);
        }
        out.count = maximum as i64 - left;
        Ok(out)
    }

    /// The position at which the list ends: of its last winner if there are as many as there may be, the last one of all
    /// otherwise.
    pub(super) fn last(&self) -> i64 {
        self.within.iter().sum::<i64>() - 1
    }

    /// The elements of htopk's list: a bit a position.
    pub fn packed(&self) -> Vec<Fr> {
        let run = |bits: &[i64]| {
            let mut limbs = [0u64; 4];
            for (i, bit) in bits.iter().enumerate() {
                limbs[i / 64] |= (*bit as u64 & 1) << (i % 64);
            }
            Fr::from_bigint(BigInt::new(limbs)).expect("252 bits are below the modulus")
        };
        self.listed.chunks(BITS_PER_ELEMENT).map(run).collect()
    }
}

/// The bits of a column's positions.
fn values_of<'a>(name: &str, column: &'a Column, capacity: usize) -> Result<&'a [i64]> {
    let opening = column.opening.as_ref();
    let values = opening.and_then(|o| o.values.get(..capacity));
    let values = values.ok_or_else(|| {
        Error::Unsatisfied(format!(
            "the opening of the column \"{name}\" is incomplete"
        ))
    })?;
    if Bound::Unsigned(1).holds(values) {
        Ok(values)
    } else {
        Err(Error::Unsatisfied(format!(
            "a value of the column \"{name}\" is no bit"
        )))
    }
}

/// A column of bits with its commitments. The caller never uses the blindings for other data.
pub fn bit_column(layout: Layout, bits: Vec<i64>, blindings: Vec<Fr>) -> Result<Column> {
    let bound = Bound::Unsigned(1);
    if !bound.holds(&bits) {
        return Err(Error::invalid("bits", "0 and 1", "another value"));
    }
    let secret = columns::Secret {
        values: &bits,
        blindings: &blindings,
        bound,
    };
    let rows = columns::commit(&[secret], 1 << layout.row_variables);
    let rows = rows.into_iter().next().unwrap_or_default();
    Column::opened("bits", rows, bits, blindings, layout)
}

/// A column of bits with earlier commitments.
pub fn committed_bits(
    layout: Layout,
    rows: Vec<G1Affine>,
    bits: Vec<i64>,
    blindings: Vec<Fr>,
) -> Result<Column> {
    Column::opened("bits", rows, bits, blindings, layout)
}

/// See [`ragaudit_scan_protocol::randomized_response::nothing_disclosed`].
pub fn nothing_disclosed(layout: Layout) -> Column {
    ragaudit_scan_protocol::randomized_response::nothing_disclosed::<Fast>(layout)
}

/// The hidden values of a run, in the order of sending: htopk's salt and packed bits, the number of listed positions, the bits
/// of the last place, and the bits of the difference between the maximum length and the list's length.
pub(super) fn hidden_values(
    statement: &RandomizedResponseStatement,
    witness: &ListWitness,
    outcome: &Outcome,
) -> Vec<Fr> {
    let bits = |x: i64, count: usize| (0..count).map(move |k| Fr::from((x >> k & 1) as u8));
    let mut out = vec![witness.list_salt];
    out.extend(outcome.packed());
    out.truncate(1 + statement.elements());
    out.push(from_small(outcome.count));
    out.extend(bits(outcome.last(), statement.index.layout.variables));
    let lacking = statement.maximum as i64 - outcome.count;
    out.extend(bits(lacking, statement.room_bits()));
    out
}

/// The private inputs of one run.
pub(super) struct Secret<'a> {
    pub(super) witness: &'a ListWitness,
    pub(super) outcome: &'a Outcome,
    pub(super) hidden: Vec<Fr>,
    /// In the order of [`RandomizedResponseStatement::columns`].
    pub(super) openings: [&'a Arc<Opening>; 4],
    pub(super) key: &'a IndexKey,
}

impl Secret<'_> {
    /// The private values in the protocol's form.
    pub(super) fn private<'s>(
        &'s self,
        statement: &RandomizedResponseStatement,
        index: Blindings<'s>,
    ) -> Private<'s> {
        let columns = Columns {
            relevant: self.outcome.relevant.clone(),
            listed: self.outcome.listed.clone(),
            score_rows: count_scores(&self.witness.scores, statement.index.dimension),
            nibbles: count_components(&self.witness.query),
        };
        Private {
            hidden_query: self.witness.hidden_query(),
            scores: Arc::new(Opening {
                values: self.witness.scores.clone(),
                blindings: Vec::new(),
            }),
            openings: self.openings.map(Arc::clone),
            columns: columns.in_order(),
            hidden: &self.hidden,
            within: &self.outcome.within,
            index,
        }
    }
}

impl Drop for Secret<'_> {
    fn drop(&mut self) {
        self.hidden.zeroize();
    }
}
