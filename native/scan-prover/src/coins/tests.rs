use super::statement::*;
use super::*;
use crate::cheat::{
    caught_by, every_point_is_opened, no_claim_is_skipped, nothing_is_forgotten, run, Cheat,
    Without, REPEATED,
};
use crate::engine::Fast;
use crate::index::MAX_CAPACITY;
use crate::lies::each_claim_stands_against_a_lie;
use crate::mutations::refused;
use crate::simulator::Simulates;
use crate::transcript::Hash;
use crate::words::{high, highest, push_upper, upper, HIGH_LIMBS, TAG_SEED};
use ark_ff::Field;
use ark_ff::{BigInt, BigInteger, PrimeField};
use ragaudit_field_simd::noise::{coins, COIN_BITS};
use ragaudit_field_simd::poseidon::hash;
use ragaudit_scan_protocol::coins::{certify, check_coins as check_as};

/// 0.7 of all draws: its low byte is 51.
const BOUND: u64 = 769_658_139_443;
const MOST: u64 = (1 << COIN_BITS) - 1;

/// By a prover that refuses nothing.
fn prove_with(statement: &CoinStatement, seed: &Seed, coins: &Coins) -> Result<CoinCertificate> {
    prove_columns::<Cheat>(statement, seed, coins.clone().into_columns(), None)
}

fn prove_coins(
    statement: &CoinStatement,
    seed: &Seed,
    low_memory: bool,
) -> Result<CoinCertificate> {
    prove_as::<Cheat>(statement, seed, low_memory)
}

fn verify_coins(statement: &CoinStatement, proof: &[u8]) -> Result<Column> {
    let (column, equation) = check_as::<Cheat>(statement, proof)?;
    equation
        .holds::<Fast>(&[])
        .then_some(column)
        .ok_or(Error::Rejected)
}

fn seed() -> Seed {
    Seed([Fr::from(123_456u64), Fr::from(987u64)])
}

fn statement(capacity: usize, bound: u64) -> CoinStatement {
    let Seed([a, b]) = &seed();
    CoinStatement {
        context: [7; 32],
        c_seed: hash(&[Fr::from(TAG_SEED), *a, *b]).unwrap(),
        beacon: Fr::from(5u8),
        slot: Fr::from(6u8),
        capacity,
        bound,
    }
}

/// The seed and the statement of the published certificate.
pub(crate) fn golden() -> (Seed, CoinStatement) {
    (seed(), statement(12, BOUND))
}

fn stream(statement: &CoinStatement) -> Vec<[u64; 4]> {
    let kappa = noise_key(&seed(), statement.beacon, statement.slot);
    words(kappa, statement.shape().unwrap().blocks.count).to_vec()
}

fn accepted(statement: &CoinStatement, certificate: &CoinCertificate) -> bool {
    verify_coins(statement, &certificate.proof).is_ok()
}

/// A certificate over coins changed by `lie`, from a prover that refuses nothing.
fn forged(statement: &CoinStatement, lie: impl Fn(&mut Coins)) -> bool {
    let mut coins = Coins::new(statement, &stream(statement)).unwrap();
    lie(&mut coins);
    accepted(statement, &prove_with(statement, &seed(), &coins).unwrap())
}

/// Draw n as the columns have it.
fn draw(coins: &Coins, n: usize) -> i64 {
    coins.bytes[n] + (coins.limbs[0][n] << 8) + (coins.limbs[1][n] << 24)
}

/// Makes draw n another one, with the coin and the distance that are its own.
fn redraw(statement: &CoinStatement, coins: &mut Coins, n: usize, draw: i64) {
    let mut other = Coins::default();
    other.push(statement, draw % 256, draw >> 8);
    (coins.bytes[n], coins.coins[n]) = (other.bytes[0], other.coins[0]);
    coins.smaller[n] = other.smaller[0];
    for (column, other) in coins.limbs.iter_mut().zip(&other.limbs) {
        column[n] = other[0];
    }
    coins.gather(statement);
}

/// What the choice makes the distance of draw n, under these columns: right or negative.
fn distance(statement: &CoinStatement, coins: &Coins, n: usize) -> i64 {
    let above = statement.threshold() as i64 + coins.smaller[n];
    let t = coins.limbs[0][n] + (coins.limbs[1][n] << 16);
    match coins.coins[n] {
        1 => above - t - 1,
        _ => t - above,
    }
}

