//! What a noise certificate is about, and the sizes that follow: `docs/scan/noise.md`.
use ragaudit_relation::dgs::{alias_table, check_gains, BINS};

use crate::error::Result;
use crate::group::Fr;
use crate::index::Layout;
use crate::numbers::NO_WRAP_BITS;
use crate::ranges::{LIMB_BITS, TAG_RANGE};
use crate::transcript::{Oracle, Transcript};
use crate::words::{
    Blocks, StreamColumns, BELOW_BITS, DRAWS_PER_WORD, HIGH_LIMBS, REST_LIMBS, TAG_KEY, TAG_SEED,
    T_BITS,
};

pub const TAG_ALIAS: u64 = 2;
pub const ALIAS_VARIABLES: usize = 9;
/// What decides where values stand: see [`crate::protocol`].
pub const RULES: [u64; 10] = [
    DRAWS_PER_WORD as u64,
    TAG_SEED,
    TAG_KEY,
    LIMB_BITS as u64,
    TAG_RANGE,
    TAG_ALIAS,
    ALIAS_VARIABLES as u64,
    HIGH_LIMBS as u64,
    BELOW_BITS as u64,
    REST_LIMBS as u64,
];
const _: () = {
    // Threshold, t and distance are T_BITS long: (2 c - 1) (T - t) - c = distance holds over the integers.
    assert!(T_BITS + 2 < NO_WRAP_BITS);
};
/// What a certificate is about. Every value is rebuilt by the verifier, none read from a file.
#[derive(Clone, Debug)]
pub struct NoiseStatement {
    /// Digest of the protocol, opening, policy, noise table, tenant, account and its count.
    pub context: [u8; 32],
    pub c_seed: Fr,
    pub beacon: Fr,
    pub slot: Fr,
    pub capacity: usize,
    pub gains: Vec<u32>,
}

pub struct Shape {
    pub layout: Layout,
    pub blocks: Blocks,
}

impl NoiseStatement {
    pub fn shape(&self) -> Result<Shape> {
        let layout = Layout::new(self.capacity)?;
        check_gains(&self.gains)?;
        Ok(Shape {
            layout,
            blocks: Blocks::of_draws(self.capacity * self.gains.len()),
        })
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut transcript = Transcript::new("noise certificate");
        self.absorb(&mut transcript);
        transcript
    }

    pub fn absorb(&self, t: &mut Transcript<impl Oracle>) {
        t.bytes("context", &self.context);
        t.scalar("seed commitment", &self.c_seed);
        t.scalar("beacon", &self.beacon);
        t.scalar("slot", &self.slot);
        t.integer("capacity", self.capacity as u64);
        t.integer("gain count", self.gains.len() as u64);
        for gain in &self.gains {
            t.integer("gain", u64::from(*gain));
        }
        let table = alias_table();
        for (threshold, alias) in table.thresholds.iter().zip(&table.aliases) {
            t.integer("threshold", u64::from(*threshold));
            t.integer("alias", u64::from(*alias));
        }
    }
}

/// Row byte + 256 choice of the alias table: its threshold and the value drawn.
pub fn alias_row(byte: usize, choice: usize) -> (i64, i64) {
    let table = alias_table();
    let bin = byte % BINS;
    let magnitude = if choice == 1 {
        bin as i64
    } else {
        i64::from(table.aliases[bin])
    };
    let value = if byte >= BINS { -magnitude } else { magnitude };
    (i64::from(table.thresholds[bin]), value)
}

/// The columns, in the order in which they are committed to.
#[derive(Clone, Copy)]
pub struct Columns<T> {
    pub noise: T,
    pub byte: T,
    pub choice: T,
    pub threshold: T,
    pub value: T,
    pub stream: StreamColumns<T>,
    /// How often each row of the table is looked up.
    pub alias: T,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let first = [
            self.noise,
            self.byte,
            self.choice,
            self.threshold,
            self.value,
        ];
        let all = first.into_iter().chain(self.stream.in_order());
        all.chain([self.alias]).collect()
    }

    pub fn named(all: Vec<T>) -> Self {
        let mut all = all.into_iter();
        let next = |all: &mut std::vec::IntoIter<T>| all.next().expect("one for each name");
        Self {
            noise: next(&mut all),
            byte: next(&mut all),
            choice: next(&mut all),
            threshold: next(&mut all),
            value: next(&mut all),
            stream: StreamColumns::named(&mut all),
            alias: next(&mut all),
        }
    }
}
