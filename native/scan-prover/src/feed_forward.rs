//! Proofs of one feed-forward block by their provers: `docs/scan/feed-forward.md`. No window uses them yet.
use std::sync::Arc;

use ragaudit_scan_protocol::feed_forward::statement::{Columns, ACTIVATION_BITS};
use ragaudit_scan_protocol::feed_forward::{feed_forward_protocol, Private};
pub use ragaudit_scan_protocol::feed_forward::{
    FeedForwardStatement, Parameters, Shape, Weights, MAX_INNER, MAX_PLACES, MAX_WIDTH,
};
use zeroize::Zeroizing;

use crate::channel::Proves;
use crate::claims::{Bound, Opening};
use crate::error::{Error, Result};
use crate::group::G1Affine;
use crate::prover::columns::{self, Secret};
use crate::prover::Prover;
use crate::secrets::Nonces;
use crate::session::Session;
use crate::verifier::Verifier;

mod inputs;

pub use inputs::forward;
use inputs::*;

/// A matrix of activations, a row for each place, with the commitments to its columns and their openings.
pub struct Committed {
    /// The rows of each column's commitment, as a statement has them.
    pub rows: Vec<Vec<G1Affine>>,
    openings: Vec<Arc<Opening>>,
    values: Zeroizing<Vec<i64>>,
}

/// Commits to `places` rows of activations, of the block's width each. The blindings depend on the operating system's
/// randomness and on the values.
///
/// # Errors
/// Another number of values; a value that is no activation.
pub fn commit_places(shape: &Shape, places: usize, values: &[i16]) -> Result<Committed> {
    let count = places * shape.width;
    if values.len() != count {
        let expected = format!("{count} activations");
        return Err(Error::invalid("places", expected, values.len()));
    }
    let bound = Bound::Signed(ACTIVATION_BITS);
    let values = wide(values);
    if let Some(bad) = values.iter().find(|v| !bound.holds(&[**v])) {
        return Err(Error::invalid(
            "places",
            "activations of -2048 to 2047",
            bad,
        ));
    }
    commit_values(shape, places, &values)
}

fn commit_values(shape: &Shape, places: usize, values: &[i64]) -> Result<Committed> {
    let seed: Zeroizing<Vec<u8>> = Zeroizing::new(bytes(values));
    let mut nonces = Nonces::new(b"rag-audit/scan/feed-forward/rows", &seed)?;
    let rows = shape.rows(places);
    let openings: Vec<Opening> = split(values, shape.width_blocks(), shape.width)
        .into_iter()
        .map(|values| Opening {
            values,
            blindings: nonces.draw_many(rows),
        })
        .collect();
    let secrets: Vec<Secret> = openings
        .iter()
        .map(|opening| Secret {
            values: &opening.values,
            blindings: &opening.blindings,
            bound: Bound::Signed(ACTIVATION_BITS),
        })
        .collect();
    Ok(Committed {
        rows: columns::commit(&secrets, 1 << shape.row_variables(places)),
        openings: openings.into_iter().map(Arc::new).collect(),
        values: Zeroizing::new(values.to_vec()),
    })
}

fn bytes(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Proves that each row of `outputs` is the block's result on the same row of `inputs`.
///
/// # Errors
/// A statement outside its limits; a place that leaves a range; outputs that are not the block's results.
pub fn prove_feed_forward(
    statement: &FeedForwardStatement,
    inputs: &Committed,
    outputs: &Committed,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, inputs, outputs)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &FeedForwardStatement,
    inputs: &Committed,
    outputs: &Committed,
) -> Result<Vec<u8>> {
    statement.check()?;
    let count = statement.places * statement.weights.shape.width;
    for (places, rows) in [(inputs, statement.inputs), (outputs, statement.outputs)] {
        if places.values.len() != count || places.rows != rows {
            let what = "the places are not those of the statement's commitments".to_owned();
            return Err(Error::Unsatisfied(what));
        }
    }
    let witness = Witness::new(statement.weights, &inputs.values)?;
    if witness.y != *outputs.values {
        let what = "the outputs are not the block's results".to_owned();
        return Err(Error::Unsatisfied(what));
    }
    prove_with::<P>(statement, &witness, inputs, outputs)
}

fn prove_with<P: Proves>(
    statement: &FeedForwardStatement,
    witness: &Witness,
    inputs: &Committed,
    outputs: &Committed,
) -> Result<Vec<u8>> {
    let (columns, shape) = (witness.columns(statement.weights), &statement.weights.shape);
    let tops = [witness.dense_tops(shape), witness.norm_tops(shape)];
    prove_columns::<P>(statement, witness, [inputs, outputs], columns, tops)
}

/// Proves with these values for the columns and for the top limbs of both remainders.
fn prove_columns<P: Proves>(
    statement: &FeedForwardStatement,
    witness: &Witness,
    [inputs, outputs]: [&Committed; 2],
    columns: Columns<Vec<i64>>,
    [dense_tops, norm_tops]: [Vec<Vec<i64>>; 2],
) -> Result<Vec<u8>> {
    let mut seed: Zeroizing<Vec<u8>> = Zeroizing::new(bytes(&inputs.values));
    for opening in inputs.openings.iter().chain(&outputs.openings) {
        let blindings = opening.blindings.iter();
        seed.extend(blindings.flat_map(crate::group::encode_scalar));
    }
    let transcript = statement.transcript();
    let session: Session<P> = Session::prover(transcript, statement.row_variables(), &seed)?;
    let roots = Zeroizing::new(witness.roots());
    let private = Private {
        inputs: inputs.openings.clone(),
        outputs: outputs.openings.clone(),
        columns: columns.in_order(),
        dense_tops,
        norm_tops,
        deviations: &witness.deviations,
        roots: &roots,
    };
    Ok(feed_forward_protocol(session, statement, Some(private))?.into())
}

/// See [`ragaudit_scan_protocol::feed_forward::verify_feed_forward`].
pub fn verify_feed_forward(statement: &FeedForwardStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::feed_forward::verify_feed_forward::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
