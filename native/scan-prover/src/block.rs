//! Provers' parts that the blocks of the integer encoder share: commitments to places, divisions, multiplicities and the LayerNorm.
use std::sync::Arc;

use ark_ec::CurveGroup;
use ark_ff::AdditiveGroup;
use ragaudit_field_simd::dispatch;
use ragaudit_field_simd::lanes::Lanes;
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::claims::{Bound, Opening};
use crate::error::{Error, Result};
use crate::group::{encode_scalar, small_msm, vector_generators, Fr, G1Affine, G1Projective};
use crate::prover::columns::{self, count, Secret};
use crate::secrets::Nonces;
pub use ragaudit_scan_protocol::block::MAX_PLACES;
use ragaudit_scan_protocol::block::*;

/// A matrix of activations, a row for each place, with the commitments to its columns and their openings.
pub struct Committed {
    /// The rows of each column's commitment, as a statement has them.
    pub rows: Vec<Vec<G1Affine>>,
    pub(crate) openings: Vec<Arc<Opening>>,
    pub(crate) values: Zeroizing<Vec<i64>>,
}

/// The lengths of commitments to the places of a block.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) width: usize,
    pub(crate) places: usize,
    pub(crate) row_variables: usize,
}

impl Committed {
    /// Commits to rows of activations. The blindings depend on the operating system's randomness and on the values.
    pub(crate) fn activations(label: &[u8; 32], of: Rows, values: &[i16]) -> Result<Self> {
        let count = of.places * of.width;
        if values.len() != count {
            let expected = format!("{count} activations");
            return Err(Error::invalid("places", expected, values.len()));
        }
        let bound = Bound::Signed(ACTIVATION_BITS);
        let values = wide(values);
        if let Some(bad) = values.iter().find(|v| !bound.holds(&[**v])) {
            let expected = "activations of -2048 to 2047";
            return Err(Error::invalid("places", expected, bad));
        }
        Self::values(label, of, &values)
    }

    /// The same for values that may be no activations.
    pub(crate) fn values(label: &[u8; 32], of: Rows, values: &[i64]) -> Result<Self> {
        let columns = split(values, Blocks::of(of.width), of.width);
        let bound = Bound::Signed(ACTIVATION_BITS);
        let (rows, openings) = commit(label, columns, bound, of.row_variables)?;
        Ok(Self {
            rows,
            openings,
            values: Zeroizing::new(values.to_vec()),
        })
    }

    /// Whether these are the statement's commitments to so many values.
    pub(crate) fn expect(&self, rows: &[Vec<G1Affine>], count: usize) -> Result<()> {
        if self.values.len() == count && self.rows == rows {
            return Ok(());
        }
        let what = "the places are not those of the statement's commitments".to_owned();
        Err(Error::Unsatisfied(what))
    }
}

/// The rows of each column's commitment, and the openings.
pub(crate) type Opened = (Vec<Vec<G1Affine>>, Vec<Arc<Opening>>);

/// Commits to columns. The blindings depend on the operating system's randomness and on the values.
pub(crate) fn commit(
    label: &[u8; 32],
    columns: Vec<Vec<i64>>,
    bound: Bound,
    row_variables: usize,
) -> Result<Opened> {
    let seed: Zeroizing<Vec<u8>> = Zeroizing::new(columns.iter().flat_map(|c| bytes(c)).collect());
    let nonces = Nonces::new(label, &seed)?;
    Ok(commit_under(nonces, columns, bound, row_variables))
}

/// The same with the next nonces as blindings.
pub(crate) fn commit_under(
    mut nonces: Nonces,
    columns: Vec<Vec<i64>>,
    bound: Bound,
    row_variables: usize,
) -> Opened {
    let open = |values: Vec<i64>| {
        let rows = values.len().div_ceil(1 << row_variables);
        Opening {
            values,
            blindings: nonces.draw_many(rows),
        }
    };
    let openings: Vec<Opening> = columns.into_iter().map(open).collect();
    let secrets: Vec<Secret> = openings
        .iter()
        .map(|opening| Secret {
            values: &opening.values,
            blindings: &opening.blindings,
            bound,
        })
        .collect();
    let rows = columns::commit(&secrets, 1 << row_variables);
    (rows, openings.into_iter().map(Arc::new).collect())
}

fn bytes(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// All that determines a run's private values: the values of x, and all openings of the statement.
pub(crate) fn seed<'o>(
    values: &[i64],
    openings: impl Iterator<Item = &'o Arc<Opening>>,
) -> Zeroizing<Vec<u8>> {
    let mut seed = Zeroizing::new(bytes(values));
    for opening in openings {
        seed.extend(opening.blindings.iter().flat_map(encode_scalar));
    }
    seed
}

