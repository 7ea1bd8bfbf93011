//! An answer under pooled listing: the set of listed rows after a request, then the best positions of all listed rows.
//!
//! `docs/accounting.md` ("Pooled listing") has the rules. A row of the document table stands for a document.
use std::sync::atomic::{AtomicU8, Ordering};

use rayon::prelude::*;

use crate::selection::{best_scores, check_k, in_order, ScoreWindow, POSITIONS_PER_TASK};
use crate::Error;

/// The row of each position of a tenant's index; immutable.
pub struct RowOfPosition {
    rows: usize,
    of: Vec<u32>,
}

/// The public numbers of pooled listing.
pub struct PooledRules {
    /// The minimum raw score of a relevant position.
    pub threshold: i64,
    pub window: ScoreWindow,
    /// The number of places of an answer.
    pub places: usize,
}

/// A request with the state that it starts from.
pub struct PooledRequest<'a> {
    /// The raw score of each position, int32 in little-endian order.
    pub scores: &'a [[u8; 4]],
    /// Three bits for each row: listed before the request, in the sample, drawn by chance.
    pub before: &'a [u8],
    pub kept: &'a [u8],
    pub chance: &'a [u8],
}

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct PooledAnswer {
    /// A bit for each row: listed after the request.
    pub after: Vec<u8>,
    /// Positions of listed rows with a lattice score above 0, best first, at most as many as places.
    pub positions: Vec<usize>,
}

impl RowOfPosition {
    /// `of` has the number of rows for a position without a row.
    pub fn new(of: Vec<u32>, rows: usize) -> Result<Self, Error> {
        match of.iter().find(|row| **row as usize > rows) {
            None => Ok(Self { rows, of }),
            Some(row) => Err(Error::invalid(
                "row_of_position",
                format!("0 to {rows}"),
                row.to_string(),
            )),
        }
    }

