//! Lookups by LogUp-GKR, all of a run in one tree: `docs/scan/lookup.md`.
use std::collections::BTreeMap;
use std::ops::Range;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::dispatch;
use ragaudit_core::lanes::Lanes;
use rayon::prelude::*;

use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::mle::{self, eq_at, eq_table, fold, Weight, Weights};
use crate::numbers::{half, log2_ceil};
use crate::rounds::{weight_runs, Gate, Product, Rounds, Source, Weighing};
use crate::session::{ColumnId, Session};
use crate::small;
use crate::sumcheck::{at_zero, of_degree_two, round};
use crate::values::functional;

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
        .then(|| Leaves::new(&segments, &offsets, depth, [alpha, beta]));
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

/// Leaves in blocks of this many, as a power of two. A block in which nothing counts is not stored.
const BLOCK: usize = 10;

/// Blocks of leaves that provers make at a time where not all are kept.
pub(crate) const RUN: usize = 1 << 9;
/// The lowest layers, which are not kept where memory is low.
const NOT_KEPT: usize = 3;
/// Rounds of such a layer's sumcheck that make it again; what is kept then is smaller by as many halvings.
const AGAIN: usize = 2;

/// Rows of a segment that stand in one block.
type Piece = (usize, Range<usize>);

/// The leaves that count, block by block.
struct Leaves<'a> {
    segments: &'a [Segment],
    offsets: &'a [usize],
    challenges: [Fr; 2],
    /// Leaves of a block, as a power of two.
    bits: usize,
    /// Numbers of the stored blocks. Those in which all numerators are 1 stand first.
    blocks: Vec<usize>,
    /// How many blocks there are, stored or not.
    of: usize,
    /// What the stored blocks hold.
    pieces: Vec<Vec<Piece>>,
    /// How many of them stand first.
    ones: usize,
}

impl<'a> Leaves<'a> {
    fn new(
        segments: &'a [Segment],
        offsets: &'a [usize],
        depth: usize,
        challenges: [Fr; 2],
    ) -> Self {
        let bits = BLOCK.min(depth);
        let size = 1 << bits;
        // Rows that fill blocks with numerators 1, and all other rows by the block they stand in.
        let full = |s: &Segment| match s.count {
            Count::Table(_) | Count::TableFirst(..) => 0,
            _ if s.variables < bits => 0,
            _ => s.rows() >> bits,
        };
        let (mut blocks, mut pieces) = (Vec::new(), Vec::new());
        let mut mixed: BTreeMap<usize, Vec<Piece>> = BTreeMap::new();
        for (k, (segment, offset)) in segments.iter().zip(offsets).enumerate() {
            let ones = full(segment);
            blocks.extend((offset >> bits)..(offset >> bits) + ones);
            pieces.extend((0..ones).map(|b| vec![(k, b << bits..(b + 1) << bits)]));
            let mut row = ones << bits;
            while row < segment.rows() {
                let place = offset + row;
                let next = segment.rows().min(row + size - place % size);
                mixed.entry(place >> bits).or_default().push((k, row..next));
                row = next;
            }
        }
        let ones = blocks.len();
        blocks.extend(mixed.keys());
        pieces.extend(mixed.into_values());
        Self {
            segments,
            offsets,
            challenges,
            bits,
            blocks,
            of: 1 << (depth - bits),
            pieces,
            ones,
        }
    }

