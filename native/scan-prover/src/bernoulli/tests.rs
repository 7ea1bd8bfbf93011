use super::*;
use crate::drawn::tests::{
    drawn_tests, draws, forged, forged_columns, proved, put_distance, seed, statement as of_slot,
    stream, t_of, Tested,
};
use crate::index::MAX_CAPACITY;
use crate::malicious::caught_by;
use crate::mutations::refused;
use crate::noise::{noise_key, Seed};
use ark_ff::Field;
use ragaudit_field_simd::noise::{bernoulli_bits, PROBABILITY_BITS};

drawn_tests!("coins", Bernoulli);

/// The columns of each draw.
const BYTE: usize = 0;
const BIT: usize = 1;
const SMALLER: usize = 2;

/// 0.7 of all draws: its low byte is 51.
const BOUND: u64 = 769_658_139_443;
const MAXIMUM: u64 = (1 << PROBABILITY_BITS) - 1;

impl Tested for Bernoulli {
    fn several() -> Self {
        Self::one()
    }

    fn one() -> Self {
        Self { bound: BOUND }
    }

    fn changes() -> Vec<fn(&mut Self)> {
        vec![|d| d.bound += 1, |d| d.bound -= 256, |d| d.bound = 1]
    }
}

fn statement(capacity: usize, bound: u64) -> BernoulliStatement {
    of_slot(capacity, Bernoulli { bound })
}

/// The seed and the statement of the published proof.
pub(crate) fn known_answer() -> (Seed, BernoulliStatement) {
    (seed(), statement(12, BOUND))
}

/// Draw n as the columns have it.
fn draw(draws: &Draws, n: usize) -> i64 {
    draws.drawn[BYTE][n] + (t_of(draws, n) << 8)
}

/// Makes draw n another one, with the bit and the distance that are its own.
fn redraw(statement: &BernoulliStatement, draws: &mut Draws, n: usize, draw: i64) {
    let mut other = Draws::empty(&statement.distribution);
    push(&mut other, &statement.distribution, draw % 256, draw >> 8);
    let columns = draws.drawn.iter_mut().chain(&mut draws.limbs);
    let others = other.drawn.iter().chain(&other.limbs);
    columns
        .zip(others)
        .for_each(|(column, other)| column[n] = other[0]);
    draws.add_up(statement);
}

/// The distance of draw n under these columns' choice: correct or negative.
fn distance(statement: &BernoulliStatement, draws: &Draws, n: usize) -> i64 {
    let above = statement.distribution.threshold() as i64 + draws.drawn[SMALLER][n];
    match draws.drawn[BIT][n] {
        1 => above - t_of(draws, n) - 1,
        _ => t_of(draws, n) - above,
    }
}

#[test]
fn sampling_proofs_verify_and_have_the_relation_s_bits() {
    // Blocks of 80 draws, and a capacity of a row's border.
    for (capacity, bound) in [
        (1, BOUND),
        (2, 1 << 39),
        (79, 1),
        (80, MAXIMUM),
        (81, 256),
        (160, 255),
        (1024, BOUND),
        (1025, BOUND),
    ] {
        let statement = statement(capacity, bound);
        let sampling_proof = proved(&statement, false);
        let column = &crate::drawn::verify(&statement, &sampling_proof.proof).unwrap()[0];
        assert_eq!(column.rows, sampling_proof.columns[0].rows);
        assert_eq!(column.rows.len(), Layout::new(capacity).unwrap().rows());
        let kappa = noise_key(&seed(), statement.slots[0].beacon, statement.slots[0].slot);
        let expected = bernoulli_bits(&kappa, capacity, bound).unwrap();
        let opening = sampling_proof.columns[0].opening.as_ref().unwrap();
        assert!(opening
            .values
            .iter()
            .map(|v| *v as u8)
            .eq(expected.iter().copied()));
        let prove = bernoulli_column(
            column.rows.clone(),
            &expected,
            opening.blindings.clone(),
            Layout::new(capacity).unwrap(),
        );
        assert_eq!(prove.unwrap().opening.unwrap().values, opening.values);
    }
}

#[test]
fn bits_at_the_bound_and_beside_it_are_provable() {
    let word = |draw: u64| [draw, 0, 0, 0];
    for bound in [1, 2, 255, 256, 257, BOUND, 1 << 39, MAXIMUM - 1, MAXIMUM] {
        let statement = statement(1, bound);
        for (draw, bit) in [
            (0, 1),
            (bound - 1, 1),
            (bound, 0),
            (bound + 1, 0),
            (MAXIMUM, 0),
            (bound / 256 * 256, i64::from(bound % 256 > 0)),
        ] {
            let draw = draw.min(MAXIMUM);
            let draws = Draws::new(&statement, &[word(draw)]).unwrap();
            assert_eq!(draws.drawn[BIT][0], bit, "{draw} below {bound}");
            let [low, high] = [2, 3].map(|k| draws.limbs[k][0]);
            assert_eq!(low + (high << 16), distance(&statement, &draws, 0));
            assert!((0..1 << 32).contains(&distance(&statement, &draws, 0)));
        }
    }
}

