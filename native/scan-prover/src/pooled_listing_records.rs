//! The proof of one record of a tenant with pooled listing, by its provers: `docs/scan/pooled-listing.md`.
use ragaudit_scan_protocol::pooled_listing_records::statement;
pub use ragaudit_scan_protocol::pooled_listing_records::{Constants, Item, Rows};

use crate::answer::Record;
use crate::engine::Fast;
use crate::error::Result;
use crate::group::{Fr, G1Affine};
use crate::index::{IndexCommitment, IndexKey};
use crate::pooled_listing::{self, Given, Inputs};
use crate::query::Answer;
use crate::transcript::Hash;
use crate::words::Seed;

/// The private side of a record. The positions of the request are what htopk says.
#[derive(Clone, Copy)]
pub struct Private<'a> {
    pub request: &'a Answer,
    pub seed: &'a Seed,
    pub given: Given<'a>,
    /// The blindings of the listed rows after the record, which serve no other commitment.
    pub after: &'a [Fr],
    pub key: &'a IndexKey,
}

/// Proves one record; with `low_memory` the same in more time. Returns the proof and the commitments to the listed rows after
/// the record.
///
/// # Errors
/// The private values are not those of the record.
pub fn prove(
    index: &IndexCommitment,
    constants: &Constants,
    record: &Record,
    private: Private,
    low_memory: bool,
) -> Result<(Vec<u8>, Vec<G1Affine>)> {
    let before = &private.given.before.rows;
    let mut statement = statement(index, constants, record, before, before.clone());
    let inputs = Inputs {
        requests: std::slice::from_ref(private.request),
        seeds: std::slice::from_ref(private.seed),
        given: private.given,
        after: &[private.after.to_vec()],
        key: private.key,
    };
    let proof = pooled_listing::commit_and_prove(&mut statement, inputs, low_memory)?;
    Ok((proof, statement.records.swap_remove(0).after))
}

/// See [`ragaudit_scan_protocol::pooled_listing_records::verify`].
pub fn verify(index: &IndexCommitment, constants: &Constants, item: &Item) -> Result<()> {
    ragaudit_scan_protocol::pooled_listing_records::verify::<Fast>(index, constants, item)
}

/// See [`ragaudit_scan_protocol::pooled_listing_records::Batch`].
pub type Batch<O = Hash> = ragaudit_scan_protocol::pooled_listing_records::Batch<O, Fast>;

#[cfg(test)]
pub(crate) mod tests;
