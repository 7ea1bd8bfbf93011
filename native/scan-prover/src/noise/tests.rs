use super::statement::*;
use super::*;
use crate::cheat::{
    caught_by, every_point_is_opened, no_claim_is_skipped, nothing_is_forgotten, run, Cheat,
    Without, REPEATED,
};
use crate::engine::Fast;
use crate::error::Error;
use crate::index::MAX_CAPACITY;
use crate::lies::each_claim_stands_against_a_lie;
use crate::simulator::Simulates;
use crate::transcript::Hash;
use crate::words::{high, highest, push_upper, upper, BELOW_BITS, HIGH_LIMBS, TAG_SEED};
use ark_ff::Field;
use ark_ff::{BigInt, BigInteger, PrimeField};
use ragaudit_field_simd::noise::table_rows;
use ragaudit_field_simd::poseidon::hash;
use ragaudit_scan_protocol::noise::{certify, check_noise as check_as};

/// By a prover that refuses nothing.
fn prove_with(statement: &NoiseStatement, seed: &Seed, draws: &Draws) -> Result<Certificate> {
    let columns = draws.clone().into_columns();
    prove_columns::<Cheat>(statement, seed, columns, None)
}

fn prove_noise(statement: &NoiseStatement, seed: &Seed, low_memory: bool) -> Result<Certificate> {
    prove_as::<Cheat>(statement, seed, low_memory)
}

fn verify_noise(statement: &NoiseStatement, proof: &[u8]) -> Result<Column> {
    let (noise, equation) = check_as::<Cheat>(statement, proof)?;
    equation
        .holds::<Fast>(&[])
        .then_some(noise)
        .ok_or(Error::Rejected)
}

fn seed() -> Seed {
    Seed([Fr::from(123_456u64), Fr::from(987u64)])
}

fn statement(capacity: usize, gains: &[u32]) -> NoiseStatement {
    let Seed([a, b]) = &seed();
    NoiseStatement {
        context: [7; 32],
        c_seed: hash(&[Fr::from(TAG_SEED), *a, *b]).unwrap(),
        beacon: Fr::from(5u8),
        slot: Fr::from(6u8),
        capacity,
        gains: gains.to_vec(),
    }
}

fn accepted(statement: &NoiseStatement, certificate: &Certificate) -> bool {
    verify_noise(statement, &certificate.proof).is_ok()
}

/// A certificate over draws changed by `lie`, from a prover that refuses nothing.
fn forged(statement: &NoiseStatement, lie: impl Fn(&mut Draws)) -> bool {
    let shape = statement.shape().unwrap();
    let kappa = noise_key(&seed(), statement.beacon, statement.slot);
    let mut draws = Draws::new(statement, &words(kappa, shape.blocks.count)).unwrap();
    lie(&mut draws);
    accepted(statement, &prove_with(statement, &seed(), &draws).unwrap())
}

#[test]
fn low_memory_gives_the_same_certificate() {
    REPEATED.set(true);
    for (capacity, gains) in [(700, &[1][..]), (3000, &[1, 8, 64])] {
        let statement = statement(capacity, gains);
        let [kept, anew] = [false, true].map(|low| prove_noise(&statement, &seed(), low).unwrap());
        assert!(accepted(&statement, &anew));
        assert!(kept.proof == anew.proof);
        // Of blocks that ship, these have one run; of three blocks, several.
        let kappa = noise_key(&seed(), statement.beacon, statement.slot);
        let words = words(kappa, statement.shape().unwrap().blocks.count);
        let columns = Draws::new(&statement, &words).unwrap().into_columns();
        let several = prove_columns::<Cheat>(&statement, &seed(), columns, Some(3)).unwrap();
        assert!(kept.proof == several.proof);
    }
    REPEATED.set(false);
    let [one, other] = [(); 2].map(|()| prove_noise(&statement(7, &[1]), &seed(), true).unwrap());
    assert_ne!(one.proof, other.proof, "nonces are fresh");
}

