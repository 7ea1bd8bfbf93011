//! The equations of many proofs in one sum, in memory that does not grow with their number:
//! `docs/scan/verification.md`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use ragaudit_scan_protocol::answer::{Batch, Item, Parameters, Record, Slot};
//! use ragaudit_scan_protocol::engine::Plain;
//! use ragaudit_scan_protocol::group::{bases, Fr};
//! use ragaudit_scan_protocol::index::{IndexCommitment, Layout};
//!
//! let points = vec![bases::<Plain>().u; 3];
//! let index = IndexCommitment { layout: Layout::new(12)?, dimension: 3, points };
//! let parameters = Parameters {
//!     window: [7; 32],
//!     gains: vec![],
//!     listed: 2,
//!     lo: 5,
//!     hi: 60,
//!     lattice: 32,
//!     kept: None,
//! };
//! let [c_seed, beacon, slot, context, cq, htopk] = [1u8, 2, 3, 4, 5, 6].map(Fr::from);
//! let record = Record { slot: Slot { c_seed, beacon, slot }, context, cq, htopk };
//! let mut batch: Batch = Batch::new(Arc::new(index), parameters);
//! // A tenant without noise has no certificate, and these are not the bytes of a query proof.
//! let refused = batch.add(&[Item::single(record, [b"", b"no proof"])]);
//! assert_eq!(refused[0].0, 0);
//! // What was not refused, nothing here, holds.
//! assert!(batch.holds());
//! # Ok::<(), ragaudit_scan_protocol::Error>(())
//! ```
use std::marker::PhantomData;
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};

use crate::engine::{Engine, Plain};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine, G1Projective};
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
pub struct Sum {
    /// Without points of its own.
    shared: Equation,
    own: G1Projective,
}

impl Sum {
    /// Adds a chunk's equations, summed under their weights. The points that no other chunk has become one at once.
    pub fn add<E: Engine>(&mut self, mut chunk: Equation) {
        let (points, factors): (Vec<_>, Vec<_>) =
            std::mem::take(&mut chunk.points).into_iter().unzip();
        self.own += E::msm(&points, &factors);
        self.shared.merge(chunk);
    }

    /// Whether it is the neutral element; `index` are the points behind the factors of the index or table.
    pub fn holds<E: Engine>(&self, index: &[G1Affine]) -> bool {
        self.own + self.shared.evaluate::<E>(index) == G1Projective::ZERO
    }
}

/// The sum of `count` records' equations under the weights of each, and the records that have none.
pub fn weigh<E: Engine>(
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
    E::fold(weights.len(), add, join)
}

/// Proofs of one kind, about one index or table, that one sum holds.
pub trait Kind {
    /// A statement with its proof.
    type Item<'a>: Sync;

