//! Inner products of a packed int4 index with an int4 query: exact, one row a few cache lines.
//!
//! Blocks of 64 components take 32 bytes: byte b holds component b in its low nibble and component 32 + b in
//! its high one, each as v + 8. The kernels multiply unsigned nibbles by the signed query and subtract 8 sum(q)
//! at the end; the query has zeros at the padding of the last block.
use rayon::prelude::*;

use crate::Error;

/// The offset between a component and its nibble.
pub const NIBBLE_OFFSET: i8 = 8;
/// Largest dimension: up to here the 16-bit partial sums of the AVX2 kernel cannot overflow.
pub const MAX_DIMENSION: usize = 4096;

const BLOCK: usize = 64;
const BLOCK_BYTES: usize = BLOCK / 2;
const ROWS_PER_TASK: usize = 2048;

/// Refuses a dimension out of range and a length that is not a whole number of rows.
pub fn check_shape(field: &str, length: usize, dimension: usize) -> Result<(), Error> {
    if !(1..=MAX_DIMENSION).contains(&dimension) {
        let expected = format!("1 to {MAX_DIMENSION}");
        return Err(Error::invalid("dimension", expected, dimension.to_string()));
    }
    let incomplete = length % dimension;
    if incomplete != 0 {
        let expected = format!("a multiple of {dimension} components");
        return Err(Error::invalid(
            field,
            expected,
            format!("{length} components"),
        ));
    }
    Ok(())
}

/// Refuses components outside -8..7.
pub fn check_components(field: &str, components: &[i8]) -> Result<(), Error> {
    match components.iter().position(|v| !(-8..8).contains(v)) {
        None => Ok(()),
        Some(i) => Err(Error::invalid(
            format!("{field}[{i}]"),
            "-8 to 7",
            components[i].to_string(),
        )),
    }
}

/// An immutable int4 index.
pub struct PackedIndex {
    rows: usize,
    dimension: usize,
    packed: Vec<u8>,
}

impl PackedIndex {
    /// Packs int8 rows of shape (rows, dimension).
    pub fn new(components: &[i8], dimension: usize) -> Result<Self, Error> {
        check_shape("rows", components.len(), dimension)?;
        check_components("rows", components)?;
        let rows = components.len() / dimension;
        let stride = dimension.div_ceil(BLOCK) * BLOCK_BYTES;
        let mut packed = vec![0; rows * stride];
        packed
            .par_chunks_exact_mut(stride)
            .zip(components.par_chunks_exact(dimension))
            .for_each(|(out, row)| pack_row(out, row));
        Ok(Self {
            rows,
            dimension,
            packed,
        })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// <row, query> for every row, as int32 in little-endian order: four bytes for each row.
    pub fn write_scores(&self, query: &[i8], out: &mut [u8]) -> Result<(), Error> {
        let query = self.prepare(query)?;
        if out.len() != 4 * self.rows {
            let expected = format!("{} bytes", 4 * self.rows);
            return Err(Error::invalid(
                "out",
                expected,
                format!("{} bytes", out.len()),
            ));
        }
        let run = |(out, rows): (&mut [u8], &[u8])| {
            let mut scores = vec![0; out.len() / 4];
            query.score(rows, &mut scores);
            for (bytes, score) in out.chunks_exact_mut(4).zip(scores) {
                bytes.copy_from_slice(&score.to_le_bytes());
            }
        };
        out.par_chunks_mut(4 * ROWS_PER_TASK)
            .zip(self.tasks(&query))
            .for_each(run);
        Ok(())
    }

    /// The results of a function on the scores of each run of rows, in order, for each of several queries. The function also
    /// receives the query's number and the first row of the run. Each run is read from memory once for all queries, and no
    /// array has the scores of all rows.
    pub fn map_scores<T: Send>(
        &self,
        queries: &[&[i8]],
        of_run: impl Fn(usize, usize, &[i32]) -> T + Sync,
    ) -> Result<Vec<Vec<T>>, Error> {
        let queries = queries.iter().map(|query| self.prepare(query));
        let queries = queries.collect::<Result<Vec<_>, _>>()?;
        let Some(first) = queries.first() else {
            return Ok(Vec::new());
        };
        let run = |(task, rows): (usize, &[u8])| {
            let mut scores = vec![0; rows.len() / first.stride()];
            let of_query = |(number, query): (usize, &Prepared)| {
                query.score(rows, &mut scores);
                of_run(number, task * ROWS_PER_TASK, &scores)
            };
            queries.iter().enumerate().map(of_query).collect()
        };
        Ok(self.tasks(first).enumerate().map(run).collect())
    }

    fn tasks(&self, query: &Prepared) -> rayon::slice::Chunks<'_, u8> {
        self.packed.par_chunks(ROWS_PER_TASK * query.stride())
    }

