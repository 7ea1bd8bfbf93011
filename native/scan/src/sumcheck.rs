//! Sumcheck with hidden round polynomials: `docs/scan/sumcheck.md`.
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;

use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::session::{half, Session};

/// Most tables of one sumcheck.
pub const MAX_TABLES: usize = 40;
const MAX_DEGREE: usize = 18;
const TASK: usize = 1 << 9;

/// What a sumcheck leaves to be shown: gate(tables at point) = claim.
pub struct Reduced {
    pub point: Vec<Fr>,
    pub claim: Expr,
    /// The tables at the point, for the prover.
    pub finals: Option<Vec<Fr>>,
}

/// Rows of the inverse of the Vandermonde matrix of 0..=degree: values to coefficients.
fn interpolation(degree: usize) -> Vec<Vec<Fr>> {
    // Column j holds the coefficients of the Lagrange polynomial of node j.
    let mut rows = vec![vec![Fr::ZERO; degree + 1]; degree + 1];
    for j in 0..=degree {
        let mut poly = vec![Fr::ONE];
        let mut scale = Fr::ONE;
        for m in (0..=degree).filter(|&m| m != j) {
            let node = Fr::from(m as u64);
            let mut next = vec![Fr::ZERO; poly.len() + 1];
            for (i, c) in poly.iter().enumerate() {
                next[i + 1] += c;
                next[i] -= node * c;
            }
            poly = next;
            scale *= Fr::from(j as u64) - node;
        }
        let inverse = scale.inverse().expect("nodes are distinct");
        for (row, c) in rows.iter_mut().zip(&poly) {
            row[j] = inverse * c;
        }
    }
    rows
}

/// Reduces sum over x of eq(tau, x) gate(tables(x)) = claim, for a gate of the given degree, to one point.
///
/// The factor of eq in the round's variable is left out of what is sent: q with (1 - t) q(0) + t q(1) = claim,
/// whose constant coefficient follows from the others, so that claim' = claim + sum of c_k (r^k - t).
pub fn sumcheck(
    session: &mut Session,
    label: &str,
    tau: &[Fr],
    mut claim: Expr,
    degree: usize,
    tables: Option<Vec<Vec<Fr>>>,
    gate: impl Fn(&[Fr]) -> Fr + Sync,
) -> Result<Reduced> {
    assert!(degree <= MAX_DEGREE && tables.as_ref().is_none_or(|t| t.len() <= MAX_TABLES));
    let to_coefficients = interpolation(degree);
    let mut tables = tables;
    // eq over the variables below the round's.
    let mut weights = match &tables {
        Some(_) => crate::mle::eq_table(&tau[..tau.len().saturating_sub(1)]),
        None => Vec::new(),
    };
    let mut point = vec![Fr::ZERO; tau.len()];
    for i in (0..tau.len()).rev() {
        let held = session.value(&claim).unwrap_or_default();
        let coefficients = tables.as_ref().map(|tables| {
            let mut values = round_values(tables, &weights, degree, &gate);
            // q(0) follows from the claim; a true one is what the tables give.
            values[0] = (Fr::ONE - tau[i]).inverse().map_or_else(
                || values_at_zero(tables, &weights, &gate),
                |f| (held - tau[i] * values[1]) * f,
            );
            let dot = |row: &Vec<Fr>| row.iter().zip(&values).map(|(a, b)| *a * b).sum::<Fr>();
            to_coefficients[1..].iter().map(dot).collect::<Vec<_>>()
        });
        let vars = session.send(label, degree, coefficients.as_deref())?;
        let r = session.challenge(label);
        let mut power = Fr::ONE;
        for var in vars {
            power *= r;
            claim.add_term(var, power - tau[i]);
        }
        point[i] = r;
        if let Some(tables) = &mut tables {
            tables.par_iter_mut().for_each(|table| bind(table, r));
            let keep = weights.len() / 2;
            if keep > 0 {
                let (low, high) = weights.split_at_mut(keep);
                low.iter_mut().zip(high).for_each(|(l, h)| *l += *h);
                weights.truncate(keep);
            }
        }
    }
    Ok(Reduced {
        point,
        claim,
        finals: tables.map(|tables| tables.iter().map(|t| t[0]).collect()),
    })
}

/// q(1), .., q(degree) for the top variable, with 0 in the place of q(0).
fn round_values(
    tables: &[Vec<Fr>],
    weights: &[Fr],
    degree: usize,
    gate: &(impl Fn(&[Fr]) -> Fr + Sync),
) -> Vec<Fr> {
    let size = weights.len();
    let add = |mut a: Vec<Fr>, b: Vec<Fr>| {
        a.iter_mut().zip(b).for_each(|(x, y)| *x += y);
        a
    };
    (0..size.div_ceil(TASK))
        .into_par_iter()
        .map(|task| {
            let mut sums = vec![Fr::ZERO; degree + 1];
            let (mut at, mut step) = ([Fr::ZERO; MAX_TABLES], [Fr::ZERO; MAX_TABLES]);
            let count = tables.len();
            for x in task * TASK..size.min((task + 1) * TASK) {
                for (k, table) in tables.iter().enumerate() {
                    at[k] = table[x];
                    step[k] = table[size + x] - table[x];
                }
                for (t, sum) in sums.iter_mut().enumerate() {
                    if t > 0 {
                        at[..count]
                            .iter_mut()
                            .zip(&step[..count])
                            .for_each(|(a, s)| *a += s);
                    }
                    *sum += weights[x] * gate(&at[..count]);
                }
            }
            sums
        })
        .reduce(|| vec![Fr::ZERO; degree + 1], add)
}

/// q(0), for the one tau in r of which the claim does not say it.
fn values_at_zero(tables: &[Vec<Fr>], weights: &[Fr], gate: &impl Fn(&[Fr]) -> Fr) -> Fr {
    let row = |x: usize| tables.iter().map(|t| t[x]).collect::<Vec<_>>();
    weights
        .iter()
        .enumerate()
        .map(|(x, w)| *w * gate(&row(x)))
        .sum()
}

/// Binds the top variable.
fn bind(table: &mut Vec<Fr>, r: Fr) {
    let keep = table.len() / 2;
    let (low, high) = table.split_at_mut(keep);
    if keep >= TASK {
        low.par_iter_mut()
            .zip(high)
            .for_each(|(l, h)| *l += r * (*h - *l));
    } else {
        low.iter_mut()
            .zip(high)
            .for_each(|(l, h)| *l += r * (*h - *l));
    }
    table.truncate(keep);
}

/// tau and claim of a plain sum over the cube: every factor of eq is then 1/2.
pub fn plain(variables: usize, claim: Expr) -> (Vec<Fr>, Expr) {
    let half = half();
    (vec![half; variables], claim * half.pow([variables as u64]))
}
