//! Commitments to columns of secret integers, by the same steps whatever the integers are: `docs/scan/time.md`.
use std::sync::{Arc, OnceLock};

use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::g1::{fold, normalize, segment_sums};
use ragaudit_field_simd::multiples::{self, Multiples, DIGIT, SUMS};
use rayon::prelude::*;
use zeroize::Zeroize;

use crate::claims::Bound;
use crate::group::{small_msm, tables, vector_generators, Fr, G1Affine, G1Projective};
use crate::numbers::half;

/// Values within a bound by their digits.
trait Digits {
    /// Digits of a value.
    fn digits(self) -> usize;

    /// The number that is added to a value so that its digits are the digits of an unsigned integer.
    fn raise(self) -> u64;
}

impl Digits for Bound {
    fn digits(self) -> usize {
        self.bits().div_ceil(DIGIT).max(1)
    }

    fn raise(self) -> u64 {
        match self {
            Self::Unsigned(_) => 0,
            Self::Signed(_) => 1 << (DIGIT * self.digits() - 1),
        }
    }
}

/// A column to commit to.
pub(crate) struct Secret<'a> {
    pub values: &'a [i64],
    /// One for each row.
    pub blindings: &'a [Fr],
    pub bound: Bound,
}

/// The number of generators with tables computed in one step.
const BLOCK: usize = 64;
/// The number of blocks with tables that a process stores: 64 MiB. Longer rows have tables that every commitment computes.
const CACHED: usize = 128;
/// The number of sums computed in one step.
const CHUNK: usize = 2048;

/// The tables of generators `at * BLOCK ..`, with the points' sum.
struct Block {
    tables: Vec<Multiples>,
    sum: G1Affine,
}

impl Block {
    fn new(points: &[G1Affine]) -> Self {
        Self {
            tables: Multiples::of(points),
            sum: segment_sums(points.to_vec(), &[points.len() as u32])[0],
        }
    }

    /// Tables for rows of at least [`BLOCK`] values. This code does not wait for the thread pool.
    fn at(generators: &[G1Affine], at: usize) -> Arc<Self> {
        static BLOCKS: [OnceLock<Arc<Block>>; CACHED] = [const { OnceLock::new() }; CACHED];
        let make = || Arc::new(Self::new(&generators[at * BLOCK..][..BLOCK]));
        match BLOCKS.get(at) {
            Some(cached) => Arc::clone(cached.get_or_init(make)),
            None => make(),
        }
    }
}

/// One row of a column.
struct Row<'a> {
    values: &'a [i64],
    blinding: Fr,
    bound: Bound,
    /// Blocks that the row reaches into.
    blocks: usize,
}

/// One digit of all values of a row.
#[derive(Clone, Copy)]
struct Digit {
    row: usize,
    shift: usize,
}

/// The commitments to all rows of each column, in rows of `length`.
pub(crate) fn commit(columns: &[Secret], length: usize) -> Vec<Vec<G1Affine>> {
    let generators = vector_generators(length);
    let block = BLOCK.min(length);
    let mut rows: Vec<Row> = Vec::new();
    for column in columns {
        let reached = column.blindings.len() * length;
        let mut runs = column.values[..column.values.len().min(reached)].chunks(length);
        rows.extend(column.blindings.iter().map(|blinding| {
            let values = runs.next().unwrap_or_default();
            Row {
                values,
                blinding: *blinding,
                bound: column.bound,
                blocks: values.len().div_ceil(block),
            }
        }));
    }
    let points = commit_rows(&rows, &generators, block);
    let mut points = points.into_iter();
    let of = |column: &Secret| points.by_ref().take(column.blindings.len()).collect();
    columns.iter().map(of).collect()
}

