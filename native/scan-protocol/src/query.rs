//! The proof of answers of one tenant: for each record every score, the noise and the sampled positions of earlier proofs, and
//! the selection. `docs/scan/query.md`; `docs/scan/batch.md` for the parts that several records share: tables, sumchecks,
//! permutations, the link to the index and the opening.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_relation::window::ScoreWindow;

use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Expr;
use crate::group::{Fr, G1Affine};
use crate::hidden_query::{
    component_segment, nibble_table, score_rows, score_variables, send_query, vector_lists,
    HiddenQuery,
};
use crate::index_link::{IndexLink, IndexLinkSecret};
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{prefix, prefix_numbers, Weight};
use crate::nibbles::{NIBBLE_VARIABLES, TAG_VECTOR};
use crate::numbers::{log2_ceil, power_of_two};
use crate::poseidon::{permutations, Call};
use crate::prover::Blindings;
use crate::ranges::{first_in_range, limbs, range_table, LIMB_BITS, TAG_RANGE};
use crate::session::{Column, ColumnId, Opening, Session};
use crate::sumcheck::{sumcheck, Gate};
use crate::words::{record_weights, weigh};

pub mod statement;

use statement::*;
pub use statement::{QueryStatement, MAX_LISTED, RULES};

/// The prover's private values, all fixed before the first challenge.
pub struct Private<'a> {
    pub hidden_queries: Vec<HiddenQuery<'a>>,
    pub scores: Vec<Arc<Opening>>,
    /// The openings of the noise proof's columns; empty without noise.
    pub noise: Vec<Arc<Opening>>,
    /// The opening of the column of sampled positions, of a sampled tenant.
    pub sample: Option<Arc<Opening>>,
    /// The columns' values, in their order.
    pub columns: Vec<Vec<i64>>,
    /// Record by record: the list's salt, its positions, their noised scores, and limbs of the differences between their keys.
    pub listed: Vec<Fr>,
    pub index: Blindings<'a>,
}

/// Reads a proof: the equation that has to hold, over the statement's index points.
pub fn check_query<'p, V: Verifies<'p>>(
    statement: &QueryStatement,
    proof: &'p [u8],
) -> Result<Equation> {
    statement.check()?;
    let session: Session<V> =
        Session::verifier(statement.transcript(), statement.row_variables(), proof);
    Ok(answer_protocol(session, statement, None)?.into())
}

/// Verifies a proof.
pub fn verify_query<'p, V: Verifies<'p>>(
    statement: &QueryStatement,
    proof: &'p [u8],
) -> Result<()> {
    check_query::<V>(statement, proof)?.verify::<V::Engine>(&statement.index.points)
}

/// The hidden values of one record's list.
pub(crate) struct Listed {
    pub(crate) salt: Expr,
    pub(crate) positions: Vec<Expr>,
    pub(crate) noised: Vec<Expr>,
    order: Vec<Expr>,
    /// The key of the last one.
    minimum: Expr,
}

/// The columns of a run. The scores and the columns of earlier proofs precede the run's own.
pub(crate) struct Committed {
    pub(crate) scores: Vec<ColumnId>,
    /// One for each record; empty without noise.
    pub(crate) noise: Vec<ColumnId>,
    /// One for each record: the positions that score; empty if all positions do.
    pub(crate) sample: Vec<ColumnId>,
    pub(crate) own: Columns<ColumnId>,
}

impl Committed {
    /// The quantised score of a record's positions: 0 at a position outside the sample.
    fn scored(&self, record: usize) -> ColumnId {
        let columns = &self.own.records[record];
        columns.scored.unwrap_or(columns.quantised)
    }

    fn noised(&self, record: usize) -> Vec<(ColumnId, Fr)> {
        let scored = self.scored(record);
        let both = [Some(&scored), self.noise.get(record)];
        both.into_iter()
            .flatten()
            .map(|id| (*id, Fr::ONE))
            .collect()
    }
}

