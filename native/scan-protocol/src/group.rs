//! BN254 G1: generators with unknown relations, canonical encodings.
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use ark_bn254::Fq;
pub use ark_bn254::{Fr, G1Affine, G1Projective};
use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField};
use sha2::{Digest, Sha256};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Bytes of an encoded point or scalar.
pub const ENCODED: usize = 32;
/// The domain of the generators' hash. The project tried no other one.
const GENERATORS: &str = "rag-audit/scan/v1/generators";

/// 32 bytes big-endian.
///
/// ```
/// use ark_bn254::Fr;
/// use ragaudit_scan_protocol::group::{decode_scalar, encode_scalar};
///
/// let x = Fr::from(258u64);
/// assert_eq!(encode_scalar(&x)[30..], [1, 2]);
/// assert_eq!(decode_scalar(&encode_scalar(&x)), Some(x));
/// assert_eq!(decode_scalar(&[0xff; 32]), None);
/// ```
pub fn encode_scalar(x: &Fr) -> [u8; ENCODED] {
    ragaudit_relation::field::to_bytes(x)
}

/// None for an integer not below r.
pub fn decode_scalar(bytes: &[u8; ENCODED]) -> Option<Fr> {
    ragaudit_relation::field::from_bytes(bytes, "scalar").ok()
}

const SIGN: u8 = 0x80;
const INFINITY: u8 = 0x40;

/// x, big-endian; the top bit is set if y is odd, the next bit for the neutral element (x = 0).
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

/// The points one after another, as [`decode_points`] reads them.
pub fn encode_points(points: &[G1Affine]) -> Vec<u8> {
    points.iter().flat_map(encode_point).collect()
}

