//! The statement of a proof of one feed-forward block, its weights, and the bounds of all of its values:
//! `docs/scan/feed-forward.md`.
use sha2::{Digest, Sha256};

pub use crate::block::*;
use crate::claims::Bound;
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
use crate::numbers::log2_ceil;
use crate::transcript::{Oracle, Transcript};

pub const MAX_INNER: usize = 1 << 12;

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

impl Shape {
    fn check(&self) -> Result<()> {
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
        norm_shift(self.x)
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
        widths_of(&self.remainders())
    }

    /// The bits of each kind of remainder, in the order of the page: z, y.
    pub fn remainders(&self) -> [usize; 2] {
        [self.dense_shift(), self.norm_shift()]
    }

    /// The number of derived entries.
    pub fn derived(&self) -> usize {
        self.inner_blocks().blocks + self.width_blocks().blocks
    }

    /// The number of lookups of limbs.
    pub fn limbs_looked_up(&self, places: usize) -> usize {
        let [dense, norm] = self.remainders().map(|bits| limb_widths(bits).len());
        places * (self.inner * dense + self.width * norm + ROOT_STRIDE)
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
        self.width_blocks().rows(places, self.row_variables(places))
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
    pub norm: LayerNorm,
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
        counted(parameters.each(), counts, names)?;
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
        Ok(Self {
            shape,
            first: parameters.first.to_vec(),
            first_bias: wide(parameters.first_bias),
            second: parameters.second.to_vec(),
            second_bias: wide(parameters.second_bias),
            norm: LayerNorm::new(parameters.gain, parameters.bias, shape.x),
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
        check_places(self.places)?;
        let shape = &self.weights.shape;
        let (blocks, rows) = (shape.width_blocks().blocks, shape.rows(self.places));
        check_rows("inputs", self.inputs, blocks, rows)?;
        check_rows("outputs", self.outputs, blocks, rows)?;
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
        t.points("inputs", self.inputs.iter().flatten());
        t.points("outputs", self.outputs.iter().flatten());
        t
    }
}

/// The columns that the block commits to, in order, without those of tables. A list of limbs has one list of blocks for each
/// limb below the top.
#[derive(Clone)]
pub struct Columns<T> {
    pub z: Vec<T>,
    pub g: Vec<T>,
    pub dense_limbs: Vec<Vec<T>>,
    pub norm_limbs: Vec<Vec<T>>,
    pub roots: T,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = self.z;
        out.extend(self.g);
        out.extend(self.dense_limbs.into_iter().flatten());
        out.extend(self.norm_limbs.into_iter().flatten());
        out.push(self.roots);
        out
    }

    /// Takes the block's columns from the front.
    pub fn named(all: &mut impl Iterator<Item = T>, shape: &Shape) -> Self {
        let mut next = |count: usize| -> Vec<T> { all.by_ref().take(count).collect() };
        let (inner, width) = (shape.inner_blocks().blocks, shape.width_blocks().blocks);
        let (z, g) = (next(inner), next(inner));
        let dense_limbs = (0..limbs_below(shape.dense_shift()))
            .map(|_| next(inner))
            .collect();
        let norm_limbs = (0..limbs_below(shape.norm_shift()))
            .map(|_| next(width))
            .collect();
        Self {
            z,
            g,
            dense_limbs,
            norm_limbs,
            roots: next(1).pop().expect("one for each name"),
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
        Self {
            z: of_inner(activation),
            g: of_inner(activation),
            dense_limbs: vec![of_inner(limb); limbs_below(shape.dense_shift())],
            norm_limbs: vec![of_width(limb); limbs_below(shape.norm_shift())],
            roots: (places * ROOT_STRIDE, limb),
        }
    }
}

/// The columns of the tables' multiplicities.
#[derive(Clone)]
pub struct Multiplicities<T> {
    pub of_gelu: T,
    pub shared: SharedMultiplicities<T>,
}

impl<T> Multiplicities<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = vec![self.of_gelu];
        out.extend(self.shared.in_order());
        out
    }

    pub fn named(mut all: impl Iterator<Item = T>) -> Self {
        Self {
            of_gelu: all.next().expect("one for each name"),
            shared: SharedMultiplicities::named(all),
        }
    }
}

impl Multiplicities<(usize, Bound)> {
    pub fn bounds(shape: &Shape, places: usize) -> Self {
        let (activations, limbs) = (2 * places * shape.width, shape.limbs_looked_up(places));
        Self {
            of_gelu: (1 << ACTIVATION_BITS, Bound::up_to(places * shape.inner)),
            shared: SharedMultiplicities::bounds(activations, &shape.widths(), limbs),
        }
    }
}
