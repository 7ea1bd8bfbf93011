//! The statement of a proof of the encoder's input, and the bounds of all of its values: `docs/scan/encoder-input.md`.
use sha2::{Digest, Sha256};

use crate::block::*;
use crate::claims::Bound;
use crate::error::{Error, Result};
use crate::group::{encode_points, Fr, G1Affine};
use crate::numbers::log2_ceil;
use crate::transcript::{Oracle, Transcript};

pub use crate::embed::MAX_VOCABULARY;

/// The size of a model's embeddings, and how they are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub vocabulary: usize,
    pub width: usize,
    /// Place rows, which is the largest number of places of a statement.
    pub places: usize,
    /// Fraction bits of the result.
    pub x: u32,
    /// Columns are committed in rows of 2^row_variables.
    pub row_variables: usize,
}

impl Shape {
    pub fn check(&self) -> Result<()> {
        within("vocabulary", 3, MAX_VOCABULARY, self.vocabulary)?;
        within("width", 2, MAX_WIDTH, self.width)?;
        check_places(self.places)?;
        within("scale x", 0, MAX_SCALE as usize, self.x as usize)?;
        within("row variables", 1, MAX_ROW_VARIABLES, self.row_variables)
    }

    pub fn width_blocks(&self) -> Blocks {
        Blocks::of(self.width)
    }

    /// The bits of a token's number.
    pub fn token_bits(&self) -> usize {
        log2_ceil(self.vocabulary)
    }

    /// The bits of a token's lower digit and of its upper one.
    pub fn digits(&self) -> [usize; 2] {
        let high = self.token_bits() / 2;
        [self.token_bits() - high, high]
    }

    /// S: the bits by which the LayerNorm is shifted.
    pub fn norm_shift(&self) -> usize {
        norm_shift(self.x)
    }

    /// The bits of everything with limbs: remainders of the LayerNorm, distances of tokens from the last one, and bits.
    pub fn remainders(&self) -> [usize; 3] {
        [self.norm_shift(), self.token_bits(), BIT]
    }

    /// The widths of limbs that occur, each once; multiplicities are committed in this order.
    pub fn widths(&self) -> Vec<usize> {
        widths_of(&self.remainders())
    }

    /// How many of the limbs of V - 1 - t are hidden values: the top one is what is left.
    pub fn hidden_limbs(&self) -> usize {
        limbs_below(self.token_bits())
    }

    /// The number of rows of a column with this many entries.
    pub fn rows(&self, entries: usize) -> usize {
        entries.div_ceil(1 << self.row_variables)
    }

    /// The number of lookups of limbs and of bits.
    pub fn limbs_looked_up(&self, places: usize) -> usize {
        let [low, high] = self.digits();
        let of_token = (1 << low) + (1 << high) + 1 + limb_widths(self.token_bits()).len();
        let of_norm = self.width * limb_widths(self.norm_shift()).len() + ROOT_STRIDE;
        places * (of_token + of_norm)
    }
}

/// The integers of a model's embeddings that a verifier has: those of the LayerNorm, and the row of unused places.
#[derive(Clone, Copy)]
pub struct Vectors<'a> {
    pub gain: &'a [i16],
    pub bias: &'a [i16],
    /// Word row and place row of an unused place, added up.
    pub unused: &'a [i32],
}

/// A model's embeddings as a verifier has them: commitments to the word rows and to the place rows, and vectors.
pub struct Embeddings {
    pub shape: Shape,
    /// The rows of the column of each component of the word rows.
    pub words: Vec<Vec<G1Affine>>,
    /// The rows of each block's column of the place rows.
    pub positions: Vec<Vec<G1Affine>>,
    pub norm: LayerNorm,
    pub unused: Vec<i64>,
    digest: [u8; 32],
}

impl Embeddings {
    /// # Errors
    /// A size outside its limits; another number of commitments or integers; a row of unused places beyond the sum of two
    /// parameters.
    pub fn new(
        shape: Shape,
        words: Vec<Vec<G1Affine>>,
        positions: Vec<Vec<G1Affine>>,
        vectors: Vectors,
    ) -> Result<Self> {
        shape.check()?;
        let blocks = shape.width_blocks();
        let of_words = shape.rows(shape.vocabulary);
        check_rows("word rows", &words, shape.width, of_words)?;
        let of_positions = shape.rows(shape.places * blocks.entries());
        check_rows("place rows", &positions, blocks.blocks, of_positions)?;
        let parts = [vectors.gain, vectors.bias];
        counted(parts, [shape.width; 2], ["gain", "bias"])?;
        let (expected, actual) = (shape.width, vectors.unused.len());
        within("row of unused places", expected, expected, actual)?;
        let parameter = 2 * i32::from(i16::MAX) + 2;
        if let Some(bad) = vectors.unused.iter().find(|v| v.abs() > parameter) {
            let expected = format!("integers of at most {parameter} in magnitude");
            return Err(Error::invalid("row of unused places", expected, bad));
        }
        Ok(Self {
            digest: digest(&shape, [&words, &positions], &vectors),
            shape,
            words,
            positions,
            norm: LayerNorm::new(vectors.gain, vectors.bias, shape.x),
            unused: vectors.unused.iter().map(|v| i64::from(*v)).collect(),
        })
    }

