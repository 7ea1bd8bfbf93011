//! Lookups by LogUp-GKR, all of a run in one tree: `docs/scan/lookup.md`.
use std::collections::BTreeMap;
use std::ops::Range;

use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;

use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::index::log2_ceil;
use crate::mle::{self, eq_at, eq_table, fold, Weight, Weights};
use crate::session::{half, ColumnId, Session};
use crate::small;
use crate::sumcheck::{add, at_zero, round};

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
    /// The same for the first rows; the others are no rows of the table.
    TableFirst(ColumnId, usize),
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

    let leaves = session
        .proving()
        .then(|| Leaves::new(session, &segments, &offsets, depth, alpha, beta));
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
                    let var =
                        session.send("derived entry", 1, sum.as_ref().map(std::slice::from_ref))?
                            [0];
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
        let value = session
            .proving()
            .then(|| functional(session, &weight, &columns));
        let var = session.send(
            "lookup columns",
            1,
            value.as_ref().map(std::slice::from_ref),
        )?[0];
        rest.add_term(var, -Fr::ONE);
        session.claim(weight, columns, var.into());
    }
    session.constrain("lookup leaves", rest);
    Ok(queries)
}

/// A combination of the prover's columns, evaluated at a point.
pub(crate) fn combination_at(session: &Session, columns: &[(ColumnId, Fr)], point: &[Fr]) -> Fr {
    functional(session, &Weight::evaluation(point), columns)
}

/// A functional of a combination of the prover's columns.
pub(crate) fn functional(session: &Session, weight: &Weight, columns: &[(ColumnId, Fr)]) -> Fr {
    let eq = Weights::new(&weight.point);
    let stride = weight.coefficients.len();
    let one = |(id, factor): &(ColumnId, Fr)| {
        let values = session.column_values(*id).unwrap_or_default();
        let values = &values[..values.len().min(weight.items * stride)];
        let sum: Fr = match stride {
            1 => eq.dot(values) * weight.coefficients[0],
            _ => {
                let parts = weight.coefficients.iter().enumerate().map(|(o, c)| {
                    let part: Vec<i64> = values.iter().skip(o).step_by(stride).copied().collect();
                    eq.dot(&part) * c
                });
                parts.sum()
            }
        };
        sum * factor
    };
    columns.iter().map(one).sum()
}

/// Leaves in blocks of this many, as a power of two. A block in which nothing counts is not stored.
const BLOCK: usize = 10;

/// The leaves that count, block by block.
struct Leaves {
    /// Numbers of the stored blocks.
    blocks: Vec<usize>,
    /// How many blocks there are, stored or not.
    of: usize,
    /// Blocks in which all numerators are 1 stand first, and have no place here.
    p: Vec<Fr>,
    q: Vec<Fr>,
}

impl Leaves {
    fn new(
        session: &Session,
        segments: &[Segment],
        offsets: &[usize],
        depth: usize,
        alpha: Fr,
        beta: Fr,
    ) -> Self {
        let bits = BLOCK.min(depth);
        let size = 1 << bits;
        // Rows that fill blocks with numerators 1, and all other rows by the block they stand in.
        let full = |s: &Segment| match s.count {
            Count::Table(_) | Count::TableFirst(..) => 0,
            _ if s.variables < bits => 0,
            _ => s.rows() >> bits,
        };
        let mut blocks = Vec::new();
        let mut mixed: BTreeMap<usize, Vec<(usize, Range<usize>)>> = BTreeMap::new();
        for (k, (segment, offset)) in segments.iter().zip(offsets).enumerate() {
            let ones = full(segment);
            blocks.extend((offset >> bits)..(offset >> bits) + ones);
            let mut row = ones << bits;
            while row < segment.rows() {
                let place = offset + row;
                let next = segment.rows().min(row + size - place % size);
                mixed.entry(place >> bits).or_default().push((k, row..next));
                row = next;
            }
        }
        blocks.extend(mixed.keys());

        let mut p = vec![Fr::ZERO; mixed.len() << bits];
        let mut q = vec![Fr::ONE; blocks.len() << bits];
        let mut rest = &mut q[..];
        for segment in segments {
            let (run, after) = rest.split_at_mut(full(segment) << bits);
            segment.denominators(session, alpha, beta, 0, run);
            rest = after;
        }
        let parts = p.chunks_exact_mut(size).zip(rest.chunks_exact_mut(size));
        for ((p, q), pieces) in parts.zip(mixed.values()) {
            for (k, rows) in pieces {
                let place = (offsets[*k] + rows.start) % size;
                let to = place..place + rows.len();
                segments[*k].numerators(session, rows.start, &mut p[to.clone()]);
                segments[*k].denominators(session, alpha, beta, rows.start, &mut q[to]);
            }
        }
        Self {
            blocks,
            of: 1 << (depth - bits),
            p,
            q,
        }
    }
}

