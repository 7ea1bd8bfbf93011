//! The proof of one record of a tenant with randomized response, and the verification of many records: `docs/scan/randomized-response.md`.
//!
//! The proof of the slot's Bernoulli bits is verified in the same sum or separately, and the proof of the sampled positions
//! separately. The statement of a record includes the digest of the former in its context.
use sha2::{Digest, Sha256};

use crate::answer::{Record, Slot};
use crate::batch::{self, Kind};
use crate::coins::{CoinStatement, Coins};
use crate::drawn;
use crate::engine::{Engine, Plain};
use crate::equation::Equation;
use crate::error::Result;
use crate::group::{decode_points, encode_scalar, G1Affine};
use crate::index::IndexCommitment;
use crate::listing::{check_listing, ListingStatement};
use crate::transcript::{Hash, Oracle, Transcript};
use crate::verifier::Verifier;

/// The constants that policy and window fix for all lists of a tenant.
#[derive(Clone, Debug)]
pub struct Constants {
    /// Digest of everything a window fixes: protocol, opening, policy, tenant.
    pub window: [u8; 32],
    /// The commitments of the verified sampling proof.
    pub kept: Vec<G1Affine>,
    pub threshold: i64,
    pub most: usize,
    /// The parameters of the slots' Bernoulli bits, if records come with the proofs of these bits; None if the caller verifies
    /// these proofs separately.
    pub chance: Option<Chance>,
}

/// The parameters of the Bernoulli bits of all slots of a tenant.
#[derive(Clone, Debug)]
pub struct Chance {
    /// Digest of everything else that the coins are of.
    pub context: [u8; 32],
    /// A coin is 1 with this probability, over 2^40.
    pub bound: u64,
}

impl Chance {
    pub fn statement(&self, slot: &Slot, capacity: usize) -> CoinStatement {
        let coins = Coins { bound: self.bound };
        CoinStatement::single(self.context, *slot, capacity, coins)
    }
}

/// Encoded commitments to the bits of one record.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// The positions that win by chance: the slot's proof, or the commitments of a verified proof.
    pub chance: &'a [u8],
    /// The disclosed set of the account before the record, as the record before it states it.
    pub held: &'a [u8],
    /// The disclosed set after the record.
    pub after: &'a [u8],
}

pub fn statement<'a>(
    index: &'a IndexCommitment,
    constants: &'a Constants,
    record: &Record,
    [chance, held, after]: [&'a [G1Affine]; 3],
) -> ListingStatement<'a> {
    let Slot {
        c_seed,
        beacon,
        slot,
    } = &record.slot;
    let mut hash = Sha256::new().chain_update(b"rag-audit/scan/v1/list");
    hash.update(constants.window);
    for x in [c_seed, beacon, slot, &record.context] {
        hash.update(encode_scalar(x));
    }
    ListingStatement {
        context: hash.finalize().into(),
        index,
        chance,
        kept: &constants.kept,
        held,
        after,
        cq: record.cq,
        htopk: record.htopk,
        threshold: constants.threshold,
        most: constants.most,
    }
}

/// A record's proof, and its slot's certificate if it comes with it, as sums that have to vanish.
fn check<E: Engine>(
    index: &IndexCommitment,
    constants: &Constants,
    (record, rows, proof): &Item,
) -> Result<Vec<Equation>> {
    let mut equations = Vec::with_capacity(constants.equations());
    let chance = match &constants.chance {
        None => decode_points::<E>(rows.chance)?,
        Some(chance) => {
            let statement = chance.statement(&record.slot, index.layout.capacity);
            let (columns, equation) =
                drawn::check::<Verifier<Hash, E>, Coins>(&statement, rows.chance)?;
            equations.push(equation);
            columns[0].rows.clone()
        }
    };
    let (held, after) = (
        decode_points::<E>(rows.held)?,
        decode_points::<E>(rows.after)?,
    );
    let statement = statement(index, constants, record, [&chance, &held, &after]);
    equations.push(check_listing::<Verifier<Hash, E>>(&statement, proof)?);
    Ok(equations)
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
pub type Item<'a> = (Record, Rows<'a>, &'a [u8]);

/// Many records of one listing tenant.
pub type Batch<O = Hash, E = Plain> = batch::Batch<Constants, O, E>;

impl Kind for Constants {
    type Item<'a> = Item<'a>;

    fn transcript<O: Oracle>(&self, index: &[u8; 32]) -> Transcript<O> {
        let mut transcript = Transcript::new("list batch");
        transcript.bytes("index", index);
        transcript.bytes("window", &self.window);
        transcript.integer("rows", self.kept.len() as u64);
        for point in &self.kept {
            transcript.point("kept", point);
        }
        transcript.integer("threshold", self.threshold as u64);
        transcript.integer("most", self.most as u64);
        // Absorbs nothing if proofs of Bernoulli bits are verified separately.
        if let Some(chance) = &self.chance {
            transcript.bytes("chance context", &chance.context);
            transcript.integer("chance bound", chance.bound);
        }
        transcript
    }

    fn absorb<O: Oracle>(&self, transcript: &mut Transcript<O>, items: &[Item]) {
        for (record, rows, proof) in items {
            record.absorb(transcript);
            for part in [rows.chance, rows.held, rows.after, proof] {
                transcript.bytes("proof", part);
            }
        }
    }

    fn equations(&self) -> usize {
        1 + usize::from(self.chance.is_some())
    }

    fn check<E: Engine>(&self, index: &IndexCommitment, item: &Item) -> Result<Vec<Equation>> {
        check::<E>(index, self, item)
    }
}
