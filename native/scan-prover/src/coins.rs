//! Coin certificates by their provers: `docs/scan/coins.md`.
use ragaudit_scan_protocol::coins::{certify, Private};
pub use ragaudit_scan_protocol::coins::{statement, CoinStatement, LIMITS, RULES};

use crate::channel::Proves;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{encode_point, Fr, G1Affine};
use crate::index::Layout;
use crate::prover::fractions::RUN;
use crate::prover::Prover;
use crate::session::{Column, Session};
use crate::verifier::Verifier;
use crate::words::{noise_key, words, Seed};

mod inputs;

use inputs::*;
use statement::*;

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
    let private = Private {
        columns: columns.in_order(),
        keys: seed.keys(statement.beacon, statement.slot),
    };
    let column = certify(&mut session, statement, &shape, Some(private))?;
    let column = session.columns[column.0].clone();
    let proof = session.close(None)?.into();
    Ok(CoinCertificate { proof, column })
}

/// As [`ragaudit_scan_protocol::coins::check_coins`].
pub fn check_coins(statement: &CoinStatement, proof: &[u8]) -> Result<(Column, Equation)> {
    ragaudit_scan_protocol::coins::check_coins::<Verifier>(statement, proof)
}

/// As [`ragaudit_scan_protocol::coins::verify_coins`].
pub fn verify_coins(statement: &CoinStatement, proof: &[u8]) -> Result<Column> {
    ragaudit_scan_protocol::coins::verify_coins::<Verifier>(statement, proof)
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