/// The points that `bytes` encode, in order. Refuses all bytes that [`encode_point`] does not produce. The cofactor is 1, so
/// every point of the curve is in the group.
///
/// ```
/// use ragaudit_scan_protocol::engine::Plain;
/// use ragaudit_scan_protocol::group::{bases, decode_points, encode_point};
///
/// let h = bases::<Plain>().h;
/// assert_eq!(decode_points::<Plain>(&encode_point(&h))?, [h]);
/// assert!(decode_points::<Plain>(&[0xff; 32]).is_err());
/// # Ok::<(), ragaudit_scan_protocol::Error>(())
/// ```
pub fn decode_points<E: Engine>(bytes: &[u8]) -> Result<Vec<G1Affine>> {
    let (encoded, rest) = bytes.as_chunks();
    let points = decode_each::<E>(encoded)
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

pub const NO_POINT: &str = "this is not the canonical encoding of a point of the curve";

/// Each point, or none.
pub fn decode_each<E: Engine>(encoded: &[[u8; ENCODED]]) -> Vec<Option<G1Affine>> {
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
    let roots = E::square_roots(&squares);
    encoded.iter().zip(&xs).zip(roots).map(point).collect()
}

/// None if the number is not below p.
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
fn map_to_curve<E: Engine>(us: &[Fq]) -> Vec<G1Affine> {
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
    // The first of three candidates that is on the curve.
    let mut points = vec![G1Affine::zero(); us.len()];
    let mut left: Vec<usize> = (0..us.len()).collect();
    for k in 0..3 {
        let xs: Vec<Fq> = left.iter().map(|i| candidate(*i, k)).collect();
        let squares: Vec<Fq> = xs.iter().map(|x| curve(*x)).collect();
        let mut roots = E::square_roots(&squares).into_iter().zip(xs);
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

fn hash_to_curve<E: Engine>(messages: &[String], domain: &[u8]) -> Vec<G1Affine> {
    let halves: Vec<[Fq; 2]> = (messages.iter())
        .map(|message| {
            let bytes = expand_message(message.as_bytes(), domain, 96);
            [&bytes[..48], &bytes[48..]].map(Fq::from_be_bytes_mod_order)
        })
        .collect();
    let us: Vec<Fq> = [0, 1]
        .iter()
        .flat_map(|k| halves.iter().map(|h| h[*k]))
        .collect();
    let mut points = map_to_curve::<E>(&us);
    let second = points.split_off(messages.len());
    E::add_each(&mut points, &second);
    points
}

fn generators<E: Engine>(family: &str, numbers: std::ops::Range<usize>) -> Vec<G1Affine> {
    let messages: Vec<String> = numbers.map(|i| format!("{family}/{i}")).collect();
    let runs: Vec<&[String]> = messages.chunks(HASHED).collect();
    E::fold(
        runs.len(),
        |mut all: Vec<G1Affine>, run| {
            all.extend(hash_to_curve::<E>(runs[run], GENERATORS.as_bytes()));
            all
        },
        |mut all, more| {
            all.extend(more);
            all
        },
    )
}

/// Generators of one task.
const HASHED: usize = 128;

/// A family of generators that grows when a longer prefix is asked for.
struct Family {
    name: &'static str,
    points: LazyLock<RwLock<Arc<Vec<G1Affine>>>>,
}

impl Family {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            points: LazyLock::new(RwLock::default),
        }
    }

    /// Puts a prefix in the place of a shorter one.
    fn keep(&self, points: Vec<G1Affine>) -> Arc<Vec<G1Affine>> {
        let mut known = self.points.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < points.len() {
            *known = Arc::new(points);
        }
        Arc::clone(&known)
    }

    fn prefix<E: Engine>(&self, count: usize) -> Arc<Vec<G1Affine>> {
        let lock = self.points.read();
        let known = Arc::clone(&lock.unwrap_or_else(PoisonError::into_inner));
        if known.len() >= count {
            return known;
        }
        // Made outside the lock: a waiting pool thread could otherwise steal a task that wants the lock.
        let more = generators::<E>(self.name, known.len()..count);
        self.keep([known.as_slice(), &more].concat())
    }
}

/// The families by name, as far as they were made.
static VECTOR: Family = Family::new("G");
static QUERY: Family = Family::new("Q");

/// G_0, G_1, .., the generators of vector commitments; at least `count` of them.
pub fn vector_generators<E: Engine>(count: usize) -> Arc<Vec<G1Affine>> {
    VECTOR.prefix::<E>(count)
}

/// Q_0, Q_1, .., the generators of query commitments.
pub fn query_generators<E: Engine>(count: usize) -> Arc<Vec<G1Affine>> {
    QUERY.prefix::<E>(count)
}

/// Stores the first generators of both families. The caller has compared them with the results of the hash.
pub(crate) fn know(vector: Vec<G1Affine>, query: Vec<G1Affine>) {
    VECTOR.keep(vector);
    QUERY.keep(query);
}

/// Messages in one commitment of round messages.
pub const WIDTH: usize = 16;

/// H, which blinds, and U, which carries single scalars.
pub struct Bases {
    pub h: G1Affine,
    pub u: G1Affine,
}

pub fn bases<E: Engine>() -> &'static Bases {
    static BASES: OnceLock<Bases> = OnceLock::new();
    if let Some(known) = BASES.get() {
        return known;
    }
    // Outside the initialisation, as above.
    let [h, u] = ["H", "U"].map(|family| generators::<E>(family, 0..1)[0]);
    BASES.get_or_init(|| Bases { h, u })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Plain;
    use ark_ec::CurveGroup;
    use ark_ff::LegendreSymbol;

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
        for (p, (_, x, y)) in hash_to_curve::<Plain>(&messages, domain).iter().zip(cases) {
            assert_eq!((hex(p.x), hex(p.y)), (x.to_owned(), y.to_owned()));
        }
    }

    /// Appendix F.1, step by step, for one value.
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
        let all = generators::<Plain>("G", 0..HASHED + 20);
        assert!(all.iter().enumerate().all(|(i, p)| *p == one(i)));
        // 1 - 4 u^2 or 1 + 4 u^2 is 0: the exceptional case.
        let half = Fq::from(2u8).inverse().unwrap();
        let us = [half, -half, Fq::ZERO, Fq::ONE];
        assert_eq!(map_to_curve::<Plain>(&us), us.map(map_one_to_curve));
    }

    #[test]
    fn generators_are_distinct_points_of_the_curve() {
        let g = vector_generators::<Plain>(20);
        let q = query_generators::<Plain>(3);
        let mut all = [&g[..20], &q[..3], &[bases::<Plain>().h, bases::<Plain>().u]].concat();
        assert!(all.iter().all(|p| p.is_on_curve() && !p.is_zero()));
        all.sort_by_key(encode_point);
        all.dedup();
        assert_eq!(all.len(), 25);
        assert_eq!(vector_generators::<Plain>(30)[..20], g[..20]);
    }

    #[test]
    fn encodings_are_canonical() {
        let p = vector_generators::<Plain>(1)[0];
        let good = [p, -p, G1Affine::zero(), p];
        let encoded = good.map(|p| encode_point(&p)).concat();
        assert_eq!(decode_points::<Plain>(&encoded), Ok(good.to_vec()));
        assert_eq!(decode_points::<Plain>(&[]), Ok(Vec::new()));
        let refused = |bytes: &[u8], at: usize| {
            let reason = NO_POINT;
            assert_eq!(
                decode_points::<Plain>(bytes),
                Err(Error::Malformed { at, reason })
            );
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
                    assert_eq!(decode_points::<Plain>(&second(bytes)).unwrap()[1], point);
                }
            }
        }
        assert_eq!(
            decode_scalar(&Fr::MODULUS.to_bytes_be().try_into().unwrap()),
            None
        );
    }
}
