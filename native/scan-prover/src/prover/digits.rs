//! Rounds over digits: sums of tables that are extended from a digit's values to as many nodes as the round's polynomial
//! needs. `docs/scan/sumcheck.md`.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::dispatch;
use ragaudit_field_simd::lanes::{Lanes, Portable};
use ragaudit_scan_protocol::digits::{lagrange, variables, Digit};
use rayon::prelude::*;

use crate::group::Fr;
use crate::prover::rounds::Kernel;

/// Permutations, or digits or pairs of them, of one task.
pub(crate) const TASK: usize = 1 << 9;
/// Values of the largest digit.
pub(crate) const MAXIMUM: usize = 1 << ragaudit_scan_protocol::digits::MAXIMUM;
/// Values of a digit of a layer of permutations, and the nodes of fifth powers of tables of one degree less.
pub(crate) const QUAD: usize = 4;
pub(crate) const NODES: usize = 5 * (QUAD - 1) + 1;

/// The largest part of `count` that fills all lanes.
#[inline(always)]
pub(crate) fn whole<L: Lanes<Fr>>(_: L, count: usize) -> usize {
    count - count % L::N
}

/// The weights of the first `count` places.
pub(crate) fn prefix(digits: &[Digit], count: usize) -> Vec<Fr> {
    let mut out = vec![Fr::ONE];
    for digit in digits {
        let all = digit
            .iter()
            .flat_map(|high| out.iter().map(move |low| *low * high));
        out = all.take(count).collect();
    }
    out
}

/// A table in one digit: its values at 0, .., m - 1, and the factors that extrapolate it.
#[derive(Clone, Copy)]
struct Line<V> {
    values: [V; MAXIMUM],
    /// Differences of each order below m that end at the last node, the first one its value.
    ends: [V; MAXIMUM],
}

impl<V: Copy> Line<V> {
    #[inline(always)]
    fn zero<L: Lanes<Fr, V = V>>(l: L) -> Self {
        let values = [l.zero(); MAXIMUM];
        Self {
            values,
            ends: values,
        }
    }

    /// For values below 16 p; its results are below 16 p.
    #[inline(always)]
    fn new<L: Lanes<Fr, V = V>>(l: L, values: [V; MAXIMUM], m: usize) -> Self {
        let (mut ends, mut row) = ([l.zero(); MAXIMUM], values);
        for (order, end) in ends.iter_mut().enumerate().take(m) {
            let last = m - 1 - order;
            *end = l.weak(row[last]);
            for k in 0..last {
                row[k] = l.weak(l.sub(row[k + 1], row[k]));
            }
        }
        Self { values, ends }
    }

    /// The value at `node`; those from m on one after the other.
    #[inline(always)]
    fn at<L: Lanes<Fr, V = V>>(&mut self, l: L, node: usize, m: usize) -> V {
        if node < m {
            return self.values[node];
        }
        for order in (0..m - 1).rev() {
            self.ends[order] = l.weak(l.add(self.ends[order], self.ends[order + 1]));
        }
        self.ends[0]
    }
}

/// The values of the digit below N places, from place N run on.
#[inline(always)]
fn values<L: Lanes<Fr>>(l: L, table: &[Fr], run: usize, m: usize) -> [L::V; MAXIMUM] {
    let table = &table[m * L::N * run..][..m * L::N];
    let mut values = [l.zero(); MAXIMUM];
    for (k, value) in values.iter_mut().enumerate().take(m) {
        *value = l.weak(l.load(|i| &table[m * i + k]));
    }
    values
}

/// The sums of weight times gate with the lowest digit, of m values, at 1, .., nodes. The tables have m entries for each
/// weight.
pub(crate) fn gate_sums<G: Kernel>(
    gate: &G,
    tables: &[Vec<Fr>],
    weights: &[Fr],
    m: usize,
    nodes: usize,
) -> Vec<Fr> {
    let tasks = weights.par_chunks(TASK).enumerate();
    let sums = tasks.map(|(task, weights)| {
        let first = m * task * TASK;
        let tables: Vec<&[Fr]> = tables
            .iter()
            .map(|t| &t[first..first + m * weights.len()])
            .collect();
        dispatch!(l => {
            let split = whole(l, weights.len());
            let (low, high): (Vec<&[Fr]>, Vec<&[Fr]>) =
                tables.iter().map(|t| t.split_at(m * split)).unzip();
            let mut sums = gate_sums_lanes(l, gate, &low, &weights[..split], m, nodes);
            let rest = gate_sums_lanes(Portable, gate, &high, &weights[split..], m, nodes);
            sums.iter_mut().zip(rest).for_each(|(sum, rest)| *sum += rest);
            sums
        })
    });
    let zeros = || vec![Fr::ZERO; nodes];
    sums.reduce(zeros, |mut a, b| {
        a.iter_mut().zip(b).for_each(|(x, y)| *x += y);
        a
    })
}

