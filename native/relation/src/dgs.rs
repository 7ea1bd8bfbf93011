//! DGS-1, the committed-seed discrete Gaussian: its table, and what gains a policy may have.
//!
//! Sigma 16 on -127..127, rounded to multiples of 2^-40 and drawn by the alias method (Walker 1977; Vose 1991)
//! over magnitudes.
use std::sync::OnceLock;

use ark_ff::AdditiveGroup;
use num_bigint::BigUint;

use crate::field::Fr;
use crate::poseidon::{State, WIDTH};
use crate::Error;

/// Bins of the alias table, one for each magnitude 0..127.
pub const BINS: usize = 128;
/// Largest number of noise components.
pub const MAX_GAINS: usize = 6;
/// Largest ratio of one gain to the one before.
pub const MAX_GAIN_RATIO: u32 = 8;
const BASE_VARIANCE: u32 = 16 * 16;
const MASS_BITS: u64 = 40;
/// Domain tag of a noise block.
pub const TAG_NOISE_BLOCK: u64 = 9;
/// Bin j has primary value j, alias value `aliases[j]` and threshold `thresholds[j]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasTable {
    pub thresholds: [u32; BINS],
    pub aliases: [u8; BINS],
}

/// How many of 2^39 equal parts each magnitude holds, so that P(+-j) = mass / 2^40 for j > 0: 2^40 times the
/// discrete Gaussian over all integers, rounded to nearest, at least 1, the residue on 0.
fn masses() -> [u64; BINS] {
    const BITS: u64 = 512;
    let one = BigUint::from(1u8) << BITS;
    // exp(-1/512) by its Taylor series, even and odd terms apart.
    let (mut positive, mut negative, mut term, mut n) =
        (BigUint::ZERO, BigUint::ZERO, one.clone(), 0u32);
    while term != BigUint::ZERO {
        if n % 2 == 0 {
            positive += &term;
        } else {
            negative += &term;
        }
        n += 1;
        term /= 2 * BASE_VARIANCE * n;
    }
    let base = positive - negative;
    // exp(-j^2/512) by (j+1)^2 = j^2 + (2j + 1), until the fixed point underflows.
    let step = (&base * &base) >> BITS;
    let (mut weights, mut odd) = (vec![one], base);
    while weights[weights.len() - 1] != BigUint::ZERO {
        weights.push((&weights[weights.len() - 1] * &odd) >> BITS);
        odd = (odd * &step) >> BITS;
    }
    let total = weights.iter().sum::<BigUint>() * 2u8 - &weights[0];
    let mut masses = [0; BINS];
    for (mass, weight) in masses.iter_mut().zip(&weights).skip(1) {
        let rounded = ((weight << (MASS_BITS + 1)) + &total) / (&total * 2u8);
        *mass = u64::try_from(rounded)
            .expect("a probability below 1")
            .max(1);
    }
    masses[0] = (1 << (MASS_BITS - 1)) - masses.iter().sum::<u64>();
    masses
}

/// The table: unique by Vose's method with both stacks filled in ascending j, last in first out.
pub fn alias_table() -> &'static AliasTable {
    static TABLE: OnceLock<AliasTable> = OnceLock::new();
    TABLE.get_or_init(|| {
        const CAPACITY: u64 = 1 << 32;
        let mut left = masses();
        let mut thresholds = [0; BINS];
        let mut aliases: [u8; BINS] = std::array::from_fn(|j| j as u8);
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..BINS).partition(|&j| left[j] < CAPACITY);
        while let Some(short) = small.pop() {
            let long = large.pop().expect("masses sum to the capacity of all bins");
            thresholds[short] = left[short] as u32;
            aliases[short] = long as u8;
            left[long] -= CAPACITY - left[short];
            if left[long] < CAPACITY {
                small.push(long);
            } else {
                large.push(long);
            }
        }
        // What remains is exactly full: threshold 0 and itself as alias, as initialised.
        AliasTable {
            thresholds,
            aliases,
        }
    })
}

/// Refuses gains whose sum of components is not smooth.
pub fn check_gains(gains: &[u32]) -> Result<(), Error> {
    if gains.is_empty() || gains.len() > MAX_GAINS {
        let expected = format!("1 to {MAX_GAINS} gains");
        return Err(Error::invalid("gains", expected, gains.len().to_string()));
    }
    if gains[0] != 1 {
        return Err(Error::invalid("gains[0]", "1", gains[0].to_string()));
    }
    for (c, pair) in gains.windows(2).enumerate() {
        let maximum = MAX_GAIN_RATIO * pair[0];
        if !(1..=maximum).contains(&pair[1]) {
            let field = format!("gains[{}]", c + 1);
            return Err(Error::invalid(
                field,
                format!("1 to {maximum}"),
                pair[1].to_string(),
            ));
        }
    }
    Ok(())
}

/// Block b: words 1..16 of the permutation of (0, kappa, b, 9, 0, ..).
pub fn block_state(kappa: &Fr, block: usize) -> State {
    let mut state = [Fr::ZERO; WIDTH];
    state[1] = *kappa;
    state[2] = Fr::from(block as u64);
    state[3] = Fr::from(TAG_NOISE_BLOCK);
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_draws_exactly_the_masses() {
        let table = alias_table();
        let mut drawn = [0u64; BINS];
        for j in 0..BINS {
            drawn[j] += u64::from(table.thresholds[j]);
            drawn[usize::from(table.aliases[j])] += (1 << 32) - u64::from(table.thresholds[j]);
        }
        let masses = masses();
        assert_eq!(drawn, masses);
        assert_eq!(masses.iter().sum::<u64>(), 1 << 39);
        assert!(masses.iter().all(|&m| m >= 1));
        assert!(2 * masses[0] >= masses[1] && masses[1..].windows(2).all(|p| p[0] >= p[1]));
    }

    #[test]
    fn masses_are_the_gaussian_to_double_precision() {
        let weight = |j: i32| (-f64::from(j * j) / 512.0).exp();
        let total: f64 = (-400..=400).map(weight).sum();
        for (j, &mass) in (0i32..).zip(&masses()).skip(1).take(80) {
            let expected = weight(j) / total * 2f64.powi(40);
            assert!(
                (mass as f64 - expected).abs() <= 0.5 + 1e-3,
                "{j}: {mass} {expected}"
            );
        }
    }

    #[test]
    fn gains_not_well_formed_are_refused() {
        for gains in [&[][..], &[2], &[1, 9], &[1, 0], &[1; 7]] {
            assert!(check_gains(gains).is_err(), "{gains:?}");
        }
        assert!(check_gains(&[1, 8, 64, 512, 4096, 32768]).is_ok());
    }
}
