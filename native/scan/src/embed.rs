//! Claim A1 for a static embedder: the tokens behind hq give the vector behind cq. `docs/scan/embed.md`.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::commitment::NIBBLES_PER_ELEMENT;
use ragaudit_core::poseidon::LIST_RUN;
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::batch::{self, Refusals};
use crate::closing::Closed;
use crate::columns::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{encode_scalar, Fr};
use crate::index::{check_dimension, IndexCommitment, COMPONENT, MAX_DIMENSION};
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{eq_table, Weight};
use crate::nibbles::{nibble_rows, NIBBLE_VARIABLES, TAG_VECTOR};
use crate::numbers::{from_small, log2_ceil, power_of_two, NO_WRAP_BITS};
use crate::poseidon::{permutations, start_of_list, Call};
use crate::ranges::count;
use crate::session::{ColumnId, Role, Session, TableClaim};
use crate::sumcheck::{plain, sumcheck, Square};
use crate::transcript::Transcript;
use crate::values::pad;

const TAG_QUERY: u64 = 3;
const TAG_TOKEN: u64 = 1;
const TAG_LIMB: u64 = 2;
const TAG_STEP: u64 = 3;
const LIMB_BITS: usize = 12;
const TOKEN_BITS: usize = 15;
const TOKENS_PER_ELEMENT: usize = 16;
/// hq's list is one run: salt, number of tokens, packed tokens.
pub const MAX_TOKENS: usize = (LIST_RUN - 2) * TOKENS_PER_ELEMENT;
/// Largest vocabulary: tokens have 15 bits.
pub const MAX_VOCABULARY: usize = 1 << TOKEN_BITS;
/// Largest A.
pub const MAX_NORM_FACTOR: u64 = 1 << 20;
/// w is the integer square root of 2^16 times the sum of squares.
const ROOT_SHIFT: usize = 16;

/// What decides where values stand: see [`crate::protocol`].
pub(crate) const RULES: [u64; 7] = [
    TAG_QUERY,
    TAG_TOKEN,
    TAG_LIMB,
    TAG_STEP,
    LIMB_BITS as u64,
    TOKENS_PER_ELEMENT as u64,
    ROOT_SHIFT as u64,
];

/// What a proof of A1 is about. Every value is rebuilt by the verifier, none read from a file.
#[derive(Clone)]
pub struct EmbedStatement<'a> {
    /// Digest of everything else that the record says.
    pub context: Fr,
    /// Made by [`crate::index::commit_table`]: a zero row stands after the vocabulary.
    pub table: &'a IndexCommitment,
    /// Most tokens of a query.
    pub tokens: usize,
    /// A.
    pub norm_factor: u64,
    pub hq: Fr,
    pub cq: Fr,
}

/// The private side.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Query {
    pub tokens: Vec<u32>,
    pub query_salt: Fr,
    pub vector_salt: Fr,
}

/// How large everything can get, all far below r.
struct Bounds {
    /// Of 2 A |e_j|.
    scaled: i64,
    /// Of every range-checked value, which is at most 2 w + scaled.
    limbs: usize,
}

impl Bounds {
    const fn of(tokens: usize, dimension: usize, norm_factor: u64) -> Self {
        let reach = tokens as u64 * COMPONENT as u64;
        let root = ((dimension as u64 * reach * reach) << ROOT_SHIFT).isqrt();
        let scaled = 2 * norm_factor * reach;
        let bits = 64 - (2 * root + scaled).leading_zeros() as usize;
        Self {
            scaled: scaled as i64,
            limbs: bits.div_ceil(LIMB_BITS),
        }
    }

    /// Bits of w^2: w less 1 has limbs.
    const fn square_bits(&self) -> usize {
        2 * (LIMB_BITS * self.limbs + 1)
    }
}

