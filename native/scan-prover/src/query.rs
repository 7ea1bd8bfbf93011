//! Proofs of answers by their provers: `docs/scan/query.md`, `docs/scan/batch.md`.
use std::sync::Arc;

use ragaudit_scan_protocol::query::answer_protocol;
pub use ragaudit_scan_protocol::query::{statement, QueryStatement, MAX_LISTED, RULES};
use zeroize::Zeroizing;

use crate::channel::Proves;
use crate::error::{Error, Result};
use crate::group::encode_scalar;
use crate::index::IndexKey;
use crate::prover::fractional_sumcheck::LEAST;
use crate::session::{Column, Opening, Session};
use ragaudit_scan_protocol::prover::Recomputed;

pub(crate) mod inputs;

pub use inputs::Answer;
use inputs::*;

/// The columns with commitments from earlier proofs, with their openings: each record's noise if there are gains, and the
/// sampled positions of a sampled tenant.
#[derive(Clone, Copy, Default)]
pub struct ProvenColumns<'a> {
    pub noise: &'a [Column],
    pub sample: Option<&'a Column>,
}

/// Proves answers, one a record; in `low_memory` the same in more time.
pub(crate) fn prove_as<P: Proves>(
    statement: &QueryStatement,
    answers: &[Answer],
    proven: ProvenColumns,
    key: &IndexKey,
    low_memory: bool,
) -> Result<Vec<u8>> {
    let openings = openings(statement, proven)?;
    let witnesses = witnesses(statement, answers, &openings)?;
    let secret = Secret {
        answers,
        witnesses: &witnesses,
        openings,
        key,
    };
    prove_with::<P>(statement, &secret, low_memory.then_some(LEAST))
}

/// The openings of exactly the columns in the statement.
pub(crate) fn openings<'a>(
    statement: &QueryStatement,
    proven: ProvenColumns<'a>,
) -> Result<Openings<'a>> {
    let opened = |column: &'a Column| column.opening.as_ref();
    let noise: Vec<&Arc<Opening>> = proven.noise.iter().filter_map(opened).collect();
    let sample = proven.sample.and_then(opened);
    let counted = [noise.len(), proven.noise.len()] == [statement.noise.len(); 2];
    match counted && sample.is_some() == statement.sample.is_some() {
        true => Ok(Openings { noise, sample }),
        false => Err(Error::Unsatisfied(
            "the certificates' openings are missing, or of another statement".to_owned(),
        )),
    }
}

/// The contents of each answer's columns. The error names the answer that does not fit.
pub(crate) fn witnesses(
    statement: &QueryStatement,
    answers: &[Answer],
    openings: &Openings,
) -> Result<Vec<Witness>> {
    let window = statement.check()?;
    if answers.len() != statement.records.len() {
        let expected = format!("{} of them", statement.records.len());
        return Err(Error::invalid("answers", expected, answers.len()));
    }
    let one = |(k, answer): (usize, &Answer)| {
        let witness = Witness::new(statement, window, answer, openings.values(k));
        witness.map_err(|error| match error {
            Error::Unsatisfied(what) => Error::Unsatisfied(format!("answer {k}: {what}")),
            error => error,
        })
    };
    answers.iter().enumerate().map(one).collect()
}

pub(crate) fn prove_with<P: Proves>(
    statement: &QueryStatement,
    secret: &Secret,
    low_memory: Option<Recomputed>,
) -> Result<Vec<u8>> {
    let mut seed = Zeroizing::new(Vec::new());
    for answer in secret.answers {
        seed.extend(answer.query.iter().map(|v| *v as u8));
        seed.extend(encode_scalar(&answer.query_salt));
        seed.extend(encode_scalar(&answer.list_salt));
    }
    seed.extend(secret.key.0);
    let mut session: Session<P> =
        Session::prover(statement.transcript(), statement.row_variables(), &seed)?;
    session.low_memory = low_memory;
    let blinding = |place| secret.key.blinding(place);
    let private = secret.private(statement, &blinding);
    Ok(answer_protocol(session, statement, Some(private))?.into())
}

#[cfg(test)]
pub(crate) mod tests;
