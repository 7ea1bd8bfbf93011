//! Noise certificates by their provers: `docs/scan/noise.md`.
use ragaudit_argument::noise::{certify, Private};
pub use ragaudit_argument::noise::{statement, NoiseStatement, RULES};

use crate::channel::Proves;
use crate::equation::Equation;
use crate::error::Result;
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

/// As [`ragaudit_argument::noise::check_noise`].
pub fn check_noise(statement: &NoiseStatement, proof: &[u8]) -> Result<(Column, Equation)> {
    ragaudit_argument::noise::check_noise::<Verifier>(statement, proof)
}

/// As [`ragaudit_argument::noise::verify_noise`].
pub fn verify_noise(statement: &NoiseStatement, proof: &[u8]) -> Result<Column> {
    ragaudit_argument::noise::verify_noise::<Verifier>(statement, proof)
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