// What `docs/scan/embed.md` says under "No wrap-around".
const _: () = {
    let reach = MAX_TOKENS as u64 * COMPONENT as u64;
    let squares = MAX_DIMENSION as u64 * reach * reach;
    assert!(reach < 1 << 11 && squares < 1 << 34);
    let most = Bounds::of(MAX_TOKENS, MAX_DIMENSION, MAX_NORM_FACTOR);
    assert!(most.scaled < 1 << 32 && most.limbs == 3);
    assert!(2 * (squares << ROOT_SHIFT).isqrt() + (most.scaled as u64) < 1 << 33);
    // Whatever a prover writes: nothing that is compared has more than a bit above w^2.
    assert!(most.square_bits() + 1 == 75 && 75 < NO_WRAP_BITS);
    assert!(TOKENS_PER_ELEMENT * TOKEN_BITS == 240 && 240 < NO_WRAP_BITS);
};

impl EmbedStatement<'_> {
    fn check(&self) -> Result<Bounds> {
        let in_range = |field: &str, most: u64, found: u64| {
            let expected = || format!("1..={most}");
            let inside = (1..=most).contains(&found);
            inside
                .then_some(())
                .ok_or_else(|| Error::invalid(field, expected(), found))
        };
        in_range("tokens", MAX_TOKENS as u64, self.tokens as u64)?;
        in_range(
            "vocabulary",
            MAX_VOCABULARY as u64,
            self.vocabulary() as u64,
        )?;
        in_range("norm factor", MAX_NORM_FACTOR, self.norm_factor)?;
        check_dimension(self.table.dimension)?;
        Ok(Bounds::of(
            self.tokens,
            self.table.dimension,
            self.norm_factor,
        ))
    }

    fn vocabulary(&self) -> usize {
        self.table.layout.capacity - 1
    }

    fn transcript(&self) -> Transcript {
        let mut t = Transcript::new("embed");
        t.scalar("context", &self.context);
        t.bytes("table", &self.table.digest());
        t.integer("vocabulary", self.vocabulary() as u64);
        t.integer("dimension", self.table.dimension as u64);
        t.integer("tokens", self.tokens as u64);
        t.integer("norm factor", self.norm_factor);
        t.scalar("hq", &self.hq);
        t.scalar("cq", &self.cq);
        t
    }
}

/// What v_j adds to its lower and upper distance: -1 where the bound is strict, and so much at the ends, where there is
/// no bound, that no sum of rows falls below.
fn slack(v: i64, scaled: i64) -> [i64; 2] {
    let most = i64::from(COMPONENT);
    let one = |v: i64| i64::from(v == -most) * scaled - i64::from(v <= 0);
    [one(v), one(-v)]
}

/// The prover's columns and values.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    /// By place, zeros in unused ones.
    pub(crate) tokens: Vec<i64>,
    pub(crate) used: Vec<i64>,
    /// How often each row of the table counts; row V is that of the unused places.
    pub(crate) histogram: Vec<i64>,
    pub(crate) sums: Vec<i64>,
    pub(crate) vector: Vec<i64>,
    pub(crate) root: i64,
    /// 2^16 sum e_j^2 - w^2.
    pub(crate) rest: i64,
    /// 2 A e_j - (2 v_j - 1) w and (2 v_j + 1) w - 2 A e_j, with their slack.
    pub(crate) distances: [Vec<i64>; 2],
}

/// What the prover claims of its columns and values, which the constraints bind to them.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Claimed {
    /// At the random point: e, v and w v.
    pub(crate) at_point: [Vec<i64>; 3],
    pub(crate) packed: Vec<i64>,
    /// Of which the squares are summed.
    pub(crate) squared: Vec<i64>,
    /// w^2.
    pub(crate) root_squared: i64,
    /// 2 w - rest.
    pub(crate) lacking: i64,
}

impl Claimed {
    fn of(witness: &Witness) -> Self {
        let product = witness.vector.iter().map(|v| v * witness.root).collect();
        Self {
            at_point: [witness.sums.clone(), witness.vector.clone(), product],
            packed: witness.vector.clone(),
            squared: witness.sums.clone(),
            root_squared: witness.root * witness.root,
            lacking: 2 * witness.root - witness.rest,
        }
    }
}

