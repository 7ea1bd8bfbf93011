//! Coefficients of the prover's round polynomials, from their values.
use std::sync::OnceLock;

use ark_ff::{AdditiveGroup, Field};

use crate::group::Fr;
use crate::numbers::half;

/// c_1, c_2, .. of a polynomial, from its values at 0, 1, ..
pub(crate) fn coefficients(values: &[Fr]) -> Vec<Fr> {
    static ROWS: [OnceLock<Vec<Vec<Fr>>>; 17] = [const { OnceLock::new() }; 17];
    let rows = ROWS[values.len()].get_or_init(|| interpolation(values.len() - 1));
    let dot = |row: &Vec<Fr>| row.iter().zip(values).map(|(a, b)| *a * b).sum();
    rows[1..].iter().map(dot).collect()
}

/// Rows of the inverse of the Vandermonde matrix of 0..=degree: values to coefficients.
pub(crate) fn interpolation(degree: usize) -> Vec<Vec<Fr>> {
    // Column j holds the coefficients of the Lagrange polynomial of node j.
    let mut rows = vec![vec![Fr::ZERO; degree + 1]; degree + 1];
    for j in 0..=degree {
        let mut poly = vec![Fr::ONE];
        let mut scale = Fr::ONE;
        for m in (0..=degree).filter(|&m| m != j) {
            let node = Fr::from(m as u64);
            let mut next = vec![Fr::ZERO; poly.len() + 1];
            for (i, c) in poly.iter().enumerate() {
                next[i + 1] += c;
                next[i] -= node * c;
            }
            poly = next;
            scale *= Fr::from(j as u64) - node;
        }
        let inverse = scale.inverse().expect("nodes are distinct");
        for (row, c) in rows.iter_mut().zip(&poly) {
            row[j] = inverse * c;
        }
    }
    rows
}

/// The coefficients of X and X^2 of a polynomial of degree 2, from its values at 0, 1 and 2.
pub(crate) fn of_degree_two(zero: Fr, one: Fr, two: Fr) -> [Fr; 2] {
    let lead = (zero + two) * half() - one;
    [one - zero - lead, lead]
}