/// The protocol, for both parties.
pub fn answer_protocol<C: Channel>(
    mut session: Session<C>,
    statement: &QueryStatement,
    mut secret: Option<Private>,
) -> Result<C::Closed> {
    let window = statement.check()?;
    // Each q and its salt, once, before any challenge.
    let hidden_queries: Option<Vec<HiddenQuery>> =
        secret.as_ref().map(|s| s.hidden_queries.clone());
    let hidden_query_of = |record: usize| hidden_queries.as_ref().map(|queries| queries[record]);
    let (mut queries, mut blindings) = (Vec::new(), Vec::new());
    for record in 0..statement.records.len() {
        let (query, blinding) = send_query(&mut session, hidden_query_of(record))?;
        queries.push(query);
        blindings.push(blinding);
    }
    let columns = commit_columns(&mut session, statement, secret.as_mut())?;
    let listed = secret.as_ref().map(|s| &s.listed[..]);
    let lists = send_lists(&mut session, statement, listed)?;

    // cq and htopk.
    let (count, dimension) = (statement.records.len(), statement.index.dimension);
    let all = hidden_queries.as_deref();
    let (mut claims, vectors) = vector_lists(&mut session, dimension, count, all)?;
    let mut calls = Vec::new();
    for ((list, vector), [cq, htopk]) in lists.iter().zip(vectors).zip(&statement.records) {
        let mut positions = vec![list.salt.clone(), (statement.listed as u64).into()];
        positions.extend(list.positions.iter().cloned());
        calls.extend(Call::list(&mut session, TAG_VECTOR, &vector, *cq)?);
        calls.extend(Call::list(&mut session, TAG_TOPK, &positions, *htopk)?);
    }

    let segments = segments(statement, &window, &columns, &lists, hidden_query_of);
    // All of one length, so that their weights are the same.
    let (weights, vars): (Vec<_>, Vec<_>) = lookups(&mut session, segments)?.into_iter().unzip();
    claims.extend(weights.into_iter().next().map(|weights| (weights, vars)));

    select(&mut session, statement, &columns, &lists)?;
    permutations(&mut session, None, calls)?;
    session.close(Some(IndexLink {
        index: statement.index,
        queries,
        secret: secret.map(|s| IndexLinkSecret {
            hidden_queries: s.hidden_queries,
            blindings,
            index: s.index,
        }),
        claims,
        scores: columns.scores,
    }))
}

/// Adds the columns with earlier commitments, and commits to the run's own columns. The scores have no commitments; the
/// commitments to noise and to sampled positions come from their proofs.
fn commit_columns<C: Channel>(
    session: &mut Session<C>,
    statement: &QueryStatement,
    mut secret: Option<&mut Private>,
) -> Result<Committed> {
    let layout = statement.index.layout;
    let (capacity, dimension) = (layout.capacity, statement.index.dimension);
    let (count, key_limbs) = (statement.records.len(), statement.key_limbs());
    let mut add = |rows: &[G1Affine], opening: Option<&Arc<Opening>>| {
        session.add_column(Column {
            variables: layout.variables,
            rows: rows.to_vec(),
            opening: opening.cloned(),
        })
    };
    let (mut scores, mut noise) = (Vec::new(), Vec::new());
    for record in 0..count {
        scores.push(add(&[], secret.as_ref().map(|s| &s.scores[record])));
        if let Some(rows) = statement.noise.get(record) {
            noise.push(add(rows, secret.as_ref().map(|s| &s.noise[record])));
        }
    }
    let opening = secret.as_ref().and_then(|s| s.sample.as_ref());
    let sample: Vec<ColumnId> = statement
        .sample
        .iter()
        .map(|rows| add(rows, opening))
        .collect();

    let counted = |variables: usize, maximum: usize| (1 << variables, Bound::up_to(maximum));
    let steps = (capacity, Bound::up_to(statement.lattice as usize));
    let of_record = RecordColumns {
        quantised: steps,
        scored: sample.first().map(|_| steps),
        selected: (capacity, Bound::Unsigned(1)),
        distance: vec![(capacity, Bound::Unsigned(LIMB_BITS)); key_limbs],
    };
    let in_range = (capacity + statement.listed) * key_limbs;
    let bounds = Columns {
        records: vec![of_record; count],
        score_rows: counted(score_variables(dimension), count * capacity),
        range: counted(LIMB_BITS, count * in_range),
        nibbles: counted(NIBBLE_VARIABLES, count * dimension.next_power_of_two()),
    };
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let ids = session.commit_bounded("answer columns", &bounds.in_order(), values)?;
    Ok(Committed {
        scores,
        noise,
        own: Columns::named(ids, count, !sample.is_empty(), key_limbs),
        sample,
    })
}

