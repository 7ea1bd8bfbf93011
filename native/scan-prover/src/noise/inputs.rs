//! What the prover of a noise certificate has: the seed, and the draws that it gives.
use ragaudit_field_simd::noise::{draws_of, table_rows, BINS};
use zeroize::{Zeroize, Zeroizing};

use crate::error::Result;
use crate::prover::columns::count;
use crate::words::{
    push_limbs, stream_columns, upper_parts, Limbs, Upper, DRAWS_PER_WORD, WORDS_PER_BLOCK,
};
use ragaudit_scan_protocol::noise::statement::*;

/// The private columns.
#[derive(Clone, Default)]
pub(crate) struct Draws {
    pub(super) bytes: Vec<i64>,
    pub(super) choices: Vec<i64>,
    pub(super) thresholds: Vec<i64>,
    pub(super) values: Vec<i64>,
    /// Limbs of t, then of the distance from the threshold.
    pub(super) limbs: Limbs,
    pub(super) high: Upper,
    pub(super) noise: Vec<i64>,
}

impl Drop for Draws {
    fn drop(&mut self) {
        let Self {
            bytes,
            choices,
            thresholds,
            values,
            limbs,
            high,
            noise,
        } = self;
        for column in [bytes, choices, thresholds, values, noise] {
            column.zeroize();
        }
        limbs.zeroize();
        high.zeroize();
    }
}

impl Draws {
    /// From the words of the stream as integers.
    pub(super) fn new(statement: &NoiseStatement, words: &[[u64; 4]]) -> Result<Self> {
        let mut draws = Self::default();
        let Self {
            bytes,
            choices,
            thresholds,
            values,
            limbs,
            ..
        } = &mut draws;
        for column in [bytes, choices, thresholds, values]
            .into_iter()
            .chain(limbs)
        {
            column.reserve_exact(words.len() * DRAWS_PER_WORD);
        }
        for run in words.chunks(WORDS_PER_BLOCK) {
            let drawn: Zeroizing<Vec<(u8, u32)>> =
                Zeroizing::new(run.iter().flat_map(draws_of).collect());
            let heads: Zeroizing<Vec<u8>> = Zeroizing::new(drawn.iter().map(|d| d.0).collect());
            let rows = Zeroizing::new(table_rows(&heads));
            for ((byte, t), row) in drawn.iter().zip(rows.iter()) {
                // 1 where t is below the threshold: the difference's sign.
                let t = i64::from(*t);
                let choice = (t - i64::from(row[0])) as u64 >> 63;
                draws.push(*byte, choice as i64, t, *row);
            }
        }
        draws.high = upper_parts(words)?;
        draws.combine(statement);
        Ok(draws)
    }

    /// A draw, with threshold and alias of its bin. Choice and sign are masks.
    pub(super) fn push(&mut self, byte: u8, choice: i64, t: i64, [threshold, alias]: [u32; 2]) {
        // Of which the compiler knows no more than that they are integers, so that it makes no branches of them.
        let (choice, byte) = std::hint::black_box((choice, byte));
        let (threshold, alias, bin) = (threshold.into(), i64::from(alias), byte % BINS as u8);
        let magnitude = alias ^ (-choice & (alias ^ i64::from(bin)));
        let sign = -i64::from(byte / BINS as u8);
        let value = (magnitude ^ sign) - sign;
        // With choice 1 threshold - 1 - t.
        let distance = ((t - threshold) ^ -choice) as u128;
        self.bytes.push(i64::from(byte));
        self.choices.push(choice);
        self.thresholds.push(threshold);
        self.values.push(value);
        push_limbs(&mut self.limbs, t, distance);
    }

    pub(super) fn combine(&mut self, statement: &NoiseStatement) {
        let m = statement.gains.len();
        let sum = |run: &[i64]| {
            run.iter()
                .zip(&statement.gains)
                .map(|(x, g)| x * i64::from(*g))
                .sum()
        };
        self.noise = self
            .values
            .chunks(m)
            .take(statement.capacity)
            .map(sum)
            .collect();
    }

    pub(super) fn into_columns(mut self) -> Columns<Vec<i64>> {
        let mut alias = vec![0; 1 << ALIAS_VARIABLES];
        self.bytes
            .iter()
            .zip(&self.choices)
            .for_each(|(b, c)| count(&mut alias, b + 256 * c));
        let Self {
            noise,
            bytes,
            choices,
            thresholds,
            values,
            limbs,
            high,
        } = &mut self;
        let take = std::mem::take::<Vec<i64>>;
        Columns {
            noise: take(noise),
            byte: take(bytes),
            choice: take(choices),
            threshold: take(thresholds),
            value: take(values),
            stream: stream_columns(limbs, high),
            alias,
        }
    }
}