fn put_distance(coins: &mut Coins, n: usize, distance: i64) {
    coins.limbs[2][n] = distance.rem_euclid(1 << 16);
    coins.limbs[3][n] = distance.div_euclid(1 << 16);
}

#[test]
fn certificates_verify_and_hold_the_relation_s_coins() {
    // Blocks of 80 draws, and a capacity of a row's border.
    for (capacity, bound) in [
        (1, BOUND),
        (2, 1 << 39),
        (79, 1),
        (80, MOST),
        (81, 256),
        (160, 255),
        (1024, BOUND),
        (1025, BOUND),
    ] {
        let statement = statement(capacity, bound);
        let certificate = prove_coins(&statement, &seed(), false).unwrap();
        let column = verify_coins(&statement, &certificate.proof).unwrap();
        assert_eq!(column.rows, certificate.column.rows);
        assert_eq!(column.rows.len(), Layout::new(capacity).unwrap().rows());
        let kappa = noise_key(&seed(), statement.beacon, statement.slot);
        let expected = coins(&kappa, capacity, bound).unwrap();
        let opening = certificate.column.opening.as_ref().unwrap();
        assert!(opening
            .values
            .iter()
            .map(|v| *v as u8)
            .eq(expected.iter().copied()));
        let made = coin_column(
            column.rows.clone(),
            &expected,
            opening.blindings.clone(),
            Layout::new(capacity).unwrap(),
        );
        assert_eq!(made.unwrap().opening.unwrap().values, opening.values);
    }
}

#[test]
fn coins_at_the_bound_and_beside_it_are_provable() {
    let word = |draw: u64| [draw, 0, 0, 0];
    for bound in [1, 2, 255, 256, 257, BOUND, 1 << 39, MOST - 1, MOST] {
        let statement = statement(1, bound);
        for (draw, coin) in [
            (0, 1),
            (bound - 1, 1),
            (bound, 0),
            (bound + 1, 0),
            (MOST, 0),
            (bound / 256 * 256, i64::from(bound % 256 > 0)),
        ] {
            let draw = draw.min(MOST);
            let coins = Coins::new(&statement, &[word(draw)]).unwrap();
            assert_eq!(coins.coins[0], coin, "{draw} below {bound}");
            let [low, high] = [2, 3].map(|k| coins.limbs[k][0]);
            assert_eq!(low + (high << 16), distance(&statement, &coins, 0));
            assert!((0..1 << 32).contains(&distance(&statement, &coins, 0)));
        }
    }
}

#[test]
fn low_memory_gives_the_same_certificate() {
    REPEATED.set(true);
    for capacity in [700, 3000] {
        let statement = statement(capacity, BOUND);
        let [kept, anew] = [false, true].map(|low| prove_coins(&statement, &seed(), low).unwrap());
        assert!(accepted(&statement, &anew));
        assert!(kept.proof == anew.proof);
        // Of blocks that ship, these have one run; of three blocks, several.
        let columns = Coins::new(&statement, &stream(&statement))
            .unwrap()
            .into_columns();
        let several = prove_columns::<Cheat>(&statement, &seed(), columns, Some(3)).unwrap();
        assert!(kept.proof == several.proof);
    }
    REPEATED.set(false);
    let base = statement(7, BOUND);
    let [one, other] = [(); 2].map(|()| prove_coins(&base, &seed(), true).unwrap());
    assert_ne!(one.proof, other.proof, "nonces are fresh");
}

