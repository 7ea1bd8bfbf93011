//! Lookups by LogUp-GKR, all of a run in one tree: `docs/scan/lookup.md`.
use ark_ff::{AdditiveGroup, Field};

use crate::channel::Channel;
use crate::digits::{from_the_top, of_coordinate, regroup, Digit};
use crate::engine::Engine;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::mle::{self, eq_at, eq_table, Weight};
use crate::numbers::log2_ceil;
use crate::prover::{Leaves, Tree};
pub use crate::segments::{Count, Entry, Segment};
use crate::session::{ColumnId, Session};
use crate::sumcheck::reduce_digits;

/// Variables of a round in a layer's highest variables; below those each has a round.
pub const DIGIT: usize = 3;
/// How many these are, at most; and so many of the leaves' variables are never among them.
pub const TOP: usize = 12;
pub const BELOW: usize = 9;

/// How many they are in a tree of this depth.
pub fn top_variables(depth: usize) -> usize {
    TOP.min(depth.saturating_sub(BELOW))
}

/// The claim about a query, for the link: weights of its components, and their value. Or the claim about derived values, for
/// the caller: a point, and the value of their extension there.
pub type QueryClaim = (Vec<Fr>, Var);

/// Claims that the fractions of all segments sum to 0: each tuple looked up is a row of the table with its tag.
pub fn lookups<C: Channel>(
    session: &mut Session<C>,
    mut segments: Vec<Segment>,
) -> Result<Vec<QueryClaim>> {
    // Larger segments come first, so every segment starts at a multiple of its own size.
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

    let low_memory = session.low_memory;
    let tree = session.channel.secrets().map(|secrets| {
        let leaves = Leaves {
            segments: &segments,
            offsets: &offsets,
            depth,
            challenges: [alpha, beta],
        };
        secrets.tree(&session.columns, leaves, low_memory)
    });
    let (point, p, q) = fractional_sum(session, depth, tree)?;

    let mut requested = send_requested(session, &segments, &point)?.into_iter();

    // Both claims about the leaves as one, then each column's share at the point of its segment's size.
    let kappa = session.challenge("lookup leaves");
    let mut rest = Expr::combination([(&p, Fr::ONE), (&q, kappa)]);
    let mut padding = Fr::ONE;
    let mut shares: Vec<(Weight, Vec<(ColumnId, Fr)>)> = Vec::new();
    let mut queries = Vec::new();
    for (segment, offset) in segments.iter().zip(offsets) {
        let (low, high) = point.split_at(segment.variables);
        let place = eq_at(high, offset >> segment.variables);
        // The rows that count; the other rows are 0 / 1, as are the leaves outside all segments.
        let rows = segment.rows();
        let counted = place * mle::prefix(low, rows);
        padding -= counted;
        let mut columns = Vec::new();
        match &segment.count {
            Count::Once | Count::First(_) => rest.constant -= counted,
            Count::Table(id) | Count::TableFirst(id, _) => columns.push((*id, -place)),
            Count::TableOnce(_) => rest.constant += counted,
        }
        let weight = kappa * place;
        rest.constant -= kappa * counted * (alpha - Fr::from(segment.tag));
        let mut power = weight;
        for entry in &segment.entries {
            power *= beta;
            match entry {
                Entry::Columns(parts) => {
                    columns.extend(parts.iter().map(|(id, f)| (*id, -power * f)))
                }
                Entry::Public(values) => {
                    let values = &values[..rows.min(values.len())];
                    rest.constant += power * C::Engine::extend(values, low);
                }
                Entry::Row => rest.constant += power * mle::prefix_numbers(low, rows),
                Entry::RowBelow(n) => {
                    rest.constant += power * mle::prefix_numbers(low, rows.min(*n))
                }
                Entry::Below(n) => rest.constant += power * mle::prefix(low, rows.min(*n)),
                Entry::Derived(values) => {
                    assert_eq!(
                        rows,
                        1 << segment.variables,
                        "every row of a derived entry counts"
                    );
                    let here = Weight::evaluation(low);
                    let known = session.channel.secrets().zip(values.as_ref());
                    let sum = known.map(|(secrets, v)| secrets.functional(&here, v));
                    let var = session.send_one("derived entry", sum)?;
                    rest.add_term(var, power);
                    queries.push((low.to_vec(), var));
                }
                Entry::Hidden(exprs) => {
                    for (expr, e) in exprs.iter().zip(eq_table(low)).take(rows) {
                        rest.add_scaled(expr, power * e);
                    }
                }
                Entry::Query { .. } => {
                    let (mut weights, var) = requested.next().expect("one for each segment");
                    weights.push(Fr::ZERO);
                    rest.add_term(var, power);
                    queries.push((weights, var));
                }
            }
        }
        let weight = Weight {
            point: low.to_vec(),
            coefficients: vec![Fr::ONE],
            items: rows,
        };
        match shares.iter_mut().find(|(w, _)| *w == weight) {
            Some((_, list)) => list.extend(columns),
            None => shares.push((weight, columns)),
        }
    }
    rest.constant -= kappa * padding;
    for (weight, columns) in shares.into_iter().filter(|(_, c)| !c.is_empty()) {
        let known = session.known();
        let value = known.map(|known| known.functional(&weight, &columns));
        let var = session.send_one("lookup columns", value)?;
        rest.add_term(var, -Fr::ONE);
        session.claim(weight, columns, var.into());
    }
    session.constrain("lookup leaves", rest);
    Ok(queries)
}

