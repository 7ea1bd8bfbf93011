//! The inputs of the prover of an attention block, and the columns' values that it computes from them.
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::block::*;
use crate::error::{Error, Result};
use crate::prover::columns::count;
use ragaudit_scan_protocol::attention::statement::*;
use ragaudit_scan_protocol::attention::Derived;

/// The prover's values. Matrices of components are row by row, one row for each place. Values of scores have the entry
/// (a T + i) T + j for head a, query i and key j, and values of heads the entry a T + i.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Witness {
    pub(crate) x: Vec<i64>,
    /// 1 for each used place.
    pub(crate) marks: Vec<i64>,
    /// Queries, keys, values and the heads' results.
    pub(crate) projections: [Vec<i64>; 4],
    pub(crate) distances: Vec<i64>,
    pub(crate) exps: Vec<i64>,
    pub(crate) hot: Vec<i64>,
    /// The remainders of queries, keys, values, scores and the heads' results.
    pub(crate) rests: [Vec<i64>; 5],
    pub(crate) maxima: Vec<i64>,
    /// N, 2^30 - N L, and L - 1 less that.
    pub(crate) quotients: Vec<[i64; 3]>,
    pub(crate) norm: NormWitness,
}

/// The block's result on rows of activations, of which the first `used` are used: `docs/minilm-int.md`, steps 1 to 3 of a
/// layer. The rows of unused places have results too, of the same keys and values.
///
/// # Errors
/// A number of used places that is 0 or too large; a value outside its range; a row without deviation.
pub fn forward(weights: &Weights, used: usize, rows: &[i16]) -> Result<Vec<i16>> {
    let places = rows.len() / weights.shape.width;
    within("used places", 1, places, used)?;
    let witness = Witness::new(weights, &marks_of(used, places), &wide(rows))?;
    Ok(witness.norm.y.iter().map(|v| *v as i16).collect())
}

pub(crate) fn marks_of(used: usize, places: usize) -> Vec<i64> {
    (0..places).map(|place| i64::from(place < used)).collect()
}

impl Witness {
    /// The witness of an honest prover.
    pub(crate) fn new(weights: &Weights, marks: &[i64], x: &[i64]) -> Result<Self> {
        activations("x", x)?;
        let mut witness = Self {
            x: x.to_vec(),
            marks: marks.to_vec(),
            projections: Default::default(),
            distances: Vec::new(),
            exps: Vec::new(),
            hot: Vec::new(),
            rests: Default::default(),
            maxima: Vec::new(),
            quotients: Vec::new(),
            norm: NormWitness::default(),
        };
        for (kind, name) in ["q", "k", "v"].into_iter().enumerate() {
            witness.project(weights, kind);
            activations(name, &witness.projections[kind])?;
        }
        witness.score(weights);
        if let Some(beyond) = witness.distances.iter().find(|u| **u >= DISTANCES as i64) {
            return Err(Error::Unsatisfied(format!(
                "a distance of scores is {beyond}, not below {DISTANCES}, so the block has no result"
            )));
        }
        witness.normalise();
        witness.weigh(weights);
        activations("o", &witness.projections[3])?;
        witness.norm = NormWitness::new(&weights.norm, &witness.sums_of_residual(weights))?;
        Ok(witness)
    }

    pub(super) fn places(&self) -> usize {
        self.marks.len()
    }

    /// Queries, keys or values, with their remainders.
    pub(crate) fn project(&mut self, weights: &Weights, kind: usize) {
        let sums = self.sums_of_projection(weights, kind);
        let shift = weights.shape.remainders()[kind];
        self.projections[kind] = shifted(&sums, shift);
        self.rests[kind] = rests(&sums, &self.projections[kind], shift);
    }

    pub(super) fn sums_of_projection(&self, weights: &Weights, kind: usize) -> Vec<i64> {
        let (matrix, bias) = (&weights.matrices[kind], &weights.biases[kind]);
        dense(&self.x, matrix.entries(), bias, weights.shape.x)
    }

    /// S M + half of each score.
    fn sums_of_scores(&self, shape: &Shape) -> Vec<i64> {
        let head = shape.head();
        let [q, k, ..] = &self.projections;
        let half = 1 << (shape.score_shift() - 1);
        let mut out = Vec::new();
        for first in (0..shape.width).step_by(head) {
            for query in q.chunks_exact(shape.width) {
                for key in k.chunks_exact(shape.width) {
                    let pairs = query[first..][..head].iter().zip(&key[first..]);
                    let product: i64 = pairs.map(|(q, k)| q * k).sum();
                    out.push(product * shape.score_factor() + half);
                }
            }
        }
        out
    }

