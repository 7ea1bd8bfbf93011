//! Builders of the tests' statements.
use std::iter::Sum;
use std::ops::Mul;

use ragaudit_field_simd::commitment::{pack_nibbles, NIBBLES_PER_ELEMENT};
use ragaudit_field_simd::poseidon::hash_list;
use ragaudit_scan_protocol::block::Matrix;

use crate::embed::statement::{ROOT_SHIFT, TAG_QUERY, TOKENS_PER_ELEMENT, TOKEN_BITS};
use crate::group::Fr;
use crate::nibbles::TAG_VECTOR;
use crate::numbers::{from_small, power_of_two};
use crate::query::statement::TAG_TOPK;

/// Numbers below `below`, always the same ones of a seed.
pub(crate) fn random(seed: u64, count: usize, below: u64) -> Vec<i64> {
    let mut x = seed;
    let mut next = || {
        x = x
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((x >> 33) % below) as i64
    };
    (0..count).map(|_| next()).collect()
}

/// Numbers of at most `below` in magnitude.
pub(crate) fn int16(seed: u64, count: usize, below: i64) -> Vec<i16> {
    let drawn = random(seed, count, 2 * below as u64 + 1).into_iter();
    drawn.map(|v| (v - below) as i16).collect()
}

/// Activations of -200 to 199.
pub(crate) fn activations(seed: u64, count: usize) -> Vec<i16> {
    let drawn = random(seed, count, 400).into_iter();
    drawn.map(|v| v as i16 - 200).collect()
}

/// int4 components.
pub(crate) fn components(seed: u64, count: usize) -> Vec<i8> {
    let drawn = random(seed, count, 15).into_iter();
    drawn.map(|v| v as i8 - 7).collect()
}

/// The inner product of each row with the query.
pub(crate) fn scores<T: From<i8> + Mul<Output = T> + Sum>(rows: &[i8], query: &[i8]) -> Vec<T> {
    let dot = |row: &[i8]| {
        let pairs = row.iter().zip(query);
        pairs.map(|(a, b)| T::from(*a) * T::from(*b)).sum()
    };
    rows.chunks(query.len()).map(dot).collect()
}

/// hq of tokens and of a number of them.
pub(crate) fn tokens_hash<T: Copy + Into<Fr>>(salt: Fr, number: usize, tokens: &[T]) -> Fr {
    let mut list = vec![salt, Fr::from(number as u64)];
    list.extend(tokens.chunks(TOKENS_PER_ELEMENT).map(|run| {
        let place = |(i, t): (usize, &T)| (*t).into() * power_of_two(TOKEN_BITS * i);
        run.iter().enumerate().map(place).sum::<Fr>()
    }));
    hash_list(TAG_QUERY, &list)
}

/// The quantiser's vector for sums: `docs/minilm-int.md`.
pub(crate) fn quantised(sums: &[i64], norm_factor: u64) -> Vec<i64> {
    let root = (sums.iter().map(|e| e * e).sum::<i64>() << ROOT_SHIFT).isqrt();
    let of = |e: &i64| (2 * norm_factor as i64 * e.abs() + root) / (2 * root);
    sums.iter().map(|e| e.signum() * of(e).min(7)).collect()
}

/// Remainders that a prover cuts to their width, where the equation is false.
pub(crate) fn cut(rests: &mut [i64], bits: usize) {
    rests.iter_mut().for_each(|rest| *rest &= (1 << bits) - 1);
}

/// cq of a query.
pub(crate) fn vector_hash(salt: Fr, query: &[i8]) -> Fr {
    let mut list = vec![salt];
    list.extend(pack_nibbles(query));
    hash_list(TAG_VECTOR, &list)
}

/// The same also for components that are not int4: the packing that a proof would have to match.
pub(crate) fn unbounded_hash(salt: Fr, vector: &[i64]) -> Fr {
    let offset = pack_nibbles(&[0])[0];
    let mut list = vec![salt];
    list.extend(vector.chunks(NIBBLES_PER_ELEMENT).map(|run| {
        let place = |(i, v): (usize, &i64)| from_small(*v) * power_of_two(4 * i);
        offset + run.iter().enumerate().map(place).sum::<Fr>()
    }));
    hash_list(TAG_VECTOR, &list)
}

/// htopk of a list of positions.
pub(crate) fn list_hash(salt: Fr, positions: &[i64]) -> Fr {
    let elements: Vec<Fr> = positions.iter().map(|p| Fr::from(*p)).collect();
    packed_hash(salt, positions.len(), &elements)
}

/// htopk of a list of `count` positions or bits in these elements.
pub(crate) fn packed_hash(salt: Fr, count: usize, elements: &[Fr]) -> Fr {
    let list = [&[salt, Fr::from(count as u64)], elements].concat();
    hash_list(TAG_TOPK, &list)
}

/// The rows of commitments in tests of the encoder's runs: 2^6 entries.
pub(crate) const ROW_VARIABLES: usize = 6;

/// Another entry of a matrix, another matrix with the same sums of rows, and one with an entry in another block.
pub(crate) const OTHER_MATRICES: [fn(&mut [i16]); 3] = [
    |matrix| matrix[0] += 9,
    |matrix| (matrix[0], matrix[1]) = (matrix[0] + 9, matrix[1] - 9),
    |matrix| matrix.swap(0, 5),
];

/// A matrix of these numbers of inputs and outputs with any points, in rows of 2^row_variables.
pub(crate) fn any_matrix(sizes: [usize; 2], row_variables: usize) -> Matrix {
    let [columns, rows] = Matrix::size(sizes, row_variables);
    let point = crate::group::vector_generators(1)[0];
    Matrix {
        inputs: sizes[0],
        outputs: sizes[1],
        rows: vec![vec![point; rows]; columns],
        opened: None,
    }
}
