//! The layers of the integer encoder in one run, with one lookup tree and one closing: `docs/scan/encoder.md`.
//!
//! No window uses this run yet, and [`crate::protocol::name`] does not cover it.
use std::sync::Arc;

use crate::attention::{self, Derived, Marks};
use crate::block::*;
use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::equation::Equation;
use crate::error::Result;
use crate::feed_forward;
use crate::lookup::QueryClaim;
use crate::numbers::log2_ceil;
use crate::session::{Column, ColumnId, Opening, Session};

pub mod statement;

pub use statement::{
    absorb_layers, check_layers, Columns, EncoderStatement, Layer, Multiplicities, Shape,
    MAX_LAYERS,
};

/// A prover's values before the first challenge.
pub struct Private<'s> {
    /// The openings of the first x and of the last y, one a column, and of the marks.
    pub inputs: Vec<Arc<Opening>>,
    pub outputs: Vec<Arc<Opening>>,
    pub marks: Arc<Opening>,
    pub columns: Vec<Vec<i64>>,
    pub layers: Vec<LayerPrivate<'s>>,
}

/// A prover's values of one layer's derived entries and LayerNorms.
pub struct LayerPrivate<'s> {
    pub derived: Derived,
    /// The top limbs of both remainders of the feed-forward block.
    pub tops: [Tops; 2],
    pub norms: [NormPrivate<'s>; 2],
}

/// The derived entries of both blocks of one layer.
pub type Entries = (Derived, [Tops; 2]);

impl<'s> LayerPrivate<'s> {
    /// The derived entries of all layers, which the lookups take, and the norms, which the claims after them need.
    pub fn apart(layers: Vec<Self>) -> (Vec<Entries>, Vec<[NormPrivate<'s>; 2]>) {
        let apart = |layer: Self| ((layer.derived, layer.tops), layer.norms);
        layers.into_iter().map(apart).unzip()
    }
}

/// Verifies a proof of layers.
pub fn verify_encoder<'p, V: Verifies<'p>>(
    statement: &EncoderStatement,
    proof: &'p [u8],
) -> Result<()> {
    let shape = statement.check()?;
    let rows = statement.row_variables();
    let session: Session<V> = Session::verifier(statement.transcript(&shape), rows, proof);
    let equation: Equation = encoder_protocol(session, statement, None)?.into();
    equation.verify::<V::Engine>(&[])
}

/// The protocol, for both parties.
pub fn encoder_protocol<'a, C: Channel>(
    mut session: Session<'a, C>,
    statement: &'a EncoderStatement,
    mut secret: Option<Private>,
) -> Result<C::Closed> {
    let shape = statement.check()?;
    let (places, texts) = (statement.places, Texts::one(statement.places));

    let openings = secret
        .as_mut()
        .map(|s| [&mut s.inputs, &mut s.outputs].map(std::mem::take));
    let marks = session.add_column(Column {
        variables: log2_ceil(places),
        rows: vec![statement.marks],
        opening: secret.as_ref().map(|s| s.marks.clone()),
    });
    let variables = shape.attention.place_variables(places);
    let matrices = [statement.inputs, statement.outputs];
    let ends = Places::add(&mut session, variables, matrices, openings);
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let count = statement.layers.len();
    let mut bounds = Layers::bounds(&shape, texts, count);
    bounds.extend(Multiplicities::bounds(&shape, texts, count).in_order());
    let ids = session.commit_bounded("encoder columns", &bounds, values)?;
    let mut ids = ids.into_iter();
    let layers = Layers::named(&mut session, &statement.layers, texts, ends, &mut ids);
    let multiplicities = Multiplicities::named(ids);
    let marks = Marks::of_column(&mut session, marks, texts)?;

    let (entries, norms) = secret
        .map(|s| LayerPrivate::apart(s.layers))
        .unwrap_or_default();
    let mut segments = Segments::default();
    segments.activations(variables, layers.inputs());
    layers.look_up(&mut segments, entries);
    layers.look_up_tables(&mut segments, multiplicities.of_exp, multiplicities.of_gelu);
    segments.tables(multiplicities.shared, &shape.widths());
    let claims = segments.claim(&mut session)?;
    layers.claim(&mut session, &marks, &claims, &norms)?;
    session.close(None)
}

/// One layer with its columns.
struct Placed<'a> {
    weights: &'a Layer,
    /// The columns of the matrices of both blocks.
    of_attention: [Vec<ColumnId>; 4],
    of_feed_forward: [Vec<ColumnId>; 2],
    columns: Columns<ColumnId>,
    /// Input and result of each block: the result of one block is the input of the next, and the same columns.
    attention: Places,
    feed_forward: Places,
}

