//! Proofs of several answers by their provers: `docs/scan/together.md`.
use std::sync::Arc;

use ragaudit_scan_protocol::queries::{answers_protocol, Private};
pub use ragaudit_scan_protocol::queries::{statement, QueriesStatement, RULES};
use zeroize::Zeroizing;

use crate::channel::Proves;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::encode_scalar;
use crate::index::IndexKey;
use crate::prover::fractions::RUN;
use crate::prover::Prover;
use crate::query::inputs::{columns, Secret, Witness};
use crate::query::{Answer, QueryStatement};
use crate::session::{Column, Opening, Session};
use crate::verifier::Verifier;

use statement::*;

/// Proves several answers; `noise` are the columns of their certificate, none where there is no noise. In `low_memory` the
/// same in more time.
pub fn prove_queries(
    statement: &QueriesStatement,
    answers: &[Answer],
    noise: &[Column],
    key: &IndexKey,
    low_memory: bool,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, answers, noise, key, low_memory)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &QueriesStatement,
    answers: &[Answer],
    noise: &[Column],
    key: &IndexKey,
    low_memory: bool,
) -> Result<Vec<u8>> {
    let openings = openings(statement, noise)?;
    let witnesses = witnesses(statement, answers, &openings)?;
    let low_memory = low_memory.then_some(RUN);
    prove_with::<P>(statement, answers, &witnesses, &openings, key, low_memory)
}

/// What opens the columns of noise that the statement is about.
fn openings<'a>(
    statement: &QueriesStatement,
    noise: &'a [Column],
) -> Result<Vec<&'a Arc<Opening>>> {
    let found: Vec<_> = noise.iter().filter_map(|c| c.opening.as_ref()).collect();
    match found.len() == statement.noise.len() && found.len() == noise.len() {
        true => Ok(found),
        false => Err(Error::Unsatisfied(
            "the certificate's openings are missing, or of another statement".to_owned(),
        )),
    }
}

/// What each answer's columns hold; an error says which answer does not fit.
fn witnesses(
    statement: &QueriesStatement,
    answers: &[Answer],
    noise: &[&Arc<Opening>],
) -> Result<Vec<Witness>> {
    let window = statement.check()?;
    if answers.len() != statement.records.len() {
        let expected = format!("{} of them", statement.records.len());
        return Err(Error::invalid("answers", expected, answers.len()));
    }
    let one = |(k, answer): (usize, &Answer)| {
        let noise = noise.get(k).map(|o| &o.values[..]);
        let single = single(statement, k);
        Witness::new(&single, window, answer, [noise, None]).map_err(|error| match error {
            Error::Unsatisfied(what) => Error::Unsatisfied(format!("answer {k}: {what}")),
            error => error,
        })
    };
    answers.iter().enumerate().map(one).collect()
}

/// Of one of the records, what its columns depend on.
fn single<'a>(statement: &QueriesStatement<'a>, k: usize) -> QueryStatement<'a> {
    let [cq, htopk] = statement.records[k];
    QueryStatement {
        context: statement.context,
        index: statement.index,
        noise: &[],
        kept: None,
        gains: statement.gains.clone(),
        cq,
        htopk,
        listed: statement.listed,
        lo: statement.lo,
        hi: statement.hi,
        lattice: statement.lattice,
    }
}

fn prove_with<P: Proves>(
    statement: &QueriesStatement,
    answers: &[Answer],
    witnesses: &[Witness],
    noise: &[&Arc<Opening>],
    key: &IndexKey,
    low_memory: Option<usize>,
) -> Result<Vec<u8>> {
    let mut seed = Zeroizing::new(Vec::new());
    for answer in answers {
        seed.extend(answer.query.iter().map(|v| *v as u8));
        seed.extend(encode_scalar(&answer.query_salt));
        seed.extend(encode_scalar(&answer.list_salt));
    }
    seed.extend(key.0);
    let mut session: Session<P> =
        Session::prover(statement.transcript(), statement.row_variables(), &seed)?;
    session.low_memory = low_memory;
    let blinding = |place| key.blinding(place);
    let private = private(statement, answers, witnesses, noise, &blinding);
    Ok(answers_protocol(session, statement, Some(private))?.into())
}

/// As the protocol takes it.
fn private<'a>(
    statement: &QueriesStatement,
    answers: &'a [Answer],
    witnesses: &'a [Witness],
    noise: &[&Arc<Opening>],
    index: &'a (dyn Fn(usize) -> crate::group::Fr + Sync),
) -> Private<'a> {
    let (mut scores, mut listed, mut records) = (Vec::new(), Vec::new(), Vec::new());
    let mut tables: Option<[Vec<i64>; 3]> = None;
    for (k, (answer, witness)) in answers.iter().zip(witnesses).enumerate() {
        let secret = Secret {
            answer,
            witness,
            noise: None,
            kept: None,
        };
        let single = single(statement, k);
        let own = columns(&single, &secret);
        listed.extend(secret.listed(&single));
        scores.push(Arc::new(Opening {
            values: answer.scores.clone(),
            blindings: Vec::new(),
        }));
        records.push(RecordColumns {
            quantised: own.quantised,
            selected: own.selected,
            distance: own.distance,
        });
        let counted = [own.score_rows, own.range, own.nibbles];
        match &mut tables {
            None => tables = Some(counted),
            Some(sums) => {
                let pairs = sums.iter_mut().flatten().zip(counted.iter().flatten());
                pairs.for_each(|(sum, count)| *sum += count);
            }
        }
    }
    let [score_rows, range, nibbles] = tables.unwrap_or_default();
    let columns = Columns {
        records,
        score_rows,
        range,
        nibbles,
    };
    Private {
        asked: answers.iter().map(Answer::asked).collect(),
        scores,
        noise: noise.iter().map(|o| Arc::clone(o)).collect(),
        columns: columns.in_order(),
        listed,
        index,
    }
}

/// As [`ragaudit_scan_protocol::queries::check_queries`].
pub fn check_queries(statement: &QueriesStatement, proof: &[u8]) -> Result<Equation> {
    ragaudit_scan_protocol::queries::check_queries::<Verifier>(statement, proof)
}

/// As [`ragaudit_scan_protocol::queries::verify_queries`].
pub fn verify_queries(statement: &QueriesStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::queries::verify_queries::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
