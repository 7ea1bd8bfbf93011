//! Products of int16 matrices with sums of 32 bits, on the widest lanes of the processor.
//!
//! A matrix is stored in panels of 16 columns. A panel has, for each pair of rows, the two entries of each of its columns
//! next to each other: the layout of the instructions that multiply pairs of int16 and add both products.

/// Columns of a panel.
pub const PANEL: usize = 16;
const BLOCK: usize = 2 * PANEL;

/// A matrix in panels. Missing rows and columns are zero.
pub struct Panels {
    rows: usize,
    columns: usize,
    entries: Vec<i16>,
}

impl Panels {
    /// The matrix with these entries, of `rows` rows and `columns` columns.
    pub fn new(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> i16) -> Self {
        let pairs = rows.div_ceil(2);
        let mut entries = vec![0; columns.div_ceil(PANEL) * pairs * BLOCK];
        for (number, block) in entries.chunks_exact_mut(BLOCK).enumerate() {
            let (panel, pair) = (number / pairs, number % pairs);
            for (lane, both) in block.chunks_exact_mut(2).enumerate() {
                let column = panel * PANEL + lane;
                if column < columns {
                    for (row, place) in (2 * pair..rows).zip(both) {
                        *place = entry(row, column);
                    }
                }
            }
        }
        Self {
            rows,
            columns,
            entries,
        }
    }

    /// Columns, with those that are added to fill the last panel.
    pub fn stride(&self) -> usize {
        self.columns.div_ceil(PANEL) * PANEL
    }

    /// Each row of `x` times the matrix; a row of results has `stride` places. Every sum of products, and every partial
    /// sum, has to fit in 32 bits, which the caller ensures for all inputs.
    pub fn product(&self, x: &Rows) -> Vec<i32> {
        assert_eq!(x.pairs, self.rows.div_ceil(2));
        let mut out = vec![0; x.count() * self.stride()];
        kernel()(&x.entries, x.pairs, &self.entries, &mut out);
        out
    }
}

/// Rows whose entries are pairs of int16 in one int32, the first one in the low half.
pub struct Rows {
    pairs: usize,
    entries: Vec<i32>,
}

impl Rows {
    /// Rows of `width` entries each.
    pub fn new<'a>(width: usize, rows: impl Iterator<Item = &'a [i16]>) -> Self {
        let pairs = width.div_ceil(2);
        let mut entries = Vec::new();
        for row in rows {
            assert_eq!(row.len(), width);
            entries.extend(row.chunks(2).map(|pair| {
                let high = pair.get(1).copied().unwrap_or(0);
                i32::from(pair[0]) & 0xffff | i32::from(high) << 16
            }));
        }
        Self { pairs, entries }
    }

    fn count(&self) -> usize {
        self.entries.len() / self.pairs
    }
}

/// (rows, pairs in a row, panels, results)
type Kernel = fn(&[i32], usize, &[i16], &mut [i32]);

