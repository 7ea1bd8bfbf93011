//! All pairs of int4 vectors whose cosine reaches a threshold, and how they join accounts: the coalition
//! estimator's inner loop (docs/estimator.md).
//!
//! Everything is compared in integers: cosine >= p/q is <a,b> > 0 and (q <a,b>)^2 >= p^2 |a|^2 |b|^2. With at most
//! 4096 components of -8..7, products and squared norms are at most 2^18, so both sides stay below 2^56.
use rayon::prelude::*;

use crate::int4::{check_components, check_shape, NIBBLE_OFFSET};
use crate::Error;

#[cfg(target_arch = "x86_64")]
mod avx512;

/// Largest denominator of a threshold.
pub const MAX_DENOMINATOR: u64 = 1000;

/// Components that one vector instruction takes.
const LANES: usize = 32;
/// Rows whose pairs are searched in parallel before their accounts are joined.
const BLOCK: usize = 128;
/// Earlier rows of one task: with the block they fit the second-level cache.
const CHUNK: usize = 256;
/// Pairs of one kernel call: `LEFT` rows with `RIGHT` earlier ones.
const LEFT: usize = 2;
const RIGHT: usize = 4;
/// The start of earlier rows is a multiple of this number, which is a multiple of the rows in any kernel call.
const ALIGNED: usize = 16;
/// Rows that a kernel may read after the last row.
const BEHIND: usize = 16 + 8;

/// The cosine threshold p/q.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    p_squared: u64,
    q_squared: u64,
}

impl Threshold {
    pub fn new(p: u64, q: u64) -> Result<Self, Error> {
        if !(0 < p && p < q && q <= MAX_DENOMINATOR) {
            let expected = format!("0 < p < q <= {MAX_DENOMINATOR}");
            return Err(Error::invalid("theta", expected, format!("{p}/{q}")));
        }
        Ok(Self {
            p_squared: p * p,
            q_squared: q * q,
        })
    }

    /// Whether two vectors with this inner product and these squared norms are near; two zero vectors are equal.
    fn admits(self, dot: i32, norm_a: u32, norm_b: u32) -> bool {
        let norms = u64::from(norm_a) * u64::from(norm_b);
        let square = u64::from(dot.unsigned_abs()).pow(2);
        (dot > 0 && square * self.q_squared >= norms * self.p_squared) || (norm_a | norm_b) == 0
    }
}

/// The pairs that join accounts into clusters: the minimal spanning forest of the account graph under the order
/// (later row, earlier row), which is unique. As (earlier, later), in that order.
///
/// `rows` has shape (n, dimension); row j is compared with rows first[j]..j of other accounts.
pub fn joining_pairs(
    rows: &[i8],
    dimension: usize,
    accounts: &[u32],
    first: &[u32],
    threshold: Threshold,
) -> Result<Vec<(u32, u32)>, Error> {
    joining(rows, dimension, accounts, first, threshold, true)
}

/// `wide` allows the kernel of AVX-512.
fn joining(
    rows: &[i8],
    dimension: usize,
    accounts: &[u32],
    first: &[u32],
    threshold: Threshold,
    wide: bool,
) -> Result<Vec<(u32, u32)>, Error> {
    check_shape("rows", rows.len(), dimension)?;
    check_components("rows", rows)?;
    let count = rows.len() / dimension;
    for (field, list) in [("accounts", accounts), ("first", first)] {
        if list.len() != count {
            let expected = format!("{count} values");
            return Err(Error::invalid(
                field,
                expected,
                format!("{} values", list.len()),
            ));
        }
    }
    if let Some(j) = (0..count).find(|&j| first[j] as usize > j) {
        let found = first[j].to_string();
        return Err(Error::invalid(
            format!("first[{j}]"),
            format!("at most {j}"),
            found,
        ));
    }
    let nodes = accounts.iter().max().map_or(0, |&a| a as usize + 1);
    if nodes > count {
        let expected = format!("numbers below {count}");
        let found = (nodes - 1).to_string();
        return Err(Error::invalid("accounts", expected, found));
    }
    let vectors = Vectors::new(rows, dimension);
    let search = Search {
        wide: wide.then(|| vectors.wide(threshold)).flatten(),
        vectors,
        accounts,
        first,
        threshold,
    };
    let mut forest = Forest::new(nodes);
    let mut pairs = Vec::new();
    for start in (0..count).step_by(BLOCK) {
        let mut found = search.block(start..count.min(start + BLOCK), &forest.labels);
        found.sort_unstable();
        for (later, earlier) in found {
            if forest.join(accounts[later as usize], accounts[earlier as usize]) {
                pairs.push((earlier, later));
            }
        }
        forest.relabel();
    }
    Ok(pairs)
}

