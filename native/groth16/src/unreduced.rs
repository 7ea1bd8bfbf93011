//! One subtraction of curve points on numbers that are not reduced below p.
//!
//! From domains of 2^15 points on, snarkjs's circuit hash reads one point past the end of the powers when they
//! just fit the circuit: 64 bytes of the next section, which are no field elements. Its arithmetic keeps
//! numbers below 2^256 and corrects once, so the hashed bytes follow from exactly these steps.
use ark_bn254::{Fq, G1Affine};
use ark_ff::{BigInt, BigInteger, Field, PrimeField};

use crate::field::limbs;

type Word = BigInt<4>;
const P: Word = Fq::MODULUS;

fn add(x: Word, y: Word) -> Word {
    let mut sum = x;
    let carry = sum.add_with_carry(&y);
    if carry || sum >= P {
        sum.sub_with_borrow(&P);
    }
    sum
}

fn sub(x: Word, y: Word) -> Word {
    let mut difference = x;
    if difference.sub_with_borrow(&y) {
        difference.add_with_carry(&P);
    }
    difference
}

/// Montgomery's product: (x y + m p) / 2^256, corrected once.
fn mul(x: Word, y: Word) -> Word {
    // -1/p mod 2^256 by Newton's iteration.
    let mut inverse = Word::one();
    for _ in 0..8 {
        let mut two = BigInt::from(2u64);
        two.sub_with_borrow(&P.mul_low(&inverse));
        inverse = inverse.mul_low(&two);
    }
    let mut negated = Word::from(0u64);
    negated.sub_with_borrow(&inverse);
    let (low, high) = x.mul(&y);
    let (_, m_high) = low.mul_low(&negated).mul(&P);
    let mut out = high;
    let mut carry = out.add_with_carry(&m_high);
    if low != Word::from(0u64) {
        carry |= out.add_with_carry(&Word::one());
    }
    if carry || out >= P {
        out.sub_with_borrow(&P);
    }
    out
}

/// The affine form of `raw` minus `q`, where the 64 bytes `raw` are read as a point in Montgomery form.
pub fn subtract(raw: &[u8; 64], q: &G1Affine) -> G1Affine {
    let (x1, y1) = (limbs(&raw[..32]), limbs(&raw[32..]));
    let (x2, y2) = (q.x.0, (-q.y).0);
    let h = sub(x2, x1);
    let dy = sub(y2, y1);
    let hh = mul(h, h);
    let i = add(add(hh, hh), add(hh, hh));
    let j = mul(h, i);
    let r = add(dy, dy);
    let v = mul(x1, i);
    let x3 = sub(sub(mul(r, r), j), add(v, v));
    let y1_j = mul(y1, j);
    let y3 = sub(mul(sub(v, x3), r), add(y1_j, y1_j));
    let z3 = add(h, h);
    let reduce = |x: Word| {
        // x / 2^256 mod p: the value with the Montgomery form x.
        let mut le = x.to_bytes_le();
        le.truncate(32);
        Fq::from_le_bytes_mod_order(&le) * Fq::new_unchecked(Word::one())
    };
    let inverse = reduce(z3).inverse().unwrap_or_default();
    let square = inverse.square();
    G1Affine::new_unchecked(reduce(x3) * square, reduce(y3) * square * inverse)
}
