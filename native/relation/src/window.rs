//! The score lattice: which step of it a raw score is.
use crate::Error;

/// Largest score lattice.
pub const MAX_LATTICE: i64 = 1 << 24;

/// The policy's score window `lo..hi` in raw units and its lattice `0..lattice`.
#[derive(Debug, Clone, Copy)]
pub struct ScoreWindow {
    lo: i64,
    hi: i64,
    lattice: i64,
    /// 2^88 / (hi - lo), rounded up: a division by it takes the same steps whatever the score is.
    reciprocal: u128,
}

/// Bits of the reciprocal: numerators are below 2^56 and the width below 2^31, so the quotient is exact.
const RECIPROCAL_BITS: u32 = 88;

impl ScoreWindow {
    pub fn new(lo: i64, hi: i64, lattice: i64) -> Result<Self, Error> {
        if !(0 <= lo && lo < hi && hi <= i64::from(i32::MAX)) {
            let actual = format!("{lo}..{hi}");
            return Err(Error::invalid("window", "0 <= lo < hi < 2^31", actual));
        }
        if !(1..=MAX_LATTICE).contains(&lattice) || lattice & (lattice - 1) != 0 {
            let expected = format!("a power of two up to {MAX_LATTICE}");
            return Err(Error::invalid("lattice", expected, lattice.to_string()));
        }
        let reciprocal = (1u128 << RECIPROCAL_BITS).div_ceil((hi - lo) as u128);
        Ok(Self {
            lo,
            hi,
            lattice,
            reciprocal,
        })
    }

    /// The nearest lattice point of the clamped score, ties upwards.
    #[inline]
    pub fn quantise(&self, score: i32) -> i64 {
        let width = (self.hi - self.lo) as u64;
        let above = (i64::from(score).clamp(self.lo, self.hi) - self.lo) as u64;
        let numerator = above * self.lattice as u64 + width / 2;
        ((u128::from(numerator) * self.reciprocal) >> RECIPROCAL_BITS) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiser_clamps_and_rounds_half_up() {
        let window = ScoreWindow::new(10, 14, 2).unwrap();
        let points = [i32::MIN, 0, 10, 11, 12, 13, 14, i32::MAX].map(|s| window.quantise(s));
        assert_eq!(points, [0, 0, 0, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn windows_that_are_none_are_refused() {
        assert!(ScoreWindow::new(-1, 64, 64).is_err());
        assert!(ScoreWindow::new(64, 64, 64).is_err());
        assert!(ScoreWindow::new(0, 1 << 31, 64).is_err());
        assert!(ScoreWindow::new(0, 64, 48).is_err());
        assert!(ScoreWindow::new(0, 64, 0).is_err());
    }
}
