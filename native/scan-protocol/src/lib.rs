//! The verifier's side of the scan argument: noise, every score and the selection of a large index, proved without a trusted
//! setup.
//!
//! Read the layers in this order; each has its page in `docs/scan/`: [`transcript`], [`group`], [`channel`] (the steps that
//! differ between the parties), [`session`] (hidden messages and the claims about them), [`sumcheck`], [`closing`],
//! [`lookup`], [`poseidon`], [`drawn`] with [`noise`] and [`bernoulli`], [`document_table`] with [`row_names`], [`index`], [`query`], [`pooled_listing`], [`embed`] with [`vector`],
//! [`feed_forward`], [`attention`] with [`block`], [`encoder`], [`encoder_input`], [`encoder_output`], [`encoder_embed`], [`coalition`]. This crate has each protocol once, for both
//! parties. The traits in [`prover`] are the protocols' requests to a prover; this crate implements none of them. One more trait,
//! [`engine`], has the arithmetic that a verifier may compute faster.
pub mod answer;
pub mod attention;
pub mod batch;
pub mod bernoulli;
pub mod block;
pub mod channel;
pub mod claims;
pub mod closing;
pub mod coalition;
pub mod digits;
pub mod document_table;
pub mod drawn;
pub mod embed;
pub mod encoder;
pub mod encoder_embed;
pub mod encoder_input;
pub mod encoder_output;
pub mod engine;
pub mod equation;
pub mod error;
pub mod expr;
pub mod feed_forward;
pub mod gates;
pub mod group;
pub mod hidden_query;
pub mod index;
pub mod index_link;
pub mod lookup;
pub mod mle;
pub mod nibbles;
pub mod noise;
pub mod numbers;
pub mod pooled_listing;
pub mod pooled_listing_records;
pub mod poseidon;
pub mod prepared;
pub mod protocol;
pub mod prover;

pub mod batch_size;
pub mod query;
pub mod ranges;
pub mod row_names;
pub mod schnorr;
pub mod segments;
pub mod session;
pub mod sumcheck;
pub mod transcript;
pub mod vector;
pub mod verifier;
pub mod words;

pub use error::{Error, Result};
