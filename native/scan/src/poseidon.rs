//! Many Poseidon permutations by layered GKR: `docs/scan/poseidon.md`.
use std::array::from_fn;
use std::borrow::Cow;
use std::ops::Range;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::dispatch;
use ragaudit_core::lanes::{Lanes, Portable};
use ragaudit_core::noise::{block_state, TAG_NOISE_BLOCK};
use ragaudit_core::poseidon::{
    hash, permute, round_parameters, sbox_inputs, Matrix, State, FULL_ROUNDS, LIST_RUN,
    PARTIAL_ROUNDS, SBOXES, TAG_LIST, WIDTH,
};
use rayon::prelude::*;
use zeroize::Zeroize;

use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::mle::{eq_at, eq_table, prefix, Weight, Weights};
use crate::numbers::log2_ceil;
use crate::session::Session;
use crate::sumcheck::{plain, round, Reduced};

const HALF: usize = FULL_ROUNDS / 2;
const LAST: usize = FULL_ROUNDS + PARTIAL_ROUNDS - 1;
/// Words of a noise block that carry draws, as a power of two.
pub const WORD_VARIABLES: usize = 4;
/// Permutations, or pairs of them, of one task.
const TASK: usize = 1 << 9;

/// Noise blocks: permutation b of (0, kappa, b, 9, 0, ..) for b below `blocks`, and the claim that the words
/// 1..16 of all of them, word w of block b at 16 b + w - 1, extend to `value` at (word_point, block_point).
pub struct Stream {
    pub kappa: Expr,
    pub blocks: usize,
    pub word_point: Vec<Fr>,
    pub block_point: Vec<Fr>,
    pub value: Expr,
}

/// A hash of at most 16 elements: words 1.. of the input, and word 0 of the output.
pub struct Call {
    pub inputs: Vec<Expr>,
    pub output: Expr,
}

impl Call {
    /// HL(tag, list) = output. The running hashes between are sent as hidden values.
    pub fn list(session: &mut Session, tag: u64, list: &[Expr], output: Fr) -> Result<Vec<Self>> {
        let start = start_of_list(tag, list.len());
        let mut running = Expr::from(start);
        let mut calls = Vec::new();
        let runs: Vec<&[Expr]> = list.chunks(LIST_RUN).collect();
        for (i, run) in runs.iter().enumerate() {
            let mut inputs = vec![running.clone()];
            inputs.extend(run.iter().cloned());
            running = if i + 1 == runs.len() {
                output.into()
            } else {
                let value = session.proving().then(|| {
                    let words: Vec<Fr> = inputs.iter().filter_map(|e| session.value(e)).collect();
                    hash(&words).expect("a run and a running hash fit")
                });
                session.send("running hash", 1, value.as_ref().map(std::slice::from_ref))?[0].into()
            };
            calls.push(Self {
                inputs,
                output: running.clone(),
            });
        }
        Ok(calls)
    }
}

/// H(10, tag, length).
pub(crate) fn start_of_list(tag: u64, length: usize) -> Fr {
    hash(&[TAG_LIST, tag, length as u64].map(Fr::from)).expect("three inputs fit")
}

/// Variables of a table of this many blocks and calls.
pub fn block_variables(blocks: usize, calls: usize) -> usize {
    log2_ceil(blocks + calls)
}

fn transposed_times(m: &Matrix<WIDTH>, x: &[Fr; WIDTH]) -> [Fr; WIDTH] {
    from_fn(|j| (0..WIDTH).map(|i| m[i][j] * x[i]).sum())
}

fn fifth(x: Fr) -> Fr {
    x.square().square() * x
}

