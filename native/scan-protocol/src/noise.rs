//! Noise certificates: `docs/scan/noise.md`.
//!
//! A certificate commits to z over all positions of a slot and proves that it is DGS-1 under the window's seed, the
//! beacon and the slot.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_relation::dgs::BINS;

use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::Fr;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{eq_table, Weight};
use crate::numbers::log2_ceil;
use crate::ranges::{limbs, range_table};
use crate::session::{Column, ColumnId, Session};
use crate::sumcheck::{reduce, Gate};
use crate::words::{gather, prove_words, send_keys, weigh, StreamColumns, T_BITS};

pub mod statement;

use statement::*;
pub use statement::{NoiseStatement, SlotsStatement, RULES};

/// What only a prover has: the values of the columns in their order, and the seed's halves with the slot's key.
pub struct Private {
    pub columns: Vec<Vec<i64>>,
    pub keys: [Fr; 3],
}

/// The same of several slots.
pub struct PrivateSlots {
    pub columns: Vec<Vec<i64>>,
    pub keys: Vec<[Fr; 3]>,
}

/// Reads a certificate: the commitments to z, and the equation that has to hold.
pub fn check_noise<'p, V: Verifies<'p>>(
    statement: &NoiseStatement,
    proof: &'p [u8],
) -> Result<(Column, Equation)> {
    let shape = statement.shape()?;
    let mut session: Session<V> =
        Session::verifier(statement.transcript(), shape.layout.row_variables, proof);
    let noise = certify(&mut session, statement, &shape, None)?;
    let noise = session.columns[noise.0].clone();
    Ok((noise, session.close(None)?.into()))
}

/// Reads a certificate of several slots: for each the commitments to z; and the equation that has to hold.
pub fn check_slots<'p, V: Verifies<'p>>(
    statement: &SlotsStatement,
    proof: &'p [u8],
) -> Result<(Vec<Column>, Equation)> {
    let shape = statement.shape()?;
    let mut session: Session<V> =
        Session::verifier(statement.transcript(), statement.row_variables()?, proof);
    let noise = certify_slots(&mut session, statement, &shape, None)?;
    let noise = noise.into_iter().map(|id| session.columns[id.0].clone());
    let noise = noise.collect();
    Ok((noise, session.close(None)?.into()))
}

/// Verifies a certificate and returns the commitments to z.
pub fn verify_noise<'p, V: Verifies<'p>>(
    statement: &NoiseStatement,
    proof: &'p [u8],
) -> Result<Column> {
    let (noise, equation) = check_noise::<V>(statement, proof)?;
    if equation.holds::<V::Engine>(&[]) {
        Ok(noise)
    } else {
        Err(Error::Rejected)
    }
}

/// The protocol, for both parties.
pub fn certify<C: Channel>(
    session: &mut Session<C>,
    statement: &NoiseStatement,
    shape: &Shape,
    secret: Option<Private>,
) -> Result<ColumnId> {
    let secret = secret.map(|s| PrivateSlots {
        columns: s.columns,
        keys: vec![s.keys],
    });
    Ok(certify_slots(session, &statement.slots(), shape, secret)?[0])
}

/// That of several slots, whose tables are the same ones: `docs/scan/together.md`.
pub fn certify_slots<C: Channel>(
    session: &mut Session<C>,
    statement: &SlotsStatement,
    shape: &Shape,
    secret: Option<PrivateSlots>,
) -> Result<Vec<ColumnId>> {
    let (draws, count) = (shape.blocks.draws(), statement.slots.len());
    let reach = (BINS - 1) * statement.gains.iter().map(|g| *g as usize).sum::<usize>();
    let bounds = Columns {
        noise: (statement.capacity, Bound::within(reach)),
        byte: (draws, Bound::up_to(2 * BINS - 1)),
        choice: (draws, Bound::Unsigned(1)),
        threshold: (draws, Bound::Unsigned(T_BITS)),
        value: (draws, Bound::within(BINS - 1)),
        stream: StreamColumns::bounds(shape.blocks, count),
        alias: (1 << ALIAS_VARIABLES, Bound::up_to(count * draws)),
    };
    let (columns, keys) = secret.map(|s| (s.columns, s.keys)).unzip();
    let bounds = Columns::together(vec![bounds; count]);
    let ids = session.commit_bounded("noise columns", &bounds, columns)?;
    let slots = Columns::apart(ids, count);
    let tables = slots[0];
    let keys = send_keys(session, keys.as_deref(), &statement.slots)?;

    // Ranges and the alias table.
    let one = |id: ColumnId| Entry::Columns(vec![(id, Fr::ONE)]);
    let drawn = |c: &Columns<ColumnId>| Segment {
        variables: log2_ceil(draws),
        tag: TAG_ALIAS,
        // Byte and choice apart: of their sum alone, byte + 256 with the other choice would be the same row.
        entries: vec![one(c.byte), one(c.choice), one(c.threshold), one(c.value)],
        count: Count::First(draws),
    };
    let mut segments: Vec<Segment> = slots.iter().map(drawn).collect();
    segments.push(range_table(tables.stream.range));
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
        count: Count::Table(tables.alias),
    });
    let of_slots = slots.iter().flat_map(|c| c.stream.in_range(shape.blocks));
    segments.extend(of_slots);
    lookups(session, segments)?;

    // (2c - 1)(T - t) - c = distance: below the threshold exactly if the choice is 1. Of all slots, draw by draw.
    let apart = log2_ceil(count);
    let tau = session.challenges("choice", apart + log2_ceil(draws));
    let sources = |c: &Columns<ColumnId>| -> [Vec<(ColumnId, Fr)>; 4] {
        [
            vec![(c.choice, Fr::ONE)],
            vec![(c.threshold, Fr::ONE)],
            limbs(&c.stream.t, Fr::ONE),
            limbs(&c.stream.distance, Fr::ONE),
        ]
    };
    let of_source = |k: usize| slots.iter().map(move |c| sources(c)[k].clone());
    let sums = session.known().map(|known| {
        let tables = (0..4).map(|k| of_source(k).collect()).collect();
        known.of_gate(Gate::Choice, 2, &tau, tables)
    });
    let reduced = reduce(session, "choice", &tau, Expr::zero(), 2, sums)?;
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
    let (record, place) = reduced.point.split_at(apart);
    let weights = eq_table(record);
    for (k, var) in v.iter().take(4).enumerate() {
        let source = weigh(&weights, of_source(k));
        session.claim(Weight::evaluation(place), source, (*var).into());
    }

    // z = sum of g_c x_c, row by row.
    let gains = statement.gains.iter().map(|g| Fr::from(*g)).collect();
    let drawn: Vec<[ColumnId; 2]> = slots.iter().map(|c| [c.noise, c.value]).collect();
    gather(session, "noise", shape.layout, &drawn, gains)?;
    let words: Vec<_> = slots.iter().map(|c| (c.byte, c.stream)).collect();
    prove_words(session, shape.blocks, &words, keys)?;
    Ok(slots.iter().map(|c| c.noise).collect())
}
