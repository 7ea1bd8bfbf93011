//! What a proof of several answers is about, and the sizes that follow: `docs/scan/together.md`.
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
use crate::index::IndexCommitment;
use crate::query::statement::{check_answer, key_limbs};
use crate::together::{check_together, row_variables};
use crate::transcript::{Oracle, Transcript};
use ragaudit_relation::window::ScoreWindow;

/// The tag of a record's own table of positions and noised scores: so much more than the record's number.
pub const TAG_SELECTED: u64 = 1 << 10;

/// What decides where values stand, beside what single answers have: see [`crate::protocol`].
pub const RULES: [u64; 1] = [TAG_SELECTED];

/// What a proof of several answers of one tenant is about. Every value is rebuilt by the verifier, none read from a file.
#[derive(Clone)]
pub struct QueriesStatement<'a> {
    /// Digest of everything else that the records say, and of their certificate.
    pub context: [u8; 32],
    pub index: &'a IndexCommitment,
    /// The verified certificate's commitments to each record's z; none of any where there are no gains.
    pub noise: &'a [Vec<G1Affine>],
    pub gains: Vec<u32>,
    /// cq and htopk of each record.
    pub records: Vec<[Fr; 2]>,
    pub listed: usize,
    pub lo: i64,
    pub hi: i64,
    pub lattice: i64,
}

impl QueriesStatement<'_> {
    pub fn check(&self) -> Result<ScoreWindow> {
        let (records, capacity) = (self.records.len(), self.index.layout.capacity);
        check_answer(self.index, &self.gains, self.listed)?;
        check_together(records, capacity, self.gains.len())?;
        let of_noise = match self.gains.is_empty() {
            true => 0,
            false => self.records.len(),
        };
        let length = 1 << self.row_variables();
        let rows = self.index.layout.capacity.div_ceil(length);
        let wrong = self.noise.iter().find(|noise| noise.len() != rows);
        if self.noise.len() != of_noise || wrong.is_some() {
            let found = wrong.map_or(rows, Vec::len);
            return Err(Error::invalid(
                "noise",
                format!("{of_noise} columns of {rows} commitments"),
                format!("{} columns, one of {found}", self.noise.len()),
            ));
        }
        Ok(ScoreWindow::new(self.lo, self.hi, self.lattice)?)
    }

    /// Of the rows that all columns but the scores are committed to in.
    pub fn row_variables(&self) -> usize {
        row_variables(self.index.layout, self.records.len())
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new("queries");
        t.bytes("context", &self.context);
        t.bytes("index", &self.index.digest());
        t.integer("capacity", self.index.layout.capacity as u64);
        t.integer("dimension", self.index.dimension as u64);
        t.integer("gain count", self.gains.len() as u64);
        for gain in &self.gains {
            t.integer("gain", u64::from(*gain));
        }
        t.integer("lo", self.lo as u64);
        t.integer("hi", self.hi as u64);
        t.integer("lattice", self.lattice as u64);
        t.integer("listed", self.listed as u64);
        t.integer("record count", self.records.len() as u64);
        t.integer("noise columns", self.noise.len() as u64);
        for point in self.noise.iter().flatten() {
            t.point("noise", point);
        }
        for [cq, htopk] in &self.records {
            t.scalar("cq", cq);
            t.scalar("htopk", htopk);
        }
        t
    }

    /// As [`key_limbs`].
    pub fn key_limbs(&self) -> usize {
        key_limbs(self.lattice, &self.gains, self.index.layout.variables)
    }
}

/// The columns, in the order in which they are committed to.
pub struct Columns<T> {
    pub records: Vec<RecordColumns<T>>,
    /// How often each row of a table is looked up.
    pub score_rows: T,
    pub range: T,
    pub nibbles: T,
}

/// Those of one record.
#[derive(Clone)]
pub struct RecordColumns<T> {
    /// Scores on the lattice.
    pub quantised: T,
    /// 1 for a listed position.
    pub selected: T,
    /// Limbs of what a key has above the least listed one, or lacks below it.
    pub distance: Vec<T>,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = Vec::new();
        for record in self.records {
            out.extend([record.quantised, record.selected]);
            out.extend(record.distance);
        }
        out.extend([self.score_rows, self.range, self.nibbles]);
        out
    }

    pub fn named(all: Vec<T>, records: usize, key_limbs: usize) -> Self {
        let mut all = all.into_iter();
        let mut next = || all.next().expect("one for each name");
        let record = |_| RecordColumns {
            quantised: next(),
            selected: next(),
            distance: (0..key_limbs).map(|_| next()).collect(),
        };
        Self {
            records: (0..records).map(record).collect(),
            score_rows: next(),
            range: next(),
            nibbles: next(),
        }
    }
}
