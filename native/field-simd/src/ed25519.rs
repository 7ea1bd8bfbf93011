//! Verification of Ed25519 signatures (RFC 8032, section 5.1.7, without the cofactor).
use ed25519_dalek::{Signature, Verifier, VerifyingKey};

/// Whether 64 bytes are the signature of a message under a key: S is below the group's order, and R is byte for byte the
/// encoding of [S]B - [k]A. Bytes that encode no point are nobody's key.
pub fn verifies(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let Ok(key) = VerifyingKey::from_bytes(key) else {
        return false;
    };
    key.verify(message, &Signature::from_bytes(signature))
        .is_ok()
}
