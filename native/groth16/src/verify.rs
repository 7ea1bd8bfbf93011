//! Proofs, verification keys in snarkjs's JSON, and the verifier (Groth 2016, section 3.2) of single proofs and of batches.
use std::sync::{Arc, Mutex};

use ark_bn254::{g1, g2, Bn254, Fq, Fq12, Fq2, Fq6, Fr, G1Affine, G1Projective, G2Affine};
use ark_ec::pairing::{Pairing, PairingOutput};
use ark_ec::short_weierstrass::Affine;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInt, BigInteger, PrimeField, Zero};
use serde::{Deserialize, Serialize};

use crate::error::{malformed, Error, Result};
use crate::field::{checked_point, checked_point_from_be, g1_be, g2_be, scalar_from_be};
use crate::msm::recode;
#[cfg(feature = "prover")]
use crate::zkey::KeyFile;

type Prepared2 = <Bn254 as Pairing>::G2Prepared;
type Target = PairingOutput<Bn254>;

/// The number of a proof that does not verify, with the reason if the proof or its inputs are malformed; without a reason
/// if the equation is false.
pub type Failure = (usize, Option<Error>);

#[cfg(feature = "prover")]
mod batch;

/// The module for browsers draws no weights and has no threads, so it lacks these methods.
#[cfg(not(feature = "prover"))]
impl VerifyingKey {
    fn decode_all<B: AsRef<[u8]>>(
        &self,
        proofs: &[B],
        inputs: &[B],
    ) -> Vec<Result<(Proof, Vec<Fr>)>> {
        let pairs = proofs.iter().zip(inputs);
        pairs
            .map(|(proof, inputs)| self.decode(proof.as_ref(), inputs.as_ref()))
            .collect()
    }

    fn wrong(&self, proofs: &[Proof], inputs: &[Vec<Fr>]) -> Result<Vec<usize>> {
        self.alone(proofs, inputs)
    }
}

/// Digits base 2^4 for the sum over the public inputs.
const WIDTH: usize = 4;

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

/// A checked key, with the values that every verification needs.
pub struct VerifyingKey {
    #[cfg_attr(not(feature = "prover"), allow(dead_code))]
    alpha1: G1Affine,
    #[cfg_attr(not(feature = "prover"), allow(dead_code))]
    beta2: Prepared2,
    gamma2: Prepared2,
    delta2: Prepared2,
    alpha_beta: Target,
    ic: Vec<G1Affine>,
    /// 1 to 8 times IC_(j+1)
    multiples: Vec<Vec<G1Affine>>,
}

type Decimal = String;
type Pair = [Decimal; 2];
type Json1 = [Decimal; 3];
type Json2 = [Pair; 3];

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyJson {
    protocol: String,
    curve: String,
    #[serde(rename = "nPublic")]
    n_public: u32,
    vk_alpha_1: Json1,
    vk_beta_2: Json2,
    vk_gamma_2: Json2,
    vk_delta_2: Json2,
    /// A field that snarkjs writes and does not read. It is checked if it is present.
    vk_alphabeta_12: Option<[[Pair; 3]; 2]>,
    #[serde(rename = "IC")]
    ic: Vec<Json1>,
}

#[cfg(feature = "prover")]
fn fq2_json(x: &Fq2) -> Pair {
    [x.c0.to_string(), x.c1.to_string()]
}

#[cfg(feature = "prover")]
fn g1_json(p: &G1Affine) -> Json1 {
    [p.x.to_string(), p.y.to_string(), "1".into()]
}

#[cfg(feature = "prover")]
fn g2_json(p: &G2Affine) -> Json2 {
    let one = ["1".to_string(), "0".to_string()];
    [fq2_json(&p.x), fq2_json(&p.y), one]
}

#[cfg(feature = "prover")]
fn fq6_json(x: &Fq6) -> [Pair; 3] {
    [fq2_json(&x.c0), fq2_json(&x.c1), fq2_json(&x.c2)]
}

