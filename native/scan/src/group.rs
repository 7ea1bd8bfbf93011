//! BN254 G1: generators with unknown relations, canonical encodings, sums of small multiples.
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, RwLock};

use ark_bn254::{g1::Config, Fq};
pub use ark_bn254::{Fr, G1Affine, G1Projective};
use ark_ec::scalar_mul::glv::GLVConfig;
use ark_ec::{AffineRepr, CurveGroup, VariableBaseMSM};
use ark_ff::{AdditiveGroup, BigInteger, Field, LegendreSymbol, PrimeField, Zero};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

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

/// None for bytes that [`encode_point`] does not make. The cofactor is 1: on the curve is in the group.
pub fn decode_point(bytes: &[u8; ENCODED]) -> Option<G1Affine> {
    let mut x_bytes = *bytes;
    x_bytes[0] &= !(SIGN | INFINITY);
    if bytes[0] & INFINITY != 0 {
        let canonical = bytes[0] == INFINITY && bytes[1..].iter().all(|&b| b == 0);
        return canonical.then(G1Affine::zero);
    }
    let mut limbs = [0u64; 4];
    for (limb, chunk) in limbs.iter_mut().rev().zip(x_bytes.chunks_exact(8)) {
        *limb = chunk.iter().fold(0, |acc, &b| acc << 8 | u64::from(b));
    }
    let x = Fq::from_bigint(ark_ff::BigInt::new(limbs))?;
    let y = (x.square() * x + Fq::from(3u8)).sqrt()?;
    let odd = bytes[0] & SIGN != 0;
    let y = if y.into_bigint().is_odd() == odd {
        y
    } else {
        -y
    };
    Some(G1Affine::new_unchecked(x, y))
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
fn map_to_curve(u: Fq) -> G1Affine {
    let map = map_constants();
    let g = |x: Fq| x.square() * x + Fq::from(3u8);
    let is_square = |x: Fq| x.legendre() != LegendreSymbol::QuadraticNonResidue;
    let t = u.square() * map.c1;
    let (minus, plus) = (Fq::ONE - t, Fq::ONE + t);
    let inverse = (minus * plus).inverse().unwrap_or(Fq::ZERO);
    let shift = u * minus * inverse * map.c3;
    let (x1, x2) = (map.c2 - shift, map.c2 + shift);
    let x = if is_square(g(x1)) {
        x1
    } else if is_square(g(x2)) {
        x2
    } else {
        (plus.square() * inverse).square() * map.c4 + Fq::ONE
    };
    let y = g(x).sqrt().expect("one of the three is on the curve");
    let same = y.into_bigint().is_odd() == u.into_bigint().is_odd();
    G1Affine::new_unchecked(x, if same { y } else { -y })
}

fn hash_to_curve(message: &[u8], domain: &[u8]) -> G1Affine {
    let bytes = expand_message(message, domain, 96);
    let [a, b] =
        [&bytes[..48], &bytes[48..]].map(|half| map_to_curve(Fq::from_be_bytes_mod_order(half)));
    (a + b).into_affine()
}

fn generator(family: &str, index: usize) -> G1Affine {
    let message = format!("{family}/{index}");
    hash_to_curve(message.as_bytes(), GENERATORS.as_bytes())
}

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
        let more: Vec<_> = (known.len()..count)
            .into_par_iter()
            .map(|i| generator(self.name, i))
            .collect();
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

/// Multiples of one point by table: 32 additions for a multiple.
pub struct FixedBase {
    pub point: G1Affine,
    /// `windows[i][j]` = (j + 1) 256^i P.
    windows: Vec<Vec<G1Affine>>,
}

impl FixedBase {
    fn new(point: G1Affine) -> Self {
        let mut windows = Vec::with_capacity(ENCODED);
        let mut base = point.into_group();
        for _ in 0..ENCODED {
            let mut row = Vec::with_capacity(256);
            let mut sum = base;
            for _ in 0..255 {
                row.push(sum);
                sum += base;
            }
            base = sum;
            windows.push(G1Projective::normalize_batch(&row));
        }
        Self { point, windows }
    }

    pub fn add_multiple(&self, sum: &mut G1Projective, x: &Fr) {
        for (window, byte) in self.windows.iter().zip(x.into_bigint().to_bytes_le()) {
            if byte != 0 {
                *sum += window[usize::from(byte) - 1];
            }
        }
    }
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
    // Outside the initialisation, which must not wait for the thread pool.
    let g = vector_generators(WIDTH);
    TABLES.get_or_init(|| Tables {
        h: FixedBase::new(generator("H", 0)),
        u: FixedBase::new(generator("U", 0)),
        g: g[..WIDTH].iter().map(|p| FixedBase::new(*p)).collect(),
    })
}

/// Largest sum that is made at once: what it takes in memory is one point a point, for each thread.
const MSM: usize = 1 << 18;

/// sum of x_i P_i, by buckets of signed digits.
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
        .map(|digits| weigh(&bucket_sums(points, digits)))
        .collect();
    join_windows(&sums, bits)
}

