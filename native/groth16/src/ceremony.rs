//! Checks of both phases of a ceremony (Bowe, Gabizon, Miers 2017) on snarkjs's files: every contributor knew its
//! secret, and the points follow from the contributions. The checks compare points by random linear combinations with
//! weights of 128 bits, so a false file passes with probability below 2^-120.
//!
//! A false file gives `Error::Mismatch`, and an unreadable file gives `Error::Malformed`.
use std::path::Path;

use ark_bn254::{g1, g2, Bn254, Fr, G1Affine, G2Affine};
use ark_ec::pairing::Pairing;
use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInt, PrimeField, Zero};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};

use crate::binfile::Cursor;
use crate::error::{malformed, Error, Result};
use crate::field::{encode, g1_be, g2_be, point_to_be, Group};
use crate::msm::msm;
use crate::ptau::{first_challenge, PowersOfTau};
use crate::r1cs::R1cs;
use crate::transcript::{
    blake2b, hash_to_g2, random_weights, Blake2b, Digest, KeyProof, Parameters,
};
use crate::zkey::{finite, Key};

/// Points that are in memory at the same time.
const POINTS: usize = 1 << 17;
const WEIGHT: usize = 16;
/// The names of tau, alpha and beta, in the order of their proofs of knowledge.
const SECRETS: [&str; 3] = ["tau", "alpha", "beta"];

fn refute<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Mismatch(reason.into()))
}

fn claim(holds: bool, reason: impl FnOnce() -> String) -> Result<()> {
    if holds {
        Ok(())
    } else {
        refute(reason())
    }
}

/// Whether b = x a and d = x c for one x; a, b in G1, c, d in G2.
fn same_ratio(a: &G1Affine, b: &G1Affine, c: &G2Affine, d: &G2Affine) -> bool {
    Bn254::multi_pairing([*a, -*b], [*d, *c]).is_zero()
}

/// sum w_i P_i for two lists, with the same weights, which the function draws.
fn combined<P: Group>(a: &[Affine<P>], b: &[Affine<P>]) -> Result<(Projective<P>, Projective<P>)> {
    let weights = random_weights(a.len(), WEIGHT)?;
    Ok((msm(a, &weights), msm(b, &weights)))
}

/// Check a key. Except for delta, the key equals the initial key of `r1cs` under `ptau`. Delta is the product of the
/// recorded contributions, each contribution proves that its contributor knew the secret, and C and H are divided by
/// this delta.
///
/// [`verify_powers`] checks the powers of tau themselves.
pub fn verify_key(r1cs: &Path, ptau: &Path, zkey: &Path) -> Result<()> {
    let key = Key::read(zkey)?;
    let initial = Key::initial(&R1cs::read(r1cs)?, &PowersOfTau::open(ptau)?)?;
    let (h, fresh) = (&key.header, &initial.header);
    claim(
        (h.wires, h.public, h.domain) == (fresh.wires, fresh.public, fresh.domain),
        || {
            format!(
                "the key is another circuit's: it has {} wires, {} public inputs and a domain of {}, but the circuit has {}, {} and {}",
                h.wires, h.public, h.domain, fresh.wires, fresh.public, fresh.domain
            )
        },
    )?;
    claim(key.coefficients == initial.coefficients, || {
        "the key is another circuit's: its coefficients differ".into()
    })?;
    claim(
        (h.alpha1, h.beta1, h.beta2, h.gamma2)
            == (fresh.alpha1, fresh.beta1, fresh.beta2, fresh.gamma2),
        || "the key comes from other powers of tau".into(),
    )?;
    for (same, section) in [
        (key.ic == initial.ic, "IC"),
        (key.a == initial.a, "A"),
        (key.b1 == initial.b1, "B in G1"),
        (key.b2 == initial.b2, "B in G2"),
    ] {
        claim(same, || {
            format!("the key's points {section} are not the circuit's under these powers")
        })?;
    }
    claim(key.circuit_hash == initial.circuit_hash, || {
        "the key's circuit hash is not the circuit's under these powers".into()
    })?;
    verify_contributions(&key)?;
    for (name, before, after) in [("C", &initial.c, &key.c), ("H", &initial.h, &key.h)] {
        let (before, after) = combined(before, after)?;
        let holds = same_ratio(
            &after.into_affine(),
            &before.into_affine(),
            &G2Affine::generator(),
            &h.delta2,
        );
        claim(holds, || {
            format!("the key's points {name} are not divided by its delta")
        })?;
    }
    Ok(())
}

