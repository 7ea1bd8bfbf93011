//! The equations of many proofs in one sum, in an amount of memory that does not depend on their number:
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
//!     sample: None,
//! };
//! let [c_seed, beacon, slot, context, cq, htopk] = [1u8, 2, 3, 4, 5, 6].map(Fr::from);
//! let record = Record { slot: Slot { c_seed, beacon, slot }, context, cq, htopk };
//! let mut batch: Batch = Batch::new(Arc::new(index), parameters);
//! // A tenant without noise has no noise proof, and these are not the bytes of a query proof.
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

/// The number of records in a chunk: large enough that a sum over their own points costs little per record.
pub const CHUNK: usize = 64;
/// The number of records with separate equations during the search for false proofs in a chunk.
const SEARCHED: usize = 8;

/// The numbers of the refused proofs, ascending, with the reasons.
pub type Failures = Vec<(usize, Error)>;

/// A growing sum of equations: factors of the points that all records share, and one point for all other terms.
#[derive(Default)]
pub struct Sum {
    /// Has no points of its own.
    shared: Equation,
    own: G1Projective,
}

impl Sum {
    /// Adds the weighted sum of a chunk's equations. The points that belong only to this chunk become one point.
    pub fn add<E: Engine>(&mut self, mut chunk: Equation) {
        let (points, factors): (Vec<_>, Vec<_>) =
            std::mem::take(&mut chunk.points).into_iter().unzip();
        self.own += E::msm(&points, &factors);
        self.shared.merge(chunk);
    }

    /// Whether the sum is the neutral element; `index` are the points that the index factors multiply.
    pub fn holds<E: Engine>(&self, index: &[G1Affine]) -> bool {
        self.own + self.shared.evaluate::<E>(index) == G1Projective::ZERO
    }
}

