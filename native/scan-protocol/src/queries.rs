//! The proof of several answers of one tenant at once: `docs/scan/together.md`.
//!
//! The claims are those of [`crate::query`] for each record. Tables, sumchecks, permutations, the link to the index and the
//! opening are the records' common ones.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};

use crate::asked::{joined_lists, nibble_table, score_rows, score_variables, send_query, Asked};
use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::Fr;
use crate::link::{Links, LinksSecret};
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{eq_table, prefix, prefix_numbers, Weight};
use crate::nibbles::{NIBBLE_VARIABLES, TAG_NIBBLE, TAG_VECTOR};
use crate::numbers::{log2_ceil, power_of_two};
use crate::poseidon::{permutations, Call};
use crate::prover::Blindings;
use crate::query::statement::{TAG_SCORE, TAG_TOPK};
use crate::ranges::{first_in_range, limbs, range_table, LIMB_BITS, TAG_RANGE};
use crate::session::{Column, ColumnId, Opening, Session};
use crate::sumcheck::{sumcheck, Gate};
use crate::words::weigh;

pub mod statement;

use statement::*;
pub use statement::{QueriesStatement, RULES};

/// What only a prover has, all of it before any challenge; of each record what [`crate::query::Private`] has.
pub struct Private<'a> {
    pub asked: Vec<Asked<'a>>,
    pub scores: Vec<Arc<Opening>>,
    /// What opens the certificate's columns; none where there is no noise.
    pub noise: Vec<Arc<Opening>>,
    /// The columns' values, in their order.
    pub columns: Vec<Vec<i64>>,
    /// Record by record what is listed.
    pub listed: Vec<Fr>,
    pub index: Blindings<'a>,
}

/// Reads a proof: the equation that has to hold, over the statement's index points.
pub fn check_queries<'p, V: Verifies<'p>>(
    statement: &QueriesStatement,
    proof: &'p [u8],
) -> Result<Equation> {
    statement.check()?;
    let session: Session<V> =
        Session::verifier(statement.transcript(), statement.row_variables(), proof);
    Ok(answers_protocol(session, statement, None)?.into())
}

/// Verifies a proof.
pub fn verify_queries<'p, V: Verifies<'p>>(
    statement: &QueriesStatement,
    proof: &'p [u8],
) -> Result<()> {
    if check_queries::<V>(statement, proof)?.holds::<V::Engine>(&statement.index.points) {
        Ok(())
    } else {
        Err(Error::Rejected)
    }
}

/// The hidden values of one record's list.
struct Listed {
    salt: Expr,
    positions: Vec<Expr>,
    noised: Vec<Expr>,
    order: Vec<Expr>,
    /// The key of the last one.
    least: Expr,
}

/// Sends each record's list: positions, noised scores and what lies between their keys, which fall strictly.
fn send_lists<C: Channel>(
    session: &mut Session<C>,
    statement: &QueriesStatement,
    values: Option<&[Fr]>,
) -> Result<Vec<Listed>> {
    let (k, key_limbs) = (statement.listed, statement.key_limbs());
    let each = 1 + 2 * k + (k - 1) * key_limbs;
    let vars = session.send("listed", each * statement.records.len(), values)?;
    let shift = power_of_two(statement.index.layout.variables);
    let mut lists = Vec::new();
    for run in vars.chunks(each) {
        let exprs: Vec<Expr> = run.iter().map(|v| Expr::from(*v)).collect();
        let (positions, rest) = exprs[1..].split_at(k);
        let (noised, order) = rest.split_at(k);
        let key =
            |(p, y): (&Expr, &Expr)| y.clone() * shift + Expr::from(shift - Fr::ONE) - p.clone();
        let keys: Vec<Expr> = positions.iter().zip(noised).map(key).collect();
        for (pair, run) in keys.windows(2).zip(order.chunks(key_limbs)) {
            let distance =
                Expr::combination(run.iter().zip((0..).map(|i| power_of_two(LIMB_BITS * i))));
            session.constrain(
                "order of the list",
                pair[0].clone() - pair[1].clone() - 1u64.into() - distance,
            );
        }
        lists.push(Listed {
            salt: exprs[0].clone(),
            positions: positions.to_vec(),
            noised: noised.to_vec(),
            order: order.to_vec(),
            least: keys[k - 1].clone(),
        });
    }
    Ok(lists)
}

