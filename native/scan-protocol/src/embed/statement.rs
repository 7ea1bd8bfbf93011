//! The statement of a proof of A1, and the bounds of all of its values: `docs/scan/embed.md`.
use ragaudit_relation::poseidon::LIST_RUN;

use crate::error::{Error, Result};
use crate::group::Fr;
use crate::index::{check_dimension, IndexCommitment, COMPONENT, MAX_DIMENSION};
use crate::numbers::NO_WRAP_BITS;
use crate::transcript::{Oracle, Transcript};
use crate::vector;
pub use crate::vector::{slack, Bounds, LIMB_BITS, MAX_NORM_FACTOR, ROOT_SHIFT};

pub const TAG_QUERY: u64 = 3;
pub const TAG_TOKEN: u64 = 1;
pub const TAG_LIMB: u64 = 2;
pub const TAG_STEP: u64 = 3;
pub const TOKEN_BITS: usize = 15;
pub const TOKENS_PER_ELEMENT: usize = 16;
/// hq's list is one run: salt, number of tokens, packed tokens.
pub const MAX_TOKENS: usize = (LIST_RUN - 2) * TOKENS_PER_ELEMENT;
/// Largest vocabulary: tokens have 15 bits.
pub const MAX_VOCABULARY: usize = 1 << TOKEN_BITS;

/// The constants that determine the positions of values in a proof: see [`crate::protocol`].
pub const RULES: [u64; 7] = [
    TAG_QUERY,
    TAG_TOKEN,
    TAG_LIMB,
    TAG_STEP,
    LIMB_BITS as u64,
    TOKENS_PER_ELEMENT as u64,
    ROOT_SHIFT as u64,
];

/// The statement of a proof of A1. The verifier rebuilds every value and reads none from a file.
#[derive(Clone)]
pub struct EmbedStatement<'a> {
    /// Digest of all other fields of the record.
    pub context: Fr,
    /// The commitment of [`crate::index::commit_table`]: a zero row follows the vocabulary.
    pub table: &'a IndexCommitment,
    /// The maximum number of tokens in a query.
    pub tokens: usize,
    /// A.
    pub norm_factor: u64,
    pub hq: Fr,
    pub cq: Fr,
}

// The assertions behind the bounds in `docs/scan/embed.md`: no equation wraps around.
const _: () = {
    let reach = MAX_TOKENS as u64 * COMPONENT as u64;
    let squares = MAX_DIMENSION as u64 * reach * reach;
    assert!(reach < 1 << 11 && squares < 1 << 34);
    let maximum = Bounds::of(reach, MAX_DIMENSION, MAX_NORM_FACTOR);
    assert!(maximum.scaled < 1 << 32 && maximum.limbs == 3);
    assert!(2 * (squares << ROOT_SHIFT).isqrt() + (maximum.scaled as u64) < 1 << 33);
    assert!(maximum.square_bits() + 1 == 75 && maximum.without_wrap());
    assert!(TOKENS_PER_ELEMENT * TOKEN_BITS == 240 && 240 < NO_WRAP_BITS);
};

impl EmbedStatement<'_> {
    pub fn check(&self) -> Result<Bounds> {
        let in_range = |field: &str, maximum: u64, actual: u64| {
            let expected = || format!("1 to {maximum}");
            let inside = (1..=maximum).contains(&actual);
            inside
                .then_some(())
                .ok_or_else(|| Error::invalid(field, expected(), actual))
        };
        in_range("tokens", MAX_TOKENS as u64, self.tokens as u64)?;
        in_range(
            "vocabulary",
            MAX_VOCABULARY as u64,
            self.vocabulary() as u64,
        )?;
        in_range("norm factor", MAX_NORM_FACTOR, self.norm_factor)?;
        check_dimension(self.table.dimension)?;
        let reach = self.tokens as u64 * COMPONENT as u64;
        Ok(Bounds::of(reach, self.table.dimension, self.norm_factor))
    }

    /// The size of the vector.
    pub fn vector(&self, bounds: Bounds) -> vector::Size {
        vector::Size {
            dimension: self.table.dimension,
            count: 1,
            norm_factor: self.norm_factor,
            bounds,
            limb_tag: TAG_LIMB,
            step_tag: TAG_STEP,
        }
    }

    pub fn vocabulary(&self) -> usize {
        self.table.layout.capacity - 1
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new("embed");
        t.scalar("context", &self.context);
        t.bytes("table", &self.table.digest());
        t.integer("vocabulary", self.vocabulary() as u64);
        t.integer("dimension", self.table.dimension as u64);
        t.integer("tokens", self.tokens as u64);
        t.integer("norm factor", self.norm_factor);
        t.scalar("hq", &self.hq);
        t.scalar("cq", &self.cq);
        t
    }
}

/// The columns, in the order in which they are committed to.
pub struct Columns<T> {
    /// How often each token is used.
    pub histogram: T,
    pub vector: vector::Columns<T>,
    /// How often each row of a table is looked up.
    pub limbs: T,
    pub steps: T,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = vec![self.histogram];
        out.extend(self.vector.in_order());
        out.extend([self.limbs, self.steps]);
        out
    }

    pub fn named(all: Vec<T>, bounds: &Bounds) -> Self {
        let mut all = all.into_iter();
        let expected = "one for each name";
        Self {
            histogram: all.next().expect(expected),
            vector: vector::Columns::named(&mut all, bounds),
            limbs: all.next().expect(expected),
            steps: all.next().expect(expected),
        }
    }
}
