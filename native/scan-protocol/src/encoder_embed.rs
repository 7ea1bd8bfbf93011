//! Claim A1 for the integer encoder: the tokens with the hash hq give the vector with the hash cq, in one run from the word rows to the
//! quantiser, for one query or for several. `docs/scan/encoder-embed.md`.
//!
//! [`crate::protocol::encoder_name`] names its protocol.
use std::sync::Arc;

use crate::attention::{statement as attention, Marks};
use crate::batch::{self, Failures, Kind};
use crate::block::*;
use crate::channel::{Channel, Verifies};
use crate::embed::MAX_NORM_FACTOR;
use crate::encoder::{LayerPrivate, Layers, MAX_LAYERS};
use crate::encoder_input::statement::MAX_VOCABULARY;
use crate::encoder_input::{Input, Table, TableOpenings, Tokens};
use crate::encoder_output::Output;
use crate::engine::Engine;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Expr;
use crate::feed_forward::MAX_INNER;
use crate::group::Fr;
use crate::index::{IndexCommitment, Layout};
use crate::poseidon::permutations;
use crate::session::{Pinned, Session};
use crate::transcript::{Hash, Oracle, Transcript};
use crate::vector::{self, Vectors};
use crate::verifier::Verifier;

pub mod pins;
pub mod statement;

pub use pins::{Pins, Sizes};
pub use statement::{Columns, EncoderEmbedStatement, Hashes, Multiplicities, Shape, MAX_QUERIES};

/// The constants that determine the positions of values in a proof, and the limits of its parameters.
pub fn rules() -> [u64; 24] {
    [
        WEIGHT_BITS,
        ACTIVATION_BITS,
        ROOT_BITS,
        LIMB_BITS,
        ROOT_LIMBS,
        SLACK_LIMBS,
        ROOT_STRIDE,
        TAG_GELU as usize,
        TAG_ACTIVATION as usize,
        TAG_EXP as usize,
        TAG_STEP as usize,
        attention::DISTANCES,
        attention::EXP_BITS,
        attention::SUM_BITS,
        attention::HEAD_STRIDE,
        MAX_PLACES,
        MAX_WIDTH,
        MAX_SCALE as usize,
        MAX_ROW_VARIABLES,
        attention::MAX_HEADS,
        MAX_INNER,
        MAX_LAYERS,
        MAX_VOCABULARY,
        MAX_NORM_FACTOR as usize,
    ]
    .map(|rule| rule as u64)
}

/// A prover's values before the first challenge.
pub struct Private<'s> {
    pub table: TableOpenings,
    pub columns: Vec<Vec<i64>>,
    /// The salt of each hq, the token of each place, and the hidden limbs of each place.
    pub tokens: &'s [Fr],
    /// The salt of each cq, and the hidden values of each vector.
    pub hidden: &'s [Fr],
    /// The top limbs of the remainders of the embeddings' LayerNorm, and that norm.
    pub input_tops: Tops,
    pub input_norm: NormPrivate<'s>,
    pub layers: Vec<LayerPrivate<'s>>,
    pub vectors: Vec<vector::Private<'s>>,
}

/// Reads a proof. Returns the equation that must hold.
pub fn check_encoder_embed<'p, V: Verifies<'p>>(
    statement: &EncoderEmbedStatement,
    proof: &'p [u8],
) -> Result<Equation> {
    let shape = statement.check()?;
    let transcript = statement.transcript(&shape);
    let session: Session<V> = Session::verifier(transcript, statement.row_variables(), proof);
    Ok(encoder_embed_protocol(session, statement, None)?.into())
}

/// Verifies a proof of A1 for the integer encoder.
pub fn verify_encoder_embed<'p, V: Verifies<'p>>(
    statement: &EncoderEmbedStatement,
    proof: &'p [u8],
) -> Result<()> {
    check_encoder_embed::<V>(statement, proof)?.verify::<V::Engine>(&[])
}

/// A statement with its proof.
pub type Item<'a> = (EncoderEmbedStatement<'a>, &'a [u8]);

/// Proofs of this run, which have no index.
#[derive(Clone, Copy)]
pub struct Proofs;

impl Kind for Proofs {
    type Item<'a> = Item<'a>;

    fn transcript<O: Oracle>(&self, _: &[u8; 32]) -> Transcript<O> {
        Transcript::new("encoder embed batch")
    }

    /// A statement outside its limits has no transcript; its proof is refused on its own.
    fn absorb<O: Oracle>(&self, transcript: &mut Transcript<O>, items: &[Item]) {
        for (statement, proof) in items {
            if let Ok(shape) = statement.check() {
                let digest = statement.transcript::<O>(&shape).digest();
                transcript.bytes("statement", &digest);
            }
            transcript.bytes("proof", proof);
        }
    }

