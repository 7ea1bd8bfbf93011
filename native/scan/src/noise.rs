//! Noise certificates: `docs/scan/noise.md`.
//!
//! A certificate commits to z over all positions of a slot and proves that it is DGS-1 under the window's seed, the
//! beacon and the slot.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field, PrimeField};
use ragaudit_core::lanes::Lanes;
use ragaudit_core::noise::{
    alias_table, check_gains, draws_of, table_rows, words as stream_words, BINS,
};
use ragaudit_core::poseidon::hash;
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::closing::Closed;
use crate::columns::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{decode_points, encode_point, Fr};
use crate::index::Layout;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{prefix, Weight};
use crate::numbers::{log2_ceil, power_of_two, NO_WRAP_BITS};
use crate::poseidon::{block_variables, permutations, Call, Stream, WORD_VARIABLES};
use crate::prover::fractions::RUN;
use crate::ranges::{count, first_in_range, limbs, range_table, LIMB_BITS, TAG_RANGE};
use crate::session::{Column, ColumnId, Opening, Session};
use crate::sumcheck::{sumcheck, Gate};
use crate::transcript::Transcript;
use crate::values::{combination_at, entries_of, functional};

const DRAWS_PER_WORD: usize = 5;
const WORDS_PER_BLOCK: usize = 1 << WORD_VARIABLES;
const DRAWS_PER_BLOCK: usize = DRAWS_PER_WORD * WORDS_PER_BLOCK;
const TAG_SEED: u64 = 1;
const TAG_KEY: u64 = 2;
const TAG_ALIAS: u64 = 2;
const ALIAS_VARIABLES: usize = 9;
/// Bits of a word that become draws; the others are its high part.
const LOW_BITS: usize = 200;
const HIGH_LIMBS: usize = 4;
/// Bits below a word's last draw: above them the word is compared with the modulus.
const BELOW_BITS: usize = 160;
/// Limbs of what that part lacks of the largest allowed one.
const REST_LIMBS: usize = 6;
/// What decides where values stand: see [`crate::protocol`].
pub(crate) const RULES: [u64; 10] = [
    DRAWS_PER_WORD as u64,
    TAG_SEED,
    TAG_KEY,
    LIMB_BITS as u64,
    TAG_RANGE,
    TAG_ALIAS,
    ALIAS_VARIABLES as u64,
    HIGH_LIMBS as u64,
    BELOW_BITS as u64,
    REST_LIMBS as u64,
];
/// Bits of a draw: a byte and t.
const DRAW_BITS: usize = 8 + T_BITS;
const T_BITS: usize = 32;
const _: () = {
    // Threshold, t and distance are T_BITS long: (2 c - 1) (T - t) - c = distance holds over the integers.
    assert!(T_BITS == 2 * LIMB_BITS && T_BITS + 2 < NO_WRAP_BITS);
    // So does last + 2^40 high + rest = highest. What is below r is then the word, whose draws fill its low bits.
    assert!(LOW_BITS == DRAWS_PER_WORD * DRAW_BITS && BELOW_BITS + DRAW_BITS == LOW_BITS);
    assert!(DRAW_BITS + HIGH_LIMBS * LIMB_BITS + 2 < NO_WRAP_BITS);
    assert!(REST_LIMBS * LIMB_BITS + 2 < NO_WRAP_BITS);
    assert!(highest() < 1 << 94 && highest() < 1 << (REST_LIMBS * LIMB_BITS));
};
/// Blocks of one task.
const TASK: usize = 64;

/// What a certificate is about. Every value is rebuilt by the verifier, none read from a file.
#[derive(Clone, Debug)]
pub struct NoiseStatement {
    /// Digest of the protocol, opening, policy, noise table, tenant, account and its count.
    pub context: [u8; 32],
    pub c_seed: Fr,
    pub beacon: Fr,
    pub slot: Fr,
    pub capacity: usize,
    pub gains: Vec<u32>,
}

/// The seed's two halves.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Seed(pub [Fr; 2]);

/// A certificate with what its query's proof needs.
pub struct Certificate {
    pub proof: Vec<u8>,
    /// The column z with its commitments.
    pub noise: Column,
}

struct Shape {
    layout: Layout,
    blocks: usize,
    block_variables: usize,
}

impl Shape {
    fn words(&self) -> usize {
        self.blocks * WORDS_PER_BLOCK
    }

    fn draws(&self) -> usize {
        self.blocks * DRAWS_PER_BLOCK
    }
}

