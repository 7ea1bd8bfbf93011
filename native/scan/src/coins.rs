//! Coin certificates: `docs/scan/coins.md`.
//!
//! A certificate commits to a bit for every position and proves that it is 1 exactly where the position's draw, of the
//! stream under the window's seed, the beacon and the slot, is below a public bound.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::lanes::Lanes;

use crate::channel::{Channel, Proves, Verifies};
use crate::claims::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{encode_point, Fr, G1Affine};
use crate::index::Layout;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::{prefix, Weight};
use crate::numbers::log2_ceil;
use crate::prover::fractions::RUN;
use crate::prover::Prover;
use crate::ranges::{first_in_range, limbs, range_table, LIMB_BITS};
use crate::session::{Column, ColumnId, Session};
use crate::sumcheck::{sumcheck, Gate};
use crate::verifier::Verifier;
use crate::words::{
    gather, noise_key, prove_words, send_key, words, Seed, WordColumns, HIGH_LIMBS, REST_LIMBS,
};

mod inputs;
mod statement;

use inputs::*;
pub use statement::CoinStatement;
use statement::*;
pub(crate) use statement::{LIMITS, RULES};

/// A certificate with what the proofs that use its bits need.
pub struct CoinCertificate {
    pub proof: Vec<u8>,
    /// The bits with their commitments.
    pub column: Column,
}

/// Makes the certificate of a slot; in `low_memory` the same in more time.
pub fn prove_coins(
    statement: &CoinStatement,
    seed: &Seed,
    low_memory: bool,
) -> Result<CoinCertificate> {
    prove_as::<Prover>(statement, seed, low_memory)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &CoinStatement,
    seed: &Seed,
    low_memory: bool,
) -> Result<CoinCertificate> {
    let shape = statement.shape()?;
    let kappa = noise_key(seed, statement.beacon, statement.slot);
    let coins = Coins::new(statement, &words(kappa, shape.blocks.count))?;
    let low_memory = low_memory.then_some(RUN);
    prove_columns::<P>(statement, seed, coins.into_columns(), low_memory)
}

fn prove_columns<P: Proves>(
    statement: &CoinStatement,
    seed: &Seed,
    columns: Columns<Vec<i64>>,
    low_memory: Option<usize>,
) -> Result<CoinCertificate> {
    let shape = statement.shape()?;
    let mut session: Session<P> = Session::prover(
        statement.transcript(),
        shape.layout.row_variables,
        &seed.witness(),
    )?;
    session.low_memory = low_memory;
    let column = certify(&mut session, statement, &shape, Some((seed, columns)))?;
    let column = session.columns[column.0].clone();
    let proof = session.close(None)?.into();
    Ok(CoinCertificate { proof, column })
}

/// Reads a certificate: the commitments to the bits, and the equation that has to hold.
pub fn check_coins(statement: &CoinStatement, proof: &[u8]) -> Result<(Column, Equation)> {
    check_as::<Verifier>(statement, proof)
}

