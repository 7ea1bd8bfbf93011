//! Byte forms of field elements and points.
//!
//! snarkjs stores curve points in its files as Montgomery limbs, little-endian, with all zeros for the point
//! at infinity; hashes and ceremonies use plain big-endian coordinates with the imaginary part first.
use ark_bn254::{Fq, Fq2, Fr, G1Affine, G2Affine};
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ec::AffineRepr;
use ark_ff::{BigInt, PrimeField, Zero};
use ragaudit_field_simd::sums::{self, Point};
use rayon::prelude::*;

#[cfg(feature = "prover")]
use crate::binfile::{ReadAt, Section, Sections};
#[cfg(feature = "prover")]
use crate::error::{malformed, Result};

/// Limbs from 32 little-endian bytes.
pub fn limbs(b: &[u8]) -> BigInt<4> {
    BigInt([
        le64(&b[0..8]),
        le64(&b[8..16]),
        le64(&b[16..24]),
        le64(&b[24..32]),
    ])
}

pub fn limbs_to_le(x: &BigInt<4>) -> [u8; 32] {
    let mut out = [0u8; 32];
    for (chunk, limb) in out.chunks_exact_mut(8).zip(x.0) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
    out
}

/// The integer in 32 big-endian bytes.
pub fn limbs_from_be(b: &[u8]) -> BigInt<4> {
    let mut le = [0u8; 32];
    for (out, byte) in le.iter_mut().rev().zip(b) {
        *out = *byte;
    }
    limbs(&le)
}

pub fn limbs_to_be(x: &BigInt<4>) -> [u8; 32] {
    let mut out = limbs_to_le(x);
    out.reverse();
    out
}

/// A scalar from 32 big-endian bytes; `None` for integers from the group order on.
pub fn scalar_from_be(b: &[u8]) -> Option<Fr> {
    Fr::from_bigint(limbs_from_be(b))
}

/// A coordinate of a curve point: a field element that can be read from and written to both byte forms.
pub trait Coordinate: sums::Coordinate {
    const SIZE: usize;
    /// A coordinate from Montgomery limbs; `None` if a limb vector is not below the modulus.
    fn from_montgomery(b: &[u8]) -> Option<Self>;
    fn to_montgomery(&self, out: &mut [u8]);
    fn from_be(b: &[u8]) -> Option<Self>;
    fn to_be(&self, out: &mut [u8]);
    /// Whether the highest non-zero component is more than half of the modulus.
    fn is_negative(&self) -> bool;
}

impl Coordinate for Fq {
    const SIZE: usize = 32;
    fn from_montgomery(b: &[u8]) -> Option<Self> {
        let x = limbs(b);
        (x < Fq::MODULUS).then(|| Fq::new_unchecked(x))
    }
    fn to_montgomery(&self, out: &mut [u8]) {
        out.copy_from_slice(&limbs_to_le(&self.0));
    }
    fn from_be(b: &[u8]) -> Option<Self> {
        Fq::from_bigint(limbs_from_be(b))
    }
    fn to_be(&self, out: &mut [u8]) {
        out.copy_from_slice(&limbs_to_be(&self.into_bigint()));
    }
    fn is_negative(&self) -> bool {
        self.into_bigint() > Fq::MODULUS_MINUS_ONE_DIV_TWO
    }
}

impl Coordinate for Fq2 {
    const SIZE: usize = 64;
    fn from_montgomery(b: &[u8]) -> Option<Self> {
        Some(Fq2::new(
            Fq::from_montgomery(&b[..32])?,
            Fq::from_montgomery(&b[32..64])?,
        ))
    }
    fn to_montgomery(&self, out: &mut [u8]) {
        self.c0.to_montgomery(&mut out[..32]);
        self.c1.to_montgomery(&mut out[32..64]);
    }
    fn from_be(b: &[u8]) -> Option<Self> {
        Some(Fq2::new(Fq::from_be(&b[32..64])?, Fq::from_be(&b[..32])?))
    }
    fn to_be(&self, out: &mut [u8]) {
        self.c1.to_be(&mut out[..32]);
        self.c0.to_be(&mut out[32..64]);
    }
    fn is_negative(&self) -> bool {
        if self.c1.is_zero() {
            self.c0.is_negative()
        } else {
            self.c1.is_negative()
        }
    }
}

