//! The inputs of the prover of an answer, and the columns' values that it computes from them.
use std::sync::Arc;

use ragaudit_field_simd::selection::ScoreWindow;
use ragaudit_scan_protocol::prover::Blindings;
use ragaudit_scan_protocol::query::Private;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};
use crate::group::Fr;
use crate::hidden_query::{count_components, count_scores, HiddenQuery, SCORE};
use crate::index::IndexKey;
use crate::numbers::from_small;
use crate::prover::columns::{add_counts, count};
use crate::ranges::LIMB_BITS;
use crate::session::Opening;
use ragaudit_scan_protocol::query::statement::*;

/// The private side of an answer.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Answer {
    /// int4 components.
    pub query: Vec<i8>,
    pub query_salt: Fr,
    /// In the order of htopk.
    pub positions: Vec<i64>,
    pub list_salt: Fr,
    /// The score of every position, by the rows of the index commitment.
    pub scores: Vec<i64>,
}

impl Answer {
    pub(crate) fn hidden_query(&self) -> HiddenQuery<'_> {
        HiddenQuery {
            components: &self.query,
            salt: self.query_salt,
        }
    }
}

/// The prover's columns and values.
#[derive(Default, Clone)]
pub(crate) struct Witness {
    pub(crate) quantised: Vec<i64>,
    /// The scores that count: equal to `quantised` without a sample.
    pub(crate) scored: Vec<i64>,
    pub(crate) selected: Vec<i64>,
    pub(crate) distances: Vec<i64>,
    pub(crate) noised: Vec<i64>,
    pub(crate) order: Vec<i64>,
}

pub(crate) fn key(noised: i64, position: i64, variables: usize) -> i64 {
    (noised << variables) + (1 << variables) - 1 - position
}

impl Witness {
    pub(crate) fn new(
        statement: &QueryStatement,
        window: ScoreWindow,
        answer: &Answer,
        [noise, sample]: [Option<&[i64]>; 2],
    ) -> Result<Self> {
        let capacity = statement.index.layout.capacity;
        let variables = statement.index.layout.variables;
        let beyond = |values: Option<&[i64]>| values.map_or(capacity, <[i64]>::len);
        if answer.scores.len() != capacity || beyond(noise) < capacity || beyond(sample) < capacity
        {
            let actual = format!(
                "{} scores, {} noise values, {} coins",
                answer.scores.len(),
                beyond(noise),
                beyond(sample)
            );
            return Err(Error::invalid(
                "answer",
                format!("{capacity} of each kind"),
                actual,
            ));
        }
        if answer.query.len() != statement.index.dimension {
            let expected = format!("{} components", statement.index.dimension);
            return Err(Error::invalid(
                "query",
                expected,
                format!("{} components", answer.query.len()),
            ));
        }
        let inside = |p: &i64| usize::try_from(*p).is_ok_and(|p| p < capacity);
        if answer.positions.len() != statement.listed || !answer.positions.iter().all(inside) {
            return Err(Error::Unsatisfied(
                "the listed positions are not positions of the index".to_owned(),
            ));
        }
        let maximum = SCORE * statement.index.dimension as i64;
        if answer.scores.iter().any(|s| s.abs() > maximum) {
            return Err(Error::Unsatisfied(format!(
                "the magnitude of a score is above {maximum}"
            )));
        }
        let quantised: Vec<i64> = answer
            .scores
            .iter()
            .map(|s| window.quantise(*s as i32))
            .collect();
        let scored = match sample {
            Some(sample) => quantised.iter().zip(sample).map(|(u, k)| u * k).collect(),
            None => quantised.clone(),
        };
        let keys: Vec<i64> = (0..capacity)
            .map(|p| {
                let noise = noise.map_or(0, |noise| noise[p]);
                key(scored[p] + noise, p as i64, variables)
            })
            .collect();
        let listed: Vec<i64> = answer.positions.iter().map(|p| keys[*p as usize]).collect();
        let minimum = listed[listed.len() - 1];
        let mut selected = vec![0; capacity];
        answer
            .positions
            .iter()
            .for_each(|p| selected[*p as usize] = 1);
        let distances = keys
            .iter()
            .zip(&selected)
            // With b = 0 least - 1 - k.
            .map(|(k, b)| (k - minimum) ^ (b - 1))
            .collect();
        Ok(Self {
            quantised,
            scored,
            selected,
            distances,
            noised: answer
                .positions
                .iter()
                .map(|p| keys[*p as usize] >> variables)
                .collect(),
            order: listed
                .windows(2)
                .map(|pair| pair[0] - pair[1] - 1)
                .collect(),
        })
    }
}

