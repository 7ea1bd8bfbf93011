//! The scan argument's provers: noise, every score and the selection of a large index, proved without a trusted setup.
//!
//! The crate `ragaudit-scan-protocol` has the protocols and their verifier, once for both parties. This crate has the provers'
//! code: the inputs of each run, in a module with the protocol's name, and the computations in [`prover`]. It verifies by the
//! same code on all lanes and threads ([`engine`]). It has the tests of all parties, including simulators and malicious
//! provers.
pub mod answer;
pub mod attention;
pub mod batch;
pub mod bernoulli;
pub mod block;
pub mod coalition;
pub mod document_table;
pub mod drawn;
pub mod embed;
pub mod encoder;
pub mod encoder_embed;
pub mod encoder_input;
pub mod encoder_model;
pub mod encoder_output;
pub mod engine;
pub mod feed_forward;
pub mod group;
pub mod hidden_query;
pub mod index;
pub mod index_link;
pub mod mle;
mod msm;
pub mod noise;
pub mod pooled_listing;
pub mod pooled_listing_records;
pub mod poseidon;
pub mod prover;
pub mod query;
pub mod row_names;
mod secrets;
pub(crate) mod small;
mod vector;
pub mod verifier;
pub mod words;

pub use ragaudit_scan_protocol::{
    batch_size, channel, claims, equation, error, expr, gates, lookup, nibbles, numbers, protocol,
    ranges, segments, session, sumcheck, transcript, Error, Result,
};

#[cfg(test)]
mod malicious;

#[cfg(test)]
mod errors;

#[cfg(test)]
mod kit;

#[cfg(test)]
mod malicious_claims;

#[cfg(test)]
mod fixtures;

#[cfg(test)]
mod test_vectors;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod time;

#[cfg(test)]
mod mutations;

#[cfg(test)]
mod omissions;

#[cfg(test)]
mod simulator;
