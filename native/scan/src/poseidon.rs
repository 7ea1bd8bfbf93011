//! Many Poseidon permutations by layered GKR: `docs/scan/poseidon.md`.
use std::array::from_fn;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::lanes::Lanes;
use ragaudit_core::poseidon::{
    hash, permute, round_parameters, sbox_inputs, Matrix, FULL_ROUNDS, LIST_RUN, PARTIAL_ROUNDS,
    SBOXES, TAG_LIST, WIDTH,
};
use rayon::prelude::*;

use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::index::log2_ceil;
use crate::mle::{eq_at, eq_table, prefix, Weight};
use crate::session::Session;
use crate::sumcheck::{plain, sumcheck, Gate};

const HALF: usize = FULL_ROUNDS / 2;
const LAST: usize = FULL_ROUNDS + PARTIAL_ROUNDS - 1;
/// Words of a noise block that carry draws, as a power of two.
pub const WORD_VARIABLES: usize = 4;
const TAG_NOISE_BLOCK: u64 = 9;

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

#[inline(always)]
fn fifth_on<L: Lanes<Fr>>(l: L, x: L::V) -> L::V {
    l.mul(l.square(l.square(x)), x)
}

/// sum over i of w_i x_i^5.
struct Full([Fr; WIDTH]);

impl Gate for Full {
    fn constants(&self) -> Vec<Fr> {
        self.0.to_vec()
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, weights: &[L::V], t: &[L::V]) -> L::V {
        let mut sum = l.wide();
        for (w, x) in weights.iter().zip(t) {
            sum = l.mac(sum, *w, fifth_on(l, *x));
        }
        l.reduce(sum)
    }
}

/// w x^5 + y.
struct Partial(Fr);

impl Gate for Partial {
    fn constants(&self) -> Vec<Fr> {
        vec![self.0]
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, w: &[L::V], t: &[L::V]) -> L::V {
        l.weak(l.add(l.mul(w[0], fifth_on(l, t[0])), t[1]))
    }
}

/// The same sum for two functionals, each times a mask; the masks are the last tables.
struct Outputs([[Fr; WIDTH]; 2]);

impl Gate for Outputs {
    fn constants(&self) -> Vec<Fr> {
        self.0.concat()
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, weights: &[L::V], t: &[L::V]) -> L::V {
        let (first, second) = weights.split_at(WIDTH);
        let mut sums = [l.wide(); 2];
        for (k, x) in t[..WIDTH].iter().enumerate() {
            let fifth = fifth_on(l, *x);
            sums = [
                l.mac(sums[0], first[k], fifth),
                l.mac(sums[1], second[k], fifth),
            ];
        }
        let sum = l.mac(l.wide(), t[WIDTH], l.reduce(sums[0]));
        l.reduce(l.mac(sum, t[WIDTH + 1], l.reduce(sums[1])))
    }
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
    let layer = |round: usize| boxes.as_ref().map(|b| b[columns_of(round)].to_vec());

    // Outputs: the stream's words under one mask, every call's word 0 under its own.
    let gamma = session.challenge("hash outputs");
    let mut words = [Fr::ZERO; WIDTH];
    let mut claim = Expr::zero();
    let mut masks = [
        vec![Fr::ZERO; 1 << variables],
        vec![Fr::ZERO; 1 << variables],
    ];
    if let Some(stream) = &stream {
        words[1..].copy_from_slice(&eq_table(&stream.word_point));
        claim += &stream.value;
        masks[0][..blocks].copy_from_slice(&eq_table(&stream.block_point)[..blocks]);
    }
    let mut power = gamma;
    for (mask, call) in masks[1][blocks..].iter_mut().zip(&calls) {
        claim.add_scaled(&call.output, power);
        *mask = power;
        power *= gamma;
    }
    let mut first = [Fr::ZERO; WIDTH];
    first[0] = Fr::ONE;
    let functionals = [words, first].map(|f| transposed_times(matrix, &f));
    let call_masks = masks[1][blocks..blocks + calls.len()].to_vec();
    let tables = layer(LAST).map(|mut tables| {
        tables.extend(masks);
        tables
    });
    let (tau, claim) = plain(variables, claim);
    let reduced = sumcheck(
        session,
        "hash layer",
        &tau,
        claim,
        6,
        tables,
        Outputs(functionals),
    )?;
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

