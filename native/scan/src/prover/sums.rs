//! The prover's side of a sumcheck: the coefficients of each round's polynomial. `docs/scan/sumcheck.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::dispatch;
use ragaudit_core::lanes::Lanes;

use crate::expr::Expr;
use crate::group::Fr;
use crate::mle::Weights;
use crate::numbers::half;
use crate::prover::known::Known;
use crate::prover::polynomials::{interpolation, of_degree_two};
use crate::prover::rounds::{weight_runs, Gate, Rounds, Weighing};
use crate::prover::weighted::{Weighted, Weighting};

/// What a prover knows when a round begins.
pub(crate) struct Round<'r> {
    pub(crate) known: Known<'r>,
    claim: &'r Expr,
    t: Fr,
}

impl<'r> Round<'r> {
    pub(crate) fn new(known: Known<'r>, claim: &'r Expr, t: Fr) -> Self {
        Self { known, claim, t }
    }

    /// q(0) of the round polynomial q without eq's factor, from q(1) and the claim (1 - t) q(0) + t q(1). (t = 1, once in
    /// r, would leave it open.)
    pub(crate) fn at_zero(&self, one: Fr) -> Fr {
        let value = self.known.value(self.claim);
        (value - self.t * one) * (Fr::ONE - self.t).inverse().unwrap_or_default()
    }
}

/// Tables that are summed, round by round.
pub(crate) trait Sums {
    /// c_1, .., c_degree of the round's polynomial.
    fn coefficients(&mut self, round: &Round) -> Vec<Fr>;

    /// Binds the lowest variable.
    fn bind(&mut self, r: Fr);

    /// The tables at the point, once all variables are bound.
    fn finals(&self) -> Vec<Fr>;
}

/// Of a gate over tables.
pub(crate) fn of_gate<'g>(
    gate: impl Gate + 'g,
    degree: usize,
    tau: &[Fr],
    tables: Vec<Vec<Fr>>,
) -> Box<dyn Sums + 'g> {
    dispatch!(l => Box::new(OfGate {
        l,
        rounds: Rounds::new(l, gate, degree, tables),
        weights: Weights::new(tau.get(1..).unwrap_or_default()),
        to_coefficients: interpolation(degree),
    }))
}

struct OfGate<L: Lanes<Fr>, G> {
    l: L,
    rounds: Rounds<L, Vec<Vec<Fr>>, G>,
    weights: Weights,
    to_coefficients: Vec<Vec<Fr>>,
}

impl<L: Lanes<Fr>, G: Gate> Sums for OfGate<L, G> {
    fn coefficients(&mut self, round: &Round) -> Vec<Fr> {
        let runs = weight_runs(self.l, &self.weights.low);
        let mut values = self.rounds.sums(Weighing {
            runs: &runs,
            outer: Some(&self.weights.high),
        });
        self.weights.bind();
        values.insert(0, round.at_zero(values[0]));
        let dot = |row: &Vec<Fr>| row.iter().zip(&values).map(|(a, b)| *a * b).sum();
        self.to_coefficients[1..].iter().map(dot).collect()
    }

    fn bind(&mut self, r: Fr) {
        self.rounds.bind(r);
    }

    fn finals(&self) -> Vec<Fr> {
        let first = |table: &Vec<Fr>| table.first().copied().unwrap_or_default();
        self.rounds.values().iter().map(first).collect()
    }
}

/// A plain sum of tables, each with what multiplies it.
pub(crate) fn of_products(variables: usize, tables: Vec<(Weighting, Vec<Fr>)>) -> Box<dyn Sums> {
    let tables = tables.into_iter();
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
        of_degree_two(round.at_zero(one), one, two).to_vec()
    }

    fn bind(&mut self, r: Fr) {
        self.left -= 1;
        self.parts.iter_mut().for_each(|part| part.bind(r));
    }

    fn finals(&self) -> Vec<Fr> {
        self.parts.iter().map(Weighted::value).collect()
    }
}
