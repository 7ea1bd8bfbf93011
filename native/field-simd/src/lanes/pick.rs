//! Reads of one entry of a table of multiples that do not reveal the entry: the common part of all lanes.
use std::hint::black_box;

use super::widely;

/// Bits of a digit.
pub const DIGIT: usize = 8;
/// Entries of a table.
pub const ENTRIES: usize = 1 << (DIGIT - 1);
/// One coordinate of all entries, word by word, in the order of a field element's words.
pub type Words = [[u64; ENTRIES]; 4];

/// The place of a digit's entry.
#[inline(always)]
fn place(digit: u8) -> u64 {
    // From the half upwards d - 2^(DIGIT - 1), below it 2^(DIGIT - 1) - 1 - d.
    let high = digit >> (DIGIT - 1);
    u64::from((digit ^ high.wrapping_sub(1)) & (ENTRIES - 1) as u8)
}

/// A word with all bits one at the place, and 0 elsewhere. `black_box` hides from the compiler that there are only two
/// values, because it would compile them to branches.
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
            // One mask selects all words of its entry.
            for (j, mask) in masks.iter().enumerate() {
                for (out, word) in out.iter_mut().zip(words) {
                    *out |= word[j] & mask;
                }
            }
            out
        },
    )
}

/// A word with all bits one if the digit is for a negative number, else 0.
#[inline(always)]
pub(crate) fn negative(digit: u8) -> u64 {
    black_box(u64::from(digit >> (DIGIT - 1)).wrapping_sub(1))
}
