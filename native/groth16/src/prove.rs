//! The prover (Groth 2016, section 3.2) over snarkjs's keys, which carry A and B but not C.
//!
//! (A w) o (B w) is C w on the domain, so the quotient's numerator vanishes there, and its values on the odd
//! points of the doubled domain determine it: section 9 holds the Lagrange points for those.
use std::path::Path;

use ark_bn254::{g1, g2, Fr};
use ark_ec::CurveGroup;
use ark_ff::{BigInt, FftField, PrimeField, Zero};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use zeroize::Zeroizing;

use crate::binfile::le32;
use crate::error::{malformed, Error, Result};
use crate::fft;
use crate::field::limbs;
use crate::hidden::{msm_plain, Digits};
use crate::r1cs::Witness;
use crate::transcript::random_scalar;
use crate::verify::{Proof, VerifyingKey};
use crate::widths::{Widths, WHOLE};
use crate::zkey::{KeyFile, COEFFICIENT};

/// Prove that `witness` satisfies the circuit of the key, with fresh randomness. The function verifies the proof before it
/// returns it: for a witness that does not satisfy the circuit it returns an error, not a bad proof.
///
/// `widths` has the maximum lengths of the wires' values. The number of steps depends on it and on no secret.
pub fn prove(zkey: &Path, witness: &Witness, widths: Option<&Widths>) -> Result<Proof> {
    let key = KeyFile::open(zkey)?;
    let h = &key.header;
    if witness.0.len() != h.wires {
        return Err(Error::Mismatch(format!(
            "the witness has {} values, but the key has {} wires",
            witness.0.len(),
            h.wires
        )));
    }
    if let Some(other) = widths.map(|w| w.0.len()).filter(|n| *n != h.wires) {
        return Err(Error::Mismatch(format!(
            "the constraints have {other} wires, but the key has {}",
            h.wires
        )));
    }
    // A witness with a value that is longer than the constraints allow does not satisfy the constraints.
    let cut = |values: &[BigInt<4>], widths: Option<&Widths>| {
        widths
            .and_then(|widths| Digits::new(values, widths))
            .unwrap_or_else(|| {
                Digits::new(values, &Widths::whole(values.len()))
                    .expect("values are below the group order")
            })
    };
    // One sum covers the points of the private wires and of the quotient, so that they share buckets.
    let private = h.public + 1;
    let c_sum = {
        let mut values = Zeroizing::new(Vec::with_capacity(h.wires - private + h.domain));
        values.extend_from_slice(&witness.0[private..]);
        values.extend_from_slice(&quotient(&key, witness)?);
        let mut points = key.plain_points::<g1::Config>(8)?;
        points.extend(key.plain_points::<g1::Config>(9)?);
        let widths = widths.map(|widths| {
            let mut widths = widths.0[private..].to_vec();
            widths.resize(values.len(), WHOLE);
            Widths(widths)
        });
        msm_plain::<g1::Config>(&points, &cut(&values, widths.as_ref()))
    };

    let digits = cut(&witness.0, widths);
    let a_sum = msm_plain::<g1::Config>(&key.plain_points::<g1::Config>(5)?, &digits);
    let b1_sum = msm_plain::<g1::Config>(&key.plain_points::<g1::Config>(6)?, &digits);
    let b2_sum = msm_plain::<g2::Config>(&key.plain_points::<g2::Config>(7)?, &digits);

    let (r, s) = (random_scalar()?, random_scalar()?);
    let a = a_sum + h.alpha1 + h.delta1 * r;
    let b = b2_sum + h.beta2 + h.delta2 * s;
    let b1 = b1_sum + h.beta1 + h.delta1 * s;
    let c = c_sum + a * s + b1 * r - h.delta1 * (r * s);
    let proof = Proof {
        a: a.into_affine(),
        b: b.into_affine(),
        c: c.into_affine(),
    };
    let inputs: Vec<Fr> = witness.0[1..=h.public]
        .iter()
        .map(|x| Fr::from_bigint(*x).expect("checked when it was read"))
        .collect();
    if !VerifyingKey::of(&key)?.verify(&proof, &inputs)? {
        return Err(Error::Mismatch(
            "the witness does not satisfy the circuit of this key".into(),
        ));
    }
    Ok(proof)
}

/// (A B - C) on the odd points of the doubled domain, as plain integers.
fn quotient(key: &KeyFile, witness: &Witness) -> Result<Zeroizing<Vec<BigInt<4>>>> {
    let [mut a, mut b] = products(key, witness)?;
    if a.len() >= fft::MINIMUM {
        return Ok(Zeroizing::new(fft::quotient(&a, &b)));
    }
    let n = key.header.domain;
    let products = a.iter().zip(b.iter()).map(|(a, b)| *a * b);
    let mut c: Zeroizing<Vec<Fr>> = Zeroizing::new(products.collect());
    let Some(domain) = Radix2EvaluationDomain::<Fr>::new(n) else {
        return malformed(key.file.place("header"), "the domain is too large");
    };
    let odd = domain
        .get_coset(Fr::get_root_of_unity(2 * n as u64).expect("at most 2^28"))
        .expect("the root is not zero");
    for values in [&mut a, &mut b, &mut c] {
        domain.ifft_in_place(&mut **values);
        odd.fft_in_place(&mut **values);
    }
    let all = a.iter().zip(b.iter()).zip(c.iter());
    let differences = all.map(|((a, b), c)| (*a * b - c).into_bigint());
    Ok(Zeroizing::new(differences.collect()))
}

/// The values of A w and of B w on the domain.
fn products(key: &KeyFile, witness: &Witness) -> Result<[Zeroizing<Vec<Fr>>; 2]> {
    const RUN: u64 = (1 << 12) * COEFFICIENT as u64;
    let section = key.file.section(4)?;
    let place = || key.file.place("section 4");
    let mut head = [0u8; 4];
    if section.size < 4 {
        return malformed(place(), "the section is truncated");
    }
    key.file.read(section.offset, &mut head)?;
    if section.size != 4 + u64::from(le32(&head)) * COEFFICIENT as u64 {
        return malformed(place(), "the section's size does not match its count");
    }
    let mut out = [0, 1].map(|_| Zeroizing::new(vec![Fr::zero(); key.header.domain]));
    let mut raw = Vec::new();
    let mut at = 4;
    while at < section.size {
        raw.resize(RUN.min(section.size - at) as usize, 0);
        key.file.read(section.offset + at, &mut raw)?;
        at += raw.len() as u64;
        for entry in raw.chunks_exact(COEFFICIENT) {
            let kind = le32(&entry[..4]);
            let Some(out) = out.get_mut(kind as usize) else {
                return malformed(place(), format!("expected matrix 0 or 1, found {kind}"));
            };
            let (row, wire) = (le32(&entry[4..8]) as usize, le32(&entry[8..12]) as usize);
            let value = limbs(&entry[12..]);
            if row >= out.len() || wire >= witness.0.len() || value >= Fr::MODULUS {
                return malformed(
                    place(),
                    format!("the coefficient of row {row} and wire {wire} is out of range"),
                );
            }
            // The file has k R^2 and the witness w: their Montgomery product is k w R, the form of k w.
            out[row] += Fr::new_unchecked(value) * Fr::new_unchecked(witness.0[wire]);
        }
    }
    Ok(out)
}
