//! Integers and a few constants as field elements.
use std::sync::OnceLock;

use ark_bn254::Fr;
use ark_ff::{Field, PrimeField};

/// An equation between integers of fewer bits holds over the integers if it holds modulo r. Code that relies on this has an
/// assertion at the largest values that a statement may have.
pub const NO_WRAP_BITS: usize = Fr::MODULUS_BIT_SIZE as usize - 2;

/// The least k with n <= 2^k.
pub fn log2_ceil(n: usize) -> usize {
    n.next_power_of_two().trailing_zeros() as usize
}

pub fn power_of_two(k: usize) -> Fr {
    Fr::from(2u8).pow([k as u64])
}

/// A small integer as a field element, the sign by mask.
///
/// ```
/// use ark_bn254::Fr;
/// use ragaudit_scan_protocol::numbers::{from_small, log2_ceil, power_of_two};
///
/// assert_eq!(from_small(-3) + Fr::from(3u8), from_small(0));
/// assert_eq!((log2_ceil(5), power_of_two(3)), (3, Fr::from(8u8)));
/// ```
pub fn from_small(v: i64) -> Fr {
    let magnitude = Fr::from(v.unsigned_abs());
    let mask = std::hint::black_box((v >> 63) as u64);
    let mut out = magnitude;
    for (word, negative) in out.0 .0.iter_mut().zip((-magnitude).0 .0) {
        *word ^= mask & (*word ^ negative);
    }
    out
}

pub fn pad(values: &[i64], variables: usize) -> Vec<i64> {
    let mut out = values.to_vec();
    out.resize(1 << variables, 0);
    out
}

/// 1/2, which turns a plain sum over the cube into one weighted by eq.
pub fn half() -> Fr {
    static HALF: OnceLock<Fr> = OnceLock::new();
    *HALF.get_or_init(|| Fr::from(2u8).inverse().expect("2 is not zero"))
}