/// How many windows of how many bits take the fewest additions for that many points. A bucket costs two additions that
/// are not in affine form, each about two that are.
fn windows(bits: usize, points: usize) -> (usize, usize) {
    (1..=bits.max(1))
        .map(|count| (count, bits.div_ceil(count).max(1)))
        .filter(|(_, width)| *width <= 16)
        .min_by_key(|(count, width)| count * (points + (4 << (width - 1))))
        .unwrap_or((1, 1))
}

/// sum of v_i P_i for small integers, by buckets of signed digits.
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
            weigh(&bucket_sums(points, &digits))
        })
        .collect();
    join_windows(&sums, bits)
}

/// sum of v_i P_i for several lists of small integers that take few different values together: one pass over the points
/// makes the sum of each such value, and each list then weighs these sums.
pub fn small_msms(points: &[G1Affine], lists: &[&[i64]]) -> Vec<G1Projective> {
    let mut classes: HashMap<Vec<i64>, i32> = HashMap::new();
    let class = |x: usize| {
        let next = classes.len() as i32 + 1;
        *classes
            .entry(lists.iter().map(|list| list[x]).collect())
            .or_insert(next)
    };
    let digits: Vec<i32> = (0..points.len()).map(class).collect();
    let sums = bucket_sums(points, &digits);
    let of_list = |k: usize| {
        let mut values = vec![0; sums.len()];
        for (tuple, class) in &classes {
            values[*class as usize - 1] = tuple[k];
        }
        small_msm(&sums, &values)
    };
    (0..lists.len()).map(of_list).collect()
}

/// sum of 2^(bits w) sums_w.
fn join_windows(sums: &[G1Projective], bits: usize) -> G1Projective {
    sums.iter().rev().fold(G1Projective::zero(), |acc, window| {
        (0..bits).fold(acc, |x, _| x.double()) + window
    })
}

/// sum of k times the k-th point, from 1.
fn weigh(buckets: &[G1Affine]) -> G1Projective {
    let (mut running, mut sum) = (G1Projective::zero(), G1Projective::zero());
    for bucket in buckets.iter().rev() {
        running += bucket;
        sum += running;
    }
    sum
}