impl Witness {
    /// The list as it is sent.
    pub(crate) fn listed(&self, answer: &Answer, key_limbs: usize) -> Vec<Fr> {
        let mut listed = vec![answer.list_salt];
        listed.extend(answer.positions.iter().map(|p| from_small(*p)));
        listed.extend(self.noised.iter().map(|y| from_small(*y)));
        listed.extend(limbs_of(&self.order, key_limbs).map(from_small));
        listed
    }

    /// The columns of limbs of the distances. Counts their lookups, and those of the order's limbs, in the range table.
    pub(crate) fn distance_limbs(&self, key_limbs: usize, range: &mut [i64]) -> Vec<Vec<i64>> {
        let distance: Vec<Vec<i64>> = (0..key_limbs)
            .map(|k| self.distances.iter().map(|d| limb(*d, k)).collect())
            .collect();
        let limbs = distance.iter().flatten().copied();
        let all = limbs.chain(limbs_of(&self.order, key_limbs));
        all.for_each(|v| count(range, v));
        distance
    }
}

/// The openings of the earlier proofs' columns: each record's noise, and the sampled positions.
pub(crate) struct Openings<'a> {
    pub(crate) noise: Vec<&'a Arc<Opening>>,
    pub(crate) sample: Option<&'a Arc<Opening>>,
}

impl Openings<'_> {
    /// Noise and sampled positions of one record.
    pub(crate) fn values(&self, record: usize) -> [Option<&[i64]>; 2] {
        [self.noise.get(record), self.sample.as_ref()].map(|o| o.map(|o| &o.values[..]))
    }
}

/// The private inputs of one run, record by record.
pub(crate) struct Secret<'a> {
    pub(crate) answers: &'a [Answer],
    pub(crate) witnesses: &'a [Witness],
    pub(crate) openings: Openings<'a>,
    pub(crate) key: &'a IndexKey,
}

impl<'a> Secret<'a> {
    /// The private values in the protocol's form.
    pub(crate) fn private(&self, statement: &QueryStatement, index: Blindings<'a>) -> Private<'a> {
        let scores = |answer: &Answer| {
            Arc::new(Opening {
                values: answer.scores.clone(),
                blindings: Vec::new(),
            })
        };
        Private {
            hidden_queries: self.answers.iter().map(Answer::hidden_query).collect(),
            scores: self.answers.iter().map(scores).collect(),
            noise: self.openings.noise.iter().map(|o| Arc::clone(o)).collect(),
            sample: self.openings.sample.cloned(),
            columns: self.columns(statement).in_order(),
            listed: self.listed(statement),
            index,
        }
    }

    /// The lists as they are sent.
    fn listed(&self, statement: &QueryStatement) -> Vec<Fr> {
        let mut listed = Vec::new();
        for (answer, witness) in self.answers.iter().zip(self.witnesses) {
            listed.extend(witness.listed(answer, statement.key_limbs()));
        }
        listed
    }

    /// The values of the columns, with the multiplicities of the tables.
    fn columns(&self, statement: &QueryStatement) -> Columns<Vec<i64>> {
        let (key_limbs, dimension) = (statement.key_limbs(), statement.index.dimension);
        let mut range = vec![0; 1 << LIMB_BITS];
        let (mut score_rows, mut nibbles) = (Vec::new(), Vec::new());
        let mut records = Vec::new();
        for (answer, witness) in self.answers.iter().zip(self.witnesses) {
            let distance = witness.distance_limbs(key_limbs, &mut range);
            add_counts(&mut score_rows, &count_scores(&answer.scores, dimension));
            add_counts(&mut nibbles, &count_components(&answer.query));
            records.push(RecordColumns {
                quantised: witness.quantised.clone(),
                scored: self.openings.sample.map(|_| witness.scored.clone()),
                selected: witness.selected.clone(),
                distance,
            });
        }
        Columns {
            records,
            score_rows,
            range,
            nibbles,
        }
    }
}

pub(crate) fn limb(x: i64, k: usize) -> i64 {
    x >> (LIMB_BITS * k) & 0xffff
}

pub(crate) fn limbs_of(values: &[i64], limbs: usize) -> impl Iterator<Item = i64> + '_ {
    let of = move |d: &i64| {
        let d = *d;
        (0..limbs).map(move |k| limb(d, k))
    };
    values.iter().flat_map(of)
}