impl NoiseStatement {
    fn shape(&self) -> Result<Shape> {
        let layout = Layout::new(self.capacity)?;
        check_gains(&self.gains)?;
        let blocks = (self.capacity * self.gains.len()).div_ceil(DRAWS_PER_BLOCK);
        Ok(Shape {
            layout,
            blocks,
            block_variables: block_variables(blocks, 2),
        })
    }

    fn transcript(&self) -> Transcript {
        let mut transcript = Transcript::new("noise certificate");
        self.absorb(&mut transcript);
        transcript
    }

    fn absorb(&self, t: &mut Transcript) {
        t.bytes("context", &self.context);
        t.scalar("seed commitment", &self.c_seed);
        t.scalar("beacon", &self.beacon);
        t.scalar("slot", &self.slot);
        t.integer("capacity", self.capacity as u64);
        t.integer("gain count", self.gains.len() as u64);
        for gain in &self.gains {
            t.integer("gain", u64::from(*gain));
        }
        let table = alias_table();
        for (threshold, alias) in table.thresholds.iter().zip(&table.aliases) {
            t.integer("threshold", u64::from(*threshold));
            t.integer("alias", u64::from(*alias));
        }
    }
}

/// Row byte + 256 choice of the alias table: its threshold and the value drawn.
fn alias_row(byte: usize, choice: usize) -> (i64, i64) {
    let table = alias_table();
    let bin = byte % BINS;
    let magnitude = if choice == 1 {
        bin as i64
    } else {
        i64::from(table.aliases[bin])
    };
    let value = if byte >= BINS { -magnitude } else { magnitude };
    (i64::from(table.thresholds[bin]), value)
}

/// The columns, in the order in which they are committed to.
#[derive(Clone, Copy)]
struct Columns<T> {
    noise: T,
    byte: T,
    choice: T,
    threshold: T,
    value: T,
    /// Limbs of t, and of its distance from the threshold.
    t: [T; 2],
    distance: [T; 2],
    /// Limbs of each word's high part, and of what last draw and high part lack of the largest allowed ones.
    high: [T; HIGH_LIMBS],
    rest: [T; REST_LIMBS],
    /// How often each row of a table is looked up.
    range: T,
    alias: T,
}

impl<T> Columns<T> {
    fn in_order(self) -> Vec<T> {
        let first = [
            self.noise,
            self.byte,
            self.choice,
            self.threshold,
            self.value,
        ];
        let limbs = self.t.into_iter().chain(self.distance);
        let parts = self.high.into_iter().chain(self.rest);
        let all = first.into_iter().chain(limbs).chain(parts);
        all.chain([self.range, self.alias]).collect()
    }

    fn named(all: Vec<T>) -> Self {
        let mut all = all.into_iter();
        let mut next = || all.next().expect("one for each name");
        Self {
            noise: next(),
            byte: next(),
            choice: next(),
            threshold: next(),
            value: next(),
            t: std::array::from_fn(|_| next()),
            distance: std::array::from_fn(|_| next()),
            high: std::array::from_fn(|_| next()),
            rest: std::array::from_fn(|_| next()),
            range: next(),
            alias: next(),
        }
    }
}

/// The private columns.
#[derive(Clone, Default)]
pub(crate) struct Draws {
    bytes: Vec<i64>,
    choices: Vec<i64>,
    thresholds: Vec<i64>,
    values: Vec<i64>,
    /// Limbs of t, then of the distance from the threshold.
    limbs: [Vec<i64>; 4],
    /// Limbs of each word's high part, then of what last draw and high part lack of the largest allowed ones.
    high: [Vec<i64>; HIGH_LIMBS + REST_LIMBS],
    noise: Vec<i64>,
}

impl Drop for Draws {
    fn drop(&mut self) {
        let Self {
            bytes,
            choices,
            thresholds,
            values,
            limbs,
            high,
            noise,
        } = self;
        for column in [bytes, choices, thresholds, values, noise] {
            column.zeroize();
        }
        limbs.zeroize();
        high.zeroize();
    }
}

/// The largest last draw and high part of a word, as one integer, that can be proved: whatever the other draws are, it
/// gives an integer below r. Fewer than one word in 2^94 has a larger one.
const fn highest() -> u128 {
    upper(&Fr::MODULUS.0) - 1
}