/// For k = 1, 2, .. up to the largest |digit|, the sum of the points with digit k minus that of those with digit -k.
/// Pairs within a bucket are added in affine form, all of a round with one inversion (Montgomery's trick).
fn bucket_sums(points: &[G1Affine], digits: &[i32]) -> Vec<G1Affine> {
    let largest = digits.iter().map(|d| d.unsigned_abs()).max().unwrap_or(0);
    let mut lengths = vec![0usize; largest as usize];
    for digit in digits.iter().filter(|d| **d != 0) {
        lengths[digit.unsigned_abs() as usize - 1] += 1;
    }
    let mut next = 0;
    let mut places: Vec<usize> = lengths
        .iter()
        .map(|l| {
            next += l;
            next - l
        })
        .collect();
    let mut list = vec![G1Affine::zero(); next];
    for (point, digit) in points.iter().zip(digits).filter(|(_, d)| **d != 0) {
        let place = &mut places[digit.unsigned_abs() as usize - 1];
        list[*place] = if *digit < 0 { -*point } else { *point };
        *place += 1;
    }
    let mut products = Vec::new();
    while lengths.iter().any(|l| *l > 1) {
        add_pairs(&mut list, &mut lengths, &mut products);
    }
    let mut sums = list.into_iter();
    lengths
        .iter()
        .map(|l| (0..*l).find_map(|_| sums.next()).unwrap_or_default())
        .collect()
}

/// Points whose multiples are made together.
const FOLD: usize = 256;
/// Bits of a digit of the multiples that [`fold_points`] makes, and how many odd multiples that needs.
const DIGIT: usize = 5;
const ODD: usize = 1 << (DIGIT - 2);

/// low_i + u high_i for all i: one public multiplier, so all points are doubled and added to in step, in affine form
/// with shared inversions. The multiplier is split along the curve's endomorphism into two of half its length.
pub fn fold_points(low: &[G1Affine], high: &[G1Affine], u: &Fr) -> Vec<G1Affine> {
    let (first, second) = Config::scalar_decomposition(*u);
    let digits = [first, second].map(|(positive, part)| {
        let digits = part.into_bigint().find_wnaf(DIGIT).unwrap_or_default();
        let sign = if positive { 1 } else { -1 };
        digits.into_iter().map(|d| d * sign).collect::<Vec<_>>()
    });
    let length = digits.iter().map(Vec::len).max().unwrap_or(0);
    let fold = |(low, high): (&[G1Affine], &[G1Affine])| {
        // high, 3 high, 5 high, ..
        let mut twice = high.to_vec();
        add_each(&mut twice, high);
        let mut odd = vec![high.to_vec()];
        for k in 1..ODD {
            let mut next = odd[k - 1].clone();
            add_each(&mut next, &twice);
            odd.push(next);
        }
        let mut sums = vec![G1Affine::zero(); high.len()];
        for bit in (0..length).rev() {
            let same = sums.clone();
            add_each(&mut sums, &same);
            for (k, digits) in digits.iter().enumerate() {
                let digit = digits.get(bit).copied().unwrap_or(0);
                if digit != 0 {
                    let multiples = &odd[digit.unsigned_abs() as usize / 2];
                    let turned = |p: &G1Affine| {
                        let p = if k == 1 {
                            Config::endomorphism_affine(p)
                        } else {
                            *p
                        };
                        if digit < 0 {
                            -p
                        } else {
                            p
                        }
                    };
                    let terms: Vec<G1Affine> = multiples.iter().map(turned).collect();
                    add_each(&mut sums, &terms);
                }
            }
        }
        add_each(&mut sums, low);
        sums
    };
    let chunks = low.par_chunks(FOLD).zip(high.par_chunks(FOLD));
    chunks.flat_map_iter(fold).collect()
}

/// p_i + q_i in the place of p_i, with one inversion for all.
fn add_each(p: &mut [G1Affine], q: &[G1Affine]) {
    // Of chord or tangent: the slope's denominator, none where the sum is one of the points or neutral.
    let denominator = |p: &G1Affine, q: &G1Affine| match () {
        () if has_chord(p, q) => Some(q.x - p.x),
        () if p == q && !p.is_zero() => Some(p.y.double()),
        () => None,
    };
    let mut product = Fq::ONE;
    let before: Vec<Fq> = p
        .iter()
        .zip(q)
        .map(|(p, q)| {
            let before = product;
            if let Some(d) = denominator(p, q) {
                product *= d;
            }
            before
        })
        .collect();
    let mut inverse = product.inverse().expect("no factor is zero");
    for ((p, q), before) in p.iter_mut().zip(q).zip(before).rev() {
        let Some(d) = denominator(p, q) else {
            *p = (*p + q).into_affine();
            continue;
        };
        let rise = if p.x == q.x {
            let square = p.x.square();
            square.double() + square
        } else {
            q.y - p.y
        };
        let slope = rise * inverse * before;
        inverse *= d;
        let x = slope.square() - p.x - q.x;
        *p = G1Affine::new_unchecked(x, slope * (p.x - x) - p.y);
    }
}

