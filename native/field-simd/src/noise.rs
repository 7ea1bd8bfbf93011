//! DGS-1: the committed-seed discrete Gaussian.
//!
//! Sigma 16 on -127..127, rounded to multiples of 2^-40 and drawn by the alias method (Walker 1977; Vose 1991)
//! over magnitudes. A draw takes the same steps for every key and outcome: it reads every table entry and selects
//! one by a mask, because samplers that reject or look up leak their output through timing.
pub use ragaudit_relation::dgs::{
    alias_table, block_state, check_gains, AliasTable, BINS, MAX_GAINS, MAX_GAIN_RATIO,
    TAG_NOISE_BLOCK,
};
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use crate::dispatch;
use crate::field::Fr;
use crate::lanes::Lanes;
use crate::limbs::{from_field, to_integer};
use crate::poseidon::{permute_all, State, WIDTH};
use crate::Error;

pub use ragaudit_relation::PROBABILITY_BITS;

/// Largest number of positions of one draw.
pub const MAX_POSITIONS: usize = 1 << 26;

const DRAW_BYTES: usize = 5;
const DRAWS_PER_WORD: usize = 5;
const WORDS_PER_BLOCK: usize = WIDTH - 1;
const DRAWS_PER_BLOCK: usize = WORDS_PER_BLOCK * DRAWS_PER_WORD;
/// Blocks of one task.
const TASK: usize = 32;

/// The noise of every position under a slot's key: z_i = sum over c of g_c x_(i m + c) for m gains.
pub fn draw(kappa: &Fr, positions: usize, gains: &[u32]) -> Result<Vec<i32>, Error> {
    check_gains(gains)?;
    check_positions(positions)?;
    let blocks = (positions * gains.len()).div_ceil(DRAWS_PER_BLOCK);
    let mut draws = Zeroizing::new(vec![0i8; blocks * DRAWS_PER_BLOCK]);
    draws
        .par_chunks_mut(TASK * DRAWS_PER_BLOCK)
        .enumerate()
        .for_each(|(task, out)| draw_blocks(kappa, task * TASK, out));
    let combine = |x: &[i8]| {
        gains
            .iter()
            .zip(x)
            .map(|(&g, &x)| g as i32 * i32::from(x))
            .sum()
    };
    let drawn = &draws[..positions * gains.len()];
    Ok(drawn.par_chunks_exact(gains.len()).map(combine).collect())
}

fn check_positions(count: usize) -> Result<(), Error> {
    match count {
        0..=MAX_POSITIONS => Ok(()),
        _ => {
            let expected = format!("at most {MAX_POSITIONS}");
            Err(Error::invalid("positions", expected, count.to_string()))
        }
    }
}

/// Bernoulli bits (docs/relation.md): 1 for each of the first draws of 40 bits under a key that is below the bound. The steps
/// are the same for all keys and bounds.
pub fn bernoulli_bits(kappa: &Fr, count: usize, bound: u64) -> Result<Vec<u8>, Error> {
    check_positions(count)?;
    if !(1..1 << PROBABILITY_BITS).contains(&bound) {
        let expected = format!("1..{}", (1u64 << PROBABILITY_BITS) - 1);
        return Err(Error::invalid("bound", expected, bound.to_string()));
    }
    let blocks = count.div_ceil(DRAWS_PER_BLOCK);
    let mut out = vec![0; blocks * DRAWS_PER_BLOCK];
    out.par_chunks_mut(TASK * DRAWS_PER_BLOCK)
        .enumerate()
        .for_each(|(task, out)| below(kappa, task * TASK, bound, out));
    out.truncate(count);
    Ok(out)
}

fn below(kappa: &Fr, first: usize, bound: u64, out: &mut [u8]) {
    let mut all = vec![[0; 4]; out.len() / DRAWS_PER_WORD];
    words(kappa, first, &mut all);
    for (word, out) in all.iter().zip(out.chunks_exact_mut(DRAWS_PER_WORD)) {
        for ((head, rest), out) in draws_of(word).into_iter().zip(out) {
            let draw = u64::from(rest) << 8 | u64::from(head);
            // Both numbers are far below 2^63, so the top bit of their difference tells which one is larger.
            *out = (draw.wrapping_sub(bound) >> 63) as u8;
        }
    }
    all.zeroize();
}