/// The columns, in the order in which they are committed to.
struct Columns<T> {
    /// How often each token is used.
    histogram: T,
    /// Sums of the tokens' rows.
    sums: T,
    vector: T,
    /// What each component's step leaves below and above.
    lower_slack: T,
    upper_slack: T,
    /// Limbs of the distances from both ends of a step.
    lower: Vec<T>,
    upper: Vec<T>,
    /// How often each row of a table is looked up.
    limbs: T,
    steps: T,
}

impl<T> Columns<T> {
    fn in_order(self) -> Vec<T> {
        let mut out = vec![
            self.histogram,
            self.sums,
            self.vector,
            self.lower_slack,
            self.upper_slack,
        ];
        out.extend(self.lower.into_iter().chain(self.upper));
        out.extend([self.limbs, self.steps]);
        out
    }

    fn named(all: Vec<T>, bounds: &Bounds) -> Self {
        let mut all = all.into_iter();
        let mut next = || all.next().expect("one for each name");
        Self {
            histogram: next(),
            sums: next(),
            vector: next(),
            lower_slack: next(),
            upper_slack: next(),
            lower: (0..bounds.limbs).map(|_| next()).collect(),
            upper: (0..bounds.limbs).map(|_| next()).collect(),
            limbs: next(),
            steps: next(),
        }
    }
}

impl Witness {
    fn new(statement: &EmbedStatement, rows: &[i8], query: &Query) -> Result<Self> {
        let bounds = statement.check()?;
        let (vocabulary, dimension) = (statement.vocabulary(), statement.table.dimension);
        if rows.len() != vocabulary * dimension {
            let expected = format!("{vocabulary} rows of {dimension} components");
            let found = format!("{} components", rows.len());
            return Err(Error::invalid("table", expected, found));
        }
        if let Some(bad) = rows.iter().find(|v| v.unsigned_abs() > COMPONENT as u8) {
            let expected = format!("components in -{COMPONENT}..{COMPONENT}");
            return Err(Error::invalid("table", expected, bad));
        }
        let number = query.tokens.len();
        if !(1..=statement.tokens).contains(&number) {
            let expected = format!("1..={}", statement.tokens);
            return Err(Error::invalid("tokens", expected, number));
        }
        let mut tokens = vec![0; statement.tokens];
        let mut used = vec![0; statement.tokens];
        let mut histogram = vec![0; vocabulary + 1];
        histogram[vocabulary] = (statement.tokens - number) as i64;
        let mut sums = vec![0; dimension];
        if let Some(bad) = query.tokens.iter().find(|t| **t as usize >= vocabulary) {
            let expected = format!("tokens below {vocabulary}");
            return Err(Error::invalid("tokens", expected, bad));
        }
        // As many rows are read and added whatever the number of tokens is, those of unused places under a zero mask.
        for place in 0..statement.tokens {
            let here = (place < number) as i64;
            let token = query.tokens.get(place).map_or(0, |t| *t as usize);
            (tokens[place], used[place]) = (token as i64, here);
            histogram[token] += here;
            let mask = std::hint::black_box(-here);
            let row = &rows[token * dimension..][..dimension];
            sums.iter_mut()
                .zip(row)
                .for_each(|(e, v)| *e += i64::from(*v) & mask);
        }
        let square = sums.iter().map(|e| e * e).sum::<i64>() << ROOT_SHIFT;
        let root = square.isqrt();
        if root == 0 {
            return Err(Error::Unsatisfied(
                "the rows of the tokens sum to zero".to_owned(),
            ));
        }
        let factor = 2 * statement.norm_factor as i64;
        let component = |e: &i64| {
            let most = i64::from(COMPONENT);
            // Divided by 2 w without a division: how many of its multiples there are, up to the largest that counts.
            let numerator = factor * e.abs() + root;
            let magnitude: i64 = (1..=most)
                .map(|k| i64::from(numerator >= 2 * k * root))
                .sum();
            e.signum() * magnitude
        };
        let mut witness = Self {
            tokens,
            used,
            histogram,
            vector: sums.iter().map(component).collect(),
            sums,
            root,
            rest: square - root * root,
            distances: [Vec::new(), Vec::new()],
        };
        witness.measure(factor, bounds.scaled);
        Ok(witness)
    }

