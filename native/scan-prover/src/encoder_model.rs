//! A model of the integer encoder as its provers have it.
use ragaudit_scan_protocol::block::within;
use ragaudit_scan_protocol::encoder::check_layers;
use ragaudit_scan_protocol::encoder_embed::pins::{digest, encode, layer};
pub use ragaudit_scan_protocol::encoder_embed::{Pins, Sizes};

use crate::encoder::Layer;
use crate::encoder_embed::{prove_encoder_embed, EncoderEmbedStatement, Table, Text};
use crate::encoder_input::Parameters;
use crate::engine::Fast;
use crate::error::{Error, Result};
use crate::group::Fr;

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
        let of_layer = sizes.of_layer();
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
        let (exp, gelu) = (integers.exp, integers.gelu);
        let layers = (0..sizes.layers)
            .map(|_| layer(&sizes, of_layer.map(&mut take), exp, gelu))
            .collect::<Result<Vec<Layer>>>()?;
        check_layers(&layers.iter().collect::<Vec<_>>())?;
        let table = match stored {
            Some(pins) => Table::opened(Pins::decode::<Fast>(pins)?.embeddings, parameters)?,
            None => Table::new(shape, parameters)?,
        };
        let pins = encode(&sizes, &table.public, &layers.iter().collect::<Vec<_>>());
        if stored.is_some_and(|stored| stored != pins) {
            let (expected, actual) = ("the pins of the model", "those of another model");
            return Err(Error::invalid("pins", expected, actual));
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

    /// The statement about hashes of tokens and of their vector, with T and A.
    pub fn statement(
        &self,
        [context, hq, cq]: [Fr; 3],
        (places, norm_factor): (usize, u64),
    ) -> EncoderEmbedStatement<'_> {
        EncoderEmbedStatement {
            context,
            embeddings: &self.table.public,
            layers: self.layers.iter().collect(),
            places,
            norm_factor,
            hq,
            cq,
        }
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

    /// See [`crate::encoder_embed::vector_of`].
    pub fn table(&self) -> &Table {
        &self.table
    }
}

/// See [`Pins::decode`].
pub fn decode_pins(bytes: &[u8]) -> Result<Pins> {
    Pins::decode::<Fast>(bytes)
}
