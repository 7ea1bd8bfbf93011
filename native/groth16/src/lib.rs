//! Groth16 over BN254 in the file formats of circom and snarkjs.
//!
//! Reading is strict (sizes, primes, canonical elements, points on the curve, sections once, nothing trailing)
//! and returns errors that name the place; it never panics. Long sums and transforms use the lanes of ragaudit-field-simd, and
//! all other arithmetic is from arkworks.
pub mod affine;
#[cfg(feature = "prover")]
pub mod combine;

#[cfg(feature = "prover")]
pub mod binfile;
#[cfg(feature = "prover")]
pub mod ceremony;
mod error;
#[cfg(feature = "prover")]
mod fft;
pub mod field;
#[cfg(feature = "prover")]
mod file_cache;
#[cfg(feature = "prover")]
mod halves;
#[cfg(feature = "prover")]
pub mod hidden;
pub mod msm;
#[cfg(feature = "prover")]
pub mod plan;
#[cfg(feature = "prover")]
pub mod prove;
#[cfg(feature = "prover")]
pub mod ptau;
#[cfg(feature = "prover")]
pub mod r1cs;
#[cfg(feature = "prover")]
pub mod secret;
#[cfg(all(test, feature = "prover"))]
mod testing;
#[cfg(feature = "prover")]
pub mod transcript;
#[cfg(feature = "prover")]
mod unreduced;
pub mod verify;
#[cfg(feature = "prover")]
pub mod widths;
#[cfg(feature = "prover")]
pub mod zkey;

pub use error::{Error, Result};
