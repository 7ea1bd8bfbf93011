//! The verifier's side of a run, on all lanes and threads.
use ragaudit_scan_protocol::transcript::Hash;

use crate::engine::Fast;

/// See [`ragaudit_scan_protocol::verifier::Verifier`].
pub type Verifier<'p, O = Hash> = ragaudit_scan_protocol::verifier::Verifier<'p, O, Fast>;
