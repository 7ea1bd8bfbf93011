//! The proof of one answer: every score, the noise of a certificate, the selection. `docs/scan/query.md`.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::commitment::NIBBLES_PER_ELEMENT;
use ragaudit_core::lanes::Lanes;
use ragaudit_core::noise::check_gains;
use ragaudit_core::selection::ScoreWindow;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::closing::Closed;
use crate::columns::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{encode_scalar, Fr, G1Affine};
use crate::index::{check_dimension, IndexCommitment, IndexKey, COMPONENT};
use crate::link::{commit_query, Link, LinkSecret};
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{prefix, prefix_numbers, Weight};
use crate::noise::{
    count, entries_of, first_in_range, limbs, pad, range_table, LIMB_BITS, TAG_RANGE,
};
use crate::numbers::{log2_ceil, power_of_two};
use crate::poseidon::{permutations, Call};
use crate::session::{Column, Opening, Role, Session};
use crate::sumcheck::{sumcheck, Gate};
use crate::transcript::Transcript;

pub(crate) const TAG_VECTOR: u64 = 4;
const TAG_TOPK: u64 = 5;
const TAG_SCORE: u64 = 2;
const TAG_NIBBLE: u64 = 3;
const TAG_SELECT: u64 = 4;
pub(crate) const NIBBLE_VARIABLES: usize = 4;
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
        let reach = self.lattice as u64
            + 2 * 127 * self.gains.iter().map(|g| u64::from(*g)).sum::<u64>()
            + 1;
        let bits = 64 - reach.leading_zeros() as usize + self.index.layout.variables;
        bits.div_ceil(LIMB_BITS)
    }

    fn score_variables(&self) -> usize {
        log2_ceil(2 * SCORE as usize * self.index.dimension + 1)
    }
}

/// The prover's columns and values.
#[derive(Default, Clone)]
pub(crate) struct Witness {
    pub(crate) quantised: Vec<i64>,
    pub(crate) selected: Vec<i64>,
    pub(crate) distances: Vec<i64>,
    pub(crate) noised: Vec<i64>,
    pub(crate) order: Vec<i64>,
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
        [true, low_memory],
    )
}

