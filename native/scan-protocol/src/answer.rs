//! An answer's whole proof, certificate and query proof, and many of them at once: `docs/scan/verification.md`.
use sha2::{Digest, Sha256};

use crate::batch::{self, Kind};
use crate::engine::{Engine, Plain};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{encode_point, encode_scalar, Fr, G1Affine};
use crate::index::IndexCommitment;
use crate::noise::{check_noise, NoiseStatement};
use crate::query::{check_query, QueryStatement};
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

/// One slot, published before its query exists.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub c_seed: Fr,
    pub beacon: Fr,
    pub slot: Fr,
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

pub fn noise_statement(
    index: &IndexCommitment,
    parameters: &Parameters,
    slot: &Slot,
) -> NoiseStatement {
    NoiseStatement {
        context: parameters.window,
        c_seed: slot.c_seed,
        beacon: slot.beacon,
        slot: slot.slot,
        capacity: index.layout.capacity,
        gains: parameters.gains.clone(),
    }
}

pub fn query_statement<'a>(
    index: &'a IndexCommitment,
    parameters: &'a Parameters,
    record: &Record,
    certificate: &[u8],
    noise: &'a [G1Affine],
) -> QueryStatement<'a> {
    let kept = parameters.kept.as_deref();
    let sampled = kept.is_some() || parameters.gains.is_empty();
    let mut hash = Sha256::new().chain_update(match sampled {
        false => &b"rag-audit/scan/v1/record"[..],
        true => b"rag-audit/scan/v1/sampled record",
    });
    hash.update(parameters.window);
    for x in [
        &record.slot.c_seed,
        &record.slot.beacon,
        &record.slot.slot,
        &record.context,
    ] {
        hash.update(encode_scalar(x));
    }
    hash.update(Sha256::digest(certificate));
    for point in kept.unwrap_or_default() {
        hash.update(encode_point(point));
    }
    QueryStatement {
        context: hash.finalize().into(),
        index,
        noise,
        kept,
        gains: parameters.gains.clone(),
        cq: record.cq,
        htopk: record.htopk,
        listed: parameters.listed,
        lo: parameters.lo,
        hi: parameters.hi,
        lattice: parameters.lattice,
    }
}

/// Both parts of one record's proof as sums that have to vanish. Without gains the certificate is empty, and so is its sum.
fn check<E: Engine>(
    index: &IndexCommitment,
    parameters: &Parameters,
    record: &Record,
    parts: [&[u8]; 2],
) -> Result<[Equation; 2]> {
    let [certificate, proof] = parts;
    let (noise, first) = if !parameters.gains.is_empty() {
        let statement = noise_statement(index, parameters, &record.slot);
        let (noise, equation) = check_noise::<Verifier<Hash, E>>(&statement, certificate)?;
        (noise.rows, equation)
    } else if certificate.is_empty() {
        Default::default()
    } else {
        return Err(Error::Malformed {
            at: 0,
            reason: "a noise certificate where there is no noise",
        });
    };
    let second = check_query::<Verifier<Hash, E>>(
        &query_statement(index, parameters, record, certificate, &noise),
        proof,
    )?;
    Ok([first, second])
}

/// Verifies one record's certificate and query proof.
pub fn verify<E: Engine>(
    index: &IndexCommitment,
    parameters: &Parameters,
    record: &Record,
    parts: [&[u8]; 2],
) -> Result<()> {
    batch::verify::<_, E>(index, parameters, (*record, parts))
}

/// A record with its certificate and query proof.
pub type Item<'a> = (Record, [&'a [u8]; 2]);

/// Many records of one tenant: their certificates and their query proofs.
pub type Batch<O = Hash, E = Plain> = batch::Batch<Parameters, O, E>;

impl Kind for Parameters {
    type Item<'a> = Item<'a>;

    fn transcript<O: Oracle>(&self, index: &[u8; 32]) -> Transcript<O> {
        let mut transcript = Transcript::new("batch");
        transcript.bytes("index", index);
        transcript.bytes("window", &self.window);
        transcript.integer("gain count", self.gains.len() as u64);
        for gain in &self.gains {
            transcript.integer("gain", u64::from(*gain));
        }
        transcript.integer("listed", self.listed as u64);
        for value in [self.lo, self.hi, self.lattice] {
            transcript.integer("score window", value as u64);
        }
        // Nothing where there are none: then it is what it was before there were any.
        for point in self.kept.as_deref().unwrap_or_default() {
            transcript.point("kept", point);
        }
        transcript
    }

    fn absorb<O: Oracle>(transcript: &mut Transcript<O>, records: &[Item]) {
        for (record, parts) in records {
            record.absorb(transcript);
            for part in parts {
                transcript.bytes("proof", part);
            }
        }
    }

    fn equations(&self) -> usize {
        2
    }

    fn check<E: Engine>(
        &self,
        index: &IndexCommitment,
        (record, parts): &Item,
    ) -> Result<Vec<Equation>> {
        Ok(check::<E>(index, self, record, *parts)?.into())
    }
}
