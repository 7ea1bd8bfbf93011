//! The code that only provers run: their side of a run, and their sums, on all lanes. [`knows`] has the answers to the
//! protocols' requests.
pub(crate) mod boxes;
pub(crate) mod channel;
pub(crate) mod columns;
pub(crate) mod digits;
pub(crate) mod forms;
pub(crate) mod fractions;
pub(crate) mod gates;
pub(crate) mod integers;
pub(crate) mod knows;
pub(crate) mod layers;
pub(crate) mod messages;
pub(crate) mod opening;
pub(crate) mod polynomials;
pub(crate) mod queries;
pub(crate) mod rounds;
pub(crate) mod sums;
pub(crate) mod tables;
pub(crate) mod weighted;

pub use channel::Prover;
pub(crate) use ragaudit_scan_protocol::prover::Known;