fn check_as<'p, V: Verifies<'p>>(
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
pub fn verify_coins(statement: &CoinStatement, proof: &[u8]) -> Result<Column> {
    let (column, equation) = check_coins(statement, proof)?;
    if equation.holds(&[]) {
        Ok(column)
    } else {
        Err(Error::Rejected)
    }
}

/// The protocol, for both parties.
fn certify<C: Channel>(
    session: &mut Session<C>,
    statement: &CoinStatement,
    shape: &Shape,
    secret: Option<(&Seed, Columns<Vec<i64>>)>,
) -> Result<ColumnId> {
    let (draws, words) = (shape.blocks.draws(), shape.blocks.words());
    let (limb, bit, limbs_of_all) = (
        Bound::Unsigned(LIMB_BITS),
        Bound::Unsigned(1),
        4 * draws + words * (HIGH_LIMBS + REST_LIMBS),
    );
    let bounds = Columns {
        coins: (statement.capacity, bit),
        byte: (draws, Bound::Unsigned(8)),
        coin: (draws, bit),
        smaller: (draws, bit),
        t: [(draws, limb); 2],
        distance: [(draws, limb); 2],
        high: [(words, limb); HIGH_LIMBS],
        rest: [(words, limb); REST_LIMBS],
        range: (1 << LIMB_BITS, Bound::up_to(limbs_of_all)),
        bytes: (1 << BYTE_VARIABLES, Bound::up_to(draws)),
    };
    let (seed, columns) = secret.unzip();
    let ids = session.commit_bounded(
        "coin columns",
        &bounds.in_order(),
        columns.map(Columns::in_order),
    )?;
    let Columns {
        coins,
        byte,
        coin,
        smaller,
        t,
        distance,
        high,
        rest,
        range,
        bytes,
    } = Columns::named(ids);

    let slot = [statement.c_seed, statement.beacon, statement.slot];
    let key = send_key(session, seed, slot)?;

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
        range_table(range),
        Segment {
            variables: BYTE_VARIABLES,
            tag: TAG_BYTE,
            entries: (0..3)
                .map(|k| Entry::Public(rows.iter().map(|r| r[k]).collect()))
                .collect(),
            count: Count::Table(bytes),
        },
    ];
    let limbs_of_draws = t.iter().chain(&distance);
    segments.extend(limbs_of_draws.map(|id| first_in_range(*id, draws)));
    let limbs_of_words = high.iter().chain(&rest);
    segments.extend(limbs_of_words.map(|id| first_in_range(*id, words)));
    lookups(session, segments)?;

    // (2 c - 1) (T + smaller - t) - c = distance: the draw is below the bound exactly if the coin is 1. The T of the draws
    // that no c multiplies is public.
    let threshold = Fr::from(statement.threshold());
    let tau = session.challenges("coins below the bound", log2_ceil(draws));
    let mut above = limbs(&t, -Fr::ONE);
    above.push((smaller, Fr::ONE));
    let sources = [vec![(coin, Fr::ONE)], above, limbs(&distance, Fr::ONE)];
    let tables = session
        .known()
        .map(|known| sources.iter().map(|s| known.entries(s)).collect());
    let gate = Below {
        lead: threshold.double() - Fr::ONE,
    };
    let reduced = sumcheck(
        session,
        "coins below the bound",
        &tau,
        (threshold * prefix(&tau, draws)).into(),
        2,
        tables,
        gate,
    )?;
    let finals = reduced
        .finals
        .map(|f| [f[0], f[1], f[2], f[0] * (gate.lead + f[1].double())]);
    let v = session.send("coins below the bound", 4, finals.as_ref().map(|f| &f[..]))?;
    let e = |i: usize| Expr::from(v[i]);
    let doubled = e(1) * Fr::from(2u8) + gate.lead.into();
    session.constrain_product("coins below the bound", e(0), doubled, e(3));
    session.constrain("coins below the bound", e(3) - e(1) - e(2) - reduced.claim);
    for (source, var) in sources.into_iter().zip(&v) {
        session.claim(Weight::evaluation(&reduced.point), source, (*var).into());
    }

    // The first draws' coins, one a position.
    gather(session, "coins", shape.layout, coins, coin, vec![Fr::ONE])?;
    let columns = WordColumns {
        byte,
        t,
        high,
        rest,
    };
    prove_words(session, shape.blocks, &columns, key)?;
    Ok(coins)
}

/// c (2 T - 1 + 2 x) - x - d for the tables c, x and d: what (2 c - 1) (T + x) - c - d lacks of T.
#[derive(Clone, Copy)]
struct Below {
    /// 2 T - 1.
    lead: Fr,
}

impl Gate for Below {
    type Tables<V: Copy> = [V; 3];
    type Nodes<W: Copy> = [W; 2];

    fn constants(&self) -> Vec<Fr> {
        vec![self.lead]
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, lead: &[L::V], v: &[L::V]) -> L::V {
        let doubled = l.weak(l.add(l.add(v[1], v[1]), lead[0]));
        let product = l.mul(v[0], doubled);
        l.weak(l.sub(l.sub(product, v[1]), v[2]))
    }
}

impl CoinCertificate {
    /// The commitments to the bits as the certificate publishes them.
    pub fn commitments(&self) -> Vec<u8> {
        self.column.rows.iter().flat_map(encode_point).collect()
    }
}

/// The column of a certificate, from what was kept of it: commitments, one byte 0 or 1 a position, and blindings.
pub fn coin_column(
    rows: Vec<G1Affine>,
    bits: &[u8],
    blindings: Vec<Fr>,
    layout: Layout,
) -> Result<Column> {
    if bits.iter().fold(0, |all, b| all | b) > 1 {
        return Err(Error::invalid("coins", "bytes 0 and 1", "another byte"));
    }
    let values = bits.iter().map(|b| i64::from(*b)).collect();
    Column::opened("coins", rows, values, blindings, layout)
}

#[cfg(test)]
pub(crate) mod tests;
