//! Proofs of one feed-forward block by their provers: `docs/scan/feed-forward.md`. No window uses them yet.
use ragaudit_scan_protocol::block::{check_opened, NormPrivate, Tops, ACTIVATION_LIMIT};
use ragaudit_scan_protocol::feed_forward::{
    feed_forward_protocol, Columns, Multiplicities, Private,
};
pub use ragaudit_scan_protocol::feed_forward::{
    FeedForwardStatement, Shape, Vectors, Weights, MAX_INNER,
};
use zeroize::Zeroizing;

pub use crate::block::Committed;
use crate::block::{open_matrix, seed, Dense, Rows};
use crate::channel::Proves;
use crate::error::{Error, Result};
use crate::prover::Prover;
use crate::session::Session;
use crate::verifier::Verifier;

pub(crate) mod inputs;

pub use inputs::forward;
use inputs::*;

const ROWS: &[u8; 32] = b"rag-audit/scan/feed-forward/rows";

/// The integers of a block's matrices, and its vectors, in the order of the integer weights.
#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// A row for each input, a column for each output.
    pub first: &'a [i16],
    pub second: &'a [i16],
    pub vectors: Vectors<'a>,
}

/// Weights with their integers and with commitments to their matrices, which are those of `stored` if a caller has them. A proof
/// is invalid if the integers are others.
///
/// # Errors
/// As for [`Weights::new`]; a dense layer whose sums may reach 2^31.
pub fn open_weights(
    shape: Shape,
    row_variables: usize,
    parameters: Parameters,
    stored: Option<&Weights>,
) -> Result<Weights> {
    shape.check()?;
    let vectors = parameters.vectors;
    let first = Dense {
        matrix: parameters.first,
        bias: vectors.first_bias,
        bits: shape.x,
        residual: 0,
    };
    let second = Dense {
        matrix: parameters.second,
        bias: vectors.second_bias,
        bits: shape.g,
        residual: ACTIVATION_LIMIT << shape.residual_shift(),
    };
    let (d, i) = (shape.width, shape.inner);
    let (name, of_first) = ("first matrix", stored.map(|s| &s.first));
    let first = open_matrix(name, first, [d, i], row_variables, of_first)?;
    let (name, of_second) = ("second matrix", stored.map(|s| &s.second));
    let second = open_matrix(name, second, [i, d], row_variables, of_second)?;
    Weights::new(shape, row_variables, [first, second], vectors)
}

fn rows_of(weights: &Weights, places: usize) -> Rows {
    Rows {
        width: weights.shape.width,
        places,
        row_variables: weights.row_variables,
    }
}

/// Commits to `places` rows of activations, of the block's width each. The blindings depend on the operating system's
/// randomness and on the values.
///
/// # Errors
/// Another number of values; a value that is no activation.
pub fn commit_places(weights: &Weights, places: usize, values: &[i16]) -> Result<Committed> {
    Committed::activations(ROWS, rows_of(weights, places), values)
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
    inputs.expect(statement.inputs, count)?;
    outputs.expect(statement.outputs, count)?;
    check_opened(&[&statement.weights.first, &statement.weights.second])?;
    let witness = Witness::new(statement.weights, &inputs.values)?;
    if witness.norm.y != *outputs.values {
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
    let shape = &statement.weights.shape;
    let columns = (witness.columns(shape), witness.multiplicities(shape));
    let tops = witness.tops(shape);
    prove_columns::<P>(statement, witness, [inputs, outputs], columns, tops)
}

/// Proves with these values for the columns and for the top limbs of both remainders.
fn prove_columns<P: Proves>(
    statement: &FeedForwardStatement,
    witness: &Witness,
    [inputs, outputs]: [&Committed; 2],
    (columns, multiplicities): (Columns<Vec<i64>>, Multiplicities<Vec<i64>>),
    [dense_tops, norm_tops]: [Tops; 2],
) -> Result<Vec<u8>> {
    let seed = seed(
        &inputs.values,
        inputs.openings.iter().chain(&outputs.openings),
    );
    let transcript = statement.transcript();
    let session: Session<P> = Session::prover(transcript, statement.row_variables(), &seed)?;
    let roots = Zeroizing::new(witness.norm.roots());
    let mut columns = columns.in_order();
    columns.extend(multiplicities.in_order());
    let private = Private {
        inputs: inputs.openings.clone(),
        outputs: outputs.openings.clone(),
        columns,
        dense_tops,
        norm_tops,
        norm: NormPrivate {
            deviations: &witness.norm.deviations,
            roots: &roots,
        },
    };
    Ok(feed_forward_protocol(session, statement, Some(private))?.into())
}

/// See [`ragaudit_scan_protocol::feed_forward::verify_feed_forward`].
pub fn verify_feed_forward(statement: &FeedForwardStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::feed_forward::verify_feed_forward::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
