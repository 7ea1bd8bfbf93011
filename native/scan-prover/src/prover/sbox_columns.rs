//! The S-box inputs of many permutations, and the sums of their layers: `docs/scan/poseidon.md`.
use std::array::from_fn;
use std::borrow::Cow;
use std::ops::Range;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::dispatch;
use ragaudit_field_simd::lanes::{Lanes, Portable};
use ragaudit_field_simd::poseidon::{
    round_parameters, sbox_inputs, State, PARTIAL_ROUNDS, SBOXES, WIDTH,
};
use ragaudit_scan_protocol::digits::{all_variables, table, Digit};
use ragaudit_scan_protocol::poseidon::rounds::{is_partial, HALF, LAST};
use ragaudit_scan_protocol::prover::{Blocks, Round, Sums};
use rayon::prelude::*;
use zeroize::Zeroize;

use crate::group::Fr;
use crate::mle::Weights;
use crate::numbers::half;
use crate::prover::digits::{self, prefix, whole, NODES, QUAD, TASK};
use crate::prover::polynomials::coefficients;

pub(crate) fn fifth(x: Fr) -> Fr {
    x.square().square() * x
}

/// The range of a round's S-boxes among all S-boxes.
pub(crate) fn columns_of(round: usize) -> std::ops::Range<usize> {
    let start = match round {
        r if r < HALF => r * WIDTH,
        r if is_partial(r) => HALF * WIDTH + r - HALF,
        r => (r - PARTIAL_ROUNDS) * WIDTH + PARTIAL_ROUNDS,
    };
    start..start + if is_partial(round) { 1 } else { WIDTH }
}

/// The S-box inputs of many permutations, by column; inputs that are not stored equal `rest`, from a state of zeros.
pub(crate) struct SboxColumns {
    pub(crate) columns: Vec<Vec<Fr>>,
    pub(crate) rest: Vec<Fr>,
    /// The part of the functional above in words 1..16, from one partial round to the next.
    linear: Option<Table<'static>>,
}

impl SboxColumns {
    /// 2^variables states, all zeros from `count` on.
    pub(crate) fn new(
        variables: usize,
        count: usize,
        state: impl Fn(usize) -> State + Sync,
    ) -> Self {
        let mut rest = vec![Fr::ZERO; SBOXES];
        let mut places: Vec<&mut [Fr]> = rest.iter_mut().map(std::slice::from_mut).collect();
        sbox_inputs(&[[Fr::ZERO; WIDTH]], &mut places);
        // Every stored value has its partners in the first round.
        let stored = count.next_multiple_of(QUAD).min(1 << variables);
        let mut columns = vec![vec![Fr::ZERO; stored]; SBOXES];
        let mut tasks: Vec<Vec<&mut [Fr]>> = Vec::new();
        tasks.resize_with(stored.div_ceil(TASK), || Vec::with_capacity(SBOXES));
        for column in &mut columns {
            let runs = column.chunks_mut(TASK);
            tasks.iter_mut().zip(runs).for_each(|(t, run)| t.push(run));
        }
        tasks.par_iter_mut().enumerate().for_each(|(task, runs)| {
            let first = task * TASK;
            let numbers = first..first + runs[0].len();
            let mut states: Vec<State> = numbers.map(&state).collect();
            sbox_inputs(&states, runs);
            states.zeroize();
        });
        Self {
            columns,
            rest,
            linear: None,
        }
    }

    pub(crate) fn tables(&self, round: usize) -> Vec<Table<'_>> {
        let range = columns_of(round);
        range
            .map(|k| Table {
                values: Cow::Borrowed(&self.columns[k][..]),
                rest: self.rest[k],
            })
            .collect()
    }
}