#[test]
fn parameters_end_where_the_errors_do() {
    let refused = |capacity: usize, bound: u64, name: &str| {
        let actual = crate::drawn::check(&statement(capacity, bound), &[]).err();
        match actual {
            Some(Error::Invalid { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    };
    refused(9, 0, "bound");
    refused(9, MAXIMUM + 1, "bound");
    refused(9, u64::MAX, "bound");
    refused(0, 1, "capacity");
    refused(MAX_CAPACITY + 1, 1, "capacity");
    for (capacity, bound) in [(MAX_CAPACITY, MAXIMUM), (1, 1)] {
        // The parameters were taken; there is no proof.
        let actual = crate::drawn::check(&statement(capacity, bound), &[]).err();
        assert!(matches!(actual, Some(Error::Malformed { at: 0, .. })));
    }
}

#[test]
fn columns_are_of_bits_and_of_their_layout() {
    let layout = Layout::new(3).unwrap();
    let column = |bits: &[u8], rows: usize| {
        let rows = vec![crate::group::vector_generators(1)[0]; rows];
        bernoulli_column(rows, bits, vec![Fr::ONE; layout.rows()], layout).map(drop)
    };
    assert_eq!(column(&[0, 1, 1], layout.rows()), Ok(()));
    for (bits, rows) in [(&[0, 2, 1][..], 1), (&[0, 1], 1), (&[0, 1, 1], 2)] {
        assert!(
            matches!(column(bits, rows), Err(Error::Invalid { field, .. }) if field == "coins")
        );
    }
}

#[test]
fn forged_bits_are_refused() {
    let base = statement(40, BOUND);
    let n = 3;
    forged_columns(&base);
    // The other bit of the draw too, with the distance of the true one.
    caught_by("constraint: coins below the bound", || {
        forged(&base, |d| {
            d.drawn[BIT][n] ^= 1;
            d.add_up(&base);
        })
    });
    // The same with the distance wrapped around: a negative number in two limbs.
    caught_by("constraint: lookup layer", || {
        forged(&base, |d| {
            d.drawn[BIT][n] ^= 1;
            let wrapped = distance(&base, d, n);
            assert!(wrapped < 0);
            put_distance(d, n, wrapped);
            d.add_up(&base);
        })
    });
    // A distance that is not the draw's.
    caught_by("constraint: coins below the bound", || {
        forged(&base, |d| d.limbs[2][n] ^= 1)
    });
    // Another draw in the word, right in itself.
    caught_by("constraint: hash outputs", || {
        forged(&base, |d| redraw(&base, d, n, draw(d, n) ^ 1))
    });
    // A value that is no bit, and that makes the distance of its draw correct.
    caught_by("constraint: lookup layer", || {
        forged(&base, |d| {
            // c (2 T' - 2 t - 1) = T' - t + distance has c = 2 where the distance is 3 (T' - t) - 2.
            let above = base.distribution.threshold() as i64;
            let n = (0..40)
                .find(|&n| {
                    let left = above - t_of(d, n);
                    d.drawn[SMALLER][n] == 0 && left > 0 && 3 * left < 1 << 32
                })
                .unwrap();
            d.drawn[BIT][n] = 2;
            let left = above - t_of(d, n);
            put_distance(d, n, 3 * left - 2);
            d.add_up(&base);
        })
    });
}

/// A draw with the bound's own t: the low byte decides the outcome.
#[test]
fn the_low_byte_is_compared_truly() {
    let honest = stream(&statement(1, 1));
    let first = (honest[0][0] & MAXIMUM) as i64;
    assert!(first % 256 > 0 && first % 256 < 255);
    for (bound, bit) in [(first, 0), (first + 1, 1)] {
        let base = statement(1, bound as u64);
        assert_eq!(draws(&base).drawn[BIT][0], bit);
        assert!(forged(&base, |_| ()));
        caught_by("constraint: lookup layer", || {
            forged(&base, |d| {
                d.drawn[SMALLER][0] ^= 1;
                d.drawn[BIT][0] ^= 1;
                let moved = distance(&base, d, 0);
                assert!(moved >= 0);
                put_distance(d, 0, moved);
                d.add_up(&base);
            })
        });
    }
}

/// A changed proof is refused.
pub(crate) fn mutations(count: usize) {
    let base = statement(3, BOUND);
    let prove = crate::drawn::prove(&base, &[seed()], false).unwrap();
    refused("coin certificate", &prove.proof, count, |proof| {
        crate::drawn::verify(&base, proof).is_ok()
    });
}

/// 256 moved from t to the byte leaves the word as it was. Where t is the threshold and the byte at least the bound's, the
/// bit would be 1 with the byte out of its range.
#[test]
fn a_byte_above_255_is_refused() {
    let honest = stream(&statement(1, 1));
    let first = (honest[0][0] & MAXIMUM) as i64;
    // A multiple of 256 that the draw just fails to be below.
    let base = statement(1, (first / 256 * 256) as u64);
    let drawn = draws(&base);
    let distance_of_first = [2, 3].map(|k| drawn.limbs[k][0]);
    assert_eq!((drawn.drawn[BIT][0], distance_of_first), (0, [0, 0]));
    caught_by("constraint: lookup layer", || {
        forged(&base, |d| {
            d.drawn[BYTE][0] += 256;
            d.limbs[0][0] -= 1;
            d.drawn[BIT][0] = 1;
            assert_eq!(distance(&base, d, 0), 0);
            d.add_up(&base);
        })
    });
}

/// The most that a proof may be about.
pub(crate) fn largest() {
    simulate(MAX_CAPACITY);
}

pub(crate) fn simulate(capacity: usize) {
    crate::drawn::tests::simulate(capacity, Bernoulli::one());
}

/// Bounds that make all bits 0, all bits 1, and mixed bits: the same messages in the same order, with the same number of
/// bytes.
#[test]
fn proofs_have_one_shape() {
    let shape = |bound: u64| {
        let statement = statement(100, bound);
        crate::kit::shape(|| proved(&statement, false).proof)
    };
    assert_eq!(shape(1), shape(BOUND));
    assert_eq!(shape(MAXIMUM), shape(BOUND));
}
