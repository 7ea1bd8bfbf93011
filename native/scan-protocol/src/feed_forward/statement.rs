//! The statement of a proof of one feed-forward block, its weights, and the bounds of all of its values:
//! `docs/scan/feed-forward.md`.
use sha2::{Digest, Sha256};

use crate::claims::Bound;
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
use crate::numbers::{log2_ceil, NO_WRAP_BITS};
use crate::transcript::{Oracle, Transcript};

/// Fraction bits of a parameter.
pub const WEIGHT_BITS: usize = 12;
/// Activations are from -2^11 to 2^11 - 1.
pub const ACTIVATION_BITS: usize = 12;
pub const ACTIVATION_LIMIT: i64 = 1 << (ACTIVATION_BITS - 1);
/// Fraction bits of R.
pub const ROOT_BITS: usize = 42;
/// Sums of a dense layer are below this in magnitude, for all activations.
pub const ACCUMULATOR_LIMIT: i64 = 1 << 31;
pub const MAX_SCALE: u32 = 11;
pub const MAX_PLACES: usize = 64;
pub const MAX_WIDTH: usize = 1 << 10;
pub const MAX_INNER: usize = 1 << 12;

pub const LIMB_BITS: usize = 12;
/// Limbs of R, and of each slack of its two inequalities.
pub const ROOT_LIMBS: usize = 4;
pub const SLACK_LIMBS: usize = 8;
/// Entries of one place in the column of roots.
pub const ROOT_STRIDE: usize = 32;
/// Largest row of a column's commitment, as a power of two.
const MAX_ROW_VARIABLES: usize = 12;

/// Tags of the tables; a table of limbs has its width as its tag.
pub const TAG_GELU: u64 = 13;
pub const TAG_ACTIVATION: u64 = 14;

// The assertions behind the bounds in `docs/scan/feed-forward.md`: no equation wraps around.
const _: () = {
    // |d r_j - sum r| <= 2 d 2^31, and the sum of d squares of it.
    let deviation = 1 + MAX_WIDTH.trailing_zeros() as usize + 31;
    let variance = MAX_WIDTH.trailing_zeros() as usize + 2 * deviation;
    assert!(MAX_WIDTH.is_power_of_two() && deviation == 42 && variance == 94);
    // R^2 V <= d 2^(2 K), V >= 1: a root has 47 bits, and (2 R + 1) V <= 2 sqrt(d 2^(2 K) V) + V.
    let target = MAX_WIDTH.trailing_zeros() as usize + 2 * ROOT_BITS;
    assert!(target / 2 < LIMB_BITS * ROOT_LIMBS);
    assert!(1 + (target + variance) / 2 < LIMB_BITS * SLACK_LIMBS);
    assert!(ROOT_LIMBS + 2 * SLACK_LIMBS <= ROOT_STRIDE);
    // For all values that a prover may write.
    assert!(2 * LIMB_BITS * ROOT_LIMBS + variance + 2 <= 192 && 192 < NO_WRAP_BITS);
    assert!(deviation + LIMB_BITS * ROOT_LIMBS + 16 + 2 < NO_WRAP_BITS);
    // A quotient times its divisor, and the remainder.
    let shift = ROOT_BITS + WEIGHT_BITS;
    assert!(ACTIVATION_BITS + shift + 1 < NO_WRAP_BITS);
    assert!(LIMB_BITS < TAG_GELU as usize && TAG_GELU < TAG_ACTIVATION);
};

/// The size of a block, and the fraction bits of its activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub width: usize,
    pub inner: usize,
    /// Fraction bits of the input and of the result.
    pub x: u32,
    /// Fraction bits of GELU's input.
    pub z: u32,
    /// Fraction bits of GELU's result.
    pub g: u32,
}

/// An even number of blocks is a power of two of entries: count = blocks 2^variables, with an odd number of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    pub blocks: usize,
    pub variables: usize,
}

impl Blocks {
    pub fn of(count: usize) -> Self {
        let variables = count.trailing_zeros() as usize;
        Self {
            blocks: count >> variables,
            variables,
        }
    }

    /// Entries of one place in one column.
    pub fn entries(&self) -> usize {
        1 << self.variables
    }
}

