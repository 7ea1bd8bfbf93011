//! Hashes and signatures: Poseidon, Ed25519 as OpenSSL accepts it, BLS of drand chains.
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use ragaudit_core::field::{elements, to_bytes, Fr};
use ragaudit_core::{bls, poseidon};
use sha2::{Digest, Sha512};

use crate::wire::{Arguments, Outcome, Results};

/// Does what the name asks for; None if it is not of this module.
pub fn run(name: &str, a: &mut Arguments, out: &mut Results) -> Option<Outcome<()>> {
    Some(match name {
        "poseidon_hash" => poseidon_hash(a, out),
        "poseidon_hash_list" => poseidon_hash_list(a, out),
        "ed25519_verify" => verify(a, out),
        "bls_signed_in_g1" => signed(a, out, bls::signed_in_g1),
        "bls_signed_in_g2" => signed(a, out, bls::signed_in_g2),
        _ => return None,
    })
}

fn read(bytes: &[u8], field: &str) -> Outcome<Vec<Fr>> {
    elements(bytes, field).map_err(|e| e.to_string())
}

fn poseidon_hash(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let inputs = read(a.bytes()?, "inputs")?;
    out.bytes(&to_bytes(
        &poseidon::hash(&inputs).map_err(|e| e.to_string())?,
    ));
    Ok(())
}

fn poseidon_hash_list(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let tag = a.number()?;
    let inputs = read(a.bytes()?, "elements")?;
    out.bytes(&to_bytes(&poseidon::hash_list(tag, &inputs)));
    Ok(())
}

fn verify(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (key, signature, message) = (a.bytes()?, a.bytes()?, a.bytes()?);
    out.integer(i64::from(
        accepted(key, signature, message).unwrap_or(false),
    ));
    Ok(())
}

/// Whether [S]B - [h]A encodes to the signature's R (RFC 8032, section 5.1.7, without the cofactor). As in OpenSSL a key may
/// have small order or a y that is not reduced, S is below the group's order, and R is compared as bytes.
fn accepted(key: &[u8], signature: &[u8], message: &[u8]) -> Option<bool> {
    let key: [u8; 32] = key.try_into().ok()?;
    let (r, s) = signature.split_at_checked(32)?;
    let s: Option<Scalar> = Scalar::from_canonical_bytes(s.try_into().ok()?).into();
    let point = CompressedEdwardsY(key).decompress()?;
    let hash = Sha512::new()
        .chain_update(r)
        .chain_update(key)
        .chain_update(message)
        .finalize();
    let h = Scalar::from_bytes_mod_order_wide(&hash.into());
    let found = EdwardsPoint::vartime_double_scalar_mul_basepoint(&h, &-point, &s?);
    Some(found.compress().as_bytes() == r)
}

type Signed = fn(&[u8], &[u8], &[u8]) -> Result<bool, ragaudit_core::Error>;

fn signed(a: &mut Arguments, out: &mut Results, check: Signed) -> Outcome<()> {
    let (key, message, signature) = (a.bytes()?, a.bytes()?, a.bytes()?);
    let holds = check(key, message, signature).map_err(|e| e.to_string())?;
    out.integer(i64::from(holds));
    Ok(())
}
