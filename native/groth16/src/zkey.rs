//! Proving keys (`.zkey`) in snarkjs's format: set-up from a constraint system and powers of tau, and phase-2
//! contributions of delta.
//!
//! Sections: 1 protocol; 2 header; 3 IC; 4 coefficients of A and B; 5 A; 6 B in G1; 7 B in G2; 8 C; 9 H (the
//! odd Lagrange points of the doubled domain); 10 circuit hash and contributions.
use std::fs::File;
use std::path::Path;

use ark_bn254::{g1, g2, Fq, Fr, G1Affine, G2Affine};
use ark_ec::short_weierstrass::Affine;
use ark_ec::AffineRepr;
use ark_ff::{Field, One, PrimeField, Zero};
use ragaudit_field_simd::sums::Point;
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::affine::differences;
use crate::binfile::{Cursor, Sections, Writer};
use crate::combine::{Actions, Columns};
use crate::error::{malformed, Error, Result};
use crate::field::{
    encode, g1_be, g2_be, limbs_to_le, point_from_montgomery, point_to_be, point_to_montgomery,
    read_plain, read_points, Group,
};
use crate::msm::FixedBase;
use crate::ptau::{self, lagrange_at, powers, PowersOfTau, Secrets};
use crate::r1cs::{Matrix, R1cs};
use crate::secret::{isolated, Chain, Secret};
use crate::transcript::{
    hash_contribution, Beacon, Blake2b, Digest, KeyProof, Parameters, BEACON_EXPONENTS,
};
use crate::unreduced;

/// Bytes of one coefficient: matrix, constraint, wire, value.
pub const COEFFICIENT: usize = 12 + 32;
const CONTRIBUTION: &str = "local contribution";
const HEADER: u64 = 4 + 32 + 4 + 32 + 12 + 3 * 64 + 3 * 128;

/// The fixed part of a key.
#[derive(Clone)]
pub struct Header {
    pub wires: usize,
    pub public: usize,
    pub domain: usize,
    pub alpha1: G1Affine,
    pub beta1: G1Affine,
    pub beta2: G2Affine,
    pub gamma2: G2Affine,
    pub delta1: G1Affine,
    pub delta2: G2Affine,
}

/// An open `.zkey` file; sections are read when they are used.
pub struct KeyFile {
    pub file: Sections<File>,
    pub header: Header,
}

impl KeyFile {
    pub fn open(path: &Path) -> Result<Self> {
        let file = Sections::open(path, b"zkey", 2)?;
        if file.bytes(file.sized(1, 4)?)? != 1u32.to_le_bytes() {
            return malformed(file.place("section 1"), "the file is not a Groth16 key");
        }
        let raw = file.bytes(file.sized(2, HEADER)?)?;
        let mut cursor = Cursor::new(&raw, file.place("header"));
        for prime in [limbs_to_le(&Fq::MODULUS), limbs_to_le(&Fr::MODULUS)] {
            if cursor.u32()? != 32 || cursor.take(32)? != prime {
                return cursor.fail("the file is not over the curve BN254");
            }
        }
        let wires = cursor.u32()? as usize;
        let public = cursor.u32()? as usize;
        let domain = cursor.u32()? as usize;
        if !domain.is_power_of_two() || !(2..=1 << 27).contains(&domain) {
            return cursor.fail(format!(
                "expected a domain of 2 to 2^27 points, a power of two, found {domain}"
            ));
        }
        if public >= wires {
            return cursor.fail(format!(
                "expected fewer public inputs than the {wires} wires, found {public}"
            ));
        }
        let header = Header {
            wires,
            public,
            domain,
            alpha1: finite(&mut cursor, "alpha1")?,
            beta1: finite(&mut cursor, "beta1")?,
            beta2: finite(&mut cursor, "beta2")?,
            gamma2: finite(&mut cursor, "gamma2")?,
            delta1: finite(&mut cursor, "delta1")?,
            delta2: finite(&mut cursor, "delta2")?,
        };
        cursor.end()?;
        let (n, l) = (wires as u64, public as u64 + 1);
        for (id, points, size) in [
            (3, l, 64),
            (5, n, 64),
            (6, n, 64),
            (7, n, 128),
            (8, n - l, 64),
            (9, domain as u64, 64),
        ] {
            file.sized(id, points * size)?;
        }
        Ok(Self { file, header })
    }

