//! The proof of one record of a tenant with pooled listing, and the verification of many records: `docs/scan/pooled-listing.md`.
//!
//! Who verifies records verifies the proof of the document table first, which yields the commitments to the coins of its rows.
//! Each record names the commitments to the listed rows after it, so proofs are made and verified in any order.
use sha2::{Digest, Sha256};

use crate::answer;
use crate::batch::{self, Kind};
use crate::bernoulli::Bernoulli;
use crate::drawn::Distribution;
use crate::engine::{Engine, Plain};
use crate::equation::Equation;
use crate::error::Result;
use crate::group::{decode_points, encode_scalar, G1Affine};
use crate::index::IndexCommitment;
use crate::pooled_listing::{self, PooledListingStatement, Record};
use crate::transcript::{Hash, Oracle, Transcript};
use crate::verifier::Verifier;

/// The constants that policy and window fix for all records of a tenant.
#[derive(Clone, Debug)]
pub struct Constants {
    /// Digest of everything a window fixes: protocol, opening, policy, tenant, and what the proof of its table yields.
    pub window: [u8; 32],
    pub chance: Bernoulli,
    pub rows: usize,
    pub positions_per_row: usize,
    /// The commitments to the row of each position, and to the coin of each row: of the verified proof of the document table.
    pub row: Vec<G1Affine>,
    pub kept: Vec<G1Affine>,
    pub threshold: i64,
    pub listed: usize,
    pub lo: i64,
    pub hi: i64,
    pub lattice: i64,
}

/// Encoded commitments to a tenant's listed rows.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// Before the record, as the tenant's record before it names them.
    pub before: &'a [u8],
    /// After the record, as the record names them.
    pub after: &'a [u8],
}

/// The statement of one record's proof.
pub fn statement<'a>(
    index: &'a IndexCommitment,
    constants: &'a Constants,
    record: &answer::Record,
    before: &'a [G1Affine],
    after: Vec<G1Affine>,
) -> PooledListingStatement<'a> {
    let slot = record.slot;
    let mut hash = Sha256::new().chain_update(b"rag-audit/scan/v1/pooled");
    hash.update(constants.window);
    for x in [&slot.c_seed, &slot.beacon, &slot.slot, &record.context] {
        hash.update(encode_scalar(x));
    }
    PooledListingStatement {
        context: hash.finalize().into(),
        index,
        chance: constants.chance.clone(),
        rows: constants.rows,
        positions_per_row: constants.positions_per_row,
        row: &constants.row,
        kept: &constants.kept,
        before,
        records: vec![Record {
            slot,
            cq: record.cq,
            htopk: record.htopk,
            after,
        }],
        threshold: constants.threshold,
        listed: constants.listed,
        lo: constants.lo,
        hi: constants.hi,
        lattice: constants.lattice,
    }
}

/// Verifies one record's proof.
pub fn verify<E: Engine>(
    index: &IndexCommitment,
    constants: &Constants,
    item: &Item,
) -> Result<()> {
    batch::verify::<_, E>(index, constants, *item)
}

/// A record with its commitments and its proof.
pub type Item<'a> = (answer::Record, Rows<'a>, &'a [u8]);

/// Many records of one tenant with pooled listing.
pub type Batch<O = Hash, E = Plain> = batch::Batch<Constants, O, E>;

impl Kind for Constants {
    type Item<'a> = Item<'a>;

    fn transcript<O: Oracle>(&self, index: &[u8; 32]) -> Transcript<O> {
        let mut t = Transcript::new("pooled batch");
        t.bytes("index", index);
        t.bytes("window", &self.window);
        t.integer("rows", self.rows as u64);
        t.integer("positions per row", self.positions_per_row as u64);
        self.chance.absorb(&mut t);
        t.integer("threshold", self.threshold as u64);
        t.integer("lo", self.lo as u64);
        t.integer("hi", self.hi as u64);
        t.integer("lattice", self.lattice as u64);
        t.integer("listed", self.listed as u64);
        for (label, points) in [("row", &self.row), ("kept", &self.kept)] {
            t.integer("points", points.len() as u64);
            t.points(label, points);
        }
        t
    }

    fn absorb<O: Oracle>(&self, transcript: &mut Transcript<O>, items: &[Item]) {
        for (record, rows, proof) in items {
            record.absorb(transcript);
            for part in [rows.before, rows.after, proof] {
                transcript.bytes("proof", part);
            }
        }
    }

    fn equations(&self) -> usize {
        1
    }

    fn check<E: Engine>(
        &self,
        index: &IndexCommitment,
        (record, rows, proof): &Item,
    ) -> Result<Vec<Equation>> {
        let before = decode_points::<E>(rows.before)?;
        let after = decode_points::<E>(rows.after)?;
        let statement = statement(index, self, record, &before, after);
        Ok(vec![pooled_listing::check::<Verifier<Hash, E>>(
            &statement, proof,
        )?])
    }
}
