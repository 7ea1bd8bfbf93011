//! The tree of fractions of a lookup, and its layers' sums: `docs/scan/lookup.md`.
use std::collections::BTreeMap;
use std::ops::Range;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::dispatch;
use ragaudit_field_simd::lanes::Lanes;
use ragaudit_scan_protocol::prover::Recomputed;
use rayon::prelude::*;

use crate::expr::Expr;
use crate::group::Fr;
use crate::lookup::top_variables;
use crate::mle::fold;
use crate::numbers::half;
use crate::prover::rounds::{weight_runs, Kernel, Product, Rounds, Source, Weighing};
use crate::prover::Known;
use crate::segments::{Count, Entry, Segment};
use crate::small;

/// The largest number of leaves in a block, as a power of two. A block without counting leaves is not stored.
pub(crate) const BLOCK: usize = 10;

/// The number of blocks of leaves that provers compute at a time if they do not store all.
pub(crate) const RUN: usize = 1 << 9;
/// The number of lowest layers that are not stored in low memory.
pub(crate) const NOT_STORED: usize = 3;
/// The least memory: a fourth of a layer is stored.
pub(crate) const LEAST: Recomputed = Recomputed {
    run: RUN,
    rounds: 2,
};
/// Half of a layer is stored, for less time.
pub(crate) const LESS: Recomputed = Recomputed {
    run: RUN,
    rounds: 1,
};

/// Rows of a segment within one block.
pub(crate) type Piece = (usize, Range<usize>);

/// The leaves that count, block by block.
pub(crate) struct Leaves<'a> {
    pub(crate) segments: &'a [Segment],
    pub(crate) offsets: &'a [usize],
    pub(crate) challenges: [Fr; 2],
    /// Leaves of a block, as a power of two.
    pub(crate) bits: usize,
    /// Numbers of the stored blocks. Blocks in which all numerators are 1 come first.
    pub(crate) blocks: Vec<usize>,
    /// How many blocks there are, stored or not.
    pub(crate) of: usize,
    /// The contents of the stored blocks.
    pub(crate) pieces: Vec<Vec<Piece>>,
    /// The number of blocks with ones.
    pub(crate) ones: usize,
}

