//! The whole proof of a tenant's answers, certificate and query proof, and many of them at once: `docs/scan/verification.md`,
//! `docs/scan/together.md`.
use sha2::{Digest, Sha256};

use crate::batch::{self, Kind};
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
use crate::together::{check_together, Format};
use crate::transcript::{Hash, Oracle, Transcript};
use crate::verifier::Verifier;

/// What a tenant's policy fixes for all its answers.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Digest of everything a window fixes: protocol, opening, policy, tenant.
    pub window: [u8; 32],
    /// None where the exact top K is listed.
    pub gains: Vec<u32>,
    pub listed: usize,
    pub lo: i64,
    pub hi: i64,
    pub lattice: i64,
    /// The commitments of the window's coin certificate, verified, where the tenant is sampled.
    pub kept: Option<Vec<G1Affine>>,
}

impl Parameters {
    /// Refuses tenants that there is no such proof for, and numbers of records.
    pub fn check(&self, index: &IndexCommitment, records: usize) -> Result<()> {
        // The coin certificate of a window commits in the rows of a single record.
        if Format::of(records) == Format::Batch && self.kept.is_some() {
            return Err(Error::invalid(
                "records together",
                "records of a tenant that keeps all positions",
                "a sampled tenant",
            ));
        }
        check_together(records, index.layout.capacity, self.gains.len())
    }
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub slot: Slot,
    /// Digest of everything else that the record says.
    pub context: Fr,
    pub cq: Fr,
    pub htopk: Fr,
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

/// What the certificate of these slots is about.
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
        format: Format::of(slots.len()),
    }
}

/// What the query proof of these records is about, whose verified certificate has these columns of noise.
pub fn query_statement<'a>(
    index: &'a IndexCommitment,
    parameters: &'a Parameters,
    records: &[Record],
    certificate: &[u8],
    noise: &'a [Column],
) -> QueryStatement<'a> {
    let kept = parameters.kept.as_deref();
    let sampled = kept.is_some() || parameters.gains.is_empty();
    let format = Format::of(records.len());
    let mut hash = Sha256::new().chain_update(match format {
        Format::Batch => &b"rag-audit/scan/v1/records"[..],
        Format::Single if sampled => b"rag-audit/scan/v1/sampled record",
        Format::Single => b"rag-audit/scan/v1/record",
    });
    hash.update(parameters.window);
    if format == Format::Batch {
        hash.update((records.len() as u64).to_be_bytes());
    }
    for record in records {
        let slot = &record.slot;
        for x in [&slot.c_seed, &slot.beacon, &slot.slot, &record.context] {
            hash.update(encode_scalar(x));
        }
    }
    hash.update(Sha256::digest(certificate));
    for point in kept.unwrap_or_default() {
        hash.update(encode_point(point));
    }
    QueryStatement {
        context: hash.finalize().into(),
        index,
        noise: noise.iter().map(|column| &column.rows[..]).collect(),
        kept,
        gains: parameters.gains.clone(),
        records: records.iter().map(|r| [r.cq, r.htopk]).collect(),
        listed: parameters.listed,
        lo: parameters.lo,
        hi: parameters.hi,
        lattice: parameters.lattice,
        format,
    }
}

/// Records with their certificate and query proof.
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

/// Verifies the certificate and the query proof of an item's records.
pub fn verify<E: Engine>(
    index: &IndexCommitment,
    parameters: &Parameters,
    item: Item,
) -> Result<()> {
    batch::verify::<_, E>(index, parameters, item)
}

/// Many items of one tenant, each of any number of records: their certificates and their query proofs.
pub type Batch<O = Hash, E = Plain> = batch::Batch<Parameters, O, E>;

impl Kind for Parameters {
    type Item<'a> = Item<'a>;

    /// The published traces begin by the format of the first item; the items themselves say how many records they have.
    fn transcript<O: Oracle>(&self, index: &[u8; 32], items: &[Item]) -> Transcript<O> {
        let first = items.first().map(|item| Format::of(item.records.len()));
        let mut transcript = Transcript::new(match first {
            Some(Format::Batch) => "batch together",
            _ => "batch",
        });
        transcript.bytes("index", index);
        transcript.bytes("window", &self.window);
        absorb_gains(&mut transcript, &self.gains);
        transcript.integer("listed", self.listed as u64);
        for value in [self.lo, self.hi, self.lattice] {
            transcript.integer("score window", value as u64);
        }
        // A tenant that keeps all positions absorbs no points, so its transcript is that of a policy without sampling.
        for point in self.kept.as_deref().unwrap_or_default() {
            transcript.point("kept", point);
        }
        transcript
    }

    fn absorb<O: Oracle>(&self, transcript: &mut Transcript<O>, items: &[Item]) {
        for item in items {
            if Format::of(item.records.len()) == Format::Batch {
                transcript.integer("record count", item.records.len() as u64);
            }
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

    /// Without gains the certificate is empty, and so is its sum.
    fn check<E: Engine>(&self, index: &IndexCommitment, item: &Item) -> Result<Vec<Equation>> {
        let Item {
            records,
            parts: [certificate, proof],
        } = item;
        self.check(index, records.len())?;
        let (noise, first) = if !self.gains.is_empty() {
            let slots: Vec<Slot> = records.iter().map(|record| record.slot).collect();
            let statement = noise_statement(index, self, &slots);
            drawn::check::<Verifier<Hash, E>, Noise>(&statement, certificate)?
        } else if certificate.is_empty() {
            Default::default()
        } else {
            return Err(Error::Malformed {
                at: 0,
                reason: "a noise certificate where there is no noise",
            });
        };
        let statement = query_statement(index, self, records, certificate, &noise);
        let second = check_query::<Verifier<Hash, E>>(&statement, proof)?;
        Ok(vec![first, second])
    }
}