/// Words 1..16 of as many blocks from `first` on as fit `out`, as canonical integers, with the same steps for all keys.
pub fn words(kappa: &Fr, first: usize, out: &mut [[u64; 4]]) {
    for (task, out) in out.chunks_mut(TASK * WORDS_PER_BLOCK).enumerate() {
        let count = out.len() / WORDS_PER_BLOCK;
        let first = first + task * TASK;
        let mut states: Vec<State> = (first..first + count)
            .map(|b| block_state(kappa, b))
            .collect();
        permute_all(&mut states);
        for (state, out) in states.iter().zip(out.chunks_exact_mut(WORDS_PER_BLOCK)) {
            for (word, out) in state[1..].iter().zip(out) {
                *out = to_integer(&from_field(word));
            }
        }
        states.zeroize();
    }
}

/// Five draws of five bytes from each word of the blocks from `first` on.
fn draw_blocks(kappa: &Fr, first: usize, out: &mut [i8]) {
    let mut words_of_all = vec![[0; 4]; out.len() / DRAWS_PER_WORD];
    words(kappa, first, &mut words_of_all);
    let mut heads = [0u8; DRAWS_PER_BLOCK];
    let mut bits = [0u32; DRAWS_PER_BLOCK];
    let blocks = words_of_all.chunks_exact(WORDS_PER_BLOCK);
    for (words, out) in blocks.zip(out.chunks_exact_mut(DRAWS_PER_BLOCK)) {
        let heads_and_bits = heads
            .chunks_exact_mut(DRAWS_PER_WORD)
            .zip(bits.chunks_exact_mut(DRAWS_PER_WORD));
        for (word, (heads, bits)) in words.iter().zip(heads_and_bits) {
            for ((head, bits), draw) in heads.iter_mut().zip(bits).zip(draws_of(word)) {
                (*head, *bits) = draw;
            }
        }
        dispatch!(l => Lanes::<Fr>::run(
            l,
            #[inline(always)]
            || select(&heads, &bits, out),
        ));
    }
    words_of_all.zeroize();
    heads.zeroize();
    bits.zeroize();
}

/// The first byte of each of a word's draws and the four after it.
pub fn draws_of(word: &[u64; 4]) -> [(u8, u32); DRAWS_PER_WORD] {
    std::array::from_fn(|i| {
        let (limb, shift) = (8 * DRAW_BYTES * i / 64, 8 * DRAW_BYTES * i % 64);
        let pair = u128::from(word[limb + 1]) << 64 | u128::from(word[limb]);
        let draw = (pair >> shift) as u64;
        (draw as u8, (draw >> 8) as u32)
    })
}

/// Threshold and alias of each byte's bin, by a scan of the whole table under masks.
pub fn table_rows(heads: &[u8]) -> Vec<[u32; 2]> {
    let mut out = Vec::with_capacity(heads.len());
    for run in heads.chunks(DRAWS_PER_BLOCK) {
        let mut all = [0u8; DRAWS_PER_BLOCK];
        all[..run.len()].copy_from_slice(run);
        let bins = all.map(|head| u32::from(head & 0x7f));
        let [thresholds, aliases] = dispatch!(l => Lanes::<Fr>::run(
            l,
            #[inline(always)]
            || scan(&bins),
        ));
        let rows = thresholds.into_iter().zip(aliases);
        out.extend(rows.map(|(t, a)| [t, a]).take(run.len()));
    }
    out
}

/// Thresholds and aliases of bins.
#[inline(always)]
fn scan(bins: &[u32; DRAWS_PER_BLOCK]) -> [[u32; DRAWS_PER_BLOCK]; 2] {
    let table = alias_table();
    let mut thresholds = [0u32; DRAWS_PER_BLOCK];
    let mut aliases = [0u32; DRAWS_PER_BLOCK];
    for (bin, (&threshold, &alias)) in (0u32..).zip(table.thresholds.iter().zip(&table.aliases)) {
        let alias = u32::from(alias);
        for i in 0..DRAWS_PER_BLOCK {
            // All bits are ones if bins[i] == bin: both are below 2^31, so only 0 - 1 has the top bit.
            let mask = (((bins[i] ^ bin).wrapping_sub(1) as i32) >> 31) as u32;
            thresholds[i] |= mask & threshold;
            aliases[i] |= mask & alias;
        }
    }
    [thresholds, aliases]
}

