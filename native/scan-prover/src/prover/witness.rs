//! The answers of a prover's secrets to the protocols' requests; each request has its own file.
use ark_ff::AdditiveGroup;
use ragaudit_field_simd::poseidon::State;
use ragaudit_scan_protocol::expr::Var;
use ragaudit_scan_protocol::prover::{
    Blindings, Combination, Leaves, Messages, ProverWitness, Recomputed, SboxColumns, Sum, Sums,
    Tree, Weighting,
};
use rayon::prelude::*;

use crate::claims::{Bound, Column, Opening};
use crate::equation::add_vector;
use crate::gates::Gate;
use crate::group::{Fr, G1Affine, G1Projective, WIDTH};
use crate::index::IndexCommitment;
use crate::mle::{Weight, Weights};
use crate::numbers::from_small;
use crate::prover::integers::Integers;
use crate::prover::messages::Values;
use crate::prover::opening::Combined;
use crate::prover::queries::{commit_query, commit_scores};
use crate::prover::{
    columns, fractional_sumcheck, gates, layers, linear_forms, sbox_columns, sums,
};
use crate::secrets::{commit_single, Secrets};
use crate::small;

impl ProverWitness for Secrets {
    fn value(&self, var: Var) -> Fr {
        Secrets::value(self, var)
    }

    fn opened(&self, single: usize) -> (Fr, Fr) {
        self.singles[single]
    }

    fn message(&mut self, values: &[Fr]) -> G1Projective {
        Secrets::message(self, values)
    }

    fn single(&mut self, value: Fr) -> G1Projective {
        Secrets::single(self, value)
    }

    fn passing(&mut self, value: Fr) -> (G1Projective, Fr) {
        let pair = (value, self.nonces.draw());
        (commit_single(pair), pair.1)
    }

    fn columns(
        &mut self,
        columns: &[(usize, Bound)],
        values: Vec<Vec<i64>>,
        row_variables: usize,
    ) -> Vec<(Vec<G1Affine>, Opening)> {
        let rows_of = |entries: usize| entries.div_ceil(1 << row_variables);
        let blindings = columns
            .iter()
            .map(|(entries, _)| self.nonces.draw_many(rows_of(*entries)));
        let openings: Vec<Opening> = values
            .into_iter()
            .zip(blindings)
            .map(|(values, blindings)| Opening { values, blindings })
            .collect();
        let secrets: Vec<columns::Secret> = openings
            .iter()
            .zip(columns)
            .map(|(opening, (_, bound))| columns::Secret {
                values: &opening.values,
                blindings: &opening.blindings,
                bound: *bound,
            })
            .collect();
        let rows = columns::commit(&secrets, 1 << row_variables);
        rows.into_iter().zip(openings).collect()
    }

    fn combine(&self, columns: &[(&[i64], Fr)]) -> Vec<Fr> {
        let length = columns.iter().map(|(v, _)| v.len()).max().unwrap_or(0);
        let mut out = vec![Fr::ZERO; length];
        small::combine(Fr::ZERO, columns, &mut out);
        out
    }

    fn dot(&self, values: &[i64], weights: &[Fr]) -> Fr {
        small::dot(values, weights)
    }

    fn rows(&self, values: &[i64], weights: &[Fr]) -> Vec<Fr> {
        let rows = values.par_chunks(weights.len());
        rows.map(|row| small::dot(row, weights)).collect()
    }

    fn inner(&self, a: &[Fr], b: &[Fr]) -> Fr {
        linear_forms::dot(a, b)
    }

    fn apply(&self, factors: &[Vec<Fr>], table: &[Fr]) -> Vec<Fr> {
        linear_forms::apply(factors, table)
    }

    fn functional(&self, weight: &Weight, values: &[i64]) -> Fr {
        let eq = Weights::new(&weight.point);
        let stride = weight.coefficients.len();
        let values = &values[..values.len().min(weight.items * stride)];
        if let [coefficient] = weight.coefficients[..] {
            return eq.dot(values) * coefficient;
        }
        let parts = weight.coefficients.iter().enumerate().map(|(o, c)| {
            let part: Vec<i64> = values.iter().skip(o).step_by(stride).copied().collect();
            eq.dot(&part) * c
        });
        parts.sum()
    }