/// A matrix with rows of `length` components as columns, one for each block of components.
pub(crate) fn split(matrix: &[i64], blocks: Blocks, length: usize) -> Vec<Vec<i64>> {
    let of_block = |b: usize| {
        let rows = matrix.chunks_exact(length);
        rows.flat_map(|row| &row[b * blocks.entries()..][..blocks.entries()])
            .copied()
            .collect()
    };
    (0..blocks.blocks).map(of_block).collect()
}

/// A matrix with the commitments to its columns, which are those of `stored` if a caller has them.
///
/// # Errors
/// Another number of integers; a sum of products, with its bias and its residual, that may reach 2^31 in magnitude.
pub(crate) fn open_matrix(
    name: &str,
    of: Dense,
    [inputs, outputs]: [usize; 2],
    row_variables: usize,
    stored: Option<&Matrix>,
) -> Result<Matrix> {
    within("row variables", 1, MAX_ROW_VARIABLES, row_variables)?;
    counted(
        [of.matrix, of.bias],
        [inputs * outputs, outputs],
        [name, "bias"],
    )?;
    bounded(name, &of)?;
    let blocks = [inputs, outputs].map(Blocks::of);
    let mut openings = Vec::new();
    for rows in of.matrix.chunks_exact(outputs * blocks[0].entries()) {
        for values in split(&wide(rows), blocks[1], outputs) {
            let count = values.len().div_ceil(1 << row_variables);
            let blindings = vec![Fr::ZERO; count];
            openings.push(Arc::new(Opening { values, blindings }));
        }
    }
    Ok(Matrix {
        inputs,
        outputs,
        rows: match stored {
            Some(stored) => stored.rows.clone(),
            None => commit_public(&openings, row_variables),
        },
        opened: Some(OpenMatrix {
            entries: of.matrix.to_vec(),
            openings,
        }),
    })
}

/// A dense layer: its inputs have so many fraction bits, and a residual is added to each sum.
pub(crate) struct Dense<'d> {
    pub(crate) matrix: &'d [i16],
    pub(crate) bias: &'d [i16],
    pub(crate) bits: u32,
    pub(crate) residual: i64,
}

/// The magnitude of every sum of a dense layer is below 2^31 for all activations.
fn bounded(name: &str, of: &Dense) -> Result<()> {
    let of_bias = |b: &i16| (i64::from(*b).abs() << of.bits) + of.residual;
    let mut largest: Vec<i64> = of.bias.iter().map(of_bias).collect();
    for row in of.matrix.chunks_exact(of.bias.len()) {
        for (sum, w) in largest.iter_mut().zip(row) {
            *sum += i64::from(*w).abs() * ACTIVATION_LIMIT;
        }
    }
    match largest.into_iter().max() {
        Some(sum) if sum >= ACCUMULATOR_LIMIT => {
            let expected = format!("sums below {ACCUMULATOR_LIMIT}");
            Err(Error::invalid(name, expected, sum))
        }
        _ => Ok(()),
    }
}

/// Commitments to columns of public integers.
pub(crate) fn commit_public(openings: &[Arc<Opening>], row_variables: usize) -> Vec<Vec<G1Affine>> {
    let length = 1 << row_variables;
    let generators = vector_generators(length);
    let commit = |opening: &Arc<Opening>| {
        let rows = opening.values.chunks(length);
        let sums: Vec<G1Projective> = rows
            .map(|row| small_msm(&generators[..row.len()], row))
            .collect();
        G1Projective::normalize_batch(&sums)
    };
    openings.par_iter().map(commit).collect()
}

