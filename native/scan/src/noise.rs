//! Noise certificates: `docs/scan/noise.md`.
//!
//! A certificate commits to z over all positions of a slot and proves that it is DGS-1 under the window's seed, the
//! beacon and the slot.
use ark_ff::{AdditiveGroup, Field};
use ragaudit_core::lanes::Lanes;
use ragaudit_core::noise::BINS;

use crate::channel::{Channel, Proves, Verifies};
use crate::claims::Bound;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{decode_points, encode_point, Fr};
use crate::index::Layout;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::Weight;
use crate::numbers::log2_ceil;
use crate::prover::fractions::RUN;
use crate::prover::Prover;
use crate::ranges::{first_in_range, limbs, range_table, LIMB_BITS};
use crate::session::{Column, ColumnId, Session};
use crate::sumcheck::{sumcheck, Gate};
use crate::verifier::Verifier;
use crate::words::{
    gather, prove_words, send_key, words, WordColumns, HIGH_LIMBS, REST_LIMBS, T_BITS,
};
pub use crate::words::{noise_key, Seed};

mod inputs;
mod statement;

use inputs::*;
pub use statement::NoiseStatement;
pub(crate) use statement::RULES;
use statement::*;

/// A certificate with what its query's proof needs.
pub struct Certificate {
    pub proof: Vec<u8>,
    /// The column z with its commitments.
    pub noise: Column,
}

/// Makes the certificate of a slot; in `low_memory` the same in more time.
pub fn prove_noise(
    statement: &NoiseStatement,
    seed: &Seed,
    low_memory: bool,
) -> Result<Certificate> {
    prove_as::<Prover>(statement, seed, low_memory)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &NoiseStatement,
    seed: &Seed,
    low_memory: bool,
) -> Result<Certificate> {
    let shape = statement.shape()?;
    let kappa = noise_key(seed, statement.beacon, statement.slot);
    let draws = Draws::new(statement, &words(kappa, shape.blocks.count))?;
    let low_memory = low_memory.then_some(RUN);
    prove_columns::<P>(statement, seed, draws.into_columns(), low_memory)
}

fn prove_columns<P: Proves>(
    statement: &NoiseStatement,
    seed: &Seed,
    columns: Columns<Vec<i64>>,
    low_memory: Option<usize>,
) -> Result<Certificate> {
    let shape = statement.shape()?;
    let mut session: Session<P> = Session::prover(
        statement.transcript(),
        shape.layout.row_variables,
        &seed.witness(),
    )?;
    session.low_memory = low_memory;
    let noise = certify(&mut session, statement, &shape, Some((seed, columns)))?;
    let noise = session.columns[noise.0].clone();
    let proof = session.close(None)?.into();
    Ok(Certificate { proof, noise })
}

/// Reads a certificate: the commitments to z, and the equation that has to hold.
pub fn check_noise(statement: &NoiseStatement, proof: &[u8]) -> Result<(Column, Equation)> {
    check_as::<Verifier>(statement, proof)
}