/// The protocol, for both parties.
pub fn answers_protocol<C: Channel>(
    mut session: Session<C>,
    statement: &QueriesStatement,
    mut secret: Option<Private>,
) -> Result<C::Closed> {
    let layout = statement.index.layout;
    let (n, capacity, dimension) = (layout.variables, layout.capacity, statement.index.dimension);
    let window = statement.check()?;
    let (count, key_limbs, k) = (
        statement.records.len(),
        statement.key_limbs(),
        statement.listed,
    );

    // Each q and its salt, once, before any challenge.
    let asked: Option<Vec<Asked>> = secret.as_ref().map(|s| s.asked.clone());
    let asked_by = |record: usize| asked.as_ref().map(|asked| asked[record]);
    let mut queries = Vec::new();
    let mut blindings = Vec::new();
    for record in 0..count {
        let (query, blinding) = send_query(&mut session, asked_by(record))?;
        queries.push(query);
        blindings.push(blinding);
    }

    // Columns: the scores have no commitments of their own, noise has its certificate's.
    let mut add = |rows: &[_], opening: Option<&Arc<Opening>>| {
        session.add_column(Column {
            variables: n,
            rows: rows.to_vec(),
            opening: opening.cloned(),
        })
    };
    let mut scores = Vec::new();
    let mut noise = Vec::new();
    for record in 0..count {
        scores.push(add(&[], secret.as_ref().map(|s| &s.scores[record])));
        if let Some(rows) = statement.noise.get(record) {
            noise.push(add(rows, secret.as_ref().map(|s| &s.noise[record])));
        }
    }
    let score_variables = score_variables(dimension);
    let counted = |variables: usize, most: usize| (1 << variables, Bound::up_to(most));
    let of_record = RecordColumns {
        quantised: (capacity, Bound::up_to(statement.lattice as usize)),
        selected: (capacity, Bound::Unsigned(1)),
        distance: vec![(capacity, Bound::Unsigned(LIMB_BITS)); key_limbs],
    };
    let bounds = Columns {
        records: vec![of_record; count],
        score_rows: counted(score_variables, count * capacity),
        range: counted(LIMB_BITS, count * (capacity + k) * key_limbs),
        nibbles: counted(NIBBLE_VARIABLES, count * dimension.next_power_of_two()),
    };
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let ids = session.commit_bounded("answer columns", &bounds.in_order(), values)?;
    let ids = Columns::named(ids, count, key_limbs);
    let lists = send_lists(
        &mut session,
        statement,
        secret.as_ref().map(|s| &s.listed[..]),
    )?;

    // cq and htopk.
    let (mut claims, vectors) = joined_lists(&mut session, dimension, count, asked.as_deref())?;
    let mut calls = Vec::new();
    for ((list, vector), [cq, htopk]) in lists.iter().zip(vectors).zip(&statement.records) {
        let mut positions = vec![list.salt.clone(), (k as u64).into()];
        positions.extend(list.positions.iter().cloned());
        calls.extend(Call::list(&mut session, TAG_VECTOR, &vector, *cq)?);
        calls.extend(Call::list(&mut session, TAG_TOPK, &positions, *htopk)?);
    }

    // Lookups. A record's own table of positions and noised scores has its own tag.
    let one = |id: ColumnId| Entry::Columns(vec![(id, Fr::ONE)]);
    let noised = |record: usize| -> Vec<(ColumnId, Fr)> {
        let scored = Some(&ids.records[record].quantised);
        let both = scored.into_iter().chain(noise.get(record));
        both.map(|id| (*id, Fr::ONE)).collect()
    };
    let table = score_rows(dimension);
    let steps: Vec<i64> = table.iter().map(|s| window.quantise(*s as i32)).collect();
    let mut segments = vec![
        Segment {
            variables: score_variables,
            tag: TAG_SCORE,
            entries: vec![Entry::Public(table), Entry::Public(steps)],
            count: Count::Table(ids.score_rows),
        },
        nibble_table(ids.nibbles),
        range_table(ids.range),
    ];
    for (record, (columns, list)) in ids.records.iter().zip(&lists).enumerate() {
        let components = |asked: Asked| asked.components.iter().map(|v| i64::from(*v)).collect();
        segments.extend([
            Segment {
                variables: n,
                tag: TAG_SCORE,
                entries: vec![one(scores[record]), one(columns.quantised)],
                count: Count::First(capacity),
            },
            Segment {
                variables: n,
                tag: TAG_SELECTED + record as u64,
                entries: vec![Entry::Row, Entry::Columns(noised(record))],
                count: Count::TableFirst(columns.selected, capacity),
            },
            Segment {
                variables: log2_ceil(k),
                tag: TAG_SELECTED + record as u64,
                entries: vec![
                    Entry::Hidden(list.positions.clone()),
                    Entry::Hidden(list.noised.clone()),
                ],
                count: Count::First(k),
            },
            Segment {
                variables: log2_ceil(dimension),
                tag: TAG_NIBBLE,
                entries: vec![Entry::Asked {
                    dimension,
                    values: asked_by(record).map(components),
                }],
                count: Count::Once,
            },
        ]);
        let distance = columns.distance.iter();
        segments.extend(distance.map(|id| first_in_range(*id, capacity)));
        if !list.order.is_empty() {
            segments.push(Segment {
                variables: log2_ceil(list.order.len()),
                tag: TAG_RANGE,
                count: Count::First(list.order.len()),
                entries: vec![Entry::Hidden(list.order.clone())],
            });
        }
    }
    // All of one length, so that their weights are the same.
    let (weights, vars): (Vec<_>, Vec<_>) = lookups(&mut session, segments)?.into_iter().unzip();
    claims.extend(weights.into_iter().next().map(|weights| (weights, vars)));

    select(&mut session, statement, &ids, noised, &lists)?;
    permutations(&mut session, None, calls)?;
    session.close_together(Links {
        index: statement.index,
        queries,
        secret: secret.map(|s| LinksSecret {
            asked: s.asked,
            blindings,
            index: s.index,
        }),
        claims,
        scores,
    })
}