    /// The leaves of a run of stored blocks.
    fn layer(&self, session: &Session, run: Range<usize>) -> Layer {
        let size = 1 << self.bits;
        let ones = self.ones.clamp(run.start, run.end) - run.start;
        let mut p = vec![Fr::ZERO; (run.len() - ones) << self.bits];
        let mut q = vec![Fr::ONE; run.len() << self.bits];
        let (first, rest) = q.split_at_mut(ones << self.bits);
        // Blocks of one segment that stand beside each other are made at once.
        let mut left = &mut first[..];
        let runs = self.pieces[run.start..run.start + ones].chunk_by(|a, b| a[0].0 == b[0].0);
        for pieces in runs {
            let (out, after) = left.split_at_mut(pieces.len() << self.bits);
            let (k, rows) = &pieces[0][0];
            self.segments[*k].denominators(session, self.challenges, rows.start, out);
            left = after;
        }
        let parts = p.chunks_exact_mut(size).zip(rest.chunks_exact_mut(size));
        for ((p, q), pieces) in parts.zip(&self.pieces[run.start + ones..run.end]) {
            for (k, rows) in pieces {
                let place = (self.offsets[*k] + rows.start) % size;
                let to = place..place + rows.len();
                self.segments[*k].numerators(session, rows.start, &mut p[to.clone()]);
                self.segments[*k].denominators(session, self.challenges, rows.start, &mut q[to]);
            }
        }
        Layer { p, q }
    }

    /// The layer at a height above the leaves, of a run of stored blocks.
    fn layer_at(&self, session: &Session, height: usize, run: Range<usize>) -> Layer {
        let leaves = self.layer(session, run);
        (0..height).fold(leaves, |below, _| above(&below.p, &below.q))
    }

    /// Numerators and denominators that are stored.
    fn sizes(&self) -> [usize; 2] {
        let blocks = self.blocks.len();
        [blocks - self.ones, blocks].map(|n| n << self.bits)
    }