/// Last draw and high part of a word as one integer.
const fn upper(word: &[u64; 4]) -> u128 {
    (word[3] as u128) << (192 - BELOW_BITS) | (word[2] >> (BELOW_BITS - 128)) as u128
}

fn high(word: &[u64; 4]) -> u64 {
    word[3] >> (LOW_BITS - 192)
}

fn limb(x: u128, k: usize) -> i64 {
    (x >> (LIMB_BITS * k) & 0xffff) as i64
}

impl Draws {
    /// From the words of the stream as integers.
    fn new(statement: &NoiseStatement, words: &[[u64; 4]]) -> Result<Self> {
        let mut draws = Self::default();
        let Self {
            bytes,
            choices,
            thresholds,
            values,
            limbs,
            high: parts,
            ..
        } = &mut draws;
        for column in [bytes, choices, thresholds, values]
            .into_iter()
            .chain(limbs)
        {
            column.reserve_exact(words.len() * DRAWS_PER_WORD);
        }
        parts.iter_mut().for_each(|c| c.reserve_exact(words.len()));
        let most = highest();
        for run in words.chunks(WORDS_PER_BLOCK) {
            let drawn: Zeroizing<Vec<(u8, u32)>> =
                Zeroizing::new(run.iter().flat_map(draws_of).collect());
            let heads: Zeroizing<Vec<u8>> = Zeroizing::new(drawn.iter().map(|d| d.0).collect());
            let rows = Zeroizing::new(table_rows(&heads));
            for ((byte, t), row) in drawn.iter().zip(rows.iter()) {
                // 1 where t is below the threshold: the difference's sign.
                let t = i64::from(*t);
                let choice = (t - i64::from(row[0])) as u64 >> 63;
                draws.push(*byte, choice as i64, t, *row);
            }
        }
        for word in words {
            let rest = most.checked_sub(upper(word)).ok_or_else(|| {
                Error::Unsatisfied("a noise word whose upper 94 bits are the modulus's".to_owned())
            })?;
            draws.push_high(high(word), rest);
        }
        draws.combine(statement);
        Ok(draws)
    }

    /// A draw, with threshold and alias of its bin. Choice and sign are masks.
    fn push(&mut self, byte: u8, choice: i64, t: i64, [threshold, alias]: [u32; 2]) {
        // Of which the compiler knows no more than that they are integers, so that it makes no branches of them.
        let (choice, byte) = std::hint::black_box((choice, byte));
        let (threshold, alias, bin) = (threshold.into(), i64::from(alias), byte % BINS as u8);
        let magnitude = alias ^ (-choice & (alias ^ i64::from(bin)));
        let sign = -i64::from(byte / BINS as u8);
        let value = (magnitude ^ sign) - sign;
        // With choice 1 threshold - 1 - t.
        let distance = ((t - threshold) ^ -choice) as u128;
        self.bytes.push(i64::from(byte));
        self.choices.push(choice);
        self.thresholds.push(threshold);
        self.values.push(value);
        for (column, v) in self.limbs.iter_mut().zip([
            limb(t as u128, 0),
            limb(t as u128, 1),
            limb(distance, 0),
            limb(distance, 1),
        ]) {
            column.push(v);
        }
    }

    fn push_high(&mut self, high: u64, rest: u128) {
        let (of_high, of_rest) = self.high.split_at_mut(HIGH_LIMBS);
        for (columns, source) in [(of_high, u128::from(high)), (of_rest, rest)] {
            (0..)
                .zip(columns)
                .for_each(|(k, column)| column.push(limb(source, k)));
        }
    }

    fn combine(&mut self, statement: &NoiseStatement) {
        let m = statement.gains.len();
        let sum = |run: &[i64]| {
            run.iter()
                .zip(&statement.gains)
                .map(|(x, g)| x * i64::from(*g))
                .sum()
        };
        self.noise = self
            .values
            .chunks(m)
            .take(statement.capacity)
            .map(sum)
            .collect();
    }

    fn into_columns(mut self) -> Columns<Vec<i64>> {
        let mut range = vec![0; 1 << LIMB_BITS];
        self.limbs
            .iter()
            .chain(&self.high)
            .flatten()
            .for_each(|v| count(&mut range, *v));
        let mut alias = vec![0; 1 << ALIAS_VARIABLES];
        self.bytes
            .iter()
            .zip(&self.choices)
            .for_each(|(b, c)| count(&mut alias, b + 256 * c));
        let Self {
            noise,
            bytes,
            choices,
            thresholds,
            values,
            limbs,
            high,
        } = &mut self;
        let take = std::mem::take::<Vec<i64>>;
        Columns {
            noise: take(noise),
            byte: take(bytes),
            choice: take(choices),
            threshold: take(thresholds),
            value: take(values),
            t: [0, 1].map(|k| take(&mut limbs[k])),
            distance: [2, 3].map(|k| take(&mut limbs[k])),
            high: std::array::from_fn(|k| take(&mut high[k])),
            rest: std::array::from_fn(|k| take(&mut high[HIGH_LIMBS + k])),
            range,
            alias,
        }
    }
}

