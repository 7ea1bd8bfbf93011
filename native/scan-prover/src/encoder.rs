//! Proofs of the encoder's layers by their provers: `docs/scan/encoder.md`. No window uses them yet.
use ragaudit_scan_protocol::block::check_opened;
use ragaudit_scan_protocol::encoder::{encoder_protocol, Columns, Private};
pub use ragaudit_scan_protocol::encoder::{EncoderStatement, Layer, Shape, MAX_LAYERS};

use crate::attention;
pub use crate::attention::Used;
pub use crate::block::Committed;
use crate::block::{seed, Rows};
use crate::channel::Proves;
use crate::error::{Error, Result};
use crate::prover::Prover;
use crate::session::Session;
use crate::verifier::Verifier;

mod inputs;

pub use inputs::forward;
pub(crate) use inputs::*;

const ROWS: &[u8; 32] = b"rag-audit/scan/encoder/placing..";

fn rows_of(layer: &Layer, places: usize) -> Rows {
    Rows {
        width: layer.attention.shape.width,
        places,
        row_variables: layer.row_variables(),
    }
}

/// Refuses layers whose matrices a prover does not have.
pub(crate) fn check_opened_layers(layers: &[&Layer]) -> Result<()> {
    for layer in layers {
        let (a, f) = (&layer.attention, &layer.feed_forward);
        check_opened(&a.matrices.each_ref())?;
        check_opened(&[&f.first, &f.second])?;
    }
    Ok(())
}

/// Commits to `places` rows of activations, of the layers' width each. The blindings depend on the operating system's
/// randomness and on the values.
///
/// # Errors
/// Another number of values; a value that is no activation.
pub fn commit_places(layer: &Layer, places: usize, values: &[i16]) -> Result<Committed> {
    Committed::activations(ROWS, rows_of(layer, places), values)
}

/// Commits to the marks of `places` places, of which the first `used` are used.
///
/// # Errors
/// A number of used places that is 0 or larger than that of all places.
pub fn commit_used(layer: &Layer, places: usize, used: usize) -> Result<Used> {
    attention::commit_used(&layer.attention, places, used)
}

/// Proves that the rows of `outputs` are the results of all layers on the rows of `inputs` with the used places of `used`.
///
/// # Errors
/// A statement outside its limits; a place that leaves a range; outputs that are not the layers' results.
pub fn prove_encoder(
    statement: &EncoderStatement,
    used: &Used,
    inputs: &Committed,
    outputs: &Committed,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, used, inputs, outputs)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &EncoderStatement,
    used: &Used,
    inputs: &Committed,
    outputs: &Committed,
) -> Result<Vec<u8>> {
    let shape = statement.check()?;
    let count = statement.places * shape.attention.width;
    inputs.expect(statement.inputs, count)?;
    outputs.expect(statement.outputs, count)?;
    let marks = used.expect(statement.marks, statement.places)?;
    check_opened_layers(&statement.layers)?;
    let witness = Witness::new(&statement.layers, marks, &inputs.values)?;
    if witness.outputs() != &outputs.values[..] {
        let what = "the outputs are not the layers' results".to_owned();
        return Err(Error::Unsatisfied(what));
    }
    let entries = Entries::new(&witness, &shape);
    prove_entries::<P>(statement, &witness, used, [inputs, outputs], entries)
}

/// Proves with these values for the columns and for the derived entries.
fn prove_entries<P: Proves>(
    statement: &EncoderStatement,
    witness: &Witness,
    used: &Used,
    [inputs, outputs]: [&Committed; 2],
    entries: Entries,
) -> Result<Vec<u8>> {
    let shape = statement.check()?;
    let openings = inputs.openings.iter().chain(&outputs.openings);
    let seed = seed(&inputs.values, openings.chain([&used.opening]));
    let rows = statement.row_variables();
    let session: Session<P> = Session::prover(statement.transcript(&shape), rows, &seed)?;
    let roots = witness.roots();
    let layers = witness.private(&roots, entries.derived);
    let columns = entries.columns.into_iter().flat_map(Columns::in_order);
    let columns = columns.chain(entries.multiplicities.in_order()).collect();
    let private = Private {
        inputs: inputs.openings.clone(),
        outputs: outputs.openings.clone(),
        marks: used.opening.clone(),
        columns,
        layers,
    };
    Ok(encoder_protocol(session, statement, Some(private))?.into())
}

/// See [`ragaudit_scan_protocol::encoder::verify_encoder`].
pub fn verify_encoder(statement: &EncoderStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::encoder::verify_encoder::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