/// The value x of each draw.
#[inline(always)]
fn select(heads: &[u8; DRAWS_PER_BLOCK], bits: &[u32; DRAWS_PER_BLOCK], out: &mut [i8]) {
    let bins = heads.map(|head| u32::from(head & 0x7f));
    let [thresholds, aliases] = scan(&bins);
    for i in 0..DRAWS_PER_BLOCK {
        // The top bit of the 64-bit difference is set if t < T.
        let below = (u64::from(bits[i]).wrapping_sub(u64::from(thresholds[i])) >> 63) as u32;
        let primary = below.wrapping_neg();
        let magnitude = (aliases[i] ^ primary & (aliases[i] ^ bins[i])) as i32;
        let sign = -i32::from(heads[i] >> 7);
        out[i] = ((magnitude ^ sign) - sign) as i8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{AdditiveGroup, Field};

    #[test]
    fn selection_agrees_with_direct_lookup() {
        let table = alias_table();
        for bin in 0..BINS {
            let t = table.thresholds[bin];
            for bits in [0, t.wrapping_sub(1), t, t.saturating_add(1), u32::MAX] {
                for sign in [0u8, 0x80] {
                    let mut out = [0i8; DRAWS_PER_BLOCK];
                    let head = bin as u8 | sign;
                    select(&[head; DRAWS_PER_BLOCK], &[bits; DRAWS_PER_BLOCK], &mut out);
                    let magnitude = if bits < t {
                        bin as i8
                    } else {
                        table.aliases[bin] as i8
                    };
                    let expected = if sign == 0 { magnitude } else { -magnitude };
                    assert_eq!(out, [expected; DRAWS_PER_BLOCK]);
                }
            }
        }
    }

    #[test]
    fn rows_of_the_table_are_its_own() {
        let table = alias_table();
        let heads: Vec<u8> = (0..=255).collect();
        for (head, row) in heads.iter().zip(table_rows(&heads)) {
            let bin = usize::from(head & 0x7f);
            assert_eq!(row, [table.thresholds[bin], table.aliases[bin].into()]);
        }
    }

    #[test]
    fn draws_do_not_depend_on_their_number() {
        let kappa = Fr::from(7u8);
        let long = draw(&kappa, 1000, &[1, 8, 64]).unwrap();
        for positions in [0, 1, 26, 27, 80, 999] {
            assert_eq!(
                draw(&kappa, positions, &[1, 8, 64]).unwrap(),
                long[..positions]
            );
        }
        assert_ne!(
            draw(&Fr::ZERO, 100, &[1]).unwrap(),
            draw(&Fr::ONE, 100, &[1]).unwrap()
        );
    }

    #[test]
    fn moments_match_the_policy() {
        let n = 40_000;
        let z = draw(&Fr::from(11u8), n, &[1, 8]).unwrap();
        let mean = z.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
        let variance = z.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 5.0 * 129.0 / (n as f64).sqrt(), "{mean}");
        assert!((variance / (256.0 * 65.0) - 1.0).abs() < 0.05, "{variance}");
    }

    #[test]
    fn gains_not_well_formed_are_refused() {
        assert!(draw(&Fr::ONE, 1, &[2]).is_err());
        assert!(draw(&Fr::ONE, MAX_POSITIONS + 1, &[1]).is_err());
    }

    #[test]
    fn bits_are_1_as_often_as_the_bound_says() {
        let kappa = Fr::from(5u8);
        for (bound, minimum, maximum) in [(1 << 39, 19_600, 20_400), (1 << 36, 2_300, 2_700)] {
            let heads = bernoulli_bits(&kappa, 40_000, bound).unwrap();
            let count = heads.iter().map(|b| usize::from(*b)).sum::<usize>();
            assert!((minimum..maximum).contains(&count), "{count}");
        }
        let all = bernoulli_bits(&kappa, 1000, (1 << PROBABILITY_BITS) - 1).unwrap();
        assert!(all.iter().all(|b| *b == 1));
        assert!(bernoulli_bits(&kappa, 1000, 1)
            .unwrap()
            .iter()
            .all(|b| *b == 0));
    }

    #[test]
    fn bits_do_not_depend_on_their_number() {
        let kappa = Fr::from(7u8);
        let long = bernoulli_bits(&kappa, 5000, 1 << 39).unwrap();
        for count in [0, 1, 79, 80, 81, 2560, 2561] {
            assert_eq!(
                bernoulli_bits(&kappa, count, 1 << 39).unwrap(),
                long[..count]
            );
        }
    }

    #[test]
    fn bounds_that_are_no_probability_are_refused() {
        for bound in [0, 1 << PROBABILITY_BITS, u64::MAX] {
            assert!(bernoulli_bits(&Fr::from(1u8), 1, bound).is_err());
        }
        assert!(bernoulli_bits(&Fr::from(1u8), MAX_POSITIONS + 1, 1).is_err());
    }
}
