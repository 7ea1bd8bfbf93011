//! The inputs of the prover of a feed-forward block, and the columns' values that it computes from them.
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};
use crate::group::Fr;
use crate::prover::columns::count;
use ragaudit_scan_protocol::feed_forward::statement::*;

/// The prover's values. Matrices are row by row, one row for each place.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    pub(crate) places: usize,
    pub(crate) x: Vec<i64>,
    pub(crate) z: Vec<i64>,
    pub(crate) g: Vec<i64>,
    pub(crate) y: Vec<i64>,
    /// The remainders of both divisions.
    pub(crate) dense_rests: Vec<i64>,
    pub(crate) norm_rests: Vec<i64>,
    /// The rows of a.
    pub(crate) deviations: Vec<Vec<i64>>,
    /// V, which the inequalities below are about.
    pub(crate) variances: Vec<u128>,
    /// R of each place, d 2^84 - R^2 V, and (R + 1)^2 V - d 2^84 - 1.
    pub(crate) normalisers: Vec<[i128; 3]>,
}

pub(super) fn wide(values: &[i16]) -> Vec<i64> {
    values.iter().map(|v| i64::from(*v)).collect()
}

/// A matrix with rows of `length` components as columns, one for each block of components.
pub(super) fn split(matrix: &[i64], blocks: Blocks, length: usize) -> Vec<Vec<i64>> {
    let of_block = |b: usize| {
        let rows = matrix.chunks_exact(length);
        rows.flat_map(|row| &row[b * blocks.entries()..][..blocks.entries()])
            .copied()
            .collect()
    };
    (0..blocks.blocks).map(of_block).collect()
}

/// x W, row by row.
fn product(x: &[i64], matrix: &[i16], inputs: usize) -> Vec<i64> {
    let outputs = matrix.len() / inputs;
    let of_row = |row: &[i64]| {
        let mut sums = vec![0i64; outputs];
        for (v, weights) in row.iter().zip(matrix.chunks_exact(outputs)) {
            for (sum, w) in sums.iter_mut().zip(weights) {
                *sum += v * i64::from(*w);
            }
        }
        sums
    };
    x.par_chunks_exact(inputs).flat_map_iter(of_row).collect()
}

/// Refuses the first value that is no activation.
fn activations(name: &str, values: &[i64]) -> Result<()> {
    let outside = |v: &&i64| !(-ACTIVATION_LIMIT..ACTIVATION_LIMIT).contains(*v);
    match values.iter().find(outside) {
        Some(_) => Err(Error::Unsatisfied(format!(
            "a value of {name} is outside -2048 to 2047, so the block has no result"
        ))),
        None => Ok(()),
    }
}

/// The block's result on rows of activations: `docs/minilm-int.md`, step 5 of a layer.
///
/// # Errors
/// A value outside its range; a row without deviation.
pub fn forward(weights: &Weights, rows: &[i16]) -> Result<Vec<i16>> {
    let witness = Witness::new(weights, &wide(rows))?;
    Ok(witness.y.iter().map(|v| *v as i16).collect())
}

impl Witness {
    /// The witness of an honest prover.
    pub(super) fn new(weights: &Weights, x: &[i64]) -> Result<Self> {
        let shape = &weights.shape;
        let (width, inner) = (shape.width, shape.inner);
        let x = x.to_vec();
        activations("x", &x)?;
        let z = sums_of_dense(weights, &x)
            .iter()
            .map(|sum| (sum + (1 << (shape.dense_shift() - 1))) >> shape.dense_shift())
            .collect::<Vec<i64>>();
        activations("z", &z)?;
        let g: Vec<i64> = z
            .iter()
            .map(|z| weights.gelu[(z + ACTIVATION_LIMIT) as usize])
            .collect();
        let mut witness = Self {
            places: x.len() / width,
            x,
            z,
            g,
            y: Vec::new(),
            dense_rests: Vec::new(),
            norm_rests: Vec::new(),
            deviations: Vec::new(),
            variances: Vec::new(),
            normalisers: Vec::new(),
        };
        assert_eq!(witness.z.len(), witness.places * inner);
        witness.divide_dense(weights);
        witness.deviate(weights);
        if witness.variances.contains(&0) {
            let what = "a row of the LayerNorm has no deviation".to_owned();
            return Err(Error::Unsatisfied(what));
        }
        witness.take_roots(weights);
        witness.normalise(weights);
        activations("y", &witness.y)?;
        witness.divide_norm(weights);
        Ok(witness)
    }