#[cfg(target_arch = "x86_64")]
use avx512::Wide;

/// A kernel that this processor architecture lacks.
#[cfg(not(target_arch = "x86_64"))]
enum Wide {}

struct Search<'a> {
    vectors: Vectors,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    wide: Option<Wide>,
    accounts: &'a [u32],
    first: &'a [u32],
    threshold: Threshold,
}

impl Search<'_> {
    /// Near pairs (later, earlier) of these rows that join different components of `labels`.
    fn block(&self, rows: std::ops::Range<usize>, labels: &[u32]) -> Vec<(u32, u32)> {
        let left = self.vectors.offset(rows.clone());
        let lowest = self.first[rows.clone()]
            .iter()
            .min()
            .map_or(0, |&f| f as usize);
        let from = lowest / ALIGNED * ALIGNED;
        (from..rows.end)
            .into_par_iter()
            .step_by(CHUNK)
            .flat_map_iter(|start| {
                self.chunk(
                    &left,
                    rows.clone(),
                    start..rows.end.min(start + CHUNK),
                    labels,
                )
            })
            .collect()
    }

    fn chunk(
        &self,
        left: &[u8],
        later: std::ops::Range<usize>,
        earlier: std::ops::Range<usize>,
        labels: &[u32],
    ) -> Vec<(u32, u32)> {
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = &self.wide {
            return self.chunk_wide(wide, later, earlier, labels);
        }
        let (kernel, stride) = (kernel(), self.vectors.stride);
        let mut found = Vec::new();
        for i in earlier.step_by(RIGHT) {
            let right = &self.vectors.components[i * stride..(i + RIGHT) * stride];
            for (pair, rows) in left.chunks_exact(LEFT * stride).enumerate() {
                let dots = kernel(rows, right, stride);
                for (a, dots) in dots.iter().enumerate() {
                    let j = later.start + pair * LEFT + a;
                    for (b, dot) in dots.iter().enumerate() {
                        // The kernel multiplied components raised by 8; rows of padding lie beyond the last one.
                        let sum = self.vectors.sums.get(i + b).copied().unwrap_or_default();
                        let product = dot - i32::from(NIBBLE_OFFSET) * sum;
                        self.consider(j, i + b, later.end, product, labels, &mut found);
                    }
                }
            }
        }
        found
    }

    #[cfg(target_arch = "x86_64")]
    fn chunk_wide(
        &self,
        wide: &Wide,
        later: std::ops::Range<usize>,
        earlier: std::ops::Range<usize>,
        labels: &[u32],
    ) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for i in earlier.step_by(avx512::RIGHT) {
            for j in later.clone().step_by(avx512::LEFT) {
                let near = wide.near(&self.vectors.components, j, i / avx512::RIGHT);
                for (a, mut mask) in near.masks.into_iter().enumerate() {
                    while mask != 0 {
                        let b = mask.trailing_zeros() as usize;
                        mask &= mask - 1;
                        let product = near.products[a][b];
                        self.consider(j + a, i + b, later.end, product, labels, &mut found);
                    }
                }
            }
        }
        found
    }

    #[inline(always)]
    fn consider(
        &self,
        j: usize,
        i: usize,
        end: usize,
        product: i32,
        labels: &[u32],
        found: &mut Vec<(u32, u32)>,
    ) {
        let v = &self.vectors;
        let near = i < j && j < end && self.threshold.admits(product, v.norms[i], v.norms[j]);
        if near && i >= self.first[j] as usize {
            let label = |row: usize| labels[self.accounts[row] as usize];
            if label(i) != label(j) {
                found.push((j as u32, i as u32));
            }
        }
    }
}

