//! What the prover of a coin certificate has: the draws, and the coins that they give.
use ragaudit_field_simd::noise::draws_of;
use zeroize::Zeroize;

use crate::error::Result;
use crate::prover::columns::count;
use crate::words::{push_limbs, stream_columns, upper_parts, Limbs, Upper, DRAWS_PER_WORD};
use ragaudit_scan_protocol::coins::statement::*;

/// The private columns.
#[derive(Clone, Default)]
pub(crate) struct Coins {
    pub(super) bytes: Vec<i64>,
    pub(super) coins: Vec<i64>,
    pub(super) smaller: Vec<i64>,
    /// Limbs of t, then of the distance from the threshold.
    pub(super) limbs: Limbs,
    pub(super) high: Upper,
    pub(super) of_positions: Vec<i64>,
}

impl Drop for Coins {
    fn drop(&mut self) {
        let Self {
            bytes,
            coins,
            smaller,
            limbs,
            high,
            of_positions,
        } = self;
        for column in [bytes, coins, smaller, of_positions] {
            column.zeroize();
        }
        limbs.zeroize();
        high.zeroize();
    }
}

impl Coins {
    /// From the words of the stream as integers.
    pub(super) fn new(statement: &CoinStatement, words: &[[u64; 4]]) -> Result<Self> {
        let mut coins = Self::default();
        coins.high = upper_parts(words)?;
        let Self {
            bytes,
            coins: bits,
            smaller,
            limbs,
            ..
        } = &mut coins;
        for column in [bytes, bits, smaller].into_iter().chain(limbs) {
            column.reserve_exact(words.len() * DRAWS_PER_WORD);
        }
        for word in words {
            for (byte, t) in draws_of(word) {
                coins.push(statement, byte.into(), t.into());
            }
        }
        coins.gather(statement);
        Ok(coins)
    }

    /// A draw byte + 2^8 t. Coin and byte are compared by the sign of a difference, so by the same steps whatever they are.
    pub(super) fn push(&mut self, statement: &CoinStatement, byte: i64, t: i64) {
        let below = |a: i64, b: i64| ((a - b) as u64 >> 63) as i64;
        let smaller = below(byte, (statement.bound % 256) as i64);
        let above = statement.threshold() as i64 + smaller;
        let coin = std::hint::black_box(below(t, above));
        // With coin 1 above - 1 - t.
        let distance = ((t - above) ^ -coin) as u128;
        self.bytes.push(byte);
        self.coins.push(coin);
        self.smaller.push(smaller);
        push_limbs(&mut self.limbs, t, distance);
    }

    /// The coins of the positions are those of the first draws.
    pub(super) fn gather(&mut self, statement: &CoinStatement) {
        self.of_positions = self.coins[..statement.capacity].to_vec();
    }

    pub(super) fn into_columns(mut self) -> Columns<Vec<i64>> {
        let mut table = vec![0; 1 << BYTE_VARIABLES];
        self.bytes
            .iter()
            .zip(&self.coins)
            .for_each(|(b, c)| count(&mut table, b + 256 * c));
        let Self {
            bytes,
            coins,
            smaller,
            limbs,
            high,
            of_positions,
        } = &mut self;
        let take = std::mem::take::<Vec<i64>>;
        Columns {
            coins: take(of_positions),
            byte: take(bytes),
            coin: take(coins),
            smaller: take(smaller),
            stream: stream_columns(limbs, high),
            bytes: table,
        }
    }
}