/// x, x^2, x^4, x^5 as hidden values with their products claimed; returns the variables of x and x^5.
fn powers(
    session: &mut Session,
    finals: Option<&[Fr]>,
    boxes: usize,
    extra: usize,
) -> Result<Powers> {
    let values = finals.map(|finals| {
        let (x, rest) = finals.split_at(boxes);
        let mut out = x.to_vec();
        out.extend(x.iter().map(Field::square));
        out.extend(x.iter().map(|x| x.square().square()));
        out.extend(x.iter().map(|x| fifth(*x)));
        out.extend(&rest[..extra]);
        out
    });
    let vars = session.send("S-box inputs", 4 * boxes + extra, values.as_deref())?;
    let at = |i: usize| Expr::from(vars[i]);
    for i in 0..boxes {
        session.constrain_product("square", at(i), at(i), at(boxes + i));
        session.constrain_product(
            "fourth power",
            at(boxes + i),
            at(boxes + i),
            at(2 * boxes + i),
        );
        session.constrain_product("fifth power", at(2 * boxes + i), at(i), at(3 * boxes + i));
    }
    Ok(Powers {
        inputs: vars[..boxes].to_vec(),
        fifths: vars[3 * boxes..4 * boxes].to_vec(),
        extra: vars[4 * boxes..].to_vec(),
    })
}

struct Powers {
    inputs: Vec<Var>,
    fifths: Vec<Var>,
    extra: Vec<Var>,
}

fn combination(vars: &[Var], factors: &[Fr]) -> Expr {
    Expr {
        terms: vars.iter().copied().zip(factors.iter().copied()).collect(),
        constant: Fr::ZERO,
    }
}

fn dot(a: &[Fr], b: &[Fr]) -> Fr {
    a.iter().zip(b).map(|(x, y)| *x * y).sum()
}

/// Proves the stream and the calls, from the outputs to the inputs, one linear functional of the state a layer.
pub fn permutations(session: &mut Session, stream: Option<Stream>, calls: Vec<Call>) -> Result<()> {
    let (constants, matrix) = round_parameters();
    let blocks = stream.as_ref().map_or(0, |s| s.blocks);
    let variables = block_variables(blocks, calls.len());
    let boxes = session
        .proving()
        .then(|| witness(session, stream.as_ref(), &calls, variables));

    // Outputs: the stream's words under one mask, every call's word 0 under its own.
    let gamma = session.challenge("hash outputs");
    let mut words = [Fr::ZERO; WIDTH];
    let mut claim = Expr::zero();
    let mut on_blocks = Vec::new();
    if let Some(stream) = &stream {
        words[1..].copy_from_slice(&eq_table(&stream.word_point));
        claim += &stream.value;
        on_blocks = Weights::new(&stream.block_point).prefix(blocks);
    }
    let mut call_masks = Vec::new();
    let mut power = gamma;
    for call in &calls {
        claim.add_scaled(&call.output, power);
        call_masks.push(power);
        power *= gamma;
    }
    let mut first = [Fr::ZERO; WIDTH];
    first[0] = Fr::ONE;
    let functionals = [words, first].map(|f| transposed_times(matrix, &f));
    let (tau, claim) = plain(variables, claim);
    let layer = boxes.as_ref().map(|boxes| Layer {
        boxes: boxes.tables(LAST),
        parts: vec![
            Part::masked(0, on_blocks, functionals[0].to_vec()),
            Part::masked(blocks, call_masks.clone(), functionals[1].to_vec()),
        ],
        linear: None,
    });
    let reduced = reduce(session, &tau, claim, 6, layer)?;
    let point = reduced.point;
    let sent = powers(session, reduced.finals.as_deref(), WIDTH, 0)?;
    let on_stream = stream.as_ref().map_or(Fr::ZERO, |s| {
        let weight = Weight {
            point: s.block_point.clone(),
            coefficients: vec![Fr::ONE],
            items: blocks,
        };
        weight.evaluate(&point)
    });
    let on_calls: Fr = call_masks
        .iter()
        .enumerate()
        .map(|(c, mask)| *mask * eq_at(&point, blocks + c))
        .sum();
    let factors: [Fr; WIDTH] =
        from_fn(|i| on_stream * functionals[0][i] + on_calls * functionals[1][i]);
    session.constrain(
        "hash outputs",
        combination(&sent.fifths, &factors) - reduced.claim,
    );

    let (point, inputs) = descend(session, boxes.as_ref(), point, sent.inputs)?;

    // Inputs: every word of the first state, linear in what the caller holds.
    let mut states: [Expr; WIDTH] = from_fn(|_| Expr::zero());
    if let Some(stream) = &stream {
        let within = prefix(&point, blocks);
        states[1].add_scaled(&stream.kappa, within);
        let numbers = eq_table(&point);
        states[2].constant += (0..blocks)
            .map(|b| numbers[b] * Fr::from(b as u64))
            .sum::<Fr>();
        states[3].constant += within * Fr::from(TAG_NOISE_BLOCK);
    }
    for (c, call) in calls.iter().enumerate() {
        let at = eq_at(&point, blocks + c);
        for (state, input) in states[1..].iter_mut().zip(&call.inputs) {
            state.add_scaled(input, at);
        }
    }
    for ((state, var), constant) in states.into_iter().zip(inputs).zip(&constants[0]) {
        session.constrain("hash input", state + Expr::from(*constant) - var.into());
    }
    Ok(())
}