impl Segment {
    /// How many rows count, from the first.
    fn rows(&self) -> usize {
        match self.count {
            Count::First(n) | Count::TableFirst(_, n) => n,
            _ => 1 << self.variables,
        }
    }

    fn numerators(&self, session: &Session, first: usize, out: &mut [Fr]) {
        match &self.count {
            Count::Table(id) | Count::TableFirst(id, _) => {
                let values = session.column_values(*id).unwrap_or_default();
                small::combine(Fr::ZERO, &[(tail(values, first), -Fr::ONE)], out);
            }
            _ => out.fill(Fr::ONE),
        }
    }

    /// alpha - (tag + sum of beta^k entry_k) for the rows from `first` on.
    fn denominators(&self, session: &Session, alpha: Fr, beta: Fr, first: usize, out: &mut [Fr]) {
        let rows = first..first + out.len();
        let numbers = |below: usize| -> Vec<i64> {
            rows.clone()
                .take_while(|x| *x < below)
                .map(|x| x as i64)
                .collect()
        };
        // What is made here, beside what columns hold.
        let mut made: Vec<(Vec<i64>, Fr)> = Vec::new();
        let mut held: Vec<(&[i64], Fr)> = Vec::new();
        let mut hidden: Vec<(&[Expr], Fr)> = Vec::new();
        let mut power = -Fr::ONE;
        for entry in &self.entries {
            power *= beta;
            match entry {
                Entry::Columns(parts) => held.extend(parts.iter().map(|(id, f)| {
                    let values = session.column_values(*id).unwrap_or_default();
                    (tail(values, first), power * f)
                })),
                Entry::Public(values) => held.push((tail(values, first), power)),
                Entry::Derived(values) | Entry::Query { values, .. } => {
                    held.push((tail(values.as_deref().unwrap_or_default(), first), power))
                }
                Entry::Row => made.push((numbers(usize::MAX), power)),
                Entry::RowBelow(n) => made.push((numbers(*n), power)),
                Entry::Below(n) => {
                    let count = n.saturating_sub(first).min(out.len());
                    made.push((vec![1; count], power));
                }
                Entry::Hidden(exprs) => hidden.push((tail(exprs, first), power)),
            }
        }
        held.extend(made.iter().map(|(v, f)| (v.as_slice(), *f)));
        small::combine(alpha - Fr::from(self.tag), &held, out);
        for (exprs, factor) in hidden {
            for (q, expr) in out.iter_mut().zip(exprs) {
                *q += session.value(expr).unwrap_or_default() * factor;
            }
        }
    }
}

fn tail<T>(values: &[T], first: usize) -> &[T] {
    values.get(first..).unwrap_or_default()
}

/// A layer's fractions, of the stored blocks or, when a block is down to one, of all.
struct Layer {
    p: Vec<Fr>,
    q: Vec<Fr>,
}

/// The layer above: node x has the children 2x and 2x + 1.
fn above(p: &[Fr], q: &[Fr]) -> Layer {
    let size = q.len() / 2;
    let (mut next_p, mut next_q) = (vec![Fr::ZERO; size], vec![Fr::ZERO; size]);
    let ones = q.len() - p.len();
    let (first, rest) = q.split_at(ones);
    let (p_first, p_rest) = next_p.split_at_mut(ones / 2);
    let (q_first, q_rest) = next_q.split_at_mut(ones / 2);
    let nodes = p_first
        .par_iter_mut()
        .zip(q_first)
        .zip(first.par_chunks_exact(2));
    nodes.with_min_len(256).for_each(|((np, nq), q)| {
        *np = q[0] + q[1];
        *nq = q[0] * q[1];
    });
    let children = p.par_chunks_exact(2).zip(rest.par_chunks_exact(2));
    let nodes = p_rest.par_iter_mut().zip(q_rest).zip(children);
    nodes.with_min_len(256).for_each(|((np, nq), (p, q))| {
        *np = p[0] * q[1] + p[1] * q[0];
        *nq = q[0] * q[1];
    });
    Layer {
        p: next_p,
        q: next_q,
    }
}