/// At most [`TASK`] weights.
#[inline(always)]
pub(crate) fn gate_sums_lanes<L: Lanes<Fr>, G: Kernel>(
    l: L,
    gate: &G,
    tables: &[&[Fr]],
    weights: &[Fr],
    m: usize,
    nodes: usize,
) -> Vec<Fr> {
    if weights.is_empty() {
        return vec![Fr::ZERO; nodes];
    }
    let constants: Vec<L::V> = gate.constants().iter().map(|c| l.splat(c)).collect();
    let mut wide = vec![l.wide(); nodes];
    let mut at = vec![l.zero(); tables.len()];
    let mut lines = vec![Line::zero(l); tables.len()];
    for (run, weights) in weights.chunks_exact(L::N).enumerate() {
        let weight = l.weak(l.load(|i| &weights[i]));
        // A closure would not have the lanes' instructions.
        for (line, table) in lines.iter_mut().zip(tables) {
            *line = Line::new(l, values(l, table, run, m), m);
        }
        for (node, sum) in wide.iter_mut().enumerate() {
            for (at, line) in at.iter_mut().zip(&mut lines) {
                *at = line.at(l, node + 1, m);
            }
            *sum = l.mac(*sum, weight, gate.at(l, &constants, &at));
        }
    }
    wide.into_iter().map(|sum| l.sum(l.reduce(sum))).collect()
}

/// A table with its lowest digit bound to s.
pub(crate) fn bind(table: &[Fr], digit: &Digit, s: Fr) -> Vec<Fr> {
    let (m, factors) = (digit.len(), lagrange(variables(digit), s));
    let mut out = vec![Fr::ZERO; table.len() / m];
    let tasks = out.par_chunks_mut(TASK).zip(table.par_chunks(m * TASK));
    tasks.for_each(|(out, table)| {
        dispatch!(l => {
            let (start, end) = out.split_at_mut(whole(l, out.len()));
            let (low, high) = table.split_at(m * start.len());
            bind_lanes(l, start, low, &factors);
            bind_lanes(Portable, end, high, &factors);
        });
    });
    out
}

#[inline(always)]
pub(crate) fn bind_lanes<L: Lanes<Fr>>(l: L, out: &mut [Fr], table: &[Fr], factors: &[Fr]) {
    let m = factors.len();
    let factors: Vec<L::V> = factors.iter().map(|f| l.splat(f)).collect();
    for (out, table) in out.chunks_exact_mut(L::N).zip(table.chunks_exact(m * L::N)) {
        let mut sum = l.wide();
        for (k, factor) in factors.iter().enumerate() {
            sum = l.mac(sum, *factor, l.load(|i| &table[m * i + k]));
        }
        l.store(
            l.reduce(sum),
            #[inline(always)]
            |i, x| out[i] = x,
        );
    }
}

/// The sums of weight times the fifth power of a table with its lowest digit, of four values, at 0, 1, ..; at most [`TASK`]
/// weights.
pub(crate) fn fifth_sums(table: &[Fr], weights: &[Fr]) -> [Fr; NODES] {
    dispatch!(l => {
        let split = whole(l, weights.len());
        let (low, high) = table.split_at(QUAD * split);
        let mut sums = fifth_sums_lanes(l, low, &weights[..split]);
        let rest = fifth_sums_lanes(Portable, high, &weights[split..]);
        sums.iter_mut().zip(rest).for_each(|(sum, rest)| *sum += rest);
        sums
    })
}

