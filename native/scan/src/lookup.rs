//! Lookups by LogUp-GKR, all of a run in one tree: `docs/scan/lookup.md`.
use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;

use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::index::log2_ceil;
use crate::mle::{self, eq_at, eq_table, Weight};
use crate::session::{from_small, ColumnId, Session};
use crate::sumcheck::sumcheck;

/// One component of the tuples of a segment.
pub enum Entry {
    /// A linear combination of columns.
    Columns(Vec<(ColumnId, Fr)>),
    /// Published values, one a row.
    Public(Vec<i64>),
    /// The row's number.
    Row,
    /// The row's number below this one, 0 from it on.
    RowBelow(usize),
    /// 1 below this row, 0 from it on.
    Below(usize),
    /// Values that the caller proves: what they extend to is sent, and returned. The values are the prover's.
    Derived(Option<Vec<i64>>),
    /// A hidden value a row; missing ones are 0.
    Hidden(Vec<Expr>),
    /// The components of the linked query, zero beyond them; the values are the prover's.
    Query {
        dimension: usize,
        values: Option<Vec<i64>>,
    },
}

/// How often each row of a segment counts.
pub enum Count {
    /// Once: a row that is looked up.
    Once,
    /// The first rows once, the others never.
    First(usize),
    /// Minus a column's value: a row of a table.
    Table(ColumnId),
}

/// 2^variables fractions count / (alpha - (tag + sum of beta^k entry_k)).
pub struct Segment {
    pub variables: usize,
    pub tag: u64,
    pub entries: Vec<Entry>,
    pub count: Count,
}

/// What the link has to show of the query: weights of its components and what they give. Or what the caller has to
/// show of derived values: a point and what they extend to there.
pub type QueryClaim = (Vec<Fr>, Var);

/// Claims that the fractions of all segments sum to 0: each tuple looked up is a row of the table with its tag.
pub fn lookups(session: &mut Session, mut segments: Vec<Segment>) -> Result<Vec<QueryClaim>> {
    // Larger ones first, so that each stands at a multiple of its own size.
    segments.sort_by_key(|s| std::cmp::Reverse(s.variables));
    let mut total = 0;
    let offsets: Vec<usize> = segments
        .iter()
        .map(|s| {
            total += 1usize << s.variables;
            total - (1 << s.variables)
        })
        .collect();
    let depth = log2_ceil(total);
    let alpha = session.challenge("lookup alpha");
    let beta = session.challenge("lookup beta");

    let leaves = session.proving().then(|| {
        let mut p = vec![Fr::ZERO; 1 << depth];
        let mut q = vec![Fr::ONE; 1 << depth];
        for (segment, &offset) in segments.iter().zip(&offsets) {
            let range = offset..offset + (1 << segment.variables);
            fill(
                session,
                segment,
                alpha,
                beta,
                &mut p[range.clone()],
                &mut q[range],
            );
        }
        (p, q)
    });
    let (point, p, q) = fractional_sum(session, depth, leaves)?;

    // Both claims about the leaves as one, then each column's share at the point of its segment's size.
    let kappa = session.challenge("lookup leaves");
    let mut rest = Expr::combination([(&p, Fr::ONE), (&q, kappa)]);
    let mut padding = Fr::ONE;
    let mut shares: Vec<(usize, Vec<(ColumnId, Fr)>)> = Vec::new();
    let mut queries = Vec::new();
    for (segment, offset) in segments.iter().zip(offsets) {
        let (low, high) = point.split_at(segment.variables);
        let place = eq_at(high, offset >> segment.variables);
        padding -= place;
        let mut columns = Vec::new();
        match &segment.count {
            Count::Once => rest.constant -= place,
            Count::First(n) => rest.constant -= place * mle::prefix(low, *n),
            Count::Table(id) => columns.push((*id, -place)),
        }
        let weight = kappa * place;
        rest.constant -= weight * (alpha - Fr::from(segment.tag));
        let mut power = weight;
        for entry in &segment.entries {
            power *= beta;
            match entry {
                Entry::Columns(parts) => {
                    columns.extend(parts.iter().map(|(id, f)| (*id, -power * f)))
                }
                Entry::Public(values) => {
                    let sum = |(v, e): (&i64, &Fr)| from_small(*v) * e;
                    rest.constant += power * values.iter().zip(&eq_table(low)).map(sum).sum::<Fr>();
                }
                Entry::Row => rest.constant += power * row_number(low),
                Entry::RowBelow(n) => rest.constant += power * mle::prefix_numbers(low, *n),
                Entry::Below(n) => rest.constant += power * mle::prefix(low, *n),
                Entry::Derived(values) => {
                    let eq = values.as_ref().map(|_| eq_table(low));
                    let sum = values.as_ref().zip(eq).map(|(values, eq)| {
                        let terms = values.par_iter().zip(&eq);
                        terms.map(|(v, e)| from_small(*v) * e).sum()
                    });
                    let var =
                        session.send("derived entry", 1, sum.as_ref().map(std::slice::from_ref))?
                            [0];
                    rest.add_term(var, power);
                    queries.push((low.to_vec(), var));
                }
                Entry::Hidden(exprs) => {
                    for (expr, e) in exprs.iter().zip(eq_table(low)) {
                        rest.add_scaled(expr, power * e);
                    }
                }
                Entry::Query { dimension, values } => {
                    let mut weights = eq_table(low);
                    weights.truncate(*dimension);
                    let dot = |v: &Vec<i64>| {
                        v.iter()
                            .zip(&weights)
                            .map(|(v, w)| from_small(*v) * w)
                            .sum()
                    };
                    let var = session.send_single("query lookup", values.as_ref().map(dot))?;
                    rest.add_term(var, power);
                    weights.push(Fr::ZERO);
                    queries.push((weights, var));
                }
            }
        }
        match shares.iter_mut().find(|(v, _)| *v == segment.variables) {
            Some((_, list)) => list.extend(columns),
            None => shares.push((segment.variables, columns)),
        }
    }
    rest.constant -= kappa * padding;
    for (variables, columns) in shares.into_iter().filter(|(_, c)| !c.is_empty()) {
        let low = &point[..variables];
        let value = session
            .proving()
            .then(|| combination_at(session, &columns, low));
        let var = session.send(
            "lookup columns",
            1,
            value.as_ref().map(std::slice::from_ref),
        )?[0];
        rest.add_term(var, -Fr::ONE);
        session.claim(Weight::evaluation(low), columns, var.into());
    }
    session.constrain("lookup leaves", rest);
    Ok(queries)
}

