//! The hashes of the ceremony formats: BLAKE2b-512 (RFC 7693) with its midstate exposed, because contribution
//! records store one, and the map from a digest to a point of G2 through ChaCha20 blocks.
use ark_bn254::{g1, g2, Fq2, Fr, G1Affine, G2Affine};
use ark_ec::short_weierstrass::Affine;
use ark_ec::AffineRepr;
use ark_ff::{BigInt, Field, Fp, MontBackend, MontConfig, PrimeField};
use sha2::{Digest as _, Sha256};

use crate::binfile::Cursor;
use crate::error::{Error, Result};
use crate::field::{g1_be, g2_be, le64, Coordinate, Group};
use crate::secret::Secret;

const IV: [u64; 8] = [
    0x6a09e667f3bcc908,
    0xbb67ae8584caa73b,
    0x3c6ef372fe94f82b,
    0xa54ff53a5f1d36f1,
    0x510e527fade682d1,
    0x9b05688c2b3e6c1f,
    0x1f83d9abfb41bd6b,
    0x5be0cd19137e2179,
];

const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

pub type Digest = [u8; 64];

/// BLAKE2b with a 64-byte digest and no key.
#[derive(Clone)]
pub struct Blake2b {
    state: [u64; 8],
    /// Bytes compressed so far.
    length: u64,
    block: [u8; 128],
    filled: usize,
}

impl Default for Blake2b {
    fn default() -> Self {
        let mut state = IV;
        state[0] ^= 0x0101_0000 ^ 64;
        Self {
            state,
            length: 0,
            block: [0; 128],
            filled: 0,
        }
    }
}

impl Blake2b {
    pub fn update(&mut self, mut data: &[u8]) -> &mut Self {
        while !data.is_empty() {
            // The last block is compressed only at the end, so a full block waits for more data.
            if self.filled == 128 {
                self.length += 128;
                compress(&mut self.state, &self.block, self.length, false);
                self.filled = 0;
            }
            let n = data.len().min(128 - self.filled);
            self.block[self.filled..self.filled + n].copy_from_slice(&data[..n]);
            self.filled += n;
            data = &data[n..];
        }
        self
    }

