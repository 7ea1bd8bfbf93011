//! Points with digits of several variables as coordinates: `docs/scan/sumcheck.md`.
//!
//! A digit of v variables has 2^v values, and a weight for each; the sum of the weights is 1. A list of digits, the lowest
//! first, gives a place of the cube the product of its digits' weights.
//!
//! ```
//! use ark_bn254::Fr;
//! use ragaudit_scan_protocol::digits::{of_point, regroup, table};
//! use ragaudit_scan_protocol::mle::eq_table;
//!
//! let point = [3u8, 5, 7].map(Fr::from);
//! let digits = regroup(&of_point(&point), &[1, 2]);
//! assert_eq!(table(&digits), eq_table(&point));
//! ```
use std::sync::OnceLock;

use ark_ff::{AdditiveGroup, Field};

use crate::group::Fr;

/// The weights of a digit's values.
pub type Digit = Vec<Fr>;

/// Variables of the largest digit.
pub const MAXIMUM: usize = 3;

/// A coordinate as a digit of one variable.
pub fn of_coordinate(t: Fr) -> Digit {
    vec![Fr::ONE - t, t]
}

/// The coordinates of a point as digits.
pub fn of_point(point: &[Fr]) -> Vec<Digit> {
    point.iter().map(|t| of_coordinate(*t)).collect()
}

/// Variables of a digit.
pub fn variables(digit: &Digit) -> usize {
    digit.len().trailing_zeros() as usize
}

/// The number of variables of all digits.
pub fn all_variables(digits: &[Digit]) -> usize {
    digits.iter().map(variables).sum()
}

/// The sizes of the digits of `variables` variables: from the top `each` variables per digit, and the remaining variables in
/// the lowest digit.
pub fn from_the_top(variables: usize, each: usize) -> Vec<usize> {
    let mut sizes = vec![each; variables / each];
    if !variables.is_multiple_of(each) {
        sizes.insert(0, variables % each);
    }
    sizes
}

/// Joins neighbouring digits to digits of these sizes; no digit is divided.
pub fn regroup(digits: &[Digit], sizes: &[usize]) -> Vec<Digit> {
    let mut left = digits.iter();
    let joined = |size: &usize| {
        let mut digit = vec![Fr::ONE];
        while digit.len() < 1 << size {
            digit = table_of(&digit, left.next().expect("as many variables"));
        }
        assert_eq!(digit.len(), 1 << size, "a digit is not cut");
        digit
    };
    sizes.iter().map(joined).collect()
}

fn table_of(low: &[Fr], high: &Digit) -> Vec<Fr> {
    let joined = high.iter().flat_map(|h| low.iter().map(move |l| *l * h));
    joined.collect()
}

/// The weight of every place.
pub fn table(digits: &[Digit]) -> Vec<Fr> {
    let all = digits.iter();
    all.fold(vec![Fr::ONE], |low, high| table_of(&low, high))
}

/// The extension of [`table`] at a point of coordinates.
pub fn extended(digits: &[Digit], point: &[Fr]) -> Fr {
    let mut left = point;
    let of_digit = |digit: &Digit| {
        let (here, after) = left.split_at(variables(digit));
        left = after;
        crate::mle::evaluate(digit, here)
    };
    digits.iter().map(of_digit).product()
}

/// The digit of a challenge: the Lagrange polynomials of 0, .., 2^variables - 1 at s.
pub fn lagrange(variables: usize, s: Fr) -> Digit {
    static SCALES: OnceLock<Vec<Vec<Fr>>> = OnceLock::new();
    let scales = SCALES.get_or_init(|| (0..=MAXIMUM).map(scales).collect());
    let count = 1u64 << variables;
    let steps: Vec<Fr> = (0..count).map(|k| s - Fr::from(k)).collect();
    let mut digit = scales[variables].clone();
    let mut below = Fr::ONE;
    for (weight, step) in digit.iter_mut().zip(&steps) {
        *weight *= below;
        below *= step;
    }
    let mut above = Fr::ONE;
    for (weight, step) in digit.iter_mut().zip(&steps).rev() {
        *weight *= above;
        above *= step;
    }
    digit
}