/// Draws that no key gives take the steps of those that one does, up to the closing.
#[test]
fn certificates_take_the_same_work() {
    use ragaudit_field_simd::count;
    let base = statement(700, BOUND);
    let shape = base.shape().unwrap();
    let honest = stream(&base);
    let upper = highest();
    let most = [
        u64::MAX,
        u64::MAX,
        (upper as u64) << 32 | u64::from(u32::MAX),
        (upper >> 32) as u64,
    ];
    let lists = [
        honest.clone(),
        vec![[0; 4]; honest.len()],
        vec![most; honest.len()],
    ];
    let work = |words: &[[u64; 4]]| {
        let columns = Coins::new(&base, words).unwrap().into_columns();
        let rows = shape.layout.row_variables;
        let mut session: Session<Prover> = Session::prover(base.transcript(), rows, b"").unwrap();
        count::take();
        let private = Private {
            columns: columns.in_order(),
            keys: seed().keys(base.beacon, base.slot),
        };
        certify(&mut session, &base, &shape, Some(private)).unwrap();
        count::take()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let counts = pool.unwrap().install(|| {
        // The first one makes tables.
        work(&honest);
        lists.map(|words| work(&words))
    });
    assert!(counts.iter().all(|c| *c == counts[0]), "{counts:?}");
    assert_eq!(counts[0][2], 0, "additions without a chord");
}

#[test]
fn a_certificate_is_for_its_statement_only() {
    let base = statement(20, BOUND);
    let certificate = prove_coins(&base, &seed(), false).unwrap();
    assert!(accepted(&base, &certificate));
    let others: [fn(&mut CoinStatement); 8] = [
        |s| s.context[0] ^= 1,
        |s| s.c_seed += Fr::ONE,
        |s| s.beacon += Fr::ONE,
        |s| s.slot += Fr::ONE,
        |s| s.capacity += 1,
        |s| s.bound += 1,
        |s| s.bound -= 256,
        |s| s.bound = 1,
    ];
    // A new field has to be changed above.
    let CoinStatement {
        context: _,
        c_seed: _,
        beacon: _,
        slot: _,
        capacity: _,
        bound: _,
    } = &base;
    for (i, change) in others.iter().enumerate() {
        let mut other = base.clone();
        change(&mut other);
        assert!(!accepted(&other, &certificate), "field {i}");
        let [changed, before] = [&other, &base].map(|s| s.transcript::<Hash>().digest());
        assert_ne!(changed, before, "field {i}");
    }
    // The key is proved from the seed commitment: another seed makes no certificate.
    let mut other = base.clone();
    other.c_seed += Fr::ONE;
    assert!(super::prove_coins(&other, &seed(), false).is_err());
}

#[test]
fn parameters_end_where_the_errors_do() {
    let refused = |capacity: usize, bound: u64, name: &str| {
        let found = check_coins(&statement(capacity, bound), &[]).err();
        match found {
            Some(Error::Invalid { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    };
    refused(9, 0, "bound");
    refused(9, MOST + 1, "bound");
    refused(9, u64::MAX, "bound");
    refused(0, 1, "capacity");
    refused(MAX_CAPACITY + 1, 1, "capacity");
    for (capacity, bound) in [(MAX_CAPACITY, MOST), (1, 1)] {
        // The parameters were taken; there is no proof.
        let found = check_coins(&statement(capacity, bound), &[]).err();
        assert!(matches!(found, Some(Error::Malformed { at: 0, .. })));
    }
}

#[test]
fn columns_are_of_bits_and_of_their_layout() {
    let layout = Layout::new(3).unwrap();
    let column = |bits: &[u8], rows: usize| {
        let rows = vec![crate::group::vector_generators(1)[0]; rows];
        coin_column(rows, bits, vec![Fr::ONE; layout.rows()], layout).map(drop)
    };
    assert_eq!(column(&[0, 1, 1], layout.rows()), Ok(()));
    for (bits, rows) in [(&[0, 2, 1][..], 1), (&[0, 1], 1), (&[0, 1, 1], 2)] {
        assert!(
            matches!(column(bits, rows), Err(Error::Invalid { field, .. }) if field == "coins")
        );
    }
}

#[test]
fn forged_coins_are_refused() {
    let base = statement(40, BOUND);
    let n = 3;
    assert!(forged(&base, |_| ()));
    // The coin of a position that its draw does not give, in either direction, and coins beyond the capacity.
    for n in [0, n, 39] {
        caught_by("column claim: coins", || {
            forged(&base, |d| d.of_positions[n] ^= 1)
        });
    }
    caught_by("column claim: coins", || {
        forged(&base, |d| d.of_positions.push(1))
    });
    let places = base.capacity.next_power_of_two();
    caught_by("column claim: coins", || {
        forged(&base, |d| {
            d.of_positions.resize(places - 1, 0);
            d.of_positions.push(1);
        })
    });
    // Behind them a row of a small tenant has places that no functional reads: what stands there is nobody's coin.
    assert!(forged(&base, |d| {
        d.of_positions.resize(places, 0);
        d.of_positions.push(1);
    }));
    // The other coin of the draw too, with the distance of the true one.
    caught_by("constraint: coins below the bound", || {
        forged(&base, |d| {
            d.coins[n] ^= 1;
            d.gather(&base);
        })
    });
    // As above, with the distance wrapped around: a negative number in two limbs.
    caught_by("constraint: lookup layer", || {
        forged(&base, |d| {
            d.coins[n] ^= 1;
            let wrapped = distance(&base, d, n);
            assert!(wrapped < 0);
            put_distance(d, n, wrapped);
            d.gather(&base);
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
    // A coin that is no bit, of a draw whose distance it makes right.
    caught_by("constraint: lookup layer", || {
        forged(&base, |d| {
            // c (2 T' - 2 t - 1) = T' - t + distance has c = 2 where the distance is 3 (T' - t) - 2.
            let above = base.threshold() as i64;
            let n = (0..40)
                .find(|&n| {
                    let left = above - (d.limbs[0][n] + (d.limbs[1][n] << 16));
                    d.smaller[n] == 0 && left > 0 && 3 * left < 1 << 32
                })
                .unwrap();
            d.coins[n] = 2;
            let left = above - (d.limbs[0][n] + (d.limbs[1][n] << 16));
            put_distance(d, n, 3 * left - 2);
            d.gather(&base);
        })
    });
}

/// A draw whose t is the bound's own: the low byte decides, and says so truly.
#[test]
fn the_low_byte_is_compared_truly() {
    let honest = stream(&statement(1, 1));
    let first = (honest[0][0] & MOST) as i64;
    assert!(first % 256 > 0 && first % 256 < 255);
    for (bound, coin) in [(first, 0), (first + 1, 1)] {
        let base = statement(1, bound as u64);
        let coins = Coins::new(&base, &honest).unwrap();
        assert_eq!(coins.coins[0], coin);
        assert!(forged(&base, |_| ()));
        caught_by("constraint: lookup layer", || {
            forged(&base, |d| {
                d.smaller[0] ^= 1;
                d.coins[0] ^= 1;
                let moved = distance(&base, d, 0);
                assert!(moved >= 0);
                put_distance(d, 0, moved);
                d.gather(&base);
            })
        });
    }
}

/// A changed certificate is refused.
pub(crate) fn mutations(count: usize) {
    let base = statement(3, BOUND);
    let made = super::prove_coins(&base, &seed(), false).unwrap();
    refused("coin certificate", &made.proof, count, |proof| {
        super::verify_coins(&base, proof).is_ok()
    });
}

#[test]
fn a_transcript_forgets_nothing() {
    let base = statement(20, BOUND);
    let prove = || prove_coins(&base, &seed(), false).unwrap().proof;
    let verify = |statement: &CoinStatement, proof: &[u8]| verify_coins(statement, proof).map(drop);
    nothing_is_forgotten(prove, |proof| verify(&base, proof));
    // Forgotten by both sides, a field that is in no equation lets one certificate stand for two windows.
    let mut other = base.clone();
    other.context[0] ^= 1;
    let forgets = Without::Message("context".to_owned());
    let (proof, _) = run(forgets.clone(), prove);
    assert_eq!(run(forgets, || verify(&other, &proof)).0, Ok(()));
    assert!(verify(&other, &prove()).is_err());
}

fn skips_no_claim(each: bool) {
    let base = statement(20, BOUND);
    let coins = Coins::new(&base, &stream(&base)).unwrap();
    let prove = || prove_with(&base, &seed(), &coins).unwrap().proof;
    no_claim_is_skipped(prove, |proof| verify_coins(&base, proof).map(drop), each);
    every_point_is_opened(prove, |proof| verify_coins(&base, proof).map(drop));
}

#[test]
fn claims_and_openings_are_all_needed() {
    skips_no_claim(false);
}

/// Whoever says a false value and makes up for it everywhere else passes where one claim is not made.
#[test]
#[ignore = "a quarter of a minute"]
fn each_claim_stands_against_one_false_value() {
    let base = statement(20, BOUND);
    let coins = Coins::new(&base, &stream(&base)).unwrap();
    let prove = || prove_with(&base, &seed(), &coins).unwrap().proof;
    let verify = |proof: &[u8]| verify_coins(&base, proof).map(drop);
    each_claim_stands_against_a_lie("coins", prove, verify);
}

#[test]
#[ignore = "a minute"]
fn every_single_claim_is_needed() {
    skips_no_claim(true);
}

/// The draws end within a block of leaves and within a row; the first, the last of a position and the last of all are
/// held as any other, and one more coin has no place.
#[test]
fn no_draw_is_left_out_or_added() {
    let base = statement(1200, BOUND);
    for n in [0, 1199] {
        assert!(!forged(&base, |d| d.of_positions[n] ^= 1), "position {n}");
        assert!(!forged(&base, |d| d.limbs[0][n] ^= 1), "draw {n}");
    }
    assert!(
        !forged(&base, |d| d.of_positions.push(1)),
        "a coin too many"
    );
}

/// 256 moved from t to the byte leaves the word as it was. Where t is the threshold and the byte at least the bound's, the
/// coin would be 1 with the byte out of its range.
#[test]
fn a_byte_above_255_is_refused() {
    let honest = stream(&statement(1, 1));
    let first = (honest[0][0] & MOST) as i64;
    // A multiple of 256 that the draw just fails to be below.
    let base = statement(1, (first / 256 * 256) as u64);
    let coins = Coins::new(&base, &honest).unwrap();
    assert_eq!(
        (coins.coins[0], coins.limbs[2][0], coins.limbs[3][0]),
        (0, 0, 0)
    );
    caught_by("constraint: lookup layer", || {
        forged(&base, |d| {
            d.bytes[0] += 256;
            d.limbs[0][0] -= 1;
            d.coins[0] = 1;
            assert_eq!(distance(&base, d, 0), 0);
            d.gather(&base);
        })
    });
}

/// word + r has the same residue and other draws; its high part is above the bound.
#[test]
fn a_non_canonical_word_is_refused() {
    let base = statement(40, BOUND);
    let mut all = stream(&base);
    let mut sum = BigInt::new(all[0]);
    assert!(!sum.add_with_carry(&Fr::MODULUS));
    let (above, high) = (upper(&sum.0), high(&sum.0));
    assert!(above > highest());
    all[0] = sum.0;
    all[0][3] &= 0xff;
    let mut coins = Coins::new(&base, &all).unwrap();
    let mut forged = Coins::default();
    push_upper(&mut forged.high, high, highest().wrapping_sub(above));
    for (column, forged) in coins.high.iter_mut().zip(&forged.high) {
        column[0] = forged[0];
    }
    assert!(!accepted(
        &base,
        &prove_with(&base, &seed(), &coins).unwrap()
    ));
    // What is lacking made negative, limb by limb: right but for its range.
    push_upper(&mut forged.high, high, above - highest());
    for (column, forged) in coins.high.iter_mut().zip(&forged.high).skip(HIGH_LIMBS) {
        column[0] = -forged[1];
    }
    caught_by("constraint: lookup layer", || {
        accepted(&base, &prove_with(&base, &seed(), &coins).unwrap())
    });
}

/// The most that a certificate may be about.
pub(crate) fn largest() {
    simulate(MAX_CAPACITY);
}

pub(crate) fn simulate(capacity: usize) {
    let public = statement(capacity, BOUND);
    let shape = public.shape().unwrap();
    let mut session = Session::simulator(public.transcript(), shape.layout.row_variables);
    certify(&mut session, &public, &shape, None).unwrap();
    session.close(None).unwrap();
}

/// Public values alone, a seed commitment that nobody can open, and an oracle that says when it must: the verifier
/// accepts, so a certificate tells it nothing that it could not have written itself.
#[test]
fn certificates_are_simulated_without_a_seed() {
    let real = prove_coins(&statement(40, BOUND), &seed(), false).unwrap();
    let mut public = statement(40, BOUND);
    public.c_seed = Fr::from(31_337u64);
    let shape = public.shape().unwrap();
    let rows = shape.layout.row_variables;
    let mut session = Session::simulator(public.transcript(), rows);
    certify(&mut session, &public, &shape, None).unwrap();
    let simulated = session.close(None).unwrap();
    assert_eq!(simulated.proof.len(), real.proof.len());
    assert!(
        verify_coins(&public, &simulated.proof).is_err(),
        "under the hash function it is no proof"
    );
    let told = simulated.tell(public.transcript());
    let mut session: Session<Cheat> = Session::verifier(told, rows, &simulated.proof);
    certify(&mut session, &public, &shape, None).unwrap();
    let equation: Equation = session.close(None).unwrap().into();
    assert!(equation.holds::<Fast>(&[]));
}

/// Of bounds that make coins all 0, all 1 and mixed: the same messages in the same order, as many bytes.
#[test]
fn certificates_have_one_shape() {
    let shape = |bound: u64| {
        let statement = statement(100, bound);
        let prove = || prove_coins(&statement, &seed(), false).unwrap().proof;
        let (proof, log) = run(Without::Nothing, prove);
        (proof.len(), log.trace)
    };
    assert_eq!(shape(1), shape(BOUND));
    assert_eq!(shape(MOST), shape(BOUND));
}