    /// The circuit hash and the contributions, unchecked.
    pub fn contributions(&self) -> Result<(Digest, Vec<Contribution>)> {
        let raw = self.file.bytes(self.file.section(10)?)?;
        let mut cursor = Cursor::new(&raw, self.file.place("contributions"));
        let circuit_hash = cursor.take(64)?.try_into().expect("64 bytes");
        let mut contributions = Vec::new();
        for _ in 0..cursor.u32()? {
            contributions.push(Contribution::read(&mut cursor)?);
        }
        cursor.end()?;
        Ok((circuit_hash, contributions))
    }

    /// All points of a section.
    pub fn points<P: Group>(&self, id: u32) -> Result<Vec<Affine<P>>> {
        let section = self.file.section(id)?;
        let count = (section.size / P::POINT as u64) as usize;
        read_points(&self.file, section, 0, count, &format!("section {id}"))
    }

    /// All points of a section, in the form that sums use.
    pub fn plain_points<P: Group>(&self, id: u32) -> Result<Vec<Point<P::BaseField>>> {
        let section = self.file.section(id)?;
        let count = (section.size / P::POINT as u64) as usize;
        read_plain::<P, _>(&self.file, section, 0, count, &format!("section {id}"))
    }
}

/// A header's point: not infinity, on the curve, in the subgroup.
pub(crate) fn finite<P: Group>(cursor: &mut Cursor, what: &str) -> Result<Affine<P>> {
    let raw = cursor.take(P::POINT)?;
    let point = point_from_montgomery::<P>(raw).or_else(|e| cursor.fail(format!("{what}: {e}")))?;
    if point.is_zero() {
        return cursor.fail(format!("{what}: the point is at infinity"));
    }
    if !point.is_in_correct_subgroup_assuming_on_curve() {
        return cursor.fail(format!(
            "{what}: the point is not in the subgroup of order r"
        ));
    }
    Ok(point)
}

/// One phase-2 contribution.
pub struct Contribution {
    pub delta_after: G1Affine,
    pub key: KeyProof,
    pub transcript: Digest,
    pub parameters: Parameters,
}

impl Contribution {
    /// The digest that a contributor publishes and that every later key contains (snarkjs: the contribution hash).
    pub fn digest(&self) -> Digest {
        let mut hasher = Blake2b::default();
        hash_contribution(&mut hasher, &self.delta_after, &self.key, &self.transcript);
        hasher.digest()
    }
}

/// A whole key in memory.
pub struct Key {
    pub header: Header,
    pub(crate) ic: Vec<G1Affine>,
    pub(crate) coefficients: Vec<u8>,
    pub(crate) a: Vec<G1Affine>,
    pub(crate) b1: Vec<G1Affine>,
    pub(crate) b2: Vec<G2Affine>,
    pub(crate) c: Vec<G1Affine>,
    pub(crate) h: Vec<G1Affine>,
    pub circuit_hash: Digest,
    pub contributions: Vec<Contribution>,
}

