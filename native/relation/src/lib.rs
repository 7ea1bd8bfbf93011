//! What `docs/relation.md` fixes, without lanes or threads: field elements as bytes, Poseidon round by round, the table of
//! DGS-1 and the score lattice. Provers have the same computed faster in `ragaudit-field-simd`.
pub mod dgs;
pub mod error;
pub mod field;
pub mod poseidon;
pub mod window;

pub use error::Error;

/// Nibbles of one packed field element: 252 bits, so every packed element is canonical.
pub const NIBBLES_PER_ELEMENT: usize = 63;
/// Bits of a coin's draw.
pub const PROBABILITY_BITS: usize = 40;
