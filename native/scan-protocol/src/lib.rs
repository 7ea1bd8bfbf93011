//! The scan argument as its verifier has it: noise, every score and the selection of a large index, proved without a
//! trusted setup.
//!
//! Read the layers in this order, each with its page in `docs/scan/`: [`transcript`], [`group`], [`channel`] (what the
//! parties do differently), [`session`] (hidden messages and what is claimed of them), [`sumcheck`], [`closing`], [`lookup`],
//! [`poseidon`], [`drawn`] with [`noise`] and [`coins`], [`index`], [`query`], [`listing`], [`embed`], [`coalition`]. Each protocol stands here
//! once, for both parties. What it asks of a prover are the traits in [`prover`], which nothing in this crate implements; the
//! arithmetic that a verifier may have done faster is one trait too, [`engine`].
pub mod answer;
pub mod asked;
pub mod batch;
pub mod channel;
pub mod claims;
pub mod closing;
pub mod coalition;
pub mod coins;
pub mod digits;
pub mod drawn;
pub mod embed;
pub mod engine;
pub mod equation;
pub mod error;
pub mod expr;
pub mod gates;
pub mod group;
pub mod index;
pub mod link;
pub mod listing;
pub mod lists;
pub mod lookup;
pub mod mle;
pub mod nibbles;
pub mod noise;
pub mod numbers;
pub mod poseidon;
pub mod prepared;
pub mod protocol;
pub mod prover;

pub mod query;
pub mod ranges;
pub mod schnorr;
pub mod segments;
pub mod session;
pub mod sumcheck;
pub mod together;
pub mod transcript;
pub mod verifier;
pub mod words;

pub use error::{Error, Result};
