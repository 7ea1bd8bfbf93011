//! The first generators as a table, for a verifier without lanes or threads: hashing them takes such a verifier longer than a
//! proof.
//!
//! A table is accepted by its digest. A test compares this digest with the digest of the hash's results
//! (`docs/scan/transcript.md`).
use ark_bn254::Fq;
use ark_ec::AffineRepr;
use ark_ff::{BigInt, BigInteger, PrimeField};
use sha2::{Digest, Sha256};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::{know, query_generators, vector_generators, G1Affine, ENCODED};

/// The number of vector generators: for the rows of 2^20 positions, or for 16 records over 2^17 positions.
pub const VECTOR: usize = 1 << 15;
/// Generators of queries: of 1,024 components and a salt.
pub const QUERY: usize = 1025;

const POINT: usize = 2 * ENCODED;

/// SHA-256 of the table, in hexadecimal digits.
pub const DIGEST: &str = "56f48d9534a5ee6d2d517aa3c4224f05437c166b2c4bfb9310b79f67471ad876";

/// Coordinates, x before y, 32 bytes each big-endian: the generators of vectors, then those of queries.
pub fn table<E: Engine>() -> Vec<u8> {
    let coordinates = |p: &G1Affine| {
        let (x, y) = p.xy().expect("no generator is neutral");
        [x, y].map(|c| c.into_bigint().to_bytes_be()).concat()
    };
    let (vector, query) = (vector_generators::<E>(VECTOR), query_generators::<E>(QUERY));
    let both = vector[..VECTOR].iter().chain(&query[..QUERY]);
    both.flat_map(coordinates).collect()
}

/// Takes a table, so that its generators are not hashed. Refuses every table other than [`table`].
pub fn take(table: &[u8]) -> Result<()> {
    let mut vector = read(table)?;
    let query = vector.split_off(VECTOR);
    know(vector, query);
    Ok(())
}

/// The points of a table that has the digest.
pub fn read(table: &[u8]) -> Result<Vec<G1Affine>> {
    let digest = Sha256::digest(table);
    let actual: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    if actual != DIGEST {
        return Err(Error::invalid("generators", DIGEST, actual));
    }
    let (points, _) = table.as_chunks::<POINT>();
    Ok(points.iter().map(point).collect())
}

/// The digest determines the table, so the point is not checked to be on the curve.
fn point(coordinates: &[u8; POINT]) -> G1Affine {
    let (x, y) = coordinates.split_at(ENCODED);
    let [x, y] = [x, y].map(|bytes| {
        let mut limbs = [0u64; 4];
        for (limb, bytes) in limbs.iter_mut().rev().zip(bytes.chunks_exact(8)) {
            *limb = bytes.iter().fold(0, |acc, &b| acc << 8 | u64::from(b));
        }
        Fq::from_bigint(BigInt::new(limbs)).expect("a coordinate")
    });
    G1Affine::new_unchecked(x, y)
}