    /// y.
    pub(super) fn normalise(&mut self, weights: &Weights) {
        let shift = weights.shape.norm_shift();
        let half = 1i128 << (shift - 1);
        let sums = self.sums_of_norm(weights);
        self.y = sums
            .iter()
            .map(|sum| ((sum + half) >> shift) as i64)
            .collect();
    }

    /// The remainders of z.
    pub(super) fn divide_dense(&mut self, weights: &Weights) {
        let shift = weights.shape.dense_shift();
        let sums = sums_of_dense(weights, &self.x);
        let rest = |(sum, z): (&i64, &i64)| sum + (1 << (shift - 1)) - (z << shift);
        self.dense_rests = sums.iter().zip(&self.z).map(rest).collect();
    }

    /// a and V of each row.
    pub(super) fn deviate(&mut self, weights: &Weights) {
        let shape = &weights.shape;
        let mut r = product(&self.g, &weights.second, shape.inner);
        for (row, x) in r
            .chunks_exact_mut(shape.width)
            .zip(self.x.chunks_exact(shape.width))
        {
            for ((r, x), b) in row.iter_mut().zip(x).zip(&weights.second_bias) {
                *r += (x << shape.residual_shift()) + (b << shape.g);
            }
        }
        let deviations = r.chunks_exact(shape.width).map(|row| {
            let total: i64 = row.iter().sum();
            row.iter().map(|r| shape.width as i64 * r - total).collect()
        });
        self.deviations = deviations.collect();
        let square = |a: &i64| u128::from(a.unsigned_abs()).pow(2);
        let variance = |row: &Vec<i64>| row.iter().map(square).sum();
        self.variances = self.deviations.iter().map(variance).collect();
    }

    /// R and both slacks of each row.
    pub(super) fn take_roots(&mut self, weights: &Weights) {
        let target = target(&weights.shape);
        let root = |v: &u128| (target / *v).isqrt();
        let roots: Vec<u128> = self.variances.iter().map(root).collect();
        self.normalisers = roots
            .iter()
            .zip(&self.variances)
            .map(|(root, v)| slacks(target, *root, *v))
            .collect();
    }

    /// a R c + e 2^42.
    fn sums_of_norm(&self, weights: &Weights) -> Vec<i128> {
        let of_row = |(row, [root, ..]): (&Vec<i64>, &[i128; 3])| {
            let parts = row.iter().zip(&weights.gain).zip(&weights.bias);
            let sum = |((a, c), e): ((&i64, &i64), &i64)| {
                i128::from(*a) * root * i128::from(*c) + (i128::from(*e) << ROOT_BITS)
            };
            parts.map(sum).collect::<Vec<i128>>()
        };
        let rows = self.deviations.iter().zip(&self.normalisers);
        rows.flat_map(of_row).collect()
    }

    /// The remainders of y. A remainder beyond 63 bits belongs to a false y only, and is cut.
    pub(super) fn divide_norm(&mut self, weights: &Weights) {
        let shift = weights.shape.norm_shift();
        let rest = |(sum, y): (&i128, &i64)| sum + (1 << (shift - 1)) - (i128::from(*y) << shift);
        let sums = self.sums_of_norm(weights);
        self.norm_rests = sums.iter().zip(&self.y).map(|p| rest(p) as i64).collect();
    }

    /// R, V and both slacks, by place.
    pub(super) fn roots(&self) -> Vec<[Fr; 4]> {
        let rows = self.normalisers.iter().zip(&self.variances);
        rows.map(|([root, below, above], v)| {
            [
                Fr::from(*root),
                Fr::from(*v),
                Fr::from(*below),
                Fr::from(*above),
            ]
        })
        .collect()
    }

    /// One limb of each remainder, as columns.
    fn limbs(rests: &[i64], bits: usize, k: usize, blocks: Blocks, length: usize) -> Vec<Vec<i64>> {
        let last = limb_widths(bits).len() - 1;
        let limb = |rest: &i64| {
            let rest = rest >> (LIMB_BITS * k);
            // The last limb has the whole rest; a rest that is too large then has no row in the table of limbs.
            if k == last {
                rest
            } else {
                rest & ((1 << LIMB_BITS) - 1)
            }
        };
        let limbs: Vec<i64> = rests.iter().map(limb).collect();
        split(&limbs, blocks, length)
    }

    fn dense_limbs(&self, shape: &Shape, k: usize) -> Vec<Vec<i64>> {
        let bits = shape.dense_shift();
        Self::limbs(
            &self.dense_rests,
            bits,
            k,
            shape.inner_blocks(),
            shape.inner,
        )
    }

