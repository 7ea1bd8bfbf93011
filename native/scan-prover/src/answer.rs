//! The complete proof of a tenant's answers (noise proof and query proof), by its provers: `docs/scan/verification.md`,
//! `docs/scan/batch.md`.
use ragaudit_scan_protocol::answer::{noise_statement, query_statement};
pub use ragaudit_scan_protocol::answer::{Item, Parameters, Record, Slot};

use crate::channel::Proves;
use crate::drawn::{self, DrawnProof};
use crate::engine::Fast;
use crate::error::Result;
use crate::index::{IndexCommitment, IndexKey};
use crate::noise::Seed;
use crate::prover::Prover;
use crate::query::{self, Answer, ProvenColumns};
use crate::transcript::Hash;

/// The noise proof of slots, each under its own seed, before their queries or after. In `low_memory` the prover makes its
/// largest tables several times instead of keeping them: the same proof in more time.
pub fn prove_noise(
    index: &IndexCommitment,
    parameters: &Parameters,
    slots: &[Slot],
    seeds: &[Seed],
    low_memory: bool,
) -> Result<DrawnProof> {
    prove_noise_as::<Prover>(index, parameters, slots, seeds, low_memory)
}

pub(crate) fn prove_noise_as<P: Proves>(
    index: &IndexCommitment,
    parameters: &Parameters,
    slots: &[Slot],
    seeds: &[Seed],
    low_memory: bool,
) -> Result<DrawnProof> {
    parameters.check(index, slots.len())?;
    let statement = noise_statement(index, parameters, slots);
    drawn::prove_as::<P, _>(&statement, seeds, low_memory)
}

/// The query proof of records. `noise_proof` is that of their slots, empty without noise; `low_memory` as for
/// [`prove_noise`].
#[allow(clippy::too_many_arguments)]
pub fn prove(
    index: &IndexCommitment,
    parameters: &Parameters,
    records: &[Record],
    answers: &[Answer],
    noise_proof: &[u8],
    proven: ProvenColumns,
    key: &IndexKey,
    low_memory: bool,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(
        index,
        parameters,
        records,
        answers,
        noise_proof,
        proven,
        key,
        low_memory,
    )
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn prove_as<P: Proves>(
    index: &IndexCommitment,
    parameters: &Parameters,
    records: &[Record],
    answers: &[Answer],
    noise_proof: &[u8],
    proven: ProvenColumns,
    key: &IndexKey,
    low_memory: bool,
) -> Result<Vec<u8>> {
    parameters.check(index, records.len())?;
    let statement = query_statement(index, parameters, records, noise_proof, proven.noise);
    query::prove_as::<P>(&statement, answers, proven, key, low_memory)
}

/// See [`ragaudit_scan_protocol::answer::verify`].
pub fn verify(index: &IndexCommitment, parameters: &Parameters, item: Item) -> Result<()> {
    ragaudit_scan_protocol::answer::verify::<Fast>(index, parameters, item)
}

/// See [`ragaudit_scan_protocol::answer::Batch`].
pub type Batch<O = Hash> = ragaudit_scan_protocol::answer::Batch<O, Fast>;

#[cfg(test)]
pub(crate) mod tests;
