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
use crate::index::{check_dimension, IndexCommitment, COMPONENT};
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{eq_table, Weight};
use crate::noise::{count, pad};
use crate::numbers::{from_small, log2_ceil, power_of_two};
use crate::poseidon::{permutations, start_of_list, Call};
use crate::query::{nibble_rows, NIBBLE_VARIABLES, TAG_VECTOR};
use crate::session::{ColumnId, Role, Session, TableClaim};
use crate::sumcheck::{plain, sumcheck, Square};
use crate::transcript::Transcript;

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
        // reach < 2^11, the square's sum < 2^33 with 4,096 components, w < 2^25, scaled < 2^32.
        let reach = self.tokens as u64 * COMPONENT as u64;
        let root = ((self.table.dimension as u64 * reach * reach) << ROOT_SHIFT).isqrt();
        let scaled = 2 * self.norm_factor * reach;
        let bits = 64 - (2 * root + scaled).leading_zeros() as usize;
        Ok(Bounds {
            scaled: scaled as i64,
            limbs: bits.div_ceil(LIMB_BITS),
        })
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

/// What the prover says of its columns and values, which the claims bind to them.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Said {
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

impl Said {
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
        let mut made = Self {
            tokens,
            used,
            histogram,
            vector: sums.iter().map(component).collect(),
            sums,
            root,
            rest: square - root * root,
            distances: [Vec::new(), Vec::new()],
        };
        made.measure(factor, bounds.scaled);
        Ok(made)
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

    /// In the order that the protocol commits them, multiplicities last.
    fn columns(&self, said: &Said, statement: &EmbedStatement, bounds: &Bounds) -> Vec<Vec<i64>> {
        let components = log2_ceil(statement.table.dimension);
        let vector = pad(&self.vector, components);
        let (lower, upper) = vector
            .iter()
            .map(|v| slack(*v, bounds.scaled).into())
            .unzip();
        let mut out = vec![
            pad(&self.histogram, statement.table.layout.variables),
            pad(&self.sums, components),
            vector,
            lower,
            upper,
        ];
        // Places after the last component: e = v = 0, so both distances are w - 1.
        for distance in &self.distances {
            let mut distance = distance.clone();
            distance.resize(1 << components, self.root - 1);
            out.extend(
                (0..bounds.limbs)
                    .map(|k| distance.iter().map(|d| limb(*d, k, bounds.limbs)).collect()),
            );
        }
        let mut limbs = vec![0; 1 << LIMB_BITS];
        let mut steps = vec![0; 1 << NIBBLE_VARIABLES];
        out[5..]
            .iter()
            .flatten()
            .for_each(|v| count(&mut limbs, *v));
        self.root_limbs(said, bounds)
            .iter()
            .for_each(|v| count(&mut limbs, *v));
        let most = i64::from(COMPONENT);
        out[2].iter().for_each(|v| count(&mut steps, v + most));
        out.extend([limbs, steps]);
        out
    }

    /// w - 1, what is left under the root, and what that lacks of 2 w.
    fn root_limbs(&self, said: &Said, bounds: &Bounds) -> Vec<i64> {
        [self.root - 1, self.rest, said.lacking]
            .into_iter()
            .flat_map(|v| (0..bounds.limbs).map(move |k| limb(v, k, bounds.limbs)))
            .collect()
    }

    /// In the order that the protocol sends them.
    fn hidden(&self, query: &Query, said: &Said, bounds: &Bounds) -> Vec<Fr> {
        let mut out = vec![query.query_salt, query.vector_salt];
        let root = self.root_limbs(said, bounds);
        out.extend(
            [&self.tokens, &self.used, &root]
                .into_iter()
                .flatten()
                .map(|v| from_small(*v)),
        );
        out.push(from_small(said.root_squared));
        let packed = |run: &[i64]| {
            let place = |(i, v): (usize, &i64)| from_small(*v) * power_of_two(4 * i);
            run.iter().enumerate().map(place).sum::<Fr>()
        };
        out.extend(said.packed.chunks(NIBBLES_PER_ELEMENT).map(packed));
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
        (&witness, &Said::of(&witness)),
        true,
    )
}

