//! Sumcheck with hidden round polynomials: `docs/scan/sumcheck.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::dispatch;
use ragaudit_core::lanes::Lanes;
use rayon::prelude::*;

use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::mle::Weights;
use crate::rounds::{weight_runs, Rounds, Weighing};
pub use crate::rounds::{Gate, Product, Square};
use crate::session::{half, Session};

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

/// q(0) of the round polynomial q without eq's factor, from the claim (1 - t) q(0) + t q(1). (t = 1, once in r, would
/// leave it open.)
pub(crate) fn at_zero(session: &Session, claim: &Expr, t: Fr, one: Fr) -> Fr {
    let held = session.value(claim).unwrap_or_default();
    (held - t * one) * (Fr::ONE - t).inverse().unwrap_or_default()
}

/// One round, whatever holds the tables: sends c_1, .., c_degree of q, and moves the claim to q at the challenge.
pub(crate) fn round(
    session: &mut Session,
    label: &str,
    t: Fr,
    claim: &mut Expr,
    degree: usize,
    coefficients: Option<&[Fr]>,
) -> Result<Fr> {
    let vars = session.send(label, degree, coefficients)?;
    let r = session.challenge(label);
    let mut power = Fr::ONE;
    for var in vars {
        power *= r;
        claim.add_term(var, power - t);
    }
    Ok(r)
}

/// Reduces sum over x of eq(tau, x) gate(tables(x)) = claim, for a gate of the given degree, to one point.
///
/// A table may end early: what is missing is 0, and so is the gate where all tables have ended.
///
/// The factor of eq in the round's variable is left out of what is sent: q with (1 - t) q(0) + t q(1) = claim,
/// whose constant coefficient follows from the others, so that claim' = claim + sum of c_k (r^k - t).
pub fn sumcheck(
    session: &mut Session,
    label: &str,
    tau: &[Fr],
    claim: Expr,
    degree: usize,
    tables: Option<Vec<Vec<Fr>>>,
    gate: impl Gate,
) -> Result<Reduced> {
    dispatch!(l => sumcheck_on(l, session, label, tau, claim, degree, tables, gate))
}

#[allow(clippy::too_many_arguments)]
fn sumcheck_on<L: Lanes<Fr>>(
    l: L,
    session: &mut Session,
    label: &str,
    tau: &[Fr],
    mut claim: Expr,
    degree: usize,
    tables: Option<Vec<Vec<Fr>>>,
    gate: impl Gate,
) -> Result<Reduced> {
    if tau.is_empty() {
        return Ok(Reduced {
            point: Vec::new(),
            claim,
            finals: tables.map(|tables| tables.iter().map(|t| first(t)).collect()),
        });
    }
    // The verifier needs none.
    let to_coefficients = match tables {
        Some(_) => interpolation(degree),
        None => Vec::new(),
    };
    let mut rounds = tables.map(|tables| {
        (
            Rounds::new(l, gate, degree, tables),
            Weights::new(&tau[1..]),
        )
    });
    let mut point = Vec::with_capacity(tau.len());
    for t in tau {
        let coefficients = rounds.as_mut().map(|(rounds, weights)| {
            let runs = weight_runs(l, &weights.low);
            let mut values = rounds.sums(Weighing {
                runs: &runs,
                outer: Some(&weights.high),
            });
            weights.bind();
            values.insert(0, at_zero(session, &claim, *t, values[0]));
            let dot = |row: &Vec<Fr>| row.iter().zip(&values).map(|(a, b)| *a * b).sum::<Fr>();
            to_coefficients[1..].iter().map(dot).collect::<Vec<_>>()
        });
        let sent = coefficients.as_deref();
        let r = round(session, label, *t, &mut claim, degree, sent)?;
        point.push(r);
        if let Some((rounds, _)) = &mut rounds {
            rounds.bind(r);
        }
    }
    let last =
        |(rounds, _): (Rounds<_, _, _>, _)| rounds.values().iter().map(|t| first(t)).collect();
    Ok(Reduced {
        point,
        claim,
        finals: rounds.map(last),
    })
}

/// Binds the lowest variable. `spare` is a buffer that tables take turns in.
pub(crate) fn bind(table: &mut Vec<Fr>, spare: &mut Vec<Fr>, r: Fr) {
    let fold = |pair: &[Fr]| pair[0] + r * (pair.get(1).copied().unwrap_or_default() - pair[0]);
    table
        .par_chunks(2)
        .with_min_len(TASK)
        .map(fold)
        .collect_into_vec(spare);
    std::mem::swap(table, spare);
}

/// tau and claim of a plain sum over the cube: every factor of eq is then 1/2.
pub fn plain(variables: usize, claim: Expr) -> (Vec<Fr>, Expr) {
    let half = half();
    (vec![half; variables], claim * half.pow([variables as u64]))
}

/// A plain sum over the cube of the sum of products of two tables each, which may end early: what is missing is 0.
pub(crate) fn products(
    session: &mut Session,
    label: &str,
    variables: usize,
    claim: Expr,
    mut pairs: Option<Vec<[Vec<Fr>; 2]>>,
) -> Result<Reduced> {
    let (tau, mut claim) = plain(variables, claim);
    let mut spare = Vec::new();
    let mut point = Vec::with_capacity(variables);
    for (i, t) in tau.iter().enumerate() {
        let coefficients = pairs.as_ref().map(|pairs| {
            let scale = half().pow([(variables - 1 - i) as u64]);
            let sums = pairs.iter().map(|[a, b]| product_values(a, b));
            let [one, lead] = sums.fold([Fr::ZERO; 2], add).map(|x| x * scale);
            [one - at_zero(session, &claim, *t, one) - lead, lead]
        });
        let sent = coefficients.as_ref().map(|c| &c[..]);
        let r = round(session, label, *t, &mut claim, 2, sent)?;
        point.push(r);
        for table in pairs.iter_mut().flatten().flatten() {
            bind(table, &mut spare, r);
        }
    }
    Ok(Reduced {
        point,
        claim,
        finals: pairs.map(|pairs| pairs.iter().map(|[_, b]| first(b)).collect()),
    })
}

pub(crate) fn add(a: [Fr; 2], b: [Fr; 2]) -> [Fr; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

fn first(table: &[Fr]) -> Fr {
    table.first().copied().unwrap_or_default()
}

/// Of the product of two tables in the lowest variable: the value at 1 and the leading coefficient.
fn product_values(a: &[Fr], b: &[Fr]) -> [Fr; 2] {
    let odd = |pair: &[Fr]| pair.get(1).copied().unwrap_or_default();
    let task = |(a, b): (&[Fr], &[Fr])| {
        let mut sums = [Fr::ZERO; 2];
        for (a, b) in a.chunks(2).zip(b.chunks(2)) {
            sums[0] += odd(a) * odd(b);
            sums[1] += (odd(a) - a[0]) * (odd(b) - b[0]);
        }
        sums
    };
    a.par_chunks(2 * TASK)
        .zip(b.par_chunks(2 * TASK))
        .map(task)
        .reduce(|| [Fr::ZERO; 2], add)
}
