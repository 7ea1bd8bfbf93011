//! The statement of a proof of the encoder's layers, and the bounds of all of its values: `docs/scan/encoder.md`.
use crate::attention::statement::EXP_ROWS;
use crate::block::*;
use crate::claims::Bound;
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
use crate::transcript::{Oracle, Transcript};
use crate::{attention, feed_forward};

pub const MAX_LAYERS: usize = 24;

/// The size of a layer, and the fraction bits of its activations. Both blocks have the same width, input and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub attention: attention::Shape,
    pub feed_forward: feed_forward::Shape,
}

impl Shape {
    pub fn width_blocks(&self) -> Blocks {
        self.attention.width_blocks()
    }

    /// The bits of each kind of remainder, of both blocks in turn.
    pub fn remainders(&self) -> Vec<usize> {
        let mut all = self.attention.remainders().to_vec();
        all.extend(self.feed_forward.remainders());
        all
    }

    /// The widths of limbs that occur, each once; multiplicities are committed in this order.
    pub fn widths(&self) -> Vec<usize> {
        widths_of(&self.remainders())
    }

    /// The number of lookups of limbs.
    pub fn limbs_looked_up(&self, texts: Texts) -> usize {
        self.attention.limbs_looked_up(texts) + self.feed_forward.limbs_looked_up(texts.all())
    }

    /// The number of lookups of activations of so many layers: q, k, v, o and both results of each layer, and the first layer's x.
    pub fn activations_looked_up(&self, places: usize, layers: usize) -> usize {
        (6 * layers + 1) * places * self.attention.width
    }
}

/// The weights of one layer.
pub struct Layer {
    pub attention: attention::Weights,
    pub feed_forward: feed_forward::Weights,
}

impl Layer {
    /// # Errors
    /// Blocks with other widths, other scales of x or other lengths of rows.
    pub fn new(attention: attention::Weights, feed_forward: feed_forward::Weights) -> Result<Self> {
        let of = |width: usize, x: u32, rows: usize| {
            format!("width {width}, scale x {x}, rows of 2^{rows}")
        };
        let (a, f) = (&attention.shape, &feed_forward.shape);
        let first = of(a.width, a.x, attention.row_variables);
        let second = of(f.width, f.x, feed_forward.row_variables);
        match first == second {
            true => Ok(Self {
                attention,
                feed_forward,
            }),
            false => Err(Error::invalid("feed-forward block", first, second)),
        }
    }

    pub fn shape(&self) -> Shape {
        Shape {
            attention: self.attention.shape,
            feed_forward: self.feed_forward.shape,
        }
    }

    pub fn row_variables(&self) -> usize {
        self.attention.row_variables
    }

    /// Whether both layers use the same tables.
    fn shares_tables(&self, other: &Layer) -> bool {
        self.attention.exp == other.attention.exp
            && self.feed_forward.gelu == other.feed_forward.gelu
    }
}

/// The shape of all layers.
///
/// # Errors
/// No layer or too many; layers of other shapes or with other tables.
pub fn check_layers(layers: &[&Layer]) -> Result<Shape> {
    within("layers", 1, MAX_LAYERS, layers.len())?;
    let first = &layers[0];
    let shape = first.shape();
    for (n, layer) in layers.iter().enumerate() {
        let rows = (layer.row_variables(), first.row_variables());
        if layer.shape() != shape || !layer.shares_tables(first) || rows.0 != rows.1 {
            let (expected, actual) = ("shape, rows and tables of layer 0", "others");
            return Err(Error::invalid(format!("layers[{n}]"), expected, actual));
        }
    }
    Ok(shape)
}

/// Absorbs the digests of all layers, the number of places and all sizes and scales.
pub fn absorb_layers<O: Oracle>(
    t: &mut Transcript<O>,
    layers: &[&Layer],
    places: usize,
    shape: &Shape,
) {
    let (attention, feed_forward) = (&shape.attention, &shape.feed_forward);
    t.integer("layers", layers.len() as u64);
    for layer in layers {
        t.bytes("attention weights", &layer.attention.digest());
        t.bytes("feed-forward weights", &layer.feed_forward.digest());
    }
    t.integer("places", places as u64);
    t.integer("width", attention.width as u64);
    t.integer("heads", attention.heads as u64);
    t.integer("inner", feed_forward.inner as u64);
    t.integer("scale x", attention.x.into());
    t.integer("scale q", attention.q.into());
    t.integer("scale v", attention.v.into());
    t.integer("scale o", attention.o.into());
    t.integer("scale z", feed_forward.z.into());
    t.integer("scale g", feed_forward.g.into());
}

