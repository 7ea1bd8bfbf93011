//! The prover's side of a sumcheck: the coefficients of each round's polynomial. `docs/scan/sumcheck.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::dispatch;
use ragaudit_field_simd::lanes::Lanes;
use ragaudit_scan_protocol::prover::{Round, Sums, Weighting};

use crate::group::Fr;
use crate::mle::Weights;
use crate::numbers::half;
use crate::prover::integers::{Integers, Residues};
use crate::prover::polynomials::{coefficients, of_degree_two};
use crate::prover::rounds::{weight_runs, Kernel, Rounds, Source, Weighing};
use crate::prover::weighted::{Factor, Weighted};

/// q(0) of the round polynomial q, from its values at 1, 2, .. and the claim. (A weight of 0, with probability 1 / r, would
/// leave it undetermined.)
pub(crate) fn at_zero(round: &Round, others: &[Fr]) -> Fr {
    let [first, weights @ ..] = &round.digit[..] else {
        unreachable!("a digit has values")
    };
    let rest: Fr = weights.iter().zip(others).map(|(w, q)| *w * q).sum();
    let value = round.known.value(round.claim);
    (value - rest) * first.inverse().unwrap_or_default()
}

/// The sums of a gate over tables.
pub(crate) fn of_gate<'g>(
    gate: impl Kernel + 'g,
    degree: usize,
    tau: &[Fr],
    tables: Vec<Vec<Fr>>,
) -> Box<dyn Sums + 'g> {
    dispatch!(l => Box::new(OfGate::new(l, gate, degree, tau, tables)))
}

/// The same over integers.
pub(crate) fn of_integers<'g>(
    gate: impl Kernel + 'g,
    degree: usize,
    tau: &[Fr],
    tables: Integers,
) -> Box<dyn Sums + 'g> {
    dispatch!(l => Box::new(OfGate::new(l, gate, degree, tau, Residues::new(l, tables))))
}

struct OfGate<L: Lanes<Fr>, S, G> {
    l: L,
    rounds: Rounds<L, S, G>,
    weights: Weights,
}

impl<L: Lanes<Fr>, S: Source<L>, G: Kernel> OfGate<L, S, G> {
    fn new(l: L, gate: G, degree: usize, tau: &[Fr], tables: S) -> Self {
        Self {
            l,
            rounds: Rounds::new(l, gate, degree, tables),
            weights: Weights::new(tau.get(1..).unwrap_or_default()),
        }
    }
}

impl<L: Lanes<Fr>, S: Source<L>, G: Kernel> Sums for OfGate<L, S, G> {
    fn coefficients(&mut self, round: &Round) -> Vec<Fr> {
        let runs = weight_runs(self.l, &self.weights.low);
        let mut values = self.rounds.sums(Weighing {
            runs: &runs,
            outer: Some(&self.weights.high),
        });
        self.weights.bind();
        values.insert(0, at_zero(round, &values));
        coefficients(&values)
    }

    fn bind(&mut self, r: Fr) {
        self.rounds.bind(r);
    }

    fn finals(&self) -> Vec<Fr> {
        let first = |table: &Vec<Fr>| table.first().copied().unwrap_or_default();
        self.rounds.values().iter().map(first).collect()
    }
}

/// The plain sum of tables, each with its factor.
pub(crate) fn of_products(variables: usize, tables: Vec<(Weighting, Vec<Fr>)>) -> Box<dyn Sums> {
    let tables = tables.into_iter().map(|(w, table)| (Factor::of(w), table));
    dispatch!(l => Box::new(OfProducts {
        parts: tables.map(|(w, table)| Weighted::new(l, variables, w, table)).collect(),
        left: variables,
    }))
}

struct OfProducts<L: Lanes<Fr>> {
    parts: Vec<Weighted<L>>,
    /// Variables that are not bound.
    left: usize,
}

impl<L: Lanes<Fr>> Sums for OfProducts<L> {
    fn coefficients(&mut self, round: &Round) -> Vec<Fr> {
        let scale = half().pow([(self.left - 1) as u64]);
        let (mut one, mut two) = (Fr::ZERO, Fr::ZERO);
        for part in &mut self.parts {
            let sums = part.sums();
            one += sums[0] * scale;
            two += sums[1] * scale;
        }
        of_degree_two(at_zero(round, &[one, two]), one, two).to_vec()
    }

    fn bind(&mut self, r: Fr) {
        self.left -= 1;
        self.parts.iter_mut().for_each(|part| part.bind(r));
    }

    fn finals(&self) -> Vec<Fr> {
        self.parts.iter().map(Weighted::value).collect()
    }
}
