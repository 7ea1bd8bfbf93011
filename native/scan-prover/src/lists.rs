//! The proof of one record of a listing tenant, by its provers: `docs/scan/randomized-response.md`.
use ragaudit_scan_protocol::lists::statement;
pub use ragaudit_scan_protocol::lists::{Chance, Constants, Item, Rows};

use crate::answer::Record;
use crate::channel::Proves;
use crate::engine::Fast;
use crate::error::Result;
use crate::group::{encode_points, Fr};
use crate::index::{IndexCommitment, IndexKey};
use crate::listing::{self, bit_column, Bits, Listing, Outcome};
use crate::prover::fractions::RUN;
use crate::prover::Prover;
use crate::transcript::Hash;

/// The proof of a record's list, and the encoded commitments to the disclosed set after it. `blindings` has one blinding per
/// row, which serves no other commitment. With `low_memory` the same in more time.
#[allow(clippy::too_many_arguments)]
pub fn prove(
    index: &IndexCommitment,
    constants: &Constants,
    record: &Record,
    listing: &Listing,
    bits: &Bits,
    blindings: Vec<Fr>,
    key: &IndexKey,
    low_memory: bool,
) -> Result<(Vec<u8>, Vec<u8>)> {
    prove_as::<Prover>(
        index, constants, record, listing, bits, blindings, key, low_memory,
    )
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn prove_as<P: Proves>(
    index: &IndexCommitment,
    constants: &Constants,
    record: &Record,
    listing: &Listing,
    bits: &Bits,
    blindings: Vec<Fr>,
    key: &IndexKey,
    low_memory: bool,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let of_policy = (constants.threshold, constants.most);
    let outcome = Outcome::new(index, of_policy, listing, bits)?;
    let after = bit_column(index.layout, outcome.after.clone(), blindings)?;
    let rows = [&bits.chance.rows[..], &bits.held.rows, &after.rows];
    let statement = statement(index, constants, record, rows);
    let columns = [bits.chance, bits.kept, bits.held, &after];
    let low_memory = low_memory.then_some(RUN);
    let proof = listing::prove_as::<P>(&statement, listing, &outcome, columns, key, low_memory)?;
    Ok((proof, encode_points(&after.rows)))
}

/// See [`ragaudit_scan_protocol::lists::verify`].
pub fn verify(index: &IndexCommitment, constants: &Constants, item: &Item) -> Result<()> {
    ragaudit_scan_protocol::lists::verify::<Fast>(index, constants, item)
}

/// See [`ragaudit_scan_protocol::lists::Batch`].
pub type Batch<O = Hash> = ragaudit_scan_protocol::lists::Batch<O, Fast>;

#[cfg(test)]
pub(crate) mod tests;
