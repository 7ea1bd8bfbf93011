//! The statement of a proof of A1, and the bounds of all of its values: `docs/scan/embed.md`.
use ragaudit_relation::poseidon::LIST_RUN;

use crate::error::{Error, Result};
use crate::group::Fr;
use crate::index::{check_dimension, IndexCommitment, COMPONENT, MAX_DIMENSION};
use crate::numbers::NO_WRAP_BITS;
use crate::transcript::{Oracle, Transcript};

pub const TAG_QUERY: u64 = 3;
pub const TAG_TOKEN: u64 = 1;
pub const TAG_LIMB: u64 = 2;
pub const TAG_STEP: u64 = 3;
pub const LIMB_BITS: usize = 12;
pub const TOKEN_BITS: usize = 15;
pub const TOKENS_PER_ELEMENT: usize = 16;
/// hq's list is one run: salt, number of tokens, packed tokens.
pub const MAX_TOKENS: usize = (LIST_RUN - 2) * TOKENS_PER_ELEMENT;
/// Largest vocabulary: tokens have 15 bits.
pub const MAX_VOCABULARY: usize = 1 << TOKEN_BITS;
/// Largest A.
pub const MAX_NORM_FACTOR: u64 = 1 << 20;
/// w is the integer square root of 2^16 times the sum of squares.
pub const ROOT_SHIFT: usize = 16;

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

/// The bounds of all values, which are far below r.
pub struct Bounds {
    /// The bound of 2 A |e_j|.
    pub scaled: i64,
    /// The number of limbs of every range-checked value, which is at most 2 w + scaled.
    pub limbs: usize,
}

impl Bounds {
    pub const fn of(tokens: usize, dimension: usize, norm_factor: u64) -> Self {
        let reach = tokens as u64 * COMPONENT as u64;
        let root = ((dimension as u64 * reach * reach) << ROOT_SHIFT).isqrt();
        let scaled = 2 * norm_factor * reach;
        let bits = 64 - (2 * root + scaled).leading_zeros() as usize;
        Self {
            scaled: scaled as i64,
            limbs: bits.div_ceil(LIMB_BITS),
        }
    }

    /// Bits of w^2: w - 1 has limbs.
    pub const fn square_bits(&self) -> usize {
        2 * (LIMB_BITS * self.limbs + 1)
    }
}

// The assertions behind the bounds in `docs/scan/embed.md`: no equation wraps around.
const _: () = {
    let reach = MAX_TOKENS as u64 * COMPONENT as u64;
    let squares = MAX_DIMENSION as u64 * reach * reach;
    assert!(reach < 1 << 11 && squares < 1 << 34);
    let maximum = Bounds::of(MAX_TOKENS, MAX_DIMENSION, MAX_NORM_FACTOR);
    assert!(maximum.scaled < 1 << 32 && maximum.limbs == 3);
    assert!(2 * (squares << ROOT_SHIFT).isqrt() + (maximum.scaled as u64) < 1 << 33);
    // For all values of a prover: no compared value has more than one bit above w^2.
    assert!(maximum.square_bits() + 1 == 75 && 75 < NO_WRAP_BITS);
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
        Ok(Bounds::of(
            self.tokens,
            self.table.dimension,
            self.norm_factor,
        ))
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

/// The terms that v_j adds to its lower and upper distance: -1 if the bound is strict. At the ends of the range, where no
/// bound exists, the term exceeds every sum of rows.
pub fn slack(v: i64, scaled: i64) -> [i64; 2] {
    let maximum = i64::from(COMPONENT);
    let one = |v: i64| i64::from(v == -maximum) * scaled - i64::from(v <= 0);
    [one(v), one(-v)]
}

/// The columns, in the order in which they are committed to.
pub struct Columns<T> {
    /// How often each token is used.
    pub histogram: T,
    /// Sums of the tokens' rows.
    pub sums: T,
    pub vector: T,
    /// The remainders of each component's step, below and above.
    pub lower_slack: T,
    pub upper_slack: T,
    /// Limbs of the distances from both ends of a step.
    pub lower: Vec<T>,
    pub upper: Vec<T>,
    /// How often each row of a table is looked up.
    pub limbs: T,
    pub steps: T,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = vec![
            self.histogram,
            self.sums,
            self.vector,
            self.lower_slack,
            self.upper_slack,
        ];
        out.extend(self.lower.into_iter().chain(self.upper));
        out.extend([self.limbs, self.steps]);
        out
    }

    pub fn named(all: Vec<T>, bounds: &Bounds) -> Self {
        let mut all = all.into_iter();
        let mut next = || all.next().expect("one for each name");
        Self {
            histogram: next(),
            sums: next(),
            vector: next(),
            lower_slack: next(),
            upper_slack: next(),
            lower: (0..bounds.limbs).map(|_| next()).collect(),
            upper: (0..bounds.limbs).map(|_| next()).collect(),
            limbs: next(),
            steps: next(),
        }
    }
}
