//! Eight later rows with sixteen earlier ones at a time, where the processor has AVX-512 VNNI.
//!
//! A lane has an earlier row, so that no product has to be summed across lanes, and a comparison of all sixteen decides
//! which pairs are looked at again in integers. It is in floats and lets through a little more than the threshold does.
use std::arch::x86_64::*;

use super::{Threshold, NIBBLE_OFFSET};

pub const LEFT: usize = 8;
pub const RIGHT: usize = 16;
/// Components of one lane in one step.
const STEP: usize = 4;
/// Products are at most 2^18 and exact as floats; scales and their product are off by less than 2^-22 of themselves.
const SLACK: f64 = 1.0 / 65536.0;

/// The values of all rows that the kernel reads.
pub struct Wide {
    stride: usize,
    /// Rows by sixteen, raised by 8 to unsigned bytes: of group g, components 4k.. of its row r are at
    /// 16 stride g + 64 k + 4 r.
    groups: Vec<u8>,
    /// |b| of each row b as an earlier one, and a little less than p/q |a| of each row a as a later one.
    earlier: Vec<f32>,
    later: Vec<f32>,
    /// What raising the other row by 8 adds to products with each row.
    offsets: Vec<i32>,
}

/// The pairs of one call: for each later row the earlier ones that may be near, a bit each, and all products.
pub struct Found {
    pub masks: [u16; LEFT],
    pub products: [[i32; RIGHT]; LEFT],
}

impl Wide {
    /// None where the processor lacks what it takes.
    ///
    /// `components` has rows of `stride`, a multiple of four, with zeros behind the last one up to a multiple of `RIGHT`
    /// rows and `LEFT` more; `norms` and `sums` are those of the rows that there are.
    pub fn new(
        components: &[i8],
        stride: usize,
        norms: &[u32],
        sums: &[i32],
        threshold: Threshold,
    ) -> Option<Self> {
        if !(crate::int4::has_vnni() && stride.is_multiple_of(STEP)) {
            return None;
        }
        let groups = norms.len().div_ceil(RIGHT);
        let mut packed = vec![0; groups * RIGHT * stride];
        for (group, rows) in packed
            .chunks_exact_mut(RIGHT * stride)
            .zip(components.chunks_exact(RIGHT * stride))
        {
            for (r, row) in rows.chunks_exact(stride).enumerate() {
                for (k, four) in row.chunks_exact(STEP).enumerate() {
                    let at = (k * RIGHT + r) * STEP;
                    for (byte, v) in group[at..at + STEP].iter_mut().zip(four) {
                        *byte = (v + NIBBLE_OFFSET) as u8;
                    }
                }
            }
        }
        let cosine = (threshold.p_squared as f64 / threshold.q_squared as f64).sqrt();
        let scaled = |by: f64, behind: usize| {
            let of_rows = norms.iter().map(|n| (f64::from(*n).sqrt() * by) as f32);
            of_rows.chain(vec![0.0; behind]).collect()
        };
        let behind = groups * RIGHT - norms.len();
        let offsets = sums.iter().map(|s| i32::from(NIBBLE_OFFSET) * s);
        Some(Self {
            stride,
            groups: packed,
            earlier: scaled(1.0, behind),
            later: scaled(cosine * (1.0 - SLACK), LEFT),
            offsets: offsets.chain([0; LEFT]).collect(),
        })
    }

    /// Rows `later`.. of `components` with group `group`.
    pub fn near(&self, components: &[i8], later: usize, group: usize) -> Found {
        let (width, stride) = (RIGHT * self.stride, self.stride);
        // SAFETY: `new` found the instructions.
        unsafe {
            near(
                &components[later * stride..(later + LEFT) * stride],
                &self.groups[group * width..(group + 1) * width],
                &self.offsets[later..later + LEFT],
                &self.later[later..later + LEFT],
                &self.earlier[group * RIGHT..(group + 1) * RIGHT],
            )
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn near(left: &[i8], right: &[u8], offsets: &[i32], later: &[f32], earlier: &[f32]) -> Found {
    let stride = left.len() / LEFT;
    assert!(right.len() == RIGHT * stride && earlier.len() == RIGHT);
    let mut sums = [_mm512_setzero_si512(); LEFT];
    for k in 0..stride / STEP {
        // SAFETY: step k of the group has 64 bytes, and each later row four; loads need no alignment.
        let right = unsafe { _mm512_loadu_si512(right.as_ptr().add(k * RIGHT * STEP).cast()) };
        for (l, sum) in sums.iter_mut().enumerate() {
            let at = l * stride + k * STEP;
            // SAFETY: as above.
            let four = unsafe { left.as_ptr().add(at).cast::<i32>().read_unaligned() };
            *sum = _mm512_dpbusd_epi32(*sum, right, _mm512_set1_epi32(four));
        }
    }
    // SAFETY: there are sixteen, which was asserted.
    let earlier = unsafe { _mm512_loadu_ps(earlier.as_ptr()) };
    let mut found = Found {
        masks: [0; LEFT],
        products: [[0; RIGHT]; LEFT],
    };
    for (l, sum) in sums.into_iter().enumerate() {
        let product = _mm512_sub_epi32(sum, _mm512_set1_epi32(offsets[l]));
        let minimum = _mm512_mul_ps(_mm512_set1_ps(later[l]), earlier);
        found.masks[l] = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(_mm512_cvtepi32_ps(product), minimum);
        // SAFETY: the row holds 64 bytes; the store needs no alignment.
        unsafe { _mm512_storeu_si512(found.products[l].as_mut_ptr().cast(), product) };
    }
    found
}
