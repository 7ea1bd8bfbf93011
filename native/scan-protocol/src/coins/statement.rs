//! What a coin certificate is about, and the sizes that follow: `docs/scan/coins.md`.
use ragaudit_relation::COIN_BITS;

use crate::error::{Error, Result};
use crate::group::Fr;
use crate::index::{Layout, MAX_CAPACITY};
use crate::numbers::NO_WRAP_BITS;
use crate::ranges::{LIMB_BITS, TAG_RANGE};
use crate::transcript::{Oracle, Transcript};
use crate::words::{
    Blocks, StreamColumns, BELOW_BITS, DRAWS_PER_WORD, HIGH_LIMBS, REST_LIMBS, TAG_KEY, TAG_SEED,
    T_BITS,
};

pub const TAG_BYTE: u64 = 2;
/// Rows of the table of bytes: each with either coin.
pub const BYTE_VARIABLES: usize = 9;
/// What decides where values stand: see [`crate::protocol`].
pub const RULES: [u64; 10] = [
    DRAWS_PER_WORD as u64,
    TAG_SEED,
    TAG_KEY,
    LIMB_BITS as u64,
    TAG_RANGE,
    TAG_BYTE,
    BYTE_VARIABLES as u64,
    HIGH_LIMBS as u64,
    BELOW_BITS as u64,
    REST_LIMBS as u64,
];
const MAX_BOUND: u64 = (1 << COIN_BITS) - 1;
/// The largest value of every public parameter.
pub const LIMITS: [u64; 2] = [MAX_CAPACITY as u64, MAX_BOUND];
const _: () = {
    // Threshold, t and distance are T_BITS long: (2 c - 1) (T + smaller - t) - c = distance holds over the integers.
    assert!(T_BITS + 8 == COIN_BITS && T_BITS + 3 < NO_WRAP_BITS);
};

/// What a certificate is about. Every value is rebuilt by the verifier, none read from a file.
#[derive(Clone, Debug)]
pub struct CoinStatement {
    /// Digest of everything else that the coins are of: protocol, opening, policy, tenant, and account and count if any.
    pub context: [u8; 32],
    pub c_seed: Fr,
    pub beacon: Fr,
    pub slot: Fr,
    pub capacity: usize,
    /// The coin of a draw below it is 1.
    pub bound: u64,
}

pub struct Shape {
    pub layout: Layout,
    pub blocks: Blocks,
}

impl CoinStatement {
    pub fn shape(&self) -> Result<Shape> {
        let layout = Layout::new(self.capacity)?;
        if !(1..=MAX_BOUND).contains(&self.bound) {
            return Err(Error::invalid(
                "bound",
                format!("1 to {MAX_BOUND}"),
                self.bound,
            ));
        }
        Ok(Shape {
            layout,
            blocks: Blocks::of_draws(self.capacity),
        })
    }

    /// T: the bound without its low byte, as t is a draw without its own.
    pub fn threshold(&self) -> u64 {
        self.bound >> 8
    }

    /// A byte, a coin, and whether the byte is smaller than the bound's: row byte + 256 coin of the table.
    pub fn row(&self, row: i64) -> [i64; 3] {
        let byte = row % 256;
        [byte, row / 256, (byte < (self.bound % 256) as i64).into()]
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new("coin certificate");
        t.bytes("context", &self.context);
        t.scalar("seed commitment", &self.c_seed);
        t.scalar("beacon", &self.beacon);
        t.scalar("slot", &self.slot);
        t.integer("capacity", self.capacity as u64);
        t.integer("bound", self.bound);
        t
    }
}

/// The columns, in the order in which they are committed to.
#[derive(Clone, Copy)]
pub struct Columns<T> {
    /// The coins of the positions: what the certificate is for.
    pub coins: T,
    /// Of each draw the low byte, the coin, and whether the byte is smaller than the bound's.
    pub byte: T,
    pub coin: T,
    pub smaller: T,
    pub stream: StreamColumns<T>,
    /// How often each row of the table is looked up.
    pub bytes: T,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let first = [self.coins, self.byte, self.coin, self.smaller];
        let all = first.into_iter().chain(self.stream.in_order());
        all.chain([self.bytes]).collect()
    }

    pub fn named(all: Vec<T>) -> Self {
        let mut all = all.into_iter();
        let next = |all: &mut std::vec::IntoIter<T>| all.next().expect("one for each name");
        Self {
            coins: next(&mut all),
            byte: next(&mut all),
            coin: next(&mut all),
            smaller: next(&mut all),
            stream: StreamColumns::named(&mut all),
            bytes: next(&mut all),
        }
    }
}
