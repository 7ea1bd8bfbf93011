//! Lookups by LogUp-GKR, all of a run in one tree: `docs/scan/lookup.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::dispatch;
use ragaudit_core::lanes::Lanes;

use crate::channel::Channel;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::mle::{self, eq_at, eq_table, Weight, Weights};
use crate::numbers::log2_ceil;
use crate::prover::fractions::{
    above, nodes, spread, weighed, Again, Apart, Cross, Layer, Leaves, Stored, BLOCK, NOT_KEPT, RUN,
};
use crate::rounds::Rounds;
pub use crate::segments::{Count, Entry, Segment};
use crate::session::{ColumnId, Session};
use crate::small;
use crate::sumcheck::{at_zero, of_degree_two, round};

/// What the link has to show of the query: weights of its components and what they give. Or what the caller has to
/// show of derived values: a point and what they extend to there.
pub type QueryClaim = (Vec<Fr>, Var);

/// Claims that the fractions of all segments sum to 0: each tuple looked up is a row of the table with its tag.
pub fn lookups<C: Channel>(
    session: &mut Session<C>,
    mut segments: Vec<Segment>,
) -> Result<Vec<QueryClaim>> {
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

    let leaves = session
        .known()
        .map(|_| Leaves::new(&segments, &offsets, depth, [alpha, beta]));
    let (point, p, q) = fractional_sum(session, depth, leaves)?;

    // Both claims about the leaves as one, then each column's share at the point of its segment's size.
    let kappa = session.challenge("lookup leaves");
    let mut rest = Expr::combination([(&p, Fr::ONE), (&q, kappa)]);
    let mut padding = Fr::ONE;
    let mut shares: Vec<(Weight, Vec<(ColumnId, Fr)>)> = Vec::new();
    let mut queries = Vec::new();
    for (segment, offset) in segments.iter().zip(offsets) {
        let (low, high) = point.split_at(segment.variables);
        let place = eq_at(high, offset >> segment.variables);
        // The rows that count; the others are 0 / 1 like what is outside all segments.
        let rows = segment.rows();
        let counted = place * mle::prefix(low, rows);
        padding -= counted;
        let mut columns = Vec::new();
        match &segment.count {
            Count::Once | Count::First(_) => rest.constant -= counted,
            Count::Table(id) | Count::TableFirst(id, _) => columns.push((*id, -place)),
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
                    rest.constant += power * Weights::new(low).dot(values);
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
                    let sum = values.as_ref().map(|v| Weights::new(low).dot(v));
                    let var = session.send_one("derived entry", sum)?;
                    rest.add_term(var, power);
                    queries.push((low.to_vec(), var));
                }
                Entry::Hidden(exprs) => {
                    for (expr, e) in exprs.iter().zip(eq_table(low)).take(rows) {
                        rest.add_scaled(expr, power * e);
                    }
                }
                Entry::Query { dimension, values } => {
                    let mut weights = eq_table(low);
                    weights.truncate(rows);
                    weights.resize(*dimension, Fr::ZERO);
                    let dot = |v: &Vec<i64>| small::dot(v, &weights);
                    let var = session.send_single("query lookup", values.as_ref().map(dot))?;
                    rest.add_term(var, power);
                    weights.push(Fr::ZERO);
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

/// One layer's sumcheck: sum over x of eq(tau, x) (g(2x) q(2x+1) + g(2x+1) q(2x)) = claim. Returns the point, the claim
/// there, and g and q of the two children for the prover.
fn layer<L: Lanes<Fr>, C: Channel>(
    l: L,
    session: &mut Session<C>,
    tau: &[Fr],
    mut claim: Expr,
    stored: Option<(Stored, Fr)>,
    blocks: &[usize],
    of: usize,
) -> Result<(Vec<Fr>, Expr, Option<Vec<Fr>>)> {
    // Variables within a block; those above them number the blocks.
    let above = of.trailing_zeros() as usize;
    let (blockwise, within) = (tau.len() >= above, tau.len().saturating_sub(above));
    let placed = |nodes: Vec<Vec<Fr>>| -> Vec<Vec<Fr>> {
        if !blockwise {
            return nodes;
        }
        let place = |entries: &Vec<Fr>| spread(entries, blocks, of, Fr::ONE);
        nodes.iter().map(place).collect()
    };
    let (mut apart, mut again, mut all) = (None, None, None);
    let weigh = || {
        let weights = eq_table(&tau[within..]);
        let outer: Vec<Fr> = blocks.iter().map(|b| weights[*b]).collect();
        (eq_table(&tau[1..within]), outer)
    };
    match stored {
        Some((Stored::Kept(layer), mu)) if within > 0 => {
            let (inner, outer) = weigh();
            apart = Some(Apart::new(l, layer, mu, inner, outer, within));
        }
        Some((Stored::Kept(layer), mu)) => all = Some(placed(nodes(&layer, mu))),
        Some((Stored::Again(leaves, height), mu)) => {
            let (inner, outer) = weigh();
            again = Some(Again {
                leaves,
                height,
                mu,
                inner,
                outer,
                within,
                size: session.low_memory.unwrap_or(RUN),
            });
        }
        None => (),
    }
    let mut whole = None;
    let mut point = Vec::with_capacity(tau.len());
    for (i, t) in tau.iter().enumerate() {
        if i == within {
            let nodes = apart.take().map(|apart: Apart<L>| placed(apart.nodes()));
            whole = nodes.or(all.take()).map(|tables| {
                let weights = Weights::new(&tau[i + 1..]);
                (Rounds::new(l, Cross, 2, tables), weights)
            });
        }
        let sums = match (&mut apart, &mut whole, &again) {
            (Some(apart), ..) => Some(apart.sums()),
            (None, None, Some(again)) => session.known().map(|known| {
                let (sums, bound) = again.sums(l, &known, &point);
                apart = bound;
                sums
            }),
            (_, Some((rounds, weights)), _) => {
                let sums = weighed(l, rounds, &weights.low, &weights.high);
                weights.bind();
                Some([sums[0], sums[1]])
            }
            _ => None,
        };
        let coefficients =
            sums.map(|[one, two]| of_degree_two(at_zero(session, &claim, *t, one), one, two));
        let sent = coefficients.as_ref().map(|c| &c[..]);
        let r = round(session, "lookup layer", *t, &mut claim, 2, sent)?;
        point.push(r);
        if let Some(apart) = &mut apart {
            apart.bind(r);
        }
        if let Some((rounds, _)) = &mut whole {
            rounds.bind(r);
        }
    }
    let nodes = match (apart, whole) {
        (Some(apart), _) => Some(placed(apart.nodes())),
        (_, Some((rounds, _))) => Some(rounds.values()),
        _ => all,
    };
    let finals = nodes.map(|nodes| nodes.iter().map(|t| t[0]).collect());
    Ok((point, claim, finals))
}

/// Claims that sum of p/q over the leaves is 0 with no q zero, and reduces that to p and q at one point.
fn fractional_sum<C: Channel>(
    session: &mut Session<C>,
    depth: usize,
    leaves: Option<Leaves>,
) -> Result<(Vec<Fr>, Expr, Expr)> {
    let leaves = leaves.as_ref();
    let (blocks, of) = leaves.map_or((&[][..], 1), |l| (&l.blocks, l.of));
    let mut layers = Vec::new();
    // The height of the lowest layer that is kept.
    let mut kept = 0;
    if let Some((leaves, known)) = leaves.zip(session.known()) {
        if let Some(size) = session.low_memory.filter(|_| leaves.bits == BLOCK) {
            kept = NOT_KEPT;
            let mut lowest = Layer::default();
            let [p, q] = leaves.sizes().map(|n| n >> kept);
            lowest.p.reserve_exact(p);
            lowest.q.reserve_exact(q);
            for run in leaves.runs(size) {
                let Layer { p, q } = leaves.layer_at(&known, kept, run);
                lowest.p.extend(p);
                lowest.q.extend(q);
            }
            layers.push(lowest);
        } else {
            layers.push(leaves.layer(&known, 0..leaves.blocks.len()));
        }
        for k in (0..depth - kept).rev() {
            let below = &layers[layers.len() - 1];
            let mut next = above(&below.p, &below.q);
            if 1 << k == of {
                next.p = spread(&next.p, blocks, of, Fr::ZERO);
                next.q = spread(&next.q, blocks, of, Fr::ONE);
            }
            layers.push(next);
        }
    }
    let root = layers.pop().map(|root| root.q[0]);
    let pair = root.map(|q| [q, q.inverse().unwrap_or(Fr::ZERO)]);
    let vars = session.send("lookup root", 2, pair.as_ref().map(|p| &p[..]))?;
    session.constrain_product("lookup root", vars[0].into(), vars[1].into(), 1u64.into());

    let (mut p, mut q) = (Expr::zero(), Expr::from(vars[0]));
    let mut point: Vec<Fr> = Vec::new();
    for height in (0..depth).rev() {
        let mu = session.challenge("lookup layer");
        let inverse = mu.inverse().unwrap_or(Fr::ZERO);
        // g = mu p + q makes mu (p0 q1 + p1 q0) + 2 q0 q1 = g0 q1 + g1 q0.
        let stored = match layers.pop() {
            Some(layer) => Some((Stored::Kept(layer), mu)),
            None => leaves.map(|leaves| (Stored::Again(leaves, height), mu)),
        };
        let claim = Expr::combination([(&p, mu), (&q, Fr::from(2u8))]);
        let (at, claim, finals) =
            dispatch!(l => layer(l, session, &point, claim, stored, blocks, of))?;
        let values = finals.map(|f| {
            let p = |g: Fr, q: Fr| (g - q) * inverse;
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
        let g = |p: &Expr, q: &Expr| Expr::combination([(p, mu), (q, Fr::ONE)]);
        session.constrain_product("lookup layer", g(&p0, &q0), q1.clone(), first.clone());
        session.constrain_product("lookup layer", g(&p1, &q1), q0.clone(), second.clone());
        session.constrain("lookup layer", claim - first - second);
        let rho = session.challenge("lookup children");
        let join = |low: &Expr, high: &Expr| Expr::combination([(low, Fr::ONE - rho), (high, rho)]);
        (p, q) = (join(&p0, &p1), join(&q0, &q1));
        point = [&[rho], &at[..]].concat();
    }
    Ok((point, p, q))
}
