//! Powers of tau (`.ptau`): reading any file that snarkjs prepared for phase 2, and a one-party phase 1.
//!
//! Sections: 1 header; 2 tau^i G1 (2^(p+1) - 1 of them); 3 tau^i G2; 4 alpha tau^i G1; 5 beta tau^i G1;
//! 6 beta G2; 7 contributions; 12-15 the Lagrange forms of 2-5 for every power up to p (and p + 1 for 12).
//! One party knows tau here, so keys made from it are for development and demonstration only.
use std::fs::File;
use std::path::Path;

use ark_bn254::{g1, g2, Fq, Fr, G1Affine, G2Affine};
use ark_ec::short_weierstrass::Affine;
use ark_ec::AffineRepr;
use ark_ff::{FftField, Field, One, PrimeField, Zero};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::binfile::{Cursor, Section, Sections, Writer};
use crate::error::{malformed, Error, Result};
use crate::field::{
    encode, g1_be, g2_be, limbs_to_le, point_to_compressed, point_to_montgomery, read_points,
    Coordinate, Group,
};
use crate::msm::FixedBase;
use crate::secret::{invert_all, isolated, Secret};
use crate::transcript::{blake2b, Blake2b, Digest, KeyProof, Parameters};

/// The largest power whose Lagrange forms exist at p + 1 too: r - 1 has 28 factors of two.
pub const MAX_POWER: u32 = 27;
const NAME: &str = "one-party phase 1 (unsafe)";
const POINTS: usize = 1 << 16;

/// An open `.ptau` file, prepared for phase 2.
pub struct PowersOfTau {
    pub file: Sections<File>,
    pub power: u32,
}

impl PowersOfTau {
    pub fn open(path: &Path) -> Result<Self> {
        let file = Sections::open(path, b"ptau", 1)?;
        let header = file.bytes(file.sized(1, 44)?)?;
        let mut cursor = Cursor::new(&header, file.place("header"));
        if cursor.u32()? != 32 || cursor.take(32)? != limbs_to_le(&Fq::MODULUS) {
            return cursor.fail("the file is not over the curve BN254");
        }
        let power = cursor.u32()?;
        if !(1..=28).contains(&power) {
            return cursor.fail(format!("expected a power of 1 to 28, found {power}"));
        }
        let n = 1u64 << power;
        for (id, points, size) in [
            (2, 2 * n - 1, 64),
            (3, n, 128),
            (4, n, 64),
            (5, n, 64),
            (6, 1, 128),
        ] {
            file.sized(id, points * size)?;
        }
        for (id, size) in [(12, 64), (13, 128), (14, 64), (15, 64)] {
            if !file.has(id) {
                return malformed(file.name(), "the file is not prepared for phase 2");
            }
            let top = if id == 12 && power < 28 {
                4 * n - 1
            } else {
                2 * n - 1
            };
            if file.section(id)?.size < top * size {
                return malformed(
                    file.place(&format!("section {id}")),
                    "the section is too short",
                );
            }
        }
        Ok(Self { file, power })
    }

    /// `count` points of a section from index `first`.
    pub fn points<P: Group>(&self, id: u32, first: usize, count: usize) -> Result<Vec<Affine<P>>> {
        let section = self.file.section(id)?;
        let what = format!("section {id}");
        read_points(&self.file, section, (first * P::POINT) as u64, count, &what)
    }

    /// The Lagrange forms for a domain of `n` = 2^k points.
    pub fn lagrange<P: Group>(&self, id: u32, n: usize) -> Result<Vec<Affine<P>>> {
        self.points(id, n - 1, n)
    }
}

/// The challenge of the first contribution: the digest of a file in which every point is a generator.
pub fn first_challenge(power: u32) -> Digest {
    let (g1, g2) = (g1_be(&G1Affine::generator()), g2_be(&G2Affine::generator()));
    let n = 1usize << power;
    let mut hasher = Blake2b::default();
    hasher.update(&blake2b(&[]));
    let mut repeat = |bytes: &[u8], count: usize| {
        const RUN: usize = 1 << 10;
        let run = bytes.repeat(RUN.min(count));
        for _ in 0..count / RUN {
            hasher.update(&run);
        }
        hasher.update(&bytes.repeat(count % RUN));
    };
    repeat(&g1, 2 * n - 1);
    repeat(&g2, n);
    repeat(&g1, 2 * n);
    repeat(&g2, 1);
    hasher.digest()
}

/// Secrets of the ceremony, wiped when they go out of scope.
pub struct Secrets {
    pub tau: Secret,
    pub alpha: Secret,
    pub beta: Secret,
}

impl Secrets {
    /// Draw the secrets from the operating system's generator.
    pub fn new() -> Result<Self> {
        Ok(Self {
            tau: Secret::draw()?,
            alpha: Secret::draw()?,
            beta: Secret::draw()?,
        })
    }

