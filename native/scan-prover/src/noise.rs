//! Noise certificates by their provers: `docs/scan/noise.md`.
use ragaudit_scan_protocol::noise::{certify, certify_slots, Private, PrivateSlots};
pub use ragaudit_scan_protocol::noise::{statement, NoiseStatement, SlotsStatement, RULES};
use zeroize::Zeroizing;

use crate::channel::Proves;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{decode_points, encode_point, Fr};
use crate::index::Layout;
use crate::prover::fractions::RUN;
use crate::prover::Prover;
use crate::session::{Column, Session};
use crate::verifier::Verifier;
use crate::words::words;
pub use crate::words::{noise_key, Seed};

mod inputs;

use inputs::*;
use statement::*;

/// A certificate with what its query's proof needs.
pub struct Certificate {
    pub proof: Vec<u8>,
    /// The column z with its commitments.
    pub noise: Column,
}

/// The certificate of several slots with what their queries' proof needs.
pub struct Certificates {
    pub proof: Vec<u8>,
    /// The column z of each slot with its commitments.
    pub noise: Vec<Column>,
}

/// Makes the certificate of several slots, each under its own seed; in `low_memory` the same in more time.
pub fn prove_slots(
    statement: &SlotsStatement,
    seeds: &[Seed],
    low_memory: bool,
) -> Result<Certificates> {
    prove_slots_as::<Prover>(statement, seeds, low_memory)
}

pub(crate) fn prove_slots_as<P: Proves>(
    statement: &SlotsStatement,
    seeds: &[Seed],
    low_memory: bool,
) -> Result<Certificates> {
    let shape = statement.shape()?;
    if seeds.len() != statement.slots.len() {
        return Err(Error::invalid(
            "seeds",
            format!("{} of them", statement.slots.len()),
            seeds.len(),
        ));
    }
    let drawn = |(seed, slot): (&Seed, NoiseStatement)| {
        let kappa = noise_key(seed, slot.beacon, slot.slot);
        let draws = Draws::new(&slot, &words(kappa, shape.blocks.count))?;
        Ok(draws.into_columns())
    };
    let slots = seeds.iter().zip(statement.each()).map(drawn);
    let columns = slots.collect::<Result<Vec<_>>>()?;
    prove_slots_columns::<P>(statement, seeds, columns, low_memory.then_some(RUN))
}

fn prove_slots_columns<P: Proves>(
    statement: &SlotsStatement,
    seeds: &[Seed],
    mut columns: Vec<Columns<Vec<i64>>>,
    low_memory: Option<usize>,
) -> Result<Certificates> {
    let shape = statement.shape()?;
    add_up(&mut columns, |c| &mut c.stream.range);
    add_up(&mut columns, |c| &mut c.alias);
    let witness: Vec<u8> = (seeds.iter())
        .flat_map(|seed| seed.witness().to_vec())
        .collect();
    let witness = Zeroizing::new(witness);
    let row_variables = statement.row_variables()?;
    let mut session: Session<P> = Session::prover(statement.transcript(), row_variables, &witness)?;
    session.low_memory = low_memory;
    let keys = seeds.iter().zip(&statement.slots);
    let private = PrivateSlots {
        columns: Columns::together(columns),
        keys: keys.map(|(seed, [_, b, s])| seed.keys(*b, *s)).collect(),
    };
    let noise = certify_slots(&mut session, statement, &shape, Some(private))?;
    let noise = noise.into_iter().map(|id| session.columns[id.0].clone());
    let noise = noise.collect();
    let proof = session.close(None)?.into();
    Ok(Certificates { proof, noise })
}

/// Counts the look-ups of all slots in the last one's table, which stands for theirs.
fn add_up(
    columns: &mut [Columns<Vec<i64>>],
    table: impl Fn(&mut Columns<Vec<i64>>) -> &mut Vec<i64>,
) {
    let Some((last, others)) = columns.split_last_mut() else {
        return;
    };
    for other in others {
        let counted = std::mem::take(table(other));
        let sums = table(last).iter_mut().zip(counted);
        sums.for_each(|(sum, count)| *sum += count);
    }
}

/// As [`ragaudit_scan_protocol::noise::check_slots`].
pub fn check_slots(statement: &SlotsStatement, proof: &[u8]) -> Result<(Vec<Column>, Equation)> {
    ragaudit_scan_protocol::noise::check_slots::<Verifier>(statement, proof)
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
    let private = Private {
        columns: columns.in_order(),
        keys: seed.keys(statement.beacon, statement.slot),
    };
    let noise = certify(&mut session, statement, &shape, Some(private))?;
    let noise = session.columns[noise.0].clone();
    let proof = session.close(None)?.into();
    Ok(Certificate { proof, noise })
}

/// As [`ragaudit_scan_protocol::noise::check_noise`].
pub fn check_noise(statement: &NoiseStatement, proof: &[u8]) -> Result<(Column, Equation)> {
    ragaudit_scan_protocol::noise::check_noise::<Verifier>(statement, proof)
}

/// As [`ragaudit_scan_protocol::noise::verify_noise`].
pub fn verify_noise(statement: &NoiseStatement, proof: &[u8]) -> Result<Column> {
    ragaudit_scan_protocol::noise::verify_noise::<Verifier>(statement, proof)
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