/// The canonical decimal form of an element of Fq.
fn decimal(text: &str, place: &str) -> Result<Fq> {
    let digits = text.as_bytes();
    let canonical = !digits.is_empty()
        && digits.len() <= 77
        && digits.iter().all(u8::is_ascii_digit)
        && (digits[0] != b'0' || digits.len() == 1);
    if !canonical {
        return malformed(place, "the number is not a canonical decimal");
    }
    let mut value = BigInt::<4>::zero();
    for d in digits {
        // At most 77 digits: below 2^256, no overflow.
        let eight = value << 3;
        value.mul2();
        value.add_with_carry(&eight);
        value.add_with_carry(&BigInt::from(u64::from(d - b'0')));
    }
    match Fq::from_bigint(value) {
        Some(x) => Ok(x),
        None => malformed(place, "the number is not below the modulus"),
    }
}

fn pair(text: &Pair, place: &str) -> Result<Fq2> {
    Ok(Fq2::new(
        decimal(&text[0], place)?,
        decimal(&text[1], place)?,
    ))
}

fn point1(text: &Json1, place: &str) -> Result<G1Affine> {
    let (x, y) = (decimal(&text[0], place)?, decimal(&text[1], place)?);
    if text[2] != "1" {
        return malformed(place, "the point is at infinity or not affine");
    }
    checked_point::<g1::Config>(x, y).or_else(|reason| malformed(place, reason))
}

fn point2(text: &Json2, place: &str) -> Result<G2Affine> {
    let (x, y) = (pair(&text[0], place)?, pair(&text[1], place)?);
    if text[2] != ["1", "0"] {
        return malformed(place, "the point is at infinity or not affine");
    }
    checked_point::<g2::Config>(x, y).or_else(|reason| malformed(place, reason))
}

/// Whether delta is gamma or its negative. With such a delta anybody can forge proofs (C = -+IC(x) with alpha and beta). A
/// key has such a delta if it has no contribution, or if the secrets of its contributions cancel.
fn delta_is_gamma(delta: &G2Affine, gamma: &G2Affine) -> bool {
    delta.x == gamma.x
}

const FORGEABLE: &str = "delta is gamma: anyone can forge proofs under this key";

/// snarkjs's `verification_key.json` for a proving key, byte for byte. A key without a contribution has none.
#[cfg(feature = "prover")]
pub fn key_json(key: &KeyFile) -> Result<String> {
    let h = &key.header;
    if delta_is_gamma(&h.delta2, &h.gamma2) {
        return malformed(key.file.place("header"), FORGEABLE);
    }
    let alpha_beta = Bn254::pairing(h.alpha1, h.beta2).0;
    let json = KeyJson {
        protocol: "groth16".into(),
        curve: "bn128".into(),
        n_public: h.public as u32,
        vk_alpha_1: g1_json(&h.alpha1),
        vk_beta_2: g2_json(&h.beta2),
        vk_gamma_2: g2_json(&h.gamma2),
        vk_delta_2: g2_json(&h.delta2),
        vk_alphabeta_12: Some([fq6_json(&alpha_beta.c0), fq6_json(&alpha_beta.c1)]),
        ic: input_points(key)?.iter().map(g1_json).collect(),
    };
    let mut out = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, format);
    json.serialize(&mut serializer)
        .map_err(|e| Error::Mismatch(e.to_string()))?;
    String::from_utf8(out).map_err(|e| Error::Mismatch(e.to_string()))
}

#[cfg(feature = "prover")]
fn input_points(key: &KeyFile) -> Result<Vec<G1Affine>> {
    let points = key.points::<g1::Config>(3)?;
    if let Some(i) = points.iter().position(|p| p.is_zero()) {
        return malformed(
            key.file.place(&format!("IC[{i}]")),
            "the point is at infinity",
        );
    }
    Ok(points)
}

impl VerifyingKey {
    fn new(
        alpha1: G1Affine,
        beta2: G2Affine,
        gamma2: G2Affine,
        delta2: G2Affine,
        ic: Vec<G1Affine>,
    ) -> Self {
        let multiples = ic[1..]
            .iter()
            .map(|p| {
                let run: Vec<G1Projective> = (1u64..=1 << (WIDTH - 1))
                    .map(|k| p.mul_bigint([k]))
                    .collect();
                G1Projective::normalize_batch(&run)
            })
            .collect();
        Self {
            alpha1,
            beta2: beta2.into(),
            gamma2: gamma2.into(),
            delta2: delta2.into(),
            alpha_beta: Bn254::pairing(alpha1, beta2),
            ic,
            multiples,
        }
    }