impl<'a> Leaves<'a> {
    pub(crate) fn new(leaves: ragaudit_scan_protocol::prover::Leaves<'a>) -> Self {
        let ragaudit_scan_protocol::prover::Leaves {
            segments,
            offsets,
            depth,
            challenges,
        } = leaves;
        // The highest variables, which are bound several at a time, number blocks.
        let bits = BLOCK.min(depth - top_variables(depth));
        let size = 1 << bits;
        // Rows that fill blocks with numerators 1, and all other rows by their block.
        let full = |s: &Segment| match s.count {
            Count::Table(_) | Count::TableFirst(..) | Count::TableOnce(_) => 0,
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
    pub(crate) fn layer(&self, known: &Known, run: Range<usize>) -> Layer {
        let size = 1 << self.bits;
        let ones = self.ones.clamp(run.start, run.end) - run.start;
        let mut p = vec![Fr::ZERO; (run.len() - ones) << self.bits];
        let mut q = vec![Fr::ONE; run.len() << self.bits];
        let (first, rest) = q.split_at_mut(ones << self.bits);
        // Adjacent blocks of one segment are computed in one step.
        let mut left = &mut first[..];
        let runs = self.pieces[run.start..run.start + ones].chunk_by(|a, b| a[0].0 == b[0].0);
        for pieces in runs {
            let (out, after) = left.split_at_mut(pieces.len() << self.bits);
            let (k, rows) = &pieces[0][0];
            self.segments[*k].denominators(known, self.challenges, rows.start, out);
            left = after;
        }
        let parts = p.chunks_exact_mut(size).zip(rest.chunks_exact_mut(size));
        for ((p, q), pieces) in parts.zip(&self.pieces[run.start + ones..run.end]) {
            for (k, rows) in pieces {
                let place = (self.offsets[*k] + rows.start) % size;
                let to = place..place + rows.len();
                self.segments[*k].numerators(known, rows.start, &mut p[to.clone()]);
                self.segments[*k].denominators(known, self.challenges, rows.start, &mut q[to]);
            }
        }
        Layer { p, q }
    }

    /// The layer at a height above the leaves, of a run of stored blocks.
    pub(crate) fn layer_at(&self, known: &Known, height: usize, run: Range<usize>) -> Layer {
        let leaves = self.layer(known, run);
        (0..height).fold(leaves, |below, _| above(&below.p, &below.q))
    }

    /// Numerators and denominators that are stored.
    pub(crate) fn sizes(&self) -> [usize; 2] {
        let blocks = self.blocks.len();
        [blocks - self.ones, blocks].map(|n| n << self.bits)
    }

    /// All runs of so many stored blocks.
    pub(crate) fn runs(&self, size: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let count = self.blocks.len();
        (0..count)
            .step_by(size)
            .map(move |at| at..count.min(at + size))
    }
}

/// The fractions of a segment's rows.
pub(crate) trait FractionalSums {
    fn numerators(&self, known: &Known, first: usize, out: &mut [Fr]);
    fn denominators(&self, known: &Known, challenges: [Fr; 2], first: usize, out: &mut [Fr]);
}

impl FractionalSums for Segment {
    fn numerators(&self, known: &Known, first: usize, out: &mut [Fr]) {
        match &self.count {
            Count::Table(id) | Count::TableFirst(id, _) => {
                let values = known.column(*id);
                small::combine(Fr::ZERO, &[(tail(values, first), -Fr::ONE)], out);
            }
            Count::TableOnce(_) => out.fill(-Fr::ONE),
            Count::Once | Count::First(_) => out.fill(Fr::ONE),
        }
    }

    /// alpha - (tag + sum of beta^k entry_k) for the rows from `first` on.
    fn denominators(&self, known: &Known, [alpha, beta]: [Fr; 2], first: usize, out: &mut [Fr]) {
        let rows = first..first + out.len();
        let numbers = |below: usize| -> Vec<i64> {
            rows.clone()
                .take_while(|x| *x < below)
                .map(|x| x as i64)
                .collect()
        };
        // The values that are computed here, in addition to the columns' values.
        let mut numbered: Vec<(Vec<i64>, Fr)> = Vec::new();
        let mut columns: Vec<(&[i64], Fr)> = Vec::new();
        let mut hidden: Vec<(&[Expr], Fr)> = Vec::new();
        let mut power = -Fr::ONE;
        for entry in &self.entries {
            power *= beta;
            match entry {
                Entry::Columns(parts) => columns.extend(parts.iter().map(|(id, f)| {
                    let values = known.column(*id);
                    (tail(values, first), power * f)
                })),
                Entry::Public(values) => columns.push((tail(values, first), power)),
                Entry::Derived(values) | Entry::Query { values, .. } => {
                    columns.push((tail(values.as_deref().unwrap_or_default(), first), power))
                }
                Entry::Row => numbered.push((numbers(usize::MAX), power)),
                Entry::RowBelow(n) => numbered.push((numbers(*n), power)),
                Entry::Below(n) => {
                    let count = n.saturating_sub(first).min(out.len());
                    numbered.push((vec![1; count], power));
                }
                Entry::Hidden(exprs) => hidden.push((tail(exprs, first), power)),
            }
        }
        columns.extend(numbered.iter().map(|(v, f)| (v.as_slice(), *f)));
        small::combine(alpha - Fr::from(self.tag), &columns, out);
        for (exprs, factor) in hidden {
            for (q, expr) in out.iter_mut().zip(exprs) {
                *q += known.value(expr) * factor;
            }
        }
    }
}

pub(crate) fn tail<T>(values: &[T], first: usize) -> &[T] {
    values.get(first..).unwrap_or_default()
}

/// A layer's fractions: of the stored blocks, or of all blocks when each has one node. p has no entries for blocks in which
/// all numerators are 1; these blocks come first.
#[derive(Default)]
pub(crate) struct Layer {
    pub(crate) p: Vec<Fr>,
    pub(crate) q: Vec<Fr>,
}

/// Nodes of one task.
pub(crate) const TASK: usize = 1 << 11;

/// The layer above: node x has the children 2x and 2x + 1.
pub(crate) fn above(p: &[Fr], q: &[Fr]) -> Layer {
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
pub(crate) fn join<L: Lanes<Fr>>(
    l: L,
    p: Option<&[Fr]>,
    q: &[Fr],
    next_p: &mut [Fr],
    next_q: &mut [Fr],
) {
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
pub(crate) fn pairs<L: Lanes<Fr>>(l: L, of: &[Fr]) -> [L::V; 2] {
    let of = &of[..2 * L::N];
    [l.load(|i| &of[2 * i]), l.load(|i| &of[2 * i + 1])]
}

/// One entry for each stored block, and `other` in the places of the other blocks.
pub(crate) fn spread(entries: &[Fr], blocks: &[usize], of: usize, other: Fr) -> Vec<Fr> {
    let each = entries.len() / blocks.len();
    let mut out = vec![other; of * each];
    for (run, block) in entries.chunks_exact(each).zip(blocks) {
        out[block * each..(block + 1) * each].copy_from_slice(run);
    }
    out
}

/// Where the numerators are 1: s = q + mu/2 of the left children, then of the right ones.
pub(crate) struct Ones<V> {
    pub(crate) q: Vec<Fr>,
    pub(crate) halved: V,
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
pub(crate) struct Mixed<V> {
    pub(crate) p: Vec<Fr>,
    pub(crate) q: Vec<Fr>,
    pub(crate) mu: V,
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

/// The children of N pairs of nodes, from pair N run on: of the first node of each pair, and of the second.
#[inline(always)]
pub(crate) fn children<L: Lanes<Fr>>(l: L, of: &[Fr], run: usize, side: usize) -> [L::V; 2] {
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
pub(crate) struct Cross;

impl Kernel for Cross {
    type Tables<V: Copy> = [V; 4];
    type Nodes<W: Copy> = [W; 2];

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, _: &[L::V], t: &[L::V]) -> L::V {
        l.reduce(l.mac(l.mac(l.wide(), t[0], t[3]), t[1], t[2]))
    }
}

/// One layer's sumcheck while its blocks are separate.
pub(crate) struct Apart<L: Lanes<Fr>> {
    pub(crate) l: L,
    pub(crate) mu: Fr,
    pub(crate) ones: Rounds<L, Ones<L::V>, Product>,
    pub(crate) mixed: Rounds<L, Mixed<L::V>, Cross>,
    /// Weights of a block's nodes.
    pub(crate) inner: Vec<Fr>,
    /// Weights of the blocks: of the blocks with ones, of the others, and their difference from 1.
    pub(crate) outer: [Vec<Fr>; 2],
    pub(crate) elsewhere: Fr,
}

impl<L: Lanes<Fr>> Apart<L> {
    /// `outer` weighs the stored blocks, which have 2^within nodes each.
    pub(crate) fn new(
        l: L,
        layer: Layer,
        mu: Fr,
        inner: Vec<Fr>,
        mut outer: Vec<Fr>,
        within: usize,
    ) -> Self {
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

    /// See [`Rounds::bound`], for all stored blocks.
    pub(crate) fn bound(l: L, again: &Again) -> Self {
        let [of_mixed, all] = again.leaves.sizes();
        // Above the leaves, no block has ones.
        let of_mixed = if again.height > 0 { all } else { of_mixed };
        let pairs = |nodes: usize| nodes >> (again.height + 2 + again.how.rounds);
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

    pub(crate) fn append(&mut self, run: Self) {
        self.ones.append(run.ones);
        self.mixed.append(run.mixed);
        self.inner = run.inner;
        for (all, outer) in self.outer.iter_mut().zip(run.outer) {
            all.extend(outer);
        }
    }

    /// The round polynomial at 1 and 2. At places that do not count the summand is 2.
    pub(crate) fn sums(&mut self) -> [Fr; 2] {
        let [of_ones, of_mixed] = &self.outer;
        let ones = weighed(self.l, &mut self.ones, &self.inner, of_ones);
        let mixed = weighed(self.l, &mut self.mixed, &self.inner, of_mixed);
        let square = self.mu.square() * half() * of_ones.iter().sum::<Fr>();
        let all = |k: usize| (ones[k] + self.elsewhere).double() - square + mixed[k];
        [all(0), all(1)]
    }

    pub(crate) fn bind(&mut self, r: Fr) {
        self.ones.bind(r);
        self.mixed.bind(r);
        fold(&mut self.inner);
    }

    /// g and q of the two children of each block's last node.
    pub(crate) fn nodes(&self) -> Vec<Vec<Fr>> {
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

/// A layer that was not stored, recomputed from the leaves run by run.
pub(crate) struct Again<'a> {
    pub(crate) leaves: &'a Leaves<'a>,
    pub(crate) height: usize,
    pub(crate) mu: Fr,
    pub(crate) inner: Vec<Fr>,
    pub(crate) outer: Vec<Fr>,
    pub(crate) within: usize,
    pub(crate) how: Recomputed,
}

impl Again<'_> {
    /// 1 minus the weights of the stored blocks.
    pub(crate) fn elsewhere(&self) -> Fr {
        Fr::ONE - self.outer.iter().sum::<Fr>()
    }

    /// [`Apart::sums`] of the layer with its lowest variables bound to `point`, and after enough rounds the layer itself.
    pub(crate) fn sums<L: Lanes<Fr>>(
        &self,
        l: L,
        known: &Known,
        point: &[Fr],
    ) -> ([Fr; 2], Option<Apart<L>>) {
        let mut sums = [self.elsewhere().double(); 2];
        let mut all = (point.len() == self.how.rounds).then(|| Apart::bound(l, self));
        for run in self.leaves.runs(self.how.run) {
            let outer = self.outer[run.clone()].to_vec();
            let layer = self.leaves.layer_at(known, self.height, run);
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
pub(crate) enum Stored<'a> {
    Layer(Layer),
    /// At a height above the leaves.
    Again(&'a Leaves<'a>, usize),
}

/// A round's sums, with |inner| pairs a block.
pub(crate) fn weighed<L: Lanes<Fr>, S: Source<L>, G: Kernel>(
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
pub(crate) fn nodes(layer: &Layer, mu: Fr) -> Vec<Vec<Fr>> {
    let ones = layer.q.len() - layer.p.len();
    let p = |x: usize| if x < ones { Fr::ONE } else { layer.p[x - ones] };
    let side = |side: usize| (side..layer.q.len()).step_by(2);
    let g = [0, 1].map(|k| side(k).map(|x| p(x) * mu + layer.q[x]).collect());
    let q = [0, 1].map(|k| side(k).map(|x| layer.q[x]).collect());
    [g, q].concat()
}

#[cfg(test)]
mod tests;