    fn prepare(&self, query: &[i8]) -> Result<Prepared, Error> {
        if query.len() != self.dimension {
            let expected = format!("{} components", self.dimension);
            return Err(Error::invalid(
                "query",
                expected,
                format!("{} components", query.len()),
            ));
        }
        check_components("query", query)?;
        let mut padded = query.to_vec();
        padded.resize(self.dimension.div_ceil(BLOCK) * BLOCK, 0);
        let offset = i32::from(NIBBLE_OFFSET) * query.iter().map(|&v| i32::from(v)).sum::<i32>();
        Ok(Prepared {
            padded,
            offset,
            kernel: kernel(),
        })
    }
}

#[cfg(test)]
impl PackedIndex {
    /// `write_scores` as numbers.
    pub(crate) fn scores(&self, query: &[i8]) -> Result<Vec<i32>, Error> {
        let mut bytes = vec![0; 4 * self.rows];
        self.write_scores(query, &mut bytes)?;
        let (scores, _) = bytes.as_chunks();
        Ok(scores.iter().map(|s| i32::from_le_bytes(*s)).collect())
    }
}

/// A query in the form that the kernels read.
struct Prepared {
    /// The components, padded to whole blocks.
    padded: Vec<i8>,
    /// The sum that the offset of nibbles adds to every score.
    offset: i32,
    kernel: Kernel,
}

impl Prepared {
    /// Bytes of a packed row.
    fn stride(&self) -> usize {
        self.padded.len() / 2
    }

    fn score(&self, rows: &[u8], out: &mut [i32]) {
        (self.kernel)(rows, &self.padded, self.offset, out);
    }
}

fn pack_row(out: &mut [u8], row: &[i8]) {
    let nibble = |i: usize| (row.get(i).copied().unwrap_or(0) + NIBBLE_OFFSET) as u8;
    for (block, bytes) in out.chunks_exact_mut(BLOCK_BYTES).enumerate() {
        for (b, byte) in bytes.iter_mut().enumerate() {
            let low = block * BLOCK + b;
            *byte = nibble(low) | nibble(low + BLOCK_BYTES) << 4;
        }
    }
}

/// (packed rows, query padded to whole blocks, value to subtract, scores)
type Kernel = fn(&[u8], &[i8], i32, &mut [i32]);