/// The extension of x -> x.
pub(crate) fn row_number(point: &[Fr]) -> Fr {
    mle::prefix_numbers(point, 1 << point.len())
}

/// A combination of the prover's columns, evaluated at a point.
pub(crate) fn combination_at(session: &Session, columns: &[(ColumnId, Fr)], point: &[Fr]) -> Fr {
    let eq = eq_table(point);
    let one = |(id, factor): &(ColumnId, Fr)| {
        let values = session.column_values(*id).unwrap_or_default();
        let sum: Fr = values
            .par_iter()
            .zip(&eq)
            .filter(|(v, _)| **v != 0)
            .map(|(v, e)| from_small(*v) * e)
            .sum();
        sum * factor
    };
    columns.iter().map(one).sum()
}

fn fill(session: &Session, segment: &Segment, alpha: Fr, beta: Fr, p: &mut [Fr], q: &mut [Fr]) {
    match &segment.count {
        Count::Once => p.fill(Fr::ONE),
        Count::First(n) => p[..*n].fill(Fr::ONE),
        Count::Table(id) => {
            let values = session.column_values(*id).unwrap_or_default();
            p.par_iter_mut()
                .zip(values)
                .for_each(|(p, v)| *p = -from_small(*v));
        }
    }
    let start = alpha - Fr::from(segment.tag);
    q.fill(start);
    let mut power = Fr::ONE;
    for entry in &segment.entries {
        power *= beta;
        let subtract = |q: &mut [Fr], values: &[i64], factor: Fr| {
            q.par_iter_mut().zip(values).for_each(|(q, v)| match v {
                0 => {}
                v => *q -= from_small(*v) * factor,
            });
        };
        match entry {
            Entry::Columns(parts) => {
                for (id, f) in parts {
                    subtract(q, session.column_values(*id).unwrap_or_default(), power * f);
                }
            }
            Entry::Public(values) => subtract(q, values, power),
            Entry::Row => subtract_numbers(q, power),
            Entry::RowBelow(n) => subtract_numbers(&mut q[..*n], power),
            Entry::Below(n) => q[..*n].iter_mut().for_each(|q| *q -= power),
            Entry::Hidden(exprs) => {
                for (q, expr) in q.iter_mut().zip(exprs) {
                    *q -= session.value(expr).unwrap_or_default() * power;
                }
            }
            Entry::Derived(values) | Entry::Query { values, .. } => {
                subtract(q, values.as_deref().unwrap_or_default(), power)
            }
        }
    }
}