    /// Maxima, distances, results of exp and marks of maxima.
    pub(crate) fn score(&mut self, weights: &Weights) {
        let sums = self.sums_of_scores(&weights.shape);
        let shift = weights.shape.score_shift();
        let greatest = |row: &[i64]| {
            let used = row.iter().zip(&self.marks).filter(|(_, mark)| **mark == 1);
            let scores = used.map(|(sum, _)| sum >> shift);
            scores.max().expect("a used place")
        };
        self.maxima = sums.chunks_exact(self.places()).map(greatest).collect();
        self.measure(weights);
        self.mark_maxima();
    }

    /// Distances with their remainders and results of exp, from the maxima.
    pub(super) fn measure(&mut self, weights: &Weights) {
        let shift = weights.shape.score_shift();
        let sums = self.sums_of_scores(&weights.shape);
        (self.distances, self.rests[3]) = (Vec::new(), Vec::new());
        for (row, maximum) in sums.chunks_exact(self.places()).zip(&self.maxima) {
            for (sum, mark) in row.iter().zip(&self.marks) {
                let distance = maximum - (sum >> shift);
                self.distances.push(mark * distance);
                self.rests[3].push(mark * (sum & ((1 << shift) - 1)));
            }
        }
        self.look_up(weights);
    }

    /// The results of exp of the distances of used places.
    pub(super) fn look_up(&mut self, weights: &Weights) {
        let last = DISTANCES as i64 - 1;
        let exp = |(u, mark): (&i64, &i64)| mark * weights.exp[(*u).clamp(0, last) as usize];
        let marks = self.marks.iter().cycle();
        self.exps = self.distances.iter().zip(marks).map(exp).collect();
    }

    /// The first key with the distance 0 of each row.
    pub(super) fn mark_maxima(&mut self) {
        self.hot = vec![0; self.distances.len()];
        let places = self.places();
        let rows = self.hot.chunks_exact_mut(places);
        for (hot, distances) in rows.zip(self.distances.chunks_exact(places)) {
            let mut of_used = distances.iter().zip(&self.marks);
            if let Some(j) = of_used.position(|(u, mark)| *u == 0 && *mark == 1) {
                hot[j] = 1;
            }
        }
    }

    /// N with its remainder and what that lacks.
    pub(crate) fn normalise(&mut self) {
        let of_row = |row: &[i64]| {
            let sum: i64 = row.iter().sum();
            quotient(sum, (1i64 << SUM_BITS).checked_div(sum).unwrap_or(0))
        };
        self.quotients = self.exps.chunks_exact(self.places()).map(of_row).collect();
    }

    /// The heads' results.
    pub(crate) fn weigh(&mut self, weights: &Weights) {
        let sums = self.sums_of_heads(&weights.shape);
        self.projections[3] = shifted(&sums, weights.shape.sum_shift());
        self.divide_heads(weights);
    }

    /// The remainders of the heads' results.
    pub(super) fn divide_heads(&mut self, weights: &Weights) {
        let sums = self.sums_of_heads(&weights.shape);
        self.rests[4] = rests(&sums, &self.projections[3], weights.shape.sum_shift());
    }

    /// N sum E v of each component, row by row.
    fn sums_of_heads(&self, shape: &Shape) -> Vec<i64> {
        let (places, head) = (self.places(), shape.head());
        let mut out = vec![0; places * shape.width];
        for (n, exps) in self.exps.chunks_exact(places).enumerate() {
            let (a, i) = (n / places, n % places);
            for c in a * head..(a + 1) * head {
                let values = self.projections[2].iter().skip(c).step_by(shape.width);
                let sum: i64 = exps.iter().zip(values).map(|(e, v)| e * v).sum();
                out[i * shape.width + c] = sum * self.quotients[n][0];
            }
        }
        out
    }

    /// r, row by row.
    pub(crate) fn sums_of_residual(&self, weights: &Weights) -> Vec<i64> {
        let shape = &weights.shape;
        let (matrix, bias) = (&weights.matrices[3], &weights.biases[3]);
        let mut r = dense(&self.projections[3], matrix.entries(), bias, shape.o);
        let pairs = r.iter_mut().zip(&self.x);
        pairs.for_each(|(r, x)| *r += x << shape.residual_shift());
        r
    }

    /// All remainders with their bits, in the order of the page.
    fn remainders(&self, shape: &Shape) -> [(&[i64], usize); 6] {
        let bits = shape.remainders();
        let rest = |kind: usize| match kind {
            5 => &self.norm.rests[..],
            _ => &self.rests[kind][..],
        };
        std::array::from_fn(|kind| (rest(kind), bits[kind]))
    }