    pub fn positions(&self) -> usize {
        self.of.len()
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The answer to a request.
    ///
    /// The comparison with the threshold and the update of the set take the same steps for every position and every row. The
    /// order of the places depends on scores of listed rows only, because the score of every other position is set to 0.
    pub fn answer(
        &self,
        request: &PooledRequest<'_>,
        rules: &PooledRules,
    ) -> Result<PooledAnswer, Error> {
        self.check(request)?;
        check_k(rules.places, self.of.len())?;
        let relevant = self.relevant(request.scores, rules.threshold);
        let states = request.before.iter().zip(request.kept).zip(request.chance);
        let mut after: Vec<u8> = states
            .zip(&relevant)
            .map(|(((before, kept), chance), relevant)| before | chance | (kept & relevant))
            .collect();
        after.push(0); // of positions without a row
        let tasks = request.scores.par_chunks(POSITIONS_PER_TASK);
        let tasks = tasks.zip(self.of.par_chunks(POSITIONS_PER_TASK));
        let ranks = tasks.enumerate().flat_map_iter(|(task, (scores, of))| {
            let listed = scores.iter().zip(of).map(|(score, row)| {
                // The window starts at 0 or above, so the score 0 is the lattice's 0.
                i32::from_le_bytes(*score) & -i32::from(after[*row as usize])
            });
            let first = task * POSITIONS_PER_TASK;
            best_scores(first, listed, &rules.window, rules.places)
        });
        let positive = ranks.filter(|(y, _)| *y > 0).collect();
        let positions = in_order(positive, rules.places);
        after.truncate(self.rows);
        Ok(PooledAnswer { after, positions })
    }

    /// A bit for each row: the score of one of its positions reaches the threshold.
    fn relevant(&self, scores: &[[u8; 4]], threshold: i64) -> Vec<u8> {
        // Every position sets one mark: positions that reach the threshold in the second half, all others in the first half.
        let half = self.rows + 1;
        let marks: Vec<AtomicU8> = (0..2 * half).map(|_| AtomicU8::new(0)).collect();
        let tasks = scores.par_chunks(POSITIONS_PER_TASK);
        let tasks = tasks.zip(self.of.par_chunks(POSITIONS_PER_TASK));
        tasks.for_each(|(scores, of)| {
            for (score, row) in scores.iter().zip(of) {
                let reaches = i64::from(i32::from_le_bytes(*score)) >= threshold;
                let at = *row as usize + half * usize::from(reaches);
                marks[at].store(1, Ordering::Relaxed);
            }
        });
        let second = marks.into_iter().skip(half).take(self.rows);
        second.map(AtomicU8::into_inner).collect()
    }

    fn check(&self, request: &PooledRequest<'_>) -> Result<(), Error> {
        if request.scores.len() != self.of.len() {
            let expected = format!("{} values, as many as positions", self.of.len());
            let actual = format!("{} values", request.scores.len());
            return Err(Error::invalid("scores", expected, actual));
        }
        for (field, bits) in [
            ("listed", request.before),
            ("kept", request.kept),
            ("chance", request.chance),
        ] {
            if bits.len() != self.rows || bits.iter().fold(0, |all, bit| all | bit) > 1 {
                let expected = format!("{} bytes 0 or 1", self.rows);
                let actual = format!("{} bytes", bits.len());
                return Err(Error::invalid(field, expected, actual));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules once more, row by row and position by position.
    fn reference(
        of: &[u32],
        scores: &[i32],
        [before, kept, chance]: [&[u8]; 3],
        rules: &PooledRules,
    ) -> PooledAnswer {
        let reaches = |row: usize| {
            let mut own = of.iter().zip(scores).filter(|(r, _)| **r as usize == row);
            own.any(|(_, score)| i64::from(*score) >= rules.threshold)
        };
        let lists = |r: usize| before[r] == 1 || chance[r] == 1 || (kept[r] == 1 && reaches(r));
        let after: Vec<u8> = (0..before.len()).map(|r| u8::from(lists(r))).collect();
        let y = |p: usize| rules.window.quantise(scores[p]);
        let listed = |p: &usize| after.get(of[*p] as usize) == Some(&1) && y(*p) > 0;
        let mut positions: Vec<usize> = (0..of.len()).filter(listed).collect();
        positions.sort_by_key(|p| (-y(*p), *p));
        positions.truncate(rules.places);
        PooledAnswer { after, positions }
    }

    fn mixed(i: usize, n: u32) -> u32 {
        (i as u32).wrapping_mul(2_654_435_761).rotate_left(9) % n
    }

    #[test]
    fn answers_are_those_of_the_rules() {
        for (n, rows) in [
            (1, 1),
            (50, 7),
            (3000, 900),
            (2 * POSITIONS_PER_TASK + 3, 300),
        ] {
            for (seed, lattice) in [(1, 1), (2, 8), (3, 1 << 12)] {
                let of: Vec<u32> = (0..n).map(|p| mixed(p + seed, rows as u32 + 1)).collect();
                let scores: Vec<i32> = (0..n).map(|p| mixed(p * seed, 300) as i32 - 90).collect();
                let bits = |add: usize, below: u32| -> Vec<u8> {
                    (0..rows)
                        .map(|r| u8::from(mixed(r + add * seed, 100) < below))
                        .collect()
                };
                let [before, kept, chance] = [bits(5, 4), bits(6, 80), bits(7, 3)];
                for (threshold, places) in [(1, 1), (205, 5), (i64::MAX, 64)] {
                    let rules = PooledRules {
                        threshold,
                        window: ScoreWindow::new(20, 180, lattice).unwrap(),
                        places: places.min(n),
                    };
                    let bytes: Vec<[u8; 4]> = scores.iter().map(|s| s.to_le_bytes()).collect();
                    let request = PooledRequest {
                        scores: &bytes,
                        before: &before,
                        kept: &kept,
                        chance: &chance,
                    };
                    let table = RowOfPosition::new(of.clone(), rows).unwrap();
                    let expected = reference(&of, &scores, [&before, &kept, &chance], &rules);
                    assert_eq!(table.answer(&request, &rules).unwrap(), expected);
                }
            }
        }
    }

    #[test]
    fn malformed_input_is_refused() {
        assert!(RowOfPosition::new(vec![0, 2, 1], 2).is_ok());
        assert!(RowOfPosition::new(vec![0, 3, 1], 2).is_err());
        let table = RowOfPosition::new(vec![0, 1, 2], 2).unwrap();
        let scores = [[0; 4]; 3];
        let good = || PooledRequest {
            scores: &scores,
            before: &[0, 1],
            kept: &[1, 0],
            chance: &[0, 0],
        };
        let refused = |request: PooledRequest, places: usize| {
            let window = ScoreWindow::new(0, 4, 4).unwrap();
            let rules = PooledRules {
                threshold: 1,
                window,
                places,
            };
            table.answer(&request, &rules).is_err()
        };
        assert!(!refused(good(), 3));
        assert!(refused(good(), 0) && refused(good(), 4));
        let other = &scores[1..];
        assert!(refused(
            PooledRequest {
                scores: other,
                ..good()
            },
            1
        ));
        for wrong in [&[0u8][..], &[0, 2], &[0, 0, 0]] {
            assert!(refused(
                PooledRequest {
                    before: wrong,
                    ..good()
                },
                1
            ));
            assert!(refused(
                PooledRequest {
                    kept: wrong,
                    ..good()
                },
                1
            ));
            assert!(refused(
                PooledRequest {
                    chance: wrong,
                    ..good()
                },
                1
            ));
        }
    }
}
