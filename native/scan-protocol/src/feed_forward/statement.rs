//! The statement of a proof of one feed-forward block, its weights, and the bounds of all of its values:
//! `docs/scan/feed-forward.md`.
pub use crate::block::*;
use crate::claims::Bound;
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
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
    pub fn check(&self) -> Result<()> {
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
}

/// The vectors of a block, which a verifier has as integers.
#[derive(Clone, Copy)]
pub struct Vectors<'a> {
    pub first_bias: &'a [i16],
    pub second_bias: &'a [i16],
    pub gain: &'a [i16],
    pub bias: &'a [i16],
    /// G of -2048, .., 2047.
    pub gelu: &'a [i16],
}

impl<'a> Vectors<'a> {
    fn each(&self) -> [&'a [i16]; 5] {
        [
            self.first_bias,
            self.second_bias,
            self.gain,
            self.bias,
            self.gelu,
        ]
    }
}

/// The weights of a block: commitments to its matrices, and vectors.
pub struct Weights {
    pub shape: Shape,
    /// Columns are committed in rows of 2^row_variables.
    pub row_variables: usize,
    pub first: Matrix,
    pub first_bias: Vec<i64>,
    pub second: Matrix,
    pub second_bias: Vec<i64>,
    pub norm: LayerNorm,
    pub gelu: Vec<i64>,
    digest: [u8; 32],
}

impl Weights {
    /// # Errors
    /// A size or scale outside its limits; another number of integers or of commitments; a result of GELU that is no activation.
    pub fn new(
        shape: Shape,
        row_variables: usize,
        [first, second]: [Matrix; 2],
        vectors: Vectors,
    ) -> Result<Self> {
        shape.check()?;
        within("row variables", 1, MAX_ROW_VARIABLES, row_variables)?;
        let (d, i) = (shape.width, shape.inner);
        first.check("first matrix", [d, i], row_variables)?;
        second.check("second matrix", [i, d], row_variables)?;
        let counts = [i, d, d, d, 2 * ACTIVATION_LIMIT as usize];
        let names = ["first bias", "second bias", "gain", "bias", "gelu"];
        counted(vectors.each(), counts, names)?;
        let activation =
            |v: &&i16| !(-ACTIVATION_LIMIT..ACTIVATION_LIMIT).contains(&i64::from(**v));
        if let Some(bad) = vectors.gelu.iter().find(activation) {
            return Err(Error::invalid("gelu", "-2048 to 2047", bad));
        }
        let sizes = [
            d as u32,
            i as u32,
            shape.x,
            shape.z,
            shape.g,
            row_variables as u32,
        ];
        let domain = b"rag-audit/feed-forward/v2";
        let digest = digest_of_weights(domain, &sizes, &[&first, &second], &vectors.each());
        Ok(Self {
            shape,
            row_variables,
            first,
            first_bias: wide(vectors.first_bias),
            second,
            second_bias: wide(vectors.second_bias),
            norm: LayerNorm::new(vectors.gain, vectors.bias, shape.x),
            gelu: wide(vectors.gelu),
            digest,
        })
    }

    /// The rows of the columns of all matrices.
    pub fn points(&self) -> Vec<Vec<G1Affine>> {
        [&self.first, &self.second]
            .into_iter()
            .flat_map(|matrix| matrix.rows.clone())
            .collect()
    }

    /// The digest that pins the weights.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The number of rows of each of x's columns, which y's columns have too.
    pub fn rows(&self, places: usize) -> usize {
        self.shape.width_blocks().rows(places, self.row_variables)
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
        check_places(self.places)?;
        let blocks = self.weights.shape.width_blocks().blocks;
        let rows = self.weights.rows(self.places);
        check_rows("inputs", self.inputs, blocks, rows)?;
        check_rows("outputs", self.outputs, blocks, rows)?;
        Ok(())
    }

    pub fn row_variables(&self) -> usize {
        self.weights.row_variables
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
