//! The proof of one answer: every score, the noise of a certificate, the selection. `docs/scan/query.md`.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::commitment::NIBBLES_PER_ELEMENT;
use ragaudit_core::lanes::Lanes;
use ragaudit_core::noise::{check_gains, BINS, MAX_GAINS, MAX_GAIN_RATIO};
use ragaudit_core::selection::{ScoreWindow, MAX_LATTICE};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::closing::Closed;
use crate::columns::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{encode_scalar, Fr, G1Affine};
use crate::index::{check_dimension, IndexCommitment, IndexKey, COMPONENT, MAX_CAPACITY};
use crate::link::{commit_query, Link, LinkSecret};
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{prefix, prefix_numbers, Weight};
use crate::nibbles::{nibble_rows, NIBBLE_VARIABLES, TAG_VECTOR};
use crate::numbers::{log2_ceil, power_of_two, NO_WRAP_BITS};
use crate::poseidon::{permutations, Call};
use crate::prover::fractions::RUN;
use crate::ranges::{count, first_in_range, limbs, range_table, LIMB_BITS, TAG_RANGE};
use crate::session::{Column, Opening, Role, Session};
use crate::sumcheck::{sumcheck, Gate};
use crate::transcript::Transcript;
use crate::values::{entries_of, pad};

const TAG_TOPK: u64 = 5;
const TAG_SCORE: u64 = 2;
const TAG_NIBBLE: u64 = 3;
const TAG_SELECT: u64 = 4;
/// |s| is at most 49 a component.
const SCORE: i64 = COMPONENT as i64 * COMPONENT as i64;
/// Largest number of listed positions.
pub const MAX_LISTED: usize = 1024;

/// What decides where values stand: see [`crate::protocol`].
pub(crate) const RULES: [u64; 6] = [
    TAG_VECTOR,
    TAG_TOPK,
    TAG_SCORE,
    TAG_NIBBLE,
    TAG_SELECT,
    NIBBLE_VARIABLES as u64,
];

/// What an answer's proof is about. Every value is rebuilt by the verifier, none read from a file.
#[derive(Clone)]
pub struct QueryStatement<'a> {
    /// Digest of protocol, opening, policy, tenant, account, its count, beacon, seed commitment, slot, hq and the
    /// certificate.
    pub context: [u8; 32],
    pub index: &'a IndexCommitment,
    /// The verified certificate's commitments to z.
    pub noise: &'a [G1Affine],
    pub gains: Vec<u32>,
    pub cq: Fr,
    pub htopk: Fr,
    pub listed: usize,
    pub lo: i64,
    pub hi: i64,
    pub lattice: i64,
}

/// The private side of an answer.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Answer {
    /// int4 components.
    pub query: Vec<i8>,
    pub query_salt: Fr,
    /// In the order of htopk.
    pub positions: Vec<i64>,
    pub list_salt: Fr,
    /// Of every position, by the index commitment's own rows.
    pub scores: Vec<i64>,
}

impl QueryStatement<'_> {
    fn check(&self) -> Result<ScoreWindow> {
        check_dimension(self.index.dimension)?;
        check_gains(&self.gains)?;
        let capacity = self.index.layout.capacity;
        let most = MAX_LISTED.min(capacity);
        if !(1..=most).contains(&self.listed) {
            return Err(Error::invalid(
                "listed positions",
                format!("1..={most}"),
                self.listed,
            ));
        }
        if self.noise.len() != self.index.layout.rows() {
            let expected = format!("{} commitments", self.index.layout.rows());
            return Err(Error::invalid("noise", expected, self.noise.len()));
        }
        Ok(ScoreWindow::new(self.lo, self.hi, self.lattice)?)
    }

    fn transcript(&self) -> Transcript {
        let mut t = Transcript::new("query");
        t.bytes("context", &self.context);
        t.bytes("index", &self.index.digest());
        t.integer("capacity", self.index.layout.capacity as u64);
        t.integer("dimension", self.index.dimension as u64);
        t.integer("gain count", self.gains.len() as u64);
        for gain in &self.gains {
            t.integer("gain", u64::from(*gain));
        }
        t.integer("lo", self.lo as u64);
        t.integer("hi", self.hi as u64);
        t.integer("lattice", self.lattice as u64);
        t.integer("listed", self.listed as u64);
        t.integer("noise rows", self.noise.len() as u64);
        for point in self.noise {
            t.point("noise", point);
        }
        t.scalar("cq", &self.cq);
        t.scalar("htopk", &self.htopk);
        t
    }

    /// Limbs of a difference of keys: |y| is at most lattice + 127 sum of gains.
    fn key_limbs(&self) -> usize {
        let gains = self.gains.iter().map(|g| u64::from(*g)).sum();
        key_bits(self.lattice as u64, gains, self.index.layout.variables).div_ceil(LIMB_BITS)
    }

    fn score_variables(&self) -> usize {
        log2_ceil(2 * SCORE as usize * self.index.dimension + 1)
    }
}