    /// tau, alpha, beta.
    pub fn values(&self) -> (&Fr, &Fr, &Fr) {
        (self.tau.value(), self.alpha.value(), self.beta.value())
    }
}

/// The 64 bytes after section 2 in a file that `write` made: the head of section 3 and the generator of G2.
pub fn after_powers(power: u32) -> [u8; 64] {
    let mut out = [0u8; 64];
    out[..4].copy_from_slice(&3u32.to_le_bytes());
    out[4..12].copy_from_slice(&(128u64 << power).to_le_bytes());
    out[12..].copy_from_slice(&encode(&[G2Affine::generator()], 128, point_to_montgomery)[..52]);
    out
}

/// Writes runs of multiples of a generator.
struct Emitter<P: Group> {
    base: FixedBase<P>,
}

impl<P: Group> Emitter<P> {
    fn emit(
        &self,
        out: &mut Writer,
        scalars: &[Fr],
        mut hasher: Option<&mut Blake2b>,
    ) -> Result<()> {
        for chunk in scalars.chunks(POINTS) {
            let points = self.base.multiply(chunk);
            out.write(&encode(&points, P::POINT, point_to_montgomery))?;
            if let Some(hasher) = &mut hasher {
                hasher.update(&encode(&points, P::POINT / 2, point_to_compressed));
            }
        }
        Ok(())
    }
}

/// factor^0 .. factor^(n-1), each times `first`.
pub fn powers(first: &Fr, factor: &Fr, n: usize) -> Zeroizing<Vec<Fr>> {
    let mut out = Zeroizing::new(vec![Fr::zero(); n]);
    out.par_chunks_mut(POINTS)
        .enumerate()
        .for_each(|(i, chunk)| {
            let mut x = *first * factor.pow([(i * POINTS) as u64]);
            for slot in chunk {
                *slot = x;
                x *= factor;
            }
        });
    out
}

/// The Lagrange polynomials of the n-th roots of unity at tau, n = 2^k:
/// L_i(tau) = (tau^n - 1)/n * w^i/(tau - w^i). With `truncated`, the coefficient of tau^(n-1) counts as zero.
pub fn lagrange_at(tau: &Fr, k: u32, truncated: bool) -> Result<Zeroizing<Vec<Fr>>> {
    let n = 1u64 << k;
    let root = Fr::get_root_of_unity(n).expect("k is at most 28");
    let tau_n = tau.pow([n]);
    let size = Fr::from(n).inverse().expect("n < r");
    let scale = (tau_n - Fr::one()) * size;
    if scale.is_zero() {
        return Err(Error::Randomness("tau is a root of unity".into()));
    }
    let missing = if truncated {
        tau.pow([n - 1]) * size
    } else {
        Fr::zero()
    };
    let mut out = powers(&Fr::one(), &root, n as usize);
    out.par_chunks_mut(POINTS).for_each(|chunk| {
        let roots = chunk.to_vec();
        for x in chunk.iter_mut() {
            *x = *tau - *x;
        }
        invert_all(chunk, &scale);
        for (x, root) in chunk.iter_mut().zip(roots.iter()) {
            // w^(-i(n-1)) = w^i, so the missing term has the same factor.
            *x = (*x - missing) * root;
        }
    });
    Ok(out)
}

/// A phase 1 of 2^power made by one party, with its secrets drawn here and wiped, written as a `.ptau` file with
/// one contribution and prepared for phase 2: `snarkjs powersoftau verify` and `groth16 setup` accept it.
pub fn new(power: u32, path: &Path) -> Result<()> {
    isolated(|| write(power, path, &Secrets::new()?))
}