/// Check that delta is the generator times the factors of all contributions, that each contributor knew its factor, and
/// that no product repeats an earlier product: the secrets between two equal products would cancel.
fn verify_contributions(key: &Key) -> Result<()> {
    let mut delta = G1Affine::generator();
    let mut been = Been::default();
    for (i, c) in key.contributions.iter().enumerate() {
        let place = || format!("contribution {} ({:?})", i + 1, c.parameters.name);
        let mut transcript = key.transcript(&key.contributions[..i]);
        transcript
            .update(&g1_be(&c.key.g1_s))
            .update(&g1_be(&c.key.g1_sx));
        let transcript = transcript.digest();
        claim(transcript == c.transcript, || {
            format!("{}: it does not continue the ones before it", place())
        })?;
        let q = hash_to_g2(&transcript);
        claim(
            same_ratio(&c.key.g1_s, &c.key.g1_sx, &q, &c.key.g2_spx),
            || format!("{}: the proof of knowledge does not verify", place()),
        )?;
        claim(
            same_ratio(&delta, &c.delta_after, &q, &c.key.g2_spx),
            || format!("{}: delta is not multiplied by its secret", place()),
        )?;
        if let Some(beacon) = &c.parameters.beacon {
            let ([secret], [base]) = beacon.draw();
            let sx = (base * secret).into_affine();
            claim((c.key.g1_s, c.key.g1_sx) == (base, sx), || {
                format!("{}: it does not follow from its beacon", place())
            })?;
        }
        been.leads_on(&delta, &c.delta_after).or_else(|earlier| {
            refute(format!(
                "{}: delta is back where it was {earlier}: secrets cancel each other",
                place()
            ))
        })?;
        delta = c.delta_after;
    }
    claim(delta == key.header.delta1, || {
        "delta in G1 is not the one after the last contribution".into()
    })?;
    let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
    claim(
        same_ratio(&g1, &key.header.delta1, &g2, &key.header.delta2),
        || "delta in G1 and delta in G2 differ".into(),
    )
}

/// The earlier values of a product of secrets, in G1. No later contribution may return to one of them.
#[derive(Default)]
struct Been(Vec<G1Affine>);

impl Been {
    /// Add `before`, and check that `after` is no earlier value and no negative of one: anybody knows the factor between
    /// equal or opposite values. The error names the repeated value.
    fn leads_on(&mut self, before: &G1Affine, after: &G1Affine) -> std::result::Result<(), String> {
        self.0.push(*before);
        match self.0.iter().position(|p| p.x == after.x) {
            None => Ok(()),
            Some(0) => Err("before any contribution".into()),
            Some(i) => Err(format!("after contribution {i}")),
        }
    }
}

/// One phase-1 contribution: the points after it, and its proofs of knowledge of tau, alpha and beta.
struct Powers {
    tau1: G1Affine,
    tau2: G2Affine,
    alpha1: G1Affine,
    beta1: G1Affine,
    beta2: G2Affine,
    keys: [KeyProof; 3],
    midstate: [u8; 216],
    challenge: Digest,
    parameters: Parameters,
}

impl Powers {
    fn read(cursor: &mut Cursor) -> Result<Self> {
        let (tau1, tau2) = (finite(cursor, "tau1")?, finite(cursor, "tau2")?);
        let (alpha1, beta1) = (finite(cursor, "alpha1")?, finite(cursor, "beta1")?);
        let beta2 = finite(cursor, "beta2")?;
        let mut pairs = Vec::new();
        for name in SECRETS {
            pairs.push((finite(cursor, name)?, finite(cursor, name)?));
        }
        let mut key = |(g1_s, g1_sx): (G1Affine, G1Affine)| {
            Ok(KeyProof {
                g1_s,
                g1_sx,
                g2_spx: finite(cursor, "proof of knowledge")?,
            })
        };
        Ok(Self {
            tau1,
            tau2,
            alpha1,
            beta1,
            beta2,
            keys: [key(pairs[0])?, key(pairs[1])?, key(pairs[2])?],
            midstate: cursor.take(216)?.try_into().expect("216 bytes"),
            challenge: cursor.take(64)?.try_into().expect("64 bytes"),
            parameters: Parameters::read(cursor)?,
        })
    }