    let (point, inputs) = descend(session, boxes.as_deref(), point, sent.inputs)?;

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
    boxes: Option<&[Vec<Fr>]>,
    mut point: Vec<Fr>,
    mut inputs: Vec<Var>,
) -> Result<(Vec<Fr>, Vec<Var>)> {
    let (constants, matrix) = round_parameters();
    let layer = |round: usize| boxes.map(|b| b[columns_of(round)].to_vec());

    // What is carried down is a functional of the state that enters a round, and its value.
    let mut carried = below(session, &inputs, &constants[LAST]);
    // The functional at every block, through the partial rounds.
    let mut running: Option<Vec<Fr>> = None;
    for round in (0..LAST).rev() {
        let weights = transposed_times(matrix, &carried.0);
        if is_partial(round) {
            if running.is_none() {
                running = layer(round + 1)
                    .map(|above| functional_at(&above, &carried.0, &constants[round + 1]));
            }
            // <weights, y> = w_0 x_0^5 + L: only L's values are needed of the words 1..16.
            let tables = running.take().zip(layer(round)).map(|(mut f, mut column)| {
                let x = column.remove(0);
                f.par_iter_mut()
                    .zip(&x)
                    .for_each(|(f, x)| *f -= weights[0] * fifth(*x));
                vec![x, f]
            });
            let kept = tables.clone();
            let gate = Partial(weights[0]);
            let reduced = sumcheck(session, "hash layer", &point, carried.1, 5, tables, gate)?;
            let sent = powers(session, reduced.finals.as_deref(), 1, 1)?;
            let fifth_power = Expr::from(sent.fifths[0]) * weights[0];
            session.constrain(
                "hash layer",
                fifth_power + sent.extra[0].into() - reduced.claim,
            );
            let gamma = session.challenge("hash functional");
            let mut functional = weights.map(|w| w * gamma);
            functional[0] = Fr::ONE;
            let shift = dot(&functional, &constants[round]);
            let claim =
                Expr::from(sent.inputs[0]) + Expr::from(sent.extra[0]) * gamma - shift.into();
            running = kept.map(|mut tables| {
                let rest = tables.pop().unwrap_or_default();
                let mut x = tables.pop().unwrap_or_default();
                x.par_iter_mut()
                    .zip(rest)
                    .for_each(|(x, l)| *x += gamma * l - shift);
                x
            });
            (point, carried) = (reduced.point, (functional, claim));
        } else {
            let gate = Full(weights);
            let reduced = sumcheck(
                session,
                "hash layer",
                &point,
                carried.1,
                5,
                layer(round),
                gate,
            )?;
            let sent = powers(session, reduced.finals.as_deref(), WIDTH, 0)?;
            session.constrain(
                "hash layer",
                combination(&sent.fifths, &weights) - reduced.claim,
            );
            point = reduced.point;
            inputs = sent.inputs;
            carried = below(session, &inputs, &constants[round]);
        }
    }
    Ok((point, inputs))
}

