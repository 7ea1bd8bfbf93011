//! Bernoulli bits, as their provers draw them: `docs/scan/bernoulli-bits.md`.
pub use ragaudit_scan_protocol::bernoulli::{Bernoulli, BernoulliStatement, LIMITS};

use crate::drawn::{Draw, Draws};
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
use crate::index::Layout;
use crate::session::Column;

impl Draw for Bernoulli {
    fn draw(&self, run: &[(u8, u32)], draws: &mut Draws) {
        for (byte, t) in run {
            push(draws, self, (*byte).into(), (*t).into());
        }
    }
}

/// Appends a draw byte + 2^8 t. Bit and byte are compared by the sign of a difference, so by the same steps whatever they
/// are.
pub(crate) fn push(draws: &mut Draws, bernoulli: &Bernoulli, byte: i64, t: i64) {
    let below = |a: i64, b: i64| ((a - b) as u64 >> 63) as i64;
    let smaller = below(byte, (bernoulli.bound % 256) as i64);
    let above = bernoulli.threshold() as i64 + smaller;
    let bit = std::hint::black_box(below(t, above));
    // With bit 1 above - 1 - t.
    let distance = ((t - above) ^ -bit) as u128;
    draws.push(&[byte, bit, smaller], t, distance);
}

/// The column of a sampling proof, from its stored parts: commitments, one byte 0 or 1 per position, and blindings.
pub fn bernoulli_column(
    rows: Vec<G1Affine>,
    bits: &[u8],
    blindings: Vec<Fr>,
    layout: Layout,
) -> Result<Column> {
    if bits.iter().fold(0, |all, b| all | b) > 1 {
        return Err(Error::invalid("coins", "bytes 0 and 1", "another byte"));
    }
    let values = bits.iter().map(|b| i64::from(*b)).collect();
    Column::opened("coins", rows, values, blindings, layout)
}

#[cfg(test)]
pub(crate) mod tests;
