//! Noise, as its provers draw it: `docs/scan/noise.md`.
use ragaudit_field_simd::noise::{table_rows, BINS};
pub use ragaudit_scan_protocol::noise::{alias_row, Noise, NoiseStatement};
use zeroize::Zeroizing;

use crate::batch_size::row_variables;
use crate::drawn::{Draw, Draws};
use crate::error::Result;
use crate::group::{decode_points, Fr};
use crate::index::Layout;
use crate::session::Column;
pub use crate::words::{noise_key, Seed};

impl Draw for Noise {
    fn draw(&self, run: &[(u8, u32)], draws: &mut Draws) {
        let heads: Zeroizing<Vec<u8>> = Zeroizing::new(run.iter().map(|d| d.0).collect());
        let rows = Zeroizing::new(table_rows(&heads));
        for ((byte, t), row) in run.iter().zip(rows.iter()) {
            // 1 where t is below the threshold: the difference's sign.
            let t = i64::from(*t);
            let choice = (t - i64::from(row[0])) as u64 >> 63;
            push(draws, *byte, choice as i64, t, *row);
        }
    }
}

/// Appends a draw, with threshold and alias of its bin. Choice and sign are masks.
pub(crate) fn push(draws: &mut Draws, byte: u8, choice: i64, t: i64, [threshold, alias]: [u32; 2]) {
    // The compiler must not know more about these integers, so that it generates no branches on them.
    let (choice, byte) = std::hint::black_box((choice, byte));
    let (threshold, alias, bin) = (threshold.into(), i64::from(alias), byte % BINS as u8);
    let magnitude = alias ^ (-choice & (alias ^ i64::from(bin)));
    let sign = -i64::from(byte / BINS as u8);
    let value = (magnitude ^ sign) - sign;
    // With choice 1 threshold - 1 - t.
    let distance = ((t - threshold) ^ -choice) as u128;
    draws.push(&[i64::from(byte), choice, threshold, value], t, distance);
}

/// The column z of a slot in a noise proof of `slots` slots, from its stored parts: encoded commitments, values and blindings.
pub fn noise_column(
    rows: &[u8],
    values: Vec<i64>,
    blindings: Vec<Fr>,
    layout: Layout,
    slots: usize,
) -> Result<Column> {
    let row_variables = row_variables(layout, slots);
    let layout = Layout {
        row_variables,
        ..layout
    };
    Column::opened("noise", decode_points(rows)?, values, blindings, layout)
}

#[cfg(test)]
pub(crate) mod tests;
