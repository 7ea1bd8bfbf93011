//! The statement of a proof of the encoder's output, and the bounds of all of its values: `docs/scan/encoder-output.md`.
use crate::block::*;
use crate::claims::Bound;
use crate::error::Result;
use crate::group::{Fr, G1Affine};
use crate::nibbles::NIBBLE_VARIABLES;
use crate::numbers::log2_ceil;
use crate::transcript::{Oracle, Transcript};
use crate::vector::{self, Bounds, MAX_NORM_FACTOR};

// The assertions behind the bounds in `docs/scan/encoder-output.md`: no equation wraps around.
const _: () = {
    let reach = MAX_PLACES as u64 * ACTIVATION_LIMIT as u64;
    let squares = MAX_WIDTH as u64 * reach * reach;
    assert!(reach == 1 << 17 && squares == 1 << 44);
    let maximum = Bounds::of(reach, MAX_WIDTH, MAX_NORM_FACTOR);
    assert!(maximum.scaled == 1 << 38 && maximum.limbs == 4);
    assert!(maximum.square_bits() + 1 == 99 && maximum.without_wrap());
};

/// The size of the encoder's rows, and the quantiser's factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub width: usize,
    /// A.
    pub norm_factor: u64,
}

impl Shape {
    pub fn check(&self) -> Result<()> {
        within("width", 2, MAX_WIDTH, self.width)?;
        within("norm factor", 1, MAX_NORM_FACTOR, self.norm_factor)
    }

    pub fn width_blocks(&self) -> Blocks {
        Blocks::of(self.width)
    }

    /// The size of the vector of so many places.
    pub fn vector(&self, places: usize) -> vector::Size {
        self.vectors(Texts::one(places))
    }

    /// The size of the vectors of texts.
    pub fn vectors(&self, texts: Texts) -> vector::Size {
        let reach = texts.places as u64 * ACTIVATION_LIMIT as u64;
        vector::Size {
            dimension: self.width,
            count: texts.count,
            norm_factor: self.norm_factor,
            bounds: Bounds::of(reach, self.width, self.norm_factor),
            limb_tag: LIMB_BITS as u64,
            step_tag: TAG_STEP,
        }
    }
}

/// The statement of a proof of the encoder's output. The verifier rebuilds every value and reads none from a file.
#[derive(Clone)]
pub struct OutputStatement<'a> {
    /// Digest of all other fields of the record.
    pub context: Fr,
    pub shape: Shape,
    /// T.
    pub places: usize,
    /// The commitment to the marks of the places: 1 for each used place.
    pub marks: G1Affine,
    /// The rows of the columns of the last layer's rows, one list a column.
    pub inputs: &'a [Vec<G1Affine>],
    pub cq: Fr,
}

impl OutputStatement<'_> {
    pub fn check(&self) -> Result<()> {
        self.shape.check()?;
        check_places(self.places)?;
        let blocks = self.shape.width_blocks();
        let rows = blocks.rows(self.places, self.row_variables());
        check_rows("inputs", self.inputs, blocks.blocks, rows)
    }

    pub fn row_variables(&self) -> usize {
        MAX_ROW_VARIABLES.min(log2_ceil(self.places) + self.shape.width_blocks().variables)
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new("encoder output");
        t.scalar("context", &self.context);
        t.integer("places", self.places as u64);
        t.integer("width", self.shape.width as u64);
        t.integer("norm factor", self.shape.norm_factor);
        t.scalar("cq", &self.cq);
        t.point("marks of places", &self.marks);
        t.points("inputs", self.inputs.iter().flatten());
        t
    }
}

/// The columns, in the order in which they are committed to.
pub struct Columns<T> {
    pub vector: vector::Columns<T>,
    /// How often each row of the table of steps is looked up.
    pub steps: T,
    /// Of activations, of limbs of 12 bits, and of bits.
    pub shared: SharedMultiplicities<T>,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = self.vector.in_order();
        out.push(self.steps);
        out.extend(self.shared.in_order());
        out
    }

    pub fn named(all: Vec<T>, bounds: &Bounds) -> Self {
        let mut all = all.into_iter();
        Self {
            vector: vector::Columns::named(&mut all, bounds),
            steps: all.next().expect("one for each name"),
            shared: SharedMultiplicities::named(all),
        }
    }
}

impl Columns<(usize, Bound)> {
    /// Entries and bound of each column.
    pub fn bounds(shape: &Shape, places: usize) -> Self {
        let size = shape.vector(places);
        let components = 1 << size.components();
        let limbs = Bound::up_to(size.limbs_looked_up());
        Self {
            vector: vector::Columns::bounds(&size),
            steps: (1 << NIBBLE_VARIABLES, Bound::up_to(components)),
            shared: SharedMultiplicities {
                of_activations: (1 << ACTIVATION_BITS, Bound::up_to(places * shape.width)),
                of_limbs: vec![(1 << LIMB_BITS, limbs), (1 << BIT, Bound::up_to(places))],
            },
        }
    }
}
