//! The proof of one answer: every score, what certificates say of noise and of kept positions, the selection.
//! `docs/scan/query.md`.
use std::sync::Arc;

use ark_ff::Field;

use crate::asked::{
    component_segments, score_rows, score_variables, send_query, vector_list, Asked,
};
use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{Fr, G1Affine};
use crate::link::{Link, LinkSecret};
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{prefix, prefix_numbers, Weight};
use crate::nibbles::{NIBBLE_VARIABLES, TAG_VECTOR};
use crate::numbers::{log2_ceil, power_of_two};
use crate::poseidon::{permutations, Call};
use crate::prover::Blindings;
use crate::ranges::{first_in_range, limbs, range_table, LIMB_BITS, TAG_RANGE};
use crate::session::{Column, ColumnId, Opening, Session};
use crate::sumcheck::{sumcheck, Gate};

pub mod statement;

use statement::*;
pub use statement::{QueryStatement, LIMITS, MAX_LISTED, RULES};

/// What only a prover has, all of it before any challenge.
pub struct Private<'a> {
    pub asked: Asked<'a>,
    pub scores: Arc<Opening>,
    /// What opens the certificates' columns: of noise, and of kept positions.
    pub certified: [Option<Arc<Opening>>; 2],
    /// The columns' values, in their order.
    pub columns: Vec<Vec<i64>>,
    /// The list's salt, its positions, their noised scores, and limbs of what lies between their keys.
    pub listed: Vec<Fr>,
    pub index: Blindings<'a>,
}

/// Reads a proof: the equation that has to hold, over the statement's index points.
pub fn check_query<'p, V: Verifies<'p>>(
    statement: &QueryStatement,
    proof: &'p [u8],
) -> Result<Equation> {
    statement.check()?;
    let session: Session<V> = Session::verifier(
        statement.transcript(),
        statement.index.layout.row_variables,
        proof,
    );
    Ok(answer_protocol(session, statement, None)?.into())
}

/// Verifies an answer's proof.
pub fn verify_query<'p, V: Verifies<'p>>(
    statement: &QueryStatement,
    proof: &'p [u8],
) -> Result<()> {
    if check_query::<V>(statement, proof)?.holds::<V::Engine>(&statement.index.points) {
        Ok(())
    } else {
        Err(Error::Rejected)
    }
}

/// The protocol, for both parties.
pub fn answer_protocol<C: Channel>(
    mut session: Session<C>,
    statement: &QueryStatement,
    mut secret: Option<Private>,
) -> Result<C::Closed> {
    let layout = statement.index.layout;
    let (n, capacity, dimension) = (layout.variables, layout.capacity, statement.index.dimension);
    let window = statement.check()?;
    let key_limbs = statement.key_limbs();

    // q and its salt, once, before any challenge.
    let asked = secret.as_ref().map(|s| s.asked);
    let (query, blinding) = send_query(&mut session, asked)?;

    // Columns: the scores have no commitment of their own, noise and kept positions have their certificates'.
    let scores = session.add_column(Column {
        variables: n,
        rows: Vec::new(),
        opening: secret.as_ref().map(|s| Arc::clone(&s.scores)),
    });
    let mut certified = |rows: &[G1Affine], k: usize| {
        let opening = secret.as_ref().and_then(|s| s.certified[k].clone());
        session.add_column(Column {
            variables: n,
            rows: rows.to_vec(),
            opening,
        })
    };
    let noise = (!statement.gains.is_empty()).then(|| certified(statement.noise, 0));
    let kept = statement.kept.map(|rows| certified(rows, 1));
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
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let ids = session.commit_bounded("answer columns", &bounds.in_order(), values)?;
    let ids = Columns::named(ids, kept.is_some(), key_limbs);

    // The listed positions, their noised scores, and what lies between their keys.
    let k = statement.listed;
    let values = secret.as_ref().map(|s| &s.listed[..]);
    let vars = session.send("listed", 1 + 2 * k + (k - 1) * key_limbs, values)?;
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
    let gate = Gate::Selection { threshold, chi };
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
            let gate = Gate::Sampled { threshold, chi };
            sumcheck(&mut session, "selection", &tau, zero, 3, tables, gate)?
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
        queries: vec![(query, Fr::ONE)],
        secret: secret.as_ref().map(|s| LinkSecret {
            queries: vec![(s.asked.components, Fr::ONE)],
            salt: s.asked.salt,
            blinding,
            index: s.index,
        }),
        claims,
    };
    session.close(Some(link))
}
