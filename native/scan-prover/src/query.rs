//! Proofs of answers by their provers: `docs/scan/query.md`.
use std::sync::Arc;

use ragaudit_scan_protocol::query::answer_protocol;
pub use ragaudit_scan_protocol::query::{statement, QueryStatement, LIMITS, MAX_LISTED, RULES};
use zeroize::Zeroize;

use crate::channel::Proves;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::encode_scalar;
use crate::index::IndexKey;
use crate::prover::fractions::RUN;
use crate::prover::Prover;
use crate::session::{Column, Opening, Session};
use crate::verifier::Verifier;

pub(crate) mod inputs;

pub use inputs::Answer;
use inputs::*;

/// The columns that certificates committed to, with their openings: the slot's noise where there are gains, and the
/// tenant's kept positions where it is sampled.
#[derive(Clone, Copy, Default)]
pub struct Certified<'a> {
    pub noise: Option<&'a Column>,
    pub kept: Option<&'a Column>,
}

/// Proves an answer; in `low_memory` the same in more time.
pub fn prove_query(
    statement: &QueryStatement,
    answer: &Answer,
    certified: Certified,
    key: &IndexKey,
    low_memory: bool,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, answer, certified, key, low_memory)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &QueryStatement,
    answer: &Answer,
    certified: Certified,
    key: &IndexKey,
    low_memory: bool,
) -> Result<Vec<u8>> {
    let window = statement.check()?;
    let openings = openings(statement, certified)?;
    let values = openings.map(|o| o.map(|o| &o.values[..]));
    let witness = Witness::new(statement, window, answer, values)?;
    let low_memory = low_memory.then_some(RUN);
    prove_with::<P>(statement, answer, &witness, openings, key, low_memory)
}

/// What opens the columns that the statement is about, and no others: of noise, and of kept positions.
fn openings<'a>(
    statement: &QueryStatement,
    certified: Certified<'a>,
) -> Result<[Option<&'a Arc<Opening>>; 2]> {
    let asked = [!statement.gains.is_empty(), statement.kept.is_some()];
    let found = [certified.noise, certified.kept].map(|c| c.and_then(|c| c.opening.as_ref()));
    match asked == found.map(|o| o.is_some()) {
        true => Ok(found),
        false => Err(Error::Unsatisfied(
            "the certificates' openings are missing, or of another statement".to_owned(),
        )),
    }
}

fn prove_with<P: Proves>(
    statement: &QueryStatement,
    answer: &Answer,
    witness: &Witness,
    [noise, kept]: [Option<&Arc<Opening>>; 2],
    key: &IndexKey,
    low_memory: Option<usize>,
) -> Result<Vec<u8>> {
    let mut seed: Vec<u8> = answer.query.iter().map(|v| *v as u8).collect();
    seed.extend(encode_scalar(&answer.query_salt));
    seed.extend(encode_scalar(&answer.list_salt));
    seed.extend(key.0);
    let mut session: Session<P> = Session::prover(
        statement.transcript(),
        statement.index.layout.row_variables,
        &seed,
    )?;
    seed.zeroize();
    session.low_memory = low_memory;
    let secret = Secret {
        answer,
        witness,
        noise,
        kept,
    };
    let blinding = |place| key.blinding(place);
    let private = secret.private(statement, &blinding);
    Ok(answer_protocol(session, statement, Some(private))?.into())
}

/// As [`ragaudit_scan_protocol::query::check_query`].
pub fn check_query(statement: &QueryStatement, proof: &[u8]) -> Result<Equation> {
    ragaudit_scan_protocol::query::check_query::<Verifier>(statement, proof)
}

/// As [`ragaudit_scan_protocol::query::verify_query`].
pub fn verify_query(statement: &QueryStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::query::verify_query::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
