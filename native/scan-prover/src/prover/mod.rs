//! The code that only provers run: their side of a run, and their sums, on all lanes. [`witness`] has the answers to the
//! protocols' requests.
pub(crate) mod channel;
pub(crate) mod columns;
pub(crate) mod digits;
pub(crate) mod fractional_sumcheck;
pub(crate) mod gates;
pub(crate) mod integers;
pub(crate) mod layers;
pub(crate) mod linear_forms;
pub(crate) mod messages;
pub(crate) mod opening;
pub(crate) mod polynomials;
pub(crate) mod queries;
pub(crate) mod rounds;
pub(crate) mod sbox_columns;
pub(crate) mod sums;
pub(crate) mod tables;
pub(crate) mod weighted;
pub(crate) mod witness;

pub use channel::Prover;
pub(crate) use ragaudit_scan_protocol::prover::Known;