fn prove_with(
    statement: &QueryStatement,
    answer: &Answer,
    witness: &Witness,
    noise: &Arc<Opening>,
    key: &IndexKey,
    [honest, low_memory]: [bool; 2],
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
    let mut bounded = vec![
        (capacity, Bound::up_to(statement.lattice as usize)),
        (capacity, Bound::Unsigned(1)),
    ];
    bounded.extend(vec![(capacity, Bound::Unsigned(LIMB_BITS)); key_limbs]);
    let counted = [
        (score_variables, capacity),
        (LIMB_BITS, (capacity + statement.listed) * key_limbs),
        (NIBBLE_VARIABLES, dimension.next_power_of_two()),
    ];
    bounded.extend(counted.map(|(v, most)| (1 << v, Bound::up_to(most))));
    let columns = secret.as_ref().map(|s| columns(statement, s));
    let ids = session.commit_bounded("answer columns", &bounded, columns)?;
    let (quantised, selected, distance) = (ids[0], ids[1], &ids[2..2 + key_limbs]);
    let (score_table, range, nibbles) =
        (ids[2 + key_limbs], ids[3 + key_limbs], ids[4 + key_limbs]);

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
    // Strictly falling: no position is listed twice. Keys and limbs are far below r.
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
    let noised_column = vec![(quantised, Fr::ONE), (noise, Fr::ONE)];
    let most = SCORE * dimension as i64;
    let table: Vec<i64> = (0..1i64 << score_variables)
        .map(|row| (row - most).min(most))
        .collect();
    let steps: Vec<i64> = table.iter().map(|s| window.quantise(*s as i32)).collect();
    let mut segments = vec![
        Segment {
            variables: n,
            tag: TAG_SCORE,
            entries: vec![one(scores), one(quantised)],
            count: Count::First(capacity),
        },
        Segment {
            variables: score_variables,
            tag: TAG_SCORE,
            entries: vec![Entry::Public(table), Entry::Public(steps)],
            count: Count::Table(score_table),
        },
        Segment {
            variables: n,
            tag: TAG_SELECT,
            entries: vec![Entry::Row, Entry::Columns(noised_column.clone())],
            count: Count::TableFirst(selected, capacity),
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
            count: Count::Table(nibbles),
        },
        range_table(range),
    ];
    segments.extend(distance.iter().map(|id| first_in_range(*id, capacity)));
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
        vec![(selected, Fr::ONE)],
        noised_column,
        limbs(distance, Fr::ONE),
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

/// -7..7, and the last once more.
pub(crate) fn nibble_rows() -> Vec<i64> {
    let most = i64::from(COMPONENT);
    (0..1i64 << NIBBLE_VARIABLES)
        .map(|row| (row - most).min(most))
        .collect()
}

/// In the order that the protocol commits them, multiplicities last.
fn columns(statement: &QueryStatement, secret: &Secret) -> Vec<Vec<i64>> {
    let key_limbs = statement.key_limbs();
    let witness = secret.witness;
    let mut out = vec![witness.quantised.clone(), witness.selected.clone()];
    for k in 0..key_limbs {
        out.push(witness.distances.iter().map(|d| limb(*d, k)).collect());
    }
    let most = SCORE * statement.index.dimension as i64;
    let mut scores = vec![0; 1 << statement.score_variables()];
    let mut range = vec![0; 1 << LIMB_BITS];
    let mut nibbles = vec![0; 1 << NIBBLE_VARIABLES];
    secret
        .answer
        .scores
        .iter()
        .for_each(|s| count(&mut scores, s + most));
    out[2..]
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
    out.extend([scores, range, nibbles]);
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cheat::{
        caught_by, every_point_is_opened, no_claim_is_skipped, nothing_is_forgotten, run, Without,
    };
    use crate::group::vector_generators;
    use crate::index::{commit_index, Layout, MAX_CAPACITY, MAX_DIMENSION};
    use crate::noise::tests::MOST_GAINS;
    use crate::noise::{prove_noise, verify_noise, NoiseStatement, Seed};
    use crate::session::REPEATED;
    use ragaudit_core::commitment::pack_nibbles;
    use ragaudit_core::poseidon::{hash, hash_list};
    use ragaudit_core::selection::MAX_LATTICE;

    struct Case {
        index: IndexCommitment,
        key: IndexKey,
        noise: Column,
        answer: Answer,
        gains: Vec<u32>,
        cq: Fr,
        htopk: Fr,
        /// lo, hi, lattice.
        window: [i64; 3],
    }

    const LO: i64 = 10;
    const HI: i64 = 90;
    const LATTICE: i64 = 64;

    fn list_hash(salt: Fr, positions: &[i64]) -> Fr {
        let mut list = vec![salt, Fr::from(positions.len() as u64)];
        list.extend(positions.iter().map(|p| Fr::from(*p as u64)));
        hash_list(TAG_TOPK, &list)
    }

    fn vector_hash(salt: Fr, query: &[i8]) -> Fr {
        let mut list = vec![salt];
        list.extend(pack_nibbles(query));
        hash_list(TAG_VECTOR, &list)
    }

    fn components(seed: u64, count: usize) -> Vec<i8> {
        let mut x = seed;
        let mut next = || {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((x >> 33) % 15) as i8 - 7
        };
        (0..count).map(|_| next()).collect()
    }

    fn certificate(capacity: usize, gains: &[u32], slot: u64) -> Column {
        let seed = Seed([Fr::from(9u8), Fr::from(10u8)]);
        let statement = NoiseStatement {
            context: [1; 32],
            c_seed: hash(&[Fr::ONE, seed.0[0], seed.0[1]]).unwrap(),
            beacon: Fr::from(3u8),
            slot: Fr::from(slot),
            capacity,
            gains: gains.to_vec(),
        };
        let certificate = prove_noise(&statement, &seed, false).unwrap();
        verify_noise(&statement, &certificate.proof).unwrap();
        certificate.noise
    }

    fn case(
        documents: usize,
        capacity: usize,
        dimension: usize,
        gains: &[u32],
        listed: usize,
    ) -> Case {
        let sizes = [documents, capacity, dimension, listed];
        case_in([LO, HI, LATTICE], sizes, gains)
    }

    fn case_in(
        window: [i64; 3],
        [documents, capacity, dimension, listed]: [usize; 4],
        gains: &[u32],
    ) -> Case {
        let rows = components(5, documents * dimension);
        let query = components(77, dimension);
        let key = IndexKey([3; 32]);
        let index = commit_index(&rows, dimension, capacity, &key).unwrap();
        let mut scores: Vec<i64> = rows
            .chunks(dimension)
            .map(|row| {
                row.iter()
                    .zip(&query)
                    .map(|(a, b)| i64::from(*a) * i64::from(*b))
                    .sum()
            })
            .collect();
        scores.resize(capacity, 0);
        let noise = certificate(capacity, gains, 4);
        let [lo, hi, lattice] = window;
        let steps = ScoreWindow::new(lo, hi, lattice).unwrap();
        let drawn = &noise.opening.as_ref().unwrap().values;
        let mut order: Vec<i64> = (0..capacity as i64).collect();
        order.sort_by_key(|p| {
            let p = *p as usize;
            (
                std::cmp::Reverse(steps.quantise(scores[p] as i32) + drawn[p]),
                p,
            )
        });
        let positions = order[..listed].to_vec();
        let (query_salt, list_salt) = (Fr::from(1000u64), Fr::from(2000u64));
        Case {
            index,
            key,
            noise,
            gains: gains.to_vec(),
            cq: vector_hash(query_salt, &query),
            htopk: list_hash(list_salt, &positions),
            window,
            answer: Answer {
                query,
                query_salt,
                positions,
                list_salt,
                scores,
            },
        }
    }

    impl Case {
        fn statement(&self) -> QueryStatement<'_> {
            QueryStatement {
                context: [2; 32],
                index: &self.index,
                noise: &self.noise.rows,
                gains: self.gains.clone(),
                cq: self.cq,
                htopk: self.htopk,
                listed: self.answer.positions.len(),
                lo: self.window[0],
                hi: self.window[1],
                lattice: self.window[2],
            }
        }

        fn witness(&self) -> Witness {
            let statement = self.statement();
            let window = statement.check().unwrap();
            let noise = &self.noise.opening.as_ref().unwrap().values;
            Witness::new(&statement, window, &self.answer, noise).unwrap()
        }

        /// Whether a prover that refuses nothing gets through with this witness.
        fn forged(&self, witness: &Witness) -> bool {
            let statement = self.statement();
            let noise = self.noise.opening.as_ref().unwrap();
            let proof = prove_with(
                &statement,
                &self.answer,
                witness,
                noise,
                &self.key,
                [false; 2],
            )
            .unwrap();
            verify_query(&statement, &proof).is_ok()
        }

        /// The same with other positions, as if they were the answer.
        fn lists(&mut self, positions: Vec<i64>) -> bool {
            self.answer.positions = positions;
            self.htopk = list_hash(self.answer.list_salt, &self.answer.positions);
            self.forged(&self.witness())
        }
    }

    fn small() -> Case {
        case(30, 37, 70, &[1, 8], 4)
    }

    #[test]
    fn answers_verify() {
        for case in [
            small(),
            case(1, 1, 1, &[1], 1),
            case(150, 150, 64, &[1, 8, 64], 5),
            case(4, 9, 3, &[1, 8], 9),
        ] {
            let statement = case.statement();
            let proof =
                prove_query(&statement, &case.answer, &case.noise, &case.key, false).unwrap();
            verify_query(&statement, &proof).unwrap();
            assert!(case.forged(&case.witness()));
        }
    }

    #[test]
    fn a_proof_is_for_its_statement_only() {
        let case = small();
        let base = case.statement();
        let proof = prove_query(&base, &case.answer, &case.noise, &case.key, false).unwrap();
        verify_query(&base, &proof).unwrap();
        // A new field has to be changed below.
        let QueryStatement {
            context: _,
            index: _,
            noise: _,
            gains: _,
            cq: _,
            htopk: _,
            listed: _,
            lo: _,
            hi: _,
            lattice: _,
        } = &base;
        let rows = components(5, 30 * 70);
        let index = |rows: &[i8], dimension, capacity| {
            commit_index(rows, dimension, capacity, &case.key).unwrap()
        };
        let mut swapped = case.index.clone();
        swapped.points.swap(0, 1);
        let indices = [
            index(&components(6, 30 * 70), 70, 37),
            index(&rows, 70, 38),
            index(&rows[..30 * 69], 69, 37),
            swapped,
        ];
        let (slot, shorter) = (certificate(37, &[1, 8], 5), certificate(37, &[1, 8], 4));
        type Change<'a> = Box<dyn Fn(&mut QueryStatement<'a>) + 'a>;
        let mut changes: Vec<Change> = vec![
            Box::new(|s| s.context[5] ^= 1),
            Box::new(|s| s.cq += Fr::ONE),
            Box::new(|s| s.htopk += Fr::ONE),
            Box::new(|s| s.lo += 1),
            Box::new(|s| s.hi += 1),
            Box::new(|s| s.lattice *= 2),
            Box::new(|s| s.listed -= 1),
            Box::new(|s| s.gains = vec![1, 7]),
            Box::new(|s| s.gains.push(1)),
            Box::new(|s| s.noise = &slot.rows),
            // The same noise under other blindings.
            Box::new(|s| s.noise = &shorter.rows),
        ];
        for index in &indices {
            changes.push(Box::new(move |s| s.index = index));
        }
        for (i, change) in changes.iter().enumerate() {
            let mut other = base.clone();
            change(&mut other);
            assert!(verify_query(&other, &proof).is_err(), "change {i}");
            let [said, before] = [&other, &base].map(|s| s.transcript().digest());
            assert_ne!(said, before, "change {i}");
        }
    }

    #[test]
    fn a_transcript_forgets_nothing() {
        let case = case(5, 6, 3, &[1, 8], 2);
        let base = case.statement();
        let prove = || prove_query(&base, &case.answer, &case.noise, &case.key, false).unwrap();
        nothing_is_forgotten(prove, |proof| verify_query(&base, proof));
        // Forgotten by both sides, a field that is in no equation lets one proof stand for two records.
        let mut other = base.clone();
        other.context[0] ^= 1;
        let forgets = Without::Message("context".to_owned());
        let (proof, _) = run(forgets.clone(), prove);
        assert_eq!(run(forgets, || verify_query(&other, &proof)).0, Ok(()));
        assert!(verify_query(&other, &prove()).is_err());
    }

    fn skips_no_claim(each: bool) {
        let case = case(5, 6, 3, &[1, 8], 2);
        let base = case.statement();
        let (witness, noise) = (case.witness(), case.noise.opening.as_ref().unwrap());
        let prove =
            || prove_with(&base, &case.answer, &witness, noise, &case.key, [false; 2]).unwrap();
        no_claim_is_skipped(prove, |proof| verify_query(&base, proof), each);
        every_point_is_opened(prove, |proof| verify_query(&base, proof));
    }

    #[test]
    fn claims_and_openings_are_all_needed() {
        skips_no_claim(false);
    }

    #[test]
    #[ignore = "a minute"]
    fn every_single_claim_is_needed() {
        skips_no_claim(true);
    }

    #[test]
    fn other_lists_are_refused() {
        let right = small().answer.positions.clone();
        let mut swapped = right.clone();
        swapped.swap(1, 2);
        caught_by("constraint: order of the list", || {
            small().lists(swapped.clone())
        });
        // A position that is not among the first.
        let mut missing = right.clone();
        let other = (0..37).find(|p| !right.contains(p)).unwrap();
        missing[3] = other;
        caught_by("constraint: selection", || {
            let mut case = small();
            case.lists(missing.clone())
        });
        // Two claims stand against it: the list's strict order, and its multiset.
        let mut twice = right.clone();
        twice[3] = twice[2];
        assert!(!small().lists(twice), "one position twice");
        assert!(small().lists(right));
    }

    /// All noise is negative, so that row 3 of a capacity of 3 would be the first of four.
    #[test]
    fn a_padding_row_is_never_selected() {
        let mut case = case(0, 3, 2, &[1], 1);
        case.noise = (4..)
            .map(|slot| certificate(3, &[1], slot))
            .find(|noise| {
                noise.opening.as_ref().unwrap().values[..3]
                    .iter()
                    .all(|z| *z < 0)
            })
            .unwrap();
        let noise = case.noise.opening.as_ref().unwrap().values.clone();
        case.answer.positions = vec![3];
        case.htopk = list_hash(case.answer.list_salt, &[3]);
        let witness = Witness {
            quantised: vec![0; 3],
            selected: vec![0, 0, 0, 1],
            distances: (0..3)
                .map(|p| key(0, 3, 2) - 1 - key(noise[p as usize], p, 2))
                .collect(),
            noised: vec![0],
            order: vec![],
        };
        assert!(!case.forged(&witness));
        let best = (0..3).min_by_key(|p| (-noise[*p as usize], *p)).unwrap();
        assert!(case.lists(vec![best]));
    }

    #[test]
    fn false_columns_are_refused() {
        let case = small();
        let out = (0..37)
            .find(|p| !case.answer.positions.contains(p))
            .unwrap() as usize;
        let first = case.answer.positions[0] as usize;
        type Lie<'a> = (&'a str, &'a dyn Fn(&mut Witness));
        let lies: [Lie; 3] = [
            // A step that is not the score's, with the distance that it makes.
            ("constraint: lookup layer", &|w| {
                w.quantised[out] -= 1;
                w.distances[out] += 1 << case.index.layout.variables;
            }),
            ("constraint: selection", &|w| w.distances[out] += 1),
            // A listed score that is not the position's.
            ("constraint: lookup layer", &|w| {
                w.noised[0] += 1;
                w.order[0] += 1 << case.index.layout.variables;
            }),
        ];
        for (claim, lie) in lies {
            let mut witness = case.witness();
            lie(&mut witness);
            caught_by(claim, || case.forged(&witness));
        }
        // An unlisted row marked, a listed one unmarked: against both stand the multiset of the list and the distance.
        for (row, mark) in [(out, 1), (first, 0)] {
            let mut witness = case.witness();
            witness.selected[row] = mark;
            assert!(!case.forged(&witness), "{mark}");
            witness.distances[row] = -1 - witness.distances[row];
            assert!(!case.forged(&witness), "{mark}");
        }
    }

    /// Scores are looked up in a table of all that the components admit, so no window takes a score out of it: not one
    /// beyond reach, where all are 0, nor one unit wide, nor the largest lattice.
    #[test]
    fn false_scores_are_refused_in_every_window() {
        let reach = 64 * 70;
        let most = i64::from(i32::MAX);
        for window in [
            [reach + 1, reach + 709, LATTICE],
            [most - 1, most, LATTICE],
            [0, most, MAX_LATTICE],
            [10, 11, LATTICE],
            [LO, HI, MAX_LATTICE],
            [LO, HI, 1],
        ] {
            let case = case_in(window, [30, 37, 70, 4], &[1, 8]);
            assert!(case.forged(&case.witness()), "{window:?}: the honest one");
            let out = (0..37)
                .find(|p| !case.answer.positions.contains(p))
                .unwrap() as usize;
            let mut witness = case.witness();
            witness.quantised[out] -= 1;
            witness.distances[out] += 1 << case.index.layout.variables;
            caught_by("constraint: lookup layer", || case.forged(&witness));
        }
    }

    /// Two equal noised scores listed with the larger position first.
    #[test]
    fn ties_go_to_the_smaller_position() {
        // Without documents all scores are equal; look for a tie of noise at the border of the list.
        let mut case = case(0, 60, 4, &[1], 1);
        let noise = case.noise.opening.as_ref().unwrap().values[..60].to_vec();
        let mut order: Vec<usize> = (0..60).collect();
        order.sort_by_key(|p| (std::cmp::Reverse(noise[*p]), *p));
        let at = (0..59)
            .find(|i| noise[order[*i]] == noise[order[i + 1]])
            .unwrap();
        let mut list: Vec<i64> = order[..=at].iter().map(|p| *p as i64).collect();
        assert!(case.lists(list.clone()));
        list[at] = order[at + 1] as i64;
        assert!(!case.lists(list));
    }

    #[test]
    fn the_query_is_the_committed_one() {
        // Scores and proof of another vector than cq's.
        let mut other = small();
        other.answer.query[0] = if other.answer.query[0] == 0 { 1 } else { 0 };
        assert!(!other.forged(&other.witness()), "cq of another query");
        let mut salt = small();
        salt.answer.query_salt += Fr::ONE;
        assert!(!salt.forged(&salt.witness()), "another salt");
        // 16 taken from one component and 1 added to the next pack into the same element.
        let mut wide = small();
        wide.answer.query[0] -= 16;
        wide.answer.query[1] += 1;
        let rows = components(5, 30 * 70);
        for (row, score) in rows.chunks(70).zip(&mut wide.answer.scores) {
            *score += i64::from(row[1]) - 16 * i64::from(row[0]);
        }
        let window = ScoreWindow::new(LO, HI, LATTICE).unwrap();
        let noise = wide.noise.opening.as_ref().unwrap().values.clone();
        let mut order: Vec<i64> = (0..37).collect();
        order.sort_by_key(|p| {
            let i = *p as usize;
            (
                -window.quantise(wide.answer.scores[i] as i32) - noise[i],
                *p,
            )
        });
        order.truncate(4);
        assert!(!wide.lists(order), "components that are not int4");
        // Scores that are not the index's, consistent in themselves.
        let mut scores = small();
        scores.answer.scores[0] += 1;
        assert!(!scores.forged(&scores.witness()), "a score of no row");
        let mut key = small();
        key.key = IndexKey([4; 32]);
        assert!(!key.forged(&key.witness()), "another index's blindings");
    }

    #[test]
    fn noise_is_the_certificate_s() {
        let mut case = small();
        let mut opening = case.noise.opening.as_ref().unwrap().as_ref().clone();
        opening.values[0] += 500;
        case.noise.opening = Some(Arc::new(opening));
        assert!(!case.forged(&case.witness()));
    }

    /// A prover who says the tenant's index and scores with another: another tenant's, and its own with two components
    /// changed round.
    #[test]
    fn scores_are_of_the_tenant_s_index() {
        let case = small();
        let (statement, rows) = (case.statement(), components(5, 30 * 70));
        let mut turned = rows.clone();
        turned.chunks_mut(70).for_each(|row| row.swap(0, 1));
        for (rows, accepted) in [
            (components(6, 30 * 70), false),
            (turned, false),
            (rows, true),
        ] {
            let mut lying = self::case(30, 37, 70, &[1, 8], 4);
            lying.index = commit_index(&rows, 70, 37, &lying.key).unwrap();
            lying.noise = case.noise.clone();
            let dot = |row: &[i8]| {
                let terms = row.iter().zip(&lying.answer.query);
                terms.map(|(a, b)| i64::from(*a) * i64::from(*b)).sum()
            };
            let scores = rows.chunks(70).map(dot).collect::<Vec<i64>>();
            lying.answer.scores[..30].copy_from_slice(&scores);
            let noise = case.noise.opening.as_ref().unwrap();
            let window = statement.check().unwrap();
            let noised = |p: &i64| {
                let p = *p as usize;
                window.quantise(lying.answer.scores[p] as i32) + noise.values[p]
            };
            let mut order: Vec<i64> = (0..37).collect();
            order.sort_by_key(|p| (-noised(p), *p));
            lying.answer.positions = order[..4].to_vec();
            let htopk = list_hash(lying.answer.list_salt, &lying.answer.positions);
            let said = QueryStatement {
                htopk,
                ..statement.clone()
            };
            let (witness, own) = (
                lying.witness(),
                QueryStatement {
                    index: &lying.index,
                    ..said.clone()
                },
            );
            let session = Session::prover(said.transcript(), said.index.layout.row_variables, b"");
            let secret = Secret {
                answer: &lying.answer,
                witness: &witness,
                noise,
                key: &lying.key,
            };
            let Closed::Proof(proof) =
                answer_protocol(session.unwrap(), &own, Some(secret)).unwrap()
            else {
                panic!("a prover")
            };
            assert_eq!(verify_query(&said, &proof).is_ok(), accepted);
        }
    }

    #[test]
    fn mutated_proofs_are_refused() {
        let case = case(5, 6, 3, &[1], 2);
        let statement = case.statement();
        let proof = prove_query(&statement, &case.answer, &case.noise, &case.key, false).unwrap();
        let mut at = 0;
        while at < proof.len() {
            let mut bad = proof.clone();
            bad[at] ^= 1 << (at % 8);
            assert!(verify_query(&statement, &bad).is_err(), "byte {at}");
            at += 397;
        }
        for length in [
            0,
            1,
            31,
            32,
            proof.len() / 2,
            proof.len() - 32,
            proof.len() - 1,
        ] {
            assert!(verify_query(&statement, &proof[..length]).is_err());
        }
        assert!(verify_query(&statement, &[&proof[..], &[0; 32]].concat()).is_err());
    }

    /// Another query, and another document: the same messages in the same order, as many bytes.
    #[test]
    fn proofs_have_one_shape() {
        let base = small();
        let shape = |case: &Case| {
            let statement = case.statement();
            let noise = case.noise.opening.as_ref().unwrap();
            let prove = || {
                let witness = case.witness();
                prove_with(
                    &statement,
                    &case.answer,
                    &witness,
                    noise,
                    &case.key,
                    [false; 2],
                )
                .unwrap()
            };
            let (proof, said) = run(Without::Nothing, prove);
            (proof.len(), said.trace)
        };
        let mut query = small();
        query.answer.query = components(78, 70);
        query.cq = vector_hash(query.answer.query_salt, &query.answer.query);
        assert_eq!(shape(&base), shape(&query));

        let mut rows = components(5, 30 * 70);
        rows[7 * 70..8 * 70].copy_from_slice(&components(79, 70));
        let document = {
            let mut case = small();
            case.index = commit_index(&rows, 70, 37, &case.key).unwrap();
            let row = rows[7 * 70..8 * 70].iter().zip(&case.answer.query);
            case.answer.scores[7] = row.map(|(a, b)| i64::from(*a) * i64::from(*b)).sum();
            case
        };
        assert_ne!(document.answer.scores, base.answer.scores);
        assert_eq!(shape(&base), shape(&document));
        let prove = || {
            prove_query(
                &base.statement(),
                &base.answer,
                &base.noise,
                &base.key,
                false,
            )
            .unwrap()
        };
        assert_ne!(prove(), prove(), "nonces are fresh");
    }

    /// The most that a query proof may be about.
    pub(crate) fn largest() {
        simulate(MAX_CAPACITY, MAX_DIMENSION, MAX_LISTED, &MOST_GAINS);
    }

    /// Of an index that nobody can open.
    pub(crate) fn simulate(capacity: usize, dimension: usize, listed: usize, gains: &[u32]) {
        let layout = Layout::new(capacity).unwrap();
        let index = IndexCommitment {
            layout,
            dimension,
            points: vec![vector_generators(1)[0]; dimension * layout.rows()],
        };
        let noise = vec![index.points[0]; layout.rows()];
        let public = QueryStatement {
            context: [2; 32],
            index: &index,
            noise: &noise,
            gains: gains.to_vec(),
            cq: Fr::ONE,
            htopk: Fr::ONE,
            listed,
            lo: LO,
            hi: HI,
            lattice: MAX_LATTICE,
        };
        let session = Session::simulator(public.transcript(), layout.row_variables);
        answer_protocol(session.unwrap(), &public, None).unwrap();
    }

    #[test]
    fn low_memory_gives_the_same_proof() {
        let case = case(2900, 3000, 70, &[1, 8], 5);
        let statement = case.statement();
        REPEATED.set(true);
        let [kept, anew] = [false, true]
            .map(|low| prove_query(&statement, &case.answer, &case.noise, &case.key, low).unwrap());
        REPEATED.set(false);
        verify_query(&statement, &anew).unwrap();
        assert!(kept == anew);
    }

    /// As for certificates: cq and htopk that nobody can open.
    #[test]
    fn proofs_are_simulated_without_a_query() {
        let case = small();
        let real = prove_query(
            &case.statement(),
            &case.answer,
            &case.noise,
            &case.key,
            false,
        )
        .unwrap();
        let mut public = case.statement();
        (public.cq, public.htopk) = (Fr::from(31_337u64), Fr::from(31_338u64));
        let rows = public.index.layout.row_variables;
        let session = Session::simulator(public.transcript(), rows).unwrap();
        let Closed::Simulated(proof, oracle) = answer_protocol(session, &public, None).unwrap()
        else {
            panic!("a simulator")
        };
        assert_eq!(proof.len(), real.len());
        assert!(
            verify_query(&public, &proof).is_err(),
            "under the hash function it is no proof"
        );
        let mut transcript = public.transcript();
        transcript.programmed = oracle.programmed;
        let session = Session::verifier(transcript, rows, &proof);
        let Closed::Check(equation) = answer_protocol(session, &public, None).unwrap() else {
            panic!("a verifier")
        };
        assert!(equation.holds(&public.index.points));
    }

    #[test]
    fn the_selection_gate_keeps_within_its_bounds() {
        let [threshold, chi] = [-Fr::ONE, Fr::from(11u8)];
        crate::rounds::tests::agree(Selection { threshold, chi }, 3, 4);
    }
}
