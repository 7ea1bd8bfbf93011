//! The statement of a proof of one attention block, its weights, and the bounds of all of its values: `docs/scan/attention.md`.
pub use crate::block::*;
use crate::claims::Bound;
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
use crate::numbers::{log2_ceil, NO_WRAP_BITS};
use crate::transcript::{Oracle, Transcript};

pub const MAX_HEADS: usize = 32;
/// Components of one head.
pub const MAX_HEAD: usize = 1 << 8;

/// Distances from the maximum that the table of exp covers.
pub const DISTANCES: usize = 1 << DISTANCE_LIMIT_BITS;
const DISTANCE_LIMIT_BITS: usize = 13;
/// Fraction bits of a distance, of a result of exp, of N, and the bits of a score's factor beyond those of q and k.
const DISTANCE_BITS: usize = 5;
pub const EXP_BITS: usize = 12;
pub const SUM_BITS: usize = 30;
const SCORE_BITS: usize = 14;
/// The table of exp has a row for each distance, and one row for unused places.
pub const EXP_ROWS: usize = DISTANCES + 1;
pub const EXP_VARIABLES: usize = DISTANCE_LIMIT_BITS + 1;

/// Entries of one head at one place in the columns of heads: limbs of the maximum, of N, of the remainder, and of L - 1 less
/// the remainder.
pub const HEAD_STRIDE: usize = 16;
pub const MAXIMUM_LIMBS: usize = 3;
pub const QUOTIENT_LIMBS: usize = 2;
pub const OF_QUOTIENT: usize = MAXIMUM_LIMBS;
pub const OF_REST: usize = OF_QUOTIENT + QUOTIENT_LIMBS;
pub const OF_SLACK: usize = OF_REST + QUOTIENT_LIMBS;
/// A maximum is from -2^35 to 2^35 - 1; its limbs have 2^35 more.
pub const MAXIMUM_RAISE_BITS: usize = LIMB_BITS * MAXIMUM_LIMBS - 1;

// The assertions behind the bounds in `docs/scan/attention.md`: no equation wraps around.
const _: () = {
    let activations = 2 * (ACTIVATION_BITS - 1);
    // |S| <= D 2^22, and M <= 2^19.
    let product = MAX_HEAD.trailing_zeros() as usize + activations;
    let factor = SCORE_BITS + DISTANCE_BITS;
    let largest_shift = 2 * MAX_SCALE as usize + SCORE_BITS;
    assert!(MAX_HEAD.is_power_of_two() && product == 30 && factor == 19 && largest_shift == 36);
    // A true score is at most (D 2^22) (2^19 / sqrt(D) + 1) / 2^14, half of a head's product in bits more than without D.
    let score = activations + MAX_HEAD.trailing_zeros() as usize / 2 + factor - SCORE_BITS;
    assert!(score + 2 < MAXIMUM_RAISE_BITS);
    // For all values that a prover may write: 2^s (m - u), and S M with its half.
    assert!(
        largest_shift + MAXIMUM_RAISE_BITS + 2 < NO_WRAP_BITS
            && product + factor + 2 < NO_WRAP_BITS
    );
    // L <= T 2^12, and with L >= 2^12 both N and the remainders are below 2^18.
    let sum = MAX_PLACES.trailing_zeros() as usize + EXP_BITS;
    assert!(MAX_PLACES.is_power_of_two() && sum == 18);
    assert!(SUM_BITS - EXP_BITS < LIMB_BITS * QUOTIENT_LIMBS && sum < LIMB_BITS * QUOTIENT_LIMBS);
    assert!(LIMB_BITS * QUOTIENT_LIMBS + sum + 2 < NO_WRAP_BITS);
    // N sum E v, and 2^s o.
    let weighted = LIMB_BITS * QUOTIENT_LIMBS + sum + ACTIVATION_BITS;
    let shift = SUM_BITS + MAX_SCALE as usize;
    assert!(weighted + 2 < NO_WRAP_BITS && shift + ACTIVATION_BITS + 2 < NO_WRAP_BITS);
    assert!(OF_SLACK + QUOTIENT_LIMBS <= HEAD_STRIDE);
    assert!(EXP_ROWS <= 1 << EXP_VARIABLES);
};

/// The size of a block, and the fraction bits of its activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub width: usize,
    pub heads: usize,
    /// Fraction bits of the input and of the result.
    pub x: u32,
    /// Fraction bits of queries and keys.
    pub q: u32,
    /// Fraction bits of values.
    pub v: u32,
    /// Fraction bits of the heads' results.
    pub o: u32,
}