impl ragaudit_scan_protocol::prover::SboxColumns for SboxColumns {
    fn outputs(
        &self,
        tau: &[Fr],
        blocks: Option<Blocks>,
        calls: &[Fr],
        factors: &[[Fr; WIDTH]; 2],
    ) -> Box<dyn Sums + '_> {
        let on_blocks = blocks.map_or_else(Vec::new, |of| {
            let point = [of.record_point, of.block_point].concat();
            let apart = 1 << of.record_point.len();
            let mut weights = Weights::new(&point).prefix(of.blocks * apart);
            // Places without a record are permutations of zeros, without a claim about them.
            let unused = weights.chunks_mut(apart);
            unused.for_each(|run| run[of.records..].fill(Fr::ZERO));
            weights
        });
        let count = on_blocks.len();
        let layer = Layer {
            sbox_columns: self.tables(LAST),
            parts: vec![
                Part::masked(0, on_blocks, factors[0].to_vec()),
                Part::masked(count, calls.to_vec(), factors[1].to_vec()),
            ],
        };
        layer.sums(tau, 6)
    }

    fn full(
        &self,
        round: usize,
        factors: [Fr; WIDTH],
        [digits, weighed]: [&[Digit]; 2],
    ) -> Box<dyn Sums + '_> {
        let mut sbox_columns = self.tables(round);
        if weighed.is_empty() {
            return Box::new(OfDigits {
                sbox_columns,
                factors: factors.to_vec(),
                linear: None,
                left: digits.to_vec(),
            });
        }
        // Places that are not stored also have weights other than 0.
        let weights = table(weighed);
        let tables = sbox_columns.iter_mut();
        tables.for_each(|t| t.values.to_mut().resize(weights.len(), t.rest));
        let layer = Layer {
            sbox_columns,
            parts: vec![Part::masked(0, weights, factors.to_vec())],
        };
        layer.sums(&vec![half(); all_variables(weighed)], 6)
    }

    fn partial(
        &mut self,
        round: usize,
        above: &[Fr; WIDTH],
        gamma: Option<Fr>,
        factor: Fr,
        digits: &[Digit],
    ) -> Box<dyn Sums + '_> {
        // <weights, y> = w_0 x_0^5 + L: only L's values are needed of the words 1..16.
        let running = self.linear.take().zip(gamma);
        let tables = self.tables(round + 1).into_iter().zip(*above);
        let terms: Vec<(Table, Fr)> = tables.chain(running).collect();
        let (constants, _) = round_parameters();
        let shift: Fr = above
            .iter()
            .zip(&constants[round + 1])
            .map(|(a, c)| *a * c)
            .sum();
        let linear = combine(&terms, -shift, &self.tables(round)[0], -factor);
        drop(terms);
        self.linear = Some(linear);
        Box::new(OfDigits {
            sbox_columns: self.tables(round),
            factors: vec![factor],
            linear: self.linear.as_ref().map(Table::borrowed),
            left: digits.to_vec(),
        })
    }
}

/// The first values of a table; all after them are `rest`.
pub(crate) struct Table<'a> {
    pub(crate) values: Cow<'a, [Fr]>,
    pub(crate) rest: Fr,
}

impl Table<'_> {
    pub(crate) fn borrowed(&self) -> Table<'_> {
        Table {
            values: Cow::Borrowed(&self.values),
            rest: self.rest,
        }
    }

    /// Gives the last value a partner.
    pub(crate) fn pair_up(&mut self) {
        self.fill_up(2);
    }

    /// Adds the missing values of the last digit of m values.
    pub(crate) fn fill_up(&mut self, m: usize) {
        let length = self.values.len().next_multiple_of(m);
        if length > self.values.len() {
            self.values.to_mut().resize(length, self.rest);
        }
    }

    /// Binds the lowest variable of a table with paired values.
    pub(crate) fn bind(&mut self, r: Fr) {
        let mut out = vec![Fr::ZERO; self.values.len() / 2];
        out.par_chunks_mut(TASK)
            .zip(self.values.par_chunks(2 * TASK))
            .for_each(|(out, pairs)| fold(out, pairs, r));
        self.values = Cow::Owned(out);
    }

    pub(crate) fn first(&self) -> Fr {
        self.values.first().copied().unwrap_or(self.rest)
    }
}

/// The factors of a sum of fifth powers, times a mask that is 0 outside its values.
pub(crate) struct Part<'a> {
    pub(crate) factors: Vec<Fr>,
    /// The first place of the mask's values, and the values.
    pub(crate) first: usize,
    pub(crate) mask: Table<'a>,
}

impl Part<'_> {
    /// The mask's values start at `first`.
    pub(crate) fn masked(first: usize, mask: Vec<Fr>, factors: Vec<Fr>) -> Self {
        let rest = Fr::ZERO;
        let values = Cow::Owned(mask);
        let mask = Table { values, rest };
        Self {
            factors,
            first,
            mask,
        }
    }

    pub(crate) fn pair_up(&mut self) {
        if self.first % 2 == 1 {
            self.first -= 1;
            self.mask.values.to_mut().insert(0, Fr::ZERO);
        }
        self.mask.pair_up();
    }
}