    /// All runs of so many stored blocks.
    fn runs(&self, size: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let count = self.blocks.len();
        (0..count)
            .step_by(size)
            .map(move |at| at..count.min(at + size))
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
    fn denominators(
        &self,
        session: &Session,
        [alpha, beta]: [Fr; 2],
        first: usize,
        out: &mut [Fr],
    ) {
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

/// A layer's fractions, of the stored blocks or, when a block is down to one, of all. Where the numerators are 1 in all
/// of a block, which stands first then, p has no place for them.
#[derive(Default)]
struct Layer {
    p: Vec<Fr>,
    q: Vec<Fr>,
}

/// Nodes of one task.
const TASK: usize = 1 << 11;

/// The layer above: node x has the children 2x and 2x + 1.
fn above(p: &[Fr], q: &[Fr]) -> Layer {
    let size = q.len() / 2;
    let (mut next_p, mut next_q) = (vec![Fr::ZERO; size], vec![Fr::ZERO; size]);
    let (first, rest) = q.split_at(q.len() - p.len());
    let (p_first, p_rest) = next_p.split_at_mut(first.len() / 2);
    let (q_first, q_rest) = next_q.split_at_mut(first.len() / 2);
    let next = p_first
        .par_chunks_mut(TASK)
        .zip(q_first.par_chunks_mut(TASK));
    let nodes = next.zip(first.par_chunks(2 * TASK));
    nodes.for_each(|((np, nq), q)| dispatch!(l => join(l, None, q, np, nq)));
    let children = p.par_chunks(2 * TASK).zip(rest.par_chunks(2 * TASK));
    let next = p_rest.par_chunks_mut(TASK).zip(q_rest.par_chunks_mut(TASK));
    let nodes = next.zip(children);
    nodes.for_each(|((np, nq), (p, q))| dispatch!(l => join(l, Some(p), q, np, nq)));
    Layer {
        p: next_p,
        q: next_q,
    }
}

/// Sums of two fractions each; the numerators are 1 where there are none.
#[inline(always)]
fn join<L: Lanes<Fr>>(l: L, p: Option<&[Fr]>, q: &[Fr], next_p: &mut [Fr], next_q: &mut [Fr]) {
    let last = next_p.len() - next_p.len() % L::N;
    for at in (0..last).step_by(L::N) {
        let run = 2 * at..2 * (at + L::N);
        let out = at..at + L::N;
        let (next_p, next_q) = (&mut next_p[out.clone()], &mut next_q[out]);
        let q = pairs(l, &q[run.clone()]);
        let sum = match p {
            None => l.add(q[0], q[1]),
            Some(p) => {
                let p = pairs(l, &p[run]);
                l.reduce(l.mac(l.mac(l.wide(), p[0], q[1]), p[1], q[0]))
            }
        };
        l.store(sum, |i, x| next_p[i] = x);
        l.store(l.mul(q[0], q[1]), |i, x| next_q[i] = x);
    }
    for x in last..next_p.len() {
        let q = [q[2 * x], q[2 * x + 1]];
        next_p[x] = p.map_or(q[0] + q[1], |p| p[2 * x] * q[1] + p[2 * x + 1] * q[0]);
        next_q[x] = q[0] * q[1];
    }
}

/// The entries of even number and those of odd, of 2 N.
#[inline(always)]
fn pairs<L: Lanes<Fr>>(l: L, of: &[Fr]) -> [L::V; 2] {
    let of = &of[..2 * L::N];
    [l.load(|i| &of[2 * i]), l.load(|i| &of[2 * i + 1])]
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

/// Where the numerators are 1: s = q + mu/2 of the left children, then of the right ones.
struct Ones<V> {
    q: Vec<Fr>,
    halved: V,
}

impl<L: Lanes<Fr>> Source<L> for Ones<L::V> {
    fn tables(&self) -> usize {
        2
    }

    fn pairs(&self) -> usize {
        self.q.len() / 4
    }

    #[inline(always)]
    fn pair(&self, l: L, run: usize, k: usize) -> [L::V; 2] {
        let [a, b] = children(l, &self.q, run, k);
        [l.weak(l.add(a, self.halved)), l.weak(l.add(b, self.halved))]
    }
}

/// Elsewhere: g = mu p + q of the left children and of the right ones, then q.
struct Mixed<V> {
    p: Vec<Fr>,
    q: Vec<Fr>,
    mu: V,
}

impl<L: Lanes<Fr>> Source<L> for Mixed<L::V> {
    fn tables(&self) -> usize {
        4
    }

    fn pairs(&self) -> usize {
        self.q.len() / 4
    }

    #[inline(always)]
    fn pair(&self, l: L, run: usize, k: usize) -> [L::V; 2] {
        let [mut a, mut b] = children(l, &self.q, run, k % 2);
        if k < 2 {
            let p = children(l, &self.p, run, k);
            a = l.add(a, l.mul(self.mu, p[0]));
            b = l.add(b, l.mul(self.mu, p[1]));
        }
        [l.weak(a), l.weak(b)]
    }
}

/// Of N pairs of nodes, from pair N run on: the children on one side of the first, and of the second.
#[inline(always)]
fn children<L: Lanes<Fr>>(l: L, of: &[Fr], run: usize, side: usize) -> [L::V; 2] {
    let start = 4 * L::N * run;
    match of.get(start..start + 4 * L::N) {
        Some(of) => [
            l.load(|i| &of[4 * i + side]),
            l.load(|i| &of[4 * i + 2 + side]),
        ],
        None => {
            let entry = |i: usize| of.get(start + side + i).unwrap_or(&Fr::ZERO);
            [l.load(|i| entry(4 * i)), l.load(|i| entry(4 * i + 2))]
        }
    }
}

/// g_0 q_1 + g_1 q_0.
#[derive(Clone, Copy)]
struct Cross;

impl Gate for Cross {
    type Tables<V: Copy> = [V; 4];
    type Nodes<W: Copy> = [W; 2];

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, _: &[L::V], t: &[L::V]) -> L::V {
        l.reduce(l.mac(l.mac(l.wide(), t[0], t[3]), t[1], t[2]))
    }
}

/// One layer's sumcheck as long as its blocks stand apart.
struct Apart<L: Lanes<Fr>> {
    l: L,
    mu: Fr,
    ones: Rounds<L, Ones<L::V>, Product>,
    mixed: Rounds<L, Mixed<L::V>, Cross>,
    /// Weights of a block's nodes.
    inner: Vec<Fr>,
    /// Weights of the blocks: of those with ones, of the others, and what they lack of 1.
    outer: [Vec<Fr>; 2],
    elsewhere: Fr,
}

impl<L: Lanes<Fr>> Apart<L> {
    /// `outer` weighs the stored blocks, which have 2^within nodes each.
    fn new(l: L, layer: Layer, mu: Fr, inner: Vec<Fr>, mut outer: Vec<Fr>, within: usize) -> Self {
        let Layer { p, mut q } = layer;
        let rest = q.split_off(q.len() - p.len());
        let of_mixed = outer.split_off(q.len() >> (within + 1));
        let halved = l.splat(&(mu * half()));
        let sum = outer.iter().chain(&of_mixed).sum::<Fr>();
        let mixed = Mixed {
            p,
            q: rest,
            mu: l.splat(&mu),
        };
        Self {
            l,
            mu,
            ones: Rounds::new(l, Product, 2, Ones { q, halved }),
            mixed: Rounds::new(l, Cross, 2, mixed),
            inner,
            outer: [outer, of_mixed],
            elsewhere: Fr::ONE - sum,
        }
    }

    /// As [`Rounds::bound`], for all stored blocks.
    fn bound(l: L, again: &Again, rounds: usize) -> Self {
        let [of_mixed, all] = again.leaves.sizes();
        let pairs = |nodes: usize| nodes >> (again.height + 2 + rounds);
        let [q, p] = [Vec::new(), Vec::new()];
        let (halved, mu) = (l.zero(), l.splat(&again.mu));
        let ones = Ones {
            q: q.clone(),
            halved,
        };
        let mixed = Mixed { p, q, mu };
        Self {
            l,
            mu: again.mu,
            ones: Rounds::bound(l, Product, 2, ones, pairs(all - of_mixed)),
            mixed: Rounds::bound(l, Cross, 2, mixed, pairs(of_mixed)),
            inner: Vec::new(),
            outer: [Vec::new(), Vec::new()],
            elsewhere: again.elsewhere(),
        }
    }

    fn append(&mut self, run: Self) {
        self.ones.append(run.ones);
        self.mixed.append(run.mixed);
        self.inner = run.inner;
        for (all, outer) in self.outer.iter_mut().zip(run.outer) {
            all.extend(outer);
        }
    }

    /// The round polynomial at 1 and 2. Where nothing counts the summand is 2.
    fn sums(&mut self) -> [Fr; 2] {
        let [of_ones, of_mixed] = &self.outer;
        let ones = weighed(self.l, &mut self.ones, &self.inner, of_ones);
        let mixed = weighed(self.l, &mut self.mixed, &self.inner, of_mixed);
        let square = self.mu.square() * half() * of_ones.iter().sum::<Fr>();
        let all = |k: usize| (ones[k] + self.elsewhere).double() - square + mixed[k];
        [all(0), all(1)]
    }

    fn bind(&mut self, r: Fr) {
        self.ones.bind(r);
        self.mixed.bind(r);
        fold(&mut self.inner);
    }

    /// g and q of the two children of each block's last node.
    fn nodes(&self) -> Vec<Vec<Fr>> {
        let halved = self.mu * half();
        let ones = self.ones.values();
        let of_ones = [halved, -halved]
            .map(|sign| [0, 1].map(|k: usize| ones[k].iter().map(move |s| *s + sign)));
        let of_ones = of_ones.into_iter().flatten();
        let mixed = self.mixed.values();
        of_ones
            .zip(mixed)
            .map(|(first, rest)| first.chain(rest).collect())
            .collect()
    }
}

/// A layer that was not kept, made again from the leaves run by run.
struct Again<'a> {
    leaves: &'a Leaves<'a>,
    height: usize,
    mu: Fr,
    inner: Vec<Fr>,
    outer: Vec<Fr>,
    within: usize,
}

impl Again<'_> {
    /// What the stored blocks' weights lack of 1.
    fn elsewhere(&self) -> Fr {
        Fr::ONE - self.outer.iter().sum::<Fr>()
    }

    /// [`Apart::sums`] of the layer with its lowest variables bound to `point`, and the layer itself after enough rounds.
    fn sums<L: Lanes<Fr>>(
        &self,
        l: L,
        session: &Session,
        point: &[Fr],
    ) -> ([Fr; 2], Option<Apart<L>>) {
        let mut sums = [self.elsewhere().double(); 2];
        let mut all = (point.len() == AGAIN).then(|| Apart::bound(l, self, AGAIN));
        for run in self.leaves.runs(session.low_memory.unwrap_or(RUN)) {
            let outer = self.outer[run.clone()].to_vec();
            let layer = self.leaves.layer_at(session, self.height, run);
            let mut apart = Apart::new(l, layer, self.mu, self.inner.clone(), outer, self.within);
            apart.elsewhere = Fr::ZERO;
            for (round, r) in point.iter().enumerate() {
                if round > 0 {
                    apart.sums();
                }
                apart.bind(*r);
            }
            for (sum, of_run) in sums.iter_mut().zip(apart.sums()) {
                *sum += of_run;
            }
            if let Some(all) = &mut all {
                all.append(apart);
            }
        }
        (sums, all)
    }
}

/// Where the layer of a sumcheck comes from.
enum Stored<'a> {
    Kept(Layer),
    /// At a height above the leaves.
    Again(&'a Leaves<'a>, usize),
}