impl Key {
    /// The key before any contribution (gamma = delta = 1): deterministic, equal to `snarkjs groth16 setup`'s.
    pub fn initial(r1cs: &R1cs, ptau: &PowersOfTau) -> Result<Self> {
        let domain = domain(r1cs);
        let power = domain.ilog2();
        if power > ptau.power {
            return Err(Error::Mismatch(format!(
                "the circuit needs powers of tau up to 2^{power}, and the file has them up to 2^{}",
                ptau.power
            )));
        }
        // One more coefficient, 1, for the rows that bind the public wires.
        let mut scalars = r1cs.coefficients.clone();
        let unit = scalars.len() as u32;
        scalars.push(Fr::one());
        let actions = Actions::new::<g1::Config>(&scalars);
        let matrix =
            |m: &crate::r1cs::Matrix, shift: usize, emit: &mut dyn FnMut(u32, u32, u32)| {
                for (i, row) in m.rows().enumerate() {
                    for &(wire, k) in row {
                        emit(wire, (i + shift) as u32, k);
                    }
                }
            };
        let bound = |shift: usize, emit: &mut dyn FnMut(u32, u32, u32)| {
            for s in 0..=r1cs.public {
                emit(s as u32, (r1cs.constraints + s + shift) as u32, unit);
            }
        };

        let mut lagrange = ptau.lagrange::<g1::Config>(12, domain)?;
        let a_columns = Columns::new(r1cs.wires, |emit| {
            matrix(&r1cs.a, 0, emit);
            bound(0, emit);
        });
        let a = a_columns.combine(&lagrange, &scalars, &actions);
        drop(a_columns);
        let b_columns = Columns::new(r1cs.wires, |emit| matrix(&r1cs.b, 0, emit));
        let b1 = b_columns.combine(&lagrange, &scalars, &actions);
        let lagrange2 = ptau.lagrange::<g2::Config>(13, domain)?;
        let b2_actions = Actions::new::<g2::Config>(&scalars);
        let b2 = b_columns.combine(&lagrange2, &scalars, &b2_actions);
        drop((b_columns, lagrange2, b2_actions));

        // beta A + alpha B + C over the three sets of points, one after another.
        lagrange.extend(ptau.lagrange::<g1::Config>(14, domain)?);
        lagrange.extend(ptau.lagrange::<g1::Config>(15, domain)?);
        let columns = Columns::new(r1cs.wires, |emit| {
            matrix(&r1cs.c, 0, emit);
            matrix(&r1cs.b, domain, emit);
            matrix(&r1cs.a, 2 * domain, emit);
            bound(2 * domain, emit);
        });
        let mut ic = columns.combine(&lagrange, &scalars, &actions);
        drop((columns, lagrange, actions));
        let c = ic.split_off(r1cs.public + 1);

        let doubled = ptau.lagrange::<g1::Config>(12, 2 * domain)?;
        let h: Vec<G1Affine> = doubled.into_iter().skip(1).step_by(2).collect();

        let header = Header {
            wires: r1cs.wires,
            public: r1cs.public,
            domain,
            alpha1: ptau.points(4, 0, 1)?[0],
            beta1: ptau.points(5, 0, 1)?[0],
            beta2: ptau.points(6, 0, 1)?[0],
            gamma2: G2Affine::generator(),
            delta1: G1Affine::generator(),
            delta2: G2Affine::generator(),
        };
        let mut key = Self {
            coefficients: coefficient_section(r1cs),
            header,
            ic,
            a,
            b1,
            b2,
            c,
            h,
            circuit_hash: [0; 64],
            contributions: Vec::new(),
        };
        key.circuit_hash = key.hash(&vanishing_multiples(ptau, domain)?);
        Ok(key)
    }

    /// The key with one contribution, by a party that draws all secrets itself and wipes them: every point is a
    /// multiple of a generator. With `ptau`, the powers of tau are written too, so that others can check it.
    pub fn one_party(r1cs: &R1cs, ptau: Option<&Path>) -> Result<Self> {
        isolated(|| Self::by_one_party(r1cs, ptau))
    }

    fn by_one_party(r1cs: &R1cs, ptau: Option<&Path>) -> Result<Self> {
        let domain = domain(r1cs);
        if domain > 1 << ptau::MAX_POWER {
            return Err(Error::Mismatch(format!(
                "the circuit has {} constraints, which are more than 2^{}",
                r1cs.constraints,
                ptau::MAX_POWER
            )));
        }
        let secrets = Secrets::new()?;
        if let Some(path) = ptau {
            ptau::write(domain.ilog2(), path, &secrets)?;
        }
        let (tau, alpha, beta) = secrets.values();
        let lagrange = lagrange_at(tau, domain.ilog2(), false)?;
        let at_tau = |matrix: &Matrix| {
            let mut out = Zeroizing::new(vec![Fr::zero(); r1cs.wires]);
            for (row, point) in matrix.rows().zip(lagrange.iter()) {
                for &(wire, k) in row {
                    out[wire as usize] += r1cs.coefficients[k as usize] * point;
                }
            }
            out
        };
        let mut a = at_tau(&r1cs.a);
        for (s, point) in lagrange[r1cs.constraints..]
            .iter()
            .enumerate()
            .take(r1cs.public + 1)
        {
            a[s] += point;
        }
        let b = at_tau(&r1cs.b);
        let mut c = at_tau(&r1cs.c);
        c.par_iter_mut()
            .zip(a.par_iter().zip(b.par_iter()))
            .for_each(|(c, (a, b))| *c += *beta * a + *alpha * b);
        let mut odd = Zeroizing::new(Vec::with_capacity(domain));
        let doubled = lagrange_at(tau, domain.ilog2() + 1, true)?;
        odd.extend(doubled.iter().skip(1).step_by(2).copied());
        drop(doubled);

        let g1 = FixedBase::<g1::Config>::new(G1Affine::generator(), 13);
        let g2 = FixedBase::<g2::Config>::new(G2Affine::generator(), 12);
        let mut ic = g1.multiply(&c);
        let plain_c = ic.split_off(r1cs.public + 1);
        let header = Header {
            wires: r1cs.wires,
            public: r1cs.public,
            domain,
            alpha1: secrets.alpha.times(G1Affine::generator()),
            beta1: secrets.beta.times(G1Affine::generator()),
            beta2: secrets.beta.times(G2Affine::generator()),
            gamma2: G2Affine::generator(),
            delta1: G1Affine::generator(),
            delta2: G2Affine::generator(),
        };
        let mut key = Self {
            coefficients: coefficient_section(r1cs),
            header,
            ic,
            a: g1.multiply(&a),
            b1: g1.multiply(&b),
            b2: g2.multiply(&b),
            c: plain_c,
            h: Vec::new(),
            circuit_hash: [0; 64],
            contributions: Vec::new(),
        };
        let multiples = powers(&(tau.pow([domain as u64]) - Fr::one()), tau, domain - 1);
        let mut vanishing = g1.multiply(&multiples);
        if hashed_multiples(domain) == domain {
            let last = g1.multiply(&[tau.pow([domain as u64 - 1])])[0];
            let raw = ptau::after_powers(domain.ilog2());
            vanishing.push(unreduced::subtract(&raw, &last));
        }
        key.circuit_hash = key.hash(&vanishing);
        let delta = Secret::draw()?;
        let base = Secret::draw()?.times(G1Affine::generator());
        key.multiply(
            Parameters::named(CONTRIBUTION),
            &delta,
            base,
            |key, inverse| {
                for scalars in [&mut c, &mut odd] {
                    scalars.par_iter_mut().for_each(|x| *x *= inverse.value());
                }
                key.c = g1.multiply(&c[r1cs.public + 1..]);
                key.h = g1.multiply(&odd);
            },
        );
        Ok(key)
    }