/// The gate of a layer over the blocks, variable by variable: sum over parts of mask sum_i factors_i boxes_i^5.
pub(crate) struct Layer<'a> {
    pub(crate) sbox_columns: Vec<Table<'a>>,
    pub(crate) parts: Vec<Part<'a>>,
}

impl<'a> Layer<'a> {
    /// The layer's sumcheck under eq of a point.
    pub(crate) fn sums(self, tau: &[Fr], degree: usize) -> Box<dyn Sums + 'a> {
        Box::new(OfLayer {
            layer: self,
            weights: Weights::new(tau.get(1..).unwrap_or_default()),
            degree,
        })
    }

    /// c_1, .., c_degree of the round polynomial.
    fn coefficients(&mut self, weights: &Weights, degree: usize) -> Vec<Fr> {
        self.sbox_columns.iter_mut().for_each(Table::pair_up);
        self.parts.iter_mut().for_each(Part::pair_up);
        let mut out = vec![Fr::ZERO; degree + 1];
        for part in &self.parts {
            let binomials = BINOMIALS.map(Fr::from);
            let first = part.first / 2;
            let range = first..first + part.mask.values.len() / 2;
            let eq = |x: usize| {
                let size = weights.low.len();
                weights.low[x % size] * weights.high[x / size]
            };
            // The mask's value at 0, and its step.
            for (shift, step) in [false, true].into_iter().enumerate() {
                let pair = |(x, pair): (usize, &[Fr])| match step {
                    false => eq(first + x) * pair[0],
                    true => eq(first + x) * (pair[1] - pair[0]),
                };
                let pairs = part.mask.values.par_chunks(2).enumerate();
                let masked: Vec<Fr> = pairs.map(pair).collect();
                let of_chunk = |chunk: usize| &masked[chunk * TASK..];
                let (factors, range) = (&part.factors, range.clone());
                let sums = fifth_sums::<true>(&self.sbox_columns, factors, range, of_chunk);
                for k in 1 - shift..=5 {
                    out[k + shift] += binomials[k] * sums[k];
                }
            }
        }
        out.remove(0);
        out
    }

    pub(crate) fn bind(&mut self, r: Fr) {
        let masks = self.parts.iter_mut().map(|part| {
            part.first /= 2;
            &mut part.mask
        });
        let tables: Vec<&mut Table> = self.sbox_columns.iter_mut().chain(masks).collect();
        tables.into_par_iter().for_each(|table| table.bind(r));
    }
}

/// A layer digit by digit: sum_i factors_i boxes_i^5, plus the linear table. Places that are not stored have the same summand
/// at all values of a digit, which adds only to the constant coefficient.
struct OfDigits<'a> {
    sbox_columns: Vec<Table<'a>>,
    factors: Vec<Fr>,
    linear: Option<Table<'a>>,
    /// The digits that are not bound.
    left: Vec<Digit>,
}

impl OfDigits<'_> {
    /// The sums of fifth powers, for a digit of four values.
    fn of_quads(&self, weights: &[Fr]) -> Vec<Fr> {
        let chunks = weights.len().div_ceil(TASK);
        let task = |i: usize| {
            let (column, chunk) = (i / chunks, i % chunks);
            let weights = &weights[chunk * TASK..weights.len().min((chunk + 1) * TASK)];
            let values = &self.sbox_columns[column].values[QUAD * chunk * TASK..];
            let factor = self.factors[column];
            digits::fifth_sums(&values[..QUAD * weights.len()], weights).map(|s| s * factor)
        };
        let tasks = (0..self.sbox_columns.len() * chunks).into_par_iter();
        let sums = tasks
            .with_min_len(TASK / weights.len().clamp(1, TASK))
            .map(task);
        let zeros = || [Fr::ZERO; NODES];
        coefficients(&sums.reduce(zeros, |a, b| from_fn(|k| a[k] + b[k])))
    }
}

