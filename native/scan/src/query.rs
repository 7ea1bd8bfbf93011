//! The proof of one answer: every score, what certificates say of noise and of kept positions, the selection.
//! `docs/scan/query.md`.
use std::sync::Arc;

use ark_ff::Field;
use ragaudit_core::lanes::Lanes;
use zeroize::Zeroize;

use crate::asked::{component_segments, score_rows, score_variables, send_query, vector_list};
use crate::channel::{Channel, Proves, Verifies};
use crate::claims::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{encode_scalar, Fr, G1Affine};
use crate::index::IndexKey;
use crate::link::{Link, LinkSecret};
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{prefix, prefix_numbers, Weight};
use crate::nibbles::{NIBBLE_VARIABLES, TAG_VECTOR};
use crate::numbers::{log2_ceil, power_of_two};
use crate::poseidon::{permutations, Call};
use crate::prover::fractions::RUN;
use crate::prover::Prover;
use crate::ranges::{first_in_range, limbs, range_table, LIMB_BITS, TAG_RANGE};
use crate::session::{Column, ColumnId, Opening, Session};
use crate::sumcheck::{sumcheck, Gate};
use crate::verifier::Verifier;

mod inputs;
mod statement;

pub use inputs::Answer;
use inputs::*;
use statement::*;
pub use statement::{QueryStatement, MAX_LISTED};
pub(crate) use statement::{LIMITS, RULES};

/// The columns that certificates committed to, with their openings: the slot's noise where there are gains, and the
/// tenant's kept positions where it is sampled.
#[derive(Clone, Copy, Default)]
pub struct Certified<'a> {
    pub noise: Option<&'a Column>,
    pub kept: Option<&'a Column>,
}

/// Proves an answer; in `low_memory` the same in more time.
pub fn prove_query(
    statement: &QueryStatement,
    answer: &Answer,
    certified: Certified,
    key: &IndexKey,
    low_memory: bool,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, answer, certified, key, low_memory)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &QueryStatement,
    answer: &Answer,
    certified: Certified,
    key: &IndexKey,
    low_memory: bool,
) -> Result<Vec<u8>> {
    let window = statement.check()?;
    let openings = openings(statement, certified)?;
    let values = openings.map(|o| o.map(|o| &o.values[..]));
    let witness = Witness::new(statement, window, answer, values)?;
    let low_memory = low_memory.then_some(RUN);
    prove_with::<P>(statement, answer, &witness, openings, key, low_memory)
}

/// What opens the columns that the statement is about, and no others: of noise, and of kept positions.
fn openings<'a>(
    statement: &QueryStatement,
    certified: Certified<'a>,
) -> Result<[Option<&'a Arc<Opening>>; 2]> {
    let asked = [!statement.gains.is_empty(), statement.kept.is_some()];
    let found = [certified.noise, certified.kept].map(|c| c.and_then(|c| c.opening.as_ref()));
    match asked == found.map(|o| o.is_some()) {
        true => Ok(found),
        false => Err(Error::Unsatisfied(
            "the certificates' openings are missing, or of another statement".to_owned(),
        )),
    }
}

fn prove_with<P: Proves>(
    statement: &QueryStatement,
    answer: &Answer,
    witness: &Witness,
    [noise, kept]: [Option<&Arc<Opening>>; 2],
    key: &IndexKey,
    low_memory: Option<usize>,
) -> Result<Vec<u8>> {
    let mut seed: Vec<u8> = answer.query.iter().map(|v| *v as u8).collect();
    seed.extend(encode_scalar(&answer.query_salt));
    seed.extend(encode_scalar(&answer.list_salt));
    seed.extend(key.0);
    let mut session: Session<P> = Session::prover(
        statement.transcript(),
        statement.index.layout.row_variables,
        &seed,
    )?;
    seed.zeroize();
    session.low_memory = low_memory;
    let secret = Secret {
        answer,
        witness,
        noise,
        kept,
        key,
    };
    Ok(answer_protocol(session, statement, Some(secret))?.into())
}

/// Reads a proof: the equation that has to hold, over the statement's index points.
pub fn check_query(statement: &QueryStatement, proof: &[u8]) -> Result<Equation> {
    check_as::<Verifier>(statement, proof)
}