fn subtract_numbers(q: &mut [Fr], factor: Fr) {
    q.par_iter_mut()
        .enumerate()
        .for_each(|(i, q)| *q -= Fr::from(i as u64) * factor);
}

/// Claims that sum of p/q over the leaves is 0 with no q zero, and reduces that to p and q at one point.
fn fractional_sum(
    session: &mut Session,
    depth: usize,
    leaves: Option<(Vec<Fr>, Vec<Fr>)>,
) -> Result<(Vec<Fr>, Expr, Expr)> {
    // Layer k has 2^k fractions; node x of it has the children x and x + 2^k.
    let mut layers = leaves.map(|leaves| {
        let mut layers = vec![leaves];
        for k in (0..depth).rev() {
            let (p, q) = &layers[layers.len() - 1];
            let size = 1 << k;
            let mut next_p = vec![Fr::ZERO; size];
            let mut next_q = vec![Fr::ZERO; size];
            next_p
                .par_iter_mut()
                .zip(&mut next_q)
                .enumerate()
                .with_min_len(256)
                .for_each(|(x, (np, nq))| {
                    *np = p[x] * q[size + x] + p[size + x] * q[x];
                    *nq = q[x] * q[size + x];
                });
            layers.push((next_p, next_q));
        }
        layers
    });
    let root = layers.as_mut().and_then(Vec::pop);
    let q_root = root.map(|(_, q)| q[0]);
    let pair = q_root.map(|q| [q, q.inverse().unwrap_or(Fr::ZERO)]);
    let vars = session.send("lookup root", 2, pair.as_ref().map(|p| &p[..]))?;
    session.constrain_product("lookup root", vars[0].into(), vars[1].into(), 1u64.into());

    let (mut p, mut q) = (Expr::zero(), Expr::from(vars[0]));
    let mut point: Vec<Fr> = Vec::new();
    for _ in 0..depth {
        let lambda = session.challenge("lookup layer");
        let inverse = lambda.inverse().unwrap_or(Fr::ZERO);
        let half = crate::session::half();
        // g = lambda p + q/2 makes lambda (p0 q1 + p1 q0) + q0 q1 = g0 q1 + g1 q0.
        let tables = layers.as_mut().and_then(Vec::pop).map(|(mut p, mut q)| {
            p.par_iter_mut()
                .zip(&q)
                .for_each(|(p, q)| *p = *p * lambda + *q * half);
            let size = p.len() / 2;
            let (g1, q1) = (p.split_off(size), q.split_off(size));
            vec![p, g1, q, q1]
        });
        let claim = Expr::combination([(&p, lambda), (&q, Fr::ONE)]);
        let gate = |t: &[Fr]| t[0] * t[3] + t[1] * t[2];
        let reduced = sumcheck(session, "lookup layer", &point, claim, 2, tables, gate)?;
        let values = reduced.finals.map(|f| {
            let p = |g: Fr, q: Fr| (g - q * half) * inverse;
            [
                p(f[0], f[2]),
                p(f[1], f[3]),
                f[2],
                f[3],
                f[0] * f[3],
                f[1] * f[2],
            ]
        });
        let v = session.send("lookup children", 6, values.as_ref().map(|v| &v[..]))?;
        let [p0, p1, q0, q1, first, second] = [0, 1, 2, 3, 4, 5].map(|i| Expr::from(v[i]));
        let g = |p: &Expr, q: &Expr| Expr::combination([(p, lambda), (q, half)]);
        session.constrain_product("lookup layer", g(&p0, &q0), q1.clone(), first.clone());
        session.constrain_product("lookup layer", g(&p1, &q1), q0.clone(), second.clone());
        session.constrain("lookup layer", reduced.claim - first - second);
        let rho = session.challenge("lookup children");
        let join = |low: &Expr, high: &Expr| Expr::combination([(low, Fr::ONE - rho), (high, rho)]);
        (p, q) = (join(&p0, &p1), join(&q0, &q1));
        point = reduced.point;
        point.push(rho);
    }
    Ok((point, p, q))
}
