//! Proofs of the encoder's output by their provers: `docs/scan/encoder-output.md`. No window uses them yet.
use ragaudit_field_simd::commitment::pack_nibbles;
use ragaudit_field_simd::poseidon::hash_list;
use ragaudit_scan_protocol::block::{BIT, LIMB_BITS};
use ragaudit_scan_protocol::encoder_output::{output_protocol, Columns, Private};
pub use ragaudit_scan_protocol::encoder_output::{OutputStatement, Shape};
use ragaudit_scan_protocol::nibbles::TAG_VECTOR;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

pub use crate::attention::Used;
pub use crate::block::Committed;
use crate::block::{seed, Counts};
use crate::channel::Proves;
use crate::error::{Error, Result};
use crate::group::{encode_scalar, Fr};
use crate::prover::Prover;
use crate::session::Session;
use crate::vector::{self, Claimed};
use crate::verifier::Verifier;

/// The prover's values.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    pub(crate) marks: Vec<i64>,
    /// The last layer's rows.
    pub(crate) y: Vec<i64>,
    pub(crate) vector: vector::Witness,
}

/// The sum of the rows with a mark.
fn sums_of(width: usize, marks: &[i64], y: &[i64]) -> Vec<i64> {
    let mut sums = vec![0; width];
    for (row, mark) in y.chunks_exact(width).zip(marks) {
        for (sum, v) in sums.iter_mut().zip(row) {
            *sum += v * mark;
        }
    }
    sums
}

impl Witness {
    /// # Errors
    /// Used rows that sum to zero.
    pub(crate) fn new(shape: &Shape, marks: &[i64], y: &[i64]) -> Result<Self> {
        let sums = sums_of(shape.width, marks, y);
        let bounds = shape.vector(marks.len()).bounds;
        Ok(Self {
            marks: marks.to_vec(),
            y: y.to_vec(),
            vector: vector::Witness::new(sums, shape.norm_factor, &bounds)?,
        })
    }

    /// The int4 vector.
    pub(crate) fn components(&self) -> Zeroizing<Vec<i8>> {
        let v = self.vector.components.iter().map(|v| *v as i8);
        Zeroizing::new(v.collect())
    }

    /// Whether cq is the hash of the vector with this salt.
    pub(crate) fn expect(&self, salt: &Fr, cq: Fr) -> Result<()> {
        let mut list = Zeroizing::new(vec![*salt]);
        list.extend(pack_nibbles(&self.components()));
        if hash_list(TAG_VECTOR, &list) == cq {
            return Ok(());
        }
        let what = "the vector of the rows does not have the statement's hash".to_owned();
        Err(Error::Unsatisfied(what))
    }

    /// The hidden values of the vector with its salt.
    pub(crate) fn hidden(&self, shape: &Shape, claimed: &Claimed, salt: &Fr) -> Zeroizing<Vec<Fr>> {
        let mut hidden = Zeroizing::new(vec![*salt]);
        let bounds = shape.vector(self.marks.len()).bounds;
        hidden.extend(self.vector.hidden(claimed, &bounds));
        hidden
    }

    /// The values of the columns.
    fn columns(&self, shape: &Shape, claimed: &Claimed) -> Columns<Vec<i64>> {
        let size = shape.vector(self.marks.len());
        let columns = self.vector.columns(size.components(), &size.bounds);
        let mut counts = Counts::new(&[LIMB_BITS, BIT]);
        counts.activations(&self.y);
        counts.limbs(BIT, &self.marks);
        counts.limbs(
            LIMB_BITS,
            &self.vector.limbs(&columns, claimed, &size.bounds),
        );
        Columns {
            steps: vector::Witness::steps(&columns),
            vector: columns,
            shared: counts.multiplicities(),
        }
    }
}

/// The query's vector of rows of activations, of which those with a mark are used: `docs/minilm-int.md`.
///
/// # Errors
/// Used rows that sum to zero.
pub fn vector_of(shape: &Shape, used: &Used, rows: &Committed) -> Result<Zeroizing<Vec<i8>>> {
    let witness = Witness::new(shape, &used.opening.values, &rows.values)?;
    Ok(witness.components())
}

/// Proves that cq is the hash of the vector of the used rows.
///
/// # Errors
/// A statement outside its limits; used rows that sum to zero; another vector or another salt than those of cq.
pub fn prove_output(
    statement: &OutputStatement,
    used: &Used,
    inputs: &Committed,
    salt: &Fr,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, used, inputs, salt)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &OutputStatement,
    used: &Used,
    inputs: &Committed,
    salt: &Fr,
) -> Result<Vec<u8>> {
    statement.check()?;
    let (shape, places) = (&statement.shape, statement.places);
    inputs.expect(statement.inputs, places * shape.width)?;
    let marks = used.expect(statement.marks, places)?;
    let witness = Witness::new(shape, marks, &inputs.values)?;
    witness.expect(salt, statement.cq)?;
    let claimed = Claimed::of(&witness.vector);
    prove_with::<P>(statement, (&witness, &claimed), used, inputs, salt)
}

fn prove_with<P: Proves>(
    statement: &OutputStatement,
    (witness, claimed): (&Witness, &Claimed),
    used: &Used,
    inputs: &Committed,
    salt: &Fr,
) -> Result<Vec<u8>> {
    let shape = &statement.shape;
    let openings = inputs.openings.iter().chain([&used.opening]);
    let mut seed = seed(&inputs.values, openings);
    seed.extend(encode_scalar(salt));
    let rows = statement.row_variables();
    let session: Session<P> = Session::prover(statement.transcript(), rows, &seed)?;
    let hidden = witness.hidden(shape, claimed, salt);
    let private = Private {
        inputs: inputs.openings.clone(),
        marks: used.opening.clone(),
        columns: witness.columns(shape, claimed).in_order(),
        hidden: &hidden,
        vector: claimed.private(),
    };
    Ok(output_protocol(session, statement, Some(private))?.into())
}

/// See [`ragaudit_scan_protocol::encoder_output::verify_output`].
pub fn verify_output(statement: &OutputStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::encoder_output::verify_output::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