impl Sums for OfDigits<'_> {
    fn coefficients(&mut self, round: &Round) -> Vec<Fr> {
        let m = round.digit.len();
        let tables = self.sbox_columns.iter_mut().chain(&mut self.linear);
        tables.for_each(|table| table.fill_up(m));
        let count = self.sbox_columns[0].values.len() / m;
        let weights = prefix(&self.left[1..], count);
        let mut out = if m == QUAD {
            self.of_quads(&weights)
        } else {
            let of_chunk = |chunk: usize| &weights[chunk * TASK..];
            let sums = fifth_sums::<false>(&self.sbox_columns, &self.factors, 0..count, of_chunk);
            (1..=5).map(|k| Fr::from(BINOMIALS[k]) * sums[k]).collect()
        };
        if let Some(linear) = &self.linear {
            let tasks = linear.values.par_chunks(m * TASK);
            let sums = tasks
                .zip(weights.par_chunks(TASK))
                .map(|(values, weights)| digits::value_sums(values, weights, m));
            let sums = sums.reduce(
                || vec![Fr::ZERO; m],
                |a, b| a.iter().zip(b).map(|(a, b)| *a + b).collect(),
            );
            let own = coefficients(&sums);
            out.iter_mut().zip(own).for_each(|(c, own)| *c += own);
        }
        out
    }

    fn bind(&mut self, s: Fr) {
        let digit = self.left.remove(0);
        let tables: Vec<&mut Table> = self
            .sbox_columns
            .iter_mut()
            .chain(&mut self.linear)
            .collect();
        let bound = |table: &mut Table| {
            table.values = Cow::Owned(digits::bind(&table.values, &digit, s));
        };
        tables.into_par_iter().for_each(bound);
    }

    fn finals(&self) -> Vec<Fr> {
        let tables = self.sbox_columns.iter().chain(&self.linear);
        tables.map(Table::first).collect()
    }
}

struct OfLayer<'a> {
    layer: Layer<'a>,
    weights: Weights,
    degree: usize,
}

impl Sums for OfLayer<'_> {
    fn coefficients(&mut self, _: &Round) -> Vec<Fr> {
        self.layer.coefficients(&self.weights, self.degree)
    }

    fn bind(&mut self, r: Fr) {
        self.layer.bind(r);
        self.weights.bind();
    }

    fn finals(&self) -> Vec<Fr> {
        self.layer.sbox_columns.iter().map(Table::first).collect()
    }
}

/// 5 over k.
pub(crate) const BINOMIALS: [u64; 6] = [1, 5, 10, 10, 5, 1];

/// For k = 0..5, the sum over columns i and pairs (a, a + d) of weight factors_i a^(5-k) d^k; k = 0 only if ALL. Chunk c of
/// [`TASK`] pairs has the weights `weights(c)`.
pub(crate) fn fifth_sums<'a, const ALL: bool>(
    sbox_columns: &[Table],
    factors: &[Fr],
    pairs: Range<usize>,
    weights: impl Fn(usize) -> &'a [Fr] + Sync,
) -> [Fr; 6] {
    let chunks = pairs.len().div_ceil(TASK);
    let task = |i: usize| {
        let (column, chunk) = (i / chunks, i % chunks);
        let from = pairs.start + chunk * TASK;
        let to = pairs.end.min(from + TASK);
        let run = &sbox_columns[column].values[2 * from..2 * to];
        power_sums::<ALL>(run, &weights(chunk)[..to - from]).map(|s| s * factors[column])
    };
    (0..sbox_columns.len() * chunks)
        .into_par_iter()
        .map(task)
        .reduce(|| [Fr::ZERO; 6], |a, b| from_fn(|k| a[k] + b[k]))
}

/// The same for one column of pairs.
pub(crate) fn power_sums<const ALL: bool>(pairs: &[Fr], weights: &[Fr]) -> [Fr; 6] {
    dispatch!(l => {
        let whole = whole(l, weights.len());
        let sums = power_sums_lanes::<_, ALL>(l, &pairs[..2 * whole], &weights[..whole]);
        let rest = power_sums_lanes::<_, ALL>(Portable, &pairs[2 * whole..], &weights[whole..]);
        from_fn(|k| sums[k] + rest[k])
    })
}

