//! The statement of a proof of A1 for the integer encoder, and the bounds of all of its values: `docs/scan/encoder-embed.md`.
use crate::attention::statement::EXP_ROWS;
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
    /// How many rows a run with so many layers looks up in each table: steps, exp, GELU, activations, and limbs of all widths.
    pub fn looked_up(&self, texts: Texts, layers: usize) -> [usize; 5] {
        let size = self.output.vectors(texts);
        let of_ends = self.input.limbs_looked_up(texts.all()) + size.limbs_looked_up();
        let (attention, feed_forward) = (&self.layers.attention, &self.layers.feed_forward);
        [
            1 << size.variables(),
            layers * texts.places * texts.all() * attention.heads,
            layers * texts.all() * feed_forward.inner,
            self.layers.activations_looked_up(texts.all(), layers),
            layers * self.layers.limbs_looked_up(texts) + of_ends,
        ]
    }

    /// The largest number of queries of so many places in one proof.
    pub fn max_queries(&self, places: usize, layers: usize) -> usize {
        let fits = |count: &usize| {
            let texts = Texts {
                count: *count,
                places,
            };
            self.looked_up(texts, layers).iter().sum::<usize>() <= MAX_LOOKED_UP
        };
        let counts = (0..=MAX_QUERIES.ilog2()).map(|k| 1 << k);
        counts.take_while(fits).last().unwrap_or(1)
    }

    /// The widths of limbs that occur, each once; multiplicities are committed in this order.
    pub fn widths(&self) -> Vec<usize> {
        let mut all = self.input.remainders().to_vec();
        all.extend(self.layers.remainders());
        widths_of(&all)
    }
}

/// The largest number of queries in one proof.
pub const MAX_QUERIES: usize = 16;
/// The largest number of looked-up rows of several queries, so that a tree has at most 2^28 leaves. One query has fewer.
pub const MAX_LOOKED_UP: usize = 1 << 27;

// Rows of the longest run, over which a batch of records has rows too.
const _: () = assert!(
    MAX_ROW_VARIABLES + MAX_QUERIES.ilog2() as usize <= crate::batch_size::MAX_ROW_VARIABLES
        && MAX_QUERIES.is_power_of_two()
);

/// The published values of a record about its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashes {
    /// Digest of all other fields of the record.
    pub context: Fr,
    pub hq: Fr,
    pub cq: Fr,
}

/// The statement of a proof of A1 for one query, or for several: 2, 4, 8 or 16. The verifier rebuilds every value and reads none
/// from a file.
#[derive(Clone)]
pub struct EncoderEmbedStatement<'a> {
    pub queries: Vec<Hashes>,
    pub embeddings: &'a Embeddings,
    /// In the order in which they are applied.
    pub layers: Vec<&'a Layer>,
    /// T.
    pub places: usize,
    /// A.
    pub norm_factor: u64,
}

impl<'a> EncoderEmbedStatement<'a> {
    /// The statement about hashes of tokens and of their vector, with T and A.
    pub fn of(
        embeddings: &'a Embeddings,
        layers: &'a [Layer],
        [context, hq, cq]: [Fr; 3],
        sizes: (usize, u64),
    ) -> Self {
        Self::of_several(embeddings, layers, &[Hashes { context, hq, cq }], sizes)
    }

    /// The same about several queries.
    pub fn of_several(
        embeddings: &'a Embeddings,
        layers: &'a [Layer],
        queries: &[Hashes],
        (places, norm_factor): (usize, u64),
    ) -> Self {
        Self {
            queries: queries.to_vec(),
            embeddings,
            layers: layers.iter().collect(),
            places,
            norm_factor,
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
        let shape = Shape {
            input,
            layers,
            output,
        };
        let (count, maximum) = (
            self.queries.len(),
            shape.max_queries(self.places, self.layers.len()),
        );
        if !count.is_power_of_two() || count > maximum {
            let expected = format!("a power of two from 1 to {maximum}");
            return Err(Error::invalid("queries together", expected, count));
        }
        Ok(shape)
    }

    pub fn texts(&self) -> Texts {
        Texts {
            count: self.queries.len(),
            places: self.places,
        }
    }

    /// The base-2 logarithm of the length of the rows that the run commits to: as many times longer than the model's as there are
    /// queries, so that their number does not depend on the number of queries.
    pub fn row_variables(&self) -> usize {
        self.embeddings.shape.row_variables + self.texts().of_texts()
    }

    pub fn transcript<O: Oracle>(&self, shape: &Shape) -> Transcript<O> {
        let mut t = Transcript::new("encoder embed");
        for query in &self.queries {
            t.scalar("context", &query.context);
        }
        t.bytes("embeddings", &self.embeddings.digest());
        encoder::absorb_layers(&mut t, &self.layers, self.places, &shape.layers);
        t.integer("norm factor", self.norm_factor);
        for query in &self.queries {
            t.scalar("hq", &query.hq);
            t.scalar("cq", &query.cq);
        }
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
    pub fn named(all: Vec<ColumnId>, shape: &Shape, texts: Texts, count: usize) -> Self {
        let width = shape.layers.width_blocks().blocks;
        let of_layers = Layers::bounds(&shape.layers, texts, count).len();
        let mut all = all.into_iter();
        let marks = all.next().expect("one for each name");
        Self {
            marks,
            x: all.by_ref().take(width).collect(),
            y: all.by_ref().take(width).collect(),
            input: encoder_input::Columns::named(&mut all, &shape.input),
            layers: all.by_ref().take(of_layers).collect(),
            vector: vector::Columns::named(&mut all, &shape.output.vectors(texts).bounds),
            multiplicities: Multiplicities::named(all),
        }
    }
}

impl Columns<(usize, Bound)> {
    /// Entries and bound of each column.
    pub fn bounds(shape: &Shape, texts: Texts, count: usize) -> Self {
        let places = texts.all();
        let blocks = shape.layers.width_blocks();
        let one = (places * blocks.entries(), Bound::Signed(ACTIVATION_BITS));
        let matrix = vec![one; blocks.blocks];
        Self {
            marks: (places, Bound::Unsigned(BIT)),
            x: matrix.clone(),
            y: matrix,
            input: encoder_input::Columns::bounds(&shape.input, places),
            layers: Layers::bounds(&shape.layers, texts, count),
            vector: vector::Columns::bounds(&shape.output.vectors(texts)),
            multiplicities: Multiplicities::bounds(shape, texts, count),
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
    pub fn bounds(shape: &Shape, texts: Texts, count: usize) -> Self {
        let [steps, scores, inner, activations, limbs] = shape.looked_up(texts, count);
        Self {
            of_steps: (1 << NIBBLE_VARIABLES, Bound::up_to(steps)),
            of_exp: (EXP_ROWS, Bound::up_to(scores)),
            of_gelu: (1 << ACTIVATION_BITS, Bound::up_to(inner)),
            shared: SharedMultiplicities::bounds(activations, &shape.widths(), limbs),
        }
    }
}
