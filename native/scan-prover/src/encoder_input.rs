//! Proofs of the encoder's input by their provers: `docs/scan/encoder-input.md`. No window uses them yet.
use ragaudit_scan_protocol::block::NormPrivate;
use ragaudit_scan_protocol::encoder_input::{input_protocol, Private};
pub use ragaudit_scan_protocol::encoder_input::{Embeddings, InputStatement, Shape, Vectors};
use zeroize::Zeroizing;

pub use crate::attention::Used;
pub use crate::block::Committed;
use crate::block::{seed, Rows};
use crate::channel::Proves;
use crate::error::{Error, Result};
use crate::group::encode_scalar;
use crate::prover::Prover;
use crate::session::Session;
use crate::verifier::Verifier;

pub(crate) mod inputs;
pub(crate) mod table;

use inputs::*;
pub use table::{Parameters, Table, Text};

const ROWS: &[u8; 32] = b"rag-audit/scan/encoder-input/row";

/// The encoder's input for a text, with its commitments.
pub struct Placed {
    pub used: Used,
    pub outputs: Committed,
}

/// Computes and commits to the input of `places` places for a text, whose places after the text repeat the first place of a
/// text with the first token of the table.
///
/// # Errors
/// No token, or more tokens than places; a token outside the vocabulary; a row that leaves the range of activations.
pub fn place_text(table: &Table, places: usize, text: &Text) -> Result<Placed> {
    let witness = Witness::new(table, places, text)?;
    Ok(Placed {
        used: commit_marks_of(table, &witness.marks)?,
        outputs: Committed::values(ROWS, rows_of(table, places), &witness.norm.y)?,
    })
}

fn commit_marks_of(table: &Table, marks: &[i64]) -> Result<Used> {
    crate::attention::commit_marks_in(table.public.shape.row_variables, marks)
}

fn rows_of(table: &Table, places: usize) -> Rows {
    let shape = &table.public.shape;
    Rows {
        width: shape.width,
        places,
        row_variables: shape.row_variables,
    }
}

/// Proves that the rows of the outputs are the encoder's input for the text with the hash hq.
///
/// # Errors
/// A statement outside its limits; a text, marks or outputs that are not the statement's.
pub fn prove_input(
    statement: &InputStatement,
    table: &Table,
    text: &Text,
    placed: &Placed,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, table, text, placed)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &InputStatement,
    table: &Table,
    text: &Text,
    placed: &Placed,
) -> Result<Vec<u8>> {
    statement.check()?;
    table.expect(statement.embeddings)?;
    let count = statement.places * table.public.shape.width;
    placed.outputs.expect(statement.outputs, count)?;
    let witness = Witness::new(table, statement.places, text)?;
    let marks = placed.used.expect(statement.marks, statement.places)?;
    if witness.norm.y != *placed.outputs.values || witness.marks != marks {
        let what = "the outputs are not the input of the encoder for the text".to_owned();
        return Err(Error::Unsatisfied(what));
    }
    let entries = Entries::new(&witness, &table.public.shape);
    prove_entries::<P>(statement, table, &witness, placed, entries)
}

/// Proves with these values for the columns and for the derived entries.
fn prove_entries<P: Proves>(
    statement: &InputStatement,
    table: &Table,
    witness: &Witness,
    placed: &Placed,
    entries: Entries,
) -> Result<Vec<u8>> {
    let openings = placed.outputs.openings.iter().chain([&placed.used.opening]);
    let mut seed = seed(&witness.tokens, openings);
    seed.extend(encode_scalar(&witness.salt));
    let transcript = statement.transcript();
    let session: Session<P> = Session::prover(transcript, statement.row_variables(), &seed)?;
    let roots = Zeroizing::new(witness.norm.roots());
    let hidden = Zeroizing::new(witness.hidden(&table.public.shape));
    let mut columns = entries.columns.in_order();
    columns.extend(entries.multiplicities.in_order());
    let private = Private {
        table: table.openings.clone(),
        outputs: placed.outputs.openings.clone(),
        marks: placed.used.opening.clone(),
        columns,
        hidden: &hidden,
        norm_tops: entries.tops,
        norm: NormPrivate {
            deviations: &witness.norm.deviations,
            roots: &roots,
        },
    };
    Ok(input_protocol(session, statement, Some(private))?.into())
}

/// See [`ragaudit_scan_protocol::encoder_input::verify_input`].
pub fn verify_input(statement: &InputStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::encoder_input::verify_input::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
