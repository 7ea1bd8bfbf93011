//! The proof of one list by randomized response: the winners, the listed winners, and the disclosed set after the record.
//! `docs/scan/randomized-response.md`.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};

use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::engine::Engine;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::{bases, Fr};
use crate::hidden_query::{
    component_segment, nibble_table, score_rows, score_variables, send_query, vector_lists,
    HiddenQuery,
};
use crate::index::Layout;
use crate::index_link::{IndexLink, IndexLinkSecret};
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{eq_table, Weight};
use crate::nibbles::{NIBBLE_VARIABLES, TAG_VECTOR};
use crate::numbers::{half, log2_ceil, power_of_two};
use crate::poseidon::{permutations, Call};
use crate::prover::Blindings;
use crate::session::{Column, Opening, Session};
use crate::sumcheck::{sumcheck, Gate};

pub mod statement;

use statement::*;
pub use statement::{RandomizedResponseStatement, LIMITS, MAX_LISTED, RULES};

/// The prover's private values, all fixed before the first challenge.
pub struct Private<'a> {
    pub hidden_query: HiddenQuery<'a>,
    pub scores: Arc<Opening>,
    /// In the order of [`RandomizedResponseStatement::columns`].
    pub openings: [Arc<Opening>; 4],
    /// The columns' values, in their order.
    pub columns: Vec<Vec<i64>>,
    /// In the order in which they are sent.
    pub hidden: &'a [Fr],
    /// 1 up to the position at which the list ends.
    pub within: &'a [i64],
    pub index: Blindings<'a>,
}

/// The disclosed set of an account before its first record: no position, under the blinding 1 in every row. Every party can
/// compute it.
///
/// ```
/// use ragaudit_scan_protocol::engine::Plain;
/// use ragaudit_scan_protocol::group::bases;
/// use ragaudit_scan_protocol::index::Layout;
/// use ragaudit_scan_protocol::randomized_response::nothing_disclosed;
///
/// let column = nothing_disclosed::<Plain>(Layout::new(100)?);
/// assert_eq!(column.rows, [bases::<Plain>().h]);
/// # Ok::<(), ragaudit_scan_protocol::Error>(())
/// ```
pub fn nothing_disclosed<E: Engine>(layout: Layout) -> Column {
    let rows = layout.rows();
    Column {
        variables: layout.variables,
        rows: vec![bases::<E>().h; rows],
        opening: Some(Arc::new(Opening {
            values: vec![0; layout.capacity],
            blindings: vec![Fr::ONE; rows],
        })),
    }
}

/// Reads a proof: the equation that has to hold, over the statement's index points.
pub fn check_randomized_response<'p, V: Verifies<'p>>(
    statement: &RandomizedResponseStatement,
    proof: &'p [u8],
) -> Result<Equation> {
    statement.check()?;
    let row_variables = statement.index.layout.row_variables;
    let session: Session<V> = Session::verifier(statement.transcript(), row_variables, proof);
    Ok(randomized_response_protocol(session, statement, None)?.into())
}

/// The hidden values of a list, sent before any challenge.
struct Hidden {
    salt: Expr,
    /// The bits of the positions, packed as htopk has them.
    packed: Vec<Expr>,
    /// How many positions are listed.
    count: Expr,
    /// Bits of the position at which the list ends.
    last: Vec<Var>,
    /// Bits of the difference between the maximum length and the list's length.
    room: Vec<Var>,
}

/// The protocol, for both parties.
pub fn randomized_response_protocol<'a, C: Channel>(
    mut session: Session<C>,
    statement: &'a RandomizedResponseStatement,
    mut secret: Option<Private<'a>>,
) -> Result<C::Closed> {
    let link = claim_list(&mut session, statement, secret.as_mut())?;
    session.close(Some(link))
}