    /// The state before any contribution.
    fn start(power: u32) -> Self {
        let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
        let key = || KeyProof {
            g1_s: g1,
            g1_sx: g1,
            g2_spx: g2,
        };
        Self {
            tau1: g1,
            tau2: g2,
            alpha1: g1,
            beta1: g1,
            beta2: g2,
            keys: [key(), key(), key()],
            midstate: [0; 216],
            challenge: first_challenge(power),
            parameters: Parameters::default(),
        }
    }

    /// The digest of the response that ends with the proofs of this contribution.
    fn response(&self) -> Option<Digest> {
        let mut hasher = Blake2b::from_midstate(&self.midstate)?;
        for k in &self.keys {
            hasher.update(&g1_be(&k.g1_s)).update(&g1_be(&k.g1_sx));
        }
        for k in &self.keys {
            hasher.update(&g2_be(&k.g2_spx));
        }
        Some(hasher.digest())
    }

    fn follows(&self, before: &Self, been: &mut [Been; 3]) -> std::result::Result<(), String> {
        let holds = |ok: bool, reason: String| if ok { Ok(()) } else { Err(reason) };
        let moved = [
            (&before.tau1, &self.tau1),
            (&before.alpha1, &self.alpha1),
            (&before.beta1, &self.beta1),
        ];
        for (i, ((key, (old, new)), name)) in self.keys.iter().zip(moved).zip(SECRETS).enumerate() {
            let (s, sx) = (g1_be(&key.g1_s), g1_be(&key.g1_sx));
            let q = hash_to_g2(&blake2b(&[&[i as u8], &before.challenge, &s, &sx]));
            holds(
                same_ratio(&key.g1_s, &key.g1_sx, &q, &key.g2_spx),
                format!("the proof of knowledge of {name} does not verify"),
            )?;
            holds(
                same_ratio(old, new, &q, &key.g2_spx),
                format!("{name} is not multiplied by its secret"),
            )?;
            been[i].leads_on(old, new).map_err(|earlier| {
                format!("{name} is back where it was {earlier}: secrets cancel each other")
            })?;
        }
        for (key, old, new, name) in [
            (&self.keys[0], &before.tau2, &self.tau2, "tau"),
            (&self.keys[2], &before.beta2, &self.beta2, "beta"),
        ] {
            holds(
                same_ratio(&key.g1_s, &key.g1_sx, old, new),
                format!("{name} in G2 is not multiplied by its secret"),
            )?;
        }
        if let Some(beacon) = &self.parameters.beacon {
            let (secrets, bases) = beacon.draw::<3>();
            let same = self.keys.iter().zip(secrets).zip(bases);
            holds(
                same.into_iter()
                    .all(|((k, x), s)| k.g1_s == s && k.g1_sx == (s * x).into_affine()),
                "it does not follow from its beacon".into(),
            )?;
        }
        Ok(())
    }
}

/// The parameters that the contributions of a phase 1 state, each with the hash of its response. Nothing is checked.
pub fn phase1_contributions(ptau: &Path) -> Result<Vec<(Parameters, Digest)>> {
    let ptau = PowersOfTau::open(ptau)?;
    let (_, contributions) = read_powers(&ptau)?;
    contributions
        .into_iter()
        .map(|c| match c.response() {
            Some(response) => Ok((c.parameters, response)),
            None => malformed(
                ptau.file.place("contributions"),
                "the state of a hash has more bytes than a block",
            ),
        })
        .collect()
}

/// The power of a file, and the power of the ceremony that the file names as its origin.
pub fn powers_claimed(ptau: &Path) -> Result<(u32, u32)> {
    let ptau = PowersOfTau::open(ptau)?;
    let (ceremony, _) = read_powers(&ptau)?;
    Ok((ptau.power, ceremony))
}