    fn measure(&mut self, factor: i64, scaled: i64) {
        let pairs = self.sums.iter().zip(&self.vector).map(|(e, v)| {
            let [lower, upper] = slack(*v, scaled);
            [
                factor * e - (2 * v - 1) * self.root + lower,
                (2 * v + 1) * self.root - factor * e + upper,
            ]
        });
        let (lower, upper) = pairs.map(|[a, b]| (a, b)).unzip();
        self.distances = [lower, upper];
    }

    /// What the prover's columns hold.
    fn columns(
        &self,
        claimed: &Claimed,
        statement: &EmbedStatement,
        bounds: &Bounds,
    ) -> Columns<Vec<i64>> {
        let components = log2_ceil(statement.table.dimension);
        let vector = pad(&self.vector, components);
        let (lower_slack, upper_slack) = vector
            .iter()
            .map(|v| slack(*v, bounds.scaled).into())
            .unzip();
        // Places after the last component: e = v = 0, so both distances are w - 1.
        let [lower, upper] = self.distances.each_ref().map(|distance| {
            let mut distance = distance.clone();
            distance.resize(1 << components, self.root - 1);
            let limb = |k| distance.iter().map(|d| limb(*d, k, bounds.limbs)).collect();
            (0..bounds.limbs).map(limb).collect::<Vec<Vec<i64>>>()
        });
        let mut limbs = vec![0; 1 << LIMB_BITS];
        let mut steps = vec![0; 1 << NIBBLE_VARIABLES];
        lower
            .iter()
            .chain(&upper)
            .flatten()
            .for_each(|v| count(&mut limbs, *v));
        self.root_limbs(claimed, bounds)
            .iter()
            .for_each(|v| count(&mut limbs, *v));
        let most = i64::from(COMPONENT);
        vector.iter().for_each(|v| count(&mut steps, v + most));
        Columns {
            histogram: pad(&self.histogram, statement.table.layout.variables),
            sums: pad(&self.sums, components),
            vector,
            lower_slack,
            upper_slack,
            lower,
            upper,
            limbs,
            steps,
        }
    }

    /// w - 1, what is left under the root, and what that lacks of 2 w.
    fn root_limbs(&self, claimed: &Claimed, bounds: &Bounds) -> Vec<i64> {
        [self.root - 1, self.rest, claimed.lacking]
            .into_iter()
            .flat_map(|v| (0..bounds.limbs).map(move |k| limb(v, k, bounds.limbs)))
            .collect()
    }

    /// In the order that the protocol sends them.
    fn hidden(&self, query: &Query, claimed: &Claimed, bounds: &Bounds) -> Vec<Fr> {
        let mut out = vec![query.query_salt, query.vector_salt];
        let root = self.root_limbs(claimed, bounds);
        out.extend(
            [&self.tokens, &self.used, &root]
                .into_iter()
                .flatten()
                .map(|v| from_small(*v)),
        );
        out.push(from_small(claimed.root_squared));
        let packed = |run: &[i64]| {
            let place = |(i, v): (usize, &i64)| from_small(*v) * power_of_two(4 * i);
            run.iter().enumerate().map(place).sum::<Fr>()
        };
        out.extend(claimed.packed.chunks(NIBBLES_PER_ELEMENT).map(packed));
        out
    }
}

/// The last limb takes all that is left: what does not fit then has no row in the table of limbs.
fn limb(x: i64, k: usize, limbs: usize) -> i64 {
    let rest = x >> (LIMB_BITS * k);
    if k + 1 < limbs {
        rest & ((1 << LIMB_BITS) - 1)
    } else {
        rest
    }
}