/// All claims of the run, before they are closed.
pub fn claim_list<'a, C: Channel>(
    session: &mut Session<C>,
    statement: &'a RandomizedResponseStatement,
    mut secret: Option<&mut Private<'a>>,
) -> Result<IndexLink<'a>> {
    let (layout, dimension) = (statement.index.layout, statement.index.dimension);
    let (n, capacity) = (layout.variables, layout.capacity);
    let hidden_query = secret.as_ref().map(|s| s.hidden_query);
    let (query, blinding) = send_query(session, hidden_query)?;

    // The scores have no commitment of their own; the statement has those of four columns.
    let scores = session.add_column(Column {
        variables: n,
        rows: Vec::new(),
        opening: secret.as_ref().map(|s| Arc::clone(&s.scores)),
    });
    let mut given = statement
        .columns()
        .into_iter()
        .enumerate()
        .map(|(k, (_, rows))| {
            session.add_column(Column {
                variables: n,
                rows: rows.to_vec(),
                opening: secret.as_ref().map(|s| Arc::clone(&s.openings[k])),
            })
        });
    let [flips, sample, disclosed, after] = [(); 4].map(|()| given.next().expect("four columns"));
    let counted = |variables: usize, maximum: usize| (1 << variables, Bound::up_to(maximum));
    let bounds = Columns {
        relevant: (capacity, Bound::Unsigned(1)),
        listed: (capacity, Bound::Unsigned(1)),
        score_rows: counted(score_variables(dimension), capacity),
        nibbles: counted(NIBBLE_VARIABLES, dimension.next_power_of_two()),
    };
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let ids = session.commit_bounded("list columns", &bounds.in_order(), values)?;
    let Columns {
        relevant,
        listed,
        score_rows: score_counts,
        nibbles,
    } = Columns::named(ids);

    let secret = secret.as_deref();
    let hidden = send_hidden(session, statement, secret.map(|s| s.hidden))?;
    let last = bits(session, &hidden.last);
    let room = bits(session, &hidden.room);
    // At most so many are listed; and so many are, or the list ends at the last position of all.
    let lacking = Expr::from(statement.maximum as u64) - hidden.count.clone();
    session.constrain("room", lacking.clone() - room);
    let beyond = last - Expr::from(capacity as u64 - 1);
    session.constrain_product("end of the list", lacking, beyond, Expr::zero());

    // cq and htopk.
    let all = hidden_query.as_ref().map(std::slice::from_ref);
    let (mut claims, vectors) = vector_lists(session, dimension, 1, all)?;
    let mut list = vec![hidden.salt, (capacity as u64).into()];
    list.extend(hidden.packed.iter().cloned());
    let mut calls = Call::list(session, TAG_VECTOR, &vectors[0], statement.cq)?;
    calls.extend(Call::list(session, TAG_TOPK, &list, statement.htopk)?);

    // Relevance is the step of the score.
    let rows = score_rows(dimension);
    let steps = rows.iter().map(|s| i64::from(*s >= statement.threshold));
    let steps = Entry::Public(steps.collect());
    let one = |id| Entry::Columns(vec![(id, Fr::ONE)]);
    let mut segments = vec![
        Segment {
            variables: n,
            tag: TAG_RELEVANT,
            entries: vec![one(scores), one(relevant)],
            count: Count::First(capacity),
        },
        Segment {
            variables: score_variables(dimension),
            tag: TAG_RELEVANT,
            entries: vec![Entry::Public(rows), steps],
            count: Count::Table(score_counts),
        },
    ];
    segments.push(component_segment(dimension, hidden_query));
    segments.push(nibble_table(nibbles));
    let looked_up = lookups(session, segments)?.into_iter();
    claims.extend(looked_up.map(|(weights, var)| (weights, vec![var])));

    // The packed elements consist of the listed bits: one claim at a random combination of elements. A second claim counts the
    // listed bits. Both claims also read entries beyond the capacity, which the equations below set to 0.
    let among = session.challenges("packed list", log2_ceil(statement.elements()));
    let value = Expr::combination(hidden.packed.iter().zip(eq_table(&among)));
    let packing = Weight {
        point: among,
        coefficients: (0..BITS_PER_ELEMENT).map(power_of_two).collect(),
        items: statement.elements(),
    };
    session.claim(packing, vec![(listed, Fr::ONE)], value);
    let places = n.max(layout.row_variables);
    let all = Weight::evaluation(&vec![half(); places]);
    let share = half().pow([places as u64]);
    session.claim(all, vec![(listed, Fr::ONE)], hidden.count * share);

    // The winners within the list are listed, and listed positions join the disclosed set. The statement's columns and
    // `relevant` count up to the capacity. `listed` counts in whole rows, so nothing beyond the capacity is listed.
    let tau = session.challenges("list", places);
    let chi = session.challenge("held");
    let columns = [flips, relevant, sample, disclosed, listed, after];
    let tables = session.known().map(|known| {
        let mut tables: Vec<Vec<Fr>> = columns
            .iter()
            .map(|id| known.entries(&[(*id, Fr::ONE)]))
            .collect();
        for (id, table) in columns.iter().zip(&mut tables) {
            if *id != listed {
                table.truncate(capacity);
            }
        }
        let within = secret.map_or(&[][..], |s| s.within);
        tables.push(known.secrets.combine(&[(within, Fr::ONE)]));
        tables
    });
    let gate = Gate::List { chi };
    let reduced = sumcheck(session, "list", &tau, Expr::zero(), 5, tables, gate)?;
    let point = &reduced.point;
    let within = up_to(session, &hidden.last, point)?;
    let finals = reduced.finals.map(|f| {
        let undisclosed = Fr::ONE - f[3];
        let both = f[1] * f[2];
        let fresh = both * undisclosed;
        let chosen = (Fr::ONE - f[0]) * fresh;
        let winner = (f[0] + chosen) * f[6];
        [
            f[0],
            f[1],
            f[2],
            f[3],
            f[4],
            f[5],
            both,
            fresh,
            chosen,
            winner,
            undisclosed * f[4],
        ]
    });
    let v = session.send("list", 11, finals.as_ref().map(|f| &f[..]))?;
    let e = |i: usize| Expr::from(v[i]);
    let not = |i: usize| Expr::from(1u64) - e(i);
    session.constrain_product("relevant and kept", e(1), e(2), e(6));
    session.constrain_product("not held", e(6), not(3), e(7));
    session.constrain_product("or by chance", not(0), e(7), e(8));
    session.constrain_product("within the list", e(0) + e(8), within, e(9));
    session.constrain_product("newly held", not(3), e(4), e(10));
    let disclosing = e(3) + e(10) - e(5);
    session.constrain("list", e(9) - e(4) + disclosing * chi - reduced.claim);
    let first = Weight {
        point: point.clone(),
        coefficients: vec![Fr::ONE],
        items: capacity,
    };
    for (id, var) in columns.into_iter().zip(&v) {
        let weight = match id == listed {
            true => Weight::evaluation(point),
            false => first.clone(),
        };
        session.claim(weight, vec![(id, Fr::ONE)], (*var).into());
    }

    permutations(session, None, calls)?;
    Ok(IndexLink {
        index: statement.index,
        queries: vec![query],
        secret: secret.map(|s| IndexLinkSecret {
            hidden_queries: vec![s.hidden_query],
            blindings: vec![blinding],
            index: s.index,
        }),
        claims,
        scores: vec![scores],
    })
}