/// The contributions of a file, and the power of its ceremony, which may be larger than the power of the file.
fn read_powers(ptau: &PowersOfTau) -> Result<(u32, Vec<Powers>)> {
    let header = ptau.file.bytes(ptau.file.section(1)?)?;
    let mut cursor = Cursor::new(&header[40..], ptau.file.place("header"));
    let ceremony = cursor.u32()?;
    if !(ptau.power..=28).contains(&ceremony) {
        return cursor.fail(format!(
            "expected a ceremony for 2^{} to 2^28, found one for 2^{ceremony}",
            ptau.power
        ));
    }
    let raw = ptau.file.bytes(ptau.file.section(7)?)?;
    let mut cursor = Cursor::new(&raw, ptau.file.place("contributions"));
    let mut contributions = Vec::new();
    for _ in 0..cursor.u32()? {
        contributions.push(Powers::read(&mut cursor)?);
    }
    cursor.end()?;
    Ok((ceremony, contributions))
}

/// Check powers of tau. Each contribution follows from the previous one, and its contributor knew the secrets. The powers
/// are the powers of the tau (and of the alpha and beta) of the last contribution, and the Lagrange forms belong to them.
///
/// A file that names a larger ceremony than its own power is false, unless `part` is true. With `part`, the file counts
/// as a part of that ceremony's file, and cannot show that its last contribution hashed these points.
pub fn verify_powers(path: &Path, part: bool) -> Result<()> {
    let ptau = PowersOfTau::open(path)?;
    let (ceremony, contributions) = read_powers(&ptau)?;
    claim(part || ceremony == ptau.power, || {
        format!(
            "phase 1: the file says that it is from a ceremony for 2^{ceremony}, and holds 2^{}",
            ptau.power
        )
    })?;
    claim(!contributions.is_empty(), || {
        "phase 1: nobody contributed: tau, alpha and beta are one".into()
    })?;
    let mut last = Powers::start(ceremony);
    let mut been = [(); 3].map(|()| Been::default());
    for (i, c) in contributions.into_iter().enumerate() {
        c.follows(&last, &mut been).or_else(|reason| {
            refute(format!(
                "phase 1, contribution {} ({:?}): {reason}",
                i + 1,
                c.parameters.name
            ))
        })?;
        last = c;
    }
    let mut points = Points {
        ptau: &ptau,
        hasher: Blake2b::default(),
    };
    match last.response() {
        Some(response) => points.hasher.update(&response),
        None => return refute("phase 1: the last contribution has no valid hash"),
    };
    let n = 1usize << ptau.power;
    let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
    points.are_powers::<g1::Config>(2, 2 * n - 1, &g1, |low, high| {
        same_ratio(low, high, &g2, &last.tau2)
    })?;
    points.are_powers::<g2::Config>(3, n, &g2, |low, high| {
        same_ratio(&g1, &last.tau1, low, high)
    })?;
    for (section, first) in [(4, &last.alpha1), (5, &last.beta1)] {
        points.are_powers::<g1::Config>(section, n, first, |low, high| {
            same_ratio(low, high, &g2, &last.tau2)
        })?;
    }
    let beta2 = ptau.points::<g2::Config>(6, 0, 1)?;
    claim(beta2 == [last.beta2], || {
        "phase 1: beta in G2 is not the last contribution's".into()
    })?;
    points.hasher.update(&g2_be(&beta2[0]));
    // A part of a larger ceremony's file cannot show all that the last contribution hashed.
    if ceremony == ptau.power {
        claim(points.hasher.digest() == last.challenge, || {
            "phase 1: the points are not the ones that the last contribution hashed".into()
        })?;
    }
    let top = (ptau.power + 1).min(28);
    points.are_lagrange::<g1::Config>(12, 2, top, |low, high| {
        same_ratio(low, high, &g2, &last.tau2)
    })?;
    // The other sections have no domain larger than their powers.
    points.are_lagrange::<g2::Config>(13, 3, ptau.power, |_, _| false)?;
    points.are_lagrange::<g1::Config>(14, 4, ptau.power, |_, _| false)?;
    points.are_lagrange::<g1::Config>(15, 5, ptau.power, |_, _| false)
}

/// The points of a phase 1, read in runs.
struct Points<'a> {
    ptau: &'a PowersOfTau,
    /// The hash of the points in the form that the ceremony hashes.
    hasher: Blake2b,
}

