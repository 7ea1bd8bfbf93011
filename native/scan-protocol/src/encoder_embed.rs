//! Claim A1 for the integer encoder: the tokens with the hash hq give the vector with the hash cq, in one run from the word rows to the
//! quantiser. `docs/scan/encoder-embed.md`.
//!
//! [`crate::protocol::encoder_name`] names its protocol.
use crate::attention::{statement as attention, Marks};
use crate::block::*;
use crate::channel::{Channel, Verifies};
use crate::embed::MAX_NORM_FACTOR;
use crate::encoder::{LayerPrivate, Layers, MAX_LAYERS};
use crate::encoder_input::statement::MAX_VOCABULARY;
use crate::encoder_input::{Input, Table, TableOpenings, Tokens};
use crate::encoder_output::Output;
use crate::equation::Equation;
use crate::error::Result;
use crate::expr::Expr;
use crate::feed_forward::MAX_INNER;
use crate::group::Fr;
use crate::poseidon::permutations;
use crate::session::Session;
use crate::vector::{self, Vector};

pub mod pins;
pub mod statement;

pub use pins::{Pins, Sizes};
pub use statement::{Columns, EncoderEmbedStatement, Multiplicities, Shape};

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
    /// The salt of hq, the token of each place, and the hidden limbs of each place.
    pub tokens: &'s [Fr],
    /// The salt of cq, and the hidden values of the vector.
    pub hidden: &'s [Fr],
    /// The top limbs of the remainders of the embeddings' LayerNorm, and that norm.
    pub input_tops: Tops,
    pub input_norm: NormPrivate<'s>,
    pub layers: Vec<LayerPrivate<'s>>,
    pub vector: vector::Private<'s>,
}

/// Verifies a proof of A1 for the integer encoder.
pub fn verify_encoder_embed<'p, V: Verifies<'p>>(
    statement: &EncoderEmbedStatement,
    proof: &'p [u8],
) -> Result<()> {
    let shape = statement.check()?;
    let transcript = statement.transcript(&shape);
    let session: Session<V> = Session::verifier(transcript, statement.row_variables(), proof);
    let equation: Equation = encoder_embed_protocol(session, statement, None)?.into();
    equation.verify::<V::Engine>(&[])
}

/// The protocol, for both parties.
pub fn encoder_embed_protocol<'a, C: Channel>(
    mut session: Session<'a, C>,
    statement: &'a EncoderEmbedStatement,
    mut secret: Option<Private>,
) -> Result<C::Closed> {
    let shape = statement.check()?;
    let (embeddings, places) = (statement.embeddings, statement.places);
    let (size, count) = (shape.output.vector(places), statement.layers.len());

    let openings = secret.as_ref().map(|s| s.table.clone());
    let table = Table::add(&mut session, embeddings, openings);
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let bounds = Columns::bounds(&shape, places, count).in_order();
    let ids = session.commit_bounded("embedding columns", &bounds, values)?;
    let columns = Columns::named(ids, &shape, places, count);
    let marks = Marks::of_column(&mut session, columns.marks, places)?;
    let ends = Places {
        x: columns.x,
        y: columns.y,
    };
    let (hq, hidden) = (statement.hq, secret.as_ref().map(|s| s.tokens));
    let (tokens, call) = Tokens::send(&mut session, &shape.input, &marks, hq, hidden)?;
    let hidden = secret.as_ref().map(|s| s.hidden);
    let vars = session.send("vector", 1 + size.hidden(), hidden)?;
    let values: Vec<Expr> = vars.into_iter().map(Expr::from).collect();
    let (salt, values) = values.split_at(1);

    let input = Input {
        embeddings,
        places,
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
        places,
        ends.clone(),
        &mut of_layers,
    );
    let output = Output {
        shape: shape.output,
        y: &ends.y,
        marks: &marks,
        vector: Vector {
            size,
            columns: &columns.vector,
            values,
        },
    };
    let mut calls = vec![call];
    let salt = salt[0].clone();
    calls.extend(output.vector.hash(&mut session, salt, statement.cq)?);
    output.vector.take_root(&mut session);

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
    output.claim(&mut session, secret.as_ref().map(|s| &s.vector))?;
    permutations(&mut session, None, calls)?;
    session.close(None)
}