/// One entry a stored block, with `other` in the places of those that are not.
fn spread(entries: &[Fr], blocks: &[usize], of: usize, other: Fr) -> Vec<Fr> {
    let each = entries.len() / blocks.len();
    let mut out = vec![other; of * each];
    for (run, block) in entries.chunks_exact(each).zip(blocks) {
        out[block * each..(block + 1) * each].copy_from_slice(run);
    }
    out
}

/// The tables of one layer's sumcheck: the children's g and q at 2x and 2x + 1 for every x that is left, where
/// g = mu p + q. Where p is 1, s = q + mu/2 says both.
struct Tables {
    s: Vec<Fr>,
    g: Vec<Fr>,
    q: Vec<Fr>,
    mu: Fr,
    spare: Vec<Fr>,
}

impl Tables {
    /// q(1) and q's leading coefficient of the round. `outer` weighs the runs of |inner| pairs, those of `s` first; what
    /// it lacks of 1 is where nothing counts, and the summand there is 2.
    fn round(&self, inner: &[Fr], outer: &[Fr]) -> [Fr; 2] {
        let run = 4 * inner.len();
        let zero = || [Fr::ZERO; 2];
        let (of_s, of_g) = outer.split_at(self.s.len() / run);
        let square = self.mu.square() * half();
        let ones = self.s.par_chunks_exact(run).zip(of_s).map(|(s, outer)| {
            let (mut one, mut lead) = (Fr::ZERO, Fr::ZERO);
            for (s, w) in s.chunks_exact(4).zip(inner) {
                one += s[2] * s[3] * w;
                lead += (s[2] - s[0]) * (s[3] - s[1]) * w;
            }
            [(one.double() - square) * outer, lead.double() * outer]
        });
        let ones = ones.reduce(zero, add);
        let runs = self
            .g
            .par_chunks_exact(run)
            .zip(self.q.par_chunks_exact(run))
            .zip(of_g);
        let mixed = runs.map(|((g, q), outer)| {
            let (mut one, mut lead) = (Fr::ZERO, Fr::ZERO);
            for ((g, q), w) in g.chunks_exact(4).zip(q.chunks_exact(4)).zip(inner) {
                one += (g[2] * q[3] + g[3] * q[2]) * w;
                let (dg, dq) = ([g[2] - g[0], g[3] - g[1]], [q[2] - q[0], q[3] - q[1]]);
                lead += (dg[0] * dq[1] + dg[1] * dq[0]) * w;
            }
            [one * outer, lead * outer]
        });
        let [one, lead] = add(ones, mixed.reduce(zero, add));
        let elsewhere = Fr::ONE - outer.iter().sum::<Fr>();
        [one + elsewhere.double(), lead]
    }

    fn bind(&mut self, r: Fr) {
        for table in [&mut self.s, &mut self.g, &mut self.q] {
            self.spare.resize(table.len() / 2, Fr::ZERO);
            let pairs = self
                .spare
                .par_chunks_exact_mut(2)
                .zip(table.par_chunks_exact(4));
            pairs.with_min_len(256).for_each(|(out, t)| {
                out[0] = t[0] + r * (t[2] - t[0]);
                out[1] = t[1] + r * (t[3] - t[1]);
            });
            std::mem::swap(table, &mut self.spare);
        }
    }

    /// Gives every block its place, once each is down to its last node.
    fn spread(&mut self, blocks: &[usize], of: usize) {
        let halved = self.mu * half();
        let both = |sign: Fr| self.s.iter().map(move |s| *s + sign).collect::<Vec<_>>();
        let [g, q] = [(both(halved), &self.g), (both(-halved), &self.q)]
            .map(|(first, rest)| spread(&[&first, rest.as_slice()].concat(), blocks, of, Fr::ONE));
        self.s.clear();
        (self.g, self.q) = (g, q);
    }
}