/// Sends each record's list: positions, noised scores and the differences between their keys. The keys fall strictly, so no
/// position is listed twice. Keys and limbs are far below r, see [`key_bits`].
pub(crate) fn send_lists<C: Channel>(
    session: &mut Session<C>,
    statement: &QueryStatement,
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
            minimum: keys[k - 1].clone(),
        });
    }
    Ok(lists)
}

/// The lookups: each score with its step, each listed position with its noised score, components and limbs.
fn segments<'a>(
    statement: &QueryStatement,
    window: &ScoreWindow,
    columns: &Committed,
    lists: &[Listed],
    hidden_query_of: impl Fn(usize) -> Option<HiddenQuery<'a>>,
) -> Vec<Segment> {
    let layout = statement.index.layout;
    let (capacity, dimension) = (layout.capacity, statement.index.dimension);
    let one = |id: ColumnId| Entry::Columns(vec![(id, Fr::ONE)]);
    let table = score_rows(dimension);
    let steps: Vec<i64> = table.iter().map(|s| window.quantise(*s as i32)).collect();
    let score_table = Segment {
        variables: score_variables(dimension),
        tag: TAG_SCORE,
        entries: vec![Entry::Public(table), Entry::Public(steps)],
        count: Count::Table(columns.own.score_rows),
    };
    let mut segments = vec![
        score_table,
        nibble_table(columns.own.nibbles),
        range_table(columns.own.range),
    ];
    for (record, (own, list)) in columns.own.records.iter().zip(lists).enumerate() {
        segments.push(Segment {
            variables: layout.variables,
            tag: TAG_SCORE,
            entries: vec![one(columns.scores[record]), one(own.quantised)],
            count: Count::First(capacity),
        });
        segments.extend(of_list(
            statement,
            columns,
            record,
            list,
            hidden_query_of(record),
        ));
    }
    segments
}

/// The lookups of one record's list, except those of the scores.
pub(crate) fn of_list(
    statement: &QueryStatement,
    columns: &Committed,
    record: usize,
    list: &Listed,
    hidden_query: Option<HiddenQuery>,
) -> Vec<Segment> {
    let layout = statement.index.layout;
    let (capacity, k) = (layout.capacity, statement.listed);
    let own = &columns.own.records[record];
    // A record's own table of positions and noised scores has its own tag, so no list can use another record's rows.
    let tag = TAG_SELECT + record as u64;
    let mut segments = vec![
        Segment {
            variables: layout.variables,
            tag,
            entries: vec![Entry::Row, Entry::Columns(columns.noised(record))],
            count: Count::TableFirst(own.selected, capacity),
        },
        Segment {
            variables: log2_ceil(k),
            tag,
            entries: vec![
                Entry::Hidden(list.positions.clone()),
                Entry::Hidden(list.noised.clone()),
            ],
            count: Count::First(k),
        },
        component_segment(statement.index.dimension, hidden_query),
    ];
    let distance = own.distance.iter();
    segments.extend(distance.map(|id| first_in_range(*id, capacity)));
    if !list.order.is_empty() {
        segments.push(Segment {
            variables: log2_ceil(list.order.len()),
            tag: TAG_RANGE,
            count: Count::First(list.order.len()),
            entries: vec![Entry::Hidden(list.order.clone())],
        });
    }
    segments
}

