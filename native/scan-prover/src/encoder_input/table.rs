//! A model's embeddings as a prover has them, and a text: `docs/scan/encoder-input.md`.
use std::sync::Arc;

use ark_ff::AdditiveGroup;
use ragaudit_scan_protocol::block::{counted, wide, within};
use ragaudit_scan_protocol::encoder_input::{Embeddings, Shape, TableOpenings, Vectors};
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::block::{commit_public, split};
use crate::claims::Opening;
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};

/// The integers of a model's embeddings, row by row.
#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// One row a token.
    pub words: &'a [i16],
    /// One row a place; the rows beyond the shape's places are not used.
    pub places: &'a [i16],
    pub gain: &'a [i16],
    pub bias: &'a [i16],
    /// The token of the unused places' word row: they repeat the first place of a text that begins with this token.
    pub first: u32,
}

/// A model's embeddings as a prover has them.
pub struct Table {
    pub public: Embeddings,
    pub(crate) openings: TableOpenings,
}

impl Table {
    /// Commits to the rows. The commitments hide nothing: every party with the integers computes the same points.
    ///
    /// # Errors
    /// A size outside its limits; another number of integers; a first token outside the vocabulary.
    pub fn new(shape: Shape, parameters: Parameters) -> Result<Self> {
        let openings = table_openings(&shape, &parameters)?;
        let commit = |openings: &[Arc<Opening>]| commit_public(openings, shape.row_variables);
        let (words, positions) = (commit(&openings.words), commit(&openings.positions));
        let public = embeddings(shape, words, positions, &parameters)?;
        Ok(Self { public, openings })
    }

    /// The same for embeddings that are already committed. A proof is invalid if the integers are others.
    ///
    /// # Errors
    /// As [`Self::new`]; another gain, bias or row of unused places.
    pub fn opened(public: Embeddings, parameters: Parameters) -> Result<Self> {
        let openings = table_openings(&public.shape, &parameters)?;
        let (words, positions) = (public.words.clone(), public.positions.clone());
        let other = embeddings(public.shape, words, positions, &parameters)?;
        if other.digest() != public.digest() {
            let (expected, actual) = ("the vectors of the committed model", "other vectors");
            return Err(Error::invalid("embeddings", expected, actual));
        }
        Ok(Self { public, openings })
    }

    /// Whether this is the table of a statement's embeddings.
    pub(crate) fn expect(&self, embeddings: &Embeddings) -> Result<()> {
        if self.public.digest() == embeddings.digest() {
            return Ok(());
        }
        let what = "the table is not that of the statement".to_owned();
        Err(Error::Unsatisfied(what))
    }
}

/// The row of unused places: the first token's word row and the first place row.
fn unused_row(shape: &Shape, parameters: &Parameters) -> Vec<i32> {
    let word = parameters
        .words
        .chunks_exact(shape.width)
        .nth(parameters.first as usize);
    let pairs = word.unwrap_or_default().iter().zip(parameters.places);
    pairs.map(|(w, p)| i32::from(*w) + i32::from(*p)).collect()
}

fn embeddings(
    shape: Shape,
    words: Vec<Vec<G1Affine>>,
    positions: Vec<Vec<G1Affine>>,
    parameters: &Parameters,
) -> Result<Embeddings> {
    let vectors = Vectors {
        gain: parameters.gain,
        bias: parameters.bias,
        unused: &unused_row(&shape, parameters),
    };
    Embeddings::new(shape, words, positions, vectors)
}

/// The columns of the word rows and of the place rows, with blindings 0.
fn table_openings(shape: &Shape, parameters: &Parameters) -> Result<TableOpenings> {
    shape.check()?;
    let width = shape.width;
    let count = shape.vocabulary * width;
    counted([parameters.words], [count], ["word rows"])?;
    let least = shape.places * width;
    within("place rows", least, usize::MAX, parameters.places.len())?;
    let last = shape.vocabulary - 1;
    within("first token", 0, last, parameters.first as usize)?;
    let open = |values: Vec<i64>| {
        let blindings = vec![Fr::ZERO; shape.rows(values.len())];
        Arc::new(Opening { values, blindings })
    };
    let column = |j: usize| {
        let entries = parameters.words.iter().skip(j).step_by(width);
        open(entries.map(|v| i64::from(*v)).collect())
    };
    let positions = wide(&parameters.places[..least]);
    let positions = split(&positions, shape.width_blocks(), width).into_iter();
    Ok(TableOpenings {
        words: (0..width).into_par_iter().map(column).collect(),
        positions: positions.map(open).collect(),
    })
}

/// The tokens of a text, and the salt of their hash hq.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Text {
    pub tokens: Vec<u32>,
    pub salt: Fr,
}