/// Widths of the limbs of a remainder of so many bits, the lowest limb first.
pub fn limb_widths(bits: usize) -> Vec<usize> {
    let count = bits.div_ceil(LIMB_BITS);
    let mut widths = vec![LIMB_BITS; count];
    widths[count - 1] = bits - LIMB_BITS * (count - 1);
    widths
}

impl Shape {
    fn check(&self) -> Result<()> {
        let within = |field: &str, minimum: usize, maximum: usize, actual: usize| {
            let inside = (minimum..=maximum).contains(&actual);
            inside
                .then_some(())
                .ok_or_else(|| Error::invalid(field, format!("{minimum} to {maximum}"), actual))
        };
        within("width", 2, MAX_WIDTH, self.width)?;
        within("inner", 1, MAX_INNER, self.inner)?;
        for (field, bits) in [
            ("scale x", self.x),
            ("scale z", self.z),
            ("scale g", self.g),
        ] {
            within(field, 0, MAX_SCALE as usize, bits as usize)?;
        }
        Ok(())
    }

    /// s: the bits by which a sum of the first dense layer is shifted.
    pub fn dense_shift(&self) -> usize {
        WEIGHT_BITS + self.x as usize - self.z as usize
    }

    /// S: the bits by which the LayerNorm is shifted.
    pub fn norm_shift(&self) -> usize {
        ROOT_BITS + WEIGHT_BITS - self.x as usize
    }

    /// The bits by which x is shifted in the residual.
    pub fn residual_shift(&self) -> usize {
        WEIGHT_BITS + self.g as usize - self.x as usize
    }

    pub fn width_blocks(&self) -> Blocks {
        Blocks::of(self.width)
    }

    pub fn inner_blocks(&self) -> Blocks {
        Blocks::of(self.inner)
    }

    /// The widths of limbs that occur, each once; multiplicities are committed in this order.
    pub fn widths(&self) -> Vec<usize> {
        let mut all = vec![LIMB_BITS];
        for bits in [self.dense_shift(), self.norm_shift()] {
            let widths = limb_widths(bits);
            let top = widths[widths.len() - 1];
            if !all.contains(&top) {
                all.push(top);
            }
        }
        all
    }

    /// The base-2 logarithm of the length of a commitment's row.
    pub fn row_variables(&self, places: usize) -> usize {
        let longest = self
            .width_blocks()
            .variables
            .max(self.inner_blocks().variables);
        MAX_ROW_VARIABLES.min(log2_ceil(places) + longest)
    }

    /// The number of rows of each of x's columns, which y's columns have too.
    pub fn rows(&self, places: usize) -> usize {
        let entries = places * self.width_blocks().entries();
        entries.div_ceil(1 << self.row_variables(places))
    }
}

/// The parameters of a block, in the order of the integer weights.
#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// A row for each input, a column for each output.
    pub first: &'a [i16],
    pub first_bias: &'a [i16],
    pub second: &'a [i16],
    pub second_bias: &'a [i16],
    pub gain: &'a [i16],
    pub bias: &'a [i16],
    /// G of -2048, .., 2047.
    pub gelu: &'a [i16],
}

impl<'a> Parameters<'a> {
    fn each(&self) -> [&'a [i16]; 7] {
        [
            self.first,
            self.first_bias,
            self.second,
            self.second_bias,
            self.gain,
            self.bias,
            self.gelu,
        ]
    }
}

/// The weights of a block. Their sums are within the bounds for all activations.
pub struct Weights {
    pub shape: Shape,
    pub first: Vec<i16>,
    pub first_bias: Vec<i64>,
    pub second: Vec<i16>,
    pub second_bias: Vec<i64>,
    pub gain: Vec<i64>,
    pub bias: Vec<i64>,
    pub gelu: Vec<i64>,
    digest: [u8; 32],
}

