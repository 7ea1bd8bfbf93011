//! Poseidon over BN254 with x^5, t = 17, 8 full and 68 partial rounds, circomlib's `Poseidon(16)`, round by round.
//!
//! Grassi, Khovratovich, Rechberger, Roy and Schofnegger, "Poseidon: A New Hash Function for Zero-Knowledge
//! Proof Systems" (USENIX Security 2021). Constants and matrix come from the paper's Grain LFSR, at first use.
use std::array::from_fn;
use std::sync::OnceLock;

use ark_ff::{AdditiveGroup, BigInt, Field, PrimeField};

use crate::field::Fr;
use crate::Error;

/// Words of the state.
pub const WIDTH: usize = 17;
/// Inputs of one [`hash`].
pub const RATE: usize = WIDTH - 1;
/// Elements that one step of [`hash_list`] absorbs beside the running hash.
pub const LIST_RUN: usize = RATE - 1;
/// Domain tag of a list's start.
pub const TAG_LIST: u64 = 10;

/// Rounds with an S-box on every word, half of them first, half last.
pub const FULL_ROUNDS: usize = 8;
pub const HALF: usize = FULL_ROUNDS / 2;
/// Rounds with an S-box on word 0.
pub const PARTIAL_ROUNDS: usize = 68;
/// S-boxes of one permutation.
pub const SBOXES: usize = FULL_ROUNDS * WIDTH + PARTIAL_ROUNDS;

/// A square matrix, by rows.
pub type Matrix<const N: usize> = [[Fr; N]; N];
/// A state, as it goes in and comes out.
pub type State = [Fr; WIDTH];

/// The Grain LFSR of the paper's appendix E.
struct Grain(u128);

impl Grain {
    const FIELD_BITS: usize = 254;
    const WARM_UP: usize = 160;

    fn new(width: usize, partial_rounds: usize) -> Self {
        let descriptor: [(u128, usize); 7] = [
            (1, 2), // a prime field
            (0, 4), // S-box x^alpha
            (Self::FIELD_BITS as u128, 12),
            (width as u128, 12),
            (FULL_ROUNDS as u128, 10),
            (partial_rounds as u128, 10),
            ((1 << 30) - 1, 30),
        ];
        // Bit i of the register is b_i; each entry of the descriptor comes most significant bit first.
        let (mut register, mut at) = (0, 0);
        for (value, size) in descriptor {
            for bit in (0..size).rev() {
                register |= (value >> bit & 1) << at;
                at += 1;
            }
        }
        let mut grain = Self(register);
        for _ in 0..Self::WARM_UP {
            grain.step();
        }
        grain
    }

    fn step(&mut self) -> bool {
        let s = self.0;
        let bit = (s ^ s >> 13 ^ s >> 23 ^ s >> 38 ^ s >> 51 ^ s >> 62) & 1;
        self.0 = s >> 1 | bit << 79;
        bit == 1
    }

    /// Of each pair of raw bits the second is kept if the first is 1.
    fn bit(&mut self) -> u64 {
        loop {
            let (first, second) = (self.step(), self.step());
            if first {
                return u64::from(second);
            }
        }
    }

    /// A uniform 254-bit integer.
    fn integer(&mut self) -> BigInt<4> {
        let mut limbs = [0; 4];
        for i in (0..Self::FIELD_BITS).rev() {
            limbs[i / 64] |= self.bit() << (i % 64);
        }
        BigInt::new(limbs)
    }

    /// A uniform field element, by rejection.
    fn element(&mut self) -> Fr {
        loop {
            if let Some(x) = Fr::from_bigint(self.integer()) {
                return x;
            }
        }
    }

    /// A 254-bit integer modulo r (below 2r): what the matrix is made of.
    fn residue(&mut self) -> Fr {
        let [a, b, c, d] = self.integer().0;
        let word = Fr::from(u64::MAX) + Fr::ONE;
        [d, c, b, a]
            .into_iter()
            .fold(Fr::ZERO, |acc, limb| acc * word + Fr::from(limb))
    }
}