    fn norm_limbs(&self, shape: &Shape, k: usize) -> Vec<Vec<i64>> {
        let bits = shape.norm_shift();
        Self::limbs(&self.norm_rests, bits, k, shape.width_blocks(), shape.width)
    }

    pub(super) fn dense_tops(&self, shape: &Shape) -> Vec<Vec<i64>> {
        self.dense_limbs(shape, limb_widths(shape.dense_shift()).len() - 1)
    }

    pub(super) fn norm_tops(&self, shape: &Shape) -> Vec<Vec<i64>> {
        self.norm_limbs(shape, limb_widths(shape.norm_shift()).len() - 1)
    }

    /// The column of roots.
    fn root_limbs(&self) -> Vec<i64> {
        let of_place = |[root, below, above]: &[i128; 3]| {
            let parts = [
                (*root, ROOT_LIMBS),
                (*below, SLACK_LIMBS),
                (*above, SLACK_LIMBS),
            ];
            let limbs = parts.into_iter().flat_map(|(value, count)| {
                (0..count).map(move |k| {
                    let rest = value >> (LIMB_BITS * k);
                    match k + 1 == count {
                        true => rest as i64,
                        false => (rest & ((1 << LIMB_BITS) - 1)) as i64,
                    }
                })
            });
            let mut limbs: Vec<i64> = limbs.collect();
            limbs.resize(ROOT_STRIDE, 0);
            limbs
        };
        self.normalisers.iter().flat_map(of_place).collect()
    }

    /// The values of the columns that the run commits to.
    pub(super) fn columns(&self, weights: &Weights) -> Columns<Vec<i64>> {
        let shape = &weights.shape;
        let inner = shape.inner_blocks();
        let [dense, norm] = [shape.dense_shift(), shape.norm_shift()].map(limb_widths);
        let below = |widths: &[usize]| 0..widths.len() - 1;
        let dense_limbs: Vec<_> = below(&dense).map(|k| self.dense_limbs(shape, k)).collect();
        let norm_limbs: Vec<_> = below(&norm).map(|k| self.norm_limbs(shape, k)).collect();
        let roots = self.root_limbs();
        let mut of_gelu = vec![0; 1 << ACTIVATION_BITS];
        let mut of_activations = of_gelu.clone();
        self.z
            .iter()
            .for_each(|z| count(&mut of_gelu, z + ACTIVATION_LIMIT));
        for v in self.x.iter().chain(&self.y) {
            count(&mut of_activations, v + ACTIVATION_LIMIT);
        }
        let (dense_tops, norm_tops) = (self.dense_tops(shape), self.norm_tops(shape));
        let of_width = |bits: usize| {
            let mut counts = vec![0; 1 << bits];
            let mut add = |values: &[i64]| values.iter().for_each(|v| count(&mut counts, *v));
            if bits == LIMB_BITS {
                dense_limbs
                    .iter()
                    .chain(&norm_limbs)
                    .flatten()
                    .for_each(|c| add(c));
                add(&roots);
            }
            for (widths, tops) in [(&dense, &dense_tops), (&norm, &norm_tops)] {
                if widths.last() == Some(&bits) {
                    tops.iter().for_each(|c| add(c));
                }
            }
            counts
        };
        let of_limbs = shape.widths().into_iter().map(of_width).collect();
        Columns {
            z: split(&self.z, inner, shape.inner),
            g: split(&self.g, inner, shape.inner),
            dense_limbs,
            norm_limbs,
            roots,
            of_gelu,
            of_activations,
            of_limbs,
        }
    }
}

/// d 2^84.
pub(super) fn target(shape: &Shape) -> u128 {
    (shape.width as u128) << (2 * ROOT_BITS)
}

/// R with both slacks of its inequalities, which are negative for other numbers than the root.
pub(super) fn slacks(target: u128, root: u128, variance: u128) -> [i128; 3] {
    let (target, root, v) = (target as i128, root as i128, variance as i128);
    let below = target - root * root * v;
    [root, below, (2 * root + 1) * v - 1 - below]
}

pub(super) fn sums_of_dense(weights: &Weights, x: &[i64]) -> Vec<i64> {
    let mut sums = product(x, &weights.first, weights.shape.width);
    for row in sums.chunks_exact_mut(weights.shape.inner) {
        for (sum, b) in row.iter_mut().zip(&weights.first_bias) {
            *sum += b << weights.shape.x;
        }
    }
    sums
}