/// Claims of each record that selected rows have keys from its least listed one upwards, the others below it, and none lies
/// beyond the capacity. Position by position of all records, so that the tables end where the positions do.
pub(crate) fn select<C: Channel>(
    session: &mut Session<C>,
    statement: &QueryStatement,
    columns: &Committed,
    lists: &[Listed],
) -> Result<()> {
    let layout = statement.index.layout;
    let (n, capacity) = (layout.variables, layout.capacity);
    let (count, shift) = (lists.len(), power_of_two(n));
    let apart = log2_ceil(count);
    let tau = session.challenges("selection", apart + n);
    let chi = session.challenge("selected rows");
    let sources = |record: usize| -> Vec<Vec<(ColumnId, Fr)>> {
        let own = &columns.own.records[record];
        let mut sources = vec![
            vec![(own.selected, Fr::ONE)],
            columns.noised(record),
            limbs(&own.distance, Fr::ONE),
        ];
        // For a sampled tenant: sampled times quantised is the position's score, by the same sum.
        if let Some(sample) = columns.sample.get(record) {
            let product = [*sample, own.quantised, columns.scored(record)];
            sources.extend(product.map(|id| vec![(id, Fr::ONE)]));
        }
        sources
    };
    let of_source = |k: usize| (0..count).map(move |record| sources(record)[k].clone());
    let tables = session.known().map(|known| {
        let table = |k| known.interleaved(of_source(k).collect());
        let mut tables: Vec<Vec<Fr>> = (0..3).map(table).collect();
        let mut active = vec![Fr::ZERO; tables[0].len()];
        let minimum: Vec<Fr> = lists
            .iter()
            .map(|list| known.value(&list.minimum))
            .collect();
        let rows = tables[1].chunks_mut(1 << apart);
        for (p, (keys, active)) in rows.zip(active.chunks_mut(1 << apart)).enumerate() {
            let place = shift - Fr::ONE - Fr::from(p as u64);
            for ((y, s), minimum) in keys.iter_mut().zip(active).zip(&minimum) {
                *y = *y * shift + place - minimum;
                *s = Fr::ONE;
            }
        }
        tables.push(active);
        tables.extend((3..sources(0).len()).map(table));
        tables
    });
    let gate = match columns.sample.is_empty() {
        true => Gate::Selection { chi },
        false => Gate::Sampled { chi },
    };
    let zero = Expr::zero();
    let reduced = sumcheck(session, "selection", &tau, zero, 3, tables, gate)?;
    let (record, place) = reduced.point.split_at(apart);
    let weights = record_weights(record, count);
    let every: Fr = weights.iter().sum();
    let within = prefix(place, capacity);
    let active = within * every;
    let places = active * (shift - Fr::ONE) - prefix_numbers(place, capacity) * every;
    let weighed = lists.iter().zip(weights.iter());
    let minimum = Expr::combination(weighed.map(|(list, e)| (&list.minimum, within * e)));
    let finals = reduced.finals.as_ref().zip(session.known());
    let finals = finals.map(|(f, known)| {
        let noised = f[1] - places + known.value(&minimum);
        let noised = noised * shift.inverse().expect("a power of two");
        [f[0], noised, f[2], f[0] * f[1], f[0].square()]
    });
    let v = session.send("selection", 5, finals.as_ref().map(|f| &f[..]))?;
    let e = |i: usize| Expr::from(v[i]);
    let above = e(1) * shift + places.into() - minimum;
    session.constrain_product("selection", e(0), above.clone(), e(3));
    session.constrain_product("selected rows", e(0), e(0), e(4));
    let compare = e(3) * Fr::from(2u8) - above - 1u64.into() + e(0) - e(2);
    let mut sum = compare * active + (e(4) - e(0) * active) * chi;
    let mut claimed = v[..3].to_vec();
    if !columns.sample.is_empty() {
        let finals = reduced.finals.map(|f| [f[4], f[5], f[6], f[4] * f[5]]);
        let v = session.send("kept rows", 4, finals.as_ref().map(|f| &f[..]))?;
        let e = |i: usize| Expr::from(v[i]);
        session.constrain_product("kept rows", e(0), e(1), e(3));
        sum += &((e(3) - e(2)) * chi.square());
        claimed.extend(&v[..3]);
    }
    session.constrain("selection", sum - reduced.claim);
    for (k, var) in claimed.into_iter().enumerate() {
        let source = weigh(&weights, of_source(k));
        session.claim(Weight::evaluation(place), source, var.into());
    }
    Ok(())
}