    fn of_gate<'g>(
        &self,
        gate: Gate<'g>,
        degree: usize,
        tau: &[Fr],
        tables: Vec<Vec<Fr>>,
    ) -> Box<dyn Sums + 'g> {
        gates::of_gate(gate, degree, tau, tables)
    }

    fn of_integers<'g>(
        &self,
        gate: Gate<'g>,
        degree: usize,
        tau: &[Fr],
        tables: &[Vec<Sum>],
    ) -> Option<Box<dyn Sums + 'g>> {
        match gate {
            // The gate with the largest tables of a run.
            Gate::Choice => {
                let tables = Integers::interleaved(tables)?;
                Some(sums::of_integers(gates::Choice, degree, tau, tables))
            }
            _ => None,
        }
    }

    fn of_products(&self, variables: usize, tables: Vec<(Weighting, Vec<Fr>)>) -> Box<dyn Sums> {
        sums::of_products(variables, tables)
    }

    fn tree<'t>(
        &self,
        columns: &[Column],
        leaves: Leaves<'t>,
        low_memory: Option<Recomputed>,
    ) -> Box<dyn Tree + 't> {
        let known = crate::prover::Known::new(self, columns);
        let depth = leaves.depth;
        let leaves = fractional_sumcheck::Leaves::new(leaves);
        Box::new(layers::Layers::new(leaves, &known, depth, low_memory))
    }

    fn sbox_columns(
        &self,
        variables: usize,
        count: usize,
        state: &(dyn Fn(usize) -> State + Sync),
    ) -> Box<dyn SboxColumns> {
        Box::new(sbox_columns::SboxColumns::new(variables, count, state))
    }

    fn messages(&self, size: usize) -> Box<dyn Messages> {
        let mut values = self.values.clone();
        values.resize(size, Fr::ZERO);
        Box::new(Values(values))
    }

    fn combined_message(&self, factors: &[Fr]) -> (Vec<Fr>, Fr) {
        let mut vector = vec![Fr::ZERO; WIDTH];
        let mut blinding = Fr::ZERO;
        let runs = self.values.chunks(WIDTH).zip(&self.message_blindings);
        for ((run, b), e) in runs.zip(factors) {
            add_vector(&mut vector, run, *e);
            blinding += *b * e;
        }
        (vector, blinding)
    }

    fn combined_rows(&self, columns: &[Column], of: Combination) -> (Vec<Fr>, Fr) {
        let columns = columns.iter().zip(of.factors.iter().copied());
        let counted = columns.filter(|(_, f)| *f != Fr::ZERO);
        let mut sum = Combined::new(of.length, of.rows, counted);
        sum.blinding += of.linked;
        if let Some((functional, rows, factor)) = of.table {
            sum.add_table(functional, &of.rows[..rows], factor);
        }
        (sum.vector, sum.blinding)
    }

    fn query(&mut self, query: &[i8], salt: &Fr) -> (G1Projective, Fr) {
        let blinding = self.nonces.draw();
        (commit_query(query, salt, &blinding), blinding)
    }

    fn scores(
        &mut self,
        index: &IndexCommitment,
        queries: &[(&[i8], Fr)],
        rows: &[Fr],
        blindings: Blindings,
    ) -> (G1Projective, [Fr; 2]) {
        let own = self.nonces.draw();
        let component = |j: usize| {
            let of_query = |(query, f): &(&[i8], Fr)| from_small(i64::from(query[j])) * f;
            queries.iter().map(of_query).sum::<Fr>()
        };
        let components = (0..index.dimension).map(component);
        let factors: Vec<Fr> = components
            .flat_map(|x| rows.iter().map(move |e| x * e))
            .collect();
        let weighed = factors.par_iter().enumerate();
        let total = weighed.map(|(place, f)| blindings(place) * f).sum::<Fr>() + own;
        (commit_scores(index, queries, rows, own), [own, total])
    }
}
