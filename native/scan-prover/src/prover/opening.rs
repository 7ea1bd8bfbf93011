//! The prover's opening: the combination of all columns' rows, and the sums of its folds.
use ark_ff::AdditiveGroup;
use ragaudit_scan_protocol::prover::Folds;

use crate::claims::Column;
use crate::equation::add_vector;
use crate::group::{fold_points, msm, tables, vector_generators, Fr, G1Affine, G1Projective};
use crate::small;

/// A vector of one row's length, and its blinding.
pub(crate) struct Combined {
    pub(crate) vector: Vec<Fr>,
    pub(crate) blinding: Fr,
}

impl Combined {
    /// The sum over columns and their rows of factor times row weight times row.
    pub(crate) fn new<'c>(
        length: usize,
        rows: &[Fr],
        columns: impl Iterator<Item = (&'c Column, Fr)>,
    ) -> Self {
        let (mut runs, mut blinding) = (Vec::new(), Fr::ZERO);
        for (column, factor) in columns {
            let Some(opening) = &column.opening else {
                continue;
            };
            let weights = || rows.iter().map(|e| *e * factor);
            runs.extend(opening.values.chunks(length).zip(weights()));
            let blindings = opening.blindings.iter().zip(weights());
            blinding += blindings.map(|(b, w)| *b * w).sum::<Fr>();
        }
        let mut vector = vec![Fr::ZERO; length];
        small::combine(Fr::ZERO, &runs, &mut vector);
        Self { vector, blinding }
    }

    /// Adds the rows of a public functional.
    pub(crate) fn add_table(&mut self, functional: &[Fr], rows: &[Fr], factor: Fr) {
        for (run, e) in functional.chunks(self.vector.len()).zip(rows) {
            add_vector(&mut self.vector, run, *e * factor);
        }
    }
}

/// The masked vector and the generators that it is committed with, fold by fold.
pub(crate) struct Folding {
    pub(crate) vector: Vec<Fr>,
    bases: Vec<G1Affine>,
}

impl Folding {
    /// The folds of a party that has the responses: a prover, or a simulator.
    pub(crate) fn boxed(vector: Vec<Fr>) -> Box<dyn Folds> {
        let bases = vector_generators(vector.len())[..vector.len()].to_vec();
        Box::new(Self { vector, bases })
    }
}

impl Folds for Folding {
    fn sides(&self, b: &[Fr], mu: Fr) -> [G1Projective; 2] {
        let keep = self.vector.len() / 2;
        // The vector is masked from the start, so that these sums' scalars are uniform.
        let cross = |x: &[Fr], bases: &[G1Affine], b: &[Fr]| {
            let mut sum = msm(bases, x);
            let inner: Fr = x.iter().zip(b).map(|(x, b)| *x * b).sum();
            tables().u.add_multiple(&mut sum, &(inner * mu));
            sum
        };
        let left = cross(&self.vector[..keep], &self.bases[keep..], &b[keep..]);
        [
            left,
            cross(&self.vector[keep..], &self.bases[..keep], &b[..keep]),
        ]
    }

    fn fold(&mut self, u: Fr, inverse: Fr) {
        let keep = self.vector.len() / 2;
        let (low, high) = self.vector.split_at_mut(keep);
        let pairs = low.iter_mut().zip(high);
        pairs.for_each(|(l, h)| *l += inverse * *h);
        self.vector.truncate(keep);
        let (low, high) = self.bases.split_at(keep);
        self.bases = fold_points(low, high, &u);
    }

    fn last(&self) -> Fr {
        self.vector[0]
    }
}
