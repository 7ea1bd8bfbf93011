//! Score lattice, noise and the order of the top K.
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use ragaudit_relation::window::{ScoreWindow, MAX_LATTICE};
use rayon::prelude::*;

use crate::int4::PackedIndex;
use crate::Error;

pub(crate) const POSITIONS_PER_TASK: usize = 1 << 14;

/// The order of positions: larger y first, then smaller position.
pub(crate) type Rank = (i64, Reverse<usize>);

/// The first k positions of quantise(scores) + noise: larger first, then smaller position.
pub fn noised_top_k(
    scores: &[i32],
    window: &ScoreWindow,
    noise: &[i32],
    k: usize,
) -> Result<Vec<usize>, Error> {
    check_count("noise", noise.len(), scores.len())?;
    check_k(k, scores.len())?;
    let ranks = scores
        .par_chunks(POSITIONS_PER_TASK)
        .zip(noise.par_chunks(POSITIONS_PER_TASK))
        .enumerate()
        .flat_map_iter(|(task, (scores, noise))| {
            let of = scores.iter().zip(noise);
            let values = of.map(|(score, z)| window.quantise(*score) + i64::from(*z));
            best(task * POSITIONS_PER_TASK, values, k)
        })
        .collect();
    Ok(in_order(ranks, k))
}

/// One query of a ranking over one pass of the index.
pub struct NoisedQuery<'a> {
    pub query: &'a [i8],
    /// One value for each position; None without noise.
    pub noise: Option<&'a [i32]>,
}

