//! BN254 G1: generators with unknown relations, canonical encodings, sums of small multiples.
use std::sync::{Arc, OnceLock, RwLock};

use ark_bn254::Fq;
pub use ark_bn254::{Fr, G1Affine, G1Projective};
use ark_ec::{AffineRepr, VariableBaseMSM};
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField, Zero};
pub use ragaudit_core::g1::fold as fold_points;
use ragaudit_core::g1::{segment_sums, square_roots};
use ragaudit_core::multiples::{odd_digits, read_all, SmallMultiples, SMALL, SMALL_DIGITS};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use crate::error::{Error, Result};
use crate::numbers::log2_ceil;

/// Bytes of an encoded point or scalar.
pub const ENCODED: usize = 32;
/// What the generators are hashed from. Nothing else was tried.
const GENERATORS: &str = "rag-audit/scan/v1/generators";

/// 32 bytes big-endian.
pub fn encode_scalar(x: &Fr) -> [u8; ENCODED] {
    ragaudit_core::field::to_bytes(x)
}

/// None for an integer not below r.
pub fn decode_scalar(bytes: &[u8; ENCODED]) -> Option<Fr> {
    ragaudit_core::field::from_bytes(bytes, "scalar").ok()
}

const SIGN: u8 = 0x80;
const INFINITY: u8 = 0x40;

/// x big-endian; the top bit says that y is odd, the next one that the point is the neutral one (x = 0).
pub fn encode_point(p: &G1Affine) -> [u8; ENCODED] {
    let mut out = [0; ENCODED];
    match p.xy() {
        None => out[0] = INFINITY,
        Some((x, y)) => {
            out.copy_from_slice(&x.into_bigint().to_bytes_be());
            if y.into_bigint().is_odd() {
                out[0] |= SIGN;
            }
        }
    }
    out
}

/// The points that `bytes` encode one after another; refuses what [`encode_point`] does not make. The cofactor is 1: on
/// the curve is in the group.
pub fn decode_points(bytes: &[u8]) -> Result<Vec<G1Affine>> {
    let (encoded, rest) = bytes.as_chunks();
    let points = decode_each(encoded)
        .into_iter()
        .chain((!rest.is_empty()).then_some(None));
    let named = |(i, point): (usize, Option<G1Affine>)| {
        point.ok_or(Error::Malformed {
            at: i * ENCODED,
            reason: NO_POINT,
        })
    };
    points.enumerate().map(named).collect()
}

pub(crate) const NO_POINT: &str = "this is not the canonical encoding of a point of the curve";

/// Each point, or none.
pub(crate) fn decode_each(encoded: &[[u8; ENCODED]]) -> Vec<Option<G1Affine>> {
    let xs: Vec<Option<Fq>> = encoded.iter().map(decode_x).collect();
    let squares: Vec<Fq> = xs.iter().map(|x| curve(x.unwrap_or(Fq::ZERO))).collect();
    let point = |((bytes, x), y): ((&[u8; ENCODED], &Option<Fq>), Option<Fq>)| {
        if bytes[0] & INFINITY != 0 {
            let canonical = bytes[0] == INFINITY && bytes[1..].iter().all(|&b| b == 0);
            return canonical.then(G1Affine::zero);
        }
        let y = with_parity(y?, bytes[0] & SIGN != 0);
        Some(G1Affine::new_unchecked((*x)?, y))
    };
    let roots = square_roots(&squares);
    encoded.iter().zip(&xs).zip(roots).map(point).collect()
}

/// None for what is not below p.
fn decode_x(bytes: &[u8; ENCODED]) -> Option<Fq> {
    let mut limbs = [0u64; 4];
    for (limb, chunk) in limbs.iter_mut().rev().zip(bytes.chunks_exact(8)) {
        *limb = chunk.iter().fold(0, |acc, &b| acc << 8 | u64::from(b));
    }
    limbs[3] &= u64::MAX >> 2; // less sign and infinity
    Fq::from_bigint(ark_ff::BigInt::new(limbs))
}