/// Bits of a difference of keys.
const fn key_bits(lattice: u64, gains: u64, variables: usize) -> usize {
    let reach = lattice + 2 * (BINS as u64 - 1) * gains + 1;
    64 - reach.leading_zeros() as usize + variables
}

const _: () = {
    let (mut gains, mut gain, mut k) = (0, 1, 0);
    while k < MAX_GAINS {
        gains += gain;
        gain *= MAX_GAIN_RATIO as u64;
        k += 1;
    }
    let bits = key_bits(MAX_LATTICE as u64, gains, MAX_CAPACITY.ilog2() as usize);
    assert!(MAX_LATTICE as u64 + (BINS as u64 - 1) * gains < 1 << 25);
    // A prover's keys fit into an i64, and limbs into the field.
    assert!(bits < 63);
    assert!(bits.div_ceil(LIMB_BITS) * LIMB_BITS + 1 < NO_WRAP_BITS);
    assert!(4 * NIBBLES_PER_ELEMENT <= NO_WRAP_BITS);
};

/// The prover's columns and values.
#[derive(Default, Clone)]
pub(crate) struct Witness {
    pub(crate) quantised: Vec<i64>,
    pub(crate) selected: Vec<i64>,
    pub(crate) distances: Vec<i64>,
    pub(crate) noised: Vec<i64>,
    pub(crate) order: Vec<i64>,
}

/// The columns, in the order in which they are committed to.
struct Columns<T> {
    /// Scores on the lattice.
    quantised: T,
    /// 1 for a listed position.
    selected: T,
    /// Limbs of what a key has above the least listed one, or lacks below it.
    distance: Vec<T>,
    /// How often each row of a table is looked up.
    score_rows: T,
    range: T,
    nibbles: T,
}

impl<T> Columns<T> {
    fn in_order(self) -> Vec<T> {
        let mut out = vec![self.quantised, self.selected];
        out.extend(self.distance);
        out.extend([self.score_rows, self.range, self.nibbles]);
        out
    }

    fn named(all: Vec<T>, key_limbs: usize) -> Self {
        let mut all = all.into_iter();
        let mut next = || all.next().expect("one for each name");
        Self {
            quantised: next(),
            selected: next(),
            distance: (0..key_limbs).map(|_| next()).collect(),
            score_rows: next(),
            range: next(),
            nibbles: next(),
        }
    }
}

fn key(noised: i64, position: i64, variables: usize) -> i64 {
    (noised << variables) + (1 << variables) - 1 - position
}