    /// The key that belongs to a proving key.
    #[cfg(feature = "prover")]
    pub fn of(key: &KeyFile) -> Result<Self> {
        let h = &key.header;
        if delta_is_gamma(&h.delta2, &h.gamma2) {
            return malformed(key.file.place("header"), FORGEABLE);
        }
        let ic = input_points(key)?;
        Ok(Self::new(h.alpha1, h.beta2, h.gamma2, h.delta2, ic))
    }

    /// Parse snarkjs's JSON: known keys once each, canonical decimals below the modulus, points on the curve and
    /// in the subgroup and not at infinity, delta not gamma, and `vk_alphabeta_12`, if present, the
    /// pairing of alpha and beta.
    pub fn parse(text: &str) -> Result<Self> {
        let place = |field: &str| format!("verification key: {field}");
        let json: KeyJson = serde_json::from_str(text).map_err(|e| Error::Malformed {
            place: "verification key".into(),
            reason: e.to_string(),
        })?;
        if json.protocol != "groth16" || json.curve != "bn128" {
            return malformed(
                place("protocol"),
                format!(
                    "expected groth16 over bn128, found {} over {}",
                    json.protocol, json.curve
                ),
            );
        }
        if json.ic.len() as u64 != u64::from(json.n_public) + 1 {
            return malformed(
                place("IC"),
                format!(
                    "expected one point more than the {} public inputs, found {}",
                    json.n_public,
                    json.ic.len()
                ),
            );
        }
        let ic = json
            .ic
            .iter()
            .enumerate()
            .map(|(i, p)| point1(p, &place(&format!("IC[{i}]"))))
            .collect::<Result<Vec<_>>>()?;
        let alpha1 = point1(&json.vk_alpha_1, &place("vk_alpha_1"))?;
        let beta2 = point2(&json.vk_beta_2, &place("vk_beta_2"))?;
        let gamma2 = point2(&json.vk_gamma_2, &place("vk_gamma_2"))?;
        let delta2 = point2(&json.vk_delta_2, &place("vk_delta_2"))?;
        if delta_is_gamma(&delta2, &gamma2) {
            return malformed(place("vk_delta_2"), FORGEABLE);
        }
        let key = Self::new(alpha1, beta2, gamma2, delta2, ic);
        if let Some([c0, c1]) = &json.vk_alphabeta_12 {
            let place = place("vk_alphabeta_12");
            let sixth = |x: &[Pair; 3]| -> Result<Fq6> {
                let [c0, c1, c2] = x;
                Ok(Fq6::new(
                    pair(c0, &place)?,
                    pair(c1, &place)?,
                    pair(c2, &place)?,
                ))
            };
            if Fq12::new(sixth(c0)?, sixth(c1)?) != key.alpha_beta.0 {
                return malformed(place, "the value is not the pairing of alpha and beta");
            }
        }
        Ok(key)
    }

