//! Reading one entry of a table of multiples without telling which: what all lanes agree on.
use std::hint::black_box;

use super::widely;

/// Bits of a digit.
pub const DIGIT: usize = 8;
/// Entries of a table.
pub const ENTRIES: usize = 1 << (DIGIT - 1);
/// One coordinate of all entries, word by word, as a field element keeps them.
pub type Words = [[u64; ENTRIES]; 4];

/// Where a digit's entry stands.
#[inline(always)]
fn place(digit: u8) -> u64 {
    // From the half upwards d - 2^(DIGIT - 1), below it 2^(DIGIT - 1) - 1 - d.
    let high = digit >> (DIGIT - 1);
    u64::from((digit ^ high.wrapping_sub(1)) & (ENTRIES - 1) as u8)
}

/// All ones at the place, 0 elsewhere. The compiler must not know that they are no other words, or it turns them into
/// branches.
#[inline(always)]
pub(crate) fn masks<const N: usize>(place: u64) -> [u64; N] {
    let mut masks = [0u64; N];
    for (j, mask) in (0u64..).zip(&mut masks) {
        // Only 0 - 1 has the top bit.
        *mask = ((j ^ place).wrapping_sub(1) >> 63).wrapping_neg();
    }
    black_box(masks)
}

/// The words of a digit's entry, by a scan of all entries.
#[inline(always)]
pub(crate) fn scan(words: &Words, digit: u8) -> [u64; 4] {
    let place = place(digit);
    widely(
        #[inline(always)]
        || {
            let masks = masks::<ENTRIES>(place);
            let mut out = [0u64; 4];
            // A mask serves all words of its entry.
            for (j, mask) in masks.iter().enumerate() {
                for (out, word) in out.iter_mut().zip(words) {
                    *out |= word[j] & mask;
                }
            }
            out
        },
    )
}

/// All ones where the digit stands for a negative number.
#[inline(always)]
pub(crate) fn negative(digit: u8) -> u64 {
    black_box(u64::from(digit >> (DIGIT - 1)).wrapping_sub(1))
}