impl Shape {
    pub fn check(&self) -> Result<()> {
        within("width", 2, MAX_WIDTH, self.width)?;
        within("heads", 1, MAX_HEADS.min(self.width), self.heads)?;
        let head = self.width / self.heads;
        if head * self.heads != self.width || !head.is_power_of_two() || head > MAX_HEAD {
            let expected = format!("a power of two from 1 to {MAX_HEAD}");
            let actual = format!("{} / {}", self.width, self.heads);
            return Err(Error::invalid("components of a head", expected, actual));
        }
        for (field, bits) in [
            ("scale x", self.x),
            ("scale q", self.q),
            ("scale v", self.v),
            ("scale o", self.o),
        ] {
            within(field, 0, MAX_SCALE as usize, bits as usize)?;
        }
        Ok(())
    }

    /// D: components of one head.
    pub fn head(&self) -> usize {
        self.width / self.heads
    }

    /// M: 2^19 / sqrt(D), rounded.
    pub fn score_factor(&self) -> i64 {
        let doubled = (4u128 << (2 * (SCORE_BITS + DISTANCE_BITS))) / self.head() as u128;
        (doubled.isqrt() as i64 + 1) >> 1
    }

    /// The bits by which queries and keys are shifted.
    pub fn query_shift(&self) -> usize {
        WEIGHT_BITS + self.x as usize - self.q as usize
    }

    /// The bits by which values are shifted.
    pub fn value_shift(&self) -> usize {
        WEIGHT_BITS + self.x as usize - self.v as usize
    }

    /// The bits by which a score is shifted.
    pub fn score_shift(&self) -> usize {
        2 * self.q as usize + SCORE_BITS
    }

    /// The bits by which a head's result is shifted.
    pub fn sum_shift(&self) -> usize {
        SUM_BITS + self.v as usize - self.o as usize
    }

    /// The bits by which x is shifted in the residual.
    pub fn residual_shift(&self) -> usize {
        WEIGHT_BITS + self.o as usize - self.x as usize
    }

    /// S: the bits by which the LayerNorm is shifted.
    pub fn norm_shift(&self) -> usize {
        norm_shift(self.x)
    }

    /// The bits of each kind of remainder, in the order of the page: q, k, v, scores, o, y.
    pub fn remainders(&self) -> [usize; 6] {
        [
            self.query_shift(),
            self.query_shift(),
            self.value_shift(),
            self.score_shift(),
            self.sum_shift(),
            self.norm_shift(),
        ]
    }

    pub fn width_blocks(&self) -> Blocks {
        Blocks::of(self.width)
    }

    pub fn head_blocks(&self) -> Blocks {
        Blocks::of(self.heads)
    }

    /// Columns of each kind of remainder's limbs.
    pub fn blocks_of_remainders(&self) -> [usize; 6] {
        let (width, heads) = (self.width_blocks().blocks, self.head_blocks().blocks);
        [width, width, width, heads, width, width]
    }

    /// The number of derived entries.
    pub fn derived(&self) -> usize {
        self.head_blocks().blocks + self.blocks_of_remainders().into_iter().sum::<usize>()
    }

    /// The number of lookups of limbs.
    pub fn limbs_looked_up(&self, texts: Texts) -> usize {
        let of_kind = |(kind, bits): (usize, usize)| {
            let entries = match kind {
                3 => texts.places * self.heads,
                _ => self.width,
            };
            entries * limb_widths(bits).len()
        };
        let remainders: usize = (0..).zip(self.remainders()).map(of_kind).sum();
        texts.all() * (remainders + self.heads * HEAD_STRIDE + ROOT_STRIDE)
    }

    /// The widths of limbs that occur, each once; multiplicities are committed in this order.
    pub fn widths(&self) -> Vec<usize> {
        widths_of(&self.remainders())
    }

    /// Variables of a column of scores.
    pub fn score_variables(&self, texts: Texts) -> usize {
        texts.of_places() + texts.variables() + self.head_blocks().variables
    }

    /// Variables of a column of components.
    pub fn place_variables(&self, places: usize) -> usize {
        log2_ceil(places) + self.width_blocks().variables
    }

    /// Variables of a column of heads.
    pub fn head_variables(&self, places: usize) -> usize {
        log2_ceil(places * HEAD_STRIDE) + self.head_blocks().variables
    }
}

