//! Sumcheck with hidden round polynomials: `docs/scan/sumcheck.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::dispatch;
use ragaudit_core::lanes::Lanes;

use crate::channel::Channel;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::Fr;
use crate::mle::{Weight, Weights};
use crate::numbers::half;
use crate::rounds::{weight_runs, Rounds, Weighing, BLOCK};
pub use crate::rounds::{Gate, Product, Square};
use crate::session::Session;

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
pub(crate) fn at_zero<C: Channel>(session: &Session<C>, claim: &Expr, t: Fr, one: Fr) -> Fr {
    let value = session.known().map(|known| known.value(claim));
    (value.unwrap_or_default() - t * one) * (Fr::ONE - t).inverse().unwrap_or_default()
}

/// One round, whatever holds the tables: sends c_1, .., c_degree of q, and moves the claim to q at the challenge.
pub(crate) fn round<C: Channel>(
    session: &mut Session<C>,
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
pub fn sumcheck<C: Channel>(
    session: &mut Session<C>,
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
fn sumcheck_on<L: Lanes<Fr>, C: Channel>(
    l: L,
    session: &mut Session<C>,
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

/// tau and claim of a plain sum over the cube: every factor of eq is then 1/2.
pub fn plain(variables: usize, claim: Expr) -> (Vec<Fr>, Expr) {
    let half = half();
    (vec![half; variables], claim * half.pow([variables as u64]))
}

/// What a table is multiplied by: eq of a point in the lowest variables, where the others are 0, or another table.
pub(crate) enum Weighting {
    Eq(Vec<Fr>),
    Table(Vec<Fr>),
}

impl Weighting {
    pub(crate) fn of(weight: &Weight) -> Self {
        match weight.coefficients[..] {
            [c] if c == Fr::ONE && weight.items == 1 << weight.point.len() => {
                Self::Eq(weight.point.clone())
            }
            _ => Self::Table(weight.entries()),
        }
    }
}

/// A plain sum over the cube of the sum of tables multiplied, which may end early: what is missing is 0. The tables'
/// values are those at the end.
pub(crate) fn products<C: Channel>(
    session: &mut Session<C>,
    label: &str,
    variables: usize,
    claim: Expr,
    tables: Option<Vec<(Weighting, Vec<Fr>)>>,
) -> Result<Reduced> {
    dispatch!(l => products_on(l, session, label, variables, claim, tables))
}

fn products_on<L: Lanes<Fr>, C: Channel>(
    l: L,
    session: &mut Session<C>,
    label: &str,
    variables: usize,
    claim: Expr,
    tables: Option<Vec<(Weighting, Vec<Fr>)>>,
) -> Result<Reduced> {
    let (tau, mut claim) = plain(variables, claim);
    let mut parts = tables.map(|tables| {
        let part = |(weighting, table)| Multiplied::new(l, variables, weighting, table);
        tables.into_iter().map(part).collect::<Vec<_>>()
    });
    let mut point = Vec::with_capacity(variables);
    for (i, t) in tau.iter().enumerate() {
        let coefficients = parts.as_mut().map(|parts| {
            let scale = half().pow([(variables - 1 - i) as u64]);
            let (mut one, mut two) = (Fr::ZERO, Fr::ZERO);
            for part in parts {
                let sums = part.sums();
                one += sums[0] * scale;
                two += sums[1] * scale;
            }
            of_degree_two(at_zero(session, &claim, *t, one), one, two)
        });
        let sent = coefficients.as_ref().map(|c| &c[..]);
        let r = round(session, label, *t, &mut claim, 2, sent)?;
        point.push(r);
        parts.iter_mut().flatten().for_each(|part| part.bind(r));
    }
    Ok(Reduced {
        point,
        claim,
        finals: parts.map(|parts| parts.iter().map(Multiplied::value).collect()),
    })
}

/// A table alone.
#[derive(Clone, Copy)]
pub(crate) struct Single;

impl Gate for Single {
    type Tables<V: Copy> = [V; 1];
    type Nodes<W: Copy> = [W; 2];

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, _: L, _: &[L::V], t: &[L::V]) -> L::V {
        t[0]
    }
}

/// One table of [`products`] with what multiplies it.
enum Multiplied<L: Lanes<Fr>> {
    Eq {
        l: L,
        rounds: Rounds<L, Vec<Vec<Fr>>, Single>,
        /// The coordinates left, the lowest variable's last; eq of those bound; and eq of those above the lowest.
        left: Vec<Fr>,
        bound: Fr,
        weights: Weights,
    },
    Table {
        rounds: Rounds<L, Vec<Vec<Fr>>, Product>,
        ones: Vec<L::V>,
        blocks: Vec<Fr>,
    },
}

impl<L: Lanes<Fr>> Multiplied<L> {
    fn new(l: L, variables: usize, weighting: Weighting, table: Vec<Fr>) -> Self {
        match weighting {
            Weighting::Eq(mut point) => {
                point.resize(variables, Fr::ZERO);
                let weights = Weights::new(point.get(1..).unwrap_or_default());
                point.reverse();
                Self::Eq {
                    l,
                    rounds: Rounds::new(l, Single, 2, vec![table]),
                    left: point,
                    bound: Fr::ONE,
                    weights,
                }
            }
            Weighting::Table(weighting) => {
                let blocks = vec![Fr::ONE; weighting.len().max(table.len()).div_ceil(2 * BLOCK)];
                Self::Table {
                    rounds: Rounds::new(l, Product, 2, vec![weighting, table]),
                    ones: weight_runs(l, &[Fr::ONE; BLOCK]),
                    blocks,
                }
            }
        }
    }

    /// The sums with the lowest variable at 1 and 2.
    fn sums(&mut self) -> [Fr; 2] {
        match self {
            Self::Eq {
                l,
                rounds,
                left,
                bound,
                weights,
            } => {
                let runs = weight_runs(*l, &weights.low);
                let sums = rounds.sums(Weighing {
                    runs: &runs,
                    outer: Some(&weights.high),
                });
                let p = left.last().copied().unwrap_or_default();
                let three = p.double() + p;
                [*bound * p * sums[0], *bound * (three - Fr::ONE) * sums[1]]
            }
            Self::Table {
                rounds,
                ones,
                blocks,
            } => {
                let sums = rounds.sums(Weighing {
                    runs: ones,
                    outer: Some(blocks),
                });
                [sums[0], sums[1]]
            }
        }
    }

    fn bind(&mut self, r: Fr) {
        match self {
            Self::Eq {
                rounds,
                left,
                bound,
                weights,
                ..
            } => {
                let p = left.pop().unwrap_or_default();
                *bound *= (Fr::ONE - p) * (Fr::ONE - r) + p * r;
                weights.bind();
                rounds.bind(r);
            }
            Self::Table { rounds, .. } => rounds.bind(r),
        }
    }

    fn value(&self) -> Fr {
        let table = match self {
            Self::Eq { rounds, .. } => rounds.values().pop(),
            Self::Table { rounds, .. } => rounds.values().pop(),
        };
        first(&table.unwrap_or_default())
    }
}

/// The coefficients of X and X^2 of a polynomial of degree 2, from its values at 0, 1 and 2.
pub(crate) fn of_degree_two(zero: Fr, one: Fr, two: Fr) -> [Fr; 2] {
    let lead = (zero + two) * half() - one;
    [one - zero - lead, lead]
}

fn first(table: &[Fr]) -> Fr {
    table.first().copied().unwrap_or_default()
}
