//! Coalition proofs: `docs/scan/coalition.md`.
//!
//! One run over the records commits to vectors, labels and thresholds and binds them to the published values. Further runs,
//! independent of each other, prove the pairs of some blocks of records against these commitments.
pub mod gadgets;
pub mod pairs;
pub mod records;
pub mod statement;

pub use statement::{
    Blocks, CoalitionStatement, MAX_CLASSES, MAX_COMPONENTS, MAX_DENOMINATOR, MAX_LABELS,
    MAX_RECORDS, RULES,
};

use crate::batch::{weigh, Sum, CHUNK};
use crate::engine::Engine;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::Fr;
use crate::session::Session;
use crate::transcript::{Hash, Transcript};
use crate::verifier::Verifier;
use pairs::{pairs, Shared};
use records::records;
use statement::invalid;

/// Verifies a coalition proof: the run over records and all runs over pairs, in one sum.
pub fn verify_coalition<E: Engine>(
    statement: &CoalitionStatement,
    records_proof: &[u8],
    pairs_proofs: &[&[u8]],
) -> Result<()> {
    let shape = statement.shape()?;
    let runs = shape.runs();
    if pairs_proofs.len() != runs {
        return invalid("runs over pairs", runs.to_string(), pairs_proofs.len());
    }
    let transcript = statement.transcript();
    let mut session: Session<Verifier<Hash, E>> =
        Session::verifier(transcript, shape.row_variables, records_proof);
    records(&mut session, statement, &shape, None)?;
    let shared = Shared::new(&session.columns, &shape);
    let mut weights: Transcript = statement.sum_transcript(records_proof, pairs_proofs);
    let mut first = Equation::default();
    first.add(&session.close(None)?, weights.challenge("weight"));
    let mut sum = Sum::default();
    sum.add::<E>(first);
    let weights: Vec<Vec<Fr>> = pairs_proofs
        .iter()
        .map(|_| vec![weights.challenge("weight")])
        .collect();
    for (k, weights) in weights.chunks(CHUNK).enumerate() {
        let (chunk, refused) = weigh::<E>(weights, |i| {
            let run = k * CHUNK + i;
            let transcript = statement.run_transcript(records_proof, run);
            let proof = pairs_proofs[run];
            let mut session: Session<Verifier<Hash, E>> =
                Session::verifier(transcript, shape.row_variables, proof);
            pairs(&mut session, statement, &shape, &shared, run, None)?;
            Ok(vec![session.close(None)?])
        });
        if let Some((_, reason)) = refused.into_iter().next() {
            return Err(reason);
        }
        sum.add::<E>(chunk);
    }
    if sum.holds::<E>(&[]) {
        Ok(())
    } else {
        Err(Error::Rejected)
    }
}
