//! A model of the integer encoder as a verifier has it, and its canonical encoding: `docs/scan/encoder-embed.md`.
use sha2::{Digest, Sha256};

use super::statement::{EncoderEmbedStatement, Hashes};
use crate::attention::{self, statement::DISTANCES};
use crate::block::*;
use crate::encoder::{check_layers, Layer, MAX_LAYERS};
use crate::encoder_input::statement::MAX_VOCABULARY;
use crate::encoder_input::{self, Embeddings, Vectors};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::feed_forward::{self, MAX_INNER};
use crate::group::{decode_points, encode_points, Fr, G1Affine, ENCODED};

/// The first bytes of an encoding.
const DOMAIN: &[u8] = b"rag-audit/encoder-pins/v1\0\0\0";

/// The sizes of a model, and the fraction bits of its activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub layers: usize,
    pub vocabulary: usize,
    pub attention: attention::Shape,
    pub inner: usize,
    pub z: u32,
    pub g: u32,
    /// The pinned place rows.
    pub places: usize,
    /// Columns are committed in rows of 2^row_variables.
    pub row_variables: usize,
}

impl Sizes {
    /// How many sizes an encoding has, with 4 bytes each.
    const COUNT: usize = 13;

    fn each(&self) -> [u32; Self::COUNT] {
        let a = &self.attention;
        [
            self.layers as u32,
            a.width as u32,
            a.heads as u32,
            self.inner as u32,
            self.vocabulary as u32,
            self.places as u32,
            a.x,
            a.q,
            a.v,
            a.o,
            self.z,
            self.g,
            self.row_variables as u32,
        ]
    }

    fn of_each(each: [u32; Self::COUNT]) -> Self {
        let [layers, width, heads, inner, vocabulary, places, x, q, v, o, z, g, row_variables] =
            each;
        Self {
            layers: layers as usize,
            vocabulary: vocabulary as usize,
            attention: attention::Shape {
                width: width as usize,
                heads: heads as usize,
                x,
                q,
                v,
                o,
            },
            inner: inner as usize,
            z,
            g,
            places: places as usize,
            row_variables: row_variables as usize,
        }
    }

    /// The sizes that determine the length of an encoding are within their limits.
    fn check(&self) -> Result<()> {
        within("layers", 1, MAX_LAYERS, self.layers)?;
        within("width", 2, MAX_WIDTH, self.attention.width)?;
        within("inner", 1, MAX_INNER, self.inner)?;
        within("vocabulary", 3, MAX_VOCABULARY, self.vocabulary)?;
        self.of_input().check()
    }

    pub fn of_input(&self) -> encoder_input::Shape {
        encoder_input::Shape {
            vocabulary: self.vocabulary,
            width: self.attention.width,
            places: self.places,
            x: self.attention.x,
            row_variables: self.row_variables,
        }
    }

    pub fn of_feed_forward(&self) -> feed_forward::Shape {
        feed_forward::Shape {
            width: self.attention.width,
            inner: self.inner,
            x: self.attention.x,
            z: self.z,
            g: self.g,
        }
    }
}

/// A model as a verifier has it.
pub struct Pins {
    pub embeddings: Embeddings,
    pub layers: Vec<Layer>,
    digest: [u8; 32],
}

/// SHA-256 of an encoding.
pub fn digest(encoding: &[u8]) -> [u8; 32] {
    Sha256::digest(encoding).into()
}

/// The bytes of an encoding that are left.
struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| {
            let expected = format!("{count} more bytes");
            Error::invalid("pins", expected, format!("{} bytes", self.rest.len()))
        })?;
        self.rest = rest;
        Ok(taken)
    }

    /// Columns of so many points each.
    fn columns<E: Engine>(&mut self, columns: usize, rows: usize) -> Result<Vec<Vec<G1Affine>>> {
        let points = decode_points::<E>(self.take(columns * rows * ENCODED)?)?;
        Ok(points.chunks(rows).map(<[G1Affine]>::to_vec).collect())
    }

    fn int16(&mut self, count: usize) -> Result<Vec<i16>> {
        let (pairs, _) = self.take(2 * count)?.as_chunks();
        Ok(pairs.iter().map(|b| i16::from_le_bytes(*b)).collect())
    }

    fn matrix<E: Engine>(&mut self, sizes: [usize; 2], row_variables: usize) -> Result<Matrix> {
        let [columns, rows] = Matrix::size(sizes, row_variables);
        let [inputs, outputs] = sizes;
        Ok(Matrix {
            inputs,
            outputs,
            rows: self.columns::<E>(columns, rows)?,
            opened: None,
        })
    }

    fn layer<E: Engine>(&mut self, sizes: &Sizes, exp: &[i16], gelu: &[i16]) -> Result<Layer> {
        let (d, i, rows) = (sizes.attention.width, sizes.inner, sizes.row_variables);
        let mut matrices = Vec::new();
        for sizes in [[d, d], [d, d], [d, d], [d, d], [d, i], [i, d]] {
            matrices.push(self.matrix::<E>(sizes, rows)?);
        }
        let [q, k, v, a, first, second]: [Matrix; 6] =
            matrices.try_into().ok().expect("six matrices");
        let mut vectors = Vec::new();
        for count in [d, d, d, d, i, d, d, d, d, d] {
            vectors.push(self.int16(count)?);
        }
        let part = |k: usize| &vectors[k][..];
        let of_attention = attention::Vectors {
            biases: std::array::from_fn(part),
            gain: part(6),
            bias: part(7),
            exp,
        };
        let of_feed_forward = feed_forward::Vectors {
            first_bias: part(4),
            second_bias: part(5),
            gain: part(8),
            bias: part(9),
            gelu,
        };
        let shape = sizes.of_feed_forward();
        Layer::new(
            attention::Weights::new(sizes.attention, rows, [q, k, v, a], of_attention)?,
            feed_forward::Weights::new(shape, rows, [first, second], of_feed_forward)?,
        )
    }

    fn int32(&mut self, count: usize) -> Result<Vec<i32>> {
        let (words, _) = self.take(4 * count)?.as_chunks();
        Ok(words.iter().map(|b| i32::from_le_bytes(*b)).collect())
    }
}

