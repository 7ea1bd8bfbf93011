//! The order of the permutation's full and partial rounds.
use ragaudit_relation::poseidon::{FULL_ROUNDS, PARTIAL_ROUNDS};

/// Full rounds before the partial ones, and after them.
pub const HALF: usize = FULL_ROUNDS / 2;
pub const LAST: usize = FULL_ROUNDS + PARTIAL_ROUNDS - 1;

/// Whether a round has only one S-box.
pub fn is_partial(round: usize) -> bool {
    (HALF..HALF + PARTIAL_ROUNDS).contains(&round)
}