/// Signed components, each row padded with zeros to `stride`, at least `BEHIND` rows of zeros behind the last.
struct Vectors {
    stride: usize,
    components: Vec<i8>,
    sums: Vec<i32>,
    norms: Vec<u32>,
}

impl Vectors {
    fn new(rows: &[i8], dimension: usize) -> Self {
        let stride = dimension.div_ceil(LANES) * LANES;
        let count = rows.len() / dimension;
        let mut components = vec![0; (count + BEHIND) * stride];
        for (padded, row) in components
            .chunks_exact_mut(stride)
            .zip(rows.chunks_exact(dimension))
        {
            padded[..dimension].copy_from_slice(row);
        }
        let sum = |row: &[i8]| row.iter().map(|&v| i32::from(v)).sum();
        let norm = |row: &[i8]| {
            row.iter()
                .map(|&v| u32::from(v.unsigned_abs()).pow(2))
                .sum()
        };
        Self {
            stride,
            components,
            sums: rows.chunks_exact(dimension).map(sum).collect(),
            norms: rows.chunks_exact(dimension).map(norm).collect(),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn wide(&self, threshold: Threshold) -> Option<Wide> {
        Wide::new(
            &self.components,
            self.stride,
            &self.norms,
            &self.sums,
            threshold,
        )
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn wide(&self, _: Threshold) -> Option<Wide> {
        None
    }

    /// These rows raised by 8 to unsigned bytes, one more if their number is odd.
    fn offset(&self, rows: std::ops::Range<usize>) -> Vec<u8> {
        let end = rows.start + rows.len().div_ceil(LEFT) * LEFT;
        self.components[rows.start * self.stride..end * self.stride]
            .iter()
            .map(|&v| (v + NIBBLE_OFFSET) as u8)
            .collect()
    }
}

/// (LEFT rows of unsigned components, RIGHT rows of signed ones, stride) to their products
type Kernel = fn(&[u8], &[i8], usize) -> [[i32; RIGHT]; LEFT];

#[cfg(target_arch = "x86_64")]
fn kernel() -> Kernel {
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        |left, right, stride| unsafe { avx2::products(left, right, stride) }
    } else {
        portable
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn kernel() -> Kernel {
    portable
}

fn portable(left: &[u8], right: &[i8], stride: usize) -> [[i32; RIGHT]; LEFT] {
    let mut out = [[0; RIGHT]; LEFT];
    for (out, a) in out.iter_mut().zip(left.chunks_exact(stride)) {
        for (out, b) in out.iter_mut().zip(right.chunks_exact(stride)) {
            *out = a
                .iter()
                .zip(b)
                .map(|(&a, &b)| i32::from(a) * i32::from(b))
                .sum();
        }
    }
    out
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LANES, LEFT, RIGHT};

    /// A pair of products is at most 2 * 15 * 8 in magnitude and 16-bit lanes take one pair a step, so the at most
    /// 128 steps of 4096 components stay below 2^15.
    #[target_feature(enable = "avx2")]
    pub fn products(left: &[u8], right: &[i8], stride: usize) -> [[i32; RIGHT]; LEFT] {
        assert!(
            left.len() >= LEFT * stride
                && right.len() >= RIGHT * stride
                && stride.is_multiple_of(LANES)
        );
        let mut sums = [[_mm256_setzero_si256(); RIGHT]; LEFT];
        for at in (0..stride).step_by(LANES) {
            // SAFETY: rows are whole multiples of LANES bytes and all of them are there; loads need no alignment.
            let (a, b) = unsafe {
                let a: [_; LEFT] = std::array::from_fn(|r| {
                    _mm256_loadu_si256(left.as_ptr().add(r * stride + at).cast())
                });
                let b: [_; RIGHT] = std::array::from_fn(|r| {
                    _mm256_loadu_si256(right.as_ptr().add(r * stride + at).cast())
                });
                (a, b)
            };
            for (sums, a) in sums.iter_mut().zip(a) {
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(a, b));
                }
            }
        }
        let mut out = [[0; RIGHT]; LEFT];
        for (out, sums) in out.iter_mut().zip(sums) {
            let wide = sums.map(|s| _mm256_madd_epi16(s, _mm256_set1_epi16(1)));
            let pairs = _mm256_hadd_epi32(
                _mm256_hadd_epi32(wide[0], wide[1]),
                _mm256_hadd_epi32(wide[2], wide[3]),
            );
            let total = _mm_add_epi32(
                _mm256_castsi256_si128(pairs),
                _mm256_extracti128_si256::<1>(pairs),
            );
            // SAFETY: `out` holds 16 bytes; the store needs no alignment.
            unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), total) };
        }
        out
    }
}