    /// A transcript that has absorbed what all items share; `index` is the digest of index or table, and `items` are the
    /// first of the batch.
    fn transcript<O: Oracle>(&self, index: &[u8; 32], items: &[Self::Item<'_>]) -> Transcript<O>;

    /// Absorbs items with their proofs: the weights that follow are drawn after all of it is fixed.
    fn absorb<O: Oracle>(&self, transcript: &mut Transcript<O>, items: &[Self::Item<'_>]);

    /// Of one item.
    fn equations(&self) -> usize;

    /// An item's proof as sums that have to vanish.
    fn check<E: Engine>(
        &self,
        index: &IndexCommitment,
        item: &Self::Item<'_>,
    ) -> Result<Vec<Equation>>;
}

/// Many proofs, verified a chunk at a time. What is kept between chunks is the transcript and a [`Sum`].
pub struct Batch<K, O = Hash, E = Plain> {
    kind: K,
    index: Arc<IndexCommitment>,
    digest: [u8; 32],
    /// From the first chunk on.
    transcript: Option<Transcript<O>>,
    sum: Sum,
    engine: PhantomData<E>,
}

impl<K: Kind + Sync, O: Oracle, E: Engine> Batch<K, O, E> {
    pub fn new(index: Arc<IndexCommitment>, kind: K) -> Self {
        let digest = index.digest();
        Self {
            transcript: None,
            kind,
            index,
            digest,
            sum: Sum::default(),
            engine: PhantomData,
        }
    }

    /// Adds items, at most about [`CHUNK`] of them; which are no proofs at all, and why. Whether the others are false,
    /// [`Self::holds`] says of all at once, and [`Self::search`] of each.
    pub fn add(&mut self, items: &[K::Item<'_>]) -> Refusals {
        let (kind, index) = (&self.kind, &self.index);
        let begun = || kind.transcript(&self.digest, items);
        let weights = kind.weights(self.transcript.get_or_insert_with(begun), items);
        let (chunk, refused) = weigh::<E>(&weights, |i| kind.check::<E>(index, &items[i]));
        self.sum.add::<E>(chunk);
        refused
    }

    /// Whether everything that was added and not refused is proved.
    pub fn holds(&self) -> bool {
        self.sum.holds::<E>(&self.index.points)
    }

    /// Which of some items' proofs do not hold, and why, whatever was added before.
    pub fn search(&self, items: &[K::Item<'_>]) -> Refusals {
        let (kind, index) = (&self.kind, &self.index);
        let weights = kind.weights(&mut kind.transcript::<O>(&self.digest, items), items);
        search::<E>(index, &weights, |i| kind.check::<E>(index, &items[i]))
    }

    /// Points and scalars that are kept between chunks.
    pub fn kept(&self) -> usize {
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

/// The weights of items, which are drawn after them and all that came before.
trait Weigh: Kind {
    fn weights<O: Oracle>(
        &self,
        transcript: &mut Transcript<O>,
        items: &[Self::Item<'_>],
    ) -> Vec<Vec<Fr>> {
        self.absorb(transcript, items);
        let of_item = |_| transcript.challenges("weight", self.equations());
        items.iter().map(of_item).collect()
    }
}

impl<K: Kind> Weigh for K {}

/// Verifies one item.
pub fn verify<K: Kind, E: Engine>(
    index: &IndexCommitment,
    kind: &K,
    item: K::Item<'_>,
) -> Result<()> {
    let items = [item];
    let mut transcript: Transcript = kind.transcript(&index.digest(), &items);
    let mut sum = Equation::default();
    let weights = kind.weights(&mut transcript, &items);
    for (equation, weight) in kind.check::<E>(index, &items[0])?.iter().zip(&weights[0]) {
        sum.add(equation, *weight);
    }
    sum.verify::<E>(&index.points)
}

/// Which items' proofs do not hold, ascending, and why: all in one sum, a chunk at a time, and each chunk again if that
/// does not vanish.
pub fn verify_all<K: Kind + Clone + Sync, E: Engine>(
    index: &Arc<IndexCommitment>,
    kind: &K,
    items: &[K::Item<'_>],
) -> Refusals {
    let mut batch: Batch<K, Hash, E> = Batch::new(Arc::clone(index), kind.clone());
    let refused = chunks(items, |chunk| batch.add(chunk));
    match batch.holds() {
        true => refused,
        false => chunks(items, |chunk| batch.search(chunk)),
    }
}

/// Which of some records' proofs do not hold, ascending. Equations are kept of a few records at a time, and a sum that
/// does not vanish is halved.
fn search<E: Engine>(
    index: &IndexCommitment,
    weights: &[Vec<Fr>],
    check: impl Fn(usize) -> Result<Vec<Equation>> + Sync,
) -> Refusals {
    let mut bad = Refusals::new();
    for (run, weights) in weights.chunks(SEARCHED).enumerate() {
        let weighed = |i: usize| {
            let mut sum = Equation::default();
            let equations = check(run * SEARCHED + i)?;
            for (equation, weight) in equations.iter().zip(&weights[i]) {
                sum.add(equation, *weight);
            }
            Ok(sum)
        };
        let all = E::fold(
            weights.len(),
            |mut all: Vec<Result<Equation>>, i| {
                all.push(weighed(i));
                all
            },
            |mut all, more| {
                all.extend(more);
                all
            },
        );
        let mut left = Vec::new();
        for (i, equation) in (run * SEARCHED..).zip(all) {
            match equation {
                Ok(equation) => left.push((i, equation)),
                Err(reason) => bad.push((i, reason)),
            }
        }
        bisect::<E>(index, &left, &mut bad);
    }
    bad.sort_unstable_by_key(|(i, _)| *i);
    bad
}

/// What `run` refuses of each chunk, numbered through.
fn chunks<T>(items: &[T], mut run: impl FnMut(&[T]) -> Refusals) -> Refusals {
    let mut bad = Refusals::new();
    for (k, chunk) in items.chunks(CHUNK).enumerate() {
        let numbered = |(i, reason)| (k * CHUNK + i, reason);
        bad.extend(run(chunk).into_iter().map(numbered));
    }
    bad
}

/// Halves a sum that does not vanish until the bad ones are found.
fn bisect<E: Engine>(index: &IndexCommitment, equations: &[(usize, Equation)], bad: &mut Refusals) {
    let mut sum = Equation::default();
    for (_, equation) in equations {
        sum.add(equation, Fr::ONE);
    }
    if sum.holds::<E>(&index.points) {
        return;
    }
    match equations {
        [(i, _)] => bad.push((*i, Error::Rejected)),
        _ => {
            let (low, high) = equations.split_at(equations.len() / 2);
            bisect::<E>(index, low, bad);
            bisect::<E>(index, high, bad);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::bases;
    use crate::group::encode_scalar;
    use crate::index::Layout;

    /// Items that say so many times H is the neutral element.
    struct Errors;

    impl Kind for Errors {
        type Item<'a> = Fr;

        fn transcript<O: Oracle>(&self, _: &[u8; 32], _: &[Fr]) -> Transcript<O> {
            Transcript::new("test")
        }

        fn absorb<O: Oracle>(&self, transcript: &mut Transcript<O>, errors: &[Fr]) {
            errors.iter().for_each(|e| transcript.scalar("error", e));
        }

        fn equations(&self) -> usize {
            1
        }

        fn check<E: Engine>(&self, _: &IndexCommitment, h: &Fr) -> Result<Vec<Equation>> {
            Ok(vec![Equation {
                h: *h,
                ..Equation::default()
            }])
        }
    }

    fn of(chunks: &[&[Fr]]) -> Batch<Errors> {
        let index = IndexCommitment {
            layout: Layout::new(1).unwrap(),
            dimension: 1,
            points: vec![bases::<Plain>().u],
        };
        let mut batch = Batch::new(Arc::new(index), Errors);
        for chunk in chunks {
            assert_eq!(batch.add(chunk), []);
        }
        batch
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
