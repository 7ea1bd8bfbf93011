//! Two elements of Fq at a time, in the lanes of 128-bit vectors: nine limbs of 29 bits, Montgomery's form with R = 2^261.
//!
//! Products of limbs have 58 bits, so 64 bits suffice for a column of eighteen products and a carry. Elements are below 2p
//! between operations, and limbs below 2^29.
use std::arch::wasm32::*;

use ark_bn254::Fq;
use ark_ff::{BigInt, PrimeField};

pub const LIMBS: usize = 9;
const BITS: u32 = 29;
const MASK: u64 = (1 << BITS) - 1;

/// Limbs of one element.
pub type Limbs = [u32; LIMBS];

const fn split(x: [u64; 4]) -> Limbs {
    let mut out = [0; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        let bit = i * BITS as usize;
        let (word, shift) = (bit / 64, bit % 64);
        let mut limb = x[word] >> shift;
        if shift + BITS as usize > 64 && word < 3 {
            limb |= x[word + 1] << (64 - shift);
        }
        out[i] = (limb & MASK) as u32;
        i += 1;
    }
    out
}

fn join(limbs: &Limbs) -> BigInt<4> {
    let mut words = [0u64; 4];
    for (i, limb) in limbs.iter().enumerate() {
        let bit = i * BITS as usize;
        let (word, shift) = (bit / 64, bit % 64);
        words[word] |= u64::from(*limb) << shift;
        if shift + BITS as usize > 64 && word < 3 {
            words[word + 1] |= u64::from(*limb) >> (64 - shift);
        }
    }
    BigInt::new(words)
}

const P: Limbs = split(Fq::MODULUS.0);

/// -1/p modulo 2^29.
const INVERSE: u32 = {
    let (p, mut x, mut i) = (P[0], 1u32, 0);
    while i < 5 {
        x = x.wrapping_mul(2u32.wrapping_sub(p.wrapping_mul(x)));
        i += 1;
    }
    x.wrapping_neg() & MASK as u32
};

/// Two elements: limb i of both in the first two lanes of vector i.
#[derive(Clone, Copy)]
pub struct Pair([v128; LIMBS]);

fn narrow(x: v128) -> v128 {
    u32x4_shuffle::<0, 2, 0, 2>(x, x)
}

/// Propagates carries through limbs of up to 64 bits. The last limb has no carry.
fn carried(limbs: &mut [v128; LIMBS]) -> Pair {
    let mask = u64x2_splat(MASK);
    let mut carry = u64x2_splat(0);
    for limb in limbs.iter_mut() {
        let sum = i64x2_add(*limb, carry);
        // An arithmetic shift, because an intermediate limb of a difference may be negative.
        carry = i64x2_shr(sum, BITS);
        *limb = narrow(v128_and(sum, mask));
    }
    Pair(*limbs)
}

impl Pair {
    pub fn load(a: &Limbs, b: &Limbs) -> Self {
        Self(std::array::from_fn(|i| u32x4(a[i], b[i], 0, 0)))
    }

    pub fn store(&self) -> [Limbs; 2] {
        [
            self.0.map(|limb| u32x4_extract_lane::<0>(limb)),
            self.0.map(|limb| u32x4_extract_lane::<1>(limb)),
        ]
    }

    pub fn mul(&self, other: &Self) -> Self {
        let mut t = [u64x2_splat(0); 2 * LIMBS];
        for i in 0..LIMBS {
            for j in 0..LIMBS {
                let product = u64x2_extmul_low_u32x4(self.0[i], other.0[j]);
                t[i + j] = i64x2_add(t[i + j], product);
            }
        }
        reduced(&mut t)
    }

    pub fn square(&self) -> Self {
        let mut t = [u64x2_splat(0); 2 * LIMBS];
        for i in 0..LIMBS {
            let square = u64x2_extmul_low_u32x4(self.0[i], self.0[i]);
            t[2 * i] = i64x2_add(t[2 * i], square);
            let twice = i32x4_shl(self.0[i], 1);
            for j in i + 1..LIMBS {
                let product = u64x2_extmul_low_u32x4(twice, self.0[j]);
                t[i + j] = i64x2_add(t[i + j], product);
            }
        }
        reduced(&mut t)
    }
}

/// t / R modulo p; below 2p if t is below 16 p^2.
fn reduced(t: &mut [v128; 2 * LIMBS]) -> Pair {
    let mask = u32x4_splat(MASK as u32);
    for i in 0..LIMBS {
        let factor = v128_and(i32x4_mul(narrow(t[i]), u32x4_splat(INVERSE)), mask);
        for j in 0..LIMBS {
            let product = u64x2_extmul_low_u32x4(factor, u32x4_splat(P[j]));
            t[i + j] = i64x2_add(t[i + j], product);
        }
        t[i + 1] = i64x2_add(t[i + 1], u64x2_shr(t[i], BITS));
    }
    let mut top = std::array::from_fn(|i| t[LIMBS + i]);
    carried(&mut top)
}

/// Converts an element to the Montgomery form of this module.
pub fn encode(x: &Fq) -> Limbs {
    // x 2^261 modulo p is the Montgomery form of x 2^5 in arkworks, x 2^5 2^256.
    let shifted = *x * Fq::from(32u8);
    split(shifted.0 .0)
}

/// Converts a value below 2p back to an element.
pub fn decode(limbs: &Limbs) -> Fq {
    let mut plain = join(limbs);
    if plain >= Fq::MODULUS {
        use ark_ff::BigInteger;
        plain.sub_with_borrow(&Fq::MODULUS);
    }
    thirty_second() * Fq::new_unchecked(plain)
}

fn thirty_second() -> Fq {
    use ark_ff::Field;
    static INVERSE: std::sync::OnceLock<Fq> = std::sync::OnceLock::new();
    *INVERSE.get_or_init(|| Fq::from(32u8).inverse().expect("32 is not zero"))
}

/// x^((p + 1) / 4) of both, by windows of four bits.
pub fn quarter_powers(x: &Pair) -> Pair {
    let exponent = quarter();
    let mut table = [Pair::load(&encode(&Fq::from(1u8)), &encode(&Fq::from(1u8))); 16];
    for i in 1..16 {
        table[i] = table[i - 1].mul(x);
    }
    let digit = |w: usize| (exponent.0[w / 16] >> (4 * (w % 16)) & 15) as usize;
    let mut result = table[digit(63)];
    for w in (0..63).rev() {
        for _ in 0..4 {
            result = result.square();
        }
        if digit(w) != 0 {
            result = result.mul(&table[digit(w)]);
        }
    }
    result
}

fn quarter() -> BigInt<4> {
    use ark_ff::BigInteger;
    let mut exponent = Fq::MODULUS;
    exponent >>= 2;
    exponent.add_with_carry(&BigInt::from(1u64));
    exponent
}
