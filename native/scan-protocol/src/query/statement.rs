//! The statement of a proof of answers, and the sizes that follow from it: `docs/scan/query.md`, `docs/scan/batch.md`.
use ragaudit_relation::dgs::{check_gains, BINS, MAX_GAINS, MAX_GAIN_RATIO};
use ragaudit_relation::window::{ScoreWindow, MAX_LATTICE};
use ragaudit_relation::NIBBLES_PER_ELEMENT;

use crate::batch_size::{check_batch_size, row_variables};
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
use crate::index::{check_dimension, IndexCommitment, MAX_CAPACITY};
use crate::nibbles::{NIBBLE_VARIABLES, TAG_NIBBLE, TAG_VECTOR};
use crate::noise::absorb_gains;
use crate::numbers::NO_WRAP_BITS;
use crate::ranges::LIMB_BITS;
use crate::transcript::{Oracle, Transcript};

pub const TAG_TOPK: u64 = 5;
pub const TAG_SCORE: u64 = 2;
/// The tag of the first record's table of positions and noised scores; the tag of record k's table is larger by k.
pub const TAG_SELECT: u64 = 1 << 10;
/// Largest number of listed positions.
pub const MAX_LISTED: usize = 1024;

/// The constants that determine the positions of values in a proof: see [`crate::protocol`].
pub const RULES: [u64; 6] = [
    TAG_VECTOR,
    TAG_TOPK,
    TAG_SCORE,
    TAG_NIBBLE,
    TAG_SELECT,
    NIBBLE_VARIABLES as u64,
];

/// The statement of a proof of answers of one tenant. The verifier rebuilds every value and reads none from a file.
#[derive(Clone)]
pub struct QueryStatement<'a> {
    /// Digest of everything else that the records say, and of their noise proof: protocol, opening, policy, tenant, and of
    /// each record the account, its count, beacon, seed commitment, slot and hq.
    pub context: [u8; 32],
    pub index: &'a IndexCommitment,
    /// The verified noise proof's commitments to each record's z; none of any where there are no gains, and so no noise.
    pub noise: Vec<&'a [G1Affine]>,
    /// The commitments to the bits of a sampling proof: the positions that score, where not all do.
    pub sample: Option<&'a [G1Affine]>,
    pub gains: Vec<u32>,
    /// cq and htopk of each record.
    pub records: Vec<[Fr; 2]>,
    pub listed: usize,
    pub lo: i64,
    pub hi: i64,
    pub lattice: i64,
}