fn joined(run: &[Expr]) -> Expr {
    Expr::combination(run.iter().zip((0..).map(|k| power_of_two(LIMB_BITS * k))))
}

fn columns_joined(run: &[ColumnId]) -> Vec<(ColumnId, Fr)> {
    run.iter()
        .enumerate()
        .map(|(k, id)| (*id, power_of_two(LIMB_BITS * k)))
        .collect()
}

/// sum of factors_j column_j of the table, by row: one addition an entry.
fn functional(rows: &[i8], factors: &[Fr], size: usize) -> Vec<Fr> {
    let multiples: Vec<[Fr; COMPONENT as usize + 1]> = factors
        .iter()
        .map(|f| std::array::from_fn(|k| *f * Fr::from(k as u64)))
        .collect();
    let mut out: Vec<Fr> = rows
        .par_chunks(factors.len())
        .map(|row| {
            let mut sum = Fr::ZERO;
            for (v, multiples) in row.iter().zip(&multiples) {
                let multiple = multiples[usize::from(v.unsigned_abs())];
                if *v < 0 {
                    sum -= multiple;
                } else {
                    sum += multiple;
                }
            }
            sum
        })
        .collect();
    out.resize(size, Fr::ZERO);
    out
}

/// Proves that the query's tokens stand behind hq, and the vector that the table's rows make of them behind cq.
///
/// `rows` are the table's, row by row.
pub fn prove_embed(statement: &EmbedStatement, rows: &[i8], query: &Query) -> Result<Vec<u8>> {
    let witness = Witness::new(statement, rows, query)?;
    prove_with(
        statement,
        rows,
        query,
        (&witness, &Claimed::of(&witness)),
        true,
    )
}

fn prove_with(
    statement: &EmbedStatement,
    rows: &[i8],
    query: &Query,
    secret: (&Witness, &Claimed),
    honest: bool,
) -> Result<Vec<u8>> {
    let mut seed: Vec<u8> = query.tokens.iter().flat_map(|t| t.to_le_bytes()).collect();
    seed.extend(encode_scalar(&query.query_salt));
    seed.extend(encode_scalar(&query.vector_salt));
    let row_variables = statement.table.layout.row_variables;
    let mut session = Session::prover(statement.transcript(), row_variables, &seed)?;
    seed.zeroize();
    if let Role::Prover(prover) = &mut session.role {
        prover.honest = honest;
    }
    match embed_protocol(session, statement, Some(rows), Some((query, secret)))? {
        Closed::Proof(proof) => Ok(proof),
        _ => unreachable!("a prover"),
    }
}

/// Reads a proof: the equation that has to hold, over the table's points.
pub fn check_embed(statement: &EmbedStatement, proof: &[u8]) -> Result<Equation> {
    statement.check()?;
    let row_variables = statement.table.layout.row_variables;
    let session = Session::verifier(statement.transcript(), row_variables, proof);
    match embed_protocol(session, statement, None, None)? {
        Closed::Check(equation) => Ok(equation),
        _ => unreachable!("a verifier"),
    }
}

/// Verifies a proof of A1.
pub fn verify_embed(statement: &EmbedStatement, proof: &[u8]) -> Result<()> {
    if check_embed(statement, proof)?.holds(&statement.table.points) {
        Ok(())
    } else {
        Err(Error::Rejected)
    }
}

/// A statement with its proof.
pub type Item<'a> = (EmbedStatement<'a>, &'a [u8]);

fn absorb(transcript: &mut Transcript, items: &[Item]) {
    for (statement, proof) in items {
        transcript.bytes("statement", &statement.transcript().digest());
        transcript.bytes("proof", proof);
    }
}

/// Many proofs about one table, verified a chunk at a time: what it keeps does not grow with their number.
pub struct Batch(batch::Batch);