    /// The circuit hash of snarkjs: the digest of the key with H in monomial form.
    fn hash(&self, vanishing: &[G1Affine]) -> Digest {
        let h = &self.header;
        let mut hasher = Blake2b::default();
        hasher
            .update(&g1_be(&h.alpha1))
            .update(&g1_be(&h.beta1))
            .update(&g2_be(&h.beta2))
            .update(&g2_be(&h.gamma2))
            .update(&g1_be(&h.delta1))
            .update(&g2_be(&h.delta2));
        hash_points(&mut hasher, &self.ic);
        hasher.update(&(h.domain as u32 - 1).to_be_bytes());
        hasher.update(&encode(vanishing, 64, point_to_be));
        hash_points(&mut hasher, &self.c);
        hash_points(&mut hasher, &self.a);
        hash_points(&mut hasher, &self.b1);
        hash_points(&mut hasher, &self.b2);
        hasher.digest()
    }

    pub fn read(path: &Path) -> Result<Self> {
        let key = KeyFile::open(path)?;
        let (circuit_hash, contributions) = key.contributions()?;
        Ok(Self {
            ic: key.points(3)?,
            coefficients: key.file.bytes(key.file.section(4)?)?,
            a: key.points(5)?,
            b1: key.points(6)?,
            b2: key.points(7)?,
            c: key.points(8)?,
            h: key.points(9)?,
            header: key.header,
            circuit_hash,
            contributions,
        })
    }

    /// Multiply delta by a fresh secret and add the record that proves it. The secret is wiped.
    pub fn contribute(&mut self, name: &str) -> Result<()> {
        isolated(|| {
            let secret = Secret::draw()?;
            let base = Secret::draw()?.times(G1Affine::generator());
            self.multiply(Parameters::named(name), &secret, base, Self::rescale);
            Ok(())
        })
    }

    /// End the ceremony with a public random value: a contribution without a secret.
    pub fn apply_beacon(&mut self, name: &str, beacon: Beacon) {
        let ([secret], [base]) = beacon.draw();
        let parameters = Parameters {
            name: name.to_owned(),
            beacon: Some(beacon),
        };
        self.multiply(parameters, &Secret::known(secret), base, Self::rescale);
    }

    pub(crate) fn rescale(&mut self, inverse: &Secret) {
        let chain = Chain::new(inverse);
        self.c = chain.multiply(&self.c);
        self.h = chain.multiply(&self.h);
    }

    /// The hash that the next contribution continues with its own points.
    pub(crate) fn transcript(&self, contributions: &[Contribution]) -> Blake2b {
        let mut transcript = Blake2b::default();
        transcript.update(&self.circuit_hash);
        for c in contributions {
            hash_contribution(&mut transcript, &c.delta_after, &c.key, &c.transcript);
        }
        transcript
    }