/// A round's sums, with |inner| pairs a block.
fn weighed<L: Lanes<Fr>, S: Source<L>, G: Gate>(
    l: L,
    rounds: &mut Rounds<L, S, G>,
    inner: &[Fr],
    outer: &[Fr],
) -> Vec<Fr> {
    if inner.len() >= L::N {
        let runs = weight_runs(l, inner);
        return rounds.sums(Weighing {
            runs: &runs,
            outer: Some(outer),
        });
    }
    let all = outer.iter().flat_map(|o| inner.iter().map(move |i| *o * i));
    let runs = weight_runs(l, &all.collect::<Vec<_>>());
    rounds.sums(Weighing {
        runs: &runs,
        outer: None,
    })
}

/// g and q of the two children of all nodes of a layer.
fn nodes(layer: &Layer, mu: Fr) -> Vec<Vec<Fr>> {
    let ones = layer.q.len() - layer.p.len();
    let p = |x: usize| if x < ones { Fr::ONE } else { layer.p[x - ones] };
    let side = |side: usize| (side..layer.q.len()).step_by(2);
    let g = [0, 1].map(|k| side(k).map(|x| p(x) * mu + layer.q[x]).collect());
    let q = [0, 1].map(|k| side(k).map(|x| layer.q[x]).collect());
    [g, q].concat()
}