impl Batch {
    pub fn new(table: Arc<IndexCommitment>) -> Self {
        Self(batch::Batch::new(table, Transcript::new("embed batch")))
    }

    fn equation(table: &IndexCommitment, (statement, proof): &Item) -> Result<Vec<Equation>> {
        if !std::ptr::eq(statement.table, table) {
            return Err(Error::invalid("table", "the batch's", "another"));
        }
        Ok(vec![check_embed(statement, proof)?])
    }

    /// As [`crate::answer::Batch::add`].
    pub fn add(&mut self, items: &[Item]) -> Refusals {
        let table = Arc::clone(&self.0.index);
        self.0.add(
            [items.len(), 1],
            |transcript| absorb(transcript, items),
            |i| Self::equation(&table, &items[i]),
        )
    }

    /// As [`crate::answer::Batch::holds`].
    pub fn holds(&self) -> bool {
        self.0.holds()
    }

    /// As [`crate::answer::Batch::search`].
    pub fn search(&self, items: &[Item]) -> Refusals {
        let mut transcript = Transcript::new("embed batch");
        absorb(&mut transcript, items);
        let weights: Vec<Vec<Fr>> = items
            .iter()
            .map(|_| transcript.challenges("weight", 1))
            .collect();
        let table = &self.0.index;
        batch::search(table, &weights, |i| Self::equation(table, &items[i]))
    }

    /// Points and scalars that are kept between chunks.
    pub fn kept(&self) -> usize {
        self.0.kept()
    }
}

/// Which of the proofs about one table do not hold, ascending, and why: as [`crate::answer::verify_batch`].
pub fn verify_embed_batch(table: &Arc<IndexCommitment>, items: &[Item]) -> Refusals {
    let mut batch = Batch::new(Arc::clone(table));
    let refused = batch::chunks(items, |chunk| batch.add(chunk));
    match batch.holds() {
        true => refused,
        false => batch::chunks(items, |chunk| batch.search(chunk)),
    }
}