/// From the S-box inputs of the last round at `point` to those of the first: the point and the values there.
fn descend(
    session: &mut Session,
    boxes: Option<&Boxes>,
    mut point: Vec<Fr>,
    mut inputs: Vec<Var>,
) -> Result<(Vec<Fr>, Vec<Var>)> {
    let (constants, matrix) = round_parameters();
    // What is carried down is a functional of the state that enters a round, and its value.
    let mut carried = below(session, &inputs, &constants[LAST]);
    // What words 1..16 have of it at every block, and its factor, from one partial round to the next.
    let mut running: Option<(Table, Fr)> = None;
    for number in (0..LAST).rev() {
        let weights = transposed_times(matrix, &carried.0);
        if is_partial(number) {
            // <weights, y> = w_0 x_0^5 + L: only L's values are needed of the words 1..16.
            let linear = boxes.map(|boxes| {
                let above = boxes.tables(number + 1).into_iter().zip(carried.0);
                let terms: Vec<(Table, Fr)> = above.chain(running.take()).collect();
                let shift = dot(&carried.0, &constants[number + 1]);
                let x = &boxes.tables(number)[0];
                combine(&terms, -shift, x, -weights[0])
            });
            let layer = boxes.zip(linear.as_ref()).map(|(boxes, linear)| Layer {
                boxes: boxes.tables(number),
                parts: vec![Part::new(vec![weights[0]])],
                linear: Some(linear.borrowed()),
            });
            let reduced = reduce(session, &point, carried.1, 5, layer)?;
            let sent = powers(session, reduced.finals.as_deref(), 1, 1)?;
            let fifth_power = Expr::from(sent.fifths[0]) * weights[0];
            session.constrain(
                "hash layer",
                fifth_power + sent.extra[0].into() - reduced.claim,
            );
            let gamma = session.challenge("hash functional");
            let mut functional = weights.map(|w| w * gamma);
            functional[0] = Fr::ONE;
            let shift = dot(&functional, &constants[number]);
            let claim =
                Expr::from(sent.inputs[0]) + Expr::from(sent.extra[0]) * gamma - shift.into();
            running = linear.map(|linear| (linear, gamma));
            (point, carried) = (reduced.point, (functional, claim));
        } else {
            let layer = boxes.map(|boxes| Layer::full(boxes, number, weights));
            let reduced = reduce(session, &point, carried.1, 5, layer)?;
            let sent = powers(session, reduced.finals.as_deref(), WIDTH, 0)?;
            session.constrain(
                "hash layer",
                combination(&sent.fifths, &weights) - reduced.claim,
            );
            point = reduced.point;
            inputs = sent.inputs;
            carried = below(session, &inputs, &constants[number]);
        }
    }
    Ok((point, inputs))
}