/// A product is below 1.6 p * 1.1 p.
#[inline(always)]
pub(crate) fn fifth_sums_lanes<L: Lanes<Fr>>(l: L, table: &[Fr], weights: &[Fr]) -> [Fr; NODES] {
    let mut out = [Fr::ZERO; NODES];
    if weights.is_empty() {
        return out;
    }
    let mut sums = [l.wide(); NODES];
    for (run, weights) in weights.chunks_exact(L::N).enumerate() {
        let weight = l.load(|i| &weights[i]);
        let mut line = Line::new(l, values(l, table, run, QUAD), QUAD);
        for (node, sum) in sums.iter_mut().enumerate() {
            let x = line.at(l, node, QUAD);
            *sum = l.mac(*sum, l.mul(weight, x), l.square(l.square(x)));
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = l.sum(l.reduce(sum));
    }
    out
}

/// The weighted sums of a table with its lowest digit at each of its values; at most [`TASK`] weights.
pub(crate) fn value_sums(table: &[Fr], weights: &[Fr], m: usize) -> Vec<Fr> {
    dispatch!(l => {
        let split = whole(l, weights.len());
        let (low, high) = table.split_at(m * split);
        let mut sums = value_sums_lanes(l, low, &weights[..split], m);
        let rest = value_sums_lanes(Portable, high, &weights[split..], m);
        sums.iter_mut().zip(rest).for_each(|(sum, rest)| *sum += rest);
        sums
    })
}

#[inline(always)]
pub(crate) fn value_sums_lanes<L: Lanes<Fr>>(
    l: L,
    table: &[Fr],
    weights: &[Fr],
    m: usize,
) -> Vec<Fr> {
    let mut sums = vec![l.wide(); m];
    for (run, weights) in weights.chunks_exact(L::N).enumerate() {
        let weight = l.weak(l.load(|i| &weights[i]));
        let values = values(l, table, run, m);
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = l.mac(*sum, weight, value);
        }
    }
    sums.into_iter().map(|sum| l.sum(l.reduce(sum))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prover::fractional_sumcheck::Cross;
    use crate::prover::rounds::Product;
    use crate::tests::residues;
    use ragaudit_field_simd::lanes::tracked::Tracked;
    use ragaudit_scan_protocol::digits::{of_point, regroup, table};

    /// The polynomial through the values of a digit, at a node.
    fn through(values: &[Fr], node: usize) -> Fr {
        let digit = lagrange(
            values.len().trailing_zeros() as usize,
            Fr::from(node as u64),
        );
        digit.iter().zip(values).map(|(w, v)| *w * v).sum()
    }

    #[test]
    fn kernels_agree_with_the_field_within_their_bounds() {
        for (m, count) in [(4, TASK), (4, 13), (8, TASK), (2, 21)] {
            let all = residues((4 * m + 1) * count + 1);
            let (weights, rest) = all.split_at(count);
            let s = rest[4 * m * count];
            let tables: Vec<&[Fr]> = rest.chunks(m * count).take(4).collect();
            let owned: Vec<Vec<Fr>> = tables.iter().map(|t| t.to_vec()).collect();
            let nodes = 2 * (m - 1);
            let lines = |k: usize| tables[k].chunks(m);
            let sum =
                |of: &dyn Fn(usize) -> Fr| -> Fr { (0..count).map(|x| weights[x] * of(x)).sum() };
            let value = |k: usize, x: usize, node| through(lines(k).nth(x).unwrap(), node);
            let cross = |node: usize| {
                sum(&|x| {
                    let t = [0, 1, 2, 3].map(|k| value(k, x, node));
                    t[0] * t[3] + t[1] * t[2]
                })
            };
            // Few nodes by the definition, all of them on all lanes.
            let actual = gate_sums(&Cross, &owned, weights, m, nodes);
            for node in [1, m - 1, nodes] {
                assert_eq!(actual[node - 1], cross(node));
            }
            let tracked = gate_sums_lanes(Tracked, &Cross, &tables, weights, m, nodes);
            let whole_lanes = count == TASK;
            assert!(!whole_lanes || tracked == actual);
            let portable = gate_sums_lanes(Portable, &Product, &tables[..2], weights, m, nodes);
            assert!(
                !whole_lanes || portable == gate_sums(&Product, &owned[..2], weights, m, nodes)
            );
            let values = value_sums(tables[0], weights, m);
            assert!((0..m).all(|k| values[k] == sum(&|x| value(0, x, k))));
            assert!(!whole_lanes || value_sums_lanes(Tracked, tables[0], weights, m) == values);
            let digit = vec![Fr::ZERO; m];
            let factors = lagrange(variables(&digit), s);
            let dot = |line: &[Fr]| line.iter().zip(&factors).map(|(v, f)| *v * f).sum::<Fr>();
            let bound: Vec<Fr> = lines(0).map(dot).collect();
            assert_eq!(bind(tables[0], &digit, s), bound);
            let mut out = vec![Fr::ZERO; count];
            bind_lanes(Tracked, &mut out, tables[0], &factors);
            assert!(!whole_lanes || out == bound);
            if m == QUAD {
                let actual = fifth_sums(tables[0], weights);
                for node in [0, 3, 4, NODES - 1] {
                    assert_eq!(actual[node], sum(&|x| value(0, x, node).pow([5])));
                }
                assert!(!whole_lanes || fifth_sums_lanes(Tracked, tables[0], weights) == actual);
            }
        }
    }

    #[test]
    fn prefixes_are_of_the_whole_table() {
        let digits = regroup(&of_point(&residues(6)), &[1, 2, 3]);
        for count in [1, 7, 64] {
            assert_eq!(prefix(&digits, count), table(&digits)[..count]);
        }
    }
}
