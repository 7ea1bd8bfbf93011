//! Proofs of A1 for the integer encoder by their provers: `docs/scan/encoder-embed.md`.
use ragaudit_scan_protocol::block::{NormPrivate, Tops, LIMB_BITS};
use ragaudit_scan_protocol::encoder::Entries as LayerEntries;
use ragaudit_scan_protocol::encoder_embed::{
    encoder_embed_protocol, Columns, Multiplicities, Private,
};
pub use ragaudit_scan_protocol::encoder_embed::{EncoderEmbedStatement, Shape};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::block::{seed, split, Counts};
use crate::channel::Proves;
use crate::encoder::{check_opened_layers, Witness as LayersWitness};
use crate::encoder_input::inputs::Witness as InputWitness;
pub use crate::encoder_input::{Table, Text};
use crate::encoder_output::Witness as OutputWitness;
use crate::error::{Error, Result};
use crate::group::{encode_scalar, Fr};
use crate::prover::Prover;
use crate::session::Session;
use crate::vector::{self, Claimed};
use crate::verifier::Verifier;

/// The prover's values.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    pub(crate) input: InputWitness,
    pub(crate) layers: LayersWitness,
    pub(crate) output: OutputWitness,
}

impl Witness {
    /// The witness of an honest prover.
    pub(crate) fn new(
        statement: &EncoderEmbedStatement,
        table: &Table,
        text: &Text,
    ) -> Result<Self> {
        let shape = statement.check()?;
        check_opened_layers(&statement.layers)?;
        let compute = || {
            let input = InputWitness::new(table, statement.places, text)?;
            let layers = LayersWitness::new(&statement.layers, &input.marks, &input.norm.y)?;
            let output = OutputWitness::new(&shape.output, &input.marks, layers.outputs())?;
            Ok(Self {
                input,
                layers,
                output,
            })
        };
        // No statement about the values exists yet: they fail only where they leave a range.
        compute().map_err(|error| match error {
            Error::Unsatisfied(what) => Error::OutOfRange(what),
            other => other,
        })
    }
}

/// A prover's values of the columns and of the derived entries.
pub(crate) struct Entries {
    pub(crate) columns: Columns<Vec<i64>>,
    pub(crate) input_tops: Tops,
    pub(crate) layers: Vec<LayerEntries>,
    pub(crate) claimed: Claimed,
}

impl Entries {
    pub(crate) fn new(witness: &Witness, shape: &Shape) -> Self {
        let claimed = Claimed::of(&witness.output.vector);
        let (blocks, width) = (shape.input.width_blocks(), shape.input.width);
        let size = shape.output.vector(witness.input.marks.len());
        let output = &witness.output.vector;
        let vector = output.columns(size.components(), &size.bounds);
        let layers = witness.layers.columns(&shape.layers).into_iter();

        let widths = shape.widths();
        let mut counts = Counts::new(&widths);
        witness.input.count(&shape.input, &mut counts);
        let [of_exp, of_gelu] = witness.layers.count(&shape.layers, &mut counts);
        counts.limbs(LIMB_BITS, &output.limbs(&vector, &claimed, &size.bounds));
        Self {
            columns: Columns {
                marks: witness.output.marks.clone(),
                x: split(&witness.input.norm.y, blocks, width),
                y: split(&witness.output.y, blocks, width),
                input: witness.input.columns(&shape.input),
                layers: layers.flat_map(|layer| layer.in_order()).collect(),
                multiplicities: Multiplicities {
                    of_steps: vector::Witness::steps(&vector),
                    of_exp,
                    of_gelu,
                    shared: counts.multiplicities(),
                },
                vector,
            },
            input_tops: witness.input.tops(&shape.input),
            layers: witness.layers.derived(&shape.layers),
            claimed,
        }
    }
}

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
/// A statement outside its limits; a table that is not the statement's; a text that leaves a range; another vector or another
/// salt than those of cq.
pub fn prove_encoder_embed(
    statement: &EncoderEmbedStatement,
    table: &Table,
    text: &Text,
    salt: &Fr,
) -> Result<Vec<u8>> {
    prove_as::<Prover>(statement, table, text, salt)
}

pub(crate) fn prove_as<P: Proves>(
    statement: &EncoderEmbedStatement,
    table: &Table,
    text: &Text,
    salt: &Fr,
) -> Result<Vec<u8>> {
    let shape = statement.check()?;
    table.expect(statement.embeddings)?;
    let witness = Witness::new(statement, table, text)?;
    witness.output.expect(salt, statement.cq)?;
    let entries = Entries::new(&witness, &shape);
    prove_entries::<P>(statement, table, &witness, entries, salt)
}

/// Proves with these values for the columns and for the derived entries.
fn prove_entries<P: Proves>(
    statement: &EncoderEmbedStatement,
    table: &Table,
    witness: &Witness,
    entries: Entries,
    salt: &Fr,
) -> Result<Vec<u8>> {
    let shape = statement.check()?;
    let mut seed = seed(&witness.input.tokens, [].iter());
    seed.extend(encode_scalar(&witness.input.salt));
    seed.extend(encode_scalar(salt));
    let transcript = statement.transcript(&shape);
    let session: Session<P> = Session::prover(transcript, statement.row_variables(), &seed)?;
    let tokens = Zeroizing::new(witness.input.hidden(&shape.input));
    let hidden = witness.output.hidden(&shape.output, &entries.claimed, salt);
    let input_roots = Zeroizing::new(witness.input.norm.roots());
    let roots = witness.layers.roots();
    let private = Private {
        table: table.openings.clone(),
        columns: entries.columns.in_order(),
        tokens: &tokens,
        hidden: &hidden,
        input_tops: entries.input_tops,
        input_norm: NormPrivate {
            deviations: &witness.input.norm.deviations,
            roots: &input_roots,
        },
        layers: witness.layers.private(&roots, entries.layers),
        vector: entries.claimed.private(),
    };
    Ok(encoder_embed_protocol(session, statement, Some(private))?.into())
}

/// See [`ragaudit_scan_protocol::encoder_embed::verify_encoder_embed`].
pub fn verify_encoder_embed(statement: &EncoderEmbedStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::encoder_embed::verify_encoder_embed::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