/// For each of several queries, the first k positions of an index by sampled quantise(score) + noise: larger first, then
/// smaller position. `sample` has 1 or 0 for each position; without it all positions are sampled. The function reads the
/// index once for all queries, in runs of rows. The result of a query does not depend on the other queries.
pub fn top_k(
    runs: &[&PackedIndex],
    requests: &[NoisedQuery<'_>],
    window: &ScoreWindow,
    sample: Option<&[u8]>,
    k: usize,
) -> Result<Vec<Vec<usize>>, Error> {
    let positions = runs.iter().map(|run| run.rows()).sum();
    for one in requests {
        check_count("noise", one.noise.map_or(positions, <[_]>::len), positions)?;
    }
    check_count("kept", sample.map_or(positions, <[_]>::len), positions)?;
    check_k(k, positions)?;
    if sample.is_some_and(|sample| sample.iter().fold(0, |all, bit| all | bit) > 1) {
        return Err(Error::invalid("kept", "bytes 0 and 1", "another byte"));
    }
    let queries: Vec<_> = requests.iter().map(|one| one.query).collect();
    let of_run = |(start, run): (usize, &&PackedIndex)| {
        let best_of = |number: usize, row: usize, scores: &[i32]| {
            let (first, noise) = (start + row, requests[number].noise);
            let values = (first..).zip(scores).map(|(i, score)| {
                // The steps do not depend on the sample. The window starts at 0 or above, so the score 0 is the lattice's 0.
                let sample = sample.map_or(-1, |sample| -i32::from(sample[i]));
                window.quantise(score & sample) + noise.map_or(0, |noise| i64::from(noise[i]))
            });
            best(first, values, k)
        };
        run.map_scores(&queries, best_of)
    };
    let mut end = 0;
    let mut start = |run: &PackedIndex| {
        end += run.rows();
        end - run.rows()
    };
    let placed: Vec<_> = runs.iter().map(|run| (start(run), run)).collect();
    // All runs in one parallel step: on a busy machine, threads that wait for one another after each run lose more time.
    let actual: Result<Vec<_>, Error> = placed.into_par_iter().map(of_run).collect();
    let mut ranks: Vec<Vec<Rank>> = requests.iter().map(|_| Vec::new()).collect();
    for of_queries in actual?.into_iter().flatten() {
        for (ranks, actual) in ranks.iter_mut().zip(of_queries) {
            ranks.extend(actual);
        }
    }
    Ok(ranks.into_iter().map(|ranks| in_order(ranks, k)).collect())
}

fn check_count(field: &str, actual: usize, expected: usize) -> Result<(), Error> {
    if actual == expected {
        return Ok(());
    }
    let expected = format!("{expected} values, as many as scores");
    Err(Error::invalid(field, expected, format!("{actual} values")))
}

pub(crate) fn check_k(k: usize, positions: usize) -> Result<(), Error> {
    if (1..=positions).contains(&k) {
        return Ok(());
    }
    let expected = format!("1 to {positions}");
    Err(Error::invalid("k", expected, k.to_string()))
}

/// The first k positions of candidates.
pub(crate) fn in_order(mut ranks: Vec<Rank>, k: usize) -> Vec<usize> {
    ranks.sort_unstable_by(|a, b| b.cmp(a));
    ranks.into_iter().take(k).map(|(_, Reverse(i))| i).collect()
}

/// The k best of the positions that it is offered in ascending order.
struct Best {
    k: usize,
    sample: BinaryHeap<Reverse<Rank>>,
    worst: i64,
}

impl Best {
    fn of(k: usize) -> Self {
        Self {
            k,
            sample: BinaryHeap::new(),
            worst: i64::MIN,
        }
    }

    /// Whether the position is among the best.
    #[inline]
    fn offer(&mut self, i: usize, y: i64) -> bool {
        // Positions ascend, so a value equal to the worst of the best k loses.
        let better = y > self.worst || self.sample.len() < self.k;
        if better {
            if self.sample.len() == self.k {
                self.sample.pop();
            }
            self.sample.push(Reverse((y, Reverse(i))));
            if self.sample.len() == self.k {
                let worst = self.sample.peek();
                self.worst = worst.map_or(i64::MIN, |Reverse((y, _))| *y);
            }
        }
        better
    }

    fn unordered(self) -> Vec<Rank> {
        self.sample.into_iter().map(|Reverse(rank)| rank).collect()
    }
}

/// The k best positions of a run that starts at `first`, unordered.
fn best(first: usize, values: impl Iterator<Item = i64>, k: usize) -> Vec<Rank> {
    let mut best = Best::of(k);
    for (i, y) in (first..).zip(values) {
        best.offer(i, y);
    }
    best.unordered()
}

/// `best` by the quantised scores. The comparison runs for every score. A score that does not exceed one that lost is not
/// quantised, because it loses too.
pub(crate) fn best_scores(
    first: usize,
    scores: impl Iterator<Item = i32>,
    window: &ScoreWindow,
    k: usize,
) -> Vec<Rank> {
    let (mut best, mut lost) = (Best::of(k), i32::MIN);
    for (i, score) in (first..).zip(scores) {
        if (score > lost || best.sample.len() < k) && !best.offer(i, window.quantise(score)) {
            lost = score;
        }
    }
    best.unordered()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(scores: &[i32], window: &ScoreWindow, noise: &[i32], k: usize) -> Vec<usize> {
        let y = |i: usize| window.quantise(scores[i]) + i64::from(noise[i]);
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by_key(|&i| (-y(i), i));
        order.truncate(k);
        order
    }

    #[test]
    fn agrees_with_sorting_over_several_tasks() {
        let window = ScoreWindow::new(101, 810, 128).unwrap();
        let mixed = |i: u32, n: u32| (i.wrapping_mul(2_654_435_761) >> 7) % n;
        for n in [1, 2, 100, 2 * POSITIONS_PER_TASK + 3] {
            let scores: Vec<i32> = (0..n as u32).map(|i| mixed(i, 1200) as i32 - 100).collect();
            let noise: Vec<i32> = (0..n as u32)
                .map(|i| mixed(i + 9, 300) as i32 - 150)
                .collect();
            for k in [1, 2, 5, 64, n].into_iter().filter(|&k| k <= n) {
                assert_eq!(
                    noised_top_k(&scores, &window, &noise, k).unwrap(),
                    reference(&scores, &window, &noise, k)
                );
            }
        }
    }

    /// Ranks runs of an index with and without noise, with all positions and with a sample.
    #[test]
    fn an_index_is_ranked_as_its_scores_are() {
        let window = ScoreWindow::new(3, 90, 32).unwrap();
        let mixed = |i: usize, n: u32| (i as u32).wrapping_mul(2_654_435_761).rotate_left(9) % n;
        let query = [5i8, -7, 2];
        let components =
            |rows: usize| -> Vec<i8> { (0..3 * rows).map(|i| mixed(i, 15) as i8 - 7).collect() };
        let runs = [5000, 1, 4096].map(|rows| PackedIndex::new(&components(rows), 3).unwrap());
        let runs = runs.each_ref();
        let scores: Vec<i32> = runs
            .iter()
            .flat_map(|r| r.scores(&query).unwrap())
            .collect();
        let n = scores.len();
        let noise: Vec<i32> = (0..n).map(|i| mixed(i + 5, 40) as i32 - 20).collect();
        let sample: Vec<u8> = (0..n).map(|i| (mixed(i + 3, 10) < 7) as u8).collect();
        let (silent, twos) = (vec![0; n], vec![2; n]);
        for (noise, sample) in [
            (None, None),
            (Some(&noise[..]), None),
            (None, Some(&sample[..])),
            (Some(&noise), Some(&sample)),
        ] {
            let of = |i: usize| scores[i] * sample.map_or(1, |sample| i32::from(sample[i]));
            let sampled: Vec<i32> = (0..n).map(of).collect();
            for k in [1, 7, n] {
                let expected = reference(&sampled, &window, noise.unwrap_or(&silent), k);
                let query = &query[..];
                let other: Vec<i8> = query.iter().map(|v| -v).collect();
                let requests = [(query, noise), (&other, None), (query, noise)];
                let requests = requests.map(|(query, noise)| NoisedQuery { query, noise });
                let actual = top_k(&runs, &requests, &window, sample, k).unwrap();
                assert_eq!([&actual[0], &actual[2]], [&expected; 2], "{k}");
                let alone = top_k(&runs, &requests[1..2], &window, sample, k).unwrap();
                assert_eq!(actual[1], alone[0], "{k}");
            }
        }
        let none = top_k(&runs, &[], &window, None, 1).unwrap();
        assert!(none.is_empty());
        let refused = |noise, sample, k| {
            let query = &query[..];
            top_k(&runs, &[NoisedQuery { query, noise }], &window, sample, k).is_err()
        };
        assert!(refused(Some(&noise[1..]), None, 1));
        assert!(refused(None, Some(&sample[1..]), 1));
        assert!(refused(None, Some(&twos), 1));
        assert!(refused(None, None, 0) && refused(None, None, n + 1));
        let (query, noise) = (&query[1..], None);
        assert!(top_k(&runs, &[NoisedQuery { query, noise }], &window, None, 1).is_err());
    }

    #[test]
    fn ties_go_to_the_smaller_position() {
        let window = ScoreWindow::new(0, 64, 64).unwrap();
        let n = 3 * POSITIONS_PER_TASK;
        let top = noised_top_k(&vec![7; n], &window, &vec![0; n], 3).unwrap();
        assert_eq!(top, [0, 1, 2]);
        assert_eq!(
            noised_top_k(&[1, 2, 2], &window, &[1, 0, 0], 3).unwrap(),
            [0, 1, 2]
        );
    }

    #[test]
    fn malformed_input_is_refused() {
        let window = ScoreWindow::new(0, 64, 64).unwrap();
        assert!(noised_top_k(&[1, 2], &window, &[0], 1).is_err());
        assert!(noised_top_k(&[1, 2], &window, &[0, 0], 0).is_err());
        assert!(noised_top_k(&[1, 2], &window, &[0, 0], 3).is_err());
    }
}
