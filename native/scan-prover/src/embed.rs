//! Proofs of A1 by their provers: `docs/scan/embed.md`.
use ragaudit_scan_protocol::embed::{embed_protocol, Private};
pub use ragaudit_scan_protocol::embed::{
    statement, EmbedStatement, Item, OfTable, MAX_NORM_FACTOR, MAX_TOKENS, MAX_VOCABULARY, RULES,
};
use zeroize::Zeroizing;

use crate::channel::Proves;
use crate::engine::Fast;
use crate::error::Result;
use crate::group::{encode_scalar, Fr};
use crate::prover::tables::functional;
use crate::prover::Prover;
use crate::session::Session;
use crate::transcript::Hash;
use crate::vector::Claimed;
use crate::verifier::Verifier;

mod inputs;

pub use inputs::Query;
use inputs::*;

/// Proves that hq is the hash of the query's tokens, and cq the hash of the vector that the table's rows give for them.
///
/// `rows` are the table's, row by row.
pub fn prove_embed(statement: &EmbedStatement, rows: &[i8], query: &Query) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, rows, query)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &EmbedStatement,
    rows: &[i8],
    query: &Query,
) -> Result<Vec<u8>> {
    let witness = Witness::new(statement, rows, query)?;
    let secret = (&witness, &Claimed::of(&witness.vector));
    prove_with::<P>(statement, rows, query, secret)
}

fn prove_with<P: Proves>(
    statement: &EmbedStatement,
    rows: &[i8],
    query: &Query,
    secret: (&Witness, &Claimed),
) -> Result<Vec<u8>> {
    let tokens = query.tokens.iter().flat_map(|t| t.to_le_bytes());
    let mut seed: Zeroizing<Vec<u8>> = Zeroizing::new(tokens.collect());
    seed.extend(encode_scalar(&query.query_salt));
    seed.extend(encode_scalar(&query.vector_salt));
    let row_variables = statement.table.layout.row_variables;
    let session: Session<P> = Session::prover(statement.transcript(), row_variables, &seed)?;
    let (witness, claimed) = secret;
    let bounds = statement.check()?;
    let hidden = witness.hidden(query, claimed, &bounds);
    let size = 1 << statement.table.layout.variables;
    let private = Private {
        columns: witness.columns(claimed, statement, &bounds).in_order(),
        hidden: &hidden,
        vector: claimed.private(),
    };
    let of_table = |factors: &[Fr]| functional(rows, factors, size);
    Ok(embed_protocol(session, statement, Some(&of_table), Some(private))?.into())
}

/// See [`ragaudit_scan_protocol::embed::verify_embed`].
pub fn verify_embed(statement: &EmbedStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::embed::verify_embed::<Verifier>(statement, proof)
}

/// See [`ragaudit_scan_protocol::embed::Batch`].
pub type Batch<O = Hash> = ragaudit_scan_protocol::embed::Batch<O, Fast>;

#[cfg(test)]
pub(crate) mod tests;