fn prove_with(
    statement: &EmbedStatement,
    rows: &[i8],
    query: &Query,
    secret: (&Witness, &Said),
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
    secret: Option<(&Query, (&Witness, &Said))>,
) -> Result<Closed> {
    let bounds = statement.check()?;
    let (layout, dimension) = (statement.table.layout, statement.table.dimension);
    let components = log2_ceil(dimension);
    let (most, vocabulary) = (statement.tokens, statement.vocabulary());

    let (all, looked_up) = (1 << components, (2 << components) + 3);
    let mut bounded = vec![
        (1 << layout.variables, Bound::up_to(most)),
        (all, Bound::within(most * COMPONENT as usize)),
        (all, Bound::within(COMPONENT as usize)),
    ];
    bounded.extend([(all, Bound::within(bounds.scaled as usize + 1)); 2]);
    bounded.extend(vec![(all, Bound::Unsigned(LIMB_BITS)); 2 * bounds.limbs]);
    bounded.extend([
        (1 << LIMB_BITS, Bound::up_to(looked_up * bounds.limbs)),
        (1 << NIBBLE_VARIABLES, Bound::up_to(all)),
    ]);
    let columns = secret.map(|(_, (w, said))| w.columns(said, statement, &bounds));
    let ids = session.commit_bounded("embedding columns", &bounded, columns)?;
    let [histogram, sums, vector, lower_slack, upper_slack] = [0, 1, 2, 3, 4].map(|i| ids[i]);
    let (limb_columns, multiplicities) = ids[5..].split_at(2 * bounds.limbs);
    let (lower, upper) = limb_columns.split_at(bounds.limbs);

    let elements = dimension.div_ceil(NIBBLES_PER_ELEMENT);
    let hidden = secret.map(|(query, (w, said))| w.hidden(query, said, &bounds));
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
            count: Count::Table(multiplicities[1]),
        },
        Segment {
            variables: LIMB_BITS,
            tag: TAG_LIMB,
            entries: vec![Entry::Row],
            count: Count::Table(multiplicities[0]),
        },
        Segment {
            variables: log2_ceil(root_limbs.len()),
            tag: TAG_LIMB,
            entries: vec![Entry::Hidden(root_limbs.to_vec())],
            count: Count::First(root_limbs.len()),
        },
    ];
    segments.extend(limb_columns.iter().map(|id| Segment {
        variables: components,
        tag: TAG_LIMB,
        entries: vec![one(*id)],
        count: Count::Once,
    }));
    lookups(&mut session, segments)?;

    // Everything that is linear in the columns over components, at one random point.
    let at = session.challenges("components", components);
    let eq = eq_table(&at);
    let values = secret.map(|(_, (_, said))| {
        let dot = |(v, e): (&i64, &Fr)| from_small(*v) * e;
        [0, 1, 2].map(|k| said.at_point[k].iter().zip(&eq).map(dot).sum::<Fr>())
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
    distance(lower, lower_slack, -factor, root.clone() - twice.clone());
    distance(upper, upper_slack, factor, root + twice);

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
    let table = secret.map(|(_, (_, said))| {
        let squared = pad(&said.squared, components);
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
pub(crate) mod tests {
    use super::*;
    use crate::cheat::{
        caught_by, every_point_is_opened, no_claim_is_skipped, nothing_is_forgotten, run, Without,
    };
    use crate::group::vector_generators;
    use crate::index::{commit_table, Layout, MAX_DIMENSION};
    use crate::mutations::refused;
    use ragaudit_core::commitment::pack_nibbles;
    use ragaudit_core::poseidon::hash_list;

    const VOCABULARY: usize = 45;
    const DIMENSION: usize = 70;
    const MOST: usize = 20;
    const NORM_FACTOR: u64 = 8145;

    fn random(seed: u64, count: usize, below: u64) -> Vec<i64> {
        let mut x = seed;
        let mut next = || {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((x >> 33) % below) as i64
        };
        (0..count).map(|_| next()).collect()
    }

    fn tokens_hash(salt: Fr, tokens: &[u32]) -> Fr {
        let mut list = vec![salt, Fr::from(tokens.len() as u64)];
        list.extend(tokens.chunks(TOKENS_PER_ELEMENT).map(|run| {
            let place = |(i, t): (usize, &u32)| Fr::from(*t) * power_of_two(TOKEN_BITS * i);
            run.iter().enumerate().map(place).sum::<Fr>()
        }));
        hash_list(TAG_QUERY, &list)
    }

    /// Of components that are not int4 too: the packing that the proof would have to match.
    fn vector_hash(salt: Fr, vector: &[i64]) -> Fr {
        let offset = pack_nibbles(&[0])[0];
        let mut list = vec![salt];
        list.extend(vector.chunks(NIBBLES_PER_ELEMENT).map(|run| {
            let place = |(i, v): (usize, &i64)| from_small(*v) * power_of_two(4 * i);
            offset + run.iter().enumerate().map(place).sum::<Fr>()
        }));
        hash_list(TAG_VECTOR, &list)
    }

    struct Case {
        rows: Vec<i8>,
        table: Arc<IndexCommitment>,
        query: Query,
        most: usize,
        hq: Fr,
        cq: Fr,
    }

    fn case(vocabulary: usize, dimension: usize, most: usize, tokens: &[u32]) -> Case {
        let rows: Vec<i8> = random(9, vocabulary * dimension, 15)
            .iter()
            .map(|v| *v as i8 - 7)
            .collect();
        let query = Query {
            tokens: tokens.to_vec(),
            query_salt: Fr::from(100u8),
            vector_salt: Fr::from(200u8),
        };
        let mut case = Case {
            table: Arc::new(commit_table(&rows, dimension).unwrap()),
            rows,
            hq: tokens_hash(query.query_salt, tokens),
            cq: Fr::ZERO,
            query,
            most,
        };
        case.cq = vector_hash(case.query.vector_salt, &case.witness().vector);
        case
    }

    fn small() -> Case {
        case(
            VOCABULARY,
            DIMENSION,
            MOST,
            &[
                3, 44, 3, 0, 17, 8, 9, 10, 11, 12, 13, 14, 15, 16, 5, 4, 2, 1,
            ],
        )
    }

    impl Case {
        fn statement(&self) -> EmbedStatement<'_> {
            EmbedStatement {
                context: Fr::from(77u8),
                table: &self.table,
                tokens: self.most,
                norm_factor: NORM_FACTOR,
                hq: self.hq,
                cq: self.cq,
            }
        }

        fn prove(&self) -> Result<Vec<u8>> {
            prove_embed(&self.statement(), &self.rows, &self.query)
        }

        fn witness(&self) -> Witness {
            Witness::new(&self.statement(), &self.rows, &self.query).unwrap()
        }

        /// Whether a prover that refuses nothing gets through with this witness.
        fn forged(&self, witness: &Witness) -> bool {
            self.says(witness, |_| ())
        }

        /// The same, where it says something else of its columns.
        fn says(&self, witness: &Witness, lie: impl Fn(&mut Said)) -> bool {
            let statement = self.statement();
            let mut said = Said::of(witness);
            lie(&mut said);
            let proof =
                prove_with(&statement, &self.rows, &self.query, (witness, &said), false).unwrap();
            verify_embed(&statement, &proof).is_ok()
        }

        fn measure(&self, witness: &mut Witness) {
            let scaled = self.statement().check().unwrap().scaled;
            witness.measure(2 * NORM_FACTOR as i64, scaled);
        }

        /// The witness with other sums of rows, and everything that follows from them.
        fn with_sums(&mut self, sums: Vec<i64>) -> Witness {
            let mut witness = self.witness();
            let square = sums.iter().map(|e| e * e).sum::<i64>() << ROOT_SHIFT;
            let root = square.isqrt();
            let factor = 2 * NORM_FACTOR as i64;
            witness.vector = sums
                .iter()
                .map(|e| e.signum() * ((factor * e.abs() + root) / (2 * root)).min(7))
                .collect();
            (witness.sums, witness.root, witness.rest) = (sums, root, square - root * root);
            self.measure(&mut witness);
            self.cq = vector_hash(self.query.vector_salt, &witness.vector);
            witness
        }

        /// The witness with another root, where the vector is the one that it makes.
        fn with_root(&mut self, root: i64) -> Witness {
            let mut witness = self.witness();
            let factor = 2 * NORM_FACTOR as i64;
            witness.vector = (witness.sums.iter())
                .map(|e| e.signum() * ((factor * e.abs() + root) / (2 * root)).min(7))
                .collect();
            witness.root = root;
            self.measure(&mut witness);
            self.cq = vector_hash(self.query.vector_salt, &witness.vector);
            witness
        }

        /// With another vector for the same sums: with negative distances as they are, and with zeros for them.
        fn forged_vector(&mut self, vector: Vec<i64>) -> bool {
            let mut witness = self.witness();
            witness.vector = vector;
            self.measure(&mut witness);
            self.cq = vector_hash(self.query.vector_salt, &witness.vector);
            let as_they_are = self.forged(&witness);
            let distances = witness.distances.iter_mut().flatten();
            distances.for_each(|d| *d = (*d).max(0));
            as_they_are || self.forged(&witness)
        }
    }

    #[test]
    fn embeddings_verify() {
        let full: Vec<u32> = (0..MOST as u32).collect();
        for case in [
            small(),
            case(VOCABULARY, DIMENSION, MOST, &[44]),
            case(VOCABULARY, DIMENSION, MOST, &full),
            case(VOCABULARY, DIMENSION, MOST, &full[..16]),
            case(VOCABULARY, DIMENSION, MOST, &full[..17]),
            case(4, 1, 1, &[2]),
            case(3, 63, 33, &[2, 2, 2]),
        ] {
            verify_embed(&case.statement(), &case.prove().unwrap()).unwrap();
            assert!(case.forged(&case.witness()));
        }
    }

    #[test]
    fn a_proof_is_for_its_statement_only() {
        let case = small();
        let proof = case.prove().unwrap();
        let statement = case.statement();
        verify_embed(&statement, &proof).unwrap();
        // A new field has to be changed below.
        let EmbedStatement {
            context: _,
            table: _,
            tokens: _,
            norm_factor: _,
            hq: _,
            cq: _,
        } = &statement;
        let refused = |other: &EmbedStatement| {
            let [said, before] = [other, &statement].map(|s| s.transcript().digest());
            verify_embed(other, &proof).is_err() && said != before
        };
        let rejects = |change: &dyn Fn(&mut EmbedStatement)| {
            let mut other = statement.clone();
            change(&mut other);
            refused(&other)
        };
        assert!(rejects(&|s| s.context += Fr::ONE));
        assert!(rejects(&|s| s.hq += Fr::ONE));
        assert!(rejects(&|s| s.cq += Fr::ONE));
        assert!(rejects(&|s| s.tokens += 1));
        assert!(rejects(&|s| s.norm_factor += 1));
        let mut swapped = (*case.table).clone();
        swapped.points.swap(0, 1);
        let mut rows = case.rows.clone();
        rows[30 * DIMENSION] ^= 1;
        let unused = commit_table(&rows, DIMENSION).unwrap();
        for table in [&swapped, &unused] {
            let other = EmbedStatement {
                table,
                ..statement.clone()
            };
            assert!(refused(&other), "another table");
        }
    }

    #[test]
    fn a_transcript_forgets_nothing() {
        let case = case(9, 3, 2, &[1, 8]);
        let base = case.statement();
        let prove = || case.prove().unwrap();
        nothing_is_forgotten(prove, |proof| verify_embed(&base, proof));
        // Forgotten by both sides, a field that is in no equation lets one proof stand for two records.
        let mut other = base.clone();
        other.context += Fr::ONE;
        let forgets = Without::Message("context".to_owned());
        let (proof, _) = run(forgets.clone(), prove);
        assert_eq!(run(forgets, || verify_embed(&other, &proof)).0, Ok(()));
        assert!(verify_embed(&other, &prove()).is_err());
    }

    #[test]
    fn claims_and_openings_are_all_needed() {
        let case = case(9, 3, 2, &[1, 8]);
        let (statement, witness) = (case.statement(), case.witness());
        let said = Said::of(&witness);
        let prove = || {
            let secret = (&witness, &said);
            prove_with(&statement, &case.rows, &case.query, secret, false).unwrap()
        };
        no_claim_is_skipped(prove, |proof| verify_embed(&statement, proof), false);
        every_point_is_opened(prove, |proof| verify_embed(&statement, proof));
    }

    pub(crate) fn mutations(count: usize) {
        let case = case(9, 3, 2, &[1, 8]);
        let statement = case.statement();
        refused("A1", &case.prove().unwrap(), count, |proof| {
            verify_embed(&statement, proof).is_ok()
        });
    }

    /// A prover that has another table than the committed one.
    #[test]
    fn the_table_is_the_committed_one() {
        let mut case = small();
        case.rows[3 * DIMENSION] = if case.rows[3 * DIMENSION] == 7 { -7 } else { 7 };
        let witness = case.witness();
        case.cq = vector_hash(case.query.vector_salt, &witness.vector);
        assert!(!case.forged(&witness));
        case.table = Arc::new(commit_table(&case.rows, DIMENSION).unwrap());
        assert!(case.forged(&witness));
    }

    #[test]
    fn sums_are_of_the_tokens_rows() {
        let mut case = small();
        let honest = case.witness();
        let rows = case.rows.clone();
        let row = |t: usize| rows[t * DIMENSION..][..DIMENSION].to_vec();
        let moved: Vec<i64> = (honest.sums.iter().zip(row(3)).zip(row(20)))
            .map(|((e, from), to)| e - i64::from(from) + i64::from(to))
            .collect();
        let witness = case.with_sums(moved.clone());
        caught_by("table claim: components", || case.forged(&witness));
        let mut counted = witness.clone();
        counted.histogram[3] -= 1;
        counted.histogram[20] += 1;
        caught_by("constraint: lookup layer", || case.forged(&counted));
        let again: Vec<i64> = honest
            .sums
            .iter()
            .zip(row(3))
            .map(|(e, v)| e + i64::from(v))
            .collect();
        let mut more = case.with_sums(again);
        more.histogram[3] += 1;
        caught_by("constraint: lookup layer", || case.forged(&more));
        let witness = case.with_sums(honest.sums.clone());
        assert!(case.forged(&witness));
    }

    #[test]
    fn tokens_are_those_of_the_commitment() {
        let right = small();
        let mut tokens = right.query.tokens.clone();
        tokens.swap(0, 1);
        let mut swapped = small();
        swapped.hq = tokens_hash(swapped.query.query_salt, &tokens);
        assert!(
            !swapped.forged(&swapped.witness()),
            "the same tokens in another order"
        );
        let mut salt = small();
        salt.query.query_salt += Fr::ONE;
        assert!(!salt.forged(&salt.witness()), "another salt");
        let mut vector = small();
        vector.query.vector_salt += Fr::ONE;
        assert!(!vector.forged(&vector.witness()), "another salt of cq");
        let mut other = small();
        other.cq = vector_hash(other.query.vector_salt, &vec![1; DIMENSION]);
        assert!(!other.forged(&other.witness()), "cq of another vector");
    }

    /// The last of these tokens adds nothing to the sum, since the row after the vocabulary is zero.
    #[test]
    fn tokens_are_of_the_vocabulary() {
        let mut case = small();
        let mut witness = case.witness();
        let mut tokens = case.query.tokens.clone();
        tokens.push(VOCABULARY as u32);
        let place = tokens.len() - 1;
        (witness.tokens[place], witness.used[place]) = (VOCABULARY as i64, 1);
        case.hq = tokens_hash(case.query.query_salt, &tokens);
        assert!(!case.forged(&witness));
        case.query.tokens = tokens;
        assert!(matches!(case.prove(), Err(Error::Invalid { .. })));
    }

    #[test]
    fn there_are_no_more_tokens_than_places() {
        let full: Vec<u32> = (0..=MOST as u32).collect();
        let mut case = case(VOCABULARY, DIMENSION, MOST, &full[..MOST]);
        let mut witness = case.witness();
        // The token too many, packed into the place before it.
        case.hq = tokens_hash(case.query.query_salt, &full);
        witness.tokens[MOST - 1] += (MOST as i64) << TOKEN_BITS;
        witness.used[MOST - 1] = 2;
        assert!(!case.forged(&witness));
        case.query.tokens = full;
        assert!(matches!(case.prove(), Err(Error::Invalid { .. })));
        case.query.tokens.clear();
        assert!(matches!(case.prove(), Err(Error::Invalid { .. })));
    }

    /// hq of a list with a gap, whose packing is that of a longer list.
    #[test]
    fn used_places_come_first() {
        let mut case = case(VOCABULARY, DIMENSION, MOST, &[5, 6]);
        let mut witness = case.witness();
        witness.tokens.swap(1, 2);
        witness.used.swap(1, 2);
        let mut list = vec![case.query.query_salt, Fr::from(2u8)];
        list.push(Fr::from(5u8) + Fr::from(6u8) * power_of_two(2 * TOKEN_BITS));
        case.hq = hash_list(TAG_QUERY, &list);
        caught_by("product: used places", || case.forged(&witness));
        // All places unused, and a hash of no token.
        let mut none = case.with_sums(vec![0; DIMENSION - 1].into_iter().chain([1]).collect());
        none.tokens[0] = 0;
        none.used = vec![0; MOST];
        assert!(!case.forged(&none));
    }

    /// A token that the number of tokens leaves out, or one that it counts three times.
    #[test]
    fn every_token_has_its_mark() {
        for mark in [0, 3] {
            let mut case = case(VOCABULARY, DIMENSION, MOST, &[5, 6]);
            let mut witness = case.witness();
            witness.used[1] = mark;
            let packed = Fr::from(5u8) + Fr::from(6u8) * power_of_two(TOKEN_BITS);
            let number = from_small(1 + mark);
            case.hq = hash_list(TAG_QUERY, &[case.query.query_salt, number, packed]);
            assert!(!case.forged(&witness), "{mark}");
        }
    }

    /// Each component one step up and one down, with the distances that belong to it: one of them is negative.
    #[test]
    fn components_are_the_rounded_ones() {
        let mut case = case(VOCABULARY, 20, 5, &[7, 30, 30]);
        let right = case.witness().vector.clone();
        assert!(case.forged_vector(right.clone()));
        for (j, v) in right.iter().enumerate() {
            for other in [v - 1, v + 1] {
                if other.abs() <= 7 {
                    let mut vector = right.clone();
                    vector[j] = other;
                    assert!(!case.forged_vector(vector), "{v} to {other}");
                }
            }
        }
        // Distances of the true vector beside another one.
        let mut witness = case.witness();
        witness.vector[0] -= witness.vector[0].signum();
        case.cq = vector_hash(case.query.vector_salt, &witness.vector);
        assert!(!case.forged(&witness));
    }

    /// The norm of a single component makes it more than 7 steps: 8 would be right if vectors were not int4.
    #[test]
    fn components_are_int4() {
        let mut case = case(VOCABULARY, 20, 5, &[7, 30, 30]);
        let right = case.witness();
        let unclamped =
            |e: &i64| (2 * NORM_FACTOR as i64 * e.abs() + right.root) / (2 * right.root);
        let (j, steps) = (right.sums.iter().map(unclamped).enumerate())
            .find(|(_, steps)| *steps > 7)
            .unwrap();
        let mut vector = right.vector.clone();
        vector[j] = steps * right.sums[j].signum();
        assert!(!case.forged_vector(vector));
        // 16 from one component and 1 to the next: packed alike.
        let mut packed = right.vector.clone();
        (packed[0], packed[1]) = (packed[0] - 16, packed[1] + 1);
        assert!(!case.forged_vector(packed));
    }

    #[test]
    fn the_root_is_the_largest_one() {
        let mut case = small();
        let right = case.witness();
        let square = right.root * right.root + right.rest;
        for root in [right.root - 1, right.root + 1, right.root / 2] {
            let mut witness = case.with_root(root);
            witness.rest = square - root * root;
            assert!(!case.forged(&witness), "{root}");
            assert!(!case.says(&witness, |s| s.lacking = 0), "too much left");
            if root == right.root - 1 {
                let lie = |s: &mut Said| s.lacking = 0;
                caught_by("constraint: root", || case.says(&witness, lie));
            }
            witness.rest = 0;
            let lie = |s: &mut Said| s.root_squared = square;
            caught_by("product: root", || case.says(&witness, lie));
        }
        // Rows that sum to zero have no vector, and no root.
        case.rows[DIMENSION..2 * DIMENSION].fill(0);
        case.table = Arc::new(commit_table(&case.rows, DIMENSION).unwrap());
        case.query.tokens = vec![1];
        case.hq = tokens_hash(case.query.query_salt, &[1]);
        assert!(matches!(case.prove(), Err(Error::Unsatisfied(_))));
        let mut witness = small().witness();
        witness.tokens = vec![0; MOST];
        witness.used = vec![0; MOST];
        (witness.tokens[0], witness.used[0]) = (1, 1);
        witness.histogram = vec![0; VOCABULARY + 1];
        (witness.histogram[1], witness.histogram[VOCABULARY]) = (1, MOST as i64 - 1);
        witness.sums = vec![0; DIMENSION];
        witness.vector = vec![7; DIMENSION];
        (witness.root, witness.rest) = (0, 0);
        case.measure(&mut witness);
        case.cq = vector_hash(case.query.vector_salt, &witness.vector);
        assert!(!case.forged(&witness), "a root of zero");
    }

    /// Every value that is sent beside a column and belongs to another one.
    #[test]
    fn values_are_those_of_the_columns() {
        let mut case = small();
        let right = case.witness();
        let mut sums = right.sums.clone();
        sums.reverse();
        let witness = case.with_sums(sums);
        assert!(
            !case.says(&witness, |s| s.at_point[0] = right.sums.clone()),
            "sums"
        );

        // Another component with the same slack, so that only its own value is false.
        let mut witness = right.clone();
        let j = right
            .vector
            .iter()
            .position(|v| (1..6).contains(v))
            .unwrap();
        witness.vector[j] += 1;
        assert!(
            !case.says(&witness, |s| s.packed = right.vector.clone()),
            "vector"
        );
        case.cq = vector_hash(case.query.vector_salt, &witness.vector);
        let lie = |s: &mut Said| s.at_point[1..].clone_from_slice(&Said::of(&right).at_point[1..]);
        assert!(!case.says(&witness, lie), "vector at the point");
        assert!(
            !case.says(&right, |s| s.packed = witness.vector.clone()),
            "packed vector"
        );

        // The root of twice as large sums.
        let mut case = small();
        let sums: Vec<i64> = right.sums.iter().map(|e| 2 * e).collect();
        let square = sums.iter().map(|e| e * e).sum::<i64>() << ROOT_SHIFT;
        let mut witness = case.with_root(square.isqrt());
        witness.rest = square - witness.root * witness.root;
        assert!(!case.forged(&witness), "a sum of squares");
        let lie = |s: &mut Said| s.squared = sums.clone();
        caught_by("column claim: squares", || case.says(&witness, lie));
    }

    /// In one dimension every vector is 7 or -7; with a product of another root it could be 6.
    #[test]
    fn the_product_is_that_of_the_root() {
        let mut case = case(VOCABULARY, 1, MOST, &[1, 2, 4]);
        let mut witness = case.witness();
        let sign = witness.sums[0].signum();
        let reach = 2 * NORM_FACTOR as i64 * witness.sums[0].abs();
        let product = reach / 2;
        witness.vector = vec![6 * sign];
        // With 2 |e| A = 2 w |v|, both are w, less 1 where the bound is strict.
        let scaled = case.statement().check().unwrap().scaled;
        let [lower, upper] = slack(6 * sign, scaled);
        let off = reach - 2 * product;
        witness.distances = [
            vec![sign * off + witness.root + lower],
            vec![witness.root - sign * off + upper],
        ];
        case.cq = vector_hash(case.query.vector_salt, &witness.vector);
        let lie = |s: &mut Said| s.at_point[2] = vec![sign * product];
        caught_by("product: steps", || case.says(&witness, lie));
    }

    /// Known before the columns are committed, the point of the components lets all but one of them be anything.
    #[test]
    fn the_point_follows_the_columns() {
        let mut case = small();
        let mut sums = case.witness().sums.clone();
        sums[1..].reverse();
        let witness = case.with_sums(sums);
        assert!(!case.forged(&witness));
        let (statement, said) = (case.statement(), Said::of(&witness));
        let run = |mut session: Session, secret| {
            session.transcript.predicted = vec![("components", Fr::ZERO)];
            if let Role::Prover(prover) = &mut session.role {
                prover.honest = false;
            }
            let rows = session.proving().then_some(&case.rows[..]);
            embed_protocol(session, &statement, rows, secret).unwrap()
        };
        let row_variables = case.table.layout.row_variables;
        let prover = Session::prover(statement.transcript(), row_variables, b"").unwrap();
        let Closed::Proof(proof) = run(prover, Some((&case.query, (&witness, &said)))) else {
            panic!("a prover")
        };
        let verifier = Session::verifier(statement.transcript(), row_variables, &proof);
        let Closed::Check(equation) = run(verifier, None) else {
            panic!("a verifier")
        };
        assert!(equation.holds(&case.table.points));
    }

    #[test]
    fn proofs_have_one_length() {
        let short = case(VOCABULARY, DIMENSION, MOST, &[1]).prove().unwrap();
        let long = small();
        assert_eq!(short.len(), long.prove().unwrap().len());
        assert_ne!(
            long.prove().unwrap(),
            long.prove().unwrap(),
            "nonces are fresh"
        );
    }

    #[test]
    fn mutated_proofs_are_refused() {
        let case = case(9, 3, 2, &[1, 8]);
        let statement = case.statement();
        let proof = case.prove().unwrap();
        for at in (0..proof.len()).step_by(397) {
            let mut bad = proof.clone();
            bad[at] ^= 1 << (at % 8);
            assert!(verify_embed(&statement, &bad).is_err(), "byte {at}");
        }
        for length in [0, 1, 31, proof.len() / 2, proof.len() - 32, proof.len() - 1] {
            assert!(verify_embed(&statement, &proof[..length]).is_err());
        }
        assert!(verify_embed(&statement, &[&proof[..], &[0; 32]].concat()).is_err());
    }

    fn numbers(refused: Refusals) -> Vec<usize> {
        refused.into_iter().map(|(i, _)| i).collect()
    }

    #[test]
    fn batches_name_the_bad_ones() {
        let cases: Vec<Case> = [[1u32, 2], [3, 4], [5, 6]]
            .iter()
            .map(|t| case(9, 3, 2, t))
            .collect();
        let proofs: Vec<Vec<u8>> = cases.iter().map(|c| c.prove().unwrap()).collect();
        let table = &cases[0].table;
        let of = |i: usize| EmbedStatement {
            table,
            ..cases[i].statement()
        };
        let verdict = |places: [usize; 3]| {
            let items: Vec<_> = (0..3).map(|i| (of(i), &proofs[places[i]][..])).collect();
            numbers(verify_embed_batch(table, &items))
        };
        assert!(verdict([0, 1, 2]).is_empty());
        assert!(verify_embed_batch(table, &[]).is_empty());
        assert_eq!(verdict([0, 2, 1]), [1, 2]);
        let items = [
            (of(0), &proofs[0][..]),
            (of(1), &proofs[1][1..]),
            (cases[2].statement(), &proofs[2][..]),
        ];
        assert_eq!(
            numbers(verify_embed_batch(table, &items)),
            [1, 2],
            "cut short; another table"
        );
        // Neither hides the other.
        let items = [
            (of(0), &proofs[0][1..]),
            (of(1), &proofs[0][..]),
            (of(2), &proofs[2][..]),
        ];
        let outcomes = verify_embed_batch(table, &items);
        assert!(matches!(
            outcomes[..],
            [(0, Error::Malformed { .. }), (1, Error::Rejected)]
        ));
        let chunk = vec![(of(0), &proofs[0][..]); batch::CHUNK];
        let mut batch = Batch::new(Arc::clone(table));
        let mut kept = Vec::new();
        for _ in 0..3 {
            assert_eq!(batch.add(&chunk), []);
            kept.push(batch.kept());
        }
        assert!(batch.holds());
        assert_eq!(kept, [kept[0]; 3]);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let case = small();
        let refused = |change: &dyn Fn(&mut EmbedStatement)| {
            let mut statement = case.statement();
            change(&mut statement);
            matches!(verify_embed(&statement, &[]), Err(Error::Invalid { .. }))
        };
        assert!(!refused(&|_| ()));
        assert!(refused(&|s| s.tokens = 0));
        assert!(refused(&|s| s.tokens = MAX_TOKENS + 1));
        assert!(refused(&|s| s.norm_factor = 0));
        assert!(refused(&|s| s.norm_factor = MAX_NORM_FACTOR + 1));
        let mut short = small();
        short.rows.pop();
        assert!(matches!(short.prove(), Err(Error::Invalid { .. })));
        let mut wide = small();
        wide.rows[0] = 8;
        assert!(matches!(wide.prove(), Err(Error::Invalid { .. })));
    }

    /// The most that a proof of A1 may be about.
    pub(crate) fn largest() {
        simulate(MAX_TOKENS, MAX_VOCABULARY, MAX_DIMENSION, MAX_NORM_FACTOR);
    }

    /// Of a table that nobody has. What is sent of it is no functional then, and has the length of one.
    pub(crate) fn simulate(tokens: usize, vocabulary: usize, dimension: usize, norm_factor: u64) {
        let layout = Layout::new(vocabulary + 1).unwrap();
        let table = IndexCommitment {
            layout,
            dimension,
            points: vec![vector_generators(1)[0]; dimension * layout.rows()],
        };
        let public = EmbedStatement {
            context: Fr::ONE,
            table: &table,
            tokens,
            norm_factor,
            hq: Fr::ONE,
            cq: Fr::ONE,
        };
        let session = Session::simulator(public.transcript(), layout.row_variables);
        embed_protocol(session.unwrap(), &public, None, None).unwrap();
    }

    /// The table's rows, what a proof of them says, and the proof.
    pub(crate) struct Golden {
        pub(crate) rows: Vec<i8>,
        pub(crate) table: Arc<IndexCommitment>,
        pub(crate) tokens: usize,
        pub(crate) hq: Fr,
        pub(crate) cq: Fr,
        pub(crate) query: Query,
    }

    impl Golden {
        pub(crate) fn statement(&self) -> EmbedStatement<'_> {
            EmbedStatement {
                context: Fr::from(77u8),
                table: &self.table,
                tokens: self.tokens,
                norm_factor: NORM_FACTOR,
                hq: self.hq,
                cq: self.cq,
            }
        }
    }

    pub(crate) fn golden() -> Golden {
        let Case {
            rows,
            table,
            query,
            most,
            hq,
            cq,
        } = case(9, 3, 4, &[1, 8, 1]);
        Golden {
            rows,
            table,
            tokens: most,
            hq,
            cq,
            query,
        }
    }

    /// hq and cq that nobody can open.
    #[test]
    fn proofs_are_simulated_without_tokens() {
        let case = small();
        let real = case.prove().unwrap();
        let mut public = case.statement();
        (public.hq, public.cq) = (Fr::from(31_337u64), Fr::from(31_338u64));
        let row_variables = case.table.layout.row_variables;
        let session = Session::simulator(public.transcript(), row_variables).unwrap();
        let Closed::Simulated(proof, oracle) =
            embed_protocol(session, &public, Some(&case.rows), None).unwrap()
        else {
            panic!("a simulator")
        };
        assert_eq!(proof.len(), real.len());
        assert!(
            verify_embed(&public, &proof).is_err(),
            "under the hash function it is no proof"
        );
        let mut transcript = public.transcript();
        transcript.programmed = oracle.programmed;
        let session = Session::verifier(transcript, row_variables, &proof);
        let Closed::Check(equation) = embed_protocol(session, &public, None, None).unwrap() else {
            panic!("a verifier")
        };
        assert!(equation.holds(&case.table.points));
    }
}