fn check_as<'p, V: Verifies<'p>>(statement: &QueryStatement, proof: &'p [u8]) -> Result<Equation> {
    statement.check()?;
    let session: Session<V> = Session::verifier(
        statement.transcript(),
        statement.index.layout.row_variables,
        proof,
    );
    Ok(answer_protocol(session, statement, None)?.into())
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
fn answer_protocol<C: Channel>(
    mut session: Session<C>,
    statement: &QueryStatement,
    secret: Option<Secret>,
) -> Result<C::Closed> {
    let layout = statement.index.layout;
    let (n, capacity, dimension) = (layout.variables, layout.capacity, statement.index.dimension);
    let window = statement.check()?;
    let key_limbs = statement.key_limbs();

    // q and its salt, once, before any challenge.
    let asked = secret.as_ref().map(|s| s.answer.asked());
    let (query, blinding) = send_query(&mut session, asked)?;

    // Columns: the scores have no commitment of their own, noise and kept positions have their certificates'.
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
    let mut certified = |rows: &[G1Affine], opening: Option<&Arc<Opening>>| {
        session.add_column(Column {
            variables: n,
            rows: rows.to_vec(),
            opening: opening.map(Arc::clone),
        })
    };
    let noise = (!statement.gains.is_empty())
        .then(|| certified(statement.noise, secret.as_ref().and_then(|s| s.noise)));
    let kept = statement
        .kept
        .map(|rows| certified(rows, secret.as_ref().and_then(|s| s.kept)));
    let score_variables = score_variables(dimension);
    let counted = |variables: usize, most: usize| (1 << variables, Bound::up_to(most));
    let steps = (capacity, Bound::up_to(statement.lattice as usize));
    let bounds = Columns {
        quantised: steps,
        scored: kept.map(|_| steps),
        selected: (capacity, Bound::Unsigned(1)),
        distance: vec![(capacity, Bound::Unsigned(LIMB_BITS)); key_limbs],
        score_rows: counted(score_variables, capacity),
        range: counted(LIMB_BITS, (capacity + statement.listed) * key_limbs),
        nibbles: counted(NIBBLE_VARIABLES, dimension.next_power_of_two()),
    };
    let values = secret.as_ref().map(|s| columns(statement, s).in_order());
    let ids = session.commit_bounded("answer columns", &bounds.in_order(), values)?;
    let ids = Columns::named(ids, kept.is_some(), key_limbs);

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

    // cq and htopk.
    let (mut claims, vector) = vector_list(&mut session, dimension, asked)?;
    let mut list = vec![list_salt, (k as u64).into()];
    list.extend(positions.iter().cloned());
    let mut calls = Call::list(&mut session, TAG_VECTOR, &vector, statement.cq)?;
    calls.extend(Call::list(&mut session, TAG_TOPK, &list, statement.htopk)?);

    // Lookups.
    let one = |id| Entry::Columns(vec![(id, Fr::ONE)]);
    let scored = ids.scored.unwrap_or(ids.quantised);
    let noised_column: Vec<(ColumnId, Fr)> = [Some(scored), noise]
        .into_iter()
        .flatten()
        .map(|id| (id, Fr::ONE))
        .collect();
    let table = score_rows(dimension);
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
    ];
    segments.extend(component_segments(dimension, asked, ids.nibbles));
    segments.push(range_table(ids.range));
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
    let known = session.known();
    let threshold = known.map(|known| known.value(&least)).unwrap_or_default();
    let tables = known.map(|known| {
        let mut tables: Vec<Vec<Fr>> = sources.iter().map(|s| known.entries(s)).collect();
        tables[1]
            .iter_mut()
            .enumerate()
            .for_each(|(p, y)| *y = *y * shift + shift - Fr::ONE - Fr::from(p as u64));
        tables.push(vec![Fr::ONE; capacity]);
        tables
    });
    let gate = Selection { threshold, chi };
    // Where not all positions are kept, kept times quantised is what they score: by the same sum.
    let product = kept.map(|kept| [kept, ids.quantised, scored].map(|id| vec![(id, Fr::ONE)]));
    let zero = Expr::zero();
    let reduced = match &product {
        None => sumcheck(&mut session, "selection", &tau, zero, 3, tables, gate)?,
        Some(product) => {
            let tables = tables.map(|mut tables| {
                let known = session.known().expect("the prover's side");
                tables.extend(product.iter().map(|source| known.entries(source)));
                tables
            });
            sumcheck(
                &mut session,
                "selection",
                &tau,
                zero,
                3,
                tables,
                Sampled(gate),
            )?
        }
    };
    let active = prefix(&reduced.point, capacity);
    let places = active * (shift - Fr::ONE) - prefix_numbers(&reduced.point, capacity);
    let finals = reduced.finals.as_ref().map(|f| {
        let noised = (f[1] - places) * shift.inverse().expect("a power of two");
        [f[0], noised, f[2], f[0] * (f[1] - threshold), f[0].square()]
    });
    let v = session.send("selection", 5, finals.as_ref().map(|f| &f[..]))?;
    let e = |i: usize| Expr::from(v[i]);
    let above = e(1) * shift + places.into() - least;
    session.constrain_product("selection", e(0), above.clone(), e(3));
    session.constrain_product("selected rows", e(0), e(0), e(4));
    let compare = e(3) * Fr::from(2u8) - above - 1u64.into() + e(0) - e(2);
    let mut sum = compare * active + (e(4) - e(0) * active) * chi;
    let mut claimed: Vec<_> = sources.into_iter().zip(v).collect();
    if let Some(product) = product {
        let finals = reduced.finals.map(|f| [f[4], f[5], f[6], f[4] * f[5]]);
        let v = session.send("kept rows", 4, finals.as_ref().map(|f| &f[..]))?;
        let e = |i: usize| Expr::from(v[i]);
        session.constrain_product("kept rows", e(0), e(1), e(3));
        sum += &((e(3) - e(2)) * chi.square());
        claimed.extend(product.into_iter().zip(v));
    }
    session.constrain("selection", sum - reduced.claim);
    for (source, var) in claimed {
        session.claim(Weight::evaluation(&reduced.point), source, var.into());
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

/// Selection + chi^2 (t_4 t_5 - t_6): of the tables behind its own, the last is the product of the other two.
#[derive(Clone, Copy)]
struct Sampled(Selection);

impl Gate for Sampled {
    type Tables<V: Copy> = [V; 7];
    type Nodes<W: Copy> = [W; 3];

    fn constants(&self) -> Vec<Fr> {
        let mut constants = self.0.constants();
        constants.push(self.0.chi.square());
        constants
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, c: &[L::V], t: &[L::V]) -> L::V {
        let selection = self.0.at(l, c, t);
        let lacking = l.weak(l.sub(l.mul(t[4], t[5]), t[6]));
        l.weak(l.add(selection, l.mul(c[3], lacking)))
    }
}

#[cfg(test)]
pub(crate) mod tests;