/// The first values of a table; all after them are `rest`.
struct Table<'a> {
    values: Cow<'a, [Fr]>,
    rest: Fr,
}

impl Table<'_> {
    fn borrowed(&self) -> Table<'_> {
        Table {
            values: Cow::Borrowed(&self.values),
            rest: self.rest,
        }
    }

    /// Gives the last value a partner.
    fn pair_up(&mut self) {
        if self.values.len() % 2 == 1 {
            self.values.to_mut().push(self.rest);
        }
    }

    /// Binds the lowest variable of a table whose values are paired.
    fn bind(&mut self, r: Fr) {
        let mut out = vec![Fr::ZERO; self.values.len() / 2];
        out.par_chunks_mut(TASK)
            .zip(self.values.par_chunks(2 * TASK))
            .for_each(|(out, pairs)| fold(out, pairs, r));
        self.values = Cow::Owned(out);
    }

    fn first(&self) -> Fr {
        self.values.first().copied().unwrap_or(self.rest)
    }
}

/// The factors of a sum of fifth powers, times a mask that is 0 outside its values.
struct Part<'a> {
    factors: Vec<Fr>,
    mask: Option<(usize, Table<'a>)>,
}

impl Part<'_> {
    fn new(factors: Vec<Fr>) -> Self {
        Self {
            factors,
            mask: None,
        }
    }

    /// The mask's values stand at `first` and after it.
    fn masked(first: usize, mask: Vec<Fr>, factors: Vec<Fr>) -> Self {
        let rest = Fr::ZERO;
        let values = Cow::Owned(mask);
        Self {
            factors,
            mask: Some((first, Table { values, rest })),
        }
    }

    fn pair_up(&mut self) {
        if let Some((first, mask)) = &mut self.mask {
            if *first % 2 == 1 {
                *first -= 1;
                mask.values.to_mut().insert(0, Fr::ZERO);
            }
            mask.pair_up();
        }
    }
}

/// The gate of a layer over the blocks: sum over parts of mask sum_i factors_i boxes_i^5, plus the linear table.
struct Layer<'a> {
    boxes: Vec<Table<'a>>,
    parts: Vec<Part<'a>>,
    linear: Option<Table<'a>>,
}

impl<'a> Layer<'a> {
    fn full(boxes: &'a Boxes, number: usize, weights: [Fr; WIDTH]) -> Self {
        Self {
            boxes: boxes.tables(number),
            parts: vec![Part::new(weights.to_vec())],
            linear: None,
        }
    }

