//! Proofs of one attention block by their provers: `docs/scan/attention.md`. No window uses them yet.
use std::sync::Arc;

use ragaudit_scan_protocol::attention::statement::check_marks;
use ragaudit_scan_protocol::attention::{
    attention_protocol, Columns, Derived, Multiplicities, Private,
};
pub use ragaudit_scan_protocol::attention::{AttentionStatement, Shape, Vectors, Weights};
use ragaudit_scan_protocol::block::{check_opened, NormPrivate, ACTIVATION_LIMIT};
use zeroize::Zeroizing;

pub use crate::block::Committed;
use crate::block::{commit, open_matrix, seed, Dense, Rows};
use crate::channel::Proves;
use crate::claims::{Bound, Opening};
use crate::error::{Error, Result};
use crate::group::G1Affine;
use crate::prover::Prover;
use crate::session::Session;
use crate::verifier::Verifier;

pub(crate) mod inputs;

pub use inputs::forward;
use inputs::*;

const ROWS: &[u8; 32] = b"rag-audit/scan/attention/placing";

/// The integers of a block's matrices with their biases, and its other vectors, in the order of the integer weights.
#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// Of queries, keys, values and the output: a row for each input, a column for each output.
    pub matrices: [&'a [i16]; 4],
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
    let residual = ACTIVATION_LIMIT << shape.residual_shift();
    let names = [
        "query matrix",
        "key matrix",
        "value matrix",
        "output matrix",
    ];
    let mut matrices = Vec::new();
    for (k, name) in names.into_iter().enumerate() {
        let (bits, residual) = match k {
            3 => (shape.o, residual),
            _ => (shape.x, 0),
        };
        let dense = Dense {
            matrix: parameters.matrices[k],
            bias: parameters.vectors.biases[k],
            bits,
            residual,
        };
        let stored = stored.map(|weights| &weights.matrices[k]);
        let sizes = [shape.width; 2];
        matrices.push(open_matrix(name, dense, sizes, row_variables, stored)?);
    }
    let matrices = matrices.try_into().ok().expect("four matrices");
    Weights::new(shape, row_variables, matrices, parameters.vectors)
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

/// The number of used places, with the commitment to their marks and its opening.
pub struct Used {
    /// As a statement has it.
    pub point: G1Affine,
    pub(crate) opening: Arc<Opening>,
}

impl Used {
    /// The marks, if they are the statement's for so many places.
    pub(crate) fn expect(&self, marks: G1Affine, places: usize) -> Result<&[i64]> {
        if self.point == marks && self.opening.values.len() == places {
            return Ok(&self.opening.values);
        }
        let what = "the used places are not those of the statement's commitment".to_owned();
        Err(Error::Unsatisfied(what))
    }
}

/// Commits to the marks of `places` places, of which the first `used` are used.
///
/// # Errors
/// A number of used places that is 0 or larger than that of all places.
pub fn commit_used(weights: &Weights, places: usize, used: usize) -> Result<Used> {
    check_marks(places, used)?;
    commit_marks_in(weights.row_variables, &marks_of(used, places))
}

/// Commits to marks in rows of this length's logarithm.
pub(crate) fn commit_marks_in(row_variables: usize, marks: &[i64]) -> Result<Used> {
    let label = b"rag-audit/scan/attention/marking";
    let (rows, openings) = commit(
        label,
        vec![marks.to_vec()],
        Bound::Unsigned(1),
        row_variables,
    )?;
    Ok(Used {
        point: rows[0][0],
        opening: openings[0].clone(),
    })
}

/// Proves that each row of `outputs` is the block's result on the rows of `inputs` with the used places of `used`.
///
/// # Errors
/// A statement outside its limits; a place that leaves a range; outputs that are not the block's results.
pub fn prove_attention(
    statement: &AttentionStatement,
    used: &Used,
    inputs: &Committed,
    outputs: &Committed,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, used, inputs, outputs)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &AttentionStatement,
    used: &Used,
    inputs: &Committed,
    outputs: &Committed,
) -> Result<Vec<u8>> {
    statement.check()?;
    let count = statement.places * statement.weights.shape.width;
    inputs.expect(statement.inputs, count)?;
    outputs.expect(statement.outputs, count)?;
    let marks = used.expect(statement.marks, statement.places)?;
    check_opened(&statement.weights.matrices.each_ref())?;
    let witness = Witness::new(statement.weights, marks, &inputs.values)?;
    if witness.norm.y != *outputs.values {
        let what = "the outputs are not the block's results".to_owned();
        return Err(Error::Unsatisfied(what));
    }
    prove_with::<P>(statement, &witness, used, [inputs, outputs])
}

fn prove_with<P: Proves>(
    statement: &AttentionStatement,
    witness: &Witness,
    used: &Used,
    places: [&Committed; 2],
) -> Result<Vec<u8>> {
    let shape = &statement.weights.shape;
    let columns = (witness.columns(shape), witness.multiplicities(shape));
    let derived = witness.derived(shape);
    prove_columns::<P>(statement, witness, (used, places), columns, derived)
}

/// Proves with these values for the columns and for the derived entries.
fn prove_columns<P: Proves>(
    statement: &AttentionStatement,
    witness: &Witness,
    (used, [inputs, outputs]): (&Used, [&Committed; 2]),
    (columns, multiplicities): (Columns<Vec<i64>>, Multiplicities<Vec<i64>>),
    derived: Derived,
) -> Result<Vec<u8>> {
    let openings = inputs.openings.iter().chain(&outputs.openings);
    let seed = seed(&inputs.values, openings.chain([&used.opening]));
    let transcript = statement.transcript();
    let session: Session<P> = Session::prover(transcript, statement.row_variables(), &seed)?;
    let roots = Zeroizing::new(witness.norm.roots());
    let mut columns = columns.in_order();
    columns.extend(multiplicities.in_order());
    let private = Private {
        inputs: inputs.openings.clone(),
        outputs: outputs.openings.clone(),
        marks: used.opening.clone(),
        columns,
        derived,
        norm: NormPrivate {
            deviations: &witness.norm.deviations,
            roots: &roots,
        },
    };
    Ok(attention_protocol(session, statement, Some(private))?.into())
}

/// See [`ragaudit_scan_protocol::attention::verify_attention`].
pub fn verify_attention(statement: &AttentionStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::attention::verify_attention::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
