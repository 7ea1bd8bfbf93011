//! The scan argument's provers: noise, every score and the selection of a large index, proved without a trusted setup.
//!
//! The crate `ragaudit-scan-protocol` has the protocols and their verifier, once for both parties. This crate has the provers'
//! code: the inputs of each run, in a module with the protocol's name, and the computations in [`prover`]. It verifies by the
//! same code on all lanes and threads ([`engine`]). It has the tests of all parties, including simulators and malicious
//! provers.
pub mod answer;
pub mod asked;
pub mod batch;
pub mod coalition;
pub mod coins;
pub mod drawn;
pub mod embed;
pub mod engine;
pub mod group;
pub mod index;
pub mod link;
pub mod listing;
pub mod lists;
pub mod mle;
mod msm;
pub mod noise;
pub mod poseidon;
pub mod prover;
pub mod query;
mod secrets;
pub(crate) mod small;
pub mod verifier;
pub mod words;

pub use ragaudit_scan_protocol::{
    channel, claims, equation, error, expr, gates, lookup, nibbles, numbers, protocol, ranges,
    segments, session, sumcheck, together, transcript, Error, Result,
};

#[cfg(test)]
mod cheat;

#[cfg(test)]
mod errors;

#[cfg(test)]
mod kit;

#[cfg(test)]
mod lies;

#[cfg(test)]
mod fixtures;

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
