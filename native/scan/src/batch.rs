//! The equations of many proofs in one sum, in memory that does not grow with their number:
//! `docs/scan/verification.md`.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;

use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{msm, Fr, G1Affine, G1Projective};
use crate::index::IndexCommitment;
use crate::transcript::{Hash, Oracle, Transcript};

/// Records whose proofs are summed together: enough that a sum over their own points costs little for each of them.
pub const CHUNK: usize = 64;
/// Records whose equations are kept apart at a time while the bad ones of a chunk are looked for.
const SEARCHED: usize = 8;

/// Which of some records' proofs do not hold, ascending, and why.
pub type Refusals = Vec<(usize, Error)>;

/// A sum of equations that grows: factors of the points that all records share, and one point for all others.
#[derive(Default)]
pub(crate) struct Sum {
    /// Without points of its own.
    shared: Equation,
    own: G1Projective,
}

impl Sum {
    /// Adds a chunk's equations, summed under their weights. The points that no other chunk has become one at once.
    pub(crate) fn add(&mut self, mut chunk: Equation) {
        let (points, factors): (Vec<_>, Vec<_>) =
            std::mem::take(&mut chunk.points).into_iter().unzip();
        self.own += msm(&points, &factors);
        self.shared.merge(chunk);
    }

    /// Whether it is the neutral element; `index` are the points behind the factors of the index or table.
    pub(crate) fn holds(&self, index: &[G1Affine]) -> bool {
        self.own + self.shared.evaluate(index) == G1Projective::ZERO
    }
}

/// The sum of `count` records' equations under the weights of each, and the records that have none.
pub(crate) fn weigh(
    weights: &[Vec<Fr>],
    check: impl Fn(usize) -> Result<Vec<Equation>> + Sync,
) -> (Equation, Refusals) {
    let join = |mut all: (Equation, Refusals), more: (Equation, Refusals)| {
        all.0.merge(more.0);
        all.1.extend(more.1);
        all
    };
    let add = |mut all: (Equation, Refusals), i: usize| {
        match check(i) {
            Ok(equations) => {
                let weighed = equations.iter().zip(&weights[i]);
                weighed.for_each(|(equation, weight)| all.0.add(equation, *weight));
            }
            Err(reason) => all.1.push((i, reason)),
        }
        all
    };
    let all = (0..weights.len()).into_par_iter();
    all.fold(Default::default, add)
        .reduce(Default::default, join)
}

/// A batch in the making. What is kept between chunks is the transcript and a [`Sum`].
pub(crate) struct Batch<O = Hash> {
    pub(crate) index: Arc<IndexCommitment>,
    transcript: Transcript<O>,
    sum: Sum,
}

impl<O: Oracle> Batch<O> {
    /// `transcript` has absorbed what all records share.
    pub(crate) fn new(index: Arc<IndexCommitment>, transcript: Transcript<O>) -> Self {
        let sum = Sum::default();
        Self {
            index,
            transcript,
            sum,
        }
    }

    /// Adds `count` records of so many equations each, which `absorb` gives to the transcript; and which have none. Their
    /// weights are drawn after them and all that came before.
    pub(crate) fn add(
        &mut self,
        [count, equations]: [usize; 2],
        absorb: impl FnOnce(&mut Transcript<O>),
        check: impl Fn(usize) -> Result<Vec<Equation>> + Sync,
    ) -> Refusals {
        absorb(&mut self.transcript);
        let weights: Vec<Vec<Fr>> = (0..count)
            .map(|_| self.transcript.challenges("weight", equations))
            .collect();
        let (chunk, refused) = weigh(&weights, check);
        self.sum.add(chunk);
        refused
    }

    /// Whether all that was added and not refused holds.
    pub(crate) fn holds(&self) -> bool {
        self.sum.holds(&self.index.points)
    }

    /// Points and scalars that are kept between chunks.
    pub(crate) fn kept(&self) -> usize {
        let Equation {
            vector,
            query,
            index,
            points,
            h: _,
            u: _,
        } = &self.sum.shared;
        vector.len() + query.len() + index.len() + points.len() + 3
    }
}

