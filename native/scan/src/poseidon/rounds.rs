//! Where the permutation's full and partial rounds stand.
use ragaudit_core::poseidon::{FULL_ROUNDS, PARTIAL_ROUNDS};

/// Full rounds before the partial ones, and after them.
pub(crate) const HALF: usize = FULL_ROUNDS / 2;
pub(crate) const LAST: usize = FULL_ROUNDS + PARTIAL_ROUNDS - 1;

/// Whether a round has one S-box alone.
pub(crate) fn is_partial(round: usize) -> bool {
    (HALF..HALF + PARTIAL_ROUNDS).contains(&round)
}