    pub fn digest(&self) -> Digest {
        let mut last = self.clone();
        last.block[last.filled..].fill(0);
        compress(
            &mut last.state,
            &last.block,
            last.length + last.filled as u64,
            true,
        );
        let mut out = [0u8; 64];
        for (bytes, word) in out.chunks_exact_mut(8).zip(last.state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// The 216 bytes of a `.ptau` contribution: block, chaining value, bytes compressed, bytes in the block.
    pub fn midstate(&self) -> [u8; 216] {
        let mut out = [0u8; 216];
        out[..128].copy_from_slice(&self.block);
        for (bytes, word) in out[128..192].chunks_exact_mut(8).zip(self.state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        out[192..200].copy_from_slice(&self.length.to_le_bytes());
        out[200..208].copy_from_slice(&(self.filled as u64).to_le_bytes());
        out
    }

    /// The hasher that `midstate` describes; `None` if more bytes are pending than a block has.
    pub fn from_midstate(raw: &[u8; 216]) -> Option<Self> {
        let mut state = [0u64; 8];
        for (word, bytes) in state.iter_mut().zip(raw[128..192].chunks_exact(8)) {
            *word = le64(bytes);
        }
        let filled = le64(&raw[200..208]);
        (filled <= 128).then(|| Self {
            state,
            length: le64(&raw[192..200]),
            block: raw[..128].try_into().expect("128 bytes"),
            filled: filled as usize,
        })
    }
}

pub fn blake2b(parts: &[&[u8]]) -> Digest {
    let mut hasher = Blake2b::default();
    for part in parts {
        hasher.update(part);
    }
    hasher.digest()
}

fn compress(h: &mut [u64; 8], block: &[u8; 128], length: u64, last: bool) {
    let mut m = [0u64; 16];
    for (word, bytes) in m.iter_mut().zip(block.chunks_exact(8)) {
        *word = le64(bytes);
    }
    let mut v = [0u64; 16];
    v[..8].copy_from_slice(h);
    v[8..].copy_from_slice(&IV);
    v[12] ^= length;
    if last {
        v[14] = !v[14];
    }
    let mut mix = |a: usize, b: usize, c: usize, d: usize, x: u64, y: u64| {
        v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
        v[d] = (v[d] ^ v[a]).rotate_right(32);
        v[c] = v[c].wrapping_add(v[d]);
        v[b] = (v[b] ^ v[c]).rotate_right(24);
        v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
        v[d] = (v[d] ^ v[a]).rotate_right(16);
        v[c] = v[c].wrapping_add(v[d]);
        v[b] = (v[b] ^ v[c]).rotate_right(63);
    };
    for round in 0..12 {
        let s = &SIGMA[round % 10];
        mix(0, 4, 8, 12, m[s[0]], m[s[1]]);
        mix(1, 5, 9, 13, m[s[2]], m[s[3]]);
        mix(2, 6, 10, 14, m[s[4]], m[s[5]]);
        mix(3, 7, 11, 15, m[s[6]], m[s[7]]);
        mix(0, 5, 10, 15, m[s[8]], m[s[9]]);
        mix(1, 6, 11, 12, m[s[10]], m[s[11]]);
        mix(2, 7, 8, 13, m[s[12]], m[s[13]]);
        mix(3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for i in 0..8 {
        h[i] ^= v[i] ^ v[i + 8];
    }
}

/// The ChaCha20 block function (RFC 8439) as a stream of words, with a 64-bit counter from zero.
struct ChaCha {
    state: [u32; 16],
    block: [u32; 16],
    next: usize,
}

impl ChaCha {
    /// A stream with the first 32 bytes of a digest as its key, read as big-endian words.
    fn new(digest: &[u8]) -> Self {
        let mut state = [0u32; 16];
        state[..4].copy_from_slice(&[0x61707865, 0x3320646e, 0x79622d32, 0x6b206574]);
        for (word, bytes) in state[4..12].iter_mut().zip(digest.chunks_exact(4)) {
            *word = u32::from_be_bytes(bytes.try_into().expect("4 bytes"));
        }
        Self {
            state,
            block: [0; 16],
            next: 16,
        }
    }

    fn word(&mut self) -> u32 {
        if self.next == 16 {
            let mut x = self.state;
            let mut quarter = |a: usize, b: usize, c: usize, d: usize| {
                x[a] = x[a].wrapping_add(x[b]);
                x[d] = (x[d] ^ x[a]).rotate_left(16);
                x[c] = x[c].wrapping_add(x[d]);
                x[b] = (x[b] ^ x[c]).rotate_left(12);
                x[a] = x[a].wrapping_add(x[b]);
                x[d] = (x[d] ^ x[a]).rotate_left(8);
                x[c] = x[c].wrapping_add(x[d]);
                x[b] = (x[b] ^ x[c]).rotate_left(7);
            };
            for _ in 0..10 {
                quarter(0, 4, 8, 12);
                quarter(1, 5, 9, 13);
                quarter(2, 6, 10, 14);
                quarter(3, 7, 11, 15);
                quarter(0, 5, 10, 15);
                quarter(1, 6, 11, 12);
                quarter(2, 7, 8, 13);
                quarter(3, 4, 9, 14);
            }
            for (out, (mixed, word)) in self.block.iter_mut().zip(x.iter().zip(self.state)) {
                *out = mixed.wrapping_add(word);
            }
            let (low, carry) = self.state[12].overflowing_add(1);
            self.state[12] = low;
            self.state[13] = self.state[13].wrapping_add(u32::from(carry));
            self.next = 0;
        }
        self.next += 1;
        self.block[self.next - 1]
    }

    /// A uniform element. The drawn integer is its Montgomery form, as in snarkjs.
    fn element<C: MontConfig<4>>(&mut self) -> Fp<MontBackend<C, 4>, 4> {
        loop {
            let mut limbs = [0u64; 4];
            for limb in &mut limbs {
                let high = u64::from(self.word());
                *limb = high << 32 | u64::from(self.word());
            }
            // Both of BN254's primes have 254 bits.
            limbs[3] &= u64::MAX >> 2;
            let x = BigInt(limbs);
            if x < C::MODULUS {
                return Fp::new_unchecked(x);
            }
        }
    }

    /// A point of the curve, not necessarily of the subgroup, with x from `coordinate`.
    fn point<P: Group>(&mut self, coordinate: impl Fn(&mut Self) -> P::BaseField) -> Affine<P> {
        loop {
            let x = coordinate(self);
            let negative = self.word() & 1 == 1;
            if let Some(y) = P::add_b(x.square() * x).sqrt() {
                let y = if y.is_negative() == negative { y } else { -y };
                return Affine::new_unchecked(x, y);
            }
        }
    }
}

/// The point of G2's subgroup for a digest.
pub fn hash_to_g2(digest: &Digest) -> G2Affine {
    ChaCha::new(digest)
        .point::<g2::Config>(|stream| {
            let c0 = stream.element();
            Fq2::new(c0, stream.element())
        })
        .mul_by_cofactor()
}

/// A uniform non-zero scalar below the group order, from the operating system. Secrets of a ceremony come from
/// `Secret::draw`.
pub fn random_scalar() -> Result<Fr> {
    loop {
        let mut limbs = [0u64; 4];
        for limb in &mut limbs {
            *limb = random_word()?;
        }
        limbs[3] &= u64::MAX >> 2;
        match Fr::from_bigint(BigInt(limbs)) {
            Some(x) if x != Fr::from(0u64) => return Ok(x),
            _ => continue,
        }
    }
}

pub fn random_word() -> Result<u64> {
    getrandom::u64().map_err(|e| Error::Randomness(e.to_string()))
}

/// Independent uniform weights below 2^(8 `bytes`) for a random linear combination.
pub fn random_weights(count: usize, bytes: usize) -> Result<Vec<BigInt<4>>> {
    let mut raw = vec![0u8; count * bytes];
    getrandom::fill(&mut raw).map_err(|e| Error::Randomness(e.to_string()))?;
    let weight = |raw: &[u8]| {
        let mut limbs = [0u64; 4];
        for (limb, part) in limbs.iter_mut().zip(raw.chunks(8)) {
            *limb = le64(part);
        }
        BigInt(limbs)
    };
    Ok(raw.chunks_exact(bytes).map(weight).collect())
}

/// Proof of knowledge of a contributed secret x: (s, x s) in G1 and x Q in G2, where Q is hashed from them.
#[derive(PartialEq)]
pub struct KeyProof {
    pub g1_s: G1Affine,
    pub g1_sx: G1Affine,
    pub g2_spx: G2Affine,
}

impl KeyProof {
    /// `digest` computes from (s, x s) the digest that is hashed to Q.
    pub fn new(secret: &Secret, digest: impl Fn(&[u8; 64], &[u8; 64]) -> Digest) -> Result<Self> {
        let g1_s = Secret::draw()?.times(G1Affine::generator());
        Ok(Self::from_point(g1_s, secret, digest))
    }

    pub fn from_point(
        g1_s: G1Affine,
        secret: &Secret,
        digest: impl Fn(&[u8; 64], &[u8; 64]) -> Digest,
    ) -> Self {
        let g1_sx = secret.times(g1_s);
        let q = hash_to_g2(&digest(&g1_be(&g1_s), &g1_be(&g1_sx)));
        Self {
            g1_s,
            g1_sx,
            g2_spx: secret.times(q),
        }
    }
}

/// A public random value in place of a contributor: its secrets follow from 2^`exponent` SHA-256 of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beacon {
    pub value: Vec<u8>,
    pub exponent: u8,
}

/// snarkjs requires at least 2^10 hashes; 2^27 hashes take a minute.
pub const BEACON_EXPONENTS: std::ops::RangeInclusive<u8> = 10..=27;

impl Beacon {
    /// `N` secrets, then the points of their proofs of knowledge.
    pub fn draw<const N: usize>(&self) -> ([Fr; N], [G1Affine; N]) {
        let mut digest = self.value.clone();
        for _ in 0..1u64 << self.exponent {
            digest = Sha256::digest(&digest).to_vec();
        }
        let mut stream = ChaCha::new(&digest);
        let secrets = std::array::from_fn(|_| stream.element());
        let points = std::array::from_fn(|_| stream.point::<g1::Config>(ChaCha::element));
        (secrets, points)
    }
}

/// The parameters that a contribution states: the name of its contributor, and a beacon if it used one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    pub name: String,
    pub beacon: Option<Beacon>,
}

impl Parameters {
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            beacon: None,
        }
    }

    /// The end of a contribution's record: its type, the length of the parameters, and the parameters, ascending:
    /// 1 name, 2 exponent, 3 beacon.
    pub fn read(cursor: &mut Cursor) -> Result<Self> {
        let kind = cursor.u32()?;
        let length = cursor.u32()? as usize;
        let mut inner = cursor.part(length)?;
        let (mut name, mut exponent, mut value) = (None, None, None);
        let mut last = 0;
        while inner.remaining() > 0 {
            let id = inner.take(1)?[0];
            if id <= last || id > 3 {
                return inner.fail(format!(
                    "a contribution has parameter {id} after parameter {last}"
                ));
            }
            last = id;
            let byte = inner.take(1)?[0];
            match id {
                1 => {
                    name = Some(String::from_utf8_lossy(inner.take(byte.into())?).into_owned());
                }
                2 => exponent = Some(byte),
                _ => value = Some(inner.take(byte.into())?.to_vec()),
            }
        }
        let beacon = match (kind, exponent, value) {
            (0, None, None) => None,
            (1, Some(exponent), Some(value)) if BEACON_EXPONENTS.contains(&exponent) => {
                Some(Beacon { value, exponent })
            }
            _ => {
                return inner.fail(format!(
                    "a contribution of type {kind} lacks its parameters, or has others"
                ))
            }
        };
        Ok(Self {
            name: name.unwrap_or_default(),
            beacon,
        })
    }

    /// The bytes that `read` reads. The name is cut to 64 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut end = self.name.len().min(64);
        while !self.name.is_char_boundary(end) {
            end -= 1;
        }
        let mut out = vec![1, end as u8];
        out.extend(&self.name.as_bytes()[..end]);
        if let Some(beacon) = &self.beacon {
            out.extend([2, beacon.exponent, 3, beacon.value.len() as u8]);
            out.extend(&beacon.value);
        }
        let mut head = u32::from(self.beacon.is_some()).to_le_bytes().to_vec();
        head.extend((out.len() as u32).to_le_bytes());
        head.extend(out);
        head
    }
}

/// Add a phase-2 contribution to a hash.
pub fn hash_contribution(
    hasher: &mut Blake2b,
    delta_after: &G1Affine,
    key: &KeyProof,
    transcript: &Digest,
) {
    hasher
        .update(&g1_be(delta_after))
        .update(&g1_be(&key.g1_s))
        .update(&g1_be(&key.g1_sx))
        .update(&g2_be(&key.g2_spx))
        .update(transcript);
}
