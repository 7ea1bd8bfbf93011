//! The verifier's side of a run, on all lanes and threads.
use ragaudit_argument::transcript::Hash;

use crate::engine::Fast;

/// As [`ragaudit_argument::verifier::Verifier`].
pub type Verifier<'p, O = Hash> = ragaudit_argument::verifier::Verifier<'p, O, Fast>;
