//! Noise: a position's value is DGS-1, the sum of its draws' values times the gains. `docs/scan/noise.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_relation::dgs::{alias_table, check_gains, BINS};

use crate::claims::Bound;
use crate::drawn::{Affine, Columns, Comparison, Distribution, DrawnStatement, Labels};
use crate::error::Result;
use crate::group::Fr;
use crate::numbers::NO_WRAP_BITS;
use crate::ranges::limbs;
use crate::session::ColumnId;
use crate::sumcheck::Gate;
use crate::transcript::{Oracle, Transcript};
use crate::words::T_BITS;

const _: () = {
    // Threshold, t and distance are T_BITS long: (2 c - 1) (T - t) - c = distance holds over the integers.
    assert!(T_BITS + 2 < NO_WRAP_BITS);
};

/// The noise of a position is the sum of gains times draws of the alias table.
#[derive(Clone, Debug)]
pub struct Noise {
    pub gains: Vec<u32>,
}

pub type NoiseStatement = DrawnStatement<Noise>;

/// Row byte + 256 choice of the alias table: its threshold and the value drawn.
///
/// ```
/// use ragaudit_scan_protocol::noise::alias_row;
///
/// // The same bin with the other sign: bytes from 128 on are negative.
/// let ((threshold, value), other) = (alias_row(5, 1), alias_row(5 + 128, 1));
/// assert_eq!((value, other), (5, (threshold, -5)));
/// ```
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

/// Absorbs the factor of each draw of a position; their number is 0 without noise.
pub fn absorb_gains(t: &mut Transcript<impl Oracle>, gains: &[u32]) {
    t.integer("gain count", gains.len() as u64);
    for gain in gains {
        t.integer("gain", u64::from(*gain));
    }
}

/// The columns of each draw are byte, choice, threshold and value.
impl Distribution for Noise {
    const LABELS: Labels = Labels {
        statement: "noise proof",
        columns: "noise columns",
        column: "noise",
    };
    const VALUE: usize = 3;

    fn check(&self) -> Result<()> {
        Ok(check_gains(&self.gains)?)
    }

    /// The number of draws, their factors, and the table that they are drawn from.
    fn absorb(&self, t: &mut Transcript<impl Oracle>) {
        absorb_gains(t, &self.gains);
        let table = alias_table();
        for (threshold, alias) in table.thresholds.iter().zip(&table.aliases) {
            t.integer("threshold", u64::from(*threshold));
            t.integer("alias", u64::from(*alias));
        }
    }

    fn factors(&self) -> Vec<u32> {
        self.gains.clone()
    }

    fn bound(&self) -> Bound {
        let gains = self.gains.iter().map(|g| *g as usize);
        Bound::within((BINS - 1) * gains.sum::<usize>())
    }

    fn bounds(&self) -> Vec<Bound> {
        vec![
            Bound::up_to(2 * BINS - 1),
            Bound::Unsigned(1),
            Bound::Unsigned(T_BITS),
            Bound::within(BINS - 1),
        ]
    }

    fn row(&self, byte: i64, choice: i64) -> Vec<i64> {
        let (threshold, value) = alias_row(byte as usize, choice as usize);
        vec![byte, choice, threshold, value]
    }

    /// (2c - 1)(T - t) = c + distance: t is below the threshold exactly if the choice is 1.
    fn comparison(&self) -> Comparison {
        Comparison {
            label: "choice",
            gate: Gate::Choice,
            public: Fr::ZERO,
            left: Affine {
                factors: vec![2, 0, 0, 0],
                constant: -Fr::ONE,
            },
            right: Affine {
                factors: vec![0, 1, -1, 0],
                constant: Fr::ZERO,
            },
            rest: Affine {
                factors: vec![1, 0, 0, 1],
                constant: Fr::ZERO,
            },
        }
    }

    /// Choice, threshold, t, distance.
    fn compared(columns: &Columns<ColumnId>) -> Vec<Vec<(ColumnId, Fr)>> {
        vec![
            vec![(columns.drawn[1], Fr::ONE)],
            vec![(columns.drawn[2], Fr::ONE)],
            limbs(&columns.stream.t, Fr::ONE),
            limbs(&columns.stream.distance, Fr::ONE),
        ]
    }
}