/// The sum of `count` records' equations under their weights, and the records without equations.
pub fn weigh<E: Engine>(
    weights: &[Vec<Fr>],
    check: impl Fn(usize) -> Result<Vec<Equation>> + Sync,
) -> (Equation, Failures) {
    let join = |mut all: (Equation, Failures), more: (Equation, Failures)| {
        all.0.merge(more.0);
        all.1.extend(more.1);
        all
    };
    let add = |mut all: (Equation, Failures), i: usize| {
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

/// Proofs of one kind, about one index or table, that share one sum.
pub trait Kind {
    /// A statement with its proof.
    type Item<'a>: Sync;

    /// A transcript that has absorbed everything that all items share; `index` is the digest of the index or table.
    fn transcript<O: Oracle>(&self, index: &[u8; 32]) -> Transcript<O>;

    /// Absorbs items with their proofs. The weights are drawn afterwards, when all of this data is fixed.
    fn absorb<O: Oracle>(&self, transcript: &mut Transcript<O>, items: &[Self::Item<'_>]);

    /// The number of equations of one item.
    fn equations(&self) -> usize;

    /// The equations of an item's proof.
    fn check<E: Engine>(
        &self,
        index: &IndexCommitment,
        item: &Self::Item<'_>,
    ) -> Result<Vec<Equation>>;
}

/// Verifies many proofs, one chunk at a time. Between chunks it stores the transcript and a [`Sum`].
pub struct Batch<K, O = Hash, E = Plain> {
    kind: K,
    index: Arc<IndexCommitment>,
    digest: [u8; 32],
    transcript: Transcript<O>,
    sum: Sum,
    engine: PhantomData<E>,
}

impl<K: Kind + Sync, O: Oracle, E: Engine> Batch<K, O, E> {
    pub fn new(index: Arc<IndexCommitment>, kind: K) -> Self {
        let digest = index.digest();
        Self {
            transcript: kind.transcript(&digest),
            kind,
            index,
            digest,
            sum: Sum::default(),
            engine: PhantomData,
        }
    }

    /// Adds items, at most about [`CHUNK`] of them, and returns the malformed proofs with the reasons. [`Self::holds`] decides
    /// about all other proofs at once, and [`Self::search`] about each of them.
    pub fn add(&mut self, items: &[K::Item<'_>]) -> Failures {
        let (kind, index) = (&self.kind, &self.index);
        let weights = kind.weights(&mut self.transcript, items);
        let (chunk, refused) = weigh::<E>(&weights, |i| kind.check::<E>(index, &items[i]));
        self.sum.add::<E>(chunk);
        refused
    }

    /// Whether every added proof that was not refused is valid.
    pub fn holds(&self) -> bool {
        self.sum.holds::<E>(&self.index.points)
    }

    /// The false or malformed proofs among some items, with the reasons. The result does not depend on earlier items.
    pub fn search(&self, items: &[K::Item<'_>]) -> Failures {
        let (kind, index) = (&self.kind, &self.index);
        let weights = kind.weights(&mut kind.transcript::<O>(&self.digest), items);
        search::<E>(index, &weights, |i| kind.check::<E>(index, &items[i]))
    }

    /// The number of points and scalars that are stored between chunks.
    pub fn retained(&self) -> usize {
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

/// The weights of items, drawn after the items and all earlier data.
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
    let mut transcript: Transcript = kind.transcript(&index.digest());
    let mut sum = Equation::default();
    let weights = kind.weights(&mut transcript, &items);
    for (equation, weight) in kind.check::<E>(index, &items[0])?.iter().zip(&weights[0]) {
        sum.add(equation, *weight);
    }
    sum.verify::<E>(&index.points)
}

/// The refused items, ascending, with the reasons. All proofs are verified in one sum, chunk by chunk; if the sum is not
/// neutral, each chunk is searched.
pub fn verify_all<K: Kind + Clone + Sync, E: Engine>(
    index: &Arc<IndexCommitment>,
    kind: &K,
    items: &[K::Item<'_>],
) -> Failures {
    let mut batch: Batch<K, Hash, E> = Batch::new(Arc::clone(index), kind.clone());
    let refused = chunks(items, |chunk| batch.add(chunk));
    match batch.holds() {
        true => refused,
        false => chunks(items, |chunk| batch.search(chunk)),
    }
}

/// The refused proofs, ascending. The search stores the equations of a few records at a time, and halves a sum that is not
/// neutral.
fn search<E: Engine>(
    index: &IndexCommitment,
    weights: &[Vec<Fr>],
    check: impl Fn(usize) -> Result<Vec<Equation>> + Sync,
) -> Failures {
    let mut bad = Failures::new();
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

/// The failures of `run` in all chunks, numbered over the whole list.
fn chunks<T>(items: &[T], mut run: impl FnMut(&[T]) -> Failures) -> Failures {
    let mut bad = Failures::new();
    for (k, chunk) in items.chunks(CHUNK).enumerate() {
        let numbered = |(i, reason)| (k * CHUNK + i, reason);
        bad.extend(run(chunk).into_iter().map(numbered));
    }
    bad
}

/// Halves a sum that is not neutral until it has found the false proofs.
fn bisect<E: Engine>(index: &IndexCommitment, equations: &[(usize, Equation)], bad: &mut Failures) {
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

    /// Items with the equation: this multiple of H is the neutral element.
    struct Errors;

    impl Kind for Errors {
        type Item<'a> = Fr;

        fn transcript<O: Oracle>(&self, _: &[u8; 32]) -> Transcript<O> {
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

    /// A prover that knew the weight of a later chunk in advance could cancel an earlier chunk's error.
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
        // The content that the second chunk would need, under the weight that another content has.
        let fit = -first * second.inverse().unwrap();
        assert_ne!(encode_scalar(&fit), encode_scalar(&guess));
        assert!(!of(&[&[Fr::ONE], &[fit]]).holds());
        // Under the actual weights the errors cancel: the equation is the one above.
        let known = of(&[&[Fr::ONE], &[guess]]);
        assert_eq!(known.sum.shared.h, first + second * guess);
    }
}
