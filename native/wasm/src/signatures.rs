//! Hashes and signatures, by the core's rules: Poseidon, Ed25519, BLS of drand chains.
use ragaudit_field_simd::field::{elements, to_bytes, Fr};
use ragaudit_field_simd::{poseidon, signatures};

use crate::wire::{Arguments, Outcome, Results};

/// Runs the function with a name; None if this module has no such function.
pub fn run(name: &str, a: &mut Arguments, out: &mut Results) -> Option<Outcome<()>> {
    Some(match name {
        "poseidon_hash" => poseidon_hash(a, out),
        "poseidon_hash_list" => poseidon_hash_list(a, out),
        "ed25519_verify" => verify(a, out),
        "bls_signed_in_g1" => signed(a, out, signatures::signed_in_g1),
        "bls_signed_in_g2" => signed(a, out, signatures::signed_in_g2),
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

/// Keys and signatures of other lengths are invalid.
fn verify(a: &mut Arguments, out: &mut Results) -> Outcome<()> {
    let (key, signature, message) = (a.bytes()?, a.bytes()?, a.bytes()?);
    let holds = match (key.try_into(), signature.try_into()) {
        (Ok(key), Ok(signature)) => signatures::ed25519_verifies(key, message, signature),
        _ => false,
    };
    out.integer(i64::from(holds));
    Ok(())
}

type Signed = fn(&[u8], &[u8], &[u8]) -> Result<bool, ragaudit_field_simd::Error>;

fn signed(a: &mut Arguments, out: &mut Results, check: Signed) -> Outcome<()> {
    let (key, message, signature) = (a.bytes()?, a.bytes()?, a.bytes()?);
    let holds = check(key, message, signature).map_err(|e| e.to_string())?;
    out.integer(i64::from(holds));
    Ok(())
}
