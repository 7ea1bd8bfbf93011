//! A proof and its bytes.
use ark_bn254::{G1Affine, G2Affine};

use crate::field::{g1_be, g2_be};

/// A . B . C, uncompressed and big-endian, in EIP-197's order (the imaginary part of B's coordinates first).
pub const PROOF_BYTES: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    pub a: G1Affine,
    pub b: G2Affine,
    pub c: G1Affine,
}

impl Proof {
    pub fn to_bytes(&self) -> [u8; PROOF_BYTES] {
        let mut out = [0u8; PROOF_BYTES];
        out[..64].copy_from_slice(&g1_be(&self.a));
        out[64..192].copy_from_slice(&g2_be(&self.b));
        out[192..].copy_from_slice(&g1_be(&self.c));
        out
    }
}