impl Witness {
    fn new(
        statement: &QueryStatement,
        window: ScoreWindow,
        answer: &Answer,
        noise: &[i64],
    ) -> Result<Self> {
        let capacity = statement.index.layout.capacity;
        let variables = statement.index.layout.variables;
        if answer.scores.len() != capacity || noise.len() < capacity {
            let found = format!(
                "{} scores, {} noise values",
                answer.scores.len(),
                noise.len()
            );
            return Err(Error::invalid(
                "answer",
                format!("{capacity} of each"),
                found,
            ));
        }
        if answer.query.len() != statement.index.dimension {
            let expected = format!("{} components", statement.index.dimension);
            return Err(Error::invalid("query", expected, answer.query.len()));
        }
        let inside = |p: &i64| usize::try_from(*p).is_ok_and(|p| p < capacity);
        if answer.positions.len() != statement.listed || !answer.positions.iter().all(inside) {
            return Err(Error::Unsatisfied(
                "the listed positions are not positions of the index".to_owned(),
            ));
        }
        let most = SCORE * statement.index.dimension as i64;
        if answer.scores.iter().any(|s| s.abs() > most) {
            return Err(Error::Unsatisfied(format!("a score beyond {most}")));
        }
        let quantised: Vec<i64> = answer
            .scores
            .iter()
            .map(|s| window.quantise(*s as i32))
            .collect();
        let keys: Vec<i64> = (0..capacity)
            .map(|p| key(quantised[p] + noise[p], p as i64, variables))
            .collect();
        let listed: Vec<i64> = answer.positions.iter().map(|p| keys[*p as usize]).collect();
        let least = listed[listed.len() - 1];
        let mut selected = vec![0; capacity];
        answer
            .positions
            .iter()
            .for_each(|p| selected[*p as usize] = 1);
        let distances = keys
            .iter()
            .zip(&selected)
            // With b = 0 least - 1 - k.
            .map(|(k, b)| (k - least) ^ (b - 1))
            .collect();
        Ok(Self {
            quantised,
            selected,
            distances,
            noised: answer
                .positions
                .iter()
                .map(|p| keys[*p as usize] >> variables)
                .collect(),
            order: listed
                .windows(2)
                .map(|pair| pair[0] - pair[1] - 1)
                .collect(),
        })
    }
}

fn limb(x: i64, k: usize) -> i64 {
    x >> (LIMB_BITS * k) & 0xffff
}

/// The private inputs of one run.
struct Secret<'a> {
    answer: &'a Answer,
    witness: &'a Witness,
    noise: &'a Arc<Opening>,
    key: &'a IndexKey,
}

/// Proves an answer; in `low_memory` the same in more time. `noise` is the column that the slot's certificate committed
/// to, with its opening.
pub fn prove_query(
    statement: &QueryStatement,
    answer: &Answer,
    noise: &Column,
    key: &IndexKey,
    low_memory: bool,
) -> Result<Vec<u8>> {
    let window = statement.check()?;
    let opening = noise
        .opening
        .as_ref()
        .ok_or_else(|| Error::Unsatisfied("the certificate's openings are missing".to_owned()))?;
    let witness = Witness::new(statement, window, answer, &opening.values)?;
    prove_with(
        statement,
        answer,
        &witness,
        opening,
        key,
        true,
        low_memory.then_some(RUN),
    )
}

fn prove_with(
    statement: &QueryStatement,
    answer: &Answer,
    witness: &Witness,
    noise: &Arc<Opening>,
    key: &IndexKey,
    honest: bool,
    low_memory: Option<usize>,
) -> Result<Vec<u8>> {
    let mut seed: Vec<u8> = answer.query.iter().map(|v| *v as u8).collect();
    seed.extend(encode_scalar(&answer.query_salt));
    seed.extend(encode_scalar(&answer.list_salt));
    seed.extend(key.0);
    let mut session = Session::prover(
        statement.transcript(),
        statement.index.layout.row_variables,
        &seed,
    )?;
    seed.zeroize();
    if let Role::Prover(prover) = &mut session.role {
        prover.honest = honest;
    }
    session.low_memory = low_memory;
    let secret = Secret {
        answer,
        witness,
        noise,
        key,
    };
    match answer_protocol(session, statement, Some(secret))? {
        Closed::Proof(proof) => Ok(proof),
        _ => unreachable!("a prover"),
    }
}

/// Reads a proof: the equation that has to hold, over the statement's index points.
pub fn check_query(statement: &QueryStatement, proof: &[u8]) -> Result<Equation> {
    statement.check()?;
    let session = Session::verifier(
        statement.transcript(),
        statement.index.layout.row_variables,
        proof,
    );
    match answer_protocol(session, statement, None)? {
        Closed::Check(equation) => Ok(equation),
        _ => unreachable!("a verifier"),
    }
}

/// Verifies an answer's proof.
pub fn verify_query(statement: &QueryStatement, proof: &[u8]) -> Result<()> {
    if check_query(statement, proof)?.holds(&statement.index.points) {
        Ok(())
    } else {
        Err(Error::Rejected)
    }
}