/// `new` for given secrets; to be called inside `isolated`.
pub fn write(power: u32, path: &Path, secrets: &Secrets) -> Result<()> {
    if !(1..=MAX_POWER).contains(&power) {
        return malformed("power", format!("expected 1 to {MAX_POWER}, found {power}"));
    }
    let (tau, alpha, beta) = secrets.values();
    let n = 1usize << power;
    let width = if power < 10 { 8 } else { 13 };
    let g1 = Emitter::<g1::Config> {
        base: FixedBase::new(G1Affine::generator(), width),
    };
    let g2 = Emitter::<g2::Config> {
        base: FixedBase::new(G2Affine::generator(), width - 1),
    };

    let challenge = first_challenge(power);
    let mut response = Blake2b::default();
    response.update(&challenge);

    let mut out = Writer::create(path, b"ptau", 1, 11)?;
    out.begin(1)?;
    out.write(&32u32.to_le_bytes())?;
    out.write(&limbs_to_le(&Fq::MODULUS))?;
    out.write(&power.to_le_bytes())?;
    out.write(&power.to_le_bytes())?;
    out.end()?;

    let mut sections: Vec<(Section, bool)> = Vec::new();
    let mut monomials = powers(&Fr::one(), tau, 2 * n - 1);
    out.begin(2)?;
    g1.emit(&mut out, &monomials, Some(&mut response))?;
    sections.push((out.end()?, false));
    out.begin(3)?;
    g2.emit(&mut out, &monomials[..n], Some(&mut response))?;
    sections.push((out.end()?, true));
    for (id, factor) in [(4, alpha), (5, beta)] {
        monomials = powers(factor, tau, n);
        out.begin(id)?;
        g1.emit(&mut out, &monomials, Some(&mut response))?;
        sections.push((out.end()?, false));
    }
    drop(monomials);
    out.begin(6)?;
    g2.emit(&mut out, std::slice::from_ref(beta), Some(&mut response))?;
    sections.push((out.end()?, true));

    contribution(&mut out, secrets, &challenge, &response, &sections)?;

    for (id, factor) in [(12, &Fr::one()), (14, alpha), (15, beta)] {
        // snarkjs looks sections up by number, so 13 may follow 15.
        out.begin(id)?;
        for k in 0..=power {
            let mut scalars = lagrange_at(tau, k, false)?;
            scalars.par_iter_mut().for_each(|x| *x *= factor);
            g1.emit(&mut out, &scalars, None)?;
        }
        if id == 12 {
            g1.emit(&mut out, &lagrange_at(tau, power + 1, true)?, None)?;
        }
        out.end()?;
    }
    out.begin(13)?;
    for k in 0..=power {
        g2.emit(&mut out, &lagrange_at(tau, k, false)?, None)?;
    }
    out.end()?;
    out.finish()
}

/// Section 7: the generators after the contribution, the proofs of knowledge, and the chain of hashes.
fn contribution(
    out: &mut Writer,
    secrets: &Secrets,
    challenge: &Digest,
    response: &Blake2b,
    sections: &[(Section, bool)],
) -> Result<()> {
    let Secrets { tau, alpha, beta } = secrets;
    let key = |personalisation: u8, secret: &Secret| {
        KeyProof::new(secret, |s, sx| {
            blake2b(&[&[personalisation], challenge, s, sx])
        })
    };
    let keys = [key(0, tau)?, key(1, alpha)?, key(2, beta)?];
    let g1_points: Vec<G1Affine> = keys.iter().flat_map(|k| [k.g1_s, k.g1_sx]).collect();
    let g2_points: Vec<G2Affine> = keys.iter().map(|k| k.g2_spx).collect();

    let mut answered = response.clone();
    for p in &g1_points {
        answered.update(&g1_be(p));
    }
    for p in &g2_points {
        answered.update(&g2_be(p));
    }
    let mut next = Blake2b::default();
    next.update(&answered.digest());
    for (section, in_g2) in sections {
        hash_section(out, *section, *in_g2, &mut next)?;
    }

    let g1 = |secret: &Secret| secret.times(G1Affine::generator());
    let g2 = |secret: &Secret| secret.times(G2Affine::generator());
    out.begin(7)?;
    out.write(&1u32.to_le_bytes())?;
    out.write(&encode(&[g1(tau)], 64, point_to_montgomery))?;
    out.write(&encode(&[g2(tau)], 128, point_to_montgomery))?;
    out.write(&encode(&[g1(alpha), g1(beta)], 64, point_to_montgomery))?;
    out.write(&encode(&[g2(beta)], 128, point_to_montgomery))?;
    out.write(&encode(&g1_points, 64, point_to_montgomery))?;
    out.write(&encode(&g2_points, 128, point_to_montgomery))?;
    out.write(&response.midstate())?;
    out.write(&next.digest())?;
    out.write(&Parameters::named(NAME).encode())?;
    out.end()?;
    Ok(())
}

fn hash_section(
    out: &mut Writer,
    section: Section,
    in_g2: bool,
    hasher: &mut Blake2b,
) -> Result<()> {
    let run = POINTS as u64 * 64;
    let mut offset = 0;
    while offset < section.size {
        let mut raw = vec![0u8; run.min(section.size - offset) as usize];
        out.read_back(section.offset + offset, &mut raw)?;
        offset += raw.len() as u64;
        hasher.update(&if in_g2 {
            to_be::<g2::Config>(&raw)
        } else {
            to_be::<g1::Config>(&raw)
        });
    }
    Ok(())
}

/// Converts points from Montgomery to uncompressed form, for bytes that this module wrote.
fn to_be<P: Group>(raw: &[u8]) -> Vec<u8> {
    let half = P::POINT / 2;
    let mut out = vec![0u8; raw.len()];
    out.par_chunks_mut(half)
        .zip(raw.par_chunks(half))
        .for_each(|(out, raw)| {
            if let Some(x) = P::BaseField::from_montgomery(raw) {
                x.to_be(out);
            }
        });
    out
}