/// Hashes of at most 16 elements with published outputs and inputs that the caller binds. The states (0, inputs, 0, ..)
/// are the prover's, one an output; rows beyond them permute zeros.
///
/// Returns a point of the hashes' extension and the values there of the words of the states, which the caller has to
/// show to be those of inputs committed to before.
pub fn hashes(
    session: &mut Session,
    outputs: &[Fr],
    states: Option<&[[Fr; WIDTH]]>,
) -> Result<(Vec<Fr>, Vec<Expr>)> {
    let (constants, matrix) = round_parameters();
    let variables = log2_ceil(outputs.len());
    let zeros = [Fr::ZERO; WIDTH];
    let boxes =
        states.map(|states| sbox_columns(variables, |b| states.get(b).copied().unwrap_or(zeros)));
    let tau = session.challenges("hash outputs", variables);
    let eq = eq_table(&tau);
    let given: Fr = outputs.iter().zip(&eq).map(|(o, e)| *o * e).sum();
    let beyond: Fr = eq[outputs.len()..].iter().sum();
    let claim = given + beyond * permute(&zeros)[0];
    let mut first = zeros;
    first[0] = Fr::ONE;
    let weights = transposed_times(matrix, &first);
    let gate = Full(weights);
    let tables = boxes.as_ref().map(|b| b[columns_of(LAST)].to_vec());
    let reduced = sumcheck(session, "hash layer", &tau, claim.into(), 5, tables, gate)?;
    let sent = powers(session, reduced.finals.as_deref(), WIDTH, 0)?;
    session.constrain(
        "hash outputs",
        combination(&sent.fifths, &weights) - reduced.claim,
    );
    let (point, inputs) = descend(session, boxes.as_deref(), reduced.point, sent.inputs)?;
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

/// The functional of the state that enters a full round, at every block.
fn functional_at(boxes: &[Vec<Fr>], functional: &[Fr; WIDTH], constants: &[Fr; WIDTH]) -> Vec<Fr> {
    let shift = dot(functional, constants);
    (0..boxes[0].len())
        .into_par_iter()
        .map(|b| {
            boxes
                .iter()
                .zip(functional)
                .map(|(x, f)| x[b] * f)
                .sum::<Fr>()
                - shift
        })
        .collect()
}

/// The S-box inputs of all permutations by column; those beyond the last call start from zeros.
fn witness(
    session: &Session,
    stream: Option<&Stream>,
    calls: &[Call],
    variables: usize,
) -> Vec<Vec<Fr>> {
    let value = |e: &Expr| session.value(e).unwrap_or_default();
    let kappa = stream.map(|s| value(&s.kappa)).unwrap_or_default();
    let blocks = stream.map_or(0, |s| s.blocks);
    let called: Vec<[Fr; WIDTH]> = calls
        .iter()
        .map(|call| {
            let mut state = [Fr::ZERO; WIDTH];
            state[1..]
                .iter_mut()
                .zip(&call.inputs)
                .for_each(|(s, e)| *s = value(e));
            state
        })
        .collect();
    sbox_columns(variables, |b| {
        let mut state = [Fr::ZERO; WIDTH];
        if b < blocks {
            state[1] = kappa;
            state[2] = Fr::from(b as u64);
            state[3] = Fr::from(TAG_NOISE_BLOCK);
        } else if let Some(call) = called.get(b - blocks) {
            state = *call;
        }
        state
    })
}

/// The S-box inputs of the permutations of 2^variables states, by column.
fn sbox_columns(variables: usize, state: impl Fn(usize) -> [Fr; WIDTH] + Sync) -> Vec<Vec<Fr>> {
    let zeros = sbox_inputs(&[Fr::ZERO; WIDTH]);
    let rows: Vec<[Fr; SBOXES]> = (0..1usize << variables)
        .into_par_iter()
        .map(|b| match state(b) {
            s if s == [Fr::ZERO; WIDTH] => zeros,
            s => sbox_inputs(&s),
        })
        .collect();
    (0..SBOXES)
        .into_par_iter()
        .map(|k| rows.iter().map(|row| row[k]).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{check, prove_anyway};
    use ragaudit_core::poseidon::hash_list;

    const BLOCKS: usize = 5;

    fn words(kappa: Fr) -> Vec<Fr> {
        let block = |b: usize| {
            let mut state = [Fr::ZERO; WIDTH];
            state[1] = kappa;
            state[2] = Fr::from(b as u64);
            state[3] = Fr::from(TAG_NOISE_BLOCK);
            permute(&state)[1..].to_vec()
        };
        let mut out: Vec<Fr> = (0..BLOCKS).flat_map(block).collect();
        out.resize(16 << block_variables(BLOCKS, 3), Fr::ZERO);
        out
    }

    /// Proves the words of a stream and one list hash of 20 hidden elements, with lies where asked.
    fn run(lie_word: u64, lie_kappa: u64, lie_hash: u64) -> bool {
        let kappa = Fr::from(77u8);
        let list: Vec<Fr> = (0..20u64).map(|i| Fr::from(i * i + 1)).collect();
        let protocol = |session: &mut Session, prover: bool| {
            let hidden = session.send("list", 20, prover.then_some(&list))?;
            let held = kappa + Fr::from(lie_kappa);
            let key = session.send("kappa", 1, prover.then_some(&[held]))?[0];
            let output = hash_list(6, &list) + Fr::from(lie_hash);
            let exprs: Vec<Expr> = hidden.into_iter().map(Expr::from).collect();
            let calls = Call::list(session, 6, &exprs, output)?;
            let variables = block_variables(BLOCKS, calls.len());
            let r = session.challenges("point", WORD_VARIABLES + variables);
            let mut table = words(kappa);
            table[37] += Fr::from(lie_word);
            table.truncate(1 << r.len());
            let value = crate::mle::evaluate(&table, &r);
            let (word_point, block_point) = r.split_at(WORD_VARIABLES);
            let stream = Stream {
                kappa: key.into(),
                blocks: BLOCKS,
                word_point: word_point.to_vec(),
                block_point: block_point.to_vec(),
                value: value.into(),
            };
            permutations(session, Some(stream), calls)
        };
        let proof = prove_anyway(4, &protocol).unwrap();
        check(4, &proof, &protocol).is_ok_and(|e| e.holds(&[]))
    }

    #[test]
    fn streams_and_hashes() {
        assert!(run(0, 0, 0));
        assert!(!run(1, 0, 0), "a word that is not the stream's");
        assert!(!run(0, 1, 0), "words of another key");
        assert!(!run(0, 0, 1), "a hash that is not the list's");
    }

    #[test]
    fn the_gates_keep_within_their_bounds() {
        let weights = from_fn(|i| -Fr::from(i as u64 + 1));
        crate::rounds::tests::agree(&Full(weights), 5, WIDTH);
        crate::rounds::tests::agree(&Partial(-Fr::ONE), 5, 2);
        crate::rounds::tests::agree(&Outputs([weights; 2]), 6, WIDTH + 2);
    }
}