/// Union-find over accounts, with the components' labels as of the last `relabel`.
struct Forest {
    parents: Vec<u32>,
    labels: Vec<u32>,
}

impl Forest {
    fn new(nodes: usize) -> Self {
        let parents: Vec<u32> = (0..nodes as u32).collect();
        let labels = parents.clone();
        Self { parents, labels }
    }

    fn root(&mut self, mut node: u32) -> u32 {
        while self.parents[node as usize] != node {
            let above = self.parents[self.parents[node as usize] as usize];
            self.parents[node as usize] = above;
            node = above;
        }
        node
    }

    /// Join two components. Returns whether they were different.
    fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b) as usize] = a.min(b);
        a != b
    }

    fn relabel(&mut self) {
        for node in 0..self.labels.len() as u32 {
            self.labels[node as usize] = self.root(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full-period generator, so that the tests need no dependency.
    struct Generator(u32);

    impl Generator {
        fn next(&mut self) -> u32 {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            self.0 >> 16
        }

        fn components(&mut self, n: usize) -> Vec<i8> {
            (0..n).map(|_| (self.next() % 15) as i8 - 7).collect()
        }
    }

    /// Kruskal over all pairs in the documented order, in 128-bit integers.
    fn expected(
        rows: &[i8],
        dimension: usize,
        accounts: &[u32],
        first: &[u32],
        (p, q): (u64, u64),
    ) -> Vec<(u32, u32)> {
        let rows: Vec<&[i8]> = rows.chunks_exact(dimension).collect();
        let dot = |a: &[i8], b: &[i8]| -> i128 {
            a.iter()
                .zip(b)
                .map(|(&a, &b)| i128::from(a) * i128::from(b))
                .sum()
        };
        let mut labels: Vec<u32> = (0..rows.len() as u32).collect();
        let mut pairs = Vec::new();
        for j in 0..rows.len() {
            for i in first[j] as usize..j {
                let s = dot(rows[i], rows[j]);
                let norms = dot(rows[i], rows[i]) * dot(rows[j], rows[j]);
                let (p, q) = (i128::from(p), i128::from(q));
                let near = rows[i] == rows[j] || (s > 0 && s * s * q * q >= p * p * norms);
                let (a, b) = (labels[accounts[i] as usize], labels[accounts[j] as usize]);
                if near && a != b {
                    labels.iter_mut().filter(|l| **l == a).for_each(|l| *l = b);
                    pairs.push((i as u32, j as u32));
                }
            }
        }
        pairs
    }

    fn check(
        rows: &[i8],
        dimension: usize,
        accounts: &[u32],
        first: &[u32],
        theta: (u64, u64),
    ) -> usize {
        let threshold = Threshold::new(theta.0, theta.1).unwrap();
        let expected = expected(rows, dimension, accounts, first, theta);
        for wide in [false, true] {
            let found = joining(rows, dimension, accounts, first, threshold, wide).unwrap();
            assert_eq!(found, expected, "wide: {wide}");
        }
        expected.len()
    }

    #[test]
    fn agrees_with_the_definition_over_blocks_chunks_and_windows() {
        let mut g = Generator(1);
        let mut joined = 0;
        for (count, dimension) in [(1, 3), (2, 1), (7, 4), (130, 5), (600, 6), (300, 33)] {
            if cfg!(miri) && count > 7 {
                break; // what is interpreted takes long
            }
            let rows = g.components(count * dimension);
            for tau in [1, 3, 100, count] {
                let first: Vec<u32> = (0..count).map(|j| j.saturating_sub(tau) as u32).collect();
                for nodes in [1, 2.min(count), count.div_ceil(3), count] {
                    let accounts: Vec<u32> = (0..count).map(|_| g.next() % nodes as u32).collect();
                    for theta in [(1, 2), (4, 5), (999, 1000)] {
                        joined += check(&rows, dimension, &accounts, &first, theta);
                    }
                }
            }
        }
        assert!(joined > if cfg!(miri) { 0 } else { 1000 });
    }

    #[test]
    fn both_kernels_agree() {
        let mut g = Generator(2);
        for stride in [32, 64, 256, 4096] {
            if cfg!(miri) && stride > 64 {
                break;
            }
            let left: Vec<u8> = (0..LEFT * stride).map(|_| (g.next() % 16) as u8).collect();
            let right = g.components(RIGHT * stride);
            assert_eq!(
                kernel()(&left, &right, stride),
                portable(&left, &right, stride)
            );
        }
    }

    #[test]
    fn extreme_components_do_not_overflow() {
        let dimension = 4096;
        for (a, b, near) in [(-8, -8, 1), (7, -8, 0), (-8, 7, 0), (7, 7, 1)] {
            let rows = [vec![a; dimension], vec![b; dimension]].concat();
            assert_eq!(check(&rows, dimension, &[0, 1], &[0, 0], (999, 1000)), near);
        }
    }

    #[test]
    fn the_threshold_itself_is_near() {
        // cos((4, 3), (5, 0)) = 4/5
        let rows = [4, 3, 5, 0];
        assert_eq!(check(&rows, 2, &[0, 1], &[0, 0], (4, 5)), 1);
        assert_eq!(check(&rows, 2, &[0, 1], &[0, 0], (801, 1000)), 0);
        assert_eq!(check(&rows, 2, &[0, 0], &[0, 0], (4, 5)), 0);
        assert_eq!(check(&rows, 2, &[0, 1], &[0, 1], (4, 5)), 0);
    }

    #[test]
    fn zero_vectors_equal_each_other_only() {
        let rows = [0, 0, 1, 1, 0, 0];
        assert_eq!(check(&rows, 2, &[0, 1, 2], &[0, 0, 0], (1, 1000)), 1);
    }

    #[test]
    fn malformed_input_is_refused() {
        assert!(Threshold::new(0, 5).is_err());
        assert!(Threshold::new(5, 5).is_err());
        assert!(Threshold::new(6, 5).is_err());
        assert!(Threshold::new(1, 1001).is_err());
        let t = Threshold::new(4, 5).unwrap();
        assert!(joining_pairs(&[], 2, &[], &[], t).unwrap().is_empty());
        assert!(joining_pairs(&[1, 2, 3], 2, &[0], &[0], t).is_err());
        assert!(joining_pairs(&[1, 2], 0, &[0], &[0], t).is_err());
        assert!(joining_pairs(&[1, 9], 2, &[0], &[0], t).is_err());
        assert!(joining_pairs(&[1, 2], 2, &[], &[0], t).is_err());
        assert!(joining_pairs(&[1, 2], 2, &[0], &[], t).is_err());
        assert!(joining_pairs(&[1, 2], 2, &[0], &[1], t).is_err());
        assert!(joining_pairs(&[1, 2], 2, &[1], &[0], t).is_err());
    }
}
