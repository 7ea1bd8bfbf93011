//! The scan argument: noise, every score and the selection of a large index, proved without a trusted setup.
//!
//! Read the layers in this order, each with its page in `docs/scan/`: [`transcript`], [`group`], [`channel`] (what the
//! parties do differently), [`session`] (hidden messages and what is proved of them), [`sumcheck`], [`lookup`],
//! [`poseidon`], [`noise`], [`index`], [`query`], [`listing`], [`embed`], [`coalition`]. What only provers compute is in [`prover`].
pub mod answer;
mod asked;
pub mod batch;
pub mod channel;
pub mod claims;
pub mod closing;
pub mod coalition;
pub mod coins;
pub mod embed;
pub mod equation;
pub mod error;
pub mod expr;
pub mod group;
pub mod index;
pub mod link;
pub mod listing;
pub mod lists;
pub mod lookup;
pub mod mle;
mod nibbles;
pub mod noise;
pub mod numbers;
pub mod poseidon;
pub mod protocol;
pub mod prover;
pub mod query;
mod ranges;
mod schnorr;
mod secrets;
mod segments;
pub mod session;
pub(crate) mod small;
pub mod sumcheck;
pub mod transcript;
pub mod verifier;
mod words;

pub use error::{Error, Result};

#[cfg(test)]
mod cheat;

#[cfg(test)]
mod errors;

#[cfg(test)]
mod golden;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod time;

#[cfg(test)]
mod mutations;

#[cfg(test)]
mod simulator;