    fn equations(&self) -> usize {
        1
    }

    fn check<E: Engine>(
        &self,
        _: &IndexCommitment,
        (statement, proof): &Item,
    ) -> Result<Vec<Equation>> {
        let equation = check_encoder_embed::<Verifier<Hash, E>>(statement, proof)?;
        Ok(vec![equation])
    }
}

/// Verifies many proofs in one sum. See [`batch::verify_all`].
///
/// # Errors
/// None: an index of no dimension has a layout.
pub fn verify_encoder_embeds<E: Engine>(items: &[Item]) -> Result<Failures> {
    let none = IndexCommitment {
        layout: Layout::new(1)?,
        dimension: 0,
        points: Vec::new(),
    };
    Ok(batch::verify_all::<_, E>(&Arc::new(none), &Proofs, items))
}

/// The protocol, for both parties.
pub fn encoder_embed_protocol<'a, C: Channel>(
    mut session: Session<'a, C>,
    statement: &'a EncoderEmbedStatement,
    mut secret: Option<Private>,
) -> Result<C::Closed> {
    let shape = statement.check()?;
    let (embeddings, texts) = (statement.embeddings, statement.texts());
    let (size, count) = (shape.output.vectors(texts), statement.layers.len());
    if session.row_variables != shape.input.row_variables {
        session.pinned = Some(Pinned {
            row_variables: shape.input.row_variables,
            columns: Vec::new(),
        });
    }

    let openings = secret.as_ref().map(|s| s.table.clone());
    let table = Table::add(&mut session, embeddings, openings);
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let bounds = Columns::bounds(&shape, texts, count).in_order();
    let ids = session.commit_bounded("embedding columns", &bounds, values)?;
    let columns = Columns::named(ids, &shape, texts, count);
    let marks = Marks::of_column(&mut session, columns.marks, texts)?;
    let ends = Places {
        x: columns.x,
        y: columns.y,
    };
    let hashes: Vec<Fr> = statement.queries.iter().map(|query| query.hq).collect();
    let hidden = (&hashes[..], secret.as_ref().map(|s| s.tokens));
    let (tokens, mut calls) = Tokens::send(&mut session, &shape.input, texts, &marks, hidden)?;
    let hidden = secret.as_ref().map(|s| s.hidden);
    let vars = session.send("vector", texts.count * (1 + size.hidden()), hidden)?;
    let values: Vec<Expr> = vars.into_iter().map(Expr::from).collect();
    let (salts, values) = values.split_at(texts.count);

    let input = Input {
        embeddings,
        texts,
        x: &ends.x,
        table: &table,
        columns: &columns.input,
        marks: &marks,
        tokens: &tokens,
    };
    let mut of_layers = columns.layers.into_iter();
    let layers = Layers::named(
        &mut session,
        &statement.layers,
        texts,
        ends.clone(),
        &mut of_layers,
    );
    let output = Output {
        shape: shape.output,
        texts,
        y: &ends.y,
        marks: &marks,
        vectors: Vectors {
            size,
            columns: &columns.vector,
            values,
        },
    };
    let of_vectors = output
        .vectors
        .each()
        .zip(salts.iter().zip(&statement.queries));
    for (vector, (salt, query)) in of_vectors {
        calls.extend(vector.hash(&mut session, salt.clone(), query.cq)?);
        vector.take_root(&mut session);
    }

    let mut input_tops = None;
    let (mut entries, mut norms) = (Vec::new(), Vec::new());
    if let Some(secret) = &mut secret {
        input_tops = Some(std::mem::take(&mut secret.input_tops));
        (entries, norms) = LayerPrivate::apart(std::mem::take(&mut secret.layers));
    }
    let multiplicities = columns.multiplicities;
    let mut segments = Segments::default();
    input.look_up(&mut segments, input_tops);
    layers.look_up(&mut segments, entries);
    output.look_up(&mut segments, multiplicities.of_steps);
    layers.look_up_tables(&mut segments, multiplicities.of_exp, multiplicities.of_gelu);
    segments.tables(multiplicities.shared, &shape.widths());
    let claims = segments.claim(&mut session)?;

    let (of_input, of_layers) = claims.split_at(shape.layers.width_blocks().blocks);
    let norm = secret.as_ref().map(|s| &s.input_norm);
    input.claim(&mut session, of_input, norm)?;
    layers.claim(&mut session, &marks, of_layers, &norms)?;
    output.claim(&mut session, secret.as_ref().map(|s| &s.vectors[..]))?;
    permutations(&mut session, None, calls)?;
    session.close(None)
}