#[cfg(target_arch = "x86_64")]
fn kernel() -> Kernel {
    if avx512::detected() {
        // SAFETY: the processor has these parts of AVX-512.
        |rows, query, offset, out| unsafe { avx512::scores(rows, query, offset, out) }
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        |rows, query, offset, out| unsafe { avx2::scores(rows, query, offset, out) }
    } else {
        portable
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn kernel() -> Kernel {
    portable
}

fn portable(rows: &[u8], query: &[i8], offset: i32, out: &mut [i32]) {
    for (score, row) in out.iter_mut().zip(rows.chunks_exact(query.len() / 2)) {
        let mut sum = 0;
        for (bytes, q) in row.chunks_exact(BLOCK_BYTES).zip(query.chunks_exact(BLOCK)) {
            let (low, high) = q.split_at(BLOCK_BYTES);
            for ((&byte, &l), &h) in bytes.iter().zip(low).zip(high) {
                sum += i32::from(byte & 15) * i32::from(l) + i32::from(byte >> 4) * i32::from(h);
            }
        }
        *score = sum - offset;
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{BLOCK, BLOCK_BYTES};

    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8]) -> __m256i {
        assert!(bytes.len() >= BLOCK_BYTES);
        // SAFETY: 32 bytes are there; the load needs no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    /// Eight 32-bit partial sums of one row. A pair of products is at most 2 * 15 * 8 in magnitude and a lane
    /// takes two of them a block, so 64 blocks stay below 2^15.
    #[target_feature(enable = "avx2")]
    fn row_sums(row: &[u8], query: &[(__m256i, __m256i)]) -> __m256i {
        let mask = _mm256_set1_epi8(15);
        let mut sum = _mm256_setzero_si256();
        for (bytes, &(q_low, q_high)) in row.chunks_exact(BLOCK_BYTES).zip(query) {
            let block = load(bytes);
            let low = _mm256_and_si256(block, mask);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(block), mask);
            sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(low, q_low));
            sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(high, q_high));
        }
        _mm256_madd_epi16(sum, _mm256_set1_epi16(1))
    }

    /// The sums of four rows' partial sums.
    #[target_feature(enable = "avx2")]
    fn totals(rows: [__m256i; 4]) -> [i32; 4] {
        let pairs = _mm256_hadd_epi32(
            _mm256_hadd_epi32(rows[0], rows[1]),
            _mm256_hadd_epi32(rows[2], rows[3]),
        );
        let sums = _mm_add_epi32(
            _mm256_castsi256_si128(pairs),
            _mm256_extracti128_si256::<1>(pairs),
        );
        let mut out = [0; 4];
        // SAFETY: `out` holds 16 bytes; the store needs no alignment.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), sums) };
        out
    }

    #[target_feature(enable = "avx2")]
    pub fn scores(rows: &[u8], query: &[i8], offset: i32, out: &mut [i32]) {
        let halves: Vec<u8> = query.iter().map(|&v| v as u8).collect();
        let query: Vec<_> = halves
            .chunks_exact(BLOCK)
            .map(|q| (load(q), load(&q[BLOCK_BYTES..])))
            .collect();
        let stride = query.len() * BLOCK_BYTES;
        for (scores, rows) in out.chunks_mut(4).zip(rows.chunks(4 * stride)) {
            let mut sums = [_mm256_setzero_si256(); 4];
            for (sum, row) in sums.iter_mut().zip(rows.chunks_exact(stride)) {
                *sum = row_sums(row, &query);
            }
            for (score, total) in scores.iter_mut().zip(totals(sums)) {
                *score = total - offset;
            }
        }
    }
}

