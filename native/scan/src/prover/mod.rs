//! What only provers run: their side of a run, and what they add up, on all lanes.
pub(crate) mod boxes;
pub(crate) mod channel;
pub(crate) mod fractions;
pub(crate) mod known;
pub(crate) mod messages;
pub(crate) mod opening;

pub use channel::Prover;