    /// c_1, .., c_degree of the round polynomial. Outside the stored values all steps are 0.
    fn coefficients(&mut self, weights: &Weights, degree: usize) -> Vec<Fr> {
        self.boxes
            .iter_mut()
            .chain(&mut self.linear)
            .for_each(Table::pair_up);
        self.parts.iter_mut().for_each(Part::pair_up);
        let pairs = self.boxes[0].values.len() / 2;
        let flat = (pairs <= TASK).then(|| weights.prefix(pairs));
        let size = flat.as_ref().map_or(weights.low.len(), |_| TASK);
        let weights_of = |chunk: usize| match &flat {
            Some(flat) => (&flat[..], Fr::ONE),
            None => (&weights.low[..], weights.high[chunk]),
        };
        let mut out = vec![Fr::ZERO; degree + 1];
        for Part { factors, mask } in &self.parts {
            let binomials = BINOMIALS.map(Fr::from);
            let Some((first, mask)) = mask else {
                let sums = fifth_sums::<false>(&self.boxes, factors, 0..pairs, size, weights_of);
                for k in 1..=5 {
                    out[k] += binomials[k] * sums[k];
                }
                continue;
            };
            let first = first / 2;
            let range = first..first + mask.values.len() / 2;
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
                let masked: Vec<Fr> = mask.values.par_chunks(2).enumerate().map(pair).collect();
                let of_chunk = |chunk: usize| (&masked[chunk * TASK..], Fr::ONE);
                let sums = fifth_sums::<true>(&self.boxes, factors, range.clone(), TASK, of_chunk);
                for k in 1 - shift..=5 {
                    out[k + shift] += binomials[k] * sums[k];
                }
            }
        }
        if let Some(linear) = &self.linear {
            let chunks = linear.values.par_chunks(2 * size).enumerate();
            let step = |(chunk, pairs): (usize, &[Fr])| {
                let (low, outer) = weights_of(chunk);
                step_sum(pairs, &low[..pairs.len() / 2]) * outer
            };
            out[1] += chunks.map(step).sum::<Fr>();
        }
        out.remove(0);
        out
    }

    fn bind(&mut self, r: Fr) {
        let masks = self.parts.iter_mut().filter_map(|p| p.mask.as_mut());
        let masks = masks.map(|(first, mask)| {
            *first /= 2;
            mask
        });
        let tables: Vec<&mut Table> = self
            .boxes
            .iter_mut()
            .chain(&mut self.linear)
            .chain(masks)
            .collect();
        tables.into_par_iter().for_each(|table| table.bind(r));
    }
}

/// Reduces a layer's claim to one point, as [`sumcheck`](crate::sumcheck::sumcheck) does for any gate.
fn reduce(
    session: &mut Session,
    tau: &[Fr],
    mut claim: Expr,
    degree: usize,
    mut layer: Option<Layer>,
) -> Result<Reduced> {
    let mut weights = Weights::new(tau.get(1..).unwrap_or_default());
    let mut point = Vec::with_capacity(tau.len());
    for t in tau {
        let coefficients = layer.as_mut().map(|l| l.coefficients(&weights, degree));
        let sent = coefficients.as_deref();
        let r = round(session, "hash layer", *t, &mut claim, degree, sent)?;
        point.push(r);
        if let Some(layer) = &mut layer {
            layer.bind(r);
            weights.bind();
        }
    }
    let finals = layer.map(|layer| {
        let tables = layer.boxes.iter().chain(&layer.linear);
        tables.map(Table::first).collect()
    });
    Ok(Reduced {
        point,
        claim,
        finals,
    })
}

/// 5 over k.
const BINOMIALS: [u64; 6] = [1, 5, 10, 10, 5, 1];

/// For k = 0..5, the sum over columns i and pairs (a, a + d) of weight factors_i a^(5-k) d^k; without k = 0 unless ALL.
/// Chunk c of `size` pairs weighs as `weights(c)` says, with a common factor.
fn fifth_sums<'a, const ALL: bool>(
    boxes: &[Table],
    factors: &[Fr],
    pairs: Range<usize>,
    size: usize,
    weights: impl Fn(usize) -> (&'a [Fr], Fr) + Sync,
) -> [Fr; 6] {
    let chunks = pairs.len().div_ceil(size);
    let task = |i: usize| {
        let (column, chunk) = (i / chunks, i % chunks);
        let from = pairs.start + chunk * size;
        let to = pairs.end.min(from + size);
        let (low, outer) = weights(chunk);
        let run = &boxes[column].values[2 * from..2 * to];
        let factor = factors[column] * outer;
        power_sums::<ALL>(run, &low[..to - from]).map(|s| s * factor)
    };
    (0..boxes.len() * chunks)
        .into_par_iter()
        .with_min_len((TASK / size).max(1))
        .map(task)
        .reduce(|| [Fr::ZERO; 6], |a, b| from_fn(|k| a[k] + b[k]))
}

