//! Field, Poseidon, DGS-1 noise and int4 products: the arithmetic of `docs/protocol.md` in Rust.
pub mod error;
pub mod threads;

pub use error::Error;