/// Draws that no key gives take the steps of those that one does, up to the closing.
#[test]
fn certificates_take_the_same_work() {
    use ragaudit_field_simd::count;
    let base = statement(700, &[1, 8]);
    let shape = base.shape().unwrap();
    let kappa = noise_key(&seed(), base.beacon, base.slot);
    let honest = words(kappa, shape.blocks.count).to_vec();
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
        let columns = Draws::new(&base, words).unwrap().into_columns();
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
fn words_are_cut_below_the_modulus() {
    let largest = (-Fr::ONE).into_bigint().0;
    assert_eq!(highest(), upper(&largest) - 1);
    assert_eq!(high(&largest) >> 54, 0);
}

/// A word of the modulus's high part has a certificate as any other, unless 40 bits more are the modulus's too.
#[test]
fn words_up_to_the_modulus_are_provable() {
    let base = statement(1, &[1]);
    let mut word = (-Fr::ONE).into_bigint().0;
    assert!(Draws::new(&base, &[word]).is_err());
    word[2] -= 1 << (BELOW_BITS - 128);
    let draws = Draws::new(&base, &[word]).unwrap();
    let rest = &draws.high[HIGH_LIMBS..];
    assert!(rest.iter().all(|limb| limb[0] == 0));
}

#[test]
fn certificates_verify_and_hold_the_relation_s_noise() {
    for (capacity, gains) in [(1, &[1][..]), (30, &[1, 8, 64]), (300, &[1, 8])] {
        let statement = statement(capacity, gains);
        let certificate = prove_noise(&statement, &seed(), false).unwrap();
        let noise = verify_noise(&statement, &certificate.proof).unwrap();
        assert_eq!(noise.rows, certificate.noise.rows);
        let kappa = noise_key(&seed(), statement.beacon, statement.slot);
        let expected = ragaudit_field_simd::noise::draw(&kappa, capacity, gains).unwrap();
        let opening = certificate.noise.opening.as_ref().unwrap();
        let (drawn, rest) = opening.values.split_at(capacity);
        assert!(drawn
            .iter()
            .zip(&expected)
            .all(|(a, b)| *a == i64::from(*b)));
        assert!(rest.iter().all(|v| *v == 0));
    }
}

#[test]
fn a_certificate_is_for_its_statement_only() {
    let base = statement(20, &[1, 8]);
    let certificate = prove_noise(&base, &seed(), false).unwrap();
    assert!(accepted(&base, &certificate));
    let others: [fn(&mut NoiseStatement); 7] = [
        |s| s.context[0] ^= 1,
        |s| s.c_seed += Fr::ONE,
        |s| s.beacon += Fr::ONE,
        |s| s.slot += Fr::ONE,
        |s| s.capacity += 1,
        |s| s.gains[1] = 7,
        |s| s.gains.push(1),
    ];
    // A new field has to be changed above.
    let NoiseStatement {
        context: _,
        c_seed: _,
        beacon: _,
        slot: _,
        capacity: _,
        gains: _,
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
    assert!(super::prove_noise(&other, &seed(), false).is_err());
}

#[test]
fn forged_draws_are_refused() {
    let base = statement(40, &[1, 8]);
    let n = 3;
    assert!(forged(&base, |_| ()));
    // Noise that is not the sum of its draws, and noise beyond the capacity.
    caught_by("column claim: noise", || forged(&base, |d| d.noise[n] += 1));
    caught_by("column claim: noise", || forged(&base, |d| d.noise.push(9)));
    let places = base.capacity.next_power_of_two();
    caught_by("column claim: noise", || {
        forged(&base, |d| {
            d.noise.resize(places - 1, 0);
            d.noise.push(9);
        })
    });
    // Behind them a row of a small tenant has places that no functional reads: what stands there is nobody's noise.
    assert!(forged(&base, |d| {
        d.noise.resize(places, 0);
        d.noise.push(9);
    }));
    // A value that is not the bin's.
    caught_by("constraint: lookup layer", || {
        forged(&base, |d| {
            d.values[n] += 1;
            d.combine(&base);
        })
    });
    // The other choice, with the table's own row and the distance of the true one.
    caught_by("constraint: choice", || {
        forged(&base, |d| {
            d.choices[n] ^= 1;
            let (_, value) = alias_row(d.bytes[n] as usize, d.choices[n] as usize);
            d.values[n] = value;
            d.combine(&base);
        })
    });
    // As above, with the distance wrapped around: a negative number in two limbs.
    caught_by("constraint: lookup layer", || {
        forged(&base, |d| {
            d.choices[n] ^= 1;
            let (threshold, value) = alias_row(d.bytes[n] as usize, d.choices[n] as usize);
            let t = d.limbs[0][n] + (d.limbs[1][n] << 16);
            let distance = if d.choices[n] == 1 {
                threshold - 1 - t
            } else {
                t - threshold
            };
            d.limbs[2][n] = distance.rem_euclid(1 << 16);
            d.limbs[3][n] = distance.div_euclid(1 << 16);
            d.values[n] = value;
            d.combine(&base);
        })
    });
    // Another draw in the word, right in itself.
    caught_by("constraint: hash outputs", || {
        forged(&base, |d| {
            d.bytes[n] ^= 1;
            let (byte, t) = (d.bytes[n], d.limbs[0][n] + (d.limbs[1][n] << 16));
            let (threshold, _) = alias_row(byte as usize, 0);
            let mut other = Draws::default();
            let row = table_rows(&[byte as u8])[0];
            other.push(byte as u8, i64::from(t < threshold), t, row);
            (d.choices[n], d.thresholds[n], d.values[n]) =
                (other.choices[0], other.thresholds[0], other.values[0]);
            (d.limbs[2][n], d.limbs[3][n]) = (other.limbs[2][0], other.limbs[3][0]);
            d.combine(&base);
        })
    });
}

#[test]
fn a_transcript_forgets_nothing() {
    let base = statement(20, &[1, 8]);
    let prove = || prove_noise(&base, &seed(), false).unwrap().proof;
    let verify =
        |statement: &NoiseStatement, proof: &[u8]| verify_noise(statement, proof).map(drop);
    nothing_is_forgotten(prove, |proof| verify(&base, proof));
    // Forgotten by both sides, a field that is in no equation lets one certificate stand for two windows.
    let mut other = base.clone();
    other.context[0] ^= 1;
    let forgets = Without::Message("context".to_owned());
    let (proof, _) = run(forgets.clone(), prove);
    assert_eq!(run(forgets, || verify(&other, &proof)).0, Ok(()));
    assert!(verify(&other, &prove()).is_err());
}

#[test]
fn claims_and_openings_are_all_needed() {
    let base = statement(20, &[1, 8]);
    let kappa = noise_key(&seed(), base.beacon, base.slot);
    let draws = Draws::new(&base, &words(kappa, base.shape().unwrap().blocks.count)).unwrap();
    let prove = || prove_with(&base, &seed(), &draws).unwrap().proof;
    no_claim_is_skipped(prove, |proof| verify_noise(&base, proof).map(drop), false);
    every_point_is_opened(prove, |proof| verify_noise(&base, proof).map(drop));
}

/// Whoever says a false value and makes up for it everywhere else passes where one claim is not made.
#[test]
#[ignore = "a quarter of a minute"]
fn each_claim_stands_against_one_false_value() {
    let base = statement(20, &[1, 8]);
    let kappa = noise_key(&seed(), base.beacon, base.slot);
    let draws = Draws::new(&base, &words(kappa, base.shape().unwrap().blocks.count)).unwrap();
    let prove = || prove_with(&base, &seed(), &draws).unwrap().proof;
    let verify = |proof: &[u8]| verify_noise(&base, proof).map(drop);
    each_claim_stands_against_a_lie("noise", prove, verify);
}

/// The draws end within a block of leaves and within a row; the first, the last of a position and the last of all are
/// held as any other, and one more value has no place.
#[test]
fn no_draw_is_left_out_or_added() {
    let base = statement(1200, &[1]);
    for n in [0, 1199] {
        let other = |d: &mut Draws| d.noise[n] = i64::from(d.values[n] == 0);
        assert!(!forged(&base, other), "draw {n} left out of its position");
    }
    assert!(!forged(&base, |d| d.limbs[0][1199] ^= 1));
    assert!(!forged(&base, |d| d.noise.push(1)), "a value too many");
}

/// 256 moved from t to the byte leaves the word as it was; with choice 0 where the row of choice 1 is meant, the
/// primary value would be had above the threshold too, if only byte + 256 choice were looked up.
#[test]
fn a_byte_above_255_is_refused() {
    let base = statement(40, &[1]);
    let moved = |d: &mut Draws| {
        let n = (0..40)
            .find(|&n| d.choices[n] == 0 && d.limbs[0][n] > 0 && d.limbs[2][n] > 0)
            .unwrap();
        let (_, value) = alias_row(d.bytes[n] as usize, 1);
        d.bytes[n] += 256;
        d.limbs[0][n] -= 1;
        d.limbs[2][n] -= 1;
        d.values[n] = value;
        d.combine(&base);
    };
    assert!(!forged(&base, moved));
}

/// word + r has the same residue and other draws; its high part is above the bound.
#[test]
fn a_non_canonical_word_is_refused() {
    let base = statement(40, &[1]);
    let shape = base.shape().unwrap();
    let kappa = noise_key(&seed(), base.beacon, base.slot);
    let mut all = words(kappa, shape.blocks.count);
    let honest = all[0];
    let mut sum = BigInt::new(honest);
    assert!(!sum.add_with_carry(&Fr::MODULUS));
    let (above, high) = (upper(&sum.0), high(&sum.0));
    assert!(above > highest());
    all[0] = sum.0;
    all[0][3] &= 0xff;
    let mut draws = Draws::new(&base, &all).unwrap();
    let mut forged = Draws::default();
    push_upper(&mut forged.high, high, highest().wrapping_sub(above));
    for (column, forged) in draws.high.iter_mut().zip(&forged.high) {
        column[0] = forged[0];
    }
    let certificate = prove_with(&base, &seed(), &draws).unwrap();
    assert!(!accepted(&base, &certificate));
    // What is lacking made negative, limb by limb: right but for its range.
    push_upper(&mut forged.high, high, above - highest());
    for (column, forged) in draws.high.iter_mut().zip(&forged.high).skip(HIGH_LIMBS) {
        column[0] = -forged[1];
    }
    caught_by("constraint: lookup layer", || {
        accepted(&base, &prove_with(&base, &seed(), &draws).unwrap())
    });
    // The same with the true high part and the forged low one fails at the word itself.
    all[0][3] |= honest[3] & !0xff;
    let draws = Draws::new(&base, &all).unwrap();
    assert!(!accepted(
        &base,
        &prove_with(&base, &seed(), &draws).unwrap()
    ));
}

pub(crate) const MOST_GAINS: [u32; 6] = [1, 8, 64, 512, 4096, 32_768];

/// The most that a certificate may be about.
pub(crate) fn largest() {
    simulate(MAX_CAPACITY, &MOST_GAINS);
}

pub(crate) fn simulate(capacity: usize, gains: &[u32]) {
    let public = statement(capacity, gains);
    let shape = public.shape().unwrap();
    let rows = shape.layout.row_variables;
    let mut session = Session::simulator(public.transcript(), rows);
    certify(&mut session, &public, &shape, None).unwrap();
    session.close(None).unwrap();
}

/// Public values alone, a seed commitment that nobody can open, and an oracle that says when it must: the verifier
/// accepts, so a certificate tells it nothing that it could not have written itself.
#[test]
fn certificates_are_simulated_without_a_seed() {
    let real = prove_noise(&statement(40, &[1, 8]), &seed(), false).unwrap();
    let mut public = statement(40, &[1, 8]);
    public.c_seed = Fr::from(31_337u64);
    let shape = public.shape().unwrap();
    let rows = shape.layout.row_variables;
    let mut session = Session::simulator(public.transcript(), rows);
    certify(&mut session, &public, &shape, None).unwrap();
    let simulated = session.close(None).unwrap();
    assert_eq!(simulated.proof.len(), real.proof.len());
    assert!(
        verify_noise(&public, &simulated.proof).is_err(),
        "under the hash function it is no proof"
    );
    let told = simulated.tell(public.transcript());
    let mut session: Session<Cheat> = Session::verifier(told, rows, &simulated.proof);
    certify(&mut session, &public, &shape, None).unwrap();
    let equation: Equation = session.close(None).unwrap().into();
    assert!(equation.holds::<Fast>(&[]));
}
