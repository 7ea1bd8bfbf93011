//! The statement of a proof of A1 for the integer encoder, and the bounds of all of its values: `docs/scan/encoder-embed.md`.
use crate::block::*;
use crate::claims::Bound;
use crate::encoder::{self, check_layers, Layer, Layers};
use crate::encoder_input::{self, Embeddings};
use crate::encoder_output;
use crate::error::{Error, Result};
use crate::group::Fr;
use crate::nibbles::NIBBLE_VARIABLES;
use crate::session::ColumnId;
use crate::transcript::{Oracle, Transcript};
use crate::vector;

/// The sizes of all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub input: encoder_input::Shape,
    pub layers: encoder::Shape,
    pub output: encoder_output::Shape,
}

impl Shape {
    /// The widths of limbs that occur, each once; multiplicities are committed in this order.
    pub fn widths(&self) -> Vec<usize> {
        let mut all = self.input.remainders().to_vec();
        all.extend(self.layers.remainders());
        widths_of(&all)
    }
}

/// The statement of a proof of A1. The verifier rebuilds every value and reads none from a file.
#[derive(Clone)]
pub struct EncoderEmbedStatement<'a> {
    /// Digest of all other fields of the record.
    pub context: Fr,
    pub embeddings: &'a Embeddings,
    /// In the order in which they are applied.
    pub layers: Vec<&'a Layer>,
    /// T.
    pub places: usize,
    /// A.
    pub norm_factor: u64,
    pub hq: Fr,
    pub cq: Fr,
}

impl<'a> EncoderEmbedStatement<'a> {
    /// The statement about hashes of tokens and of their vector, with T and A.
    pub fn of(
        embeddings: &'a Embeddings,
        layers: &'a [Layer],
        [context, hq, cq]: [Fr; 3],
        (places, norm_factor): (usize, u64),
    ) -> Self {
        Self {
            context,
            embeddings,
            layers: layers.iter().collect(),
            places,
            norm_factor,
            hq,
            cq,
        }
    }
}

impl EncoderEmbedStatement<'_> {
    /// # Errors
    /// A statement outside its limits; layers of other shapes or with other tables; embeddings of another width or scale.
    pub fn check(&self) -> Result<Shape> {
        let layers = check_layers(&self.layers)?;
        let input = self.embeddings.shape;
        check_places(self.places)?;
        within("places", 1, input.places, self.places)?;
        let of = |width: usize, x: u32, rows: usize| {
            format!("width {width}, scale x {x}, rows of 2^{rows}")
        };
        let (attention, rows) = (&layers.attention, self.layers[0].row_variables());
        let expected = of(attention.width, attention.x, rows);
        let actual = of(input.width, input.x, input.row_variables);
        if actual != expected {
            return Err(Error::invalid("embeddings", expected, actual));
        }
        let output = encoder_output::Shape {
            width: input.width,
            norm_factor: self.norm_factor,
        };
        output.check()?;
        Ok(Shape {
            input,
            layers,
            output,
        })
    }

    pub fn row_variables(&self) -> usize {
        self.embeddings.shape.row_variables
    }

    pub fn transcript<O: Oracle>(&self, shape: &Shape) -> Transcript<O> {
        let mut t = Transcript::new("encoder embed");
        t.scalar("context", &self.context);
        t.bytes("embeddings", &self.embeddings.digest());
        encoder::absorb_layers(&mut t, &self.layers, self.places, &shape.layers);
        t.integer("norm factor", self.norm_factor);
        t.scalar("hq", &self.hq);
        t.scalar("cq", &self.cq);
        t
    }
}

/// The columns, in the order in which they are committed to.
pub struct Columns<T> {
    pub marks: T,
    /// The first layer's x and the last layer's y.
    pub x: Vec<T>,
    pub y: Vec<T>,
    pub input: encoder_input::Columns<T>,
    /// Those of all layers.
    pub layers: Vec<T>,
    pub vector: vector::Columns<T>,
    pub multiplicities: Multiplicities<T>,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = vec![self.marks];
        out.extend(self.x);
        out.extend(self.y);
        out.extend(self.input.in_order());
        out.extend(self.layers);
        out.extend(self.vector.in_order());
        out.extend(self.multiplicities.in_order());
        out
    }
}

impl Columns<ColumnId> {
    pub fn named(all: Vec<ColumnId>, shape: &Shape, places: usize, count: usize) -> Self {
        let width = shape.layers.width_blocks().blocks;
        let of_layers = Layers::bounds(&shape.layers, places, count).len();
        let mut all = all.into_iter();
        let marks = all.next().expect("one for each name");
        Self {
            marks,
            x: all.by_ref().take(width).collect(),
            y: all.by_ref().take(width).collect(),
            input: encoder_input::Columns::named(&mut all, &shape.input),
            layers: all.by_ref().take(of_layers).collect(),
            vector: vector::Columns::named(&mut all, &shape.output.vector(places).bounds),
            multiplicities: Multiplicities::named(all),
        }
    }
}

impl Columns<(usize, Bound)> {
    /// Entries and bound of each column.
    pub fn bounds(shape: &Shape, places: usize, count: usize) -> Self {
        let blocks = shape.layers.width_blocks();
        let one = (places * blocks.entries(), Bound::Signed(ACTIVATION_BITS));
        let matrix = vec![one; blocks.blocks];
        Self {
            marks: (places, Bound::Unsigned(BIT)),
            x: matrix.clone(),
            y: matrix,
            input: encoder_input::Columns::bounds(&shape.input, places),
            layers: Layers::bounds(&shape.layers, places, count),
            vector: vector::Columns::bounds(&shape.output.vector(places)),
            multiplicities: Multiplicities::bounds(shape, places, count),
        }
    }
}

/// The columns of the tables' multiplicities, of all parts.
#[derive(Clone)]
pub struct Multiplicities<T> {
    pub of_steps: T,
    pub of_exp: T,
    pub of_gelu: T,
    pub shared: SharedMultiplicities<T>,
}

impl<T> Multiplicities<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = vec![self.of_steps, self.of_exp, self.of_gelu];
        out.extend(self.shared.in_order());
        out
    }

    pub fn named(mut all: impl Iterator<Item = T>) -> Self {
        let mut next = || all.next().expect("one for each name");
        Self {
            of_steps: next(),
            of_exp: next(),
            of_gelu: next(),
            shared: SharedMultiplicities::named(all),
        }
    }
}

impl Multiplicities<(usize, Bound)> {
    pub fn bounds(shape: &Shape, places: usize, count: usize) -> Self {
        let of_layers = encoder::Multiplicities::bounds(&shape.layers, places, count);
        let size = shape.output.vector(places);
        let of_ends = shape.input.limbs_looked_up(places) + size.limbs_looked_up();
        let limbs = count * shape.layers.limbs_looked_up(places) + of_ends;
        let activations = shape.layers.activations_looked_up(places, count);
        Self {
            of_steps: (1 << NIBBLE_VARIABLES, Bound::up_to(1 << size.components())),
            of_exp: of_layers.of_exp,
            of_gelu: of_layers.of_gelu,
            shared: SharedMultiplicities::bounds(activations, &shape.widths(), limbs),
        }
    }
}
