//! The key of a slot, and the words of its stream as their prover has them: `docs/scan/noise.md`.
use ragaudit_field_simd::noise::words as stream_words;
use ragaudit_field_simd::poseidon::hash;
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use ragaudit_scan_protocol::words::LOW_BITS;
pub(crate) use ragaudit_scan_protocol::words::*;

use crate::error::{Error, Result};
use crate::group::Fr;
use crate::prover::columns::count;
use crate::ranges::LIMB_BITS;

/// Blocks of one task.
const TASK: usize = 64;

/// The seed's two halves.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Seed(pub [Fr; 2]);

impl Seed {
    /// The bytes for a prover's nonces.
    pub(crate) fn witness(&self) -> Zeroizing<Vec<u8>> {
        let halves = self.0.each_ref().map(crate::group::encode_scalar);
        Zeroizing::new(halves.concat())
    }

    /// The halves and the key of a slot, as a run sends them.
    pub(crate) fn keys(&self, beacon: Fr, slot: Fr) -> [Fr; 3] {
        [self.0[0], self.0[1], noise_key(self, beacon, slot)]
    }
}

/// The published commitment to a slot's seed, which precedes its query: H(1, s0, s1).
pub fn seed_commitment(seed: &Seed) -> Fr {
    hash(&[Fr::from(TAG_SEED), seed.0[0], seed.0[1]]).expect("three inputs fit")
}

/// The key of a slot: H(2, s0, s1, beacon, slot).
pub fn noise_key(seed: &Seed, beacon: Fr, slot: Fr) -> Fr {
    hash(&[Fr::from(TAG_KEY), seed.0[0], seed.0[1], beacon, slot]).expect("five inputs fit")
}

/// The words 1..16 of the blocks, by the relation's own permutation.
pub(crate) fn words(kappa: Fr, blocks: usize) -> Zeroizing<Vec<[u64; 4]>> {
    let mut out = Zeroizing::new(vec![[0; 4]; blocks * WORDS_PER_BLOCK]);
    out.par_chunks_mut(TASK * WORDS_PER_BLOCK)
        .enumerate()
        .for_each(|(task, out)| stream_words(&kappa, task * TASK, out));
    out
}

pub(crate) fn high(word: &[u64; 4]) -> u64 {
    word[3] >> (LOW_BITS - 192)
}

pub(crate) fn limb(x: u128, k: usize) -> i64 {
    (x >> (LIMB_BITS * k) & 0xffff) as i64
}

/// Limbs of t, then of the distance from the threshold.
pub(crate) type Limbs = [Vec<i64>; 4];

pub(crate) fn push_limbs(limbs: &mut Limbs, t: i64, distance: u128) {
    let of = [(t as u128, 0), (t as u128, 1), (distance, 0), (distance, 1)];
    for (column, (source, k)) in limbs.iter_mut().zip(of) {
        column.push(limb(source, k));
    }
}

/// Takes the limbs, with how often each of the range table's rows is looked up.
pub(crate) fn stream_columns(limbs: &mut Limbs, high: &mut Upper) -> StreamColumns<Vec<i64>> {
    let mut range = vec![0; 1 << LIMB_BITS];
    let all = limbs.iter().chain(&*high).flatten();
    all.for_each(|v| count(&mut range, *v));
    let columns = limbs.iter_mut().chain(high).map(std::mem::take);
    StreamColumns::named(&mut columns.chain([range]))
}

/// Limbs of each word's high part, then of the difference between the largest allowed last draw and high part and the actual
/// ones.
pub(crate) type Upper = [Vec<i64>; HIGH_LIMBS + REST_LIMBS];

pub(crate) fn upper_parts(words: &[[u64; 4]]) -> Result<Upper> {
    let mut parts = Upper::default();
    parts.iter_mut().for_each(|c| c.reserve_exact(words.len()));
    let maximum = highest();
    for word in words {
        let rest = maximum.checked_sub(upper(word)).ok_or_else(|| {
            Error::Unsatisfied(
                "the upper 94 bits of a noise word are not below the modulus's".to_owned(),
            )
        })?;
        push_upper(&mut parts, high(word), rest);
    }
    Ok(parts)
}

pub(crate) fn push_upper(parts: &mut Upper, high: u64, rest: u128) {
    let (of_high, of_rest) = parts.split_at_mut(HIGH_LIMBS);
    for (columns, source) in [(of_high, u128::from(high)), (of_rest, rest)] {
        (0..)
            .zip(columns)
            .for_each(|(k, column)| column.push(limb(source, k)));
    }
}