fn int16(out: &mut Vec<u8>, values: &[i64]) {
    out.extend(values.iter().flat_map(|v| (*v as i16).to_le_bytes()));
}

/// The only encoding of a model: the domain, the sizes, and all parts in the order of the page. The layers have one shape and
/// the same tables.
pub fn encode(sizes: &Sizes, embeddings: &Embeddings, layers: &[&Layer]) -> Vec<u8> {
    let mut out = DOMAIN.to_vec();
    let sizes = sizes.each().into_iter();
    out.extend(sizes.flat_map(u32::to_le_bytes));
    out.extend(encode_points(&embeddings.words.concat()));
    out.extend(encode_points(&embeddings.positions.concat()));
    int16(&mut out, &embeddings.norm.gain);
    int16(&mut out, &embeddings.norm.bias);
    let unused = embeddings.unused.iter();
    out.extend(unused.flat_map(|v| (*v as i32).to_le_bytes()));
    int16(&mut out, &layers[0].attention.exp);
    int16(&mut out, &layers[0].feed_forward.gelu);
    for layer in layers {
        let (a, f) = (&layer.attention, &layer.feed_forward);
        let matrices = [a.points(), f.points()].concat();
        out.extend(encode_points(&matrices.concat()));
        let (biases, norms) = (a.biases.iter(), [&a.norm, &f.norm]);
        let vectors = biases.chain([&f.first_bias, &f.second_bias]);
        let vectors = vectors.chain(norms.into_iter().flat_map(|n| [&n.gain, &n.bias]));
        vectors.for_each(|values| int16(&mut out, values));
    }
    out
}

impl Pins {
    /// # Errors
    /// Bytes that [`encode`] does not produce; a size outside its limits.
    pub fn decode<E: Engine>(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader { rest: bytes };
        if from.take(DOMAIN.len())? != DOMAIN {
            let expected = String::from_utf8_lossy(DOMAIN);
            let expected = format!(
                "a file that begins with {}",
                expected.trim_end_matches('\0')
            );
            return Err(Error::invalid("pins", expected, "other bytes"));
        }
        let (each, _) = from.take(4 * Sizes::COUNT)?.as_chunks();
        let each: Vec<u32> = each.iter().map(|b| u32::from_le_bytes(*b)).collect();
        let sizes = Sizes::of_each(each.try_into().expect("so many sizes"));
        sizes.check()?;
        let shape = sizes.of_input();
        let blocks = shape.width_blocks();
        let words = from.columns::<E>(shape.width, shape.rows(shape.vocabulary))?;
        let of_positions = shape.rows(shape.places * blocks.entries());
        let positions = from.columns::<E>(blocks.blocks, of_positions)?;
        let (gain, bias) = (from.int16(shape.width)?, from.int16(shape.width)?);
        let vectors = Vectors {
            gain: &gain,
            bias: &bias,
            unused: &from.int32(shape.width)?,
        };
        let embeddings = Embeddings::new(shape, words, positions, vectors)?;
        let (exp, gelu) = (from.int16(DISTANCES)?, from.int16(1 << ACTIVATION_BITS)?);
        let mut layers = Vec::new();
        for _ in 0..sizes.layers {
            layers.push(from.layer::<E>(&sizes, &exp, &gelu)?);
        }
        check_layers(&layers.iter().collect::<Vec<_>>())?;
        match from.rest.len() {
            0 => Ok(Self {
                embeddings,
                layers,
                digest: digest(bytes),
            }),
            more => {
                let expected = format!("{} bytes", bytes.len() - more);
                let actual = format!("{} bytes", bytes.len());
                Err(Error::invalid("pins", expected, actual))
            }
        }
    }

    pub fn sizes(&self) -> Sizes {
        let (of_input, of_layer) = (self.embeddings.shape, self.layers[0].shape());
        Sizes {
            layers: self.layers.len(),
            vocabulary: of_input.vocabulary,
            attention: of_layer.attention,
            inner: of_layer.feed_forward.inner,
            z: of_layer.feed_forward.z,
            g: of_layer.feed_forward.g,
            places: of_input.places,
            row_variables: of_input.row_variables,
        }
    }

    /// The digest that pins the model.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// See [`EncoderEmbedStatement::of`].
    pub fn statement(&self, hashes: [Fr; 3], sizes: (usize, u64)) -> EncoderEmbedStatement<'_> {
        EncoderEmbedStatement::of(&self.embeddings, &self.layers, hashes, sizes)
    }

    /// See [`EncoderEmbedStatement::of_several`].
    pub fn statement_of(
        &self,
        queries: &[Hashes],
        sizes: (usize, u64),
    ) -> EncoderEmbedStatement<'_> {
        EncoderEmbedStatement::of_several(&self.embeddings, &self.layers, queries, sizes)
    }
}
