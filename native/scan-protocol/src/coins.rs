//! Coin certificates: `docs/scan/coins.md`.
//!
//! A certificate commits to a bit for every position and proves that it is 1 exactly where the position's draw, of the
//! stream under the window's seed, the beacon and the slot, is below a public bound.
use ark_ff::{AdditiveGroup, Field};

use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::Fr;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{prefix, Weight};
use crate::numbers::log2_ceil;
use crate::ranges::{limbs, range_table};
use crate::session::{Column, ColumnId, Session};
use crate::sumcheck::{sumcheck, Gate};
use crate::words::{gather, prove_words, send_keys, StreamColumns};

pub mod statement;

use statement::*;
pub use statement::{CoinStatement, LIMITS, RULES};

/// What only a prover has: the values of the columns in their order, and the seed's halves with the slot's key.
pub struct Private {
    pub columns: Vec<Vec<i64>>,
    pub keys: [Fr; 3],
}

/// Reads a certificate: the commitments to the bits, and the equation that has to hold.
pub fn check_coins<'p, V: Verifies<'p>>(
    statement: &CoinStatement,
    proof: &'p [u8],
) -> Result<(Column, Equation)> {
    let shape = statement.shape()?;
    let mut session: Session<V> =
        Session::verifier(statement.transcript(), shape.layout.row_variables, proof);
    let column = certify(&mut session, statement, &shape, None)?;
    let column = session.columns[column.0].clone();
    Ok((column, session.close(None)?.into()))
}

/// Verifies a certificate and returns the commitments to the bits.
pub fn verify_coins<'p, V: Verifies<'p>>(
    statement: &CoinStatement,
    proof: &'p [u8],
) -> Result<Column> {
    let (column, equation) = check_coins::<V>(statement, proof)?;
    if equation.holds::<V::Engine>(&[]) {
        Ok(column)
    } else {
        Err(Error::Rejected)
    }
}

/// The protocol, for both parties.
pub fn certify<C: Channel>(
    session: &mut Session<C>,
    statement: &CoinStatement,
    shape: &Shape,
    secret: Option<Private>,
) -> Result<ColumnId> {
    let draws = shape.blocks.draws();
    let bit = Bound::Unsigned(1);
    let bounds = Columns {
        coins: (statement.capacity, bit),
        byte: (draws, Bound::Unsigned(8)),
        coin: (draws, bit),
        smaller: (draws, bit),
        stream: StreamColumns::bounds(shape.blocks, 1),
        bytes: (1 << BYTE_VARIABLES, Bound::up_to(draws)),
    };
    let (columns, keys) = secret.map(|s| (s.columns, s.keys)).unzip();
    let ids = session.commit_bounded("coin columns", &bounds.in_order(), columns)?;
    let Columns {
        coins,
        byte,
        coin,
        smaller,
        stream,
        bytes,
    } = Columns::named(ids);

    let slot = [statement.c_seed, statement.beacon, statement.slot];
    let keys = send_keys(session, keys.as_ref().map(std::slice::from_ref), &[slot])?;

    // Ranges, and the table of bytes: a byte, either coin, and whether it is smaller than the bound's own.
    let one = |id: ColumnId| Entry::Columns(vec![(id, Fr::ONE)]);
    let rows: Vec<[i64; 3]> = (0..1 << BYTE_VARIABLES).map(|v| statement.row(v)).collect();
    let mut segments = vec![
        Segment {
            variables: log2_ceil(draws),
            tag: TAG_BYTE,
            entries: vec![one(byte), one(coin), one(smaller)],
            count: Count::First(draws),
        },
        range_table(stream.range),
        Segment {
            variables: BYTE_VARIABLES,
            tag: TAG_BYTE,
            entries: (0..3)
                .map(|k| Entry::Public(rows.iter().map(|r| r[k]).collect()))
                .collect(),
            count: Count::Table(bytes),
        },
    ];
    segments.extend(stream.in_range(shape.blocks));
    lookups(session, segments)?;

    // (2 c - 1) (T + smaller - t) - c = distance: the draw is below the bound exactly if the coin is 1. The T of the draws
    // that no c multiplies is public.
    let threshold = Fr::from(statement.threshold());
    let tau = session.challenges("coins below the bound", log2_ceil(draws));
    let mut above = limbs(&stream.t, -Fr::ONE);
    above.push((smaller, Fr::ONE));
    let distance = limbs(&stream.distance, Fr::ONE);
    let sources = [vec![(coin, Fr::ONE)], above, distance];
    let tables = session
        .known()
        .map(|known| sources.iter().map(|s| known.entries(s)).collect());
    let lead = threshold.double() - Fr::ONE;
    let reduced = sumcheck(
        session,
        "coins below the bound",
        &tau,
        (threshold * prefix(&tau, draws)).into(),
        2,
        tables,
        Gate::Below { lead },
    )?;
    let finals = reduced
        .finals
        .map(|f| [f[0], f[1], f[2], f[0] * (lead + f[1].double())]);
    let v = session.send("coins below the bound", 4, finals.as_ref().map(|f| &f[..]))?;
    let e = |i: usize| Expr::from(v[i]);
    let doubled = e(1) * Fr::from(2u8) + lead.into();
    session.constrain_product("coins below the bound", e(0), doubled, e(3));
    session.constrain("coins below the bound", e(3) - e(1) - e(2) - reduced.claim);
    for (source, var) in sources.into_iter().zip(&v) {
        session.claim(Weight::evaluation(&reduced.point), source, (*var).into());
    }

    // The first draws' coins, one a position.
    gather(
        session,
        "coins",
        shape.layout,
        &[[coins, coin]],
        vec![Fr::ONE],
    )?;
    prove_words(session, shape.blocks, &[(byte, stream)], keys)?;
    Ok(coins)
}