    /// One limb of a kind of remainder, as columns.
    fn limb(&self, shape: &Shape, kind: usize, k: usize) -> Vec<Vec<i64>> {
        let (rests, bits) = self.remainders(shape)[kind];
        let limbs = limb(rests, bits, k);
        match kind {
            3 => self.of_heads(shape, &limbs),
            _ => split(&limbs, shape.width_blocks(), shape.width),
        }
    }

    /// Values of scores or of heads as columns, one for each block of heads.
    fn of_heads(&self, shape: &Shape, values: &[i64]) -> Vec<Vec<i64>> {
        let blocks = values.chunks_exact(values.len() / shape.head_blocks().blocks);
        blocks.map(<[i64]>::to_vec).collect()
    }

    pub(crate) fn derived(&self, shape: &Shape) -> Derived {
        let bits = shape.remainders();
        let entries = shape.score_variables(Texts::one(self.places()));
        Derived {
            marks: self
                .marks
                .iter()
                .copied()
                .cycle()
                .take(1 << entries)
                .collect(),
            tops: std::array::from_fn(|kind| self.limb(shape, kind, limbs_below(bits[kind]))),
        }
    }

    /// The limbs of heads.
    fn head_limbs(&self) -> Vec<i64> {
        let mut out = Vec::new();
        for (maximum, [quotient, rest, slack]) in self.maxima.iter().zip(&self.quotients) {
            let first = out.len();
            let raised = maximum + (1 << MAXIMUM_RAISE_BITS);
            out.extend(limbs_of(raised.into(), MAXIMUM_LIMBS));
            for number in [quotient, rest, slack] {
                out.extend(limbs_of((*number).into(), QUOTIENT_LIMBS));
            }
            out.resize(first + HEAD_STRIDE, 0);
        }
        out
    }

    /// The values of the columns that the block commits to.
    pub(crate) fn columns(&self, shape: &Shape) -> Columns<Vec<i64>> {
        let width = shape.width_blocks();
        let bits = shape.remainders();
        let of_heads = |values: &[i64]| self.of_heads(shape, values);
        let projection = |kind: usize| split(&self.projections[kind], width, shape.width);
        Columns {
            projections: std::array::from_fn(projection),
            distances: of_heads(&self.distances),
            exps: of_heads(&self.exps),
            hot: of_heads(&self.hot),
            limbs: std::array::from_fn(|kind| {
                let below = 0..limbs_below(bits[kind]);
                below.map(|k| self.limb(shape, kind, k)).collect()
            }),
            heads: of_heads(&self.head_limbs()),
            roots: self.norm.root_limbs(),
        }
    }

    /// Counts the block's lookups, without the range of x.
    pub(crate) fn count(&self, shape: &Shape, counts: &mut Counts, of_exp: &mut [i64]) {
        for (u, mark) in self.distances.iter().zip(self.marks.iter().cycle()) {
            let row = if *mark == 1 { *u } else { DISTANCES as i64 };
            count(of_exp, row);
        }
        self.projections.iter().for_each(|p| counts.activations(p));
        counts.activations(&self.norm.y);
        for (rests, bits) in self.remainders(shape) {
            counts.remainders(rests, bits);
        }
        counts.limbs(LIMB_BITS, &self.head_limbs());
        counts.limbs(LIMB_BITS, &self.norm.root_limbs());
    }

    /// How often each row of the tables is looked up.
    pub(super) fn multiplicities(&self, shape: &Shape) -> Multiplicities<Vec<i64>> {
        let mut of_exp = vec![0; EXP_ROWS];
        let widths = shape.widths();
        let mut counts = Counts::new(&widths);
        counts.activations(&self.x);
        self.count(shape, &mut counts, &mut of_exp);
        Multiplicities {
            of_exp,
            shared: counts.multiplicities(),
        }
    }
}

/// How many runs of values, one for each head of a block, each column has.
pub(crate) fn runs_of_heads(shape: &Shape) -> Columns<usize> {
    let (width, heads) = (shape.width_blocks().blocks, shape.head_blocks());
    let of_heads = || vec![heads.entries(); heads.blocks];
    let bits = shape.remainders();
    Columns {
        projections: [0; 4].map(|_| vec![1; width]),
        distances: of_heads(),
        exps: of_heads(),
        hot: of_heads(),
        limbs: std::array::from_fn(|kind| {
            let one = if kind == 3 {
                of_heads()
            } else {
                vec![1; width]
            };
            vec![one; limbs_below(bits[kind])]
        }),
        heads: of_heads(),
        roots: 1,
    }
}

/// N with 2^30 - N L, and with L - 1 less that; one of them is negative for other numbers than the quotient.
pub(super) fn quotient(sum: i64, quotient: i64) -> [i64; 3] {
    let rest = (1 << SUM_BITS) - quotient * sum;
    [quotient, rest, sum - 1 - rest]
}
