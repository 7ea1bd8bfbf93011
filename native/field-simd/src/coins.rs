//! Coins of 40 bits from a slot's stream: docs/relation.md, "Coins".
use rayon::prelude::*;
use zeroize::Zeroize;

use crate::field::Fr;
use crate::noise::{draws_of, words, DRAWS_PER_BLOCK, DRAWS_PER_WORD, MAX_POSITIONS, TASK};
use crate::Error;

pub use ragaudit_relation::COIN_BITS;

/// 1 for each of the first draws under a key that is below the bound, by the same steps whatever the key and the bound.
pub fn coins(kappa: &Fr, count: usize, bound: u64) -> Result<Vec<u8>, Error> {
    if count > MAX_POSITIONS {
        let expected = format!("at most {MAX_POSITIONS}");
        return Err(Error::invalid("positions", expected, count.to_string()));
    }
    if !(1..1 << COIN_BITS).contains(&bound) {
        let expected = format!("1..{}", (1u64 << COIN_BITS) - 1);
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
            // Both are far below 2^63: the top bit of the difference says which is larger.
            *out = (draw.wrapping_sub(bound) >> 63) as u8;
        }
    }
    all.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_fall_as_often_as_the_bound_says() {
        let kappa = Fr::from(5u8);
        for (bound, least, most) in [(1 << 39, 19_600, 20_400), (1 << 36, 2_300, 2_700)] {
            let heads = coins(&kappa, 40_000, bound).unwrap();
            let count = heads.iter().map(|b| usize::from(*b)).sum::<usize>();
            assert!((least..most).contains(&count), "{count}");
        }
        let all = coins(&kappa, 1000, (1 << COIN_BITS) - 1).unwrap();
        assert!(all.iter().all(|b| *b == 1));
        assert!(coins(&kappa, 1000, 1).unwrap().iter().all(|b| *b == 0));
    }

    #[test]
    fn coins_do_not_depend_on_how_many_are_asked_for() {
        let kappa = Fr::from(7u8);
        let long = coins(&kappa, 5000, 1 << 39).unwrap();
        for count in [0, 1, 79, 80, 81, 2560, 2561] {
            assert_eq!(coins(&kappa, count, 1 << 39).unwrap(), long[..count]);
        }
    }

    #[test]
    fn bounds_that_are_no_probability_are_refused() {
        for bound in [0, 1 << COIN_BITS, u64::MAX] {
            assert!(coins(&Fr::from(1u8), 1, bound).is_err());
        }
        assert!(coins(&Fr::from(1u8), MAX_POSITIONS + 1, 1).is_err());
    }
}
