//! The proof of one record of a tenant with randomized response, and the verification of many records: `docs/scan/randomized-response.md`.
//!
//! The proof of the slot's Bernoulli bits is verified in the same sum or separately, and the proof of the sampled positions
//! separately. The statement of a record includes the digest of the former in its context.
use sha2::{Digest, Sha256};

use crate::answer::{Record, Slot};
use crate::batch::{self, Kind};
use crate::bernoulli::{Bernoulli, BernoulliStatement};
use crate::drawn;
use crate::engine::{Engine, Plain};
use crate::equation::Equation;
use crate::error::Result;
use crate::group::{decode_points, encode_scalar, G1Affine};
use crate::index::IndexCommitment;
use crate::randomized_response::{check_randomized_response, RandomizedResponseStatement};
use crate::transcript::{Hash, Oracle, Transcript};
use crate::verifier::Verifier;

/// The constants that policy and window fix for all lists of a tenant.
#[derive(Clone, Debug)]
pub struct Constants {
    /// Digest of everything a window fixes: protocol, opening, policy, tenant.
    pub window: [u8; 32],
    /// The commitments of the verified sampling proof.
    pub sample: Vec<G1Affine>,
    pub threshold: i64,
    pub maximum: usize,
    /// The parameters of the slots' Bernoulli bits, if records come with the proofs of these bits; None if the caller verifies
    /// these proofs separately.
    pub flip_probability: Option<FlipProbability>,
}

/// The parameters of the Bernoulli bits of all slots of a tenant.
#[derive(Clone, Debug)]
pub struct FlipProbability {
    /// Digest of everything else that the Bernoulli bits are of.
    pub context: [u8; 32],
    /// A bit is 1 with this probability, over 2^40.
    pub bound: u64,
}

impl FlipProbability {
    pub fn statement(&self, slot: &Slot, capacity: usize) -> BernoulliStatement {
        let bernoulli = Bernoulli { bound: self.bound };
        BernoulliStatement::single(self.context, *slot, capacity, bernoulli)
    }
}

/// Encoded commitments to the bits of one record.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// The positions that win by chance: the slot's proof, or the commitments of a verified proof.
    pub flips: &'a [u8],
    /// The disclosed set of the account before the record, as the record before it states it.
    pub disclosed: &'a [u8],
    /// The disclosed set after the record.
    pub after: &'a [u8],
}

pub fn statement<'a>(
    index: &'a IndexCommitment,
    constants: &'a Constants,
    record: &Record,
    [flips, disclosed, after]: [&'a [G1Affine]; 3],
) -> RandomizedResponseStatement<'a> {
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
    RandomizedResponseStatement {
        context: hash.finalize().into(),
        index,
        flips,
        sample: &constants.sample,
        disclosed,
        after,
        cq: record.cq,
        htopk: record.htopk,
        threshold: constants.threshold,
        maximum: constants.maximum,
    }
}

/// A record's proof, and its slot's proof if it comes with it, as sums that have to vanish.
fn check<E: Engine>(
    index: &IndexCommitment,
    constants: &Constants,
    (record, rows, proof): &Item,
) -> Result<Vec<Equation>> {
    let mut equations = Vec::with_capacity(constants.equations());
    let flips = match &constants.flip_probability {
        None => decode_points::<E>(rows.flips)?,
        Some(probability) => {
            let statement = probability.statement(&record.slot, index.layout.capacity);
            let (columns, equation) =
                drawn::check::<Verifier<Hash, E>, Bernoulli>(&statement, rows.flips)?;
            equations.push(equation);
            columns[0].rows.clone()
        }
    };
    let (disclosed, after) = (
        decode_points::<E>(rows.disclosed)?,
        decode_points::<E>(rows.after)?,
    );
    let statement = statement(index, constants, record, [&flips, &disclosed, &after]);
    equations.push(check_randomized_response::<Verifier<Hash, E>>(
        &statement, proof,
    )?);
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

/// Many records of one tenant with randomized response.
pub type Batch<O = Hash, E = Plain> = batch::Batch<Constants, O, E>;

impl Kind for Constants {
    type Item<'a> = Item<'a>;

    fn transcript<O: Oracle>(&self, index: &[u8; 32]) -> Transcript<O> {
        let mut transcript = Transcript::new("list batch");
        transcript.bytes("index", index);
        transcript.bytes("window", &self.window);
        transcript.integer("rows", self.sample.len() as u64);
        for point in &self.sample {
            transcript.point("kept", point);
        }
        transcript.integer("threshold", self.threshold as u64);
        transcript.integer("most", self.maximum as u64);
        // Absorbs nothing if proofs of Bernoulli bits are verified separately.
        if let Some(probability) = &self.flip_probability {
            transcript.bytes("chance context", &probability.context);
            transcript.integer("chance bound", probability.bound);
        }
        transcript
    }

    fn absorb<O: Oracle>(&self, transcript: &mut Transcript<O>, items: &[Item]) {
        for (record, rows, proof) in items {
            record.absorb(transcript);
            for part in [rows.flips, rows.disclosed, rows.after, proof] {
                transcript.bytes("proof", part);
            }
        }
    }

    fn equations(&self) -> usize {
        1 + usize::from(self.flip_probability.is_some())
    }

    fn check<E: Engine>(&self, index: &IndexCommitment, item: &Item) -> Result<Vec<Equation>> {
        check::<E>(index, self, item)
    }
}