/// The two groups, generically: BN254's G1 over Fq, G2 over Fq2.
pub trait Group: SWCurveConfig<ScalarField = Fr, BaseField: Coordinate> {
    /// Bytes of an affine point in either form.
    const POINT: usize = 2 * <Self::BaseField as Coordinate>::SIZE;
}
impl Group for ark_bn254::g1::Config {}
impl Group for ark_bn254::g2::Config {}

/// A point on the curve from snarkjs's form; infinity is all zeros. The subgroup is not checked.
pub fn point_from_montgomery<P: Group>(b: &[u8]) -> std::result::Result<Affine<P>, &'static str> {
    let half = P::POINT / 2;
    let x =
        P::BaseField::from_montgomery(&b[..half]).ok_or("a coordinate is not below the modulus")?;
    let y = P::BaseField::from_montgomery(&b[half..P::POINT])
        .ok_or("a coordinate is not below the modulus")?;
    if x.is_zero() && y.is_zero() {
        return Ok(Affine::zero());
    }
    let point = Affine::<P>::new_unchecked(x, y);
    point
        .is_on_curve()
        .then_some(point)
        .ok_or("the point is not on the curve")
}

pub fn point_to_montgomery<P: Group>(p: &Affine<P>, out: &mut [u8]) {
    let half = P::POINT / 2;
    match p.xy() {
        Some((x, y)) => {
            x.to_montgomery(&mut out[..half]);
            y.to_montgomery(&mut out[half..P::POINT]);
        }
        None => out[..P::POINT].fill(0),
    }
}

/// Uncompressed, big-endian; infinity is all zeros, as snarkjs hashes it.
pub fn point_to_be<P: Group>(p: &Affine<P>, out: &mut [u8]) {
    let half = P::POINT / 2;
    match p.xy() {
        Some((x, y)) => {
            x.to_be(&mut out[..half]);
            y.to_be(&mut out[half..P::POINT]);
        }
        None => out[..P::POINT].fill(0),
    }
}

/// Compressed, big-endian, as the powers-of-tau response hashes it: x with 0x80 for a negative y.
pub fn point_to_compressed<P: Group>(p: &Affine<P>, out: &mut [u8]) {
    match p.xy() {
        Some((x, y)) => {
            x.to_be(out);
            if y.is_negative() {
                out[0] |= 0x80;
            }
        }
        None => {
            out.fill(0);
            out[0] = 0x40;
        }
    }
}

/// An affine point from plain big-endian coordinates (EIP-197 order for G2: imaginary part first), with every
/// check that a verifier needs: canonical, not infinity, on the curve, in the subgroup of order r.
pub fn checked_point_from_be<P: Group>(b: &[u8]) -> std::result::Result<Affine<P>, &'static str> {
    let half = P::POINT / 2;
    let x = P::BaseField::from_be(&b[..half]).ok_or("a coordinate is not below the modulus")?;
    let y =
        P::BaseField::from_be(&b[half..P::POINT]).ok_or("a coordinate is not below the modulus")?;
    checked_point(x, y)
}

pub fn checked_point<P: Group>(
    x: P::BaseField,
    y: P::BaseField,
) -> std::result::Result<Affine<P>, &'static str> {
    if x.is_zero() && y.is_zero() {
        return Err("the point is at infinity");
    }
    let point = Affine::<P>::new_unchecked(x, y);
    if !point.is_on_curve() {
        return Err("the point is not on the curve");
    }
    if !point.is_in_correct_subgroup_assuming_on_curve() {
        return Err("the point is not in the subgroup of order r");
    }
    Ok(point)
}

