//! Verification of signatures: Ed25519 (RFC 8032, section 5.1.7, without the cofactor), and those of drand chains, which are BLS
//! over BLS12-381 with RFC 9380's hashing to the curve and points in the ZCash form.
use ark_bls12_381::{g1, g2, Bls12_381, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::hashing::curve_maps::wb::WBMap;
use ark_ec::hashing::map_to_curve_hasher::MapToCurveBasedHasher;
use ark_ec::hashing::HashToCurve;
use ark_ec::pairing::Pairing;
use ark_ec::AffineRepr;
use ark_ff::field_hashers::DefaultFieldHasher;
use ark_serialize::CanonicalDeserialize;
use ed25519_dalek::Verifier;
use sha2::Sha256;

use crate::error::Error;

const DST_G1: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";
const DST_G2: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_";

type Hasher<P, C> = MapToCurveBasedHasher<P, DefaultFieldHasher<Sha256, 128>, WBMap<C>>;

/// A point of prime order from its only compressed encoding.
fn point<P: AffineRepr + CanonicalDeserialize>(
    bytes: &[u8],
    size: usize,
    field: &str,
) -> Result<P, Error> {
    let refused =
        |actual: String| Error::invalid(field, format!("a compressed point, {size} bytes"), actual);
    if bytes.len() != size {
        return Err(refused(format!("{} bytes", bytes.len())));
    }
    let point = P::deserialize_compressed(bytes).map_err(|e| refused(e.to_string()))?;
    if point.is_zero() {
        return Err(refused("the neutral point".to_owned()));
    }
    let mut again = Vec::with_capacity(size);
    point
        .serialize_compressed(&mut again)
        .map_err(|e| refused(e.to_string()))?;
    if again != bytes {
        return Err(refused(
            "another encoding than the canonical one".to_owned(),
        ));
    }
    Ok(point)
}

/// Whether a signature in G1 is valid under a key in G2 for a message (drand's `bls-unchained-g1-rfc9380`).
pub fn signed_in_g1(key: &[u8], message: &[u8], signature: &[u8]) -> Result<bool, Error> {
    let key: G2Affine = point(key, 96, "public key")?;
    let signature: G1Affine = point(signature, 48, "signature")?;
    let hasher = Hasher::<G1Projective, g1::Config>::new(DST_G1).expect("the map is of this curve");
    let hashed: G1Affine = hasher.hash(message).expect("every message has a point");
    Ok(equal(signature, G2Affine::generator(), hashed, key))
}

/// Whether a signature in G2 is valid under a key in G1 for a message (drand's `pedersen-bls-chained`).
pub fn signed_in_g2(key: &[u8], message: &[u8], signature: &[u8]) -> Result<bool, Error> {
    let key: G1Affine = point(key, 48, "public key")?;
    let signature: G2Affine = point(signature, 96, "signature")?;
    let hasher = Hasher::<G2Projective, g2::Config>::new(DST_G2).expect("the map is of this curve");
    let hashed: G2Affine = hasher.hash(message).expect("every message has a point");
    Ok(equal(G1Affine::generator(), signature, key, hashed))
}

/// Whether e(a, b) = e(c, d).
fn equal(a: G1Affine, b: G2Affine, c: G1Affine, d: G2Affine) -> bool {
    Bls12_381::multi_pairing([a, -c], [b, d]).0 == ark_ff::Field::ONE
}

/// Whether 64 bytes are the signature of a message under a key: S is below the group's order, and R is byte for byte the
/// encoding of [S]B - [k]A. Under bytes that encode no point, no signature is valid.
pub fn ed25519_verifies(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let Ok(key) = ed25519_dalek::VerifyingKey::from_bytes(key) else {
        return false;
    };
    key.verify(message, &ed25519_dalek::Signature::from_bytes(signature))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
            .collect()
    }

    /// Round 1000 of drand's quicknet, as its own clients' tests have it.
    fn quicknet() -> [Vec<u8>; 3] {
        let key = concat!(
            "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c",
            "8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb",
            "5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
        );
        let signature = concat!(
            "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125",
            "e342b73a8dd2bacbe47e4b6b63ed5e39"
        );
        let message: [u8; 32] = sha2::Digest::finalize(sha2::Digest::chain_update(
            <Sha256 as sha2::Digest>::new(),
            1000u64.to_be_bytes(),
        ))
        .into();
        [bytes(key), message.to_vec(), bytes(signature)]
    }

    #[test]
    fn a_published_round_is_signed() {
        let [key, message, signature] = quicknet();
        assert_eq!(signed_in_g1(&key, &message, &signature), Ok(true));
        assert_eq!(signed_in_g1(&key, b"another", &signature), Ok(false));
    }

    #[test]
    fn points_have_one_encoding() {
        let [key, message, signature] = quicknet();
        let mut neutral = vec![0; 48];
        neutral[0] = 0xc0;
        let mut twice_neutral = neutral.clone();
        twice_neutral[47] = 1;
        let mut uncompressed = signature.clone();
        uncompressed[0] &= 0x7f;
        // x = 4 is on the curve and out of the subgroup.
        let mut outside = vec![0; 48];
        (outside[0], outside[47]) = (0x80, 4);
        let mut large = vec![0xff; 48];
        large[0] = 0x9f;
        for wrong in [
            neutral,
            twice_neutral,
            uncompressed,
            outside,
            large,
            signature[1..].to_vec(),
        ] {
            assert!(signed_in_g1(&key, &message, &wrong).is_err(), "{wrong:?}");
            assert!(signed_in_g2(&wrong, &message, &key).is_err());
        }
        assert!(signed_in_g1(&signature, &message, &key).is_err());
    }
}