    /// `parse` with a cache of the last few keys, because a verifier checks many proofs under one key.
    pub fn cached(text: &str) -> Result<Arc<Self>> {
        const CACHED: usize = 8;
        type Entry = (String, Arc<VerifyingKey>);
        static CACHE: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
        let lock = || CACHE.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, key)) = lock().iter().find(|(known, _)| known == text) {
            return Ok(key.clone());
        }
        let key = Arc::new(Self::parse(text)?);
        let mut cache = lock();
        if cache.len() == CACHED {
            cache.remove(0);
        }
        cache.push((text.to_string(), key.clone()));
        Ok(key)
    }

    fn check_count(&self, inputs: &[Fr]) -> Result<()> {
        if inputs.len() + 1 == self.ic.len() {
            return Ok(());
        }
        malformed(
            "public inputs",
            format!(
                "expected {} values, found {}",
                self.ic.len() - 1,
                inputs.len()
            ),
        )
    }

    /// IC_0 + sum_j x_j IC_(j+1)
    fn input_sum(&self, inputs: &[Fr]) -> G1Projective {
        let mut windows: Vec<Vec<(usize, i16)>> = vec![Vec::new(); 65];
        for (j, x) in inputs.iter().enumerate() {
            recode(&x.into_bigint(), WIDTH, |w, d| windows[w].push((j, d)));
        }
        let mut sum = G1Projective::zero();
        for window in windows.iter().rev() {
            for _ in 0..WIDTH {
                sum.double_in_place();
            }
            for &(j, d) in window {
                let multiple = self.multiples[j][usize::from(d.unsigned_abs()) - 1];
                if d > 0 {
                    sum += multiple;
                } else {
                    sum -= multiple;
                }
            }
        }
        sum + self.ic[0]
    }

    /// e(A, B) = e(alpha, beta) e(IC(x), gamma) e(C, delta).
    ///
    /// Proofs and inputs must come from `decode_proof` and `decode_inputs` or the prover.
    pub fn verify(&self, proof: &Proof, inputs: &[Fr]) -> Result<bool> {
        self.check_count(inputs)?;
        let sum = self.input_sum(inputs).into_affine();
        let product = Bn254::multi_miller_loop(
            [proof.a, -sum, -proof.c],
            [proof.b.into(), self.gamma2.clone(), self.delta2.clone()],
        );
        Ok(Bn254::final_exponentiation(product) == Some(self.alpha_beta))
    }

    /// The encoded proofs that do not verify for their inputs, ascending. A malformed proof is refused with its reason, and
    /// the other proofs are verified without it.
    ///
    /// ```no_run
    /// # fn main() -> ragaudit_groth16::Result<()> {
    /// # let (text, proof, inputs) = ("", [0u8; 256], [0u8; 32]);
    /// let key = ragaudit_groth16::verify::VerifyingKey::cached(text)?;
    /// assert!(key.failures(&[&proof[..]], &[&inputs[..]])?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn failures<B: AsRef<[u8]> + Sync>(
        &self,
        proofs: &[B],
        inputs: &[B],
    ) -> Result<Vec<Failure>> {
        if proofs.len() != inputs.len() {
            return malformed(
                "public inputs",
                format!(
                    "expected {} lists, one for each proof, found {}",
                    proofs.len(),
                    inputs.len()
                ),
            );
        }
        let (mut bad, mut places) = (Vec::new(), Vec::new());
        let (mut read, mut values) = (Vec::new(), Vec::new());
        for (i, decoded) in self.decode_all(proofs, inputs).into_iter().enumerate() {
            match decoded {
                Ok((proof, inputs)) => {
                    places.push(i);
                    read.push(proof);
                    values.push(inputs);
                }
                Err(reason) => bad.push((i, Some(reason))),
            }
        }
        let wrong = self.wrong(&read, &values)?;
        bad.extend(wrong.into_iter().map(|i| (places[i], None)));
        bad.sort_unstable_by_key(|(i, _)| *i);
        Ok(bad)
    }

    fn decode(&self, proof: &[u8], inputs: &[u8]) -> Result<(Proof, Vec<Fr>)> {
        let inputs = decode_inputs(inputs)?;
        self.check_count(&inputs)?;
        Ok((decode_proof(proof)?, inputs))
    }

    fn alone(&self, proofs: &[Proof], inputs: &[Vec<Fr>]) -> Result<Vec<usize>> {
        let each = proofs.iter().zip(inputs).enumerate();
        let wrong = each.filter_map(|(i, (proof, inputs))| match self.verify(proof, inputs) {
            Ok(holds) => (!holds).then_some(Ok(i)),
            Err(reason) => Some(Err(reason)),
        });
        wrong.collect()
    }
}

/// Decode 256 bytes to points, with every check: canonical, finite, on the curve, B in the subgroup.
pub fn decode_proof(bytes: &[u8]) -> Result<Proof> {
    if bytes.len() != PROOF_BYTES {
        return malformed(
            "proof",
            format!("expected {PROOF_BYTES} bytes, found {}", bytes.len()),
        );
    }
    fn point<P: crate::field::Group>(b: &[u8], name: &str) -> Result<Affine<P>> {
        checked_point_from_be(b).or_else(|reason| malformed(format!("proof: {name}"), reason))
    }
    Ok(Proof {
        a: point(&bytes[..64], "A")?,
        b: point(&bytes[64..192], "B")?,
        c: point(&bytes[192..], "C")?,
    })
}

/// Decode public inputs of 32 big-endian bytes each, which must be below the group order.
pub fn decode_inputs(bytes: &[u8]) -> Result<Vec<Fr>> {
    if !bytes.len().is_multiple_of(32) {
        return malformed(
            "public inputs",
            format!("expected 32 bytes for each, found {} in all", bytes.len()),
        );
    }
    bytes
        .chunks_exact(32)
        .enumerate()
        .map(|(i, b)| match scalar_from_be(b) {
            Some(x) => Ok(x),
            None => malformed(
                format!("public input {i}"),
                "the value is not below the group order",
            ),
        })
        .collect()
}