/// Layers of one shape and with the same tables, with their columns.
pub struct Layers<'a> {
    shape: Shape,
    texts: Texts,
    all: Vec<Placed<'a>>,
}

impl<'a> Layers<'a> {
    /// The columns of so many layers, between the first layer's x and the last layer's y.
    pub fn bounds(shape: &Shape, texts: Texts, count: usize) -> Vec<(usize, Bound)> {
        let of_layer = |n| Columns::bounds(shape, texts, n + 1 == count).in_order();
        (0..count).flat_map(of_layer).collect()
    }

    /// Takes the columns of the layers from the front, and adds those of the matrices. `ends` are the first layer's x and the last layer's y.
    pub fn named<C: Channel>(
        session: &mut Session<C>,
        weights: &[&'a Layer],
        texts: Texts,
        ends: Places,
        ids: &mut impl Iterator<Item = ColumnId>,
    ) -> Self {
        let shape = weights[0].shape();
        let (mut all, mut x) = (Vec::new(), ends.x);
        for (n, layer) in weights.iter().enumerate() {
            let last = n + 1 == weights.len();
            let columns = Columns::named(ids, &shape, last);
            let middle = columns.middle.clone();
            let y = if last { &ends.y } else { &columns.outputs }.clone();
            let (a, f) = (&layer.attention, &layer.feed_forward);
            all.push(Placed {
                weights: layer,
                of_attention: a.matrices.each_ref().map(|m| m.add(session)),
                of_feed_forward: [&f.first, &f.second].map(|m| m.add(session)),
                attention: Places {
                    x: std::mem::replace(&mut x, y.clone()),
                    y: middle.clone(),
                },
                feed_forward: Places { x: middle, y },
                columns,
            });
        }
        Self { shape, texts, all }
    }

    /// The columns of the first layer's x.
    pub fn inputs(&self) -> &[ColumnId] {
        &self.all[0].attention.x
    }

    /// The number of derived entries.
    pub fn derived(&self) -> usize {
        self.all.len() * (self.shape.attention.derived() + self.shape.feed_forward.derived())
    }

    /// Appends the segments of all layers in the order of the page, without the range of the first x and without tables. A
    /// verifier has no entries.
    pub fn look_up(&self, segments: &mut Segments, entries: Vec<Entries>) {
        let mut entries = entries.into_iter();
        let (texts, shape) = (self.texts, &self.shape);
        for layer in &self.all {
            let (derived, tops) = entries.next().unzip();
            let (at, columns) = (&layer.attention, &layer.columns.attention);
            attention::look_up(segments, &shape.attention, texts, at, columns, derived);
            let (at, columns) = (&layer.feed_forward, &layer.columns.feed_forward);
            feed_forward::look_up(
                segments,
                &shape.feed_forward,
                texts.all(),
                at,
                columns,
                tops,
            );
        }
    }

    /// Appends the tables of exp and of GELU.
    pub fn look_up_tables(&self, segments: &mut Segments, of_exp: ColumnId, of_gelu: ColumnId) {
        let Layer {
            attention,
            feed_forward,
        } = self.all[0].weights;
        attention::look_up_exp(segments, &attention.exp, of_exp);
        feed_forward::look_up_gelu(segments, &feed_forward.gelu, of_gelu);
    }

    /// The claims of all blocks after the lookups, with the claims about their derived entries. A verifier has no norms.
    pub fn claim<C: Channel>(
        &self,
        session: &mut Session<C>,
        marks: &Marks,
        claims: &[QueryClaim],
        norms: &[[NormPrivate; 2]],
    ) -> Result<()> {
        let mut rest = claims;
        let mut norms = norms.iter();
        for layer in &self.all {
            let norms = norms.next();
            let (of_attention, after) = rest.split_at(self.shape.attention.derived());
            let (of_feed_forward, after) = after.split_at(self.shape.feed_forward.derived());
            rest = after;
            attention::Block {
                weights: &layer.weights.attention,
                matrices: &layer.of_attention,
                texts: self.texts,
                at: &layer.attention,
                columns: &layer.columns.attention,
                marks,
            }
            .claim(session, of_attention, norms.map(|n| &n[0]))?;
            feed_forward::block(
                session,
                (&layer.weights.feed_forward, &layer.of_feed_forward),
                self.texts.all(),
                (&layer.feed_forward, &layer.columns.feed_forward),
                of_feed_forward,
                norms.map(|n| &n[1]),
            )?;
        }
        Ok(())
    }
}
