//! The prover's sums over the records of blocks, for the forms that runs over pairs prove.
use ark_ff::AdditiveGroup;
use ragaudit_scan_protocol::coalition::pairs::LinearForms;
use rayon::prelude::*;

use crate::coalition::inputs::Witness;
use crate::group::Fr;
use crate::index::COMPONENT;
use crate::numbers::from_small;
use ragaudit_scan_protocol::coalition::statement::{CoalitionStatement, Shape};

pub(crate) fn of_records(
    statement: &CoalitionStatement,
    shape: &Shape,
    witness: &Witness,
    eq: &[Vec<Fr>; 2],
    factors: &[Vec<Fr>],
) -> LinearForms {
    let records = 1 << shape.record_variables;
    let sums = |variables: usize, eq: &[Fr], add: &(dyn Fn(usize, Fr, &mut [Fr]) + Sync)| {
        let mut out = vec![Fr::ZERO; (records >> shape.block_variables) << variables];
        out.par_chunks_mut(1 << variables)
            .enumerate()
            .for_each(|(b, run)| {
                for (il, e) in eq.iter().enumerate() {
                    add((b << shape.block_variables) + il, *e, run);
                }
            });
        out
    };
    let component = |i: usize, e: Fr, run: &mut [Fr]| {
        let width = shape.components();
        let multiples: Vec<Fr> = (-7..=7).map(|v| from_small(v) * e).collect();
        let row = witness
            .vectors
            .get(i * width..(i + 1) * width)
            .unwrap_or_default();
        for (sum, v) in run.iter_mut().zip(row) {
            *sum += multiples[(v + COMPONENT) as usize];
        }
    };
    let label = |i: usize, e: Fr, run: &mut [Fr]| {
        if let Some(account) = statement.accounts.get(i) {
            run[witness.labels[*account]] += e;
        }
    };
    let class = |i: usize, e: Fr, run: &mut [Fr]| run[witness.classes[i]] += e;
    let both = |variables: usize, add: &(dyn Fn(usize, Fr, &mut [Fr]) + Sync)| {
        [0, 1].map(|k| sums(variables, &eq[k], add))
    };
    let classes = both(shape.class_variables, &class);
    let thresholds = thresholds(&classes, factors);
    LinearForms {
        components: both(shape.component_variables, &component),
        labels: both(shape.account_variables, &label),
        classes,
        thresholds,
    }
}

/// The weights of the thresholds of two classes u, v, at u + 2^class_variables v.
fn thresholds(classes: &[Vec<Fr>; 2], factors: &[Vec<Fr>]) -> Vec<Fr> {
    let room = classes[0].len() / factors.len();
    let right = apply(factors, &classes[1]);
    let (left, right): (Vec<_>, Vec<_>) = (
        classes[0].chunks(room).collect(),
        right.chunks(room).collect(),
    );
    let mut out = vec![Fr::ZERO; room * room];
    out.par_chunks_mut(room).enumerate().for_each(|(v, run)| {
        for (left, right) in left.iter().zip(&right).filter(|(_, r)| r[v] != Fr::ZERO) {
            run.iter_mut()
                .zip(*left)
                .for_each(|(sum, l)| *sum += *l * right[v]);
        }
    });
    out
}

/// sum over J of factors[I][J] table(.., J), for every I.
pub(crate) fn apply(factors: &[Vec<Fr>], table: &[Fr]) -> Vec<Fr> {
    let width = table.len() / factors.len();
    let mut out = vec![Fr::ZERO; table.len()];
    out.par_chunks_mut(width)
        .zip(factors)
        .for_each(|(run, row)| {
            for (part, f) in table
                .chunks(width)
                .zip(row)
                .filter(|(_, f)| **f != Fr::ZERO)
            {
                run.iter_mut().zip(part).for_each(|(sum, x)| *sum += *x * f);
            }
        });
    out
}

pub(crate) fn dot(a: &[Fr], b: &[Fr]) -> Fr {
    a.par_iter().zip(b).map(|(a, b)| *a * b).sum()
}