/// 1 / product over j other than k of (k - j), for every value k of a digit.
fn scales(variables: usize) -> Vec<Fr> {
    let count = 1i64 << variables;
    let scale = |k: i64| {
        let others = (0..count).filter(|j| *j != k);
        let product: i64 = others.map(|j| k - j).product();
        crate::numbers::from_small(product)
            .inverse()
            .expect("no factor is zero")
    };
    (0..count).map(scale).collect()
}

/// sum over the digit's values k of weight_k k^j, for j = 1, 2, ..
pub fn moments(digit: &Digit) -> impl Iterator<Item = Fr> {
    let mut powers: Vec<Fr> = digit[1..].to_vec();
    std::iter::from_fn(move || {
        // Each step multiplies by k, by a few additions.
        for (x, k) in powers.iter_mut().zip(1..) {
            *x = times(*x, k);
        }
        Some(powers.iter().sum())
    })
}

/// k x, for k below 8.
fn times(x: Fr, k: usize) -> Fr {
    let [two, four] = [x.double(), x.double().double()];
    let parts = [(1, x), (2, two), (4, four)];
    let counted = parts.iter().filter(|(bit, _)| k & bit != 0);
    counted.fold(Fr::ZERO, |sum, (_, part)| sum + part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::UniformRand;

    fn random(count: usize) -> Vec<Fr> {
        let mut rng = ark_std::test_rng();
        (0..count).map(|_| Fr::rand(&mut rng)).collect()
    }

    #[test]
    fn sizes_are_counted_from_the_top() {
        assert_eq!(from_the_top(0, 2), [0usize; 0]);
        assert_eq!(from_the_top(1, 2), [1]);
        assert_eq!(from_the_top(4, 2), [2, 2]);
        assert_eq!(from_the_top(5, 3), [2, 3]);
        assert_eq!(from_the_top(7, 3), [1, 3, 3]);
    }

    #[test]
    fn coordinates_weigh_as_eq_does() {
        let point = random(6);
        let digits = of_point(&point);
        assert_eq!(all_variables(&digits), 6);
        for sizes in [&[6][..], &[1, 2, 3], &[2, 2, 2], &[1; 6]] {
            let regrouped = regroup(&digits, sizes);
            assert_eq!(table(&regrouped), crate::mle::eq_table(&point));
            let at = random(12)[6..].to_vec();
            let table = table(&regrouped);
            assert_eq!(extended(&regrouped, &at), crate::mle::evaluate(&table, &at));
        }
    }

    #[test]
    fn a_challenge_s_digit_interpolates() {
        for variables in 0..=MAXIMUM {
            let count = 1u64 << variables;
            let s = random(3)[2];
            for of_node in 0..count {
                let digit = lagrange(variables, Fr::from(of_node));
                assert!((0..count).all(|k| digit[k as usize] == Fr::from(u8::from(k == of_node))));
            }
            // The values of a polynomial of degree below 2^variables determine it.
            let coefficients = random(count as usize);
            let at = |x: Fr| {
                coefficients
                    .iter()
                    .rev()
                    .fold(Fr::ZERO, |sum, c| sum * x + c)
            };
            let values = (0..count).map(|k| at(Fr::from(k)));
            let digit = lagrange(variables, s);
            let sum: Fr = digit.iter().zip(values).map(|(w, v)| *w * v).sum();
            assert_eq!(sum, at(s));
            assert_eq!(digit.iter().sum::<Fr>(), Fr::ONE);
            for (j, moment) in moments(&digit).take(15).enumerate() {
                let power = |k: u64| Fr::from(k).pow([j as u64 + 1]);
                let weighed = digit.iter().zip(0..).map(|(w, k)| *w * power(k));
                assert_eq!(moment, weighed.sum::<Fr>());
            }
        }
    }
}