/// y^2 at x.
fn curve(x: Fq) -> Fq {
    x.square() * x + Fq::from(3u8)
}

fn with_parity(y: Fq, odd: bool) -> Fq {
    if y.into_bigint().is_odd() == odd {
        y
    } else {
        -y
    }
}

/// RFC 9380, section 5.3.1, with SHA-256.
fn expand_message(message: &[u8], domain: &[u8], length: usize) -> Vec<u8> {
    let mut domain = domain.to_vec();
    domain.push(domain.len() as u8);
    let first = Sha256::new()
        .chain_update([0; 64])
        .chain_update(message)
        .chain_update((length as u16).to_be_bytes())
        .chain_update([0])
        .chain_update(&domain)
        .finalize();
    let mut block = [0u8; 32];
    let mut out = Vec::new();
    for i in 1..=length.div_ceil(32) as u8 {
        for (b, f) in block.iter_mut().zip(&first) {
            *b ^= f;
        }
        block = Sha256::new()
            .chain_update(block)
            .chain_update([i])
            .chain_update(&domain)
            .finalize()
            .into();
        out.extend(block);
    }
    out.truncate(length);
    out
}

struct Map {
    c1: Fq,
    c2: Fq,
    c3: Fq,
    c4: Fq,
}

fn map_constants() -> &'static Map {
    static MAP: OnceLock<Map> = OnceLock::new();
    MAP.get_or_init(|| {
        let third = Fq::from(3u8).inverse().expect("3 is not zero");
        let c3 = (-Fq::from(12u8))
            .sqrt()
            .expect("-g(1) 3 is a square in BN254");
        Map {
            c1: Fq::from(4u8),
            c2: -Fq::from(2u8).inverse().expect("2 is not zero"),
            c3: if c3.into_bigint().is_odd() { -c3 } else { c3 },
            c4: -Fq::from(16u8) * third,
        }
    })
}

/// RFC 9380, appendix F.1 (Shallue and van de Woestijne) with Z = 1.
fn map_to_curve(us: &[Fq]) -> Vec<G1Affine> {
    let map = map_constants();
    let sides = |u: &Fq| {
        let t = u.square() * map.c1;
        (Fq::ONE - t, Fq::ONE + t)
    };
    let mut inverses: Vec<Fq> = us
        .iter()
        .map(sides)
        .map(|(minus, plus)| minus * plus)
        .collect();
    ark_ff::batch_inversion(&mut inverses); // 0 stays
    let candidate = |i: usize, k: usize| {
        let (u, inverse, (minus, plus)) = (us[i], inverses[i], sides(&us[i]));
        let shift = || u * minus * inverse * map.c3;
        match k {
            0 => map.c2 - shift(),
            1 => map.c2 + shift(),
            _ => (plus.square() * inverse).square() * map.c4 + Fq::ONE,
        }
    };
    // Of three candidates the first that is on the curve.
    let mut points = vec![G1Affine::zero(); us.len()];
    let mut left: Vec<usize> = (0..us.len()).collect();
    for k in 0..3 {
        let xs: Vec<Fq> = left.iter().map(|i| candidate(*i, k)).collect();
        let squares: Vec<Fq> = xs.iter().map(|x| curve(*x)).collect();
        let mut roots = square_roots(&squares).into_iter().zip(xs);
        left.retain(|i| {
            let Some((Some(y), x)) = roots.next() else {
                return true;
            };
            let y = with_parity(y, us[*i].into_bigint().is_odd());
            points[*i] = G1Affine::new_unchecked(x, y);
            false
        });
    }
    assert!(left.is_empty(), "one of the three is on the curve");
    points
}

fn hash_to_curve(messages: &[String], domain: &[u8]) -> Vec<G1Affine> {
    let halves = messages.iter().flat_map(|message| {
        let bytes = expand_message(message.as_bytes(), domain, 96);
        [&bytes[..48], &bytes[48..]].map(Fq::from_be_bytes_mod_order)
    });
    segment_sums(
        map_to_curve(&halves.collect::<Vec<_>>()),
        &vec![2; messages.len()],
    )
}

