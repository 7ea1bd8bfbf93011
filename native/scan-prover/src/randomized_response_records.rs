//! The proof of one record of a tenant with randomized response, by its provers: `docs/scan/randomized-response.md`.
use ragaudit_scan_protocol::randomized_response_records::statement;
pub use ragaudit_scan_protocol::randomized_response_records::{
    Constants, FlipProbability, Item, Rows,
};

use crate::answer::Record;
use crate::channel::Proves;
use crate::engine::Fast;
use crate::error::Result;
use crate::group::{encode_points, Fr};
use crate::index::{IndexCommitment, IndexKey};
use crate::prover::fractional_sumcheck::RUN;
use crate::prover::Prover;
use crate::randomized_response::{self, bit_column, Bits, ListWitness, Outcome};
use crate::transcript::Hash;

/// The proof of a record's list, and the encoded commitments to the disclosed set after it. `blindings` has one blinding per
/// row, which serves no other commitment. With `low_memory` the same in more time.
#[allow(clippy::too_many_arguments)]
pub fn prove(
    index: &IndexCommitment,
    constants: &Constants,
    record: &Record,
    witness: &ListWitness,
    bits: &Bits,
    blindings: Vec<Fr>,
    key: &IndexKey,
    low_memory: bool,
) -> Result<(Vec<u8>, Vec<u8>)> {
    prove_as::<Prover>(
        index, constants, record, witness, bits, blindings, key, low_memory,
    )
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn prove_as<P: Proves>(
    index: &IndexCommitment,
    constants: &Constants,
    record: &Record,
    witness: &ListWitness,
    bits: &Bits,
    blindings: Vec<Fr>,
    key: &IndexKey,
    low_memory: bool,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let of_policy = (constants.threshold, constants.maximum);
    let outcome = Outcome::new(index, of_policy, witness, bits)?;
    let after = bit_column(index.layout, outcome.after.clone(), blindings)?;
    let rows = [&bits.flips.rows[..], &bits.disclosed.rows, &after.rows];
    let statement = statement(index, constants, record, rows);
    let columns = [bits.flips, bits.sample, bits.disclosed, &after];
    let low_memory = low_memory.then_some(RUN);
    let proof = randomized_response::prove_as::<P>(
        &statement, witness, &outcome, columns, key, low_memory,
    )?;
    Ok((proof, encode_points(&after.rows)))
}

/// See [`ragaudit_scan_protocol::randomized_response_records::verify`].
pub fn verify(index: &IndexCommitment, constants: &Constants, item: &Item) -> Result<()> {
    ragaudit_scan_protocol::randomized_response_records::verify::<Fast>(index, constants, item)
}

/// See [`ragaudit_scan_protocol::randomized_response_records::Batch`].
pub type Batch<O = Hash> = ragaudit_scan_protocol::randomized_response_records::Batch<O, Fast>;

#[cfg(test)]
pub(crate) mod tests;