/// Claims of each record that selected rows have keys from its least listed one upwards, the others below it, and none lies
/// beyond the capacity. Position by position of all records, so that the tables end where the positions do.
fn select<C: Channel>(
    session: &mut Session<C>,
    statement: &QueriesStatement,
    ids: &Columns<ColumnId>,
    noised: impl Fn(usize) -> Vec<(ColumnId, Fr)>,
    lists: &[Listed],
) -> Result<()> {
    let (n, capacity) = (
        statement.index.layout.variables,
        statement.index.layout.capacity,
    );
    let (count, shift) = (lists.len(), power_of_two(n));
    let apart = log2_ceil(count);
    let tau = session.challenges("selection", apart + n);
    let chi = session.challenge("selected rows");
    let sources = |record: usize| -> [Vec<(ColumnId, Fr)>; 3] {
        let columns = &ids.records[record];
        [
            vec![(columns.selected, Fr::ONE)],
            noised(record),
            limbs(&columns.distance, Fr::ONE),
        ]
    };
    let of_source = |k: usize| (0..count).map(move |record| sources(record)[k].clone());
    let tables = session.known().map(|known| {
        let table = |k| known.interleaved(of_source(k).collect());
        let mut tables: Vec<Vec<Fr>> = (0..3).map(table).collect();
        let mut active = vec![Fr::ZERO; tables[0].len()];
        let least: Vec<Fr> = lists.iter().map(|list| known.value(&list.least)).collect();
        let rows = tables[1].chunks_mut(1 << apart);
        for (p, (keys, active)) in rows.zip(active.chunks_mut(1 << apart)).enumerate() {
            let place = shift - Fr::ONE - Fr::from(p as u64);
            for ((y, s), least) in keys.iter_mut().zip(active).zip(&least) {
                *y = *y * shift + place - least;
                *s = Fr::ONE;
            }
        }
        tables.push(active);
        tables
    });
    // The tables' keys are already less the least listed one's.
    let threshold = Fr::ZERO;
    let gate = Gate::Selection { threshold, chi };
    let zero = Expr::zero();
    let reduced = sumcheck(session, "selection", &tau, zero, 3, tables, gate)?;
    let (record, place) = reduced.point.split_at(apart);
    let mut weights = eq_table(record);
    weights.truncate(count);
    let every: Fr = weights.iter().sum();
    let within = prefix(place, capacity);
    let active = within * every;
    let places = active * (shift - Fr::ONE) - prefix_numbers(place, capacity) * every;
    let of_lists = lists.iter().map(|list| &list.least).zip(weights.iter());
    let least = Expr::combination(of_lists.map(|(least, e)| (least, within * e)));
    let finals = reduced.finals.as_ref().zip(session.known());
    let finals = finals.map(|(f, known)| {
        let noised = f[1] - places + known.value(&least);
        let noised = noised * shift.inverse().expect("a power of two");
        [f[0], noised, f[2], f[0] * f[1], f[0].square()]
    });
    let v = session.send("selection", 5, finals.as_ref().map(|f| &f[..]))?;
    let e = |i: usize| Expr::from(v[i]);
    let above = e(1) * shift + places.into() - least;
    session.constrain_product("selection", e(0), above.clone(), e(3));
    session.constrain_product("selected rows", e(0), e(0), e(4));
    let compare = e(3) * Fr::from(2u8) - above - 1u64.into() + e(0) - e(2);
    let sum = compare * active + (e(4) - e(0) * active) * chi;
    session.constrain("selection", sum - reduced.claim);
    for (k, var) in v.iter().take(3).enumerate() {
        let source = weigh(&weights, of_source(k));
        session.claim(Weight::evaluation(place), source, (*var).into());
    }
    Ok(())
}