/// Round constants and the Cauchy matrix 1 / (x_i + y_j), from one stream.
pub fn generate<const T: usize>(partial_rounds: usize) -> (Vec<[Fr; T]>, Matrix<T>) {
    let mut grain = Grain::new(T, partial_rounds);
    let constants = (0..FULL_ROUNDS + partial_rounds)
        .map(|_| from_fn(|_| grain.element()))
        .collect();
    loop {
        let xs: [Fr; T] = from_fn(|_| grain.residue());
        let ys: [Fr; T] = from_fn(|_| grain.residue());
        let mut points = [xs, ys].concat();
        points.sort();
        points.dedup();
        let sums = xs.map(|x| ys.map(|y| x + y));
        if points.len() == 2 * T && sums.iter().flatten().all(|s| *s != Fr::ZERO) {
            let inverse = |s: Fr| s.inverse().expect("not zero");
            return (constants, sums.map(|row| row.map(inverse)));
        }
    }
}

pub fn dot<const N: usize>(a: &[Fr; N], b: &[Fr; N]) -> Fr {
    a.iter().zip(b).map(|(x, y)| *x * y).sum()
}

pub fn times<const N: usize>(m: &Matrix<N>, x: &[Fr; N]) -> [Fr; N] {
    from_fn(|i| dot(&m[i], x))
}

/// The constants of every round and the matrix, as the paper's section 2.3 has them.
pub fn round_parameters() -> &'static (Vec<[Fr; WIDTH]>, Matrix<WIDTH>) {
    static GENERATED: OnceLock<(Vec<[Fr; WIDTH]>, Matrix<WIDTH>)> = OnceLock::new();
    GENERATED.get_or_init(|| generate(PARTIAL_ROUNDS))
}

/// The permutation of T words by the rounds as the paper's section 2.3 has them.
pub fn plain<const T: usize>(state: &[Fr; T], partial_rounds: usize) -> [Fr; T] {
    let (constants, matrix) = generate(partial_rounds);
    permute_by(state, &constants, &matrix)
}

fn permute_by<const T: usize>(
    state: &[Fr; T],
    constants: &[[Fr; T]],
    matrix: &Matrix<T>,
) -> [Fr; T] {
    let mut s = *state;
    let partial = HALF..constants.len() - HALF;
    for (round, row) in constants.iter().enumerate() {
        s.iter_mut().zip(row).for_each(|(x, c)| *x += c);
        let boxes = if partial.contains(&round) { 1 } else { T };
        s[..boxes]
            .iter_mut()
            .for_each(|x| *x = x.square().square() * *x);
        s = times(matrix, &s);
    }
    s
}

/// The permutation of 17 field elements.
pub fn permute(state: &State) -> State {
    let (constants, matrix) = round_parameters();
    permute_by(state, constants, matrix)
}

/// H: at most 16 elements, padded with zeros, to one.
pub fn hash(inputs: &[Fr]) -> Result<Fr, Error> {
    check_inputs(inputs)?;
    let mut state = [Fr::ZERO; WIDTH];
    state[1..=inputs.len()].copy_from_slice(inputs);
    Ok(permute(&state)[0])
}

/// Refuses as many elements as [`hash`] does not take.
pub fn check_inputs(inputs: &[Fr]) -> Result<(), Error> {
    if inputs.is_empty() || inputs.len() > RATE {
        return Err(Error::invalid(
            "inputs",
            format!("1 to {RATE} elements"),
            inputs.len().to_string(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// circomlibjs 0.1.7: poseidon([1, 2, .., 16]) and poseidon of 16 zeros.
    #[test]
    fn known_answers_of_circomlib() {
        let inputs: Vec<Fr> = (1..=16u64).map(Fr::from).collect();
        let hex = |x: Fr| -> String {
            crate::field::to_bytes(&x)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect()
        };
        assert_eq!(
            hex(hash(&inputs).unwrap()),
            "16159a551cbb66108281a48099fff949ae08afd7f1f2ec06de2ffb96b919b765"
        );
        assert_eq!(
            hex(hash(&[Fr::ZERO]).unwrap()),
            "0f63cd0c9fbe679a562469831d8e810c9d33cc2409695b8e6a893e627ea952d1"
        );
        assert!(hash(&[]).is_err());
        assert!(hash(&[Fr::ONE; RATE + 1]).is_err());
    }
}