/// Whether the processor has AVX-512 with VNNI.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_vnni() -> bool {
    avx512::detected()
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{BLOCK, BLOCK_BYTES};

    const TWO_BLOCKS: usize = 2 * BLOCK_BYTES;

    pub fn detected() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni")
    }

    /// Up to two blocks, and zeros after them.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn load(bytes: &[u8]) -> __m512i {
        if bytes.len() >= TWO_BLOCKS {
            // SAFETY: 64 bytes are there; the load needs no alignment.
            return unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        }
        let mask = (1 << bytes.len()) - 1;
        // SAFETY: the load reads the bytes of the mask only.
        unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
    }

    /// Sixteen partial sums of one row. They are of 32 bits and do not saturate.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn row_sums(row: &[u8], query: &[(__m512i, __m512i)]) -> __m512i {
        let mask = _mm512_set1_epi8(15);
        let (mut lows, mut highs) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        for (bytes, &(q_low, q_high)) in row.chunks(TWO_BLOCKS).zip(query) {
            let blocks = load(bytes);
            let low = _mm512_and_si512(blocks, mask);
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(blocks), mask);
            lows = _mm512_dpbusd_epi32(lows, low, q_low);
            highs = _mm512_dpbusd_epi32(highs, high, q_high);
        }
        _mm512_add_epi32(lows, highs)
    }

    /// The sums of four rows' partial sums.
    #[target_feature(enable = "avx512f")]
    fn totals(rows: [__m512i; 4]) -> [i32; 4] {
        let pair =
            |a, b| _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let (a, b) = (pair(rows[0], rows[1]), pair(rows[2], rows[3]));
        let four = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
        let half = _mm256_add_epi32(
            _mm512_castsi512_si256(four),
            _mm512_extracti64x4_epi64::<1>(four),
        );
        let sums = _mm_add_epi32(
            _mm256_castsi256_si128(half),
            _mm256_extracti128_si256::<1>(half),
        );
        let mut out = [0; 4];
        // SAFETY: `out` holds 16 bytes; the store needs no alignment.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), sums) };
        out
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub fn scores(rows: &[u8], query: &[i8], offset: i32, out: &mut [i32]) {
        let bytes: Vec<u8> = query.iter().map(|&v| v as u8).collect();
        let half = |blocks: &[u8], first: usize| {
            let of_block = |q: &[u8]| q[first..first + BLOCK_BYTES].to_vec();
            load(&blocks.chunks(BLOCK).flat_map(of_block).collect::<Vec<_>>())
        };
        let query: Vec<_> = bytes
            .chunks(2 * BLOCK)
            .map(|blocks| (half(blocks, 0), half(blocks, BLOCK_BYTES)))
            .collect();
        let stride = bytes.len() / 2;
        for (scores, rows) in out.chunks_mut(4).zip(rows.chunks(4 * stride)) {
            let mut sums = [_mm512_setzero_si512(); 4];
            for (sum, row) in sums.iter_mut().zip(rows.chunks_exact(stride)) {
                *sum = row_sums(row, &query);
            }
            for (score, total) in scores.iter_mut().zip(totals(sums)) {
                *score = total - offset;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full-period generator, so that the tests need no dependency.
    fn components(n: usize, seed: u32) -> Vec<i8> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 28) as i8 - 8
        };
        (0..n).map(|_| next()).collect()
    }

    fn expected(rows: &[i8], query: &[i8]) -> Vec<i32> {
        let dot = |row: &[i8]| {
            row.iter()
                .zip(query)
                .map(|(&a, &b)| i32::from(a) * i32::from(b))
                .sum()
        };
        rows.chunks_exact(query.len()).map(dot).collect()
    }

    /// All kernels that this processor can run.
    fn kernels() -> Vec<Kernel> {
        let mut actual: Vec<Kernel> = vec![portable, kernel()];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            actual
                .push(|rows, query, offset, out| unsafe { avx2::scores(rows, query, offset, out) });
        }
        actual
    }

    #[test]
    fn all_kernels_agree_with_the_definition() {
        for dimension in [1, 2, 31, 63, 64, 65, 256, 384, 1000, MAX_DIMENSION] {
            if cfg!(miri) && dimension > 65 {
                break; // what is interpreted takes long
            }
            for count in [0, 1, 3, 4, 5, 9] {
                let rows = components(count * dimension, 1);
                let query = components(dimension, 2);
                let index = PackedIndex::new(&rows, dimension).unwrap();
                assert_eq!((index.rows(), index.dimension()), (count, dimension));
                assert_eq!(index.scores(&query).unwrap(), expected(&rows, &query));

                let mut padded = query.clone();
                padded.resize(dimension.div_ceil(BLOCK) * BLOCK, 0);
                let offset = 8 * query.iter().map(|&v| i32::from(v)).sum::<i32>();
                for kernel in kernels() {
                    let mut scores = vec![0; count];
                    kernel(&index.packed, &padded, offset, &mut scores);
                    assert_eq!(scores, expected(&rows, &query));
                }
            }
        }
    }

    #[test]
    fn rows_are_kept_in_order_over_many_tasks() {
        let count = 3 * ROWS_PER_TASK + 7;
        let (rows, query) = (components(count * 5, 3), components(5, 4));
        let index = PackedIndex::new(&rows, 5).unwrap();
        assert_eq!(index.scores(&query).unwrap(), expected(&rows, &query));
    }

    #[test]
    fn extreme_components_do_not_overflow() {
        for (a, b) in [(-8, -8), (-8, 7), (7, -8), (7, 7)] {
            let rows = vec![a; 2 * MAX_DIMENSION];
            let query = vec![b; MAX_DIMENSION];
            let index = PackedIndex::new(&rows, MAX_DIMENSION).unwrap();
            assert_eq!(index.scores(&query).unwrap(), expected(&rows, &query));

            let offset = i32::from(b) * 8 * MAX_DIMENSION as i32;
            for kernel in kernels() {
                let mut scores = vec![0; 2];
                kernel(&index.packed, &query, offset, &mut scores);
                assert_eq!(scores, expected(&rows, &query));
            }
        }
    }

    #[test]
    fn malformed_input_is_refused() {
        assert!(PackedIndex::new(&[0; 5], 2).is_err());
        assert!(PackedIndex::new(&[0; 5], 0).is_err());
        assert!(PackedIndex::new(&[], MAX_DIMENSION + 1).is_err());
        assert!(PackedIndex::new(&[0, 8], 2).is_err());
        assert!(PackedIndex::new(&[0, -9], 2).is_err());
        let index = PackedIndex::new(&[1, 2], 2).unwrap();
        assert!(index.scores(&[1]).is_err());
        assert!(index.scores(&[1, 8]).is_err());
    }
}