    /// The digest that pins the embeddings.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

fn digest(shape: &Shape, points: [&[Vec<G1Affine>]; 2], vectors: &Vectors) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"rag-audit/encoder-input/v1");
    for size in [
        shape.vocabulary as u32,
        shape.width as u32,
        shape.places as u32,
        shape.x,
        shape.row_variables as u32,
    ] {
        hash.update(size.to_le_bytes());
    }
    for columns in points {
        hash.update(encode_points(&columns.concat()));
    }
    for values in [vectors.gain, vectors.bias] {
        values.iter().for_each(|v| hash.update(v.to_le_bytes()));
    }
    let unused = vectors.unused.iter();
    unused.for_each(|v| hash.update(v.to_le_bytes()));
    hash.finalize().into()
}

/// The statement of a proof of the encoder's input. The verifier rebuilds every value and reads none from a file.
#[derive(Clone)]
pub struct InputStatement<'a> {
    /// Digest of all other fields of the record.
    pub context: Fr,
    pub embeddings: &'a Embeddings,
    /// T.
    pub places: usize,
    pub hq: Fr,
    /// The commitment to the marks of the places: 1 for each used place.
    pub marks: G1Affine,
    /// The rows of the columns of x, one list a column.
    pub outputs: &'a [Vec<G1Affine>],
}

impl InputStatement<'_> {
    pub fn check(&self) -> Result<()> {
        let shape = &self.embeddings.shape;
        check_places(self.places)?;
        within("places", 1, shape.places, self.places)?;
        within("places in a row", 1, 1 << shape.row_variables, self.places)?;
        let blocks = shape.width_blocks();
        let rows = shape.rows(self.places * blocks.entries());
        check_rows("outputs", self.outputs, blocks.blocks, rows)
    }

    pub fn row_variables(&self) -> usize {
        self.embeddings.shape.row_variables
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new("encoder input");
        t.scalar("context", &self.context);
        t.bytes("embeddings", &self.embeddings.digest());
        t.integer("places", self.places as u64);
        t.scalar("hq", &self.hq);
        t.point("marks of places", &self.marks);
        t.points("outputs", self.outputs.iter().flatten());
        t
    }
}

/// The columns that the run commits to, in order, without those of tables. A list of limbs has one list of blocks for each
/// limb below the top.
#[derive(Clone)]
pub struct Columns<T> {
    /// For each place, 1 at the token's lower digit and at its upper one.
    pub digits: [T; 2],
    pub norm_limbs: Vec<Vec<T>>,
    pub roots: T,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out: Vec<T> = self.digits.into();
        out.extend(self.norm_limbs.into_iter().flatten());
        out.push(self.roots);
        out
    }

    /// Takes the columns from the front.
    pub fn named(all: &mut impl Iterator<Item = T>, shape: &Shape) -> Self {
        let mut one = || all.next().expect("one for each name");
        let digits = [one(), one()];
        let blocks = shape.width_blocks().blocks;
        let mut limb = || (0..blocks).map(|_| one()).collect();
        let norm_limbs = (0..limbs_below(shape.norm_shift())).map(|_| limb());
        Self {
            digits,
            norm_limbs: norm_limbs.collect(),
            roots: one(),
        }
    }
}

impl Columns<(usize, Bound)> {
    /// Entries and bound of each column.
    pub fn bounds(shape: &Shape, places: usize) -> Self {
        let blocks = shape.width_blocks();
        let limb = Bound::Unsigned(LIMB_BITS);
        let of_block = vec![(places * blocks.entries(), limb); blocks.blocks];
        Self {
            digits: shape.digits().map(|d| (places << d, Bound::Unsigned(BIT))),
            norm_limbs: vec![of_block; limbs_below(shape.norm_shift())],
            roots: (places * ROOT_STRIDE, limb),
        }
    }
}