/// Whether the chord through two points is one: neither is neutral and their x differ.
fn has_chord(p: &G1Affine, q: &G1Affine) -> bool {
    !p.is_zero() && !q.is_zero() && p.x != q.x
}

/// Halves every bucket's run in `list` by adding neighbours.
fn add_pairs(list: &mut Vec<G1Affine>, lengths: &mut [usize], products: &mut Vec<Fq>) {
    // Running products of the chords' denominators, forwards.
    products.clear();
    let mut product = Fq::ONE;
    let mut start = 0;
    for length in lengths.iter() {
        for pair in list[start..start + length].chunks_exact(2) {
            products.push(product);
            if has_chord(&pair[0], &pair[1]) {
                product *= pair[1].x - pair[0].x;
            }
        }
        start += length;
    }
    let mut inverse = product.inverse().expect("no factor is zero");
    // Backwards: each denominator's inverse. Sums are left at their pair's first place.
    let mut left = products.len();
    for length in lengths.iter().rev() {
        start -= length;
        for k in (0..length / 2).rev() {
            left -= 1;
            let (p, q) = (list[start + 2 * k], list[start + 2 * k + 1]);
            list[start + 2 * k] = if has_chord(&p, &q) {
                let slope = (q.y - p.y) * inverse * products[left];
                inverse *= q.x - p.x;
                let x = slope.square() - p.x - q.x;
                G1Affine::new_unchecked(x, slope * (p.x - x) - p.y)
            } else {
                (p + q).into_affine()
            };
        }
    }
    // Sums and single points move together.
    let (mut from, mut to) = (0, 0);
    for length in lengths.iter_mut() {
        for k in (0..*length).step_by(2) {
            list[to] = list[from + k];
            to += 1;
        }
        from += *length;
        *length = length.div_ceil(2);
    }
    list.truncate(to);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::UniformRand;

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
        for (message, x, y) in cases {
            let p = hash_to_curve(message.as_bytes(), domain);
            assert_eq!((hex(p.x), hex(p.y)), (x.to_owned(), y.to_owned()));
        }
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
        let p = generator("G", 0);
        for point in [p, -p, G1Affine::zero()] {
            assert_eq!(decode_point(&encode_point(&point)), Some(point));
        }
        let mut above = Fq::MODULUS.to_bytes_be();
        assert_eq!(decode_point(&above.clone().try_into().unwrap()), None);
        above[31] -= 1; // p - 1: x = -1, 2 is not on the curve unless a square
        let x = -Fq::ONE;
        assert_eq!(
            decode_point(&above.try_into().unwrap()).is_some(),
            (x.square() * x + Fq::from(3u8)).sqrt().is_some()
        );
        let mut infinity = encode_point(&G1Affine::zero());
        infinity[31] = 1;
        assert_eq!(decode_point(&infinity), None);
        infinity[31] = 0;
        infinity[0] |= SIGN;
        assert_eq!(decode_point(&infinity), None);
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
    fn lists_that_share_values_have_their_own_sums() {
        let g = vector_generators(500);
        let lists = [1, -3, 1 << 33].map(|f| (0..500).map(|i| i % 7 * f).collect::<Vec<i64>>());
        let sums = small_msms(&g[..500], &lists.each_ref().map(Vec::as_slice));
        let each = lists.iter().map(|list| small_msm(&g[..500], list));
        assert_eq!(sums, each.collect::<Vec<_>>());
    }
}