fn commit_rows(rows: &[Row], generators: &[G1Affine], block: usize) -> Vec<G1Affine> {
    // Rows with the most blocks come first, so that the rows of a block come first.
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(rows[*i].blocks));
    let digits: Vec<Digit> = order
        .iter()
        .flat_map(|row| {
            let shifts = (0..rows[*row].bound.digits()).map(|k| k * DIGIT);
            shifts.map(|shift| Digit { row: *row, shift })
        })
        .collect();
    let blocks = rows.iter().map(|row| row.blocks).max().unwrap_or(0);
    let reaching = |at: usize| digits.partition_point(|digit| rows[digit.row].blocks > at);
    let of_blocks: Vec<(Vec<G1Affine>, G1Affine)> = (0..blocks)
        .into_par_iter()
        .map(|at| {
            let prefix = match block {
                BLOCK => Block::at(generators, at),
                _ => Arc::new(Block::new(&generators[..block])),
            };
            let chunks = digits[..reaching(at)].chunks(CHUNK);
            let sums = chunks.flat_map(|digits| block_sums(&prefix.tables, rows, digits, at));
            (sums.collect(), prefix.sum)
        })
        .collect();
    // The digits' sums over all blocks.
    let whole: Vec<G1Affine> = (0..digits.len())
        .collect::<Vec<_>>()
        .par_chunks(CHUNK / 16)
        .flat_map_iter(|run| {
            let of = |i: &usize| rows[digits[*i].row].blocks;
            let parts = run
                .iter()
                .flat_map(|i| of_blocks[..of(i)].iter().map(|(sums, _)| sums[*i]));
            let lengths: Vec<u32> = run.iter().map(|i| of(i) as u32).collect();
            segment_sums(parts.collect(), &lengths)
        })
        .collect();
    // A row's digits one after another: sum of (2 (v + raise) - (2^bits - 1)) G.
    let mut next = whole.iter();
    let mut doubled = vec![G1Projective::ZERO; rows.len()];
    for row in &order {
        let own: Vec<&G1Affine> = next.by_ref().take(rows[*row].bound.digits()).collect();
        let mut own = own.into_iter().rev();
        let first = own.next().map_or(G1Projective::ZERO, |p| p.into_group());
        doubled[*row] = own.fold(first, |sum, p| {
            (0..DIGIT).fold(sum, |sum, _| sum.double()) + p
        });
    }
    let doubled = normalize(&doubled);
    let mut wholes: Vec<G1Projective> = vec![G1Projective::ZERO];
    for (_, sum) in &of_blocks {
        wholes.push(wholes[wholes.len() - 1] + sum);
    }
    let corrections = corrections(rows, &wholes);
    let mut commitments = blinded(rows, &corrections, &doubled);
    for (commitment, row) in commitments.iter_mut().zip(rows) {
        // Only a cheating prover has such values.
        if !row.bound.holds(row.values) {
            let blinding = tables().h.multiples(&[row.blinding])[0];
            let sum = small_msm(&generators[..row.values.len()], row.values) + blinding;
            *commitment = normalize(&[sum])[0];
        }
    }
    commitments
}

/// For each digit the sum over a block's generators.
fn block_sums(tables: &[Multiples], rows: &[Row], run: &[Digit], at: usize) -> Vec<G1Affine> {
    let (count, sums) = (tables.len(), run.len().next_multiple_of(SUMS));
    let mut digits = vec![0u8; count * sums];
    for (s, digit) in run.iter().enumerate() {
        let row = &rows[digit.row];
        let values = row.values[at * count..].iter().chain(std::iter::repeat(&0));
        let raise = row.bound.raise();
        for (place, v) in digits[s..].iter_mut().step_by(sums).zip(values) {
            *place = ((*v as u64).wrapping_add(raise) >> digit.shift) as u8;
        }
    }
    let mut out = multiples::sums(tables, &digits, sums);
    digits.zeroize();
    out.truncate(run.len());
    out
}

/// The correction of a row for its bound: (2^bits - 1) / 2 - raise times the sum of its generators.
fn corrections(rows: &[Row], wholes: &[G1Projective]) -> Vec<G1Affine> {
    let mut kinds: Vec<(usize, Bound)> = Vec::new();
    let places: Vec<usize> = rows
        .iter()
        .map(|row| {
            let kind = (row.blocks, row.bound);
            kinds.iter().position(|k| *k == kind).unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            })
        })
        .collect();
    let of = |(blocks, bound): &(usize, Bound)| {
        let all = Fr::from(2u8).pow([(DIGIT * bound.digits()) as u64]);
        wholes[*blocks] * ((all - Fr::ONE) * half() - Fr::from(bound.raise()))
    };
    let products: Vec<G1Projective> = kinds.par_iter().map(of).collect();
    let products = normalize(&products);
    places.into_iter().map(|place| products[place]).collect()
}

/// Half of each point, its correction and its blinding.
fn blinded(rows: &[Row], corrections: &[G1Affine], doubled: &[G1Affine]) -> Vec<G1Affine> {
    let blindings: Vec<Fr> = rows.iter().map(|row| row.blinding).collect();
    let mut low = tables().h.multiples(&blindings);
    ragaudit_field_simd::g1::add_each(&mut low, corrections);
    fold(&low, doubled, &half())
}

