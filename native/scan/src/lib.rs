//! The scan argument: noise, every score and the selection of a large index, proved without a trusted setup.
//!
//! Read the layers in this order, each with its page in `docs/scan/`: [`transcript`], [`group`], [`session`]
//! (hidden messages and what is proved of them), [`sumcheck`], [`lookup`], [`poseidon`], [`noise`], [`index`],
//! [`query`].
pub mod error;
pub mod group;
pub mod transcript;

pub use error::{Error, Result};