fn send_hidden<C: Channel>(
    session: &mut Session<C>,
    statement: &RandomizedResponseStatement,
    values: Option<&[Fr]>,
) -> Result<Hidden> {
    let (elements, n) = (statement.elements(), statement.index.layout.variables);
    let count = 2 + elements + n + statement.room_bits();
    let vars = session.send("list", count, values)?;
    let (packed, rest) = vars[1..].split_at(elements);
    Ok(Hidden {
        salt: vars[0].into(),
        packed: packed.iter().map(|v| Expr::from(*v)).collect(),
        count: rest[0].into(),
        last: rest[1..1 + n].to_vec(),
        room: rest[1 + n..].to_vec(),
    })
}

/// The number that hidden bits make.
fn bits<C: Channel>(session: &mut Session<C>, vars: &[Var]) -> Expr {
    let mut sum = Expr::zero();
    for (k, var) in vars.iter().enumerate() {
        session.constrain_product("bit", (*var).into(), (*var).into(), (*var).into());
        sum.add_term(*var, power_of_two(k));
    }
    sum
}

/// The extension at a point of the column that is 1 up to a hidden place and 0 afterwards. It is computed from the lowest bit
/// of the place; bits above the given ones are 0. The run has no such column: the bits of the place determine it.
fn up_to<C: Channel>(session: &mut Session<C>, last: &[Var], point: &[Fr]) -> Result<Expr> {
    let (low, high) = point.split_at(last.len());
    // With x for those of the bits below: (1 - p) + p x where the bit is 1, (1 - p) x where it is 0.
    let values = session.known().map(|known| {
        let mut sum = Fr::ONE;
        let step = |(bit, p): (&Var, &Fr)| {
            let bit = known.value(&(*bit).into());
            let product = bit * sum;
            sum = bit * (Fr::ONE - p) + product * (p.double() - Fr::ONE) + sum * (Fr::ONE - p);
            product
        };
        last.iter().zip(low).map(step).collect::<Vec<Fr>>()
    });
    let products = session.send("end of the list", last.len(), values.as_deref())?;
    let mut sum = Expr::from(1u64);
    for ((bit, product), p) in last.iter().zip(&products).zip(low) {
        session.constrain_product(
            "up to the end",
            (*bit).into(),
            sum.clone(),
            (*product).into(),
        );
        sum = sum * (Fr::ONE - p);
        sum.add_term(*bit, Fr::ONE - p);
        sum.add_term(*product, p.double() - Fr::ONE);
    }
    Ok(sum * high.iter().map(|p| Fr::ONE - p).product())
}
