//! The equations of a verifier: sums of multiples of points.
use ark_ff::AdditiveGroup;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::{bases, query_generators, vector_generators, Fr, G1Affine, G1Projective};

/// A sum of multiples of known points that has to be the neutral element.
#[derive(Clone, Default)]
pub struct Equation {
    /// Factors of G_0, G_1, ..
    pub vector: Vec<Fr>,
    /// Factors of Q_0, Q_1, ..
    pub query: Vec<Fr>,
    pub h: Fr,
    pub u: Fr,
    /// Factors of the points of the statement's index or table commitment.
    pub index: Vec<Fr>,
    pub points: Vec<(G1Affine, Fr)>,
}

pub fn add_vector(sum: &mut Vec<Fr>, other: &[Fr], factor: Fr) {
    if sum.len() < other.len() {
        sum.resize(other.len(), Fr::ZERO);
    }
    sum.iter_mut()
        .zip(other)
        .for_each(|(s, o)| *s += *o * factor);
}

impl Equation {
    pub fn add(&mut self, other: &Equation, factor: Fr) {
        add_vector(&mut self.vector, &other.vector, factor);
        add_vector(&mut self.query, &other.query, factor);
        add_vector(&mut self.index, &other.index, factor);
        self.h += other.h * factor;
        self.u += other.u * factor;
        self.points
            .extend(other.points.iter().map(|(p, c)| (*p, *c * factor)));
    }

    /// [`Self::add`] under the factor 1.
    pub fn merge(&mut self, other: Equation) {
        for (sum, other) in [
            (&mut self.vector, other.vector),
            (&mut self.query, other.query),
            (&mut self.index, other.index),
        ] {
            if sum.len() < other.len() {
                sum.resize(other.len(), Fr::ZERO);
            }
            sum.iter_mut().zip(other).for_each(|(s, o)| *s += o);
        }
        self.h += other.h;
        self.u += other.u;
        self.points.extend(other.points);
    }

    /// Whether the sum is the neutral element; `index` are the points behind `self.index`.
    pub fn holds<E: Engine>(&self, index: &[G1Affine]) -> bool {
        self.evaluate::<E>(index) == G1Projective::ZERO
    }

    /// Refuses a sum that is not the neutral element.
    pub fn verify<E: Engine>(&self, index: &[G1Affine]) -> Result<()> {
        match self.holds::<E>(index) {
            true => Ok(()),
            false => Err(Error::Rejected),
        }
    }

    pub fn evaluate<E: Engine>(&self, index: &[G1Affine]) -> G1Projective {
        let vector = vector_generators::<E>(self.vector.len());
        let query = query_generators::<E>(self.query.len());
        let (mut points, mut factors) =
            (vec![bases::<E>().h, bases::<E>().u], vec![self.h, self.u]);
        points.extend(&vector[..self.vector.len()]);
        factors.extend(&self.vector);
        points.extend(&query[..self.query.len()]);
        factors.extend(&self.query);
        points.extend(&index[..self.index.len()]);
        factors.extend(&self.index);
        for (point, factor) in &self.points {
            points.push(*point);
            factors.push(*factor);
        }
        E::msm(&points, &factors)
    }
}
