//! A model of the integer encoder as its provers have it.
use ragaudit_scan_protocol::block::within;
use ragaudit_scan_protocol::encoder::check_layers;
use ragaudit_scan_protocol::encoder_embed::pins::{digest, encode};
pub use ragaudit_scan_protocol::encoder_embed::{Pins, Sizes};

use crate::encoder::Layer;
use crate::encoder_embed::{
    prove_encoder_embed, prove_encoder_embeds, EncoderEmbedStatement, Hashes, Table, Text,
};
use crate::encoder_input::Parameters;
use crate::engine::Fast;
use crate::error::{Error, Result};
use crate::group::Fr;
use crate::{attention, feed_forward};

/// The integers of a model.
#[derive(Clone, Copy)]
pub struct Integers<'a> {
    /// In the order of the integer weights: `docs/minilm-int.md`.
    pub weights: &'a [i16],
    /// The place rows of the weights, of which the pins have the first ones.
    pub places: usize,
    pub exp: &'a [i16],
    pub gelu: &'a [i16],
    /// The token that all texts begin with.
    pub first: u32,
}

/// How many integers each parameter of a layer has, in the order of the integer weights.
fn parameters_of(sizes: &Sizes) -> [usize; 16] {
    let (d, i) = (sizes.attention.width, sizes.inner);
    let square = d * d;
    [
        square,
        d,
        square,
        d,
        square,
        d,
        square,
        d,
        d,
        d,
        d * i,
        i,
        i * d,
        d,
        d,
        d,
    ]
}

/// Both blocks of a layer from its parameters, and from the tables of exp and GELU.
fn open_layer(
    sizes: &Sizes,
    parts: [&[i16]; 16],
    [exp, gelu]: [&[i16]; 2],
    stored: Option<&Layer>,
) -> Result<Layer> {
    let [q, of_q, k, of_k, v, of_v, a, of_a, gain, bias, rest @ ..] = parts;
    let of_attention = attention::Parameters {
        matrices: [q, k, v, a],
        vectors: attention::Vectors {
            biases: [of_q, of_k, of_v, of_a],
            gain,
            bias,
            exp,
        },
    };
    let [first, first_bias, second, second_bias, gain, bias] = rest;
    let of_feed_forward = feed_forward::Parameters {
        first,
        second,
        vectors: feed_forward::Vectors {
            first_bias,
            second_bias,
            gain,
            bias,
            gelu,
        },
    };
    let rows = sizes.row_variables;
    let (a, f) = stored.map(|l| (&l.attention, &l.feed_forward)).unzip();
    Layer::new(
        attention::open_weights(sizes.attention, rows, of_attention, a)?,
        feed_forward::open_weights(sizes.of_feed_forward(), rows, of_feed_forward, f)?,
    )
}

/// A model with its integers and with the pins that a verifier has.
pub struct Model {
    sizes: Sizes,
    table: Table,
    layers: Vec<Layer>,
    pins: Vec<u8>,
}

impl Model {
    /// Commits to the integers, or takes the commitments from stored pins.
    ///
    /// # Errors
    /// A size outside its limits; another number of integers; integers outside their bounds; pins of other vectors or sizes.
    pub fn new(sizes: Sizes, integers: Integers, stored: Option<&[u8]>) -> Result<Self> {
        let shape = sizes.of_input();
        shape.check()?;
        let of_layer = parameters_of(&sizes);
        let width = shape.width;
        let count = (shape.vocabulary + integers.places + 2) * width
            + sizes.layers * of_layer.iter().sum::<usize>();
        within("weights", count, count, integers.weights.len())?;
        let mut rest = integers.weights;
        let mut take = |count: usize| {
            let (taken, left) = rest.split_at(count);
            rest = left;
            taken
        };
        let parameters = Parameters {
            words: take(shape.vocabulary * width),
            places: take(integers.places * width),
            gain: take(width),
            bias: take(width),
            first: integers.first,
        };
        let other = || {
            let (expected, actual) = ("the pins of the model", "those of another model");
            Error::invalid("pins", expected, actual)
        };
        let (embeddings, committed) = match stored {
            Some(pins) => {
                let pins = Pins::decode::<Fast>(pins)?;
                if pins.sizes() != sizes {
                    return Err(other());
                }
                (Some(pins.embeddings), pins.layers)
            }
            None => (None, Vec::new()),
        };
        let layers = (0..sizes.layers)
            .map(|n| {
                let parts = of_layer.map(&mut take);
                open_layer(
                    &sizes,
                    parts,
                    [integers.exp, integers.gelu],
                    committed.get(n),
                )
            })
            .collect::<Result<Vec<Layer>>>()?;
        check_layers(&layers.iter().collect::<Vec<_>>())?;
        let table = match embeddings {
            Some(embeddings) => Table::opened(embeddings, parameters)?,
            None => Table::new(shape, parameters)?,
        };
        let pins = encode(&sizes, &table.public, &layers.iter().collect::<Vec<_>>());
        if stored.is_some_and(|stored| stored != pins) {
            return Err(other());
        }
        Ok(Self {
            sizes,
            table,
            layers,
            pins,
        })
    }

    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The encoding of [`Pins`].
    pub fn pins(&self) -> &[u8] {
        &self.pins
    }

    pub fn digest(&self) -> [u8; 32] {
        digest(&self.pins)
    }

    /// See [`EncoderEmbedStatement::of`].
    pub fn statement(&self, hashes: [Fr; 3], sizes: (usize, u64)) -> EncoderEmbedStatement<'_> {
        EncoderEmbedStatement::of(&self.table.public, &self.layers, hashes, sizes)
    }

    /// See [`EncoderEmbedStatement::of_several`].
    pub fn statement_of(
        &self,
        queries: &[Hashes],
        sizes: (usize, u64),
    ) -> EncoderEmbedStatement<'_> {
        EncoderEmbedStatement::of_several(&self.table.public, &self.layers, queries, sizes)
    }

    /// See [`prove_encoder_embed`].
    pub fn prove(
        &self,
        statement: &EncoderEmbedStatement,
        text: &Text,
        salt: &Fr,
    ) -> Result<Vec<u8>> {
        prove_encoder_embed(statement, &self.table, text, salt)
    }

    /// See [`prove_encoder_embeds`].
    pub fn prove_all(
        &self,
        statement: &EncoderEmbedStatement,
        queries: &[(&Text, &Fr)],
    ) -> Result<Vec<u8>> {
        prove_encoder_embeds(statement, &self.table, queries)
    }

    /// See [`crate::encoder_embed::vector_of`].
    pub fn table(&self) -> &Table {
        &self.table
    }
}

/// See [`Pins::decode`].
pub fn decode_pins(bytes: &[u8]) -> Result<Pins> {
    Pins::decode::<Fast>(bytes)
}