/// The same for one column of pairs.
fn power_sums<const ALL: bool>(pairs: &[Fr], weights: &[Fr]) -> [Fr; 6] {
    dispatch!(l => {
        let whole = whole(l, weights.len());
        let sums = power_sums_lanes::<_, ALL>(l, &pairs[..2 * whole], &weights[..whole]);
        let rest = power_sums_lanes::<_, ALL>(Portable, &pairs[2 * whole..], &weights[whole..]);
        from_fn(|k| sums[k] + rest[k])
    })
}

/// As many of `count` as fill all lanes.
#[inline(always)]
fn whole<L: Lanes<Fr>>(_: L, count: usize) -> usize {
    count - count % L::N
}

/// At most [`TASK`] pairs. A product is below 7.1 p * 3.1 p, or 7.1 p * 1.3 p at k = 0.
#[inline(always)]
fn power_sums_lanes<L: Lanes<Fr>, const ALL: bool>(l: L, pairs: &[Fr], weights: &[Fr]) -> [Fr; 6] {
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

/// The sum of the pairs' weighted steps; at most [`TASK`] pairs.
fn step_sum(pairs: &[Fr], weights: &[Fr]) -> Fr {
    dispatch!(l => {
        let whole = whole(l, weights.len());
        step_sum_lanes(l, &pairs[..2 * whole], &weights[..whole])
            + step_sum_lanes(Portable, &pairs[2 * whole..], &weights[whole..])
    })
}

#[inline(always)]
fn step_sum_lanes<L: Lanes<Fr>>(l: L, pairs: &[Fr], weights: &[Fr]) -> Fr {
    let mut sum = l.wide();
    for (pairs, weights) in pairs.chunks_exact(2 * L::N).zip(weights.chunks_exact(L::N)) {
        let (a, b) = (l.load(|i| &pairs[2 * i]), l.load(|i| &pairs[2 * i + 1]));
        sum = l.mac(sum, l.load(|i| &weights[i]), l.weak(l.sub(b, a)));
    }
    l.sum(l.reduce(sum))
}

/// a + r (b - a) of each pair.
fn fold(out: &mut [Fr], pairs: &[Fr], r: Fr) {
    dispatch!(l => {
        let (start, end) = out.split_at_mut(whole(l, out.len()));
        let pairs = pairs.split_at(2 * start.len());
        fold_lanes(l, start, pairs.0, r);
        fold_lanes(Portable, end, pairs.1, r);
    })
}

#[inline(always)]
fn fold_lanes<L: Lanes<Fr>>(l: L, out: &mut [Fr], pairs: &[Fr], r: Fr) {
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
fn combine(terms: &[(Table, Fr)], constant: Fr, x: &Table, factor: Fr) -> Table<'static> {
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
fn combine_lanes<L: Lanes<Fr>>(
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

/// Hashes of at most 16 elements with published outputs and inputs that the caller binds. The states (0, inputs, 0, ..)
/// are the prover's, one an output; rows beyond them permute zeros.
///
/// Returns a point of the hashes' extension and the values there of the words of the states, which the caller has to
/// show to be those of inputs committed to before.
pub fn hashes(
    session: &mut Session,
    outputs: &[Fr],
    states: Option<&[State]>,
) -> Result<(Vec<Fr>, Vec<Expr>)> {
    let (constants, matrix) = round_parameters();
    let variables = log2_ceil(outputs.len());
    let zeros = [Fr::ZERO; WIDTH];
    let boxes = states.map(|states| {
        Boxes::new(variables, outputs.len(), |b| {
            states.get(b).copied().unwrap_or(zeros)
        })
    });
    let tau = session.challenges("hash outputs", variables);
    let eq = eq_table(&tau);
    let given: Fr = outputs.iter().zip(&eq).map(|(o, e)| *o * e).sum();
    let beyond: Fr = eq[outputs.len()..].iter().sum();
    let claim = given + beyond * permute(&zeros)[0];
    let mut first = zeros;
    first[0] = Fr::ONE;
    let weights = transposed_times(matrix, &first);
    let layer = boxes
        .as_ref()
        .map(|boxes| Layer::full(boxes, LAST, weights));
    let reduced = reduce(session, &tau, claim.into(), 5, layer)?;
    let sent = powers(session, reduced.finals.as_deref(), WIDTH, 0)?;
    session.constrain(
        "hash outputs",
        combination(&sent.fifths, &weights) - reduced.claim,
    );
    let (point, inputs) = descend(session, boxes.as_ref(), reduced.point, sent.inputs)?;
    let words = inputs.into_iter().zip(&constants[0]);
    Ok((
        point,
        words
            .map(|(var, c)| Expr::from(var) - (*c).into())
            .collect(),
    ))
}

fn is_partial(round: usize) -> bool {
    (HALF..HALF + PARTIAL_ROUNDS).contains(&round)
}

/// Where a round's S-boxes stand among all.
fn columns_of(round: usize) -> std::ops::Range<usize> {
    let start = match round {
        r if r < HALF => r * WIDTH,
        r if is_partial(r) => HALF * WIDTH + r - HALF,
        r => (r - PARTIAL_ROUNDS) * WIDTH + PARTIAL_ROUNDS,
    };
    start..start + if is_partial(round) { 1 } else { WIDTH }
}

/// A random functional of the state that enters a full round, from the values of its S-box inputs.
fn below(session: &mut Session, inputs: &[Var], constants: &[Fr; WIDTH]) -> ([Fr; WIDTH], Expr) {
    let gamma = session.challenge("hash functional");
    let mut power = Fr::ONE;
    let functional: [Fr; WIDTH] = from_fn(|_| {
        let now = power;
        power *= gamma;
        now
    });
    let claim = combination(inputs, &functional) - dot(&functional, constants).into();
    (functional, claim)
}

/// The S-box inputs of many permutations, by column; those that are not stored are `rest`, of a state of zeros.
struct Boxes {
    columns: Vec<Vec<Fr>>,
    rest: Vec<Fr>,
}

impl Boxes {
    /// Of 2^variables states, all zeros from `count` on.
    fn new(variables: usize, count: usize, state: impl Fn(usize) -> State + Sync) -> Self {
        let mut rest = vec![Fr::ZERO; SBOXES];
        let mut places: Vec<&mut [Fr]> = rest.iter_mut().map(std::slice::from_mut).collect();
        sbox_inputs(&[[Fr::ZERO; WIDTH]], &mut places);
        // Nothing stored lacks its partner in the first round.
        let stored = count.next_multiple_of(2).min(1 << variables);
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
        Self { columns, rest }
    }

    fn tables(&self, round: usize) -> Vec<Table<'_>> {
        let range = columns_of(round);
        range
            .map(|k| Table {
                values: Cow::Borrowed(&self.columns[k][..]),
                rest: self.rest[k],
            })
            .collect()
    }
}

/// The S-box inputs of a stream and calls.
fn witness(session: &Session, stream: Option<&Stream>, calls: &[Call], variables: usize) -> Boxes {
    let value = |e: &Expr| session.value(e).unwrap_or_default();
    let kappa = stream.map(|s| value(&s.kappa)).unwrap_or_default();
    let blocks = stream.map_or(0, |s| s.blocks);
    let state_of = |call: &Call| {
        let mut state = [Fr::ZERO; WIDTH];
        let inputs = state[1..].iter_mut().zip(&call.inputs);
        inputs.for_each(|(s, e)| *s = value(e));
        state
    };
    let called: Vec<State> = calls.iter().map(state_of).collect();
    Boxes::new(variables, blocks + calls.len(), |b| {
        match b.checked_sub(blocks) {
            None => block_state(&kappa, b),
            Some(c) => called.get(c).copied().unwrap_or([Fr::ZERO; WIDTH]),
        }
    })
}

#[cfg(test)]
mod tests;