    /// Multiply delta by `secret`, with a proof of knowledge on `base`; `rescale` multiplies C and H by its inverse.
    pub(crate) fn multiply(
        &mut self,
        parameters: Parameters,
        secret: &Secret,
        base: G1Affine,
        rescale: impl FnOnce(&mut Self, &Secret),
    ) {
        let mut transcript = self.transcript(&self.contributions);
        let key = KeyProof::from_point(base, secret, |s, sx| {
            transcript.clone().update(s).update(sx).digest()
        });
        transcript
            .update(&g1_be(&key.g1_s))
            .update(&g1_be(&key.g1_sx));
        self.header.delta1 = secret.times(self.header.delta1);
        self.header.delta2 = secret.times(self.header.delta2);
        rescale(self, &secret.inverse());
        self.contributions.push(Contribution {
            delta_after: self.header.delta1,
            key,
            transcript: transcript.digest(),
            parameters,
        });
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        let h = &self.header;
        let mut out = Writer::create(path, b"zkey", 1, 10)?;
        out.begin(1)?;
        out.write(&1u32.to_le_bytes())?;
        out.end()?;
        out.begin(2)?;
        for prime in [limbs_to_le(&Fq::MODULUS), limbs_to_le(&Fr::MODULUS)] {
            out.write(&32u32.to_le_bytes())?;
            out.write(&prime)?;
        }
        for n in [h.wires, h.public, h.domain] {
            out.write(&(n as u32).to_le_bytes())?;
        }
        write_points(&mut out, &[h.alpha1, h.beta1])?;
        write_points(&mut out, &[h.beta2, h.gamma2])?;
        write_points(&mut out, &[h.delta1])?;
        write_points(&mut out, &[h.delta2])?;
        out.end()?;
        // snarkjs writes an initial key in another order than a contribution; readers do not care.
        let order = if self.contributions.is_empty() {
            [4, 3, 9, 8, 5, 6, 7]
        } else {
            [3, 4, 5, 6, 7, 8, 9]
        };
        for id in order {
            out.begin(id)?;
            match id {
                3 => write_points(&mut out, &self.ic)?,
                4 => out.write(&self.coefficients)?,
                5 => write_points(&mut out, &self.a)?,
                6 => write_points(&mut out, &self.b1)?,
                7 => write_points(&mut out, &self.b2)?,
                8 => write_points(&mut out, &self.c)?,
                _ => write_points(&mut out, &self.h)?,
            }
            out.end()?;
        }
        out.begin(10)?;
        out.write(&self.circuit_hash)?;
        out.write(&(self.contributions.len() as u32).to_le_bytes())?;
        for c in &self.contributions {
            write_points(&mut out, &[c.delta_after, c.key.g1_s, c.key.g1_sx])?;
            write_points(&mut out, &[c.key.g2_spx])?;
            out.write(&c.transcript)?;
            out.write(&c.parameters.encode())?;
        }
        out.end()?;
        out.finish()
    }
}

impl Contribution {
    fn read(cursor: &mut Cursor) -> Result<Self> {
        let delta_after = finite(cursor, "delta")?;
        let key = KeyProof {
            g1_s: finite(cursor, "g1_s")?,
            g1_sx: finite(cursor, "g1_sx")?,
            g2_spx: finite(cursor, "g2_spx")?,
        };
        let transcript = cursor.take(64)?.try_into().expect("64 bytes");
        Ok(Self {
            delta_after,
            key,
            transcript,
            parameters: Parameters::read(cursor)?,
        })
    }
}

fn write_points<P: Group>(out: &mut Writer, points: &[Affine<P>]) -> Result<()> {
    for chunk in points.chunks(1 << 16) {
        out.write(&encode(chunk, P::POINT, point_to_montgomery))?;
    }
    Ok(())
}

fn hash_points<P: Group>(hasher: &mut Blake2b, points: &[Affine<P>]) {
    hasher.update(&(points.len() as u32).to_be_bytes());
    for chunk in points.chunks(1 << 16) {
        hasher.update(&encode(chunk, P::POINT, point_to_be));
    }
}