/// The words 1..16 of the blocks, by the relation's own permutation.
fn words(kappa: Fr, blocks: usize) -> Zeroizing<Vec<[u64; 4]>> {
    let mut out = Zeroizing::new(vec![[0; 4]; blocks * WORDS_PER_BLOCK]);
    out.par_chunks_mut(TASK * WORDS_PER_BLOCK)
        .enumerate()
        .for_each(|(task, out)| stream_words(&kappa, task * TASK, out));
    out
}

/// The key of a slot: H(2, s0, s1, beacon, slot).
pub fn noise_key(seed: &Seed, beacon: Fr, slot: Fr) -> Fr {
    hash(&[Fr::from(TAG_KEY), seed.0[0], seed.0[1], beacon, slot]).expect("five inputs fit")
}

/// Makes the certificate of a slot; in `low_memory` the same in more time.
pub fn prove_noise(
    statement: &NoiseStatement,
    seed: &Seed,
    low_memory: bool,
) -> Result<Certificate> {
    let shape = statement.shape()?;
    let kappa = noise_key(seed, statement.beacon, statement.slot);
    let draws = Draws::new(statement, &words(kappa, shape.blocks))?;
    let low_memory = low_memory.then_some(RUN);
    prove_columns(statement, seed, draws.into_columns(), true, low_memory)
}

fn prove_columns(
    statement: &NoiseStatement,
    seed: &Seed,
    columns: Columns<Vec<i64>>,
    honest: bool,
    low_memory: Option<usize>,
) -> Result<Certificate> {
    let shape = statement.shape()?;
    let witness = [
        crate::group::encode_scalar(&seed.0[0]),
        crate::group::encode_scalar(&seed.0[1]),
    ]
    .concat();
    let mut session =
        Session::prover(statement.transcript(), shape.layout.row_variables, &witness)?;
    if let crate::session::Role::Prover(prover) = &mut session.role {
        prover.honest = honest;
    }
    session.low_memory = low_memory;
    let noise = certify(&mut session, statement, &shape, Some((seed, columns)))?;
    let noise = session.columns[noise.0].clone();
    match session.close(None)? {
        Closed::Proof(proof) => Ok(Certificate { proof, noise }),
        _ => unreachable!("a prover"),
    }
}

/// Reads a certificate: the commitments to z, and the equation that has to hold.
pub fn check_noise(statement: &NoiseStatement, proof: &[u8]) -> Result<(Column, Equation)> {
    let shape = statement.shape()?;
    let mut session = Session::verifier(statement.transcript(), shape.layout.row_variables, proof);
    let noise = certify(&mut session, statement, &shape, None)?;
    let noise = session.columns[noise.0].clone();
    match session.close(None)? {
        Closed::Check(equation) => Ok((noise, equation)),
        _ => unreachable!("a verifier"),
    }
}

/// Verifies a certificate and returns the commitments to z.
pub fn verify_noise(statement: &NoiseStatement, proof: &[u8]) -> Result<Column> {
    let (noise, equation) = check_noise(statement, proof)?;
    if equation.holds(&[]) {
        Ok(noise)
    } else {
        Err(Error::Rejected)
    }
}

