//! What a noise certificate is about, and the sizes that follow: `docs/scan/noise.md`.
use ragaudit_relation::dgs::{alias_table, check_gains, BINS};

use crate::error::Result;
use crate::group::Fr;
use crate::index::Layout;
use crate::numbers::NO_WRAP_BITS;
use crate::ranges::{LIMB_BITS, TAG_RANGE};
use crate::together::{check_together, row_variables};
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

/// What a certificate of several slots of one tenant is about: `docs/scan/together.md`.
#[derive(Clone, Debug)]
pub struct SlotsStatement {
    /// As in [`NoiseStatement`].
    pub context: [u8; 32],
    /// c_seed, beacon and slot of each.
    pub slots: Vec<[Fr; 3]>,
    pub capacity: usize,
    pub gains: Vec<u32>,
}

impl SlotsStatement {
    pub fn shape(&self) -> Result<Shape> {
        let shape = shape(self.capacity, &self.gains)?;
        check_together(self.slots.len(), self.capacity, self.gains.len())?;
        Ok(shape)
    }

    /// Each slot by itself.
    pub fn each(&self) -> impl Iterator<Item = NoiseStatement> + '_ {
        self.slots
            .iter()
            .map(|[c_seed, beacon, slot]| NoiseStatement {
                context: self.context,
                c_seed: *c_seed,
                beacon: *beacon,
                slot: *slot,
                capacity: self.capacity,
                gains: self.gains.clone(),
            })
    }

    /// Of the rows that all columns are committed to in.
    pub fn row_variables(&self) -> Result<usize> {
        Ok(row_variables(self.shape()?.layout, self.slots.len()))
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new("noise certificates");
        t.bytes("context", &self.context);
        t.integer("slot count", self.slots.len() as u64);
        for [c_seed, beacon, slot] in &self.slots {
            t.scalar("seed commitment", c_seed);
            t.scalar("beacon", beacon);
            t.scalar("slot", slot);
        }
        absorb_draws(&mut t, self.capacity, &self.gains);
        t
    }
}

pub struct Shape {
    pub layout: Layout,
    pub blocks: Blocks,
}

impl NoiseStatement {
    pub fn shape(&self) -> Result<Shape> {
        shape(self.capacity, &self.gains)
    }

    /// The same slot, as if it were one of several.
    pub fn slots(&self) -> SlotsStatement {
        SlotsStatement {
            context: self.context,
            slots: vec![[self.c_seed, self.beacon, self.slot]],
            capacity: self.capacity,
            gains: self.gains.clone(),
        }
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
        absorb_draws(t, self.capacity, &self.gains);
    }
}

fn shape(capacity: usize, gains: &[u32]) -> Result<Shape> {
    let layout = Layout::new(capacity)?;
    check_gains(gains)?;
    Ok(Shape {
        layout,
        blocks: Blocks::of_draws(capacity * gains.len()),
    })
}

/// How many draws there are, what they add up to, and the table that they are drawn from.
fn absorb_draws(t: &mut Transcript<impl Oracle>, capacity: usize, gains: &[u32]) {
    t.integer("capacity", capacity as u64);
    t.integer("gain count", gains.len() as u64);
    for gain in gains {
        t.integer("gain", u64::from(*gain));
    }
    let table = alias_table();
    for (threshold, alias) in table.thresholds.iter().zip(&table.aliases) {
        t.integer("threshold", u64::from(*threshold));
        t.integer("alias", u64::from(*alias));
    }
}

/// Multiplicities of tables, which stand last: of ranges and of the alias table.
pub const TABLES: usize = 2;

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

    pub fn named(all: &mut impl Iterator<Item = T>) -> Self {
        let mut next = || all.next().expect("one for each name");
        Self {
            noise: next(),
            byte: next(),
            choice: next(),
            threshold: next(),
            value: next(),
            stream: StreamColumns::named(all),
            alias: all.next().expect("one for each name"),
        }
    }

    /// Those of several slots, in order: slot by slot, the multiplicities of their common tables last.
    pub fn together(slots: Vec<Self>) -> Vec<T> {
        let (mut all, mut tables) = (Vec::new(), Vec::new());
        for slot in slots {
            let mut own = slot.in_order();
            tables = own.split_off(own.len() - TABLES);
            all.extend(own);
        }
        all.extend(tables);
        all
    }
}

impl<T: Copy> Columns<T> {
    /// The inverse of [`Self::together`].
    pub fn apart(mut all: Vec<T>, count: usize) -> Vec<Self> {
        let tables = all.split_off(all.len() - TABLES);
        let own = all.chunks(all.len() / count);
        own.map(|own| Self::named(&mut own.iter().chain(&tables).copied()))
            .collect()
    }
}