impl Points<'_> {
    /// `count` points of a section are first, x first, x^2 first ..; `same` tells whether the second of two points is
    /// x times the first.
    fn are_powers<P: Group>(
        &mut self,
        section: u32,
        count: usize,
        first: &Affine<P>,
        same: impl Fn(&Affine<P>, &Affine<P>) -> bool,
    ) -> Result<()> {
        let (mut low, mut high) = (Projective::<P>::zero(), Projective::<P>::zero());
        let mut start = 0;
        while start < count {
            // One more than the run, so that runs overlap by the step from one to the next.
            let points = self
                .ptau
                .points::<P>(section, start, (count - start).min(POINTS + 1))?;
            claim(start > 0 || points[0] == *first, || {
                format!(
                    "phase 1, section {section}: the first point is not the last contribution's"
                )
            })?;
            claim(in_subgroup(&points)?, || {
                format!("phase 1, section {section}: a point is not in the subgroup of order r")
            })?;
            let run = points.len().min(POINTS);
            self.hasher
                .update(&encode(&points[..run], P::POINT, point_to_be));
            let (a, b) = combined(&points[..points.len() - 1], &points[1..])?;
            low += a;
            high += b;
            start += run;
        }
        claim(same(&low.into_affine(), &high.into_affine()), || {
            format!("phase 1, section {section}: the points are not powers of the last contribution's tau")
        })
    }

    /// Check that a section contains the Lagrange forms of the powers in section `monomial`, for the domains 2^0 .. 2^top:
    /// for weights w_i, sum w_i L_i = sum c_j tau^j, where c is the inverse transform of w.
    ///
    /// `beyond` decides whether the second point is tau times the first: the largest domain of section 12 needs one power
    /// more than a file has. The coefficient of this power is zero in a file that was created with its own power, and is
    /// present in a part of a larger file. No other point is allowed there.
    fn are_lagrange<P: Group>(
        &self,
        section: u32,
        monomial: u32,
        top: u32,
        beyond: impl Fn(&Affine<P>, &Affine<P>) -> bool,
    ) -> Result<()> {
        let mut coefficients = vec![Fr::zero(); 1 << top];
        let mut difference = Projective::<P>::zero();
        for k in 0..=top {
            let n = 1usize << k;
            let weights = random_weights(n, WEIGHT)?;
            for (i, run) in weights.chunks(POINTS).enumerate() {
                let points = self
                    .ptau
                    .points::<P>(section, n - 1 + i * POINTS, run.len())?;
                claim(in_subgroup(&points)?, || {
                    format!("phase 1, section {section}: a point is not in the subgroup of order r")
                })?;
                difference += msm(&points, run);
            }
            let mut values: Vec<Fr> = weights
                .iter()
                .map(|w| Fr::from_bigint(*w).expect("128 bits"))
                .collect();
            let domain = Radix2EvaluationDomain::<Fr>::new(n).expect("at most 2^28");
            domain.ifft_in_place(&mut values);
            for (sum, value) in coefficients.iter_mut().zip(values) {
                *sum += value;
            }
        }
        let known = if top > self.ptau.power {
            coefficients.len() - 1
        } else {
            coefficients.len()
        };
        for (i, run) in coefficients[..known].chunks(POINTS).enumerate() {
            let points = self.ptau.points::<P>(monomial, i * POINTS, run.len())?;
            let plain: Vec<BigInt<4>> = run.iter().map(|x| x.into_bigint()).collect();
            difference -= msm(&points, &plain);
        }
        let mut holds = difference.is_zero();
        if !holds && known < coefficients.len() {
            let last = self.ptau.points::<P>(monomial, known - 1, 1)?[0] * coefficients[known];
            holds = beyond(&last.into_affine(), &difference.into_affine());
        }
        claim(holds, || {
            format!("phase 1, section {section}: the points are not the Lagrange forms of section {monomial}")
        })
    }
}

/// Whether all points are in the subgroup of order r. The other part of G2's group has no element of order below 10069,
/// so a sum with weights of 16 bits misses a point outside with probability at most 7/2^16; ten sums, 2^-131.
fn in_subgroup<P: Group>(points: &[Affine<P>]) -> Result<bool> {
    if P::cofactor_is_one() {
        return Ok(true);
    }
    for _ in 0..10 {
        let sum = msm(points, &random_weights(points.len(), 2)?).into_affine();
        if !sum.is_in_correct_subgroup_assuming_on_curve() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
#[path = "ceremony_tests.rs"]
mod tests;
