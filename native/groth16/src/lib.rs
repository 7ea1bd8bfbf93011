//! Groth16 over BN254 in the file formats of circom and snarkjs.
//!
//! Reading is strict (sizes, primes, canonical elements, points on the curve, sections once, nothing trailing)
//! and answers errors that name the place; it never panics. The field and curve arithmetic is arkworks'.
pub mod affine;
pub mod combine;

pub mod binfile;
pub mod ceremony;
mod error;
pub mod field;
pub mod msm;
pub mod proof;
pub mod prove;
pub mod ptau;
pub mod r1cs;
pub mod secret;
#[cfg(test)]
mod testing;
pub mod transcript;
mod unreduced;
pub mod verify;
pub mod zkey;

pub use error::{Error, Result};