fn generators(family: &str, numbers: std::ops::Range<usize>) -> Vec<G1Affine> {
    let messages: Vec<String> = numbers.map(|i| format!("{family}/{i}")).collect();
    let runs = messages.par_chunks(HASHED);
    runs.flat_map_iter(|run| hash_to_curve(run, GENERATORS.as_bytes()))
        .collect()
}

/// Generators of one task.
const HASHED: usize = 128;

/// A family of generators that grows when a longer prefix is asked for.
struct Family {
    name: &'static str,
    points: RwLock<Arc<Vec<G1Affine>>>,
}

impl Family {
    fn prefix(&self, count: usize) -> Arc<Vec<G1Affine>> {
        let lock = |e| std::sync::PoisonError::into_inner(e);
        let known = Arc::clone(&self.points.read().unwrap_or_else(lock));
        if known.len() >= count {
            return known;
        }
        // Made outside the lock: a waiting pool thread could otherwise steal a task that wants the lock.
        let more = generators(self.name, known.len()..count);
        let grown = Arc::new([known.as_slice(), &more].concat());
        *self
            .points
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::clone(&grown);
        grown
    }
}

/// G_0, G_1, ..: what vectors are committed with; at least `count` of them.
pub fn vector_generators(count: usize) -> Arc<Vec<G1Affine>> {
    static FAMILY: OnceLock<Family> = OnceLock::new();
    let new = || Family {
        name: "G",
        points: RwLock::default(),
    };
    FAMILY.get_or_init(new).prefix(count)
}

/// Q_0, Q_1, ..: what a hidden query is committed with.
pub fn query_generators(count: usize) -> Arc<Vec<G1Affine>> {
    static FAMILY: OnceLock<Family> = OnceLock::new();
    let new = || Family {
        name: "Q",
        points: RwLock::default(),
    };
    FAMILY.get_or_init(new).prefix(count)
}

/// Multiples of one point by table, by the same steps whatever the factor is.
pub struct FixedBase {
    pub point: G1Affine,
    /// Of 2^([`SMALL`] i) P.
    windows: Vec<SmallMultiples>,
}

/// Factors whose multiples are made together.
const FACTORS: usize = 64;

impl FixedBase {
    pub(crate) fn new(point: G1Affine) -> Self {
        let mut windows = Vec::with_capacity(SMALL_DIGITS);
        let mut base = point.into_group();
        for _ in 0..SMALL_DIGITS {
            windows.push(SmallMultiples::of(base));
            (0..SMALL).for_each(|_| _ = base.double_in_place());
        }
        Self { point, windows }
    }

    /// Points whose sum is x P, as many whatever x is. None is neutral; where other points are summed with them, or x is
    /// uniform, no two partial sums have the same x but by chance.
    pub(crate) fn terms(&self, x: &Fr, out: &mut Vec<G1Affine>) {
        let mut digits = odd_digits(x);
        read_all(&self.windows, &digits, out);
        digits.zeroize();
    }

    pub fn add_multiple(&self, sum: &mut G1Projective, x: &Fr) {
        *sum += self.multiples(std::slice::from_ref(x))[0];
    }

    /// x P for each x.
    pub fn multiples(&self, xs: &[Fr]) -> Vec<G1Affine> {
        let run = |xs: &[Fr]| {
            let mut terms = Vec::with_capacity(xs.len() * SMALL_DIGITS);
            xs.iter().for_each(|x| self.terms(x, &mut terms));
            segment_sums(terms, &vec![SMALL_DIGITS as u32; xs.len()])
        };
        if xs.len() <= FACTORS {
            return run(xs);
        }
        xs.par_chunks(FACTORS).flat_map_iter(run).collect()
    }
}

/// The sum of multiples of several fixed points, by the same steps whatever the factors are. One of them is uniform.
pub(crate) fn fixed_sum<'a>(
    parts: impl IntoIterator<Item = (&'a FixedBase, &'a Fr)>,
) -> G1Projective {
    let mut terms = Vec::new();
    for (base, x) in parts {
        base.terms(x, &mut terms);
    }
    let count = terms.len() as u32;
    segment_sums(terms, &[count])[0].into()
}