/// The vectors of a block, which a verifier has as integers.
#[derive(Clone, Copy)]
pub struct Vectors<'a> {
    /// Of queries, keys, values and the output.
    pub biases: [&'a [i16]; 4],
    pub gain: &'a [i16],
    pub bias: &'a [i16],
    /// E of 0, .., 8191.
    pub exp: &'a [i16],
}

impl<'a> Vectors<'a> {
    fn each(&self) -> [&'a [i16]; 7] {
        let [q, k, v, a] = self.biases;
        [q, k, v, a, self.gain, self.bias, self.exp]
    }
}

/// The weights of a block: commitments to its matrices, and vectors.
pub struct Weights {
    pub shape: Shape,
    /// Columns are committed in rows of 2^row_variables.
    pub row_variables: usize,
    /// Of queries, keys, values and the output.
    pub matrices: [Matrix; 4],
    pub biases: [Vec<i64>; 4],
    pub norm: LayerNorm,
    pub exp: Vec<i64>,
    digest: [u8; 32],
}

impl Weights {
    /// # Errors
    /// A size or scale outside its limits; another number of integers or of commitments; a table of exp whose first entry is not
    /// the largest.
    pub fn new(
        shape: Shape,
        row_variables: usize,
        matrices: [Matrix; 4],
        vectors: Vectors,
    ) -> Result<Self> {
        shape.check()?;
        within("row variables", 1, MAX_ROW_VARIABLES, row_variables)?;
        let d = shape.width;
        let names = [
            "query matrix",
            "key matrix",
            "value matrix",
            "output matrix",
        ];
        for (matrix, name) in matrices.iter().zip(names) {
            matrix.check(name, [d, d], row_variables)?;
        }
        let names = [
            "query bias",
            "key bias",
            "value bias",
            "output bias",
            "gain",
            "bias",
            "exp",
        ];
        counted(vectors.each(), [d, d, d, d, d, d, DISTANCES], names)?;
        let exp = vectors.exp;
        if exp[0] != 1 << EXP_BITS || exp.iter().any(|e| !(0..=exp[0]).contains(e)) {
            let expected = format!("0 to {}, the largest first", 1 << EXP_BITS);
            return Err(Error::invalid("exp", expected, "other entries"));
        }
        let sizes = [
            d as u32,
            shape.heads as u32,
            shape.x,
            shape.q,
            shape.v,
            shape.o,
            row_variables as u32,
        ];
        let domain = b"rag-audit/attention/v2";
        let digest = digest_of_weights(domain, &sizes, &matrices.each_ref(), &vectors.each());
        Ok(Self {
            shape,
            row_variables,
            biases: vectors.biases.map(wide),
            norm: LayerNorm::new(vectors.gain, vectors.bias, shape.x),
            exp: wide(vectors.exp),
            matrices,
            digest,
        })
    }

    /// The rows of the columns of all matrices.
    pub fn points(&self) -> Vec<Vec<G1Affine>> {
        self.matrices
            .iter()
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

/// Refuses numbers of places and of used places without a statement.
pub fn check_marks(places: usize, used: usize) -> Result<()> {
    check_places(places)?;
    within("used places", 1, places, used)
}

/// The statement of a proof of one block. The verifier rebuilds every value and reads none from a file.
#[derive(Clone)]
pub struct AttentionStatement<'a> {
    /// Digest of all other fields of the record.
    pub context: Fr,
    pub weights: &'a Weights,
    /// T.
    pub places: usize,
    /// The commitment to the marks of the places: 1 for each used place.
    pub marks: G1Affine,
    /// The rows of the columns of x, one list a column.
    pub inputs: &'a [Vec<G1Affine>],
    /// The rows of the columns of y.
    pub outputs: &'a [Vec<G1Affine>],
}

impl AttentionStatement<'_> {
    pub fn check(&self) -> Result<()> {
        check_places(self.places)?;
        let weights = self.weights;
        within(
            "places in a row",
            1,
            1 << weights.row_variables,
            self.places,
        )?;
        let blocks = weights.shape.width_blocks().blocks;
        let rows = weights.rows(self.places);
        check_rows("inputs", self.inputs, blocks, rows)?;
        check_rows("outputs", self.outputs, blocks, rows)
    }

    pub fn row_variables(&self) -> usize {
        self.weights.row_variables
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let shape = &self.weights.shape;
        let mut t = Transcript::new("attention");
        t.scalar("context", &self.context);
        t.bytes("weights", &self.weights.digest());
        t.integer("places", self.places as u64);
        t.integer("width", shape.width as u64);
        t.integer("heads", shape.heads as u64);
        t.integer("scale x", shape.x.into());
        t.integer("scale q", shape.q.into());
        t.integer("scale v", shape.v.into());
        t.integer("scale o", shape.o.into());
        t.point("marks of places", &self.marks);
        t.points("inputs", self.inputs.iter().flatten());
        t.points("outputs", self.outputs.iter().flatten());
        t
    }
}