/// The protocol, for both parties.
fn certify(
    session: &mut Session,
    statement: &NoiseStatement,
    shape: &Shape,
    secret: Option<(&Seed, Columns<Vec<i64>>)>,
) -> Result<ColumnId> {
    let (draws, words) = (shape.draws(), shape.words());
    let reach = (BINS - 1) * statement.gains.iter().map(|g| *g as usize).sum::<usize>();
    let (limb, limbs_of_all) = (
        Bound::Unsigned(LIMB_BITS),
        4 * draws + words * (HIGH_LIMBS + REST_LIMBS),
    );
    let bounds = Columns {
        noise: (statement.capacity, Bound::within(reach)),
        byte: (draws, Bound::up_to(2 * BINS - 1)),
        choice: (draws, Bound::Unsigned(1)),
        threshold: (draws, Bound::Unsigned(T_BITS)),
        value: (draws, Bound::within(BINS - 1)),
        t: [(draws, limb); 2],
        distance: [(draws, limb); 2],
        high: [(words, limb); HIGH_LIMBS],
        rest: [(words, limb); REST_LIMBS],
        range: (1 << LIMB_BITS, Bound::up_to(limbs_of_all)),
        alias: (1 << ALIAS_VARIABLES, Bound::up_to(draws)),
    };
    let (seed, columns) = secret.unzip();
    let ids = session.commit_bounded(
        "noise columns",
        &bounds.in_order(),
        columns.map(Columns::in_order),
    )?;
    let Columns {
        noise,
        byte,
        choice,
        threshold,
        value,
        t,
        distance,
        high,
        rest,
        range,
        alias,
    } = Columns::named(ids);

    // Keys.
    let keys = seed.map(|seed| {
        [
            seed.0[0],
            seed.0[1],
            noise_key(seed, statement.beacon, statement.slot),
        ]
    });
    let vars = session.send("seed and key", 3, keys.as_ref().map(|k| &k[..]))?;
    let [s0, s1, kappa] = [vars[0], vars[1], vars[2]].map(Expr::from);
    let calls = vec![
        Call {
            inputs: vec![TAG_SEED.into(), s0.clone(), s1.clone()],
            output: statement.c_seed.into(),
        },
        Call {
            inputs: vec![
                TAG_KEY.into(),
                s0,
                s1,
                statement.beacon.into(),
                statement.slot.into(),
            ],
            output: kappa.clone(),
        },
    ];

    // Ranges and the alias table.
    let one = |id: ColumnId| Entry::Columns(vec![(id, Fr::ONE)]);
    let mut segments = vec![
        Segment {
            variables: log2_ceil(draws),
            tag: TAG_ALIAS,
            // Byte and choice apart: of their sum alone, byte + 256 with the other choice would be the same row.
            entries: vec![one(byte), one(choice), one(threshold), one(value)],
            count: Count::First(draws),
        },
        range_table(range),
    ];
    let rows: Vec<(i64, i64)> = (0..512).map(|v| alias_row(v % 256, v / 256)).collect();
    segments.push(Segment {
        variables: ALIAS_VARIABLES,
        tag: TAG_ALIAS,
        entries: vec![
            Entry::Public((0..512).map(|v| v % 256).collect()),
            Entry::Public((0..512).map(|v| v / 256).collect()),
            Entry::Public(rows.iter().map(|r| r.0).collect()),
            Entry::Public(rows.iter().map(|r| r.1).collect()),
        ],
        count: Count::Table(alias),
    });
    segments.extend(
        t.iter()
            .chain(&distance)
            .map(|id| first_in_range(*id, draws)),
    );
    segments.extend(
        high.iter()
            .chain(&rest)
            .map(|id| first_in_range(*id, words)),
    );
    lookups(session, segments)?;

    // (2c - 1)(T - t) - c = distance: below the threshold exactly if the choice is 1.
    let tau = session.challenges("choice", log2_ceil(draws));
    let sources: [Vec<(ColumnId, Fr)>; 4] = [
        vec![(choice, Fr::ONE)],
        vec![(threshold, Fr::ONE)],
        limbs(&t, Fr::ONE),
        limbs(&distance, Fr::ONE),
    ];
    let tables = session
        .proving()
        .then(|| sources.iter().map(|s| entries_of(session, s)).collect());
    let reduced = sumcheck(session, "choice", &tau, Expr::zero(), 2, tables, Choice)?;
    let finals = reduced.finals.map(|f| {
        let product = (f[0].double() - Fr::ONE) * (f[1] - f[2]);
        [f[0], f[1], f[2], f[3], product]
    });
    let v = session.send("choice", 5, finals.as_ref().map(|f| &f[..]))?;
    let e = |i: usize| Expr::from(v[i]);
    session.constrain_product(
        "choice",
        e(0) * Fr::from(2u8) - 1u64.into(),
        e(1) - e(2),
        e(4),
    );
    session.constrain("choice", e(4) - e(0) - e(3) - reduced.claim);
    for (source, var) in sources.into_iter().zip(&v) {
        session.claim(Weight::evaluation(&reduced.point), source, (*var).into());
    }

    // z = sum of g_c x_c, row by row: one value behind two functionals.
    let r = session.challenges("noise", shape.layout.variables);
    let at = session
        .proving()
        .then(|| combination_at(session, &[(noise, Fr::ONE)], &r));
    let var = session.send("noise", 1, at.as_ref().map(std::slice::from_ref))?[0];
    session.claim(Weight::evaluation(&r), vec![(noise, Fr::ONE)], var.into());
    let gains = Weight {
        point: r,
        coefficients: statement.gains.iter().map(|g| Fr::from(*g)).collect(),
        items: statement.capacity,
    };
    session.claim(gains, vec![(value, Fr::ONE)], var.into());

    // Of every word, made of draws and a high part: word = low + 2^200 high, and last + 2^40 high + rest = highest, where
    // last is the draw from bit 160 on. Both at one random point, the second times zeta.
    let r = session.challenges("words", shape.block_variables + WORD_VARIABLES);
    let zeta = session.challenge("upper parts");
    let mut coefficients: Vec<Fr> = (0..DRAWS_PER_WORD)
        .map(|k| power_of_two(DRAW_BITS * k))
        .collect();
    coefficients[DRAWS_PER_WORD - 1] += zeta;
    let low = Weight {
        point: r.clone(),
        coefficients,
        items: words,
    };
    let mut draw = vec![(byte, Fr::ONE)];
    draw.extend(limbs(&t, power_of_two(8)));
    let all_words = Weight {
        point: r.clone(),
        coefficients: vec![Fr::ONE],
        items: words,
    };
    let sums = [
        (low, draw),
        (all_words.clone(), limbs(&high, Fr::ONE)),
        (all_words, limbs(&rest, Fr::ONE)),
    ];
    let values = session.proving().then(|| {
        let value = |(weight, columns): &(Weight, Vec<_>)| functional(session, weight, columns);
        sums.each_ref().map(value)
    });
    let v = session.send("words", 3, values.as_ref().map(|v| &v[..]))?;
    for ((weight, columns), var) in sums.into_iter().zip(&v) {
        session.claim(weight, columns, (*var).into());
    }
    let [low, high, rest] = [v[0], v[1], v[2]].map(Expr::from);
    let most = Expr::from(prefix(&r, words) * Fr::from(highest()));
    let last = most - rest - high.clone() * power_of_two(LOW_BITS - BELOW_BITS);
    let (word_point, block_point) = r.split_at(WORD_VARIABLES);
    let stream = Stream {
        kappa,
        blocks: shape.blocks,
        word_point: word_point.to_vec(),
        block_point: block_point.to_vec(),
        value: low - last * zeta + high * power_of_two(LOW_BITS),
    };
    permutations(session, Some(stream), calls)?;
    Ok(noise)
}

