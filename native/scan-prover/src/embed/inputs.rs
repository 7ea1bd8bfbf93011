//! The inputs of the prover of A1, and the columns' values that it computes from them.
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};
use crate::group::Fr;
use crate::index::COMPONENT;
use crate::numbers::{from_small, log2_ceil, pad};
use crate::prover::columns::count;
use crate::vector::{self, Claimed};
use ragaudit_scan_protocol::embed::statement::*;

/// The private side.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Query {
    pub tokens: Vec<u32>,
    pub query_salt: Fr,
    pub vector_salt: Fr,
}

/// The prover's columns and values.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    /// One token for each place, 0 in unused places.
    pub(crate) tokens: Vec<i64>,
    pub(crate) used: Vec<i64>,
    /// The multiplicity of each row of the table; row V counts the unused places.
    pub(crate) histogram: Vec<i64>,
    pub(crate) vector: vector::Witness,
}

impl Witness {
    pub(super) fn new(statement: &EmbedStatement, rows: &[i8], query: &Query) -> Result<Self> {
        let bounds = statement.check()?;
        let (vocabulary, dimension) = (statement.vocabulary(), statement.table.dimension);
        if rows.len() != vocabulary * dimension {
            let expected = format!("{vocabulary} rows of {dimension} components");
            let actual = format!("{} components", rows.len());
            return Err(Error::invalid("table", expected, actual));
        }
        if let Some(bad) = rows.iter().find(|v| v.unsigned_abs() > COMPONENT as u8) {
            let expected = format!("components of -{COMPONENT} to {COMPONENT}");
            return Err(Error::invalid("table", expected, bad));
        }
        let number = query.tokens.len();
        if !(1..=statement.tokens).contains(&number) {
            let expected = format!("1 to {} tokens", statement.tokens);
            return Err(Error::invalid("tokens", expected, number));
        }
        let mut tokens = vec![0; statement.tokens];
        let mut used = vec![0; statement.tokens];
        let mut histogram = vec![0; vocabulary + 1];
        histogram[vocabulary] = (statement.tokens - number) as i64;
        let mut sums = vec![0; dimension];
        if let Some(bad) = query.tokens.iter().find(|t| **t as usize >= vocabulary) {
            let expected = format!("numbers below {vocabulary}");
            return Err(Error::invalid("tokens", expected, bad));
        }
        // The number of rows that are read and added does not depend on the number of tokens; the rows of unused places have a
        // zero mask.
        for place in 0..statement.tokens {
            let here = (place < number) as i64;
            let token = query.tokens.get(place).map_or(0, |t| *t as usize);
            (tokens[place], used[place]) = (token as i64, here);
            histogram[token] += here;
            let mask = std::hint::black_box(-here);
            let row = &rows[token * dimension..][..dimension];
            sums.iter_mut()
                .zip(row)
                .for_each(|(e, v)| *e += i64::from(*v) & mask);
        }
        Ok(Self {
            tokens,
            used,
            histogram,
            vector: vector::Witness::new(sums, statement.norm_factor, &bounds)?,
        })
    }

    /// The values of the prover's columns.
    pub(super) fn columns(
        &self,
        claimed: &Claimed,
        statement: &EmbedStatement,
        bounds: &Bounds,
    ) -> Columns<Vec<i64>> {
        let columns = self
            .vector
            .columns(log2_ceil(statement.table.dimension), bounds);
        let mut limbs = vec![0; 1 << LIMB_BITS];
        for limb in self.vector.limbs(&columns, claimed, bounds).iter() {
            count(&mut limbs, *limb);
        }
        Columns {
            histogram: pad(&self.histogram, statement.table.layout.variables),
            limbs,
            steps: vector::Witness::steps(&columns),
            vector: columns,
        }
    }

    /// In the order that the protocol sends them.
    pub(super) fn hidden(&self, query: &Query, claimed: &Claimed, bounds: &Bounds) -> Vec<Fr> {
        let mut out = vec![query.query_salt, query.vector_salt];
        let places = self.tokens.iter().chain(&self.used);
        out.extend(places.map(|v| from_small(*v)));
        out.extend(self.vector.hidden(claimed, bounds));
        out
    }
}
