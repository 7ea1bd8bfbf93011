//! Runs over pairs, by their prover.
use std::sync::Arc;

use ragaudit_scan_protocol::coalition::pairs::Private;
pub(super) use ragaudit_scan_protocol::coalition::pairs::*;

use super::inputs::{session_of, CoalitionSecret, Witness};
use crate::channel::Proves;
use crate::error::{Error, Result};
use crate::group::Fr;
use crate::prover::columns::count;
use crate::prover::linear_forms::of_records;
use crate::prover::Prover;
use crate::session::{Opening, Session};
use crate::verifier::Verifier;
use ragaudit_scan_protocol::coalition::statement::{invalid, CoalitionStatement};

/// Proves one of the [`CoalitionStatement::runs`] over pairs, after [`prove_records`].
pub fn prove_pairs(
    statement: &CoalitionStatement,
    secret: &CoalitionSecret,
    records: &[u8],
    blindings: &[Fr],
    run: usize,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, secret, records, blindings, run)
}

pub(super) fn prove_as<P: Proves>(
    statement: &CoalitionStatement,
    secret: &CoalitionSecret,
    records: &[u8],
    blindings: &[Fr],
    run: usize,
) -> Result<Vec<u8>> {
    let shape = statement.shape()?;
    let witness = Witness::new(statement, &shape, secret)?;
    let count = shape.runs();
    if run >= count {
        return invalid("run", format!("a number below {count}"), run);
    }
    let distances = witness.run(statement, &shape, run);
    if distances.iter().flatten().any(|d| *d < 0) {
        return Err(Error::Unsatisfied(
            "two near records have different labels".to_owned(),
        ));
    }
    let of_run = PairsRun {
        records,
        blindings,
        run,
    };
    prove_pairs_with::<P>(statement, &witness, distances, &of_run)
}

/// The results of the run over records that a run over pairs needs.
pub(super) struct PairsRun<'a> {
    pub(super) records: &'a [u8],
    pub(super) blindings: &'a [Fr],
    pub(super) run: usize,
}

pub(super) fn prove_pairs_with<P: Proves>(
    statement: &CoalitionStatement,
    witness: &Witness,
    distances: Vec<Vec<i64>>,
    of_run: &PairsRun,
) -> Result<Vec<u8>> {
    let shape = statement.shape()?;
    let mut columns = committed::<Verifier<P::Oracle>>(statement, &shape, of_run.records)?;
    let expected: usize = columns.iter().map(|c| c.rows.len()).sum();
    if of_run.blindings.len() != expected {
        return invalid("blindings", expected.to_string(), of_run.blindings.len());
    }
    let mut rest = of_run.blindings;
    let values = witness.columns(statement, &shape).in_order();
    for (column, values) in columns.iter_mut().zip(values) {
        let (own, others) = rest.split_at(column.rows.len());
        let blindings = own.to_vec();
        column.opening = Some(Arc::new(Opening { values, blindings }));
        rest = others;
    }
    let shared = Shared::new(&columns, &shape);
    let transcript = statement.run_transcript(of_run.records, of_run.run);
    let mut session: Session<P> = session_of(transcript, &shape, witness)?;
    let mut rows = vec![0; 1 << statement.distance_variables()];
    let all = distances.iter().flatten();
    all.for_each(|d| count(&mut rows, *d));
    let private = Private {
        distances,
        rows,
        forms: &|eq, factors| of_records(statement, &shape, witness, eq, factors),
    };
    pairs(
        &mut session,
        statement,
        &shape,
        &shared,
        of_run.run,
        Some(private),
    )?;
    Ok(session.close(None)?.into())
}