/// The protocol, for both parties.
fn answer_protocol(
    mut session: Session,
    statement: &QueryStatement,
    secret: Option<Secret>,
) -> Result<Closed> {
    let layout = statement.index.layout;
    let (n, capacity, dimension) = (layout.variables, layout.capacity, statement.index.dimension);
    let window = statement.check()?;
    let key_limbs = statement.key_limbs();

    // q and its salt, once, before any challenge.
    let blinding = session
        .prover_mut()
        .map(|p| p.nonces.draw())
        .unwrap_or_default();
    let query = session.point("query", |_| {
        let answer = secret.as_ref().expect("the prover's side").answer;
        commit_query(&answer.query, &answer.query_salt, &blinding)
    })?;

    // Columns: the scores have no commitment of their own, the noise has its certificate's.
    let scores = session.add_column(Column {
        variables: n,
        rows: Vec::new(),
        opening: secret.as_ref().map(|s| {
            Arc::new(Opening {
                values: s.answer.scores.clone(),
                blindings: Vec::new(),
            })
        }),
    });
    let noise = session.add_column(Column {
        variables: n,
        rows: statement.noise.to_vec(),
        opening: secret.as_ref().map(|s| Arc::clone(s.noise)),
    });
    let score_variables = statement.score_variables();
    let counted = |variables: usize, most: usize| (1 << variables, Bound::up_to(most));
    let bounds = Columns {
        quantised: (capacity, Bound::up_to(statement.lattice as usize)),
        selected: (capacity, Bound::Unsigned(1)),
        distance: vec![(capacity, Bound::Unsigned(LIMB_BITS)); key_limbs],
        score_rows: counted(score_variables, capacity),
        range: counted(LIMB_BITS, (capacity + statement.listed) * key_limbs),
        nibbles: counted(NIBBLE_VARIABLES, dimension.next_power_of_two()),
    };
    let values = secret.as_ref().map(|s| columns(statement, s).in_order());
    let ids = session.commit_bounded("answer columns", &bounds.in_order(), values)?;
    let ids = Columns::named(ids, key_limbs);

    // The listed positions, their noised scores, and what lies between their keys.
    let k = statement.listed;
    let values = secret.as_ref().map(|s| {
        let small = crate::numbers::from_small;
        let mut out = vec![s.answer.list_salt];
        out.extend(s.answer.positions.iter().map(|p| small(*p)));
        out.extend(s.witness.noised.iter().map(|y| small(*y)));
        let order = s.witness.order.iter();
        out.extend(order.flat_map(|d| (0..key_limbs).map(|i| small(limb(*d, i)))));
        out
    });
    let vars = session.send("listed", 1 + 2 * k + (k - 1) * key_limbs, values.as_deref())?;
    let list_salt = Expr::from(vars[0]);
    let positions: Vec<Expr> = vars[1..=k].iter().map(|v| Expr::from(*v)).collect();
    let noised: Vec<Expr> = vars[1 + k..1 + 2 * k]
        .iter()
        .map(|v| Expr::from(*v))
        .collect();
    let order: Vec<Expr> = vars[1 + 2 * k..].iter().map(|v| Expr::from(*v)).collect();
    let shift = power_of_two(n);
    let keys: Vec<Expr> = positions
        .iter()
        .zip(&noised)
        .map(|(p, y)| y.clone() * shift + Expr::from(shift - Fr::ONE) - p.clone())
        .collect();
    // Strictly falling: no position is listed twice. Keys and limbs are far below r, see `key_bits`.
    for (pair, run) in keys.windows(2).zip(order.chunks(key_limbs)) {
        let distance =
            Expr::combination(run.iter().zip((0..).map(|i| power_of_two(LIMB_BITS * i))));
        session.constrain(
            "order of the list",
            pair[0].clone() - pair[1].clone() - 1u64.into() - distance,
        );
    }
    let least = keys[k - 1].clone();

    // cq and htopk. The packed elements and the salt are functionals of the committed (q, salt).
    let mut claims = Vec::new();
    let mut vector = Vec::new();
    let mut weights = vec![Fr::ZERO; dimension + 1];
    weights[dimension] = Fr::ONE;
    let salt = session.send_single("query salt", secret.as_ref().map(|s| s.answer.query_salt))?;
    claims.push((weights, salt));
    vector.push(Expr::from(salt));
    let places: Vec<Fr> = (0..NIBBLES_PER_ELEMENT)
        .map(|i| power_of_two(4 * i))
        .collect();
    let offset = places.iter().sum::<Fr>() * Fr::from(8u8);
    for start in (0..dimension).step_by(NIBBLES_PER_ELEMENT) {
        let mut weights = vec![Fr::ZERO; dimension + 1];
        weights[start..dimension]
            .iter_mut()
            .zip(&places)
            .for_each(|(w, p)| *w = *p);
        let value = secret.as_ref().map(|s| {
            let run = s.answer.query[start..].iter().zip(&places);
            run.map(|(q, p)| crate::numbers::from_small(i64::from(*q)) * p)
                .sum()
        });
        let var = session.send_single("packed query", value)?;
        claims.push((weights, var));
        vector.push(Expr::from(var) + offset.into());
    }
    let mut list = vec![list_salt, (k as u64).into()];
    list.extend(positions.iter().cloned());
    let mut calls = Call::list(&mut session, TAG_VECTOR, &vector, statement.cq)?;
    calls.extend(Call::list(&mut session, TAG_TOPK, &list, statement.htopk)?);

    // Lookups.
    let one = |id| Entry::Columns(vec![(id, Fr::ONE)]);
    let noised_column = vec![(ids.quantised, Fr::ONE), (noise, Fr::ONE)];
    let most = SCORE * dimension as i64;
    let table: Vec<i64> = (0..1i64 << score_variables)
        .map(|row| (row - most).min(most))
        .collect();
    let steps: Vec<i64> = table.iter().map(|s| window.quantise(*s as i32)).collect();
    let mut segments = vec![
        Segment {
            variables: n,
            tag: TAG_SCORE,
            entries: vec![one(scores), one(ids.quantised)],
            count: Count::First(capacity),
        },
        Segment {
            variables: score_variables,
            tag: TAG_SCORE,
            entries: vec![Entry::Public(table), Entry::Public(steps)],
            count: Count::Table(ids.score_rows),
        },
        Segment {
            variables: n,
            tag: TAG_SELECT,
            entries: vec![Entry::Row, Entry::Columns(noised_column.clone())],
            count: Count::TableFirst(ids.selected, capacity),
        },
        Segment {
            variables: log2_ceil(k),
            tag: TAG_SELECT,
            entries: vec![Entry::Hidden(positions), Entry::Hidden(noised)],
            count: Count::First(k),
        },
        Segment {
            variables: log2_ceil(dimension),
            tag: TAG_NIBBLE,
            entries: vec![Entry::Query {
                dimension,
                values: secret
                    .as_ref()
                    .map(|s| s.answer.query.iter().map(|v| i64::from(*v)).collect()),
            }],
            count: Count::Once,
        },
        Segment {
            variables: NIBBLE_VARIABLES,
            tag: TAG_NIBBLE,
            entries: vec![Entry::Public(nibble_rows())],
            count: Count::Table(ids.nibbles),
        },
        range_table(ids.range),
    ];
    segments.extend(ids.distance.iter().map(|id| first_in_range(*id, capacity)));
    if !order.is_empty() {
        segments.push(Segment {
            variables: log2_ceil(order.len()),
            tag: TAG_RANGE,
            count: Count::First(order.len()),
            entries: vec![Entry::Hidden(order)],
        });
    }
    claims.extend(lookups(&mut session, segments)?);

    // Selected rows have keys from the least listed one upwards, the others below it; none lies beyond the capacity.
    let tau = session.challenges("selection", n);
    let chi = session.challenge("selected rows");
    let sources = [
        vec![(ids.selected, Fr::ONE)],
        noised_column,
        limbs(&ids.distance, Fr::ONE),
    ];
    let threshold = session.value(&least).unwrap_or_default();
    let tables = session.proving().then(|| {
        let mut tables: Vec<Vec<Fr>> = sources.iter().map(|s| entries_of(&session, s)).collect();
        tables[1]
            .iter_mut()
            .enumerate()
            .for_each(|(p, y)| *y = *y * shift + shift - Fr::ONE - Fr::from(p as u64));
        tables.push(vec![Fr::ONE; capacity]);
        tables
    });
    let gate = Selection { threshold, chi };
    let reduced = sumcheck(
        &mut session,
        "selection",
        &tau,
        Expr::zero(),
        3,
        tables,
        gate,
    )?;
    let active = prefix(&reduced.point, capacity);
    let places = active * (shift - Fr::ONE) - prefix_numbers(&reduced.point, capacity);
    let finals = reduced.finals.map(|f| {
        let noised = (f[1] - places) * shift.inverse().expect("a power of two");
        [f[0], noised, f[2], f[0] * (f[1] - threshold), f[0].square()]
    });
    let v = session.send("selection", 5, finals.as_ref().map(|f| &f[..]))?;
    let e = |i: usize| Expr::from(v[i]);
    let above = e(1) * shift + places.into() - least;
    session.constrain_product("selection", e(0), above.clone(), e(3));
    session.constrain_product("selected rows", e(0), e(0), e(4));
    let compare = e(3) * Fr::from(2u8) - above - 1u64.into() + e(0) - e(2);
    session.constrain(
        "selection",
        compare * active + (e(4) - e(0) * active) * chi - reduced.claim,
    );
    for (source, var) in sources.into_iter().zip(&v) {
        session.claim(Weight::evaluation(&reduced.point), source, (*var).into());
    }

    permutations(&mut session, None, calls)?;
    let link = Link {
        index: statement.index,
        query,
        secret: secret.as_ref().map(|s| LinkSecret {
            query: &s.answer.query,
            salt: s.answer.query_salt,
            blinding,
            key: s.key,
        }),
        claims,
    };
    session.close(Some(link))
}

