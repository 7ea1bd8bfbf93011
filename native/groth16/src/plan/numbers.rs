//! circom's operators on the integers 0 to r - 1 that represent field elements.
use std::cmp::Ordering;

use ark_bn254::Fr;
use ark_ff::{BigInt, BigInteger, PrimeField};

pub type Number = BigInt<4>;

/// Bits of the largest field element. Results of the bitwise operators are truncated to them and reduced once.
pub const BITS: u32 = 254;

pub const ZERO: Number = BigInt([0; 4]);
pub const ONE: Number = BigInt([1, 0, 0, 0]);

pub fn word(value: u64) -> Number {
    BigInt([value, 0, 0, 0])
}

/// The result of a bitwise operator: the lowest 254 of 256 bits, minus r if they are at least r.
fn adjusted(mut x: Number) -> Number {
    x.0[3] &= u64::MAX >> 2;
    if x >= Fr::MODULUS {
        x.sub_with_borrow(&Fr::MODULUS);
    }
    x
}

pub fn and(x: Number, y: Number) -> Number {
    adjusted(BigInt(std::array::from_fn(|i| x.0[i] & y.0[i])))
}

pub fn or(x: Number, y: Number) -> Number {
    adjusted(BigInt(std::array::from_fn(|i| x.0[i] | y.0[i])))
}

pub fn xor(x: Number, y: Number) -> Number {
    adjusted(BigInt(std::array::from_fn(|i| x.0[i] ^ y.0[i])))
}

pub fn not(x: Number) -> Number {
    adjusted(BigInt(x.0.map(|limb| !limb)))
}

pub fn shl(x: Number, by: u32) -> Number {
    adjusted(x << by)
}

pub fn shr(x: Number, by: u32) -> Number {
    x >> by
}

/// `count` binary digits of x from place `from` on; count is 1 to 64, and both together are at most 256.
#[inline(always)]
pub fn digits(x: &Number, from: u32, count: u32) -> u64 {
    let (limb, shift) = ((from / 64) as usize & 3, from % 64);
    let above = if limb < 3 { x.0[limb + 1] } else { 0 };
    let both = u128::from(x.0[limb]) | u128::from(above) << 64;
    (both >> shift) as u64 & (u64::MAX >> (64 - count))
}

/// circom's order of numbers: numbers above (r - 1) / 2 are negative.
pub fn compare(x: &Number, y: &Number) -> Ordering {
    let negative = |v: &Number| *v > Fr::MODULUS_MINUS_ONE_DIV_TWO;
    negative(y).cmp(&negative(x)).then(x.cmp(y))
}

/// Quotient and remainder of natural numbers; both are zero for a division by zero.
pub fn divide(x: &Number, y: &Number) -> (Number, Number) {
    if y.0[1..] == [0; 3] {
        let divisor = u128::from(y.0[0]);
        if divisor == 0 {
            return (ZERO, ZERO);
        }
        let (mut quotient, mut rest) = (ZERO, 0u128);
        for i in (0..4).rev() {
            let part = rest << 64 | u128::from(x.0[i]);
            quotient.0[i] = (part / divisor) as u64;
            rest = part % divisor;
        }
        return (quotient, word(rest as u64));
    }
    let (mut quotient, mut rest) = (ZERO, ZERO);
    for i in (0..256).rev() {
        rest <<= 1; // below 2 r, which 256 bits hold
        rest.0[0] |= digits(x, i, 1);
        if rest >= *y {
            rest.sub_with_borrow(y);
            quotient.0[i as usize / 64] |= 1 << (i % 64);
        }
    }
    (quotient, rest)
}