/// One layer's sumcheck: sum over x of eq(tau, x) (g(2x) q(2x+1) + g(2x+1) q(2x)) = claim. Returns the point, the claim
/// there, and g and q of the two children for the prover.
fn layer(
    session: &mut Session,
    tau: &[Fr],
    mut claim: Expr,
    mut tables: Option<Tables>,
    blocks: &[usize],
    of: usize,
) -> Result<(Vec<Fr>, Expr, Option<[Fr; 4]>)> {
    // Variables within a block; those above them number the blocks.
    let above = of.trailing_zeros() as usize;
    let (blockwise, within) = (tau.len() >= above, tau.len().saturating_sub(above));
    let mut inner = Vec::new();
    let mut outer = Vec::new();
    let mut whole = None;
    if tables.is_some() && within > 0 {
        inner = eq_table(&tau[1..within]);
        let all = eq_table(&tau[within..]);
        outer = blocks.iter().map(|b| all[*b]).collect();
    }
    let mut point = Vec::with_capacity(tau.len());
    for (i, t) in tau.iter().enumerate() {
        if let (Some(tables), true) = (&mut tables, i == within) {
            if blockwise {
                tables.spread(blocks, of);
            }
            whole = Some(Weights::new(&tau[i + 1..]));
        }
        let coefficients = tables.as_ref().map(|tables| {
            let [one, lead] = match &whole {
                Some(weights) => tables.round(&weights.low, &weights.high),
                None => tables.round(&inner, &outer),
            };
            [one - at_zero(session, &claim, *t, one) - lead, lead]
        });
        let sent = coefficients.as_ref().map(|c| &c[..]);
        let r = round(session, "lookup layer", *t, &mut claim, 2, sent)?;
        point.push(r);
        if let Some(tables) = &mut tables {
            tables.bind(r);
            match &mut whole {
                Some(weights) => weights.bind(),
                None => fold(&mut inner),
            }
        }
    }
    let finals = tables.map(|mut tables| {
        if blockwise && within == tau.len() {
            tables.spread(blocks, of);
        }
        [tables.g[0], tables.g[1], tables.q[0], tables.q[1]]
    });
    Ok((point, claim, finals))
}

/// Claims that sum of p/q over the leaves is 0 with no q zero, and reduces that to p and q at one point.
fn fractional_sum(
    session: &mut Session,
    depth: usize,
    leaves: Option<Leaves>,
) -> Result<(Vec<Fr>, Expr, Expr)> {
    let mut layers = Vec::new();
    let (mut blocks, mut of) = (Vec::new(), 1);
    if let Some(leaves) = leaves {
        (blocks, of) = (leaves.blocks, leaves.of);
        layers.push(Layer {
            p: leaves.p,
            q: leaves.q,
        });
        for k in (0..depth).rev() {
            let below = &layers[layers.len() - 1];
            let mut next = above(&below.p, &below.q);
            if 1 << k == of {
                next.p = spread(&next.p, &blocks, of, Fr::ZERO);
                next.q = spread(&next.q, &blocks, of, Fr::ONE);
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
    for _ in 0..depth {
        let mu = session.challenge("lookup layer");
        let inverse = mu.inverse().unwrap_or(Fr::ZERO);
        // g = mu p + q makes mu (p0 q1 + p1 q0) + 2 q0 q1 = g0 q1 + g1 q0.
        let tables = layers.pop().map(|Layer { mut p, mut q }| {
            let rest = q.split_off(q.len() - p.len());
            p.par_iter_mut()
                .zip(&rest)
                .for_each(|(p, q)| *p = *p * mu + q);
            let shift = mu * half();
            q.par_iter_mut().for_each(|q| *q += shift);
            Tables {
                s: q,
                g: p,
                q: rest,
                mu,
                spare: Vec::new(),
            }
        });
        let claim = Expr::combination([(&p, mu), (&q, Fr::from(2u8))]);
        let (at, claim, finals) = layer(session, &point, claim, tables, &blocks, of)?;
        let values = finals.map(|[g0, g1, q0, q1]| {
            let p = |g: Fr, q: Fr| (g - q) * inverse;
            [p(g0, q0), p(g1, q1), q0, q1, g0 * q1, g1 * q0]
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