/// The columns that the block commits to, in order, without those of tables.
#[derive(Clone)]
pub struct Columns<T> {
    /// Queries, keys, values and the heads' results: a list of blocks of components each.
    pub projections: [Vec<T>; 4],
    /// Of each block of heads: distances, results of exp, and the marks of maxima.
    pub distances: Vec<T>,
    pub exps: Vec<T>,
    pub hot: Vec<T>,
    /// Limbs below the top, of each kind of remainder: a list of blocks for each limb.
    pub limbs: [Vec<Vec<T>>; 6],
    /// Of each block of heads: limbs of maxima, of normalisers and of their remainders.
    pub heads: Vec<T>,
    pub roots: T,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out: Vec<T> = self.projections.into_iter().flatten().collect();
        out.extend(self.distances);
        out.extend(self.exps);
        out.extend(self.hot);
        out.extend(self.limbs.into_iter().flatten().flatten());
        out.extend(self.heads);
        out.push(self.roots);
        out
    }

    /// Takes the block's columns from the front.
    pub fn named(all: &mut impl Iterator<Item = T>, shape: &Shape) -> Self {
        let (width, heads) = (shape.width_blocks().blocks, shape.head_blocks().blocks);
        let mut next = |count: usize| -> Vec<T> { all.by_ref().take(count).collect() };
        let projections = [0; 4].map(|_| next(width));
        let [distances, exps, hot] = [0; 3].map(|_| next(heads));
        let (bits, blocks) = (shape.remainders(), shape.blocks_of_remainders());
        let limbs = std::array::from_fn(|kind| {
            let below = 0..limbs_below(bits[kind]);
            below.map(|_| next(blocks[kind])).collect()
        });
        let of_heads = next(heads);
        Self {
            projections,
            distances,
            exps,
            hot,
            limbs,
            heads: of_heads,
            roots: next(1).pop().expect("one for each name"),
        }
    }
}

impl Columns<(usize, Bound)> {
    /// Entries and bound of each column.
    pub fn bounds(shape: &Shape, texts: Texts) -> Self {
        let places = texts.all();
        let (width, heads) = (shape.width_blocks(), shape.head_blocks());
        let limb = Bound::Unsigned(LIMB_BITS);
        let of_width = |bound| vec![(places * width.entries(), bound); width.blocks];
        let of_scores =
            |bound| vec![(texts.places * places * heads.entries(), bound); heads.blocks];
        let activation = || of_width(Bound::Signed(ACTIVATION_BITS));
        let bits = shape.remainders();
        let limbs = std::array::from_fn(|kind| {
            let one = match kind {
                3 => of_scores(limb),
                _ => of_width(limb),
            };
            vec![one; limbs_below(bits[kind])]
        });
        Self {
            projections: [0; 4].map(|_| activation()),
            distances: of_scores(Bound::up_to(DISTANCES - 1)),
            exps: of_scores(Bound::up_to(1 << EXP_BITS)),
            hot: of_scores(Bound::Unsigned(1)),
            limbs,
            heads: vec![(places * heads.entries() * HEAD_STRIDE, limb); heads.blocks],
            roots: (places * ROOT_STRIDE, limb),
        }
    }
}

/// The columns of the tables' multiplicities.
#[derive(Clone)]
pub struct Multiplicities<T> {
    pub of_exp: T,
    pub shared: SharedMultiplicities<T>,
}

impl<T> Multiplicities<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = vec![self.of_exp];
        out.extend(self.shared.in_order());
        out
    }

    pub fn named(mut all: impl Iterator<Item = T>) -> Self {
        Self {
            of_exp: all.next().expect("one for each name"),
            shared: SharedMultiplicities::named(all),
        }
    }
}

impl Multiplicities<(usize, Bound)> {
    pub fn bounds(shape: &Shape, texts: Texts) -> Self {
        let scores = texts.places * texts.all() * shape.heads;
        let activations = 6 * texts.all() * shape.width;
        let limbs = shape.limbs_looked_up(texts);
        Self {
            of_exp: (EXP_ROWS, Bound::up_to(scores)),
            shared: SharedMultiplicities::bounds(activations, &shape.widths(), limbs),
        }
    }
}