fn check_as<'p, V: Verifies<'p>>(
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

/// Verifies a certificate and returns the commitments to z.
pub fn verify_noise(statement: &NoiseStatement, proof: &[u8]) -> Result<Column> {
    let (noise, equation) = check_noise(statement, proof)?;
    if equation.holds(&[]) {
        Ok(noise)
    } else {
        Err(Error::Rejected)
    }
}

/// The protocol, for both parties.
fn certify<C: Channel>(
    session: &mut Session<C>,
    statement: &NoiseStatement,
    shape: &Shape,
    secret: Option<(&Seed, Columns<Vec<i64>>)>,
) -> Result<ColumnId> {
    let (draws, words) = (shape.blocks.draws(), shape.blocks.words());
    let reach = (BINS - 1) * statement.gains.iter().map(|g| *g as usize).sum::<usize>();
    let (limb, limbs_of_all) = (
        Bound::Unsigned(LIMB_BITS),
        4 * draws + words * (HIGH_LIMBS + REST_LIMBS),
    );
    let bounds = Columns {
        noise: (statement.capacity, Bound::within(reach)),
        byte: (draws, Bound::up_to(2 * BINS - 1)),
        choice: (draws, Bound::Unsigned(1)),
        threshold: (draws, Bound::Unsigned(T_BITS)),
        value: (draws, Bound::within(BINS - 1)),
        t: [(draws, limb); 2],
        distance: [(draws, limb); 2],
        high: [(words, limb); HIGH_LIMBS],
        rest: [(words, limb); REST_LIMBS],
        range: (1 << LIMB_BITS, Bound::up_to(limbs_of_all)),
        alias: (1 << ALIAS_VARIABLES, Bound::up_to(draws)),
    };
    let (seed, columns) = secret.unzip();
    let ids = session.commit_bounded(
        "noise columns",
        &bounds.in_order(),
        columns.map(Columns::in_order),
    )?;
    let Columns {
        noise,
        byte,
        choice,
        threshold,
        value,
        t,
        distance,
        high,
        rest,
        range,
        alias,
    } = Columns::named(ids);

    let slot = [statement.c_seed, statement.beacon, statement.slot];
    let key = send_key(session, seed, slot)?;

    // Ranges and the alias table.
    let one = |id: ColumnId| Entry::Columns(vec![(id, Fr::ONE)]);
    let mut segments = vec![
        Segment {
            variables: log2_ceil(draws),
            tag: TAG_ALIAS,
            // Byte and choice apart: of their sum alone, byte + 256 with the other choice would be the same row.
            entries: vec![one(byte), one(choice), one(threshold), one(value)],
            count: Count::First(draws),
        },
        range_table(range),
    ];
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
        count: Count::Table(alias),
    });
    segments.extend(
        t.iter()
            .chain(&distance)
            .map(|id| first_in_range(*id, draws)),
    );
    segments.extend(
        high.iter()
            .chain(&rest)
            .map(|id| first_in_range(*id, words)),
    );
    lookups(session, segments)?;

    // (2c - 1)(T - t) - c = distance: below the threshold exactly if the choice is 1.
    let tau = session.challenges("choice", log2_ceil(draws));
    let sources: [Vec<(ColumnId, Fr)>; 4] = [
        vec![(choice, Fr::ONE)],
        vec![(threshold, Fr::ONE)],
        limbs(&t, Fr::ONE),
        limbs(&distance, Fr::ONE),
    ];
    let tables = session
        .known()
        .map(|known| sources.iter().map(|s| known.entries(s)).collect());
    let reduced = sumcheck(session, "choice", &tau, Expr::zero(), 2, tables, Choice)?;
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
    for (source, var) in sources.into_iter().zip(&v) {
        session.claim(Weight::evaluation(&reduced.point), source, (*var).into());
    }

    // z = sum of g_c x_c, row by row.
    let gains = statement.gains.iter().map(|g| Fr::from(*g)).collect();
    gather(session, "noise", shape.layout, noise, value, gains)?;

    let columns = WordColumns {
        byte,
        t,
        high,
        rest,
    };
    prove_words(session, shape.blocks, &columns, key)?;
    Ok(noise)
}

/// (2 c - 1) (T - t) - c - d for the tables c, T, t, d.
#[derive(Clone, Copy)]
struct Choice;

impl Gate for Choice {
    type Tables<V: Copy> = [V; 4];
    type Nodes<W: Copy> = [W; 2];

    fn constants(&self) -> Vec<Fr> {
        vec![Fr::ONE]
    }

    #[inline(always)]
    fn at<L: Lanes<Fr>>(&self, l: L, one: &[L::V], v: &[L::V]) -> L::V {
        let sign = l.sub(l.add(v[0], v[0]), one[0]);
        let distance = l.mul(l.weak(sign), l.sub(v[1], v[2]));
        l.weak(l.sub(l.sub(distance, v[0]), v[3]))
    }
}

impl Certificate {
    /// The commitments to z as the certificate publishes them.
    pub fn commitments(&self) -> Vec<u8> {
        self.noise.rows.iter().flat_map(encode_point).collect()
    }
}

/// The column z of a certificate, from what was kept of it: encoded commitments, values and blindings.
pub fn noise_column(
    rows: &[u8],
    values: Vec<i64>,
    blindings: Vec<Fr>,
    layout: Layout,
) -> Result<Column> {
    Column::opened("noise", decode_points(rows)?, values, blindings, layout)
}

#[cfg(test)]
pub(crate) mod tests;
