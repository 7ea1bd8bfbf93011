//! Many Poseidon permutations by layered GKR: `docs/scan/poseidon.md`.
use std::array::from_fn;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_relation::dgs::{block_state, TAG_NOISE_BLOCK};
use ragaudit_relation::poseidon::{round_parameters, Matrix, State, LIST_RUN, TAG_LIST, WIDTH};

use crate::channel::Channel;
use crate::digits::{all_variables, from_the_top, of_point, regroup, Digit};
use crate::engine::Engine;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::mle::{eq_at, eq_table, prefix, prefix_numbers, Weight};
use crate::numbers::log2_ceil;
use crate::prover::{Blocks, Known, SboxColumns};
use crate::session::Session;
use crate::sumcheck::{plain, reduce, reduce_digits};

pub mod rounds;

use rounds::{is_partial, LAST};

/// Variables of a round between the outputs and the inputs.
pub const DIGIT: usize = 2;

/// Words of a noise block that carry draws, as a power of two.
pub const WORD_VARIABLES: usize = 4;
/// Noise blocks: permutation b of (0, kappa, b, 9, 0, ..) for b below `blocks`, and the claim that the words 1..16 of all of
/// them, word w of block b at 16 b + w - 1, extend to `value` at (word_point, block_point). Each of several keys has its own
/// blocks: block b of key k is in the place b 2^m + k, where m variables distinguish the keys; `value` is then the sum of
/// their extensions, weighted by eq of the record point.
pub struct Stream {
    pub kappas: Vec<Expr>,
    pub blocks: usize,
    pub word_point: Vec<Fr>,
    pub record_point: Vec<Fr>,
    pub block_point: Vec<Fr>,
    pub value: Expr,
}

impl Stream {
    /// Places of the blocks.
    fn places(&self) -> usize {
        self.blocks << self.record_point.len()
    }
}

/// A hash of at most 16 elements: words 1.. of the input, and word 0 of the output.
pub struct Call {
    pub inputs: Vec<Expr>,
    pub output: Expr,
}