/// x W, row by row.
pub(crate) fn product(x: &[i64], matrix: &[i16], inputs: usize) -> Vec<i64> {
    /// Rows whose sums are computed together, for each loaded row of the matrix.
    const TOGETHER: usize = 4;
    let outputs = matrix.len() / inputs;
    if activations("", x).is_ok() {
        // No sum of a committed matrix leaves 32 bits: `bounded`.
        let runs = x.par_chunks(TOGETHER * inputs);
        let of_run = |rows: &[i64]| {
            let mut sums = vec![0i32; rows.len() / inputs * outputs];
            dispatch!(l => add_products(l, rows, matrix, inputs, &mut sums));
            sums.into_iter().map(i64::from)
        };
        return runs.flat_map_iter(of_run).collect();
    }
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

/// Adds x W to the sums, row by row; the code has the instructions of the lanes.
#[inline(always)]
fn add_products<L: Lanes<Fr>>(_: L, x: &[i64], matrix: &[i16], inputs: usize, sums: &mut [i32]) {
    let outputs = matrix.len() / inputs;
    for (j, weights) in matrix.chunks_exact(outputs).enumerate() {
        for (row, sums) in x.chunks_exact(inputs).zip(sums.chunks_exact_mut(outputs)) {
            let v = row[j] as i32;
            for (sum, w) in sums.iter_mut().zip(weights) {
                *sum += v * i32::from(*w);
            }
        }
    }
}

/// x W + b 2^bits, row by row.
pub(crate) fn dense(x: &[i64], matrix: &[i16], bias: &[i64], bits: u32) -> Vec<i64> {
    let mut sums = product(x, matrix, matrix.len() / bias.len());
    for row in sums.chunks_exact_mut(bias.len()) {
        for (sum, b) in row.iter_mut().zip(bias) {
            *sum += b << bits;
        }
    }
    sums
}

/// Each sum shifted by so many bits.
pub(crate) fn shifted(sums: &[i64], shift: usize) -> Vec<i64> {
    let half = 1 << (shift - 1);
    sums.iter().map(|sum| (sum + half) >> shift).collect()
}

/// The remainders of shifted sums.
pub(crate) fn rests(sums: &[i64], quotients: &[i64], shift: usize) -> Vec<i64> {
    let half = 1 << (shift - 1);
    let pairs = sums.iter().zip(quotients);
    pairs.map(|(sum, q)| sum + half - (q << shift)).collect()
}

/// Refuses the first value that is no activation.
pub(crate) fn activations(name: &str, values: &[i64]) -> Result<()> {
    let outside = |v: &&i64| !(-ACTIVATION_LIMIT..ACTIVATION_LIMIT).contains(*v);
    match values.iter().find(outside) {
        Some(_) => Err(Error::Unsatisfied(format!(
            "a value of {name} is outside -2048 to 2047, so the block has no result"
        ))),
        None => Ok(()),
    }
}

/// Limb k of each remainder. The last limb has the whole rest; a rest that is too large then has no row in the table of limbs.
pub(crate) fn limb(rests: &[i64], bits: usize, k: usize) -> Vec<i64> {
    let last = limbs_below(bits);
    let limb = |rest: &i64| {
        let rest = rest >> (LIMB_BITS * k);
        match k == last {
            true => rest,
            false => rest & ((1 << LIMB_BITS) - 1),
        }
    };
    rests.iter().map(limb).collect()
}

/// So many limbs of a number, the last one with the whole rest.
pub(crate) fn limbs_of(value: i128, count: usize) -> impl Iterator<Item = i64> {
    (0..count).map(move |k| {
        let rest = value >> (LIMB_BITS * k);
        match k + 1 == count {
            true => rest as i64,
            false => (rest & ((1 << LIMB_BITS) - 1)) as i64,
        }
    })
}

/// How often each row of the tables is looked up.
pub(crate) struct Counts<'w> {
    widths: &'w [usize],
    all: SharedMultiplicities<Vec<i64>>,
}

impl<'w> Counts<'w> {
    /// No lookups, for limbs of these widths.
    pub(crate) fn new(widths: &'w [usize]) -> Self {
        let of_limbs = widths.iter().map(|width| vec![0; 1 << width]);
        Self {
            widths,
            all: SharedMultiplicities {
                of_activations: vec![0; 1 << ACTIVATION_BITS],
                of_limbs: of_limbs.collect(),
            },
        }
    }

    pub(crate) fn activations(&mut self, values: &[i64]) {
        for v in values {
            count(&mut self.all.of_activations, v + ACTIVATION_LIMIT);
        }
    }

    pub(crate) fn limbs(&mut self, width: usize, limbs: &[i64]) {
        let at = self.widths.iter().position(|other| *other == width);
        let counts = &mut self.all.of_limbs[at.expect("a width that occurs")];
        limbs.iter().for_each(|limb| count(counts, *limb));
    }

    pub(crate) fn remainders(&mut self, rests: &[i64], bits: usize) {
        for (k, width) in limb_widths(bits).into_iter().enumerate() {
            self.limbs(width, &limb(rests, bits, k));
        }
    }

    pub(crate) fn multiplicities(self) -> SharedMultiplicities<Vec<i64>> {
        self.all
    }
}

/// The prover's values of a LayerNorm.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub(crate) struct NormWitness {
    /// The results, row by row, and the remainders of their division.
    pub(crate) y: Vec<i64>,
    pub(crate) rests: Vec<i64>,
    /// The rows of a.
    pub(crate) deviations: Vec<Vec<i64>>,
    /// V, which the inequalities below are about.
    pub(crate) variances: Vec<u128>,
    /// R of each place, d 2^84 - R^2 V, and (R + 1)^2 V - d 2^84 - 1.
    pub(crate) normalisers: Vec<[i128; 3]>,
}

