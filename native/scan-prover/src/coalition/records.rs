//! The run over records, by its prover.
use ragaudit_scan_protocol::coalition::records::Private;
pub(super) use ragaudit_scan_protocol::coalition::records::*;

use super::inputs::{session_of, CoalitionSecret, Witness};
use crate::channel::Proves;
use crate::error::Result;
use crate::group::Fr;
use crate::prover::Prover;
use crate::session::Session;
use ragaudit_scan_protocol::coalition::statement::{CoalitionStatement, Columns};

/// Makes the run over records. The blindings of its columns stay secret; runs over pairs need them.
pub fn prove_records(
    statement: &CoalitionStatement,
    secret: &CoalitionSecret,
) -> Result<(Vec<u8>, Vec<Fr>)> {
    prove_as::<Prover>(statement, secret)
}

pub(super) fn prove_as<P: Proves>(
    statement: &CoalitionStatement,
    secret: &CoalitionSecret,
) -> Result<(Vec<u8>, Vec<Fr>)> {
    let shape = statement.shape()?;
    let witness = Witness::new(statement, &shape, secret)?;
    witness.check(statement)?;
    let columns = witness.columns(statement, &shape);
    prove_records_with::<P>(statement, &witness, columns)
}

pub(super) fn prove_records_with<P: Proves>(
    statement: &CoalitionStatement,
    witness: &Witness,
    columns: Columns<Vec<i64>>,
) -> Result<(Vec<u8>, Vec<Fr>)> {
    let shape = statement.shape()?;
    let mut session: Session<P> = session_of(statement.transcript(), &shape, witness)?;
    let states = witness.states(statement, &shape);
    let private = Private {
        columns: columns.in_order(),
        classes: &witness.classes,
        states: &states,
    };
    records(&mut session, statement, &shape, Some(private))?;
    let openings = session.columns.iter().filter_map(|c| c.opening.as_ref());
    let blindings = openings.flat_map(|o| o.blindings.iter().copied()).collect();
    Ok((session.close(None)?.into(), blindings))
}
