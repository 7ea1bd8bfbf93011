//! The complete proof of a tenant's answers (noise proof and query proof), and the verification of many such proofs at once:
//! `docs/scan/verification.md`, `docs/scan/batch.md`.
use sha2::{Digest, Sha256};

use crate::batch::{self, Kind};
use crate::batch_size::check_batch_size;
use crate::claims::Column;
use crate::drawn;
pub use crate::drawn::Slot;
use crate::engine::{Engine, Plain};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{encode_point, encode_scalar, Fr, G1Affine};
use crate::index::IndexCommitment;
use crate::noise::{absorb_gains, Noise, NoiseStatement};
use crate::query::{check_query, QueryStatement};
use crate::transcript::{Hash, Oracle, Transcript};
use crate::verifier::Verifier;

/// The constants that a tenant's policy fixes for all of its answers.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Digest of everything that a window fixes: protocol, opening, policy, tenant.
    pub window: [u8; 32],
    /// Empty if the tenant lists the exact top K.
    pub gains: Vec<u32>,
    pub listed: usize,
    pub lo: i64,
    pub hi: i64,
    pub lattice: i64,
    /// The commitments of the window's sampling proof, which is verified; None if the tenant is not sampled.
    pub sample: Option<Vec<G1Affine>>,
}

impl Parameters {
    /// Refuses numbers of records, and tenants, without such proofs.
    pub fn check(&self, index: &IndexCommitment, records: usize) -> Result<()> {
        let sampled = self.sample.is_some();
        check_batch_size(records, index.layout.capacity, self.gains.len(), sampled)
    }
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub slot: Slot,
    /// Digest of all other fields of the record.
    pub context: Fr,
    pub cq: Fr,
    pub htopk: Fr,
}

/// c_seed, beacon, slot, context, cq, htopk.
impl From<[Fr; 6]> for Record {
    fn from([c_seed, beacon, slot, context, cq, htopk]: [Fr; 6]) -> Self {
        Self {
            slot: Slot::from([c_seed, beacon, slot]),
            context,
            cq,
            htopk,
        }
    }
}

impl Record {
    pub fn absorb(&self, transcript: &mut Transcript<impl Oracle>) {
        let Slot {
            c_seed,
            beacon,
            slot,
        } = &self.slot;
        for x in [c_seed, beacon, slot, &self.context, &self.cq, &self.htopk] {
            transcript.scalar("record", x);
        }
    }
}

/// The statement of the noise proof of these slots.
pub fn noise_statement(
    index: &IndexCommitment,
    parameters: &Parameters,
    slots: &[Slot],
) -> NoiseStatement {
    NoiseStatement {
        context: parameters.window,
        slots: slots.to_vec(),
        capacity: index.layout.capacity,
        distribution: Noise {
            gains: parameters.gains.clone(),
        },
    }
}

/// The statement of the query proof of these records. `noise` are the columns of their verified noise proof.
pub fn query_statement<'a>(
    index: &'a IndexCommitment,
    parameters: &'a Parameters,
    records: &[Record],
    noise_proof: &[u8],
    noise: &'a [Column],
) -> QueryStatement<'a> {
    let sample = parameters.sample.as_deref();
    let mut hash = Sha256::new().chain_update(b"rag-audit/scan/v1/records");
    hash.update(parameters.window);
    hash.update((records.len() as u64).to_be_bytes());
    for record in records {
        let slot = &record.slot;
        for x in [&slot.c_seed, &slot.beacon, &slot.slot, &record.context] {
            hash.update(encode_scalar(x));
        }
    }
    hash.update(Sha256::digest(noise_proof));
    for point in sample.unwrap_or_default() {
        hash.update(encode_point(point));
    }
    QueryStatement {
        context: hash.finalize().into(),
        index,
        noise: noise.iter().map(|column| &column.rows[..]).collect(),
        sample,
        gains: parameters.gains.clone(),
        records: records.iter().map(|r| [r.cq, r.htopk]).collect(),
        listed: parameters.listed,
        lo: parameters.lo,
        hi: parameters.hi,
        lattice: parameters.lattice,
    }
}

/// Records with their noise proof and query proof.
#[derive(Clone)]
pub struct Item<'a> {
    pub records: Vec<Record>,
    pub parts: [&'a [u8]; 2],
}

impl<'a> Item<'a> {
    /// A single record.
    pub fn single(record: Record, parts: [&'a [u8]; 2]) -> Self {
        let records = vec![record];
        Self { records, parts }
    }
}

/// Verifies the noise proof and the query proof of an item's records.
pub fn verify<E: Engine>(
    index: &IndexCommitment,
    parameters: &Parameters,
    item: Item,
) -> Result<()> {
    batch::verify::<_, E>(index, parameters, item)
}

/// Many items of one tenant, each with any number of records.
pub type Batch<O = Hash, E = Plain> = batch::Batch<Parameters, O, E>;

impl Kind for Parameters {
    type Item<'a> = Item<'a>;

    fn transcript<O: Oracle>(&self, index: &[u8; 32]) -> Transcript<O> {
        let mut transcript = Transcript::new("batch");
        transcript.bytes("index", index);
        transcript.bytes("window", &self.window);
        absorb_gains(&mut transcript, &self.gains);
        transcript.integer("listed", self.listed as u64);
        for value in [self.lo, self.hi, self.lattice] {
            transcript.integer("score window", value as u64);
        }
        // A tenant without a sample absorbs no points here.
        transcript.points("kept", self.sample.as_deref().unwrap_or_default());
        transcript
    }

    fn absorb<O: Oracle>(&self, transcript: &mut Transcript<O>, items: &[Item]) {
        for item in items {
            transcript.integer("record count", item.records.len() as u64);
            for record in &item.records {
                record.absorb(transcript);
            }
            for part in item.parts {
                transcript.bytes("proof", part);
            }
        }
    }

    fn equations(&self) -> usize {
        2
    }

    /// Without gains the noise proof is empty, and its equation has no terms.
    fn check<E: Engine>(&self, index: &IndexCommitment, item: &Item) -> Result<Vec<Equation>> {
        let Item {
            records,
            parts: [noise_proof, proof],
        } = item;
        self.check(index, records.len())?;
        let (noise, first) = if !self.gains.is_empty() {
            let slots: Vec<Slot> = records.iter().map(|record| record.slot).collect();
            let statement = noise_statement(index, self, &slots);
            drawn::check::<Verifier<Hash, E>, Noise>(&statement, noise_proof)?
        } else if noise_proof.is_empty() {
            Default::default()
        } else {
            return Err(Error::Malformed {
                at: 0,
                reason: "a noise certificate where there is no noise",
            });
        };
        let statement = query_statement(index, self, records, noise_proof, &noise);
        let second = check_query::<Verifier<Hash, E>>(&statement, proof)?;
        Ok(vec![first, second])
    }
}
