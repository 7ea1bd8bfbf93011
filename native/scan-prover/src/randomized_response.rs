//! Proofs of lists by their provers: `docs/scan/randomized-response.md`.
use std::sync::Arc;

use ragaudit_scan_protocol::randomized_response::randomized_response_protocol;
pub use ragaudit_scan_protocol::randomized_response::{
    statement, RandomizedResponseStatement, LIMITS, MAX_LISTED, RULES,
};
use zeroize::Zeroizing;

use crate::channel::Proves;
use crate::error::{Error, Result};
use crate::group::encode_scalar;
use crate::index::IndexKey;
use crate::session::{Column, Opening, Session};

mod inputs;

use inputs::*;
pub use inputs::{bit_column, committed_bits, nothing_disclosed, Bits, ListWitness, Outcome};

/// Proves a list; with `low_memory` the same in more time, this number of blocks at a time. `columns` are the columns whose
/// commitments the statement has, in its order.
pub(crate) fn prove_as<P: Proves>(
    statement: &RandomizedResponseStatement,
    witness: &ListWitness,
    outcome: &Outcome,
    columns: [&Column; 4],
    key: &IndexKey,
    low_memory: Option<usize>,
) -> Result<Vec<u8>> {
    statement.check()?;
    let missing = || Error::Unsatisfied("the openings of the bits are missing".to_owned());
    let openings: Vec<&Arc<Opening>> = columns
        .iter()
        .map(|column| column.opening.as_ref().ok_or_else(missing))
        .collect::<Result<_>>()?;
    let secret = Secret {
        witness,
        outcome,
        hidden: hidden_values(statement, witness, outcome),
        openings: openings.try_into().map_err(|_| missing())?,
        key,
    };
    prove_with::<P>(statement, secret, low_memory)
}

fn prove_with<P: Proves>(
    statement: &RandomizedResponseStatement,
    secret: Secret,
    low_memory: Option<usize>,
) -> Result<Vec<u8>> {
    let witness = secret.witness;
    let query = witness.query.iter().map(|v| *v as u8);
    let mut seed: Zeroizing<Vec<u8>> = Zeroizing::new(query.collect());
    seed.extend(encode_scalar(&witness.query_salt));
    seed.extend(encode_scalar(&witness.list_salt));
    let blindings = secret.openings.iter().flat_map(|o| &o.blindings);
    seed.extend(blindings.flat_map(encode_scalar));
    seed.extend(secret.key.0);
    let row_variables = statement.index.layout.row_variables;
    let mut session: Session<P> = Session::prover(statement.transcript(), row_variables, &seed)?;
    session.low_memory = low_memory;
    let key = secret.key;
    let blinding = |place| key.blinding(place);
    let private = secret.private(statement, &blinding);
    Ok(randomized_response_protocol(session, statement, Some(private))?.into())
}

#[cfg(test)]
pub(crate) mod tests;