/// Messages in one commitment of round messages.
pub const WIDTH: usize = 16;

/// Tables of what many small commitments are made with.
pub struct Tables {
    /// Blinds.
    pub h: FixedBase,
    /// Carries single scalars.
    pub u: FixedBase,
    /// G_0 .. G_15, which carry messages.
    pub g: Vec<FixedBase>,
}

pub fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    if let Some(known) = TABLES.get() {
        return known;
    }
    // Outside the initialisation, which must not wait for the thread pool: its threads may be waiting for it.
    let (g, h, u) = (
        vector_generators(WIDTH),
        generators("H", 0..1),
        generators("U", 0..1),
    );
    let tables = Tables {
        h: FixedBase::new(h[0]),
        u: FixedBase::new(u[0]),
        g: g[..WIDTH].iter().map(|p| FixedBase::new(*p)).collect(),
    };
    TABLES.get_or_init(|| tables)
}

/// Largest sum that is made at once: what it takes in memory is one point a point, for each thread.
const MSM: usize = 1 << 18;

/// sum of x_i P_i, by buckets of signed digits: how long it takes depends on the scalars. Those of a prover are public,
/// or uniform whatever its secrets are.
pub fn msm(points: &[G1Affine], scalars: &[Fr]) -> G1Projective {
    debug_assert_eq!(points.len(), scalars.len());
    points
        .chunks(MSM)
        .zip(scalars.chunks(MSM))
        .map(|(points, scalars)| match points.len() {
            0..256 => G1Projective::msm_unchecked(points, scalars),
            _ => window_msm(points, scalars),
        })
        .sum()
}

fn window_msm(points: &[G1Affine], scalars: &[Fr]) -> G1Projective {
    let (windows, bits) = windows(Fr::MODULUS_BIT_SIZE as usize + 1, points.len());
    let integers: Vec<[u64; 4]> = scalars.par_iter().map(|x| x.into_bigint().0).collect();
    // Signed digits: a window's value and the carry below it, less 2^bits from its half upwards. The last window leaves
    // no carry: it has a bit more than the modulus, whose own bits are 110000..
    let mut carries = vec![false; points.len()];
    let digits: Vec<Vec<i32>> = (0..windows)
        .map(|w| {
            let (limb, shift) = (w * bits / 64, w * bits % 64);
            let digit = |(x, carry): (&[u64; 4], &mut bool)| {
                let low = x.get(limb).copied().unwrap_or(0) >> shift;
                let high = match shift {
                    0 => 0,
                    _ => x.get(limb + 1).copied().unwrap_or(0) << (64 - shift),
                };
                let value = ((low | high) & ((1 << bits) - 1)) as i32 + i32::from(*carry);
                *carry = value >= 1 << (bits - 1);
                value - (i32::from(*carry) << bits)
            };
            let pairs = integers.par_iter().zip(&mut carries);
            pairs.with_min_len(1 << 12).map(digit).collect()
        })
        .collect();
    let sums: Vec<G1Projective> = digits
        .par_iter()
        .map(|digits| weigh(bucket_sums(points, digits)))
        .collect();
    join_windows(&sums, bits)
}

/// How many windows of how many bits take the fewest additions for that many points. [`weigh`] adds a bucket twice, and
/// takes as long as some hundred additions more, whatever their number.
fn windows(bits: usize, points: usize) -> (usize, usize) {
    (1..=bits.max(1))
        .map(|count| (count, bits.div_ceil(count).max(1)))
        .filter(|(_, width)| *width <= 16)
        .min_by_key(|(count, width)| count * (points + (2 << (width - 1)) + 500))
        .unwrap_or((1, 1))
}