/// One layer's sumcheck: sum over x of eq(tau, x) (g(2x) q(2x+1) + g(2x+1) q(2x)) = claim. Returns the point, the claim
/// there, and g and q of the two children for the prover.
fn layer<L: Lanes<Fr>>(
    l: L,
    session: &mut Session,
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
            (None, None, Some(again)) => {
                let (sums, bound) = again.sums(l, session, &point);
                apart = bound;
                Some(sums)
            }
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
fn fractional_sum(
    session: &mut Session,
    depth: usize,
    leaves: Option<Leaves>,
) -> Result<(Vec<Fr>, Expr, Expr)> {
    let leaves = leaves.as_ref();
    let (blocks, of) = leaves.map_or((&[][..], 1), |l| (&l.blocks, l.of));
    let mut layers = Vec::new();
    // The height of the lowest layer that is kept.
    let mut kept = 0;
    if let Some(leaves) = leaves {
        if let Some(size) = session.low_memory.filter(|_| leaves.bits == BLOCK) {
            kept = NOT_KEPT;
            let mut lowest = Layer::default();
            let [p, q] = leaves.sizes().map(|n| n >> kept);
            lowest.p.reserve_exact(p);
            lowest.q.reserve_exact(q);
            for run in leaves.runs(size) {
                let Layer { p, q } = leaves.layer_at(session, kept, run);
                lowest.p.extend(p);
                lowest.q.extend(q);
            }
            layers.push(lowest);
        } else {
            layers.push(leaves.layer(session, 0..leaves.blocks.len()));
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

#[cfg(test)]
mod tests;
