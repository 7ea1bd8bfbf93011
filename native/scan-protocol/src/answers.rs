//! Several answers' whole proof, one certificate and one query proof, and many of them at once: `docs/scan/together.md`.
use sha2::{Digest, Sha256};

use crate::answer::{Parameters, Record};
use crate::batch::{self, Kind};
use crate::engine::{Engine, Plain};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{encode_scalar, G1Affine};
use crate::index::IndexCommitment;
use crate::noise::{check_slots, SlotsStatement};
use crate::queries::{check_queries, QueriesStatement};
use crate::together::check_together;
use crate::transcript::{Hash, Oracle, Transcript};
use crate::verifier::Verifier;

/// What a tenant's policy fixes for all its answers, of which a proof is about several.
#[derive(Clone, Debug)]
pub struct Together(pub Parameters);

impl Together {
    /// Refuses tenants that there is no such proof for, and numbers of records.
    pub fn check(&self, index: &IndexCommitment, records: usize) -> Result<()> {
        match self.0.kept {
            None => check_together(records, index.layout.capacity, self.0.gains.len()),
            Some(_) => Err(Error::invalid(
                "records together",
                "records of a tenant that keeps all positions",
                "a sampled tenant",
            )),
        }
    }
}

pub fn slots_statement(
    index: &IndexCommitment,
    together: &Together,
    records: &[Record],
) -> SlotsStatement {
    let slot = |record: &Record| [record.slot.c_seed, record.slot.beacon, record.slot.slot];
    SlotsStatement {
        context: together.0.window,
        slots: records.iter().map(slot).collect(),
        capacity: index.layout.capacity,
        gains: together.0.gains.clone(),
    }
}

pub fn queries_statement<'a>(
    index: &'a IndexCommitment,
    together: &Together,
    records: &[Record],
    certificate: &[u8],
    noise: &'a [Vec<G1Affine>],
) -> QueriesStatement<'a> {
    let parameters = &together.0;
    let mut hash = Sha256::new().chain_update(b"rag-audit/scan/v1/records");
    hash.update(parameters.window);
    hash.update((records.len() as u64).to_be_bytes());
    for record in records {
        let slot = &record.slot;
        for x in [&slot.c_seed, &slot.beacon, &slot.slot, &record.context] {
            hash.update(encode_scalar(x));
        }
    }
    hash.update(Sha256::digest(certificate));
    QueriesStatement {
        context: hash.finalize().into(),
        index,
        noise,
        gains: parameters.gains.clone(),
        records: records.iter().map(|r| [r.cq, r.htopk]).collect(),
        listed: parameters.listed,
        lo: parameters.lo,
        hi: parameters.hi,
        lattice: parameters.lattice,
    }
}

/// Records with their certificate and query proof.
#[derive(Clone)]
pub struct Item<'a> {
    pub records: Vec<Record>,
    pub parts: [&'a [u8]; 2],
}

/// Many groups of one tenant's records: their certificates and their query proofs.
pub type Batch<O = Hash, E = Plain> = batch::Batch<Together, O, E>;

/// Verifies one group's certificate and query proof.
pub fn verify<E: Engine>(index: &IndexCommitment, together: &Together, item: Item) -> Result<()> {
    batch::verify::<_, E>(index, together, item)
}

impl Kind for Together {
    type Item<'a> = Item<'a>;

    fn transcript<O: Oracle>(&self, index: &[u8; 32]) -> Transcript<O> {
        let mut transcript = Transcript::new("batch together");
        transcript.bytes("index", index);
        transcript.bytes("window", &self.0.window);
        transcript.integer("gain count", self.0.gains.len() as u64);
        for gain in &self.0.gains {
            transcript.integer("gain", u64::from(*gain));
        }
        transcript.integer("listed", self.0.listed as u64);
        for value in [self.0.lo, self.0.hi, self.0.lattice] {
            transcript.integer("score window", value as u64);
        }
        transcript
    }

    fn absorb<O: Oracle>(transcript: &mut Transcript<O>, items: &[Item]) {
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

    /// Without gains the certificate is empty, and so is its sum.
    fn check<E: Engine>(&self, index: &IndexCommitment, item: &Item) -> Result<Vec<Equation>> {
        let Item {
            records,
            parts: [certificate, proof],
        } = item;
        self.check(index, records.len())?;
        let (noise, first): (Vec<Vec<G1Affine>>, Equation) = if !self.0.gains.is_empty() {
            let statement = slots_statement(index, self, records);
            let (noise, equation) = check_slots::<Verifier<Hash, E>>(&statement, certificate)?;
            (
                noise.into_iter().map(|column| column.rows).collect(),
                equation,
            )
        } else if certificate.is_empty() {
            Default::default()
        } else {
            return Err(Error::Malformed {
                at: 0,
                reason: "a noise certificate where there is no noise",
            });
        };
        let statement = queries_statement(index, self, records, certificate, &noise);
        let second = check_queries::<Verifier<Hash, E>>(&statement, proof)?;
        Ok(vec![first, second])
    }
}
