//! Many proofs in one sum, on all lanes and threads: `docs/scan/verification.md`.
use std::sync::Arc;

use ragaudit_scan_protocol::batch as plain;
pub use ragaudit_scan_protocol::batch::{Failures, Kind, CHUNK};

use crate::engine::Fast;
use crate::error::Result;
use crate::index::IndexCommitment;
use crate::transcript::Hash;

/// See [`ragaudit_scan_protocol::batch::Batch`].
pub type Batch<K, O = Hash> = plain::Batch<K, O, Fast>;

/// See [`ragaudit_scan_protocol::batch::verify`].
pub fn verify<K: Kind>(index: &IndexCommitment, kind: &K, item: K::Item<'_>) -> Result<()> {
    plain::verify::<K, Fast>(index, kind, item)
}

/// See [`ragaudit_scan_protocol::batch::verify_all`].
pub fn verify_all<K: Kind + Clone + Sync>(
    index: &Arc<IndexCommitment>,
    kind: &K,
    items: &[K::Item<'_>],
) -> Failures {
    plain::verify_all::<K, Fast>(index, kind, items)
}