/// (2 c - 1) (T - t) - c - d for the tables c, T, t, d.
#[derive(Clone, Copy)]
struct Choice;

impl Gate for Choice {
    type Tables<V: Copy> = [V; 4];
    type Nodes<W: Copy> = [W; 2];

    fn constants(&self) -> Vec<Fr> {
        vec![Fr::ONE]
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, one: &[L::V], v: &[L::V]) -> L::V {
        let sign = l.sub(l.add(v[0], v[0]), one[0]);
        let distance = l.mul(l.weak(sign), l.sub(v[1], v[2]));
        l.weak(l.sub(l.sub(distance, v[0]), v[3]))
    }
}

impl Certificate {
    /// The commitments to z as the certificate publishes them.
    pub fn commitments(&self) -> Vec<u8> {
        self.noise.rows.iter().flat_map(encode_point).collect()
    }
}

/// The column z of a certificate, from what was kept of it: encoded commitments, values and blindings.
pub fn noise_column(
    rows: &[u8],
    values: Vec<i64>,
    blindings: Vec<Fr>,
    layout: Layout,
) -> Result<Column> {
    let points = decode_points(rows)?;
    if points.len() != layout.rows()
        || blindings.len() != points.len()
        || values.len() != layout.capacity
    {
        return Err(Error::invalid(
            "noise",
            format!(
                "{} commitments and blindings, {} values",
                layout.rows(),
                layout.capacity
            ),
            format!("{}, {} and {}", points.len(), blindings.len(), values.len()),
        ));
    }
    Ok(Column {
        variables: layout.variables,
        rows: points,
        opening: Some(Arc::new(Opening { values, blindings })),
    })
}

#[cfg(test)]
pub(crate) mod tests;
