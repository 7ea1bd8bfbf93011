use super::*;
use crate::drawn::tests::{
    drawn_tests, draws, forged, forged_columns, proved, put_distance, seed, statement as of_slot,
    t_of, Tested,
};
use crate::index::MAX_CAPACITY;
use crate::malicious::caught_by;

drawn_tests!("noise", Noise);

/// The columns of each draw.
const BYTE: usize = 0;
const CHOICE: usize = 1;
const THRESHOLD: usize = 2;
const VALUE: usize = 3;

pub(crate) const MAXIMUM_GAINS: [u32; 6] = [1, 8, 64, 512, 4096, 32_768];

impl Tested for Noise {
    fn several() -> Self {
        Self { gains: vec![1, 8] }
    }

    fn one() -> Self {
        Self { gains: vec![1] }
    }

    fn changes() -> Vec<fn(&mut Self)> {
        vec![|d| d.gains[1] = 7, |d| d.gains.push(1)]
    }
}

fn statement(capacity: usize, gains: &[u32]) -> NoiseStatement {
    let gains = gains.to_vec();
    of_slot(capacity, Noise { gains })
}

/// The most that a proof may be about.
pub(crate) fn largest() {
    simulate(MAX_CAPACITY, &MAXIMUM_GAINS);
}

pub(crate) fn simulate(capacity: usize, gains: &[u32]) {
    let gains = gains.to_vec();
    crate::drawn::tests::simulate(capacity, Noise { gains });
}

#[test]
fn noise_proofs_verify_and_have_the_relation_s_noise() {
    for (capacity, gains) in [(1, &[1][..]), (30, &[1, 8, 64]), (300, &[1, 8])] {
        let statement = statement(capacity, gains);
        let noise_proof = proved(&statement, false);
        let noise = crate::drawn::verify(&statement, &noise_proof.proof).unwrap();
        assert_eq!(noise[0].rows, noise_proof.columns[0].rows);
        let kappa = noise_key(&seed(), statement.slots[0].beacon, statement.slots[0].slot);
        let expected = ragaudit_field_simd::noise::draw(&kappa, capacity, gains).unwrap();
        let opening = noise_proof.columns[0].opening.as_ref().unwrap();
        let (drawn, rest) = opening.values.split_at(capacity);
        assert!(drawn
            .iter()
            .zip(&expected)
            .all(|(a, b)| *a == i64::from(*b)));
        assert!(rest.iter().all(|v| *v == 0));
    }
}

#[test]
fn forged_draws_are_refused() {
    let base = statement(40, &[1, 8]);
    let n = 3;
    forged_columns(&base);
    // A value that is not the bin's.
    caught_by("constraint: lookup layer", || {
        forged(&base, |d| {
            d.drawn[VALUE][n] += 1;
            d.add_up(&base);
        })
    });
    // The other choice, with the table's own row and the distance of the true one.
    let other_choice = |d: &mut Draws| {
        d.drawn[CHOICE][n] ^= 1;
        let (threshold, value) = alias_row(d.drawn[BYTE][n] as usize, d.drawn[CHOICE][n] as usize);
        d.drawn[VALUE][n] = value;
        d.add_up(&base);
        threshold
    };
    caught_by("constraint: choice", || {
        forged(&base, |d| {
            other_choice(d);
        })
    });
    // The same with the distance wrapped around: a negative number in two limbs.
    caught_by("constraint: lookup layer", || {
        forged(&base, |d| {
            let threshold = other_choice(d);
            let t = t_of(d, n);
            let distance = match d.drawn[CHOICE][n] {
                1 => threshold - 1 - t,
                _ => t - threshold,
            };
            put_distance(d, n, distance);
        })
    });
    // Another draw in the word, right in itself.
    caught_by("constraint: hash outputs", || {
        forged(&base, |d| {
            let byte = d.drawn[BYTE][n] ^ 1;
            let t = t_of(d, n);
            let (threshold, _) = alias_row(byte as usize, 0);
            let mut other = Draws::empty(&base.distribution);
            let row = table_rows(&[byte as u8])[0];
            push(&mut other, byte as u8, i64::from(t < threshold), t, row);
            for (column, other) in d.drawn.iter_mut().zip(&other.drawn) {
                column[n] = other[0];
            }
            for (column, other) in d.limbs.iter_mut().zip(&other.limbs) {
                column[n] = other[0];
            }
            d.add_up(&base);
        })
    });
}

/// 256 moved from t to the byte leaves the word as it was; with choice 0 where the row of choice 1 is meant, the
/// primary value would be had above the threshold too, if only byte + 256 choice were looked up.
#[test]
fn a_byte_above_255_is_refused() {
    let base = statement(40, &[1]);
    let honest = draws(&base);
    let movable = |n: &usize| {
        honest.drawn[CHOICE][*n] == 0 && honest.limbs[0][*n] > 0 && honest.limbs[2][*n] > 0
    };
    let n = (0..40).find(movable).unwrap();
    assert!(honest.drawn[THRESHOLD][n] > 0);
    let moved = |d: &mut Draws| {
        let (_, value) = alias_row(d.drawn[BYTE][n] as usize, 1);
        d.drawn[BYTE][n] += 256;
        d.limbs[0][n] -= 1;
        d.limbs[2][n] -= 1;
        d.drawn[VALUE][n] = value;
        d.add_up(&base);
    };
    assert!(!forged(&base, moved));
}