impl Weights {
    /// # Errors
    /// A size or scale outside its limits; another number of integers; a dense layer whose sums may reach 2^31; a
    /// result of GELU that is no activation.
    pub fn new(shape: Shape, parameters: Parameters) -> Result<Self> {
        shape.check()?;
        let (d, i) = (shape.width, shape.inner);
        let counts = [d * i, i, i * d, d, d, d, 2 * ACTIVATION_LIMIT as usize];
        let names = [
            "first matrix",
            "first bias",
            "second matrix",
            "second bias",
            "gain",
            "bias",
            "gelu",
        ];
        for ((values, count), name) in parameters.each().iter().zip(counts).zip(names) {
            if values.len() != count {
                return Err(Error::invalid(
                    name,
                    format!("{count} integers"),
                    values.len(),
                ));
            }
        }
        let activation =
            |v: &&i16| !(-ACTIVATION_LIMIT..ACTIVATION_LIMIT).contains(&i64::from(**v));
        if let Some(bad) = parameters.gelu.iter().find(activation) {
            return Err(Error::invalid("gelu", "-2048 to 2047", bad));
        }
        let residual = ACTIVATION_LIMIT << shape.residual_shift();
        bounded(
            "first matrix",
            parameters.first,
            parameters.first_bias,
            shape.x,
            0,
        )?;
        bounded(
            "second matrix",
            parameters.second,
            parameters.second_bias,
            shape.g,
            residual,
        )?;
        let wide = |values: &[i16]| values.iter().map(|v| i64::from(*v)).collect();
        Ok(Self {
            shape,
            first: parameters.first.to_vec(),
            first_bias: wide(parameters.first_bias),
            second: parameters.second.to_vec(),
            second_bias: wide(parameters.second_bias),
            gain: wide(parameters.gain),
            bias: wide(parameters.bias),
            gelu: wide(parameters.gelu),
            digest: digest(shape, &parameters),
        })
    }

    /// The digest that pins the weights.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

fn digest(shape: Shape, parameters: &Parameters) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"rag-audit/feed-forward/v1");
    for size in [
        shape.width as u32,
        shape.inner as u32,
        shape.x,
        shape.z,
        shape.g,
    ] {
        hash.update(size.to_le_bytes());
    }
    for values in parameters.each() {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        hash.update(bytes);
    }
    hash.finalize().into()
}

/// The magnitude of every sum of a dense layer, with its residual, is below 2^31 for all activations.
fn bounded(name: &str, matrix: &[i16], bias: &[i16], bits: u32, residual: i64) -> Result<()> {
    let of_bias = |b: &i16| (i64::from(*b).abs() << bits) + residual;
    let mut largest: Vec<i64> = bias.iter().map(of_bias).collect();
    for row in matrix.chunks_exact(bias.len()) {
        for (sum, w) in largest.iter_mut().zip(row) {
            *sum += i64::from(*w).abs() * ACTIVATION_LIMIT;
        }
    }
    match largest.into_iter().max() {
        Some(sum) if sum >= ACCUMULATOR_LIMIT => Err(Error::invalid(
            name,
            format!("sums below {ACCUMULATOR_LIMIT}"),
            sum,
        )),
        _ => Ok(()),
    }
}

/// The statement of a proof of one block. The verifier rebuilds every value and reads none from a file.
#[derive(Clone)]
pub struct FeedForwardStatement<'a> {
    /// Digest of all other fields of the record.
    pub context: Fr,
    pub weights: &'a Weights,
    /// T.
    pub places: usize,
    /// The rows of the columns of x, one list a column.
    pub inputs: &'a [Vec<G1Affine>],
    /// The rows of the columns of y.
    pub outputs: &'a [Vec<G1Affine>],
}