/// The statement of a proof of layers. The verifier rebuilds every value and reads none from a file.
#[derive(Clone)]
pub struct EncoderStatement<'a> {
    /// Digest of all other fields of the record.
    pub context: Fr,
    /// In the order in which they are applied.
    pub layers: Vec<&'a Layer>,
    /// T.
    pub places: usize,
    /// The commitment to the marks of the places: 1 for each used place.
    pub marks: G1Affine,
    /// The rows of the columns of the first layer's x, one list a column.
    pub inputs: &'a [Vec<G1Affine>],
    /// The rows of the columns of the last layer's y.
    pub outputs: &'a [Vec<G1Affine>],
}

impl EncoderStatement<'_> {
    /// The shape of all layers.
    ///
    /// # Errors
    /// A statement outside its limits; layers of other shapes or with other tables.
    pub fn check(&self) -> Result<Shape> {
        let shape = check_layers(&self.layers)?;
        check_places(self.places)?;
        within("places in a row", 1, 1 << self.row_variables(), self.places)?;
        let blocks = shape.width_blocks().blocks;
        let rows = self.layers[0].attention.rows(self.places);
        check_rows("inputs", self.inputs, blocks, rows)?;
        check_rows("outputs", self.outputs, blocks, rows)?;
        Ok(shape)
    }

    pub fn row_variables(&self) -> usize {
        self.layers[0].row_variables()
    }

    pub fn transcript<O: Oracle>(&self, shape: &Shape) -> Transcript<O> {
        let mut t = Transcript::new("encoder");
        t.scalar("context", &self.context);
        absorb_layers(&mut t, &self.layers, self.places, shape);
        t.point("marks of places", &self.marks);
        t.points("inputs", self.inputs.iter().flatten());
        t.points("outputs", self.outputs.iter().flatten());
        t
    }
}

/// The columns that one layer commits to, in order, without those of tables.
#[derive(Clone)]
pub struct Columns<T> {
    pub attention: attention::Columns<T>,
    /// The result of the attention block, which is the input of the feed-forward block.
    pub middle: Vec<T>,
    pub feed_forward: feed_forward::Columns<T>,
    /// The layer's result. That of the last layer belongs to the statement, and the list is empty.
    pub outputs: Vec<T>,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = self.attention.in_order();
        out.extend(self.middle);
        out.extend(self.feed_forward.in_order());
        out.extend(self.outputs);
        out
    }

    /// Takes the layer's columns from the front.
    pub fn named(all: &mut impl Iterator<Item = T>, shape: &Shape, last: bool) -> Self {
        let width = shape.width_blocks().blocks;
        Self {
            attention: attention::Columns::named(all, &shape.attention),
            middle: all.by_ref().take(width).collect(),
            feed_forward: feed_forward::Columns::named(all, &shape.feed_forward),
            outputs: all.by_ref().take(if last { 0 } else { width }).collect(),
        }
    }
}

impl Columns<(usize, Bound)> {
    /// Entries and bound of each column.
    pub fn bounds(shape: &Shape, texts: Texts, last: bool) -> Self {
        let (places, width) = (texts.all(), shape.width_blocks());
        let one = (places * width.entries(), Bound::Signed(ACTIVATION_BITS));
        let activations = vec![one; width.blocks];
        Self {
            attention: attention::Columns::bounds(&shape.attention, texts),
            middle: activations.clone(),
            feed_forward: feed_forward::Columns::bounds(&shape.feed_forward, places),
            outputs: if last { Vec::new() } else { activations },
        }
    }
}

/// The columns of the tables' multiplicities, of all layers.
#[derive(Clone)]
pub struct Multiplicities<T> {
    pub of_exp: T,
    pub of_gelu: T,
    pub shared: SharedMultiplicities<T>,
}

impl<T> Multiplicities<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = vec![self.of_exp, self.of_gelu];
        out.extend(self.shared.in_order());
        out
    }

    pub fn named(mut all: impl Iterator<Item = T>) -> Self {
        let mut next = || all.next().expect("one for each name");
        Self {
            of_exp: next(),
            of_gelu: next(),
            shared: SharedMultiplicities::named(all),
        }
    }
}

impl Multiplicities<(usize, Bound)> {
    pub fn bounds(shape: &Shape, texts: Texts, layers: usize) -> Self {
        let places = texts.all();
        let (attention, feed_forward) = (&shape.attention, &shape.feed_forward);
        let of_layers = |count: usize| Bound::up_to(layers * count);
        let limbs = layers * shape.limbs_looked_up(texts);
        let activations = shape.activations_looked_up(places, layers);
        Self {
            of_exp: (EXP_ROWS, of_layers(texts.places * places * attention.heads)),
            of_gelu: (1 << ACTIVATION_BITS, of_layers(places * feed_forward.inner)),
            shared: SharedMultiplicities::bounds(activations, &shape.widths(), limbs),
        }
    }
}