/// Which of some records' proofs do not hold, ascending. Equations are kept of a few records at a time, and a sum that
/// does not vanish is halved.
pub(crate) fn search(
    index: &IndexCommitment,
    weights: &[Vec<Fr>],
    check: impl Fn(usize) -> Result<Vec<Equation>> + Sync,
) -> Refusals {
    let mut bad = Refusals::new();
    for (run, weights) in weights.chunks(SEARCHED).enumerate() {
        let weighed = |(i, weights): (usize, &Vec<Fr>)| {
            let mut sum = Equation::default();
            let equations = check(run * SEARCHED + i)?;
            for (equation, weight) in equations.iter().zip(weights) {
                sum.add(equation, *weight);
            }
            Ok(sum)
        };
        let all: Vec<Result<Equation>> = weights.par_iter().enumerate().map(weighed).collect();
        let mut left = Vec::new();
        for (i, equation) in (run * SEARCHED..).zip(all) {
            match equation {
                Ok(equation) => left.push((i, equation)),
                Err(reason) => bad.push((i, reason)),
            }
        }
        bisect(index, &left, &mut bad);
    }
    bad.sort_unstable_by_key(|(i, _)| *i);
    bad
}

/// What `run` refuses of each chunk, numbered through.
pub(crate) fn chunks<T>(items: &[T], mut run: impl FnMut(&[T]) -> Refusals) -> Refusals {
    let mut bad = Refusals::new();
    for (k, chunk) in items.chunks(CHUNK).enumerate() {
        let numbered = |(i, reason)| (k * CHUNK + i, reason);
        bad.extend(run(chunk).into_iter().map(numbered));
    }
    bad
}

/// Halves a sum that does not vanish until the bad ones are found.
fn bisect(index: &IndexCommitment, equations: &[(usize, Equation)], bad: &mut Refusals) {
    let mut sum = Equation::default();
    for (_, equation) in equations {
        sum.add(equation, Fr::ONE);
    }
    if sum.holds(&index.points) {
        return;
    }
    match equations {
        [(i, _)] => bad.push((*i, Error::Rejected)),
        _ => {
            let (low, high) = equations.split_at(equations.len() / 2);
            bisect(index, low, bad);
            bisect(index, high, bad);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::encode_scalar;
    use crate::index::{commit_index, IndexKey};

    /// A batch of records that say so many times H is the neutral element.
    fn of(chunks: &[&[Fr]]) -> Batch {
        let index = commit_index(&[1], 1, 1, &IndexKey([1; 32])).unwrap();
        let mut batch = Batch::new(Arc::new(index), Transcript::new("test"));
        for chunk in chunks {
            add(&mut batch, chunk);
        }
        batch
    }

    fn add(batch: &mut Batch, errors: &[Fr]) {
        let absorb = |t: &mut Transcript| errors.iter().for_each(|e| t.scalar("error", e));
        let check = |i: usize| {
            let h = errors[i];
            Ok(vec![Equation {
                h,
                ..Equation::default()
            }])
        };
        assert_eq!(batch.add([errors.len(), 1], absorb, check), []);
    }

    #[test]
    fn opposite_errors_do_not_cancel() {
        let (zero, one) = (Fr::ZERO, Fr::ONE);
        assert!(of(&[&[zero, zero], &[zero]]).holds());
        assert!(!of(&[&[one, zero], &[zero]]).holds());
        assert!(!of(&[&[one, -one]]).holds(), "in one chunk");
        assert!(!of(&[&[one], &[-one]]).holds(), "in two");
    }

    /// Who knew the weight of a later chunk when making it could cancel what an earlier one left.
    #[test]
    fn weights_of_a_chunk_follow_its_records() {
        let weight_after = |before: &[Fr]| {
            let mut transcript: Transcript = Transcript::new("test");
            let mut weight = Fr::ZERO;
            for error in before {
                transcript.scalar("error", error);
                weight = transcript.challenge("weight");
            }
            weight
        };
        let first = weight_after(&[Fr::ONE]);
        let guess = Fr::from(5u8);
        let second = weight_after(&[Fr::ONE, guess]);
        // What the second chunk would have to say, under the weight that it has if it says something else.
        let fit = -first * second.inverse().unwrap();
        assert_ne!(encode_scalar(&fit), encode_scalar(&guess));
        assert!(!of(&[&[Fr::ONE], &[fit]]).holds());
        // Of the weights that they have, they do cancel: the equation is the one above.
        let known = of(&[&[Fr::ONE], &[guess]]);
        assert_eq!(known.sum.shared.h, first + second * guess);
    }
}