impl FeedForwardStatement<'_> {
    pub fn check(&self) -> Result<()> {
        if !self.places.is_power_of_two() || self.places > MAX_PLACES {
            let expected = format!("a power of two from 1 to {MAX_PLACES}");
            return Err(Error::invalid("places", expected, self.places));
        }
        let shape = &self.weights.shape;
        let (blocks, rows) = (shape.width_blocks().blocks, shape.rows(self.places));
        for (field, columns) in [("inputs", self.inputs), ("outputs", self.outputs)] {
            if columns.len() != blocks || columns.iter().any(|c| c.len() != rows) {
                let actual: usize = columns.iter().map(Vec::len).sum();
                let expected = format!("{blocks} columns of {rows} commitments");
                let actual = format!("{} columns with {actual} commitments", columns.len());
                return Err(Error::invalid(field, expected, actual));
            }
        }
        Ok(())
    }

    pub fn row_variables(&self) -> usize {
        self.weights.shape.row_variables(self.places)
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let shape = &self.weights.shape;
        let mut t = Transcript::new("feed forward");
        t.scalar("context", &self.context);
        t.bytes("weights", &self.weights.digest());
        t.integer("places", self.places as u64);
        t.integer("width", shape.width as u64);
        t.integer("inner", shape.inner as u64);
        t.integer("scale x", shape.x.into());
        t.integer("scale z", shape.z.into());
        t.integer("scale g", shape.g.into());
        self.inputs
            .iter()
            .flatten()
            .for_each(|point| t.point("inputs", point));
        self.outputs
            .iter()
            .flatten()
            .for_each(|point| t.point("outputs", point));
        t
    }
}

/// The columns that the run commits to, in order. A list of limbs has one list of blocks for each limb below the top.
#[derive(Clone)]
pub struct Columns<T> {
    pub z: Vec<T>,
    pub g: Vec<T>,
    pub dense_limbs: Vec<Vec<T>>,
    pub norm_limbs: Vec<Vec<T>>,
    pub roots: T,
    pub of_gelu: T,
    pub of_activations: T,
    /// For each width of [`Shape::widths`].
    pub of_limbs: Vec<T>,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = self.z;
        out.extend(self.g);
        out.extend(self.dense_limbs.into_iter().flatten());
        out.extend(self.norm_limbs.into_iter().flatten());
        out.extend([self.roots, self.of_gelu, self.of_activations]);
        out.extend(self.of_limbs);
        out
    }

    pub fn named(all: Vec<T>, shape: &Shape) -> Self {
        let mut all = all.into_iter();
        let mut next = |count: usize| -> Vec<T> { all.by_ref().take(count).collect() };
        let (inner, width) = (shape.inner_blocks().blocks, shape.width_blocks().blocks);
        let below = |bits: usize| limb_widths(bits).len() - 1;
        let (z, g) = (next(inner), next(inner));
        let dense_limbs = (0..below(shape.dense_shift()))
            .map(|_| next(inner))
            .collect();
        let norm_limbs = (0..below(shape.norm_shift()))
            .map(|_| next(width))
            .collect();
        let mut one = || next(1).pop().expect("one for each name");
        let [roots, of_gelu, of_activations] = [one(), one(), one()];
        Self {
            z,
            g,
            dense_limbs,
            norm_limbs,
            roots,
            of_gelu,
            of_activations,
            of_limbs: all.collect(),
        }
    }
}

impl Columns<(usize, Bound)> {
    /// Entries and bound of each column.
    pub fn bounds(shape: &Shape, places: usize) -> Self {
        let (inner, width) = (shape.inner_blocks(), shape.width_blocks());
        let activation = Bound::Signed(ACTIVATION_BITS);
        let limb = Bound::Unsigned(LIMB_BITS);
        let of_inner = |bound| vec![(places * inner.entries(), bound); inner.blocks];
        let of_width = |bound| vec![(places * width.entries(), bound); width.blocks];
        let below = |bits: usize| limb_widths(bits).len() - 1;
        let (dense, norm) = (below(shape.dense_shift()), below(shape.norm_shift()));
        let looked_up =
            places * (shape.inner * (dense + 1) + shape.width * (norm + 1) + ROOT_STRIDE);
        let of_limbs = shape.widths().into_iter();
        Self {
            z: of_inner(activation),
            g: of_inner(activation),
            dense_limbs: vec![of_inner(limb); dense],
            norm_limbs: vec![of_width(limb); norm],
            roots: (places * ROOT_STRIDE, limb),
            of_gelu: (1 << ACTIVATION_BITS, Bound::up_to(places * shape.inner)),
            of_activations: (1 << ACTIVATION_BITS, Bound::up_to(2 * places * shape.width)),
            of_limbs: of_limbs
                .map(|w| (1 << w, Bound::up_to(looked_up)))
                .collect(),
        }
    }
}
