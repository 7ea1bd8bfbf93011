//! Field, Poseidon, DGS-1 noise and int4 products: the arithmetic of `docs/relation.md` in Rust.
//!
//! `rag_audit.relation` is the reference; every function here agrees with it bit for bit.
pub mod commitment;
#[cfg(feature = "count")]
pub mod count;
pub mod g1;
pub mod int4;
pub mod lanes;
pub mod merkle;
pub mod multiples;
pub mod noise;
pub mod pairs;
pub mod pooled;
pub mod poseidon;
pub mod selection;
pub mod signatures;
pub mod sums;
pub mod table;
pub mod threads;
#[cfg(feature = "count")]
pub mod timing;

mod limbs;

pub use ragaudit_relation::{error, field, Error};