/// t_3 ((2 b - 1) (y - threshold) - 1 + b - d) + chi b (b - t_3) for the tables b, y, d, and t_3, which is 1 up to the
/// capacity.
#[derive(Clone, Copy)]
struct Selection {
    threshold: Fr,
    chi: Fr,
}

impl Gate for Selection {
    type Tables<V: Copy> = [V; 4];
    type Nodes<W: Copy> = [W; 3];

    fn constants(&self) -> Vec<Fr> {
        vec![self.threshold, self.chi, Fr::ONE]
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, c: &[L::V], t: &[L::V]) -> L::V {
        let (b, one) = (t[0], c[2]);
        let above = l.weak(l.sub(t[1], c[0]));
        let sign = l.weak(l.sub(l.add(b, b), one));
        let rest = l.weak(l.sub(l.sub(b, one), t[2]));
        let compare = l.add(l.mul(sign, above), rest);
        let selected = l.mul(c[1], b);
        let sum = l.mac(l.wide(), t[3], compare);
        l.reduce(l.mac(sum, selected, l.sub(b, t[3])))
    }
}

/// What the prover's columns hold.
fn columns(statement: &QueryStatement, secret: &Secret) -> Columns<Vec<i64>> {
    let key_limbs = statement.key_limbs();
    let witness = secret.witness;
    let distance: Vec<Vec<i64>> = (0..key_limbs)
        .map(|k| witness.distances.iter().map(|d| limb(*d, k)).collect())
        .collect();
    let most = SCORE * statement.index.dimension as i64;
    let mut score_rows = vec![0; 1 << statement.score_variables()];
    let mut range = vec![0; 1 << LIMB_BITS];
    let mut nibbles = vec![0; 1 << NIBBLE_VARIABLES];
    secret
        .answer
        .scores
        .iter()
        .for_each(|s| count(&mut score_rows, s + most));
    distance
        .iter()
        .flatten()
        .for_each(|v| count(&mut range, *v));
    let order = witness.order.iter();
    order
        .flat_map(|d| (0..key_limbs).map(|i| limb(*d, i)))
        .for_each(|v| count(&mut range, v));
    let query: Vec<i64> = secret.answer.query.iter().map(|v| i64::from(*v)).collect();
    pad(&query, log2_ceil(query.len()))
        .iter()
        .for_each(|v| count(&mut nibbles, v + i64::from(COMPONENT)));
    Columns {
        quantised: witness.quantised.clone(),
        selected: witness.selected.clone(),
        distance,
        score_rows,
        range,
        nibbles,
    }
}

#[cfg(test)]
pub(crate) mod tests;
