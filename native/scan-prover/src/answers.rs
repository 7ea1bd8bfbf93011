//! Several answers' whole proof by its provers: `docs/scan/together.md`.
use ragaudit_scan_protocol::answers::{queries_statement, slots_statement};
pub use ragaudit_scan_protocol::answers::{Item, Together};

use crate::answer::Record;
use crate::channel::Proves;
use crate::engine::Fast;
use crate::error::Result;
use crate::index::{IndexCommitment, IndexKey};
use crate::noise::{prove_slots_as, Certificates, Seed};
use crate::prover::Prover;
use crate::queries;
use crate::query::Answer;
use crate::transcript::Hash;

/// The certificate of the records' slots, each under its own seed; of the records it takes their slots alone. In
/// `low_memory` the same in more time.
pub fn certify(
    index: &IndexCommitment,
    together: &Together,
    records: &[Record],
    seeds: &[Seed],
    low_memory: bool,
) -> Result<Certificates> {
    certify_as::<Prover>(index, together, records, seeds, low_memory)
}

pub(crate) fn certify_as<P: Proves>(
    index: &IndexCommitment,
    together: &Together,
    records: &[Record],
    seeds: &[Seed],
    low_memory: bool,
) -> Result<Certificates> {
    together.check(index, records.len())?;
    let statement = slots_statement(index, together, records);
    prove_slots_as::<P>(&statement, seeds, low_memory)
}

/// The certificate and the query proof of records, each with its seed and its answer; the certificate is empty where there
/// is no noise.
pub fn prove(
    index: &IndexCommitment,
    together: &Together,
    records: &[Record],
    seeds: &[Seed],
    answers: &[Answer],
    key: &IndexKey,
    low_memory: bool,
) -> Result<[Vec<u8>; 2]> {
    prove_as::<Prover>(index, together, records, seeds, answers, key, low_memory)
}

pub(crate) fn prove_as<P: Proves>(
    index: &IndexCommitment,
    together: &Together,
    records: &[Record],
    seeds: &[Seed],
    answers: &[Answer],
    key: &IndexKey,
    low_memory: bool,
) -> Result<[Vec<u8>; 2]> {
    together.check(index, records.len())?;
    let certified = match together.0.gains.is_empty() {
        true => None,
        false => Some(certify_as::<P>(
            index, together, records, seeds, low_memory,
        )?),
    };
    let (certificate, noise) = certified.map(|c| (c.proof, c.noise)).unwrap_or_default();
    let rows: Vec<_> = noise.iter().map(|column| column.rows.clone()).collect();
    let statement = queries_statement(index, together, records, &certificate, &rows);
    let proof = queries::prove_as::<P>(&statement, answers, &noise, key, low_memory)?;
    Ok([certificate, proof])
}

/// As [`ragaudit_scan_protocol::answers::verify`].
pub fn verify(index: &IndexCommitment, together: &Together, item: Item) -> Result<()> {
    ragaudit_scan_protocol::answers::verify::<Fast>(index, together, item)
}

/// As [`ragaudit_scan_protocol::answers::Batch`].
pub type Batch<O = Hash> = ragaudit_scan_protocol::answers::Batch<O, Fast>;