impl NormWitness {
    /// The LayerNorm of rows of sums.
    pub(crate) fn new(norm: &LayerNorm, r: &[i64]) -> Result<Self> {
        let mut out = Self::default();
        out.deviate(norm, r);
        if out.variances.contains(&0) {
            let what = "a row of the LayerNorm has no deviation".to_owned();
            return Err(Error::Unsatisfied(what));
        }
        out.take_roots(norm);
        out.normalise(norm);
        activations("y", &out.y)?;
        out.divide(norm);
        Ok(out)
    }

    /// a and V of each row.
    pub(crate) fn deviate(&mut self, norm: &LayerNorm, r: &[i64]) {
        let width = norm.width();
        let deviations = r.chunks_exact(width).map(|row| {
            let total: i64 = row.iter().sum();
            row.iter().map(|r| width as i64 * r - total).collect()
        });
        self.deviations = deviations.collect();
        self.variances = self.deviations.iter().map(|row| variance(row)).collect();
    }

    /// R and both slacks of each row.
    pub(crate) fn take_roots(&mut self, norm: &LayerNorm) {
        let target = target(norm.width());
        let slacks = |v: &u128| slacks(target, (target / *v).isqrt(), *v);
        self.normalisers = self.variances.iter().map(slacks).collect();
    }

    /// y.
    pub(crate) fn normalise(&mut self, norm: &LayerNorm) {
        let half = 1i128 << (norm.shift - 1);
        let sums = self.sums(norm);
        let shifted = sums.iter().map(|sum| ((sum + half) >> norm.shift) as i64);
        self.y = shifted.collect();
    }

    /// a R c + e 2^42.
    fn sums(&self, norm: &LayerNorm) -> Vec<i128> {
        let of_row = |(row, [root, ..]): (&Vec<i64>, &[i128; 3])| {
            let parts = row.iter().zip(&norm.gain).zip(&norm.bias);
            let sum = |((a, c), e): ((&i64, &i64), &i64)| {
                i128::from(*a) * root * i128::from(*c) + (i128::from(*e) << ROOT_BITS)
            };
            parts.map(sum).collect::<Vec<i128>>()
        };
        let rows = self.deviations.iter().zip(&self.normalisers);
        rows.flat_map(of_row).collect()
    }

    /// The remainders of y. A remainder beyond 63 bits belongs to a false y only, and is cut.
    pub(crate) fn divide(&mut self, norm: &LayerNorm) {
        let half = 1i128 << (norm.shift - 1);
        let rest = |(sum, y): (&i128, &i64)| sum + half - (i128::from(*y) << norm.shift);
        let sums = self.sums(norm);
        self.rests = sums.iter().zip(&self.y).map(|p| rest(p) as i64).collect();
    }

    /// R, V and both slacks, by place.
    pub(crate) fn roots(&self) -> Vec<[Fr; 4]> {
        let rows = self.normalisers.iter().zip(&self.variances);
        rows.map(|([root, below, above], v)| {
            let [root, below, above] = [*root, *below, *above].map(Fr::from);
            [root, Fr::from(*v), below, above]
        })
        .collect()
    }

    /// The column of roots.
    pub(crate) fn root_limbs(&self) -> Vec<i64> {
        let of_place = |[root, below, above]: &[i128; 3]| {
            let mut limbs: Vec<i64> = limbs_of(*root, ROOT_LIMBS).collect();
            limbs.extend(limbs_of(*below, SLACK_LIMBS));
            limbs.extend(limbs_of(*above, SLACK_LIMBS));
            limbs.resize(ROOT_STRIDE, 0);
            limbs
        };
        self.normalisers.iter().flat_map(of_place).collect()
    }
}

/// V of a row of a.
pub(crate) fn variance(row: &[i64]) -> u128 {
    let square = |a: &i64| u128::from(a.unsigned_abs()).pow(2);
    row.iter().map(square).sum()
}

/// d 2^84.
pub(crate) fn target(width: usize) -> u128 {
    (width as u128) << (2 * ROOT_BITS)
}

/// R with both slacks of its inequalities, which are negative for other numbers than the root.
pub(crate) fn slacks(target: u128, root: u128, variance: u128) -> [i128; 3] {
    let (target, root, v) = (target as i128, root as i128, variance as i128);
    let below = target - root * root * v;
    [root, below, (2 * root + 1) * v - 1 - below]
}
