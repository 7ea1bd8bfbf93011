//! Coalition proofs by their provers: `docs/scan/coalition.md`.
pub(crate) mod inputs;
mod pairs;
mod records;

#[cfg(test)]
pub(crate) mod tests;

pub use inputs::{distinct_norms, CoalitionSecret};
pub use pairs::prove_pairs;
pub use ragaudit_scan_protocol::coalition::{
    statement, Blocks, CoalitionStatement, MAX_CLASSES, MAX_COMPONENTS, MAX_DENOMINATOR,
    MAX_LABELS, MAX_RECORDS, RULES,
};
pub use records::prove_records;

use crate::engine::Fast;
use crate::error::Result;

/// See [`ragaudit_scan_protocol::coalition::verify_coalition`].
pub fn verify_coalition(
    statement: &CoalitionStatement,
    records_proof: &[u8],
    pairs_proofs: &[&[u8]],
) -> Result<()> {
    ragaudit_scan_protocol::coalition::verify_coalition::<Fast>(
        statement,
        records_proof,
        pairs_proofs,
    )
}
