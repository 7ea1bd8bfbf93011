//! Bernoulli bits: a position's value is 1 exactly if its draw is below a public bound. `docs/scan/bernoulli-bits.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_relation::PROBABILITY_BITS;

use crate::claims::Bound;
use crate::drawn::{Affine, Columns, Comparison, Distribution, DrawnStatement, Labels};
use crate::error::{Error, Result};
use crate::group::Fr;
use crate::index::MAX_CAPACITY;
use crate::numbers::NO_WRAP_BITS;
use crate::ranges::limbs;
use crate::session::ColumnId;
use crate::sumcheck::Gate;
use crate::transcript::{Oracle, Transcript};
use crate::words::T_BITS;

const MAX_BOUND: u64 = (1 << PROBABILITY_BITS) - 1;
/// The largest value of every public parameter.
pub const LIMITS: [u64; 2] = [MAX_CAPACITY as u64, MAX_BOUND];
const _: () = {
    // Threshold, t and distance are T_BITS long: (2 c - 1) (T + smaller - t) - c = distance holds over the integers.
    assert!(T_BITS + 8 == PROBABILITY_BITS && T_BITS + 3 < NO_WRAP_BITS);
};

/// The bit of a draw below `bound` is 1; its probability is bound / 2^40.
///
/// ```
/// use ragaudit_scan_protocol::bernoulli::Bernoulli;
/// use ragaudit_scan_protocol::drawn::Distribution;
///
/// let bernoulli = Bernoulli { bound: (3 << 8) + 51 };
/// assert_eq!(bernoulli.threshold(), 3);
/// assert_eq!([bernoulli.row(50, 0), bernoulli.row(51, 0)], [[50, 0, 1], [51, 0, 0]]);
/// assert!(bernoulli.check().is_ok() && Bernoulli { bound: 0 }.check().is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Bernoulli {
    pub bound: u64,
}

pub type BernoulliStatement = DrawnStatement<Bernoulli>;

impl Bernoulli {
    /// T: the bound without its low byte, to compare with t, which is a draw without its low byte.
    pub fn threshold(&self) -> u64 {
        self.bound >> 8
    }
}

/// The columns of each draw are byte, bit, and whether the byte is smaller than the bound's.
impl Distribution for Bernoulli {
    const LABELS: Labels = Labels {
        statement: "Bernoulli proof",
        columns: "coin columns",
        column: "coins",
    };
    const VALUE: usize = 1;

    fn check(&self) -> Result<()> {
        if (1..=MAX_BOUND).contains(&self.bound) {
            return Ok(());
        }
        let expected = format!("1 to {MAX_BOUND}");
        Err(Error::invalid("bound", expected, self.bound))
    }

    fn absorb(&self, t: &mut Transcript<impl Oracle>) {
        t.integer("bound", self.bound);
    }

    fn factors(&self) -> Vec<u32> {
        vec![1]
    }

    fn bound(&self) -> Bound {
        Bound::Unsigned(1)
    }

    fn bounds(&self) -> Vec<Bound> {
        [8, 1, 1].map(Bound::Unsigned).into()
    }

    fn row(&self, byte: i64, bit: i64) -> Vec<i64> {
        vec![byte, bit, (byte < (self.bound % 256) as i64).into()]
    }

    /// (2 c - 1) (T + x) = c + distance with x = smaller - t: the draw is below the bound exactly if the bit is 1. In the
    /// product, c (2 T - 1 + 2 x) - T - x, the term T without a factor c is public.
    fn comparison(&self) -> Comparison {
        let threshold = Fr::from(self.threshold());
        let lead = threshold.double() - Fr::ONE;
        Comparison {
            label: "coins below the bound",
            gate: Gate::Below { lead },
            public: threshold,
            left: Affine {
                factors: vec![1, 0, 0],
                constant: Fr::ZERO,
            },
            right: Affine {
                factors: vec![0, 2, 0],
                constant: lead,
            },
            rest: Affine {
                factors: vec![0, 1, 1],
                constant: Fr::ZERO,
            },
        }
    }

    /// Bit, x, distance.
    fn compared(columns: &Columns<ColumnId>) -> Vec<Vec<(ColumnId, Fr)>> {
        let mut x = limbs(&columns.stream.t, -Fr::ONE);
        x.push((columns.drawn[2], Fr::ONE));
        vec![
            vec![(columns.drawn[1], Fr::ONE)],
            x,
            limbs(&columns.stream.distance, Fr::ONE),
        ]
    }
}