/// The protocol, for both parties; `rows` for whoever has the table itself.
fn embed_protocol<'a>(
    mut session: Session<'a>,
    statement: &'a EmbedStatement,
    rows: Option<&[i8]>,
    secret: Option<(&Query, (&Witness, &Claimed))>,
) -> Result<Closed> {
    let bounds = statement.check()?;
    let (layout, dimension) = (statement.table.layout, statement.table.dimension);
    let components = log2_ceil(dimension);
    let (most, vocabulary) = (statement.tokens, statement.vocabulary());

    let (all, looked_up) = (1 << components, (2 << components) + 3);
    let slack_bound = (all, Bound::within(bounds.scaled as usize + 1));
    let limb_bounds = vec![(all, Bound::Unsigned(LIMB_BITS)); bounds.limbs];
    let within = Columns {
        histogram: (1 << layout.variables, Bound::up_to(most)),
        sums: (all, Bound::within(most * COMPONENT as usize)),
        vector: (all, Bound::within(COMPONENT as usize)),
        lower_slack: slack_bound,
        upper_slack: slack_bound,
        lower: limb_bounds.clone(),
        upper: limb_bounds,
        limbs: (1 << LIMB_BITS, Bound::up_to(looked_up * bounds.limbs)),
        steps: (1 << NIBBLE_VARIABLES, Bound::up_to(all)),
    };
    let columns = secret.map(|(_, (w, claimed))| w.columns(claimed, statement, &bounds).in_order());
    let ids = session.commit_bounded("embedding columns", &within.in_order(), columns)?;
    let Columns {
        histogram,
        sums,
        vector,
        lower_slack,
        upper_slack,
        lower,
        upper,
        limbs,
        steps,
    } = Columns::named(ids, &bounds);

    let elements = dimension.div_ceil(NIBBLES_PER_ELEMENT);
    let hidden = secret.map(|(query, (w, claimed))| w.hidden(query, claimed, &bounds));
    let count = 2 + 2 * most + 3 * bounds.limbs + 1 + elements;
    let vars = session.send("query", count, hidden.as_deref())?;
    let exprs: Vec<Expr> = vars.into_iter().map(Expr::from).collect();
    let (salts, rest) = exprs.split_at(2);
    let (tokens, rest) = rest.split_at(most);
    let (used, rest) = rest.split_at(most);
    let (root_limbs, rest) = rest.split_at(3 * bounds.limbs);
    let (square, packed) = (&rest[0], &rest[1..]);

    // Used places come first. A mark is 0 or 1 by its lookup; without any, the root below would be 0.
    for pair in used.windows(2) {
        session.constrain_product(
            "used places",
            pair[0].clone(),
            pair[1].clone(),
            pair[1].clone(),
        );
    }

    // hq, whose list is as long as the tokens need; cq.
    let packs = most.div_ceil(TOKENS_PER_ELEMENT);
    let starts: Vec<Fr> = (1..=packs)
        .map(|p| start_of_list(TAG_QUERY, 2 + p))
        .collect();
    let mut start = Expr::from(starts[0]);
    for (pair, first) in starts.windows(2).zip(
        used.iter()
            .skip(TOKENS_PER_ELEMENT)
            .step_by(TOKENS_PER_ELEMENT),
    ) {
        start.add_scaled(first, pair[1] - pair[0]);
    }
    let number = Expr::combination(used.iter().map(|u| (u, Fr::ONE)));
    let mut inputs = vec![start, salts[0].clone(), number];
    inputs.extend(
        tokens.chunks(TOKENS_PER_ELEMENT).map(|run| {
            Expr::combination(run.iter().zip((0..).map(|i| power_of_two(TOKEN_BITS * i))))
        }),
    );
    let mut calls = vec![Call {
        inputs,
        output: statement.hq.into(),
    }];
    let places: Vec<Fr> = (0..NIBBLES_PER_ELEMENT)
        .map(|i| power_of_two(4 * i))
        .collect();
    let offset = places.iter().sum::<Fr>() * Fr::from(8u8);
    let mut list = vec![salts[1].clone()];
    list.extend(packed.iter().map(|x| x.clone() + offset.into()));
    calls.extend(Call::list(&mut session, TAG_VECTOR, &list, statement.cq)?);

    // w^2 <= 2^16 sum e_j^2 <= w^2 + 2 w with w >= 1; w and what is left have limbs.
    let (minus_one, rest) = root_limbs.split_at(bounds.limbs);
    let (left, lacking) = rest.split_at(bounds.limbs);
    let root = joined(minus_one) + 1u64.into();
    session.constrain_product("root", root.clone(), root.clone(), square.clone());
    let twice = root.clone() * Fr::from(2u8);
    session.constrain("root", joined(left) + joined(lacking) - twice);
    let scale = power_of_two(ROOT_SHIFT).inverse().expect("a power of two");
    let total = (square.clone() + joined(left)) * scale;

    let rows_of_steps = nibble_rows();
    let [of_lower, of_upper] = [0, 1].map(|i| {
        let column: Vec<i64> = rows_of_steps
            .iter()
            .map(|v| slack(*v, bounds.scaled)[i])
            .collect();
        Entry::Public(column)
    });
    let one = |id: ColumnId| Entry::Columns(vec![(id, Fr::ONE)]);
    let mut segments = vec![
        // A used place holds a token of the vocabulary, an unused one 0.
        Segment {
            variables: log2_ceil(most),
            tag: TAG_TOKEN,
            entries: vec![Entry::Hidden(tokens.to_vec()), Entry::Hidden(used.to_vec())],
            count: Count::First(most),
        },
        Segment {
            variables: layout.variables,
            tag: TAG_TOKEN,
            entries: vec![Entry::RowBelow(vocabulary), Entry::Below(vocabulary)],
            count: Count::Table(histogram),
        },
        Segment {
            variables: components,
            tag: TAG_STEP,
            entries: vec![one(vector), one(lower_slack), one(upper_slack)],
            count: Count::Once,
        },
        Segment {
            variables: NIBBLE_VARIABLES,
            tag: TAG_STEP,
            entries: vec![Entry::Public(rows_of_steps), of_lower, of_upper],
            count: Count::Table(steps),
        },
        Segment {
            variables: LIMB_BITS,
            tag: TAG_LIMB,
            entries: vec![Entry::Row],
            count: Count::Table(limbs),
        },
        Segment {
            variables: log2_ceil(root_limbs.len()),
            tag: TAG_LIMB,
            entries: vec![Entry::Hidden(root_limbs.to_vec())],
            count: Count::First(root_limbs.len()),
        },
    ];
    segments.extend(lower.iter().chain(&upper).map(|id| Segment {
        variables: components,
        tag: TAG_LIMB,
        entries: vec![one(*id)],
        count: Count::Once,
    }));
    lookups(&mut session, segments)?;

    // Everything that is linear in the columns over components, at one random point.
    let at = session.challenges("components", components);
    let eq = eq_table(&at);
    let values = secret.map(|(_, (_, claimed))| {
        let dot = |(v, e): (&i64, &Fr)| from_small(*v) * e;
        [0, 1, 2].map(|k| claimed.at_point[k].iter().zip(&eq).map(dot).sum::<Fr>())
    });
    let vars = session.send("components", 3, values.as_ref().map(|v| &v[..]))?;
    let [e, v, product] = [0, 1, 2].map(|i| Expr::from(vars[i]));
    let here = Weight::evaluation(&at);
    let factors = eq[..dimension].to_vec();
    session.claim(here.clone(), vec![(sums, Fr::ONE)], e.clone());
    session.claim_table(TableClaim {
        table: statement.table,
        functional: rows.map(|rows| functional(rows, &factors, 1 << layout.variables)),
        factors,
        column: histogram,
        value: e,
    });
    session.claim(here.clone(), vec![(vector, Fr::ONE)], v.clone());
    session.constrain_product("steps", root.clone(), v, product.clone());
    let factor = Fr::from(2 * statement.norm_factor);
    let twice = product * Fr::from(2u8);
    let mut distance = |limbs: &[ColumnId], slack: ColumnId, factor: Fr, value: Expr| {
        let mut columns = columns_joined(limbs);
        columns.extend([(slack, -Fr::ONE), (sums, factor)]);
        session.claim(here.clone(), columns, value);
    };
    distance(&lower, lower_slack, -factor, root.clone() - twice.clone());
    distance(&upper, upper_slack, factor, root + twice);

    // Packed components: one random combination of the elements.
    let among = session.challenges("packed vector", log2_ceil(elements));
    let eq = eq_table(&among);
    let coefficients = (0..dimension)
        .map(|j| eq[j / NIBBLES_PER_ELEMENT] * places[j % NIBBLES_PER_ELEMENT])
        .collect();
    let combination = Weight {
        point: Vec::new(),
        coefficients,
        items: 1,
    };
    let value = Expr::combination(packed.iter().zip(eq));
    session.claim(combination, vec![(vector, Fr::ONE)], value);

    // The sum of squares.
    let table = secret.map(|(_, (_, claimed))| {
        let squared = pad(&claimed.squared, components);
        vec![squared.iter().map(|e| from_small(*e)).collect::<Vec<Fr>>()]
    });
    let (tau, claim) = plain(components, total);
    let reduced = sumcheck(&mut session, "squares", &tau, claim, 2, table, Square)?;
    let e = Expr::from(session.send("squares", 1, reduced.finals.as_deref())?[0]);
    session.claim(
        Weight::evaluation(&reduced.point),
        vec![(sums, Fr::ONE)],
        e.clone(),
    );
    session.constrain_product("squares", e.clone(), e, reduced.claim);

    permutations(&mut session, None, calls)?;
    session.close(None)
}

#[cfg(test)]
pub(crate) mod tests;