impl Call {
    /// HL(tag, list) = output. The running hashes between are sent as hidden values.
    pub fn list<C: Channel>(
        session: &mut Session<C>,
        tag: u64,
        list: &[Expr],
        output: Fr,
    ) -> Result<Vec<Self>> {
        let start = start_of_list::<C::Engine>(tag, list.len());
        let mut running = Expr::from(start);
        let mut calls = Vec::new();
        let runs: Vec<&[Expr]> = list.chunks(LIST_RUN).collect();
        for (i, run) in runs.iter().enumerate() {
            let mut inputs = vec![running.clone()];
            inputs.extend(run.iter().cloned());
            running = if i + 1 == runs.len() {
                output.into()
            } else {
                let value = session.known().map(|known| {
                    let words: Vec<Fr> = inputs.iter().map(|e| known.value(e)).collect();
                    C::Engine::hash(&words)
                });
                session.send_one("running hash", value)?.into()
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
///
/// ```
/// use ragaudit_scan_protocol::engine::Plain;
/// use ragaudit_scan_protocol::poseidon::start_of_list;
///
/// // Lists of other lengths start from other values: none is a prefix of another.
/// assert_ne!(start_of_list::<Plain>(4, 2), start_of_list::<Plain>(4, 3));
/// ```
pub fn start_of_list<E: Engine>(tag: u64, length: usize) -> Fr {
    E::hash(&[TAG_LIST, tag, length as u64].map(Fr::from))
}

/// Variables of a table of this many blocks and calls.
pub fn block_variables(blocks: usize, calls: usize) -> usize {
    log2_ceil(blocks + calls)
}

fn transposed_times(m: &Matrix<WIDTH>, x: &[Fr; WIDTH]) -> [Fr; WIDTH] {
    from_fn(|j| (0..WIDTH).map(|i| m[i][j] * x[i]).sum())
}

/// x, x^2, x^4, x^5 as hidden values with their products claimed; returns the variables of x and x^5.
fn powers<C: Channel>(
    session: &mut Session<C>,
    finals: Option<&[Fr]>,
    sboxes: usize,
    extra: usize,
) -> Result<Powers> {
    let values = finals.map(|finals| {
        let (x, rest) = finals.split_at(sboxes);
        let mut out = x.to_vec();
        out.extend(x.iter().map(Field::square));
        out.extend(x.iter().map(|x| x.square().square()));
        out.extend(x.iter().map(|x| x.square().square() * x));
        out.extend(&rest[..extra]);
        out
    });
    let vars = session.send("S-box inputs", 4 * sboxes + extra, values.as_deref())?;
    let at = |i: usize| Expr::from(vars[i]);
    for i in 0..sboxes {
        session.constrain_product("square", at(i), at(i), at(sboxes + i));
        session.constrain_product(
            "fourth power",
            at(sboxes + i),
            at(sboxes + i),
            at(2 * sboxes + i),
        );
        session.constrain_product("fifth power", at(2 * sboxes + i), at(i), at(3 * sboxes + i));
    }
    Ok(Powers {
        inputs: vars[..sboxes].to_vec(),
        fifths: vars[3 * sboxes..4 * sboxes].to_vec(),
        extra: vars[4 * sboxes..].to_vec(),
    })
}

struct Powers {
    inputs: Vec<Var>,
    fifths: Vec<Var>,
    extra: Vec<Var>,
}

fn dot(a: &[Fr], b: &[Fr]) -> Fr {
    a.iter().zip(b).map(|(x, y)| *x * y).sum()
}

/// Proves the stream and the calls, from the outputs to the inputs, one linear functional of the state a layer.
pub fn permutations<C: Channel>(
    session: &mut Session<C>,
    stream: Option<Stream>,
    calls: Vec<Call>,
) -> Result<()> {
    let (constants, matrix) = round_parameters();
    let places = stream.as_ref().map_or(0, Stream::places);
    let variables = block_variables(places, calls.len());
    let sboxes = session
        .known()
        .map(|known| witness(&known, stream.as_ref(), &calls, variables));

    // Outputs: the stream's words under one mask, every call's word 0 under its own.
    let gamma = session.challenge("hash outputs");
    let mut words = [Fr::ZERO; WIDTH];
    let mut claim = Expr::zero();
    if let Some(stream) = &stream {
        words[1..].copy_from_slice(&eq_table(&stream.word_point));
        claim += &stream.value;
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
    let of_blocks = stream.as_ref().map(|s| Blocks {
        records: s.kappas.len(),
        blocks: s.blocks,
        record_point: &s.record_point,
        block_point: &s.block_point,
    });
    let sums = sboxes
        .as_ref()
        .map(|sboxes| sboxes.outputs(&tau, of_blocks, &call_masks, &functionals));
    let reduced = reduce(session, "hash layer", &tau, claim, 6, sums)?;
    let point = reduced.point;
    let sent = powers(session, reduced.finals.as_deref(), WIDTH, 0)?;
    let on_stream = stream.as_ref().map_or(Fr::ZERO, |s| {
        let (record, block) = point.split_at(s.record_point.len());
        let first = |of: &[Fr], items: usize, at: &[Fr]| {
            let weight = Weight {
                point: of.to_vec(),
                coefficients: vec![Fr::ONE],
                items,
            };
            weight.evaluate(at)
        };
        first(&s.record_point, s.kappas.len(), record) * first(&s.block_point, s.blocks, block)
    });
    let on_calls: Fr = call_masks
        .iter()
        .enumerate()
        .map(|(c, mask)| *mask * eq_at(&point, places + c))
        .sum();
    let factors: [Fr; WIDTH] =
        from_fn(|i| on_stream * functionals[0][i] + on_calls * functionals[1][i]);
    session.constrain(
        "hash outputs",
        Expr::weighted(&sent.fifths, &factors) - reduced.claim,
    );

    let (point, inputs) = descend(session, sboxes, of_point(&point), sent.inputs)?;

    // Inputs: every word of the first state is linear in the caller's values.
    let mut states: [Expr; WIDTH] = from_fn(|_| Expr::zero());
    if let Some(stream) = &stream {
        let (record, block) = point.split_at(stream.record_point.len());
        let within = prefix(block, stream.blocks);
        let weights = eq_table(record);
        let keys = stream.kappas.iter().zip(&weights);
        keys.for_each(|(kappa, e)| states[1].add_scaled(kappa, within * e));
        let every: Fr = weights[..stream.kappas.len()].iter().sum();
        states[2].constant += prefix_numbers(block, stream.blocks) * every;
        states[3].constant += within * every * Fr::from(TAG_NOISE_BLOCK);
    }
    for (c, call) in calls.iter().enumerate() {
        let at = eq_at(&point, places + c);
        for (state, input) in states[1..].iter_mut().zip(&call.inputs) {
            state.add_scaled(input, at);
        }
    }
    for ((state, var), constant) in states.into_iter().zip(inputs).zip(&constants[0]) {
        session.constrain("hash input", state + Expr::from(*constant) - var.into());
    }
    Ok(())
}

/// From the S-box inputs of the last round at `point` to those of the first: a point of coordinates and the values there.
fn descend<C: Channel>(
    session: &mut Session<C>,
    mut sboxes: Option<Box<dyn SboxColumns>>,
    mut point: Vec<Digit>,
    mut inputs: Vec<Var>,
) -> Result<(Vec<Fr>, Vec<Var>)> {
    let (constants, matrix) = round_parameters();
    let sizes = from_the_top(all_variables(&point), DIGIT);
    let mut drawn = Vec::new();
    // Each step carries down a functional of the state that enters a round, and its value.
    let mut carried = below(session, &inputs, &constants[LAST]);
    // The factor of the functional's part in words 1..16, from one partial round to the next.
    let mut running: Option<Fr> = None;
    for number in (0..LAST).rev() {
        let weights = transposed_times(matrix, &carried.0);
        let grouped = regroup(&point, &sizes);
        if is_partial(number) {
            // <weights, y> = w_0 x_0^5 + L: only L's values are needed of the words 1..16.
            let sums = sboxes
                .as_mut()
                .map(|sboxes| sboxes.partial(number, &carried.0, running, weights[0], &grouped));
            let digits = [&grouped[..], &[]];
            let reduced = reduce_digits(session, "hash layer", digits, carried.1, 5, sums)?;
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
            running = Some(gamma);
            (point, carried) = (reduced.digits, (functional, claim));
        } else {
            // The inputs are claimed at a point of coordinates.
            let digits = match number {
                0 => [&[], &grouped[..]],
                _ => [&grouped[..], &[]],
            };
            let sums = sboxes
                .as_ref()
                .map(|sboxes| sboxes.full(number, weights, digits));
            let reduced = reduce_digits(session, "hash layer", digits, carried.1, 5, sums)?;
            let sent = powers(session, reduced.finals.as_deref(), WIDTH, 0)?;
            let sum = Expr::weighted(&sent.fifths, &weights) * reduced.weight;
            session.constrain("hash layer", sum - reduced.claim);
            (point, drawn) = (reduced.digits, reduced.point);
            inputs = sent.inputs;
            carried = below(session, &inputs, &constants[number]);
        }
    }
    Ok((drawn, inputs))
}

/// Hashes of at most 16 elements with published outputs and inputs that the caller binds. The states (0, inputs, 0, ..)
/// are the prover's, one an output; rows beyond them permute zeros.
///
/// Returns a point of the hashes' extension and the values there of the words of the states, which the caller has to
/// show to be those of inputs committed to before.
pub fn hashes<C: Channel>(
    session: &mut Session<C>,
    outputs: &[Fr],
    states: Option<&[State]>,
) -> Result<(Vec<Fr>, Vec<Expr>)> {
    let (constants, matrix) = round_parameters();
    let variables = log2_ceil(outputs.len());
    let zeros = [Fr::ZERO; WIDTH];
    let known = session.channel.secrets().zip(states);
    let sboxes = known.map(|(secrets, states)| {
        secrets.sbox_columns(variables, outputs.len(), &|b| {
            states.get(b).copied().unwrap_or(zeros)
        })
    });
    let tau = session.challenges("hash outputs", variables);
    let eq = eq_table(&tau);
    let given: Fr = outputs.iter().zip(&eq).map(|(o, e)| *o * e).sum();
    let beyond: Fr = eq[outputs.len()..].iter().sum();
    let claim = given + beyond * C::Engine::hash(&[Fr::ZERO]);
    let mut first = zeros;
    first[0] = Fr::ONE;
    let weights = transposed_times(matrix, &first);
    let grouped = regroup(&of_point(&tau), &from_the_top(variables, DIGIT));
    let digits = [&grouped[..], &[]];
    let sums = sboxes
        .as_ref()
        .map(|sboxes| sboxes.full(LAST, weights, digits));
    let reduced = reduce_digits(session, "hash layer", digits, claim.into(), 5, sums)?;
    let sent = powers(session, reduced.finals.as_deref(), WIDTH, 0)?;
    session.constrain(
        "hash outputs",
        Expr::weighted(&sent.fifths, &weights) - reduced.claim,
    );
    let (point, inputs) = descend(session, sboxes, reduced.digits, sent.inputs)?;
    let words = inputs.into_iter().zip(&constants[0]);
    Ok((
        point,
        words
            .map(|(var, c)| Expr::from(var) - (*c).into())
            .collect(),
    ))
}

/// A random functional of the state that enters a full round, from the values of its S-box inputs.
fn below<C: Channel>(
    session: &mut Session<C>,
    inputs: &[Var],
    constants: &[Fr; WIDTH],
) -> ([Fr; WIDTH], Expr) {
    let gamma = session.challenge("hash functional");
    let mut power = Fr::ONE;
    let functional: [Fr; WIDTH] = from_fn(|_| {
        let now = power;
        power *= gamma;
        now
    });
    let claim = Expr::weighted(inputs, &functional) - dot(&functional, constants).into();
    (functional, claim)
}

/// The S-box inputs of a stream and calls.
fn witness(
    known: &Known,
    stream: Option<&Stream>,
    calls: &[Call],
    variables: usize,
) -> Box<dyn SboxColumns> {
    let keys = stream.map_or(&[][..], |s| &s.kappas);
    let kappas: Vec<Fr> = keys.iter().map(|kappa| known.value(kappa)).collect();
    let places = stream.map_or(0, Stream::places);
    let apart = stream.map_or(0, |s| s.record_point.len());
    let state_of = |call: &Call| {
        let mut state = [Fr::ZERO; WIDTH];
        let inputs = state[1..].iter_mut().zip(&call.inputs);
        inputs.for_each(|(s, e)| *s = known.value(e));
        state
    };
    let called: Vec<State> = calls.iter().map(state_of).collect();
    known
        .secrets
        .sbox_columns(
            variables,
            places + calls.len(),
            &|place| match place.checked_sub(places) {
                None => kappas
                    .get(place & ((1 << apart) - 1))
                    .map_or([Fr::ZERO; WIDTH], |kappa| {
                        block_state(kappa, place >> apart)
                    }),
                Some(c) => called.get(c).copied().unwrap_or([Fr::ZERO; WIDTH]),
            },
        )
}