/// Weights of a query's components in the extension of its segment.
fn of_components(low: &[Fr], rows: usize, dimension: usize) -> Vec<Fr> {
    let mut weights = eq_table(low);
    weights.truncate(rows);
    weights.resize(dimension, Fr::ZERO);
    weights
}

/// Sends the value of each query's extension at the point of its segment, and returns the weights of the query's
/// components with the sent value.
fn send_requested<C: Channel>(
    session: &mut Session<C>,
    segments: &[Segment],
    point: &[Fr],
) -> Result<Vec<QueryClaim>> {
    let mut requested = Vec::new();
    for segment in segments {
        for entry in &segment.entries {
            if let Entry::Query { dimension, values } = entry {
                let low = &point[..segment.variables];
                let weights = of_components(low, segment.rows(), *dimension);
                requested.push((weights, values.as_deref()));
            }
        }
    }
    if requested.is_empty() {
        return Ok(Vec::new());
    }
    let values = session.channel.secrets().map(|secrets| {
        let dot = |(weights, values): &(Vec<Fr>, Option<&[i64]>)| {
            secrets.dot(values.unwrap_or_default(), weights)
        };
        requested.iter().map(dot).collect::<Vec<Fr>>()
    });
    let vars = session.send("query lookups", requested.len(), values.as_deref())?;
    Ok(requested
        .into_iter()
        .map(|(weights, _)| weights)
        .zip(vars)
        .collect())
}

/// Claims that sum of p/q over the leaves is 0 with no q zero, and reduces that to p and q at one point.
fn fractional_sum<C: Channel>(
    session: &mut Session<C>,
    depth: usize,
    mut tree: Option<Box<dyn Tree + '_>>,
) -> Result<(Vec<Fr>, Expr, Expr)> {
    let root = tree.as_mut().map(|tree| tree.root());
    let pair = root.map(|q| [q, q.inverse().unwrap_or(Fr::ZERO)]);
    let vars = session.send("lookup root", 2, pair.as_ref().map(|p| &p[..]))?;
    session.constrain_product("lookup root", vars[0].into(), vars[1].into(), 1u64.into());

    let (mut p, mut q) = (Expr::zero(), Expr::from(vars[0]));
    let mut point: Vec<Digit> = Vec::new();
    let mut drawn: Vec<Fr> = Vec::new();
    for height in (0..depth).rev() {
        // g = mu p + q makes mu (p0 q1 + p1 q0) + 2 q0 q1 = g0 q1 + g1 q0, summed as the point's digits weigh it.
        let mu = session.challenge("lookup layer");
        let claim = Expr::combination([(&p, mu), (&q, Fr::from(2u8))]);
        let variables = depth - 1 - height;
        let apart = variables.saturating_sub(top_variables(depth));
        // The point that the leaves are claimed at has coordinates only.
        let (digits, weighed) = if height == 0 {
            let (digits, weighed) = point.split_at(apart);
            (digits.to_vec(), weighed)
        } else {
            let top = from_the_top(variables - apart, DIGIT);
            (regroup(&point, &[vec![1; apart], top].concat()), &[][..])
        };
        let digits = [&digits[..], weighed];
        let sums = tree.as_mut().map(|tree| tree.descend(height, mu, digits));
        let reduced = reduce_digits(session, "lookup layer", digits, claim, 2, sums)?;
        let inverse = mu.inverse().unwrap_or(Fr::ZERO);
        let values = reduced.finals.map(|f| {
            let p = |g: Fr, q: Fr| (g - q) * inverse;
            let (p0, p1) = (p(f[0], f[2]), p(f[1], f[3]));
            [p0, p1, f[2], f[3], f[0] * f[3], f[1] * f[2]]
        });
        let v = session.send("lookup children", 6, values.as_ref().map(|v| &v[..]))?;
        let [p0, p1, q0, q1, first, second] = [0, 1, 2, 3, 4, 5].map(|i| Expr::from(v[i]));
        let g = |p: &Expr, q: &Expr| Expr::combination([(p, mu), (q, Fr::ONE)]);
        session.constrain_product("lookup layer", g(&p0, &q0), q1.clone(), first.clone());
        session.constrain_product("lookup layer", g(&p1, &q1), q0.clone(), second.clone());
        let sum = (first + second) * reduced.weight;
        session.constrain("lookup layer", reduced.claim - sum);
        let rho = session.challenge("lookup children");
        let join = |low: &Expr, high: &Expr| Expr::combination([(low, Fr::ONE - rho), (high, rho)]);
        (p, q) = (join(&p0, &p1), join(&q0, &q1));
        point = [&[of_coordinate(rho)], &reduced.digits[..]].concat();
        drawn = [&[rho], &reduced.point[..]].concat();
    }
    Ok((drawn, p, q))
}