/// sum of v_i P_i for small integers, by buckets of signed digits: how long it takes depends on the integers. For what
/// is not proved eagerly; [`crate::prover::columns`] commits to the columns of proofs.
pub fn small_msm(points: &[G1Affine], values: &[i64]) -> G1Projective {
    let most = values.iter().map(|v| v.unsigned_abs()).max().unwrap_or(0);
    let (count, bits) = windows(64 - most.leading_zeros() as usize, points.len());
    let mut rest: Vec<i128> = values.iter().map(|v| i128::from(*v)).collect();
    let mut digits = vec![0i32; rest.len()];
    let half = 1i128 << (bits - 1);
    let sums: Vec<G1Projective> = (0..count)
        .map(|window| {
            for (v, digit) in rest.iter_mut().zip(&mut digits) {
                // The last window takes what is left: at most 2^bits with the carry.
                *digit = match window + 1 == count {
                    true => *v as i32,
                    false => ((*v + half).rem_euclid(2 * half) - half) as i32,
                };
                *v = (*v - i128::from(*digit)) >> bits;
            }
            weigh(bucket_sums(points, &digits))
        })
        .collect();
    join_windows(&sums, bits)
}

/// sum of 2^(bits w) sums_w.
pub(crate) fn join_windows(sums: &[G1Projective], bits: usize) -> G1Projective {
    sums.iter().rev().fold(G1Projective::zero(), |acc, window| {
        (0..bits).fold(acc, |x, _| x.double()) + window
    })
}

/// sum of k times the k-th point, from 1. With k = side a + b it is side times the weighed sums of the rows a and that of
/// the columns b, which are sums without weights.
fn weigh(mut buckets: Vec<G1Affine>) -> G1Projective {
    if buckets.len() < 24 {
        let (mut running, mut sum) = (G1Projective::zero(), G1Projective::zero());
        for bucket in buckets.iter().rev() {
            running += bucket;
            sum += running;
        }
        return sum;
    }
    let bits = log2_ceil(buckets.len() + 1) / 2;
    let side = 1 << bits;
    buckets.insert(0, G1Affine::zero());
    buckets.resize(buckets.len().next_multiple_of(side), G1Affine::zero());
    let rows = buckets.len() / side;
    let column = |b: usize| buckets.iter().skip(b).step_by(side).copied();
    let list = buckets
        .iter()
        .copied()
        .chain((1..side).flat_map(column))
        .collect();
    let lengths = [vec![side as u32; rows], vec![rows as u32; side - 1]].concat();
    let mut sums = segment_sums(list, &lengths);
    let columns = sums.split_off(rows);
    let rows = weigh(sums.split_off(1));
    (0..bits).fold(rows, |x, _| x.double()) + weigh(columns)
}

