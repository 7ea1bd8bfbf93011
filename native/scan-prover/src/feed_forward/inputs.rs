//! The inputs of the prover of a feed-forward block, and the columns' values that it computes from them.
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::block::*;
use crate::error::Result;
use crate::prover::columns::count;
use ragaudit_scan_protocol::feed_forward::statement::*;

/// The prover's values. Matrices are row by row, one row for each place.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    pub(crate) x: Vec<i64>,
    pub(crate) z: Vec<i64>,
    pub(crate) g: Vec<i64>,
    pub(crate) dense_rests: Vec<i64>,
    pub(crate) norm: NormWitness,
}

/// The block's result on rows of activations: `docs/minilm-int.md`, step 5 of a layer.
///
/// # Errors
/// A value outside its range; a row without deviation.
pub fn forward(weights: &Weights, rows: &[i16]) -> Result<Vec<i16>> {
    let witness = Witness::new(weights, &wide(rows))?;
    Ok(witness.norm.y.iter().map(|v| *v as i16).collect())
}

impl Witness {
    /// The witness of an honest prover.
    pub(crate) fn new(weights: &Weights, x: &[i64]) -> Result<Self> {
        activations("x", x)?;
        let (sums, shift) = (sums_of_dense(weights, x), weights.shape.dense_shift());
        let z = shifted(&sums, shift);
        activations("z", &z)?;
        let gelu = |z: &i64| weights.gelu[(z + ACTIVATION_LIMIT) as usize];
        let mut witness = Self {
            x: x.to_vec(),
            g: z.iter().map(gelu).collect(),
            dense_rests: rests(&sums, &z, shift),
            z,
            norm: NormWitness::default(),
        };
        witness.norm = NormWitness::new(&weights.norm, &witness.sums_of_residual(weights))?;
        Ok(witness)
    }

    /// r, row by row.
    pub(crate) fn sums_of_residual(&self, weights: &Weights) -> Vec<i64> {
        let shape = &weights.shape;
        let mut r = dense(
            &self.g,
            weights.second.entries(),
            &weights.second_bias,
            shape.g,
        );
        let pairs = r.iter_mut().zip(&self.x);
        pairs.for_each(|(r, x)| *r += x << shape.residual_shift());
        r
    }

    fn dense_limbs(&self, shape: &Shape, k: usize) -> Vec<Vec<i64>> {
        let limbs = limb(&self.dense_rests, shape.dense_shift(), k);
        split(&limbs, shape.inner_blocks(), shape.inner)
    }

    fn norm_limbs(&self, shape: &Shape, k: usize) -> Vec<Vec<i64>> {
        let limbs = limb(&self.norm.rests, shape.norm_shift(), k);
        split(&limbs, shape.width_blocks(), shape.width)
    }

    /// The top limbs of both remainders.
    pub(crate) fn tops(&self, shape: &Shape) -> [Tops; 2] {
        let [dense, norm] = shape.remainders().map(limbs_below);
        [self.dense_limbs(shape, dense), self.norm_limbs(shape, norm)]
    }

    /// The values of the columns that the block commits to.
    pub(crate) fn columns(&self, shape: &Shape) -> Columns<Vec<i64>> {
        let inner = shape.inner_blocks();
        let [dense, norm] = shape.remainders().map(limbs_below);
        Columns {
            z: split(&self.z, inner, shape.inner),
            g: split(&self.g, inner, shape.inner),
            dense_limbs: (0..dense).map(|k| self.dense_limbs(shape, k)).collect(),
            norm_limbs: (0..norm).map(|k| self.norm_limbs(shape, k)).collect(),
            roots: self.norm.root_limbs(),
        }
    }

    /// Counts the block's lookups, without the range of x.
    pub(crate) fn count(&self, shape: &Shape, counts: &mut Counts, of_gelu: &mut [i64]) {
        for z in &self.z {
            count(of_gelu, z + ACTIVATION_LIMIT);
        }
        let [dense, norm] = shape.remainders();
        counts.activations(&self.norm.y);
        counts.remainders(&self.dense_rests, dense);
        counts.remainders(&self.norm.rests, norm);
        counts.limbs(LIMB_BITS, &self.norm.root_limbs());
    }

    /// How often each row of the tables is looked up.
    pub(super) fn multiplicities(&self, shape: &Shape) -> Multiplicities<Vec<i64>> {
        let mut of_gelu = vec![0; 1 << ACTIVATION_BITS];
        let widths = shape.widths();
        let mut counts = Counts::new(&widths);
        counts.activations(&self.x);
        self.count(shape, &mut counts, &mut of_gelu);
        Multiplicities {
            of_gelu,
            shared: counts.multiplicities(),
        }
    }
}

pub(crate) fn sums_of_dense(weights: &Weights, x: &[i64]) -> Vec<i64> {
    dense(
        x,
        weights.first.entries(),
        &weights.first_bias,
        weights.shape.x,
    )
}