impl QueryStatement<'_> {
    pub fn check(&self) -> Result<ScoreWindow> {
        check_answer(self.index, &self.gains, self.listed)?;
        let layout = self.index.layout;
        check_batch_size(
            self.records.len(),
            layout.capacity,
            self.gains.len(),
            self.sample.is_some(),
        )?;
        let of_noise = match self.gains.is_empty() {
            true => 0,
            false => self.records.len(),
        };
        let rows = layout.capacity.div_ceil(1 << self.row_variables());
        let wrong = self.noise.iter().find(|noise| noise.len() != rows);
        if self.noise.len() != of_noise || wrong.is_some() {
            let actual = wrong.map_or(rows, |noise| noise.len());
            return Err(Error::invalid(
                "noise",
                format!("{of_noise} columns of {rows} commitments"),
                format!("{} columns, one of {actual}", self.noise.len()),
            ));
        }
        if let Some(sample) = self.sample.filter(|sample| sample.len() != rows) {
            let [expected, actual] = [rows, sample.len()].map(|n| format!("{n} commitments"));
            return Err(Error::invalid("kept", expected, actual));
        }
        Ok(ScoreWindow::new(self.lo, self.hi, self.lattice)?)
    }

    /// The base-2 logarithm of the row length of all columns except the scores.
    pub fn row_variables(&self) -> usize {
        row_variables(self.index.layout, self.records.len())
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new("query");
        t.bytes("context", &self.context);
        t.bytes("index", &self.index.digest());
        t.integer("capacity", self.index.layout.capacity as u64);
        t.integer("dimension", self.index.dimension as u64);
        absorb_gains(&mut t, &self.gains);
        t.integer("lo", self.lo as u64);
        t.integer("hi", self.hi as u64);
        t.integer("lattice", self.lattice as u64);
        t.integer("listed", self.listed as u64);
        t.integer("record count", self.records.len() as u64);
        t.integer("noise columns", self.noise.len() as u64);
        t.points("noise", self.noise.iter().copied().flatten());
        t.integer("kept columns", self.sample.is_some().into());
        t.points("kept", self.sample.unwrap_or_default());
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

/// Refuses an index, gains or a number of listed positions that no answer can be proved for.
pub fn check_answer(index: &IndexCommitment, gains: &[u32], listed: usize) -> Result<()> {
    check_dimension(index.dimension)?;
    if !gains.is_empty() {
        check_gains(gains)?;
    }
    let maximum = MAX_LISTED.min(index.layout.capacity);
    if (1..=maximum).contains(&listed) {
        return Ok(());
    }
    Err(Error::invalid(
        "listed positions",
        format!("1 to {maximum}"),
        listed,
    ))
}

/// Limbs of a difference of keys: |y| is at most lattice + 127 sum of gains.
pub fn key_limbs(lattice: i64, gains: &[u32], variables: usize) -> usize {
    let gains = gains.iter().map(|g| u64::from(*g)).sum();
    key_bits(lattice as u64, gains, variables).div_ceil(LIMB_BITS)
}

/// Bits of a difference of keys.
pub const fn key_bits(lattice: u64, gains: u64, variables: usize) -> usize {
    let reach = lattice + 2 * (BINS as u64 - 1) * gains + 1;
    64 - reach.leading_zeros() as usize + variables
}

const _: () = {
    let (mut gains, mut gain, mut k) = (0, 1, 0);
    while k < MAX_GAINS {
        gains += gain;
        gain *= MAX_GAIN_RATIO as u64;
        k += 1;
    }
    let bits = key_bits(MAX_LATTICE as u64, gains, MAX_CAPACITY.ilog2() as usize);
    assert!(MAX_LATTICE as u64 + (BINS as u64 - 1) * gains < 1 << 25);
    // A prover's keys fit into an i64, and limbs into the field.
    assert!(bits < 63);
    assert!(bits.div_ceil(LIMB_BITS) * LIMB_BITS + 1 < NO_WRAP_BITS);
    assert!(4 * NIBBLES_PER_ELEMENT <= NO_WRAP_BITS);
};

/// The columns, in the order in which they are committed to.
pub struct Columns<T> {
    pub records: Vec<RecordColumns<T>>,
    /// How often each row of a table is looked up.
    pub score_rows: T,
    pub range: T,
    pub nibbles: T,
}

/// The columns of one record.
#[derive(Clone)]
pub struct RecordColumns<T> {
    /// Scores on the lattice.
    pub quantised: T,
    /// The lattice scores of sampled positions, 0 at the others; None if the tenant is not sampled.
    pub scored: Option<T>,
    /// 1 for a listed position.
    pub selected: T,
    /// Limbs of the distance between a key and the least listed key.
    pub distance: Vec<T>,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = Vec::new();
        for record in self.records {
            out.push(record.quantised);
            out.extend(record.scored);
            out.push(record.selected);
            out.extend(record.distance);
        }
        out.extend([self.score_rows, self.range, self.nibbles]);
        out
    }

    pub fn named(all: Vec<T>, records: usize, sampled: bool, key_limbs: usize) -> Self {
        let mut all = all.into_iter();
        let mut next = || all.next().expect("one for each name");
        let record = |_| RecordColumns {
            quantised: next(),
            scored: sampled.then(&mut next),
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