pub fn g1_be(p: &G1Affine) -> [u8; 64] {
    let mut out = [0u8; 64];
    point_to_be(p, &mut out);
    out
}

pub fn g2_be(p: &G2Affine) -> [u8; 128] {
    let mut out = [0u8; 128];
    point_to_be(p, &mut out);
    out
}

pub fn le64(b: &[u8]) -> u64 {
    b.iter()
        .rev()
        .fold(0, |acc, &byte| acc << 8 | u64::from(byte))
}

/// The point with both coordinates 0 for infinity.
pub fn to_plain<P: Group>(p: &Affine<P>) -> Point<P::BaseField> {
    let (x, y) = p.xy().unwrap_or_default();
    Point { x, y }
}

pub fn from_plain<P: Group>(p: &Point<P::BaseField>) -> Affine<P> {
    if p.is_neutral() {
        return Affine::zero();
    }
    Affine::new_unchecked(p.x, p.y)
}

const CHUNK_POINTS: usize = 1 << 12;

/// Read `count` points at `section.offset + skip`, checked to be on the curve, in parallel.
#[cfg(feature = "prover")]
pub fn read_points<P: Group, R: ReadAt>(
    file: &Sections<R>,
    section: Section,
    skip: u64,
    count: usize,
    what: &str,
) -> Result<Vec<Affine<P>>> {
    let points = read_plain::<P, R>(file, section, skip, count, what)?;
    Ok(points.par_iter().map(from_plain).collect())
}

/// `read_points`, with the points in the form that sums use.
#[cfg(feature = "prover")]
pub fn read_plain<P: Group, R: ReadAt>(
    file: &Sections<R>,
    section: Section,
    skip: u64,
    count: usize,
    what: &str,
) -> Result<Vec<Point<P::BaseField>>> {
    let bytes = (count as u64).checked_mul(P::POINT as u64);
    if bytes
        .and_then(|b| b.checked_add(skip))
        .is_none_or(|end| end > section.size)
    {
        return malformed(file.place(what), "the section is too short");
    }
    let mut points = vec![Point::default(); count];
    points
        .par_chunks_mut(CHUNK_POINTS)
        .enumerate()
        .try_for_each(|(i, chunk)| {
            let first = i * CHUNK_POINTS;
            let refused = |j: usize, reason: &str| {
                malformed(file.place(&format!("{what}[{}]", first + j)), reason)
            };
            let mut raw = vec![0u8; chunk.len() * P::POINT];
            file.read(section.offset + skip + (first * P::POINT) as u64, &mut raw)?;
            let coordinate = |b| <P::BaseField as Coordinate>::from_montgomery(b);
            for (j, (point, b)) in chunk.iter_mut().zip(raw.chunks_exact(P::POINT)).enumerate() {
                let (x, y) = b.split_at(P::POINT / 2);
                let (Some(x), Some(y)) = (coordinate(x), coordinate(y)) else {
                    return refused(j, "a coordinate is not below the modulus");
                };
                *point = Point { x, y };
            }
            match sums::Coordinate::off_curve(chunk, &P::COEFF_B) {
                Some(j) => refused(j, "the point is not on the curve"),
                None => Ok(()),
            }
        })?;
    Ok(points)
}

/// Encode points with one of the writers above, in parallel.
pub fn encode<P: Group>(
    points: &[Affine<P>],
    size: usize,
    write: impl Fn(&Affine<P>, &mut [u8]) + Sync,
) -> Vec<u8> {
    let mut out = vec![0u8; points.len() * size];
    out.par_chunks_mut(size * CHUNK_POINTS)
        .zip(points.par_chunks(CHUNK_POINTS))
        .for_each(|(out, points)| {
            for (b, p) in out.chunks_exact_mut(size).zip(points) {
                write(p, b);
            }
        });
    out
}