/// tau^i (tau^n - 1) G1, as snarkjs hashes them: n - 1 of them, but n from n = 2^15 on, because it reads whole
/// chunks there. The last one then needs tau^(2n - 1), which a file of just the circuit's power does not have:
/// the bytes that follow the section stand in for it.
fn vanishing_multiples(ptau: &PowersOfTau, n: usize) -> Result<Vec<G1Affine>> {
    let count = hashed_multiples(n);
    let low = ptau.points::<g1::Config>(2, 0, count)?;
    let known = count.min((2usize << ptau.power) - 1 - n);
    let high = ptau.points::<g1::Config>(2, n, known)?;
    let mut points = differences(&high, &low[..known]);
    if known < count {
        let section = ptau.file.section(2)?;
        let mut raw = [0u8; 64];
        ptau.file.read(section.offset + section.size, &mut raw)?;
        points.push(unreduced::subtract(&raw, &low[known]));
    }
    Ok(points)
}

fn hashed_multiples(n: usize) -> usize {
    if n > 1 << 14 {
        n
    } else {
        n - 1
    }
}

/// The domain: one row for each constraint and for each public wire.
fn domain(r1cs: &R1cs) -> usize {
    (r1cs.constraints + r1cs.public + 1)
        .next_power_of_two()
        .max(2)
}

/// Section 4: A and B by constraint, then the rows that bind the public wires; each value times R^2.
fn coefficient_section(r1cs: &R1cs) -> Vec<u8> {
    let count = r1cs.a.len() + r1cs.b.len() + r1cs.public + 1;
    let value = |k: &Fr| {
        // Fr holds k R; as a plain integer times R it is k R^2.
        let twice = Fr::from_bigint(k.0).expect("limbs are reduced");
        limbs_to_le(&twice.0)
    };
    let values: Vec<[u8; 32]> = r1cs.coefficients.iter().map(value).collect();
    let one = value(&Fr::one());
    let mut out = Vec::with_capacity(4 + count * COEFFICIENT);
    out.extend((count as u32).to_le_bytes());
    let mut push = |matrix: u32, row: usize, wire: u32, value: &[u8; 32]| {
        out.extend(matrix.to_le_bytes());
        out.extend((row as u32).to_le_bytes());
        out.extend(wire.to_le_bytes());
        out.extend(value);
    };
    for i in 0..r1cs.constraints {
        for &(wire, k) in r1cs.a.row(i) {
            push(0, i, wire, &values[k as usize]);
        }
        for &(wire, k) in r1cs.b.row(i) {
            push(1, i, wire, &values[k as usize]);
        }
    }
    for s in 0..=r1cs.public {
        push(0, r1cs.constraints + s, s as u32, &one);
    }
    out
}

/// The initial key, without any contribution: `snarkjs zkey contribute` continues from it.
pub fn new(r1cs: &Path, ptau: &Path, zkey: &Path) -> Result<()> {
    Key::initial(&R1cs::read(r1cs)?, &PowersOfTau::open(ptau)?)?.write(zkey)
}

/// Add a contribution to a key, and return the contribution's hash.
pub fn contribute(old: &Path, new: &Path, name: &str) -> Result<Digest> {
    let mut key = Key::read(old)?;
    key.contribute(name)?;
    key.write(new)?;
    Ok(key.contributions[key.contributions.len() - 1].digest())
}

/// Add a public random value to a key, and return the record's hash.
pub fn apply_beacon(old: &Path, new: &Path, name: &str, beacon: Beacon) -> Result<Digest> {
    if !BEACON_EXPONENTS.contains(&beacon.exponent) {
        let expected = format!(
            "expected {} to {}, found {}",
            BEACON_EXPONENTS.start(),
            BEACON_EXPONENTS.end(),
            beacon.exponent
        );
        return malformed("exponent of the beacon", expected);
    }
    if beacon.value.is_empty() || beacon.value.len() > 255 {
        return malformed(
            "beacon",
            format!("expected 1 to 255 bytes, found {}", beacon.value.len()),
        );
    }
    let mut key = Key::read(old)?;
    key.apply_beacon(name, beacon);
    key.write(new)?;
    Ok(key.contributions[key.contributions.len() - 1].digest())
}

/// The initial key and one local contribution.
pub fn setup(r1cs: &Path, ptau: &Path, zkey: &Path) -> Result<()> {
    let mut key = Key::initial(&R1cs::read(r1cs)?, &PowersOfTau::open(ptau)?)?;
    key.contribute(CONTRIBUTION)?;
    key.write(zkey)
}

/// Write a key with one contribution and with secrets that all come from this process, and its powers of tau if `ptau` is
/// given. The function takes a tenth of the time of `setup`, and the key is only for development and demonstration.
pub fn setup_one_party(r1cs: &Path, zkey: &Path, ptau: Option<&Path>) -> Result<()> {
    Key::one_party(&R1cs::read(r1cs)?, ptau)?.write(zkey)
}