/// Counts a value at its place in the table. The written place depends on the value, the amount of work does not. A value
/// outside the table has no row that counts it, and makes the proof fail.
pub(crate) fn count(table: &mut [i64], value: i64) {
    if let Some(row) = usize::try_from(value).ok().and_then(|v| table.get_mut(v)) {
        *row += 1;
    }
}

/// Adds a table's counts to those before them, if there are any.
pub(crate) fn add_counts(sums: &mut Vec<i64>, counts: &[i64]) {
    sums.resize(counts.len(), 0);
    sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::UniformRand;

    fn plain(values: &[i64], blindings: &[Fr], length: usize) -> Vec<G1Affine> {
        let g = vector_generators(length);
        let row = |(a, blinding): (usize, &Fr)| {
            let run = values.iter().skip(a * length).take(length);
            let terms = run
                .zip(g.iter())
                .map(|(v, g)| *g * crate::numbers::from_small(*v));
            terms.sum::<G1Projective>() + tables().h.point * blinding
        };
        normalize(&blindings.iter().enumerate().map(row).collect::<Vec<_>>())
    }

    /// Lengths of rows below, at and above a block's; columns that end within a row, within a block, or before their
    /// rows do; values at the ends of their bounds, and beyond them.
    #[test]
    fn commitments_are_the_values() {
        let mut rng = ark_std::test_rng();
        for length in [1usize, 8, 64, 256] {
            let columns: Vec<(Vec<i64>, Vec<Fr>, Bound)> = [
                (3 * length, 3, Bound::Unsigned(1)),
                (2 * length + 1, 3, Bound::Unsigned(16)),
                (length.div_ceil(3), 1, Bound::Signed(9)),
                (length, 1, Bound::Signed(8)),
                (0, 1, Bound::Unsigned(3)),
                (length, 2, Bound::ANY),
                (length, 1, Bound::Unsigned(17)),
            ]
            .into_iter()
            .map(|(count, rows, bound)| {
                let (minimum, bits) = match bound {
                    Bound::Unsigned(bits) => (0i128, bits),
                    Bound::Signed(bits) => (-(1i128 << (bits - 1)), bits),
                };
                let maximum = minimum + (1i128 << bits) - 1;
                let value = |i: usize| match i % 4 {
                    0 => minimum as i64,
                    1 => maximum as i64,
                    2 => 0,
                    _ => (minimum + (i as i128 * 0x9e37_79b9_7f4a_7c15) % (1i128 << bits)) as i64,
                };
                let values = (0..count).map(value).collect();
                let blindings = (0..rows).map(|_| Fr::rand(&mut rng)).collect();
                (values, blindings, bound)
            })
            .chain([
                (vec![0; length], vec![Fr::ZERO], Bound::Unsigned(8)),
                (vec![256; length], vec![Fr::ONE], Bound::Unsigned(8)),
                (vec![-1; length], vec![Fr::ONE], Bound::Unsigned(16)),
            ])
            .collect();
            let secrets: Vec<Secret> = columns
                .iter()
                .map(|(values, blindings, bound)| Secret {
                    values,
                    blindings,
                    bound: *bound,
                })
                .collect();
            let points = commit(&secrets, length);
            for ((values, blindings, bound), points) in columns.iter().zip(points) {
                let expected = plain(values, blindings, length);
                assert_eq!(points, expected, "{bound:?} in rows of {length}");
            }
        }
    }

    #[test]
    fn bounds_are_what_they_say() {
        assert_eq!(Bound::up_to(255), Bound::Unsigned(8));
        assert_eq!(Bound::up_to(256), Bound::Unsigned(9));
        assert_eq!(Bound::within(127), Bound::Signed(8));
        assert_eq!(Bound::within(128), Bound::Signed(9));
        for (bound, inside, outside) in [
            (Bound::Unsigned(8), vec![0, 255], vec![-1, 256]),
            (Bound::Signed(8), vec![-128, 127], vec![-129, 128]),
            (Bound::ANY, vec![i64::MIN, i64::MAX], vec![]),
            (Bound::Signed(63), vec![1 << 61], vec![i64::MIN, 1 << 62]),
        ] {
            assert!(bound.holds(&inside) && outside.iter().all(|v| !bound.holds(&[*v])));
        }
    }
}
