//! The statement of the proof of a list, and the sizes that follow from it: `docs/scan/randomized-response.md`.
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
use crate::hidden_query::SCORE;
use crate::index::{check_dimension, IndexCommitment, MAX_CAPACITY, MAX_DIMENSION};
use crate::nibbles::{NIBBLE_VARIABLES, TAG_NIBBLE, TAG_VECTOR};
use crate::numbers::{log2_ceil, NO_WRAP_BITS};
use crate::transcript::{Oracle, Transcript};

pub const TAG_TOPK: u64 = 5;
pub const TAG_RELEVANT: u64 = 2;
/// Bits of an element of htopk's list.
pub const BITS_PER_ELEMENT: usize = 252;
/// Largest number of listed positions.
pub const MAX_LISTED: usize = 1024;
/// The largest value of every public parameter.
pub const LIMITS: [u64; 3] = [MAX_CAPACITY as u64, MAX_DIMENSION as u64, MAX_LISTED as u64];

/// The constants that determine the positions of values in a proof: see [`crate::protocol`].
pub const RULES: [u64; 6] = [
    TAG_VECTOR,
    TAG_TOPK,
    TAG_RELEVANT,
    TAG_NIBBLE,
    NIBBLE_VARIABLES as u64,
    BITS_PER_ELEMENT as u64,
];

const _: () = {
    // A packed element is one integer, and the sums of a list are far below r.
    assert!(BITS_PER_ELEMENT <= NO_WRAP_BITS);
    assert!(MAX_CAPACITY as u64 + 2 * (MAX_LISTED as u64) < 1 << 32);
};

/// The statement of the proof of a list. The verifier rebuilds every value and reads none from a file.
#[derive(Clone)]
pub struct RandomizedResponseStatement<'a> {
    /// Digest of everything else: window, record, proofs.
    pub context: [u8; 32],
    pub index: &'a IndexCommitment,
    /// Commitments to bits: the positions that win by chance in this slot and the sampled positions of the window, both with
    /// their proofs; the disclosed set before this record, and after it.
    pub flips: &'a [G1Affine],
    pub sample: &'a [G1Affine],
    pub disclosed: &'a [G1Affine],
    pub after: &'a [G1Affine],
    pub cq: Fr,
    pub htopk: Fr,
    /// The least score of a relevant position.
    pub threshold: i64,
    /// The most positions that are listed.
    pub maximum: usize,
}

impl RandomizedResponseStatement<'_> {
    pub fn check(&self) -> Result<()> {
        check_constants(self.index, self.threshold, self.maximum)?;
        for (name, rows) in self.columns() {
            check_rows(name, rows.len(), self.index)?;
        }
        Ok(())
    }

    pub fn columns(&self) -> [(&'static str, &[G1Affine]); 4] {
        [
            ("chance", self.flips),
            ("kept", self.sample),
            ("held before", self.disclosed),
            ("held after", self.after),
        ]
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new("listing");
        t.bytes("context", &self.context);
        t.bytes("index", &self.index.digest());
        t.integer("capacity", self.index.layout.capacity as u64);
        t.integer("dimension", self.index.dimension as u64);
        t.integer("threshold", self.threshold as u64);
        t.integer("most", self.maximum as u64);
        for (name, rows) in self.columns() {
            t.integer("rows", rows.len() as u64);
            rows.iter().for_each(|point| t.point(name, point));
        }
        t.scalar("cq", &self.cq);
        t.scalar("htopk", &self.htopk);
        t
    }

    /// Elements of htopk's list that hold the bits of all positions.
    pub fn elements(&self) -> usize {
        self.index.layout.capacity.div_ceil(BITS_PER_ELEMENT)
    }

    /// The number of bits of the difference between the maximum length and a list's length.
    pub fn room_bits(&self) -> usize {
        log2_ceil(self.maximum + 1)
    }
}

/// Refuses constants of a policy beyond their ranges.
pub fn check_constants(index: &IndexCommitment, threshold: i64, maximum: usize) -> Result<()> {
    check_dimension(index.dimension)?;
    let largest = SCORE * index.dimension as i64;
    if !(1..=largest).contains(&threshold) {
        return Err(Error::invalid(
            "threshold",
            format!("1 to {largest}"),
            threshold,
        ));
    }
    let largest = MAX_LISTED.min(index.layout.capacity);
    if !(1..=largest).contains(&maximum) {
        return Err(Error::invalid(
            "listed positions",
            format!("1 to {largest}"),
            maximum,
        ));
    }
    Ok(())
}

pub fn check_rows(name: &str, actual: usize, index: &IndexCommitment) -> Result<()> {
    let expected = index.layout.rows();
    if actual == expected {
        return Ok(());
    }
    Err(Error::invalid(
        name,
        format!("{expected} commitments"),
        format!("{actual} commitments"),
    ))
}

/// The columns of the run's own, in the order in which they are committed to.
pub struct Columns<T> {
    /// 1 where the score reaches the threshold.
    pub relevant: T,
    /// 1 for a listed position.
    pub listed: T,
    /// How often each row of a table is looked up.
    pub score_rows: T,
    pub nibbles: T,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        vec![self.relevant, self.listed, self.score_rows, self.nibbles]
    }

    pub fn named(all: Vec<T>) -> Self {
        let mut all = all.into_iter();
        let mut next = || all.next().expect("one for each name");
        Self {
            relevant: next(),
            listed: next(),
            score_rows: next(),
            nibbles: next(),
        }
    }
}
