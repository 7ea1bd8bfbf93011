//! Proofs of A1 for the integer encoder by their provers: `docs/scan/encoder-embed.md`.
use ragaudit_scan_protocol::block::within;
use ragaudit_scan_protocol::encoder::LayerPrivate;
use ragaudit_scan_protocol::encoder_embed::{encoder_embed_protocol, Private};
pub use ragaudit_scan_protocol::encoder_embed::{
    EncoderEmbedStatement, Hashes, Item, Shape, MAX_QUERIES,
};
use zeroize::Zeroizing;

use crate::batch::Failures;
use crate::channel::Proves;
pub use crate::encoder_input::{Table, Text};
use crate::engine::Fast;
use crate::error::{Error, Result};
use crate::group::Fr;
use crate::prover::fractional_sumcheck::LESS;
use crate::prover::Prover;
use crate::session::Session;
use crate::vector::Claimed;
use crate::verifier::Verifier;

mod parts;

use parts::{Joined, Part, Witness};

/// The int4 vector of a text: `docs/minilm-int.md`.
///
/// # Errors
/// A statement outside its limits; a text that leaves a range.
pub fn vector_of(
    statement: &EncoderEmbedStatement,
    table: &Table,
    text: &Text,
) -> Result<Zeroizing<Vec<i8>>> {
    let witness = Witness::new(statement, table, text)?;
    Ok(witness.output.components())
}

/// Proves that hq is the hash of the text's tokens, and cq the hash of the vector that the encoder computes from them.
///
/// # Errors
/// A statement outside its limits or about several queries; a table that is not the statement's; a text that leaves a range;
/// another vector or another salt than those of cq.
pub fn prove_encoder_embed(
    statement: &EncoderEmbedStatement,
    table: &Table,
    text: &Text,
    salt: &Fr,
) -> Result<Vec<u8>> {
    prove_encoder_embeds(statement, table, &[(text, salt)])
}

/// The same for all queries of a statement, each with its text and the salt of its cq.
///
/// # Errors
/// As [`prove_encoder_embed`], with the number of the query; another number of texts than of queries.
pub fn prove_encoder_embeds(
    statement: &EncoderEmbedStatement,
    table: &Table,
    queries: &[(&Text, &Fr)],
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, table, queries)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &EncoderEmbedStatement,
    table: &Table,
    queries: &[(&Text, &Fr)],
) -> Result<Vec<u8>> {
    let shape = statement.check()?;
    let count = statement.queries.len();
    within("texts", count, count, queries.len())?;
    table.expect(statement.embeddings)?;
    let mut parts = Vec::new();
    for (k, (text, salt)) in queries.iter().enumerate() {
        let part = || {
            let witness = Witness::new(statement, table, text)?;
            witness.output.expect(salt, statement.queries[k].cq)?;
            Ok(Part::new(&witness, &shape, salt))
        };
        let named = |what: String| match count {
            1 => what,
            _ => format!("query {k}: {what}"),
        };
        parts.push(part().map_err(|error| match error {
            Error::Unsatisfied(what) => Error::Unsatisfied(named(what)),
            Error::OutOfRange(what) => Error::OutOfRange(named(what)),
            other => other,
        })?);
    }
    prove_parts::<P>(statement, table, parts)
}

/// Proves with the values of one text after another. Several texts are proved in low memory.
fn prove_parts<P: Proves>(
    statement: &EncoderEmbedStatement,
    table: &Table,
    parts: Vec<Part>,
) -> Result<Vec<u8>> {
    let shape = statement.check()?;
    let sizes = [statement.places, statement.layers.len()];
    let joined = Joined::new(parts, &shape, sizes);
    let transcript = statement.transcript(&shape);
    let mut session: Session<P> =
        Session::prover(transcript, statement.row_variables(), &joined.seed)?;
    session.low_memory = (statement.texts().count > 1).then_some(LESS);
    let (of_input, of_layers) = joined.norms.split_first().expect("the embeddings' norm");
    let derived = joined.layers.into_iter().zip(of_layers.chunks(2));
    let private = Private {
        table: table.openings.clone(),
        columns: joined.columns,
        tokens: &joined.tokens,
        hidden: &joined.hidden,
        input_tops: joined.input_tops,
        input_norm: of_input.private(),
        layers: derived
            .map(|((derived, tops), norms)| LayerPrivate {
                derived,
                tops,
                norms: [norms[0].private(), norms[1].private()],
            })
            .collect(),
        vectors: joined.claimed.iter().map(Claimed::private).collect(),
    };
    Ok(encoder_embed_protocol(session, statement, Some(private))?.into())
}

/// See [`ragaudit_scan_protocol::encoder_embed::verify_encoder_embed`].
pub fn verify_encoder_embed(statement: &EncoderEmbedStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::encoder_embed::verify_encoder_embed::<Verifier>(statement, proof)
}

/// See [`ragaudit_scan_protocol::encoder_embed::verify_encoder_embeds`].
///
/// # Errors
/// None.
pub fn verify_encoder_embeds(items: &[Item]) -> Result<Failures> {
    ragaudit_scan_protocol::encoder_embed::verify_encoder_embeds::<Fast>(items)
}

#[cfg(test)]
pub(crate) mod tests;