/// At most [`TASK`] pairs. A product is below 7.1 p * 3.1 p, or 7.1 p * 1.3 p at k = 0.
#[inline(always)]
pub(crate) fn power_sums_lanes<L: Lanes<Fr>, const ALL: bool>(
    l: L,
    pairs: &[Fr],
    weights: &[Fr],
) -> [Fr; 6] {
    let mut out = [Fr::ZERO; 6];
    if weights.is_empty() {
        return out;
    }
    let mut sums = [l.wide(); 6];
    for (pairs, weights) in pairs.chunks_exact(2 * L::N).zip(weights.chunks_exact(L::N)) {
        let (a, b) = (l.load(|i| &pairs[2 * i]), l.load(|i| &pairs[2 * i + 1]));
        let (d, weight) = (l.sub(b, a), l.load(|i| &weights[i]));
        let (aa, ad, dd) = (l.square(a), l.mul(a, d), l.square(d));
        let aaaa = l.square(aa);
        if ALL {
            sums[0] = l.mac(sums[0], l.mul(weight, a), aaaa);
        }
        let step = l.mul(weight, d);
        sums[1] = l.mac(sums[1], step, aaaa);
        sums[2] = l.mac(sums[2], step, l.mul(aa, ad));
        sums[3] = l.mac(sums[3], step, l.mul(aa, dd));
        sums[4] = l.mac(sums[4], step, l.mul(ad, dd));
        sums[5] = l.mac(sums[5], step, l.square(dd));
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = l.sum(l.reduce(sum));
    }
    out
}

/// a + r (b - a) of each pair.
pub(crate) fn fold(out: &mut [Fr], pairs: &[Fr], r: Fr) {
    dispatch!(l => {
        let (start, end) = out.split_at_mut(whole(l, out.len()));
        let pairs = pairs.split_at(2 * start.len());
        fold_lanes(l, start, pairs.0, r);
        fold_lanes(Portable, end, pairs.1, r);
    })
}

#[inline(always)]
pub(crate) fn fold_lanes<L: Lanes<Fr>>(l: L, out: &mut [Fr], pairs: &[Fr], r: Fr) {
    let r = l.splat(&r);
    for (out, pairs) in out.chunks_exact_mut(L::N).zip(pairs.chunks_exact(2 * L::N)) {
        let (a, b) = (l.load(|i| &pairs[2 * i]), l.load(|i| &pairs[2 * i + 1]));
        let folded = l.add(a, l.mul(r, l.sub(b, a)));
        l.store(
            folded,
            #[inline(always)]
            |i, x| out[i] = x,
        );
    }
}

/// constant + sum of factors_i tables_i + factor x^5, entry by entry.
pub(crate) fn combine(
    terms: &[(Table, Fr)],
    constant: Fr,
    x: &Table,
    factor: Fr,
) -> Table<'static> {
    let mut values = vec![Fr::ZERO; x.values.len()];
    values
        .par_chunks_mut(TASK)
        .enumerate()
        .for_each(|(task, out)| {
            let first = task * TASK;
            let place = first..first + out.len();
            let runs: Vec<(&[Fr], Fr)> = terms
                .iter()
                .map(|(t, f)| (&t.values[place.clone()], *f))
                .collect();
            let x = &x.values[place];
            dispatch!(l => {
                let whole = whole(l, out.len());
                let (start, end) = out.split_at_mut(whole);
                combine_lanes(l, start, &runs, 0, constant, &x[..whole], factor);
                combine_lanes(Portable, end, &runs, whole, constant, &x[whole..], factor);
            });
        });
    let rest: Fr = terms.iter().map(|(t, f)| t.rest * f).sum();
    Table {
        values: Cow::Owned(values),
        rest: rest + constant + factor * fifth(x.rest),
    }
}

/// The same for the entries of the terms from `first` on.
#[inline(always)]
pub(crate) fn combine_lanes<L: Lanes<Fr>>(
    l: L,
    out: &mut [Fr],
    terms: &[(&[Fr], Fr)],
    first: usize,
    constant: Fr,
    x: &[Fr],
    factor: Fr,
) {
    let factors: Vec<L::K> = terms.iter().map(|(_, f)| l.constant(f)).collect();
    let (constant, factor) = (l.splat(&constant), l.splat(&factor));
    let runs = out.chunks_exact_mut(L::N).zip(x.chunks_exact(L::N));
    for (run, (out, x)) in runs.enumerate() {
        let x = l.load(|i| &x[i]);
        let square = l.square(x);
        let mut sum = l.mac(l.wide_from(constant), factor, l.mul(l.square(square), x));
        for ((values, _), f) in terms.iter().zip(&factors) {
            let values = &values[first + run * L::N..][..L::N];
            sum = l.mac(sum, l.all(f), l.load(|i| &values[i]));
        }
        l.store(
            l.reduce(sum),
            #[inline(always)]
            |i, x| out[i] = x,
        );
    }
}

#[cfg(test)]
mod tests;