#[cfg(target_arch = "x86_64")]
fn kernel() -> Kernel {
    if avx512::detected() {
        // SAFETY: the processor has these parts of AVX-512.
        |x, pairs, panels, out| unsafe { avx512::product(x, pairs, panels, out) }
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        |x, pairs, panels, out| unsafe { avx2::product(x, pairs, panels, out) }
    } else {
        portable
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn kernel() -> Kernel {
    portable
}

fn portable(x: &[i32], pairs: usize, panels: &[i16], out: &mut [i32]) {
    let stride = out.len() / (x.len() / pairs);
    for (row, results) in x.chunks_exact(pairs).zip(out.chunks_exact_mut(stride)) {
        let panels = panels.chunks_exact(pairs * BLOCK);
        for (panel, sums) in panels.zip(results.chunks_exact_mut(PANEL)) {
            for (&pair, block) in row.iter().zip(panel.chunks_exact(BLOCK)) {
                let (low, high) = (i32::from(pair as i16), pair >> 16);
                for (sum, both) in sums.iter_mut().zip(block.chunks_exact(2)) {
                    *sum += low * i32::from(both[0]) + high * i32::from(both[1]);
                }
            }
        }
    }
}

/// Computes all results by tiles of up to `T` rows and one panel: `$tile::<T>` gets the rows, the panel and the results
/// with their stride.
#[cfg(target_arch = "x86_64")]
macro_rules! by_tiles {
    ($tile:ident, $x:ident, $pairs:ident, $panels:ident, $out:ident) => {
        let stride = $out.len() / ($x.len() / $pairs);
        for (number, panel) in $panels.chunks_exact($pairs * BLOCK).enumerate() {
            let (mut rows, mut results) = ($x, &mut $out[..]);
            while !rows.is_empty() {
                let taken = match rows.len() / $pairs {
                    8.. => $tile::<8>(rows, $pairs, panel, &mut results[number * PANEL..], stride),
                    4.. => $tile::<4>(rows, $pairs, panel, &mut results[number * PANEL..], stride),
                    2.. => $tile::<2>(rows, $pairs, panel, &mut results[number * PANEL..], stride),
                    _ => $tile::<1>(rows, $pairs, panel, &mut results[number * PANEL..], stride),
                };
                rows = &rows[taken * $pairs..];
                results = &mut results[taken * stride..];
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;
    use std::array;

    use super::{BLOCK, PANEL};

    #[target_feature(enable = "avx2")]
    fn load(entries: &[i16]) -> __m256i {
        assert!(entries.len() >= PANEL);
        // SAFETY: 32 bytes are there; the load needs no alignment.
        unsafe { _mm256_loadu_si256(entries.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    fn store(results: &mut [i32], sums: __m256i) {
        assert!(results.len() >= PANEL / 2);
        // SAFETY: 32 bytes are there; the store needs no alignment.
        unsafe { _mm256_storeu_si256(results.as_mut_ptr().cast(), sums) };
    }

    #[target_feature(enable = "avx2")]
    fn tile<const T: usize>(
        x: &[i32],
        pairs: usize,
        panel: &[i16],
        out: &mut [i32],
        stride: usize,
    ) -> usize {
        let rows: [&[i32]; T] = array::from_fn(|t| &x[t * pairs..(t + 1) * pairs]);
        let mut sums = [[_mm256_setzero_si256(); 2]; T];
        for (i, block) in panel.chunks_exact(BLOCK).enumerate() {
            let (low, high) = (load(block), load(&block[PANEL..]));
            for t in 0..T {
                let pair = _mm256_set1_epi32(rows[t][i]);
                sums[t][0] = _mm256_add_epi32(sums[t][0], _mm256_madd_epi16(pair, low));
                sums[t][1] = _mm256_add_epi32(sums[t][1], _mm256_madd_epi16(pair, high));
            }
        }
        for (t, [low, high]) in sums.into_iter().enumerate() {
            store(&mut out[t * stride..], low);
            store(&mut out[t * stride + PANEL / 2..], high);
        }
        T
    }

    /// Four rows at a time: eight sums, two operands and a pair fit in 16 registers.
    #[target_feature(enable = "avx2")]
    fn half_tile<const T: usize>(
        x: &[i32],
        pairs: usize,
        panel: &[i16],
        out: &mut [i32],
        stride: usize,
    ) -> usize {
        if T == 8 {
            tile::<4>(x, pairs, panel, out, stride)
        } else {
            tile::<T>(x, pairs, panel, out, stride)
        }
    }

    #[target_feature(enable = "avx2")]
    pub fn product(x: &[i32], pairs: usize, panels: &[i16], out: &mut [i32]) {
        by_tiles!(half_tile, x, pairs, panels, out);
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;
    use std::array;

    use super::{BLOCK, PANEL};

    pub fn detected() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni")
    }

    #[target_feature(enable = "avx512f")]
    fn load(entries: &[i16]) -> __m512i {
        assert!(entries.len() >= BLOCK);
        // SAFETY: 64 bytes are there; the load needs no alignment.
        unsafe { _mm512_loadu_si512(entries.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx512f")]
    fn store(results: &mut [i32], sums: __m512i) {
        assert!(results.len() >= PANEL);
        // SAFETY: 64 bytes are there; the store needs no alignment.
        unsafe { _mm512_storeu_si512(results.as_mut_ptr().cast(), sums) };
    }

    #[target_feature(enable = "avx512f,avx512vnni")]
    fn tile<const T: usize>(
        x: &[i32],
        pairs: usize,
        panel: &[i16],
        out: &mut [i32],
        stride: usize,
    ) -> usize {
        let rows: [&[i32]; T] = array::from_fn(|t| &x[t * pairs..(t + 1) * pairs]);
        let mut sums = [_mm512_setzero_si512(); T];
        for (i, block) in panel.chunks_exact(BLOCK).enumerate() {
            let columns = load(block);
            for t in 0..T {
                sums[t] = _mm512_dpwssd_epi32(sums[t], _mm512_set1_epi32(rows[t][i]), columns);
            }
        }
        for (t, sums) in sums.into_iter().enumerate() {
            store(&mut out[t * stride..], sums);
        }
        T
    }

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub fn product(x: &[i32], pairs: usize, panels: &[i16], out: &mut [i32]) {
        by_tiles!(tile, x, pairs, panels, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(n: usize, seed: u32) -> Vec<i16> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 20) as i16 - 2048
        };
        (0..n).map(|_| next()).collect()
    }

    /// All kernels that this processor can run.
    fn kernels() -> Vec<Kernel> {
        #[allow(unused_mut)]
        let mut actual: Vec<Kernel> = vec![portable, kernel()];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            actual.push(|x, pairs, panels, out| unsafe { avx2::product(x, pairs, panels, out) });
        }
        actual
    }

    #[test]
    fn all_kernels_agree_with_the_definition() {
        for (count, width, columns) in [
            (1, 1, 1),
            (3, 16, 16),
            (8, 7, 33),
            (13, 64, 15),
            (23, 384, 48),
        ] {
            let (x, w) = (entries(count * width, 1), entries(width * columns, 2));
            let rows = Rows::new(width, x.chunks(width));
            let panels = Panels::new(width, columns, |i, j| w[i * columns + j]);
            for kernel in kernels() {
                let mut out = vec![0; count * panels.stride()];
                kernel(&rows.entries, rows.pairs, &panels.entries, &mut out);
                for (row, results) in x.chunks(width).zip(out.chunks(panels.stride())) {
                    for (j, &result) in results.iter().enumerate() {
                        let products = (0..width).map(|i| {
                            let entry = if j < columns { w[i * columns + j] } else { 0 };
                            i32::from(row[i]) * i32::from(entry)
                        });
                        assert_eq!(result, products.sum::<i32>());
                    }
                }
            }
        }
    }

    #[test]
    fn extreme_entries_do_not_wrap() {
        // 2^20 / 2^15 rows of the greatest magnitudes reach, and do not pass, the bound that a model is checked for.
        let (x, w) = (vec![-2048; 31], vec![i16::MIN; 31 * 16]);
        let rows = Rows::new(31, x.chunks(31));
        let panels = Panels::new(31, 16, |i, j| w[i * 16 + j]);
        assert_eq!(panels.product(&rows), vec![31 << 26; 16]);
    }
}