/// For k = 1, 2, .. up to the largest |digit|, the sum of the points with digit k minus that of those with digit -k.
fn bucket_sums(points: &[G1Affine], digits: &[i32]) -> Vec<G1Affine> {
    let largest = digits.iter().map(|d| d.unsigned_abs()).max().unwrap_or(0);
    let mut lengths = vec![0u32; largest as usize];
    for digit in digits.iter().filter(|d| **d != 0) {
        lengths[digit.unsigned_abs() as usize - 1] += 1;
    }
    let mut next = 0;
    let mut places: Vec<usize> = lengths
        .iter()
        .map(|l| {
            next += *l as usize;
            next - *l as usize
        })
        .collect();
    let mut list = vec![G1Affine::zero(); next];
    for (point, digit) in points.iter().zip(digits).filter(|(_, d)| **d != 0) {
        let place = &mut places[digit.unsigned_abs() as usize - 1];
        list[*place] = if *digit < 0 { -*point } else { *point };
        *place += 1;
    }
    segment_sums(list, &lengths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::CurveGroup;
    use ark_ff::{LegendreSymbol, UniformRand};

    fn rng() -> impl ark_std::rand::Rng {
        ark_std::test_rng()
    }

    fn hex(x: Fq) -> String {
        x.into_bigint()
            .to_bytes_be()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    }

    /// The suite BN254G1_XMD:SHA-256_SVDW_RO_, known answers that gnark-crypto publishes.
    #[test]
    fn hash_to_curve_has_the_published_answers() {
        let domain = b"QUUX-V01-CS02-with-BN254G1_XMD:SHA-256_SVDW_RO_";
        let cases = [
            (
                "",
                "0a976ab906170db1f9638d376514dbf8c42aef256a54bbd48521f20749e59e86",
                "02925ead66b9e68bfc309b014398640ab55f6619ab59bc1fab2210ad4c4d53d5",
            ),
            (
                "abc",
                "23f717bee89b1003957139f193e6be7da1df5f1374b26a4643b0378b5baf53d1",
                "04142f826b71ee574452dbc47e05bc3e1a647478403a7ba38b7b93948f4e151d",
            ),
        ];
        let messages = cases.map(|(message, ..)| message.to_owned());
        for (p, (_, x, y)) in hash_to_curve(&messages, domain).iter().zip(cases) {
            assert_eq!((hex(p.x), hex(p.y)), (x.to_owned(), y.to_owned()));
        }
    }

    /// Appendix F.1 as it stands there, for one value.
    fn map_one_to_curve(u: Fq) -> G1Affine {
        let map = map_constants();
        let t = u.square() * map.c1;
        let (minus, plus) = (Fq::ONE - t, Fq::ONE + t);
        let inverse = (minus * plus).inverse().unwrap_or(Fq::ZERO);
        let shift = u * minus * inverse * map.c3;
        let last = (plus.square() * inverse).square() * map.c4 + Fq::ONE;
        let on_curve = |x: &Fq| curve(*x).legendre() != LegendreSymbol::QuadraticNonResidue;
        let x = [map.c2 - shift, map.c2 + shift, last]
            .into_iter()
            .find(on_curve)
            .unwrap();
        let y = curve(x).sqrt().unwrap();
        let same = y.into_bigint().is_odd() == u.into_bigint().is_odd();
        G1Affine::new_unchecked(x, if same { y } else { -y })
    }

    #[test]
    fn generators_are_those_hashed_one_by_one() {
        let one = |i: usize| {
            let bytes = expand_message(format!("G/{i}").as_bytes(), GENERATORS.as_bytes(), 96);
            let map = |half| map_one_to_curve(Fq::from_be_bytes_mod_order(half));
            (map(&bytes[..48]) + map(&bytes[48..])).into_affine()
        };
        let all = generators("G", 0..HASHED + 20);
        assert!(all.iter().enumerate().all(|(i, p)| *p == one(i)));
        // 1 - 4 u^2 or 1 + 4 u^2 is 0: the exceptional case.
        let half = Fq::from(2u8).inverse().unwrap();
        let us = [half, -half, Fq::ZERO, Fq::ONE];
        assert_eq!(map_to_curve(&us), us.map(map_one_to_curve));
    }

    #[test]
    fn generators_are_distinct_points_of_the_curve() {
        let g = vector_generators(20);
        let q = query_generators(3);
        let mut all = [&g[..20], &q[..3], &[tables().h.point, tables().u.point]].concat();
        assert!(all.iter().all(|p| p.is_on_curve() && !p.is_zero()));
        all.sort_by_key(encode_point);
        all.dedup();
        assert_eq!(all.len(), 25);
        assert_eq!(vector_generators(30)[..20], g[..20]);
    }

    #[test]
    fn encodings_are_canonical() {
        let p = vector_generators(1)[0];
        let good = [p, -p, G1Affine::zero(), p];
        let encoded = good.map(|p| encode_point(&p)).concat();
        assert_eq!(decode_points(&encoded), Ok(good.to_vec()));
        assert_eq!(decode_points(&[]), Ok(Vec::new()));
        let refused = |bytes: &[u8], at: usize| {
            let reason = NO_POINT;
            assert_eq!(decode_points(bytes), Err(Error::Malformed { at, reason }));
        };
        refused(&encoded[..100], 96);
        let second =
            |bytes: [u8; ENCODED]| [&encoded[..ENCODED], &bytes[..], &encoded[ENCODED..]].concat();
        let mut above: [u8; ENCODED] = Fq::MODULUS.to_bytes_be().try_into().unwrap();
        refused(&second(above), ENCODED);
        above[0] |= SIGN;
        refused(&second(above), ENCODED);
        let mut infinity = encode_point(&G1Affine::zero());
        infinity[31] = 1;
        refused(&second(infinity), ENCODED);
        infinity[31] = 0;
        infinity[0] |= SIGN;
        refused(&second(infinity), ENCODED);
        // Every small x: on the curve with the sign asked for, or refused.
        for x in 0..200u8 {
            let mut bytes = [0; ENCODED];
            (bytes[0], bytes[31]) = (SIGN, x);
            match G1Affine::get_ys_from_x_unchecked(Fq::from(x)) {
                None => refused(&second(bytes), ENCODED),
                Some((y, minus_y)) => {
                    let odd = if y.into_bigint().is_odd() { y } else { minus_y };
                    let point = G1Affine::new_unchecked(Fq::from(x), odd);
                    assert_eq!(decode_points(&second(bytes)).unwrap()[1], point);
                }
            }
        }
        assert_eq!(
            decode_scalar(&Fr::MODULUS.to_bytes_be().try_into().unwrap()),
            None
        );
    }

    #[test]
    fn small_and_fixed_multiples_agree_with_plain_ones() {
        let g = vector_generators(8);
        let values = [0, 1, -1, 127, -128, i64::from(u32::MAX), -(1 << 40), 12345];
        let plain: G1Projective = g
            .iter()
            .zip(values)
            .map(|(p, v)| {
                let m = *p * Fr::from(v.unsigned_abs());
                if v < 0 {
                    -m
                } else {
                    m
                }
            })
            .sum();
        assert_eq!(small_msm(&g[..8], &values), plain);
        // Equal, opposite and neutral points, where no chord exists.
        let same = [g[0], g[0], -g[0], g[1], -g[1], G1Affine::zero(), g[2], g[2]];
        let ones = [1, 1, 1, 1, 1, 1, -1, 2];
        assert_eq!(small_msm(&same, &ones), g[0] + g[2]);
        assert_eq!(small_msm(&same, &[0; 8]), G1Projective::zero());
        let mut rng = rng();
        for x in [Fr::ZERO, -Fr::ONE, Fr::rand(&mut rng)] {
            let mut sum = G1Projective::zero();
            tables().u.add_multiple(&mut sum, &x);
            assert_eq!(sum, tables().u.point * x);
        }
    }

    #[test]
    fn large_sums_and_folds_agree_with_plain_ones() {
        let mut rng = rng();
        let g = vector_generators(600);
        let mut points = g[..600].to_vec();
        points[7] = G1Affine::zero();
        points[8] = points[9];
        points[10] = -points[9];
        let mut scalars: Vec<Fr> = (0..600).map(|_| Fr::rand(&mut rng)).collect();
        scalars[..4].copy_from_slice(&[Fr::ZERO, Fr::ONE, -Fr::ONE, -Fr::from(2u8)]);
        scalars[8..10].fill(-Fr::ONE);
        let plain = G1Projective::msm_unchecked(&points, &scalars);
        assert_eq!(msm(&points, &scalars), plain);
        let (low, high) = points.split_at(300);
        for u in [Fr::ZERO, Fr::ONE, -Fr::ONE, Fr::from(6u8), scalars[20]] {
            let sums = low
                .iter()
                .zip(high)
                .map(|(l, h)| (*h * u + l).into_affine());
            assert_eq!(fold_points(low, high, &u), sums.collect::<Vec<_>>());
        }
    }

    #[test]
    fn fixed_multiples_agree_with_plain_ones() {
        let mut rng = rng();
        for x in [Fr::ZERO, Fr::ONE, -Fr::ONE, Fr::rand(&mut rng)] {
            let other = Fr::rand(&mut rng);
            let Tables { h, u, .. } = tables();
            let sum = fixed_sum([(u, &x), (h, &other)]);
            assert_eq!(sum, u.point * x + h.point * other);
        }
        let xs: Vec<Fr> = (0..150).map(|_| Fr::rand(&mut rng)).collect();
        let plain = xs.iter().map(|x| tables().u.point * x);
        assert!(tables().u.multiples(&xs).into_iter().eq(plain));
    }
}
