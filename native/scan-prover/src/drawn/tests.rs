//! The tests that every distribution has: [`drawn_tests`] generates them for a distribution. The distribution's own tests are
//! about its draws.
use super::*;
use crate::channel::Channel;
use crate::group::Fr;
use crate::kit::{all_are_needed, forgets_nothing, only_for, simulated, Change, Protocol};
use crate::malicious::{caught_by, MaliciousProver, REPEATED};
use crate::malicious_claims::each_claim_excludes_a_false_value;
use crate::noise::Noise;
use crate::prover::fractional_sumcheck::LESS;
use crate::simulator::Simulated;
use crate::transcript::{Oracle, Transcript};
use crate::words::{high, highest, push_upper, seed_commitment, upper, BELOW_BITS, HIGH_LIMBS};
use ark_ff::{BigInt, BigInteger, Field, PrimeField};

impl<D: Distribution> Protocol for DrawnStatement<D> {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript()
    }

    fn rows(&self) -> Result<usize> {
        Ok(self.shape()?.row_variables)
    }

    fn run<'a, C: Channel>(&'a self, mut session: Session<'a, C>) -> Result<C::Closed> {
        drawn_protocol(&mut session, self, None)?;
        session.close(None)
    }
}

/// A distribution, with the parameters of its tests.
pub(crate) trait Tested: Draw {
    /// With several draws a position, if it can have them, and with one.
    fn several() -> Self;
    fn one() -> Self;

    /// Changes of the parameters of [`Self::several`].
    fn changes() -> Vec<fn(&mut Self)>;
}

pub(crate) fn seed() -> Seed {
    Seed([Fr::from(123_456u64), Fr::from(987u64)])
}

pub(crate) fn statement<D: Draw>(capacity: usize, distribution: D) -> DrawnStatement<D> {
    let slot = Slot {
        c_seed: seed_commitment(&seed()),
        beacon: Fr::from(5u8),
        slot: Fr::from(6u8),
    };
    DrawnStatement::single([7; 32], slot, capacity, distribution)
}

pub(crate) fn stream<D: Draw>(statement: &DrawnStatement<D>) -> Vec<[u64; 4]> {
    let Slot { beacon, slot, .. } = statement.slots[0];
    let kappa = noise_key(&seed(), beacon, slot);
    words(kappa, statement.shape().unwrap().blocks.count).to_vec()
}

pub(crate) fn draws<D: Draw>(statement: &DrawnStatement<D>) -> Draws {
    Draws::new(statement, &stream(statement)).unwrap()
}

/// The proof of a prover without checks.
pub(crate) fn prove_columns<D: Draw>(statement: &DrawnStatement<D>, draws: &Draws) -> Vec<u8> {
    let draws = vec![draws.clone()];
    let result = prove_draws::<MaliciousProver, D>(statement, &[seed()], draws, None);
    result.unwrap().proof
}

pub(crate) fn proved<D: Draw>(statement: &DrawnStatement<D>, low_memory: bool) -> DrawnProof {
    prove_as::<MaliciousProver, D>(statement, &[seed()], low_memory).unwrap()
}

pub(crate) fn accepted<D: Draw>(statement: &DrawnStatement<D>, proof: &[u8]) -> bool {
    crate::kit::verify(statement, proof).is_ok()
}

/// Whether draws changed by `false_value` get through.
pub(crate) fn forged<D: Draw>(
    statement: &DrawnStatement<D>,
    false_value: impl Fn(&mut Draws),
) -> bool {
    let mut draws = draws(statement);
    false_value(&mut draws);
    accepted(statement, &prove_columns(statement, &draws))
}

pub(crate) fn simulate<D: Draw>(capacity: usize, distribution: D) -> Simulated {
    crate::kit::simulate(&statement(capacity, distribution))
}

/// The t of a draw.
pub(crate) fn t_of(draws: &Draws, n: usize) -> i64 {
    draws.limbs[0][n] + (draws.limbs[1][n] << 16)
}

/// A distance in its limbs: a negative one is wrapped around.
pub(crate) fn put_distance(draws: &mut Draws, n: usize, distance: i64) {
    draws.limbs[2][n] = distance.rem_euclid(1 << 16);
    draws.limbs[3][n] = distance.div_euclid(1 << 16);
}

pub(crate) fn low_memory_is_the_same<D: Tested>() {
    REPEATED.set(true);
    for (capacity, distribution) in [(700, D::one()), (3000, D::several())] {
        let statement = statement(capacity, distribution);
        let [stored, anew] = [false, true].map(|low| proved(&statement, low).proof);
        assert!(accepted(&statement, &anew));
        assert!(stored == anew);
        // Blocks of the released size give one run; blocks of size three give several.
        for how in [LEAST, LESS] {
            let draws = vec![draws(&statement)];
            let few = Some(Recomputed { run: 3, ..how });
            let several = prove_draws::<MaliciousProver, D>(&statement, &[seed()], draws, few);
            assert!(stored == several.unwrap().proof);
        }
    }
    REPEATED.set(false);
    let base = statement(7, D::one());
    let [one, other] = [(); 2].map(|()| proved(&base, true).proof);
    assert_ne!(one, other, "nonces are fresh");
}

/// Draws that no key produces take the same steps as draws that a key produces, up to the closing.
pub(crate) fn same_work<D: Tested>() {
    use ragaudit_field_simd::count;
    let base = statement(700, D::several());
    let honest = stream(&base);
    let upper = highest();
    let maximum = [
        u64::MAX,
        u64::MAX,
        (upper as u64) << 32 | u64::from(u32::MAX),
        (upper >> 32) as u64,
    ];
    let lists = [
        honest.clone(),
        vec![[0; 4]; honest.len()],
        vec![maximum; honest.len()],
    ];
    let work = |words: &[[u64; 4]]| {
        let draws = Draws::new(&base, words).unwrap();
        let rows = base.rows().unwrap();
        let mut session: Session<Prover> = Session::prover(base.transcript(), rows, b"").unwrap();
        count::take();
        let private = private(&base, &[seed()], vec![draws], false);
        drawn_protocol(&mut session, &base, Some(private)).unwrap();
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

pub(crate) fn for_its_statement_only<D: Tested>() {
    let base = statement(20, D::several());
    // A new field has to be changed below.
    let DrawnStatement {
        context: _,
        slots: _,
        capacity: _,
        distribution: _,
    } = &base;
    let mut changes: Vec<Change<DrawnStatement<D>>> = vec![
        Box::new(|s| s.context[0] ^= 1),
        Box::new(|s| s.slots[0].c_seed += Fr::ONE),
        Box::new(|s| s.slots[0].beacon += Fr::ONE),
        Box::new(|s| s.slots[0].slot += Fr::ONE),
        Box::new(|s| s.capacity += 1),
    ];
    for change in D::changes() {
        changes.push(Box::new(move |s| change(&mut s.distribution)));
    }
    only_for(&base, &proved(&base, false).proof, &changes);
    // The key is proved from the seed commitment: another seed makes no proof.
    let mut other = base.clone();
    other.slots[0].c_seed += Fr::ONE;
    assert!(prove(&other, &[seed()], false).is_err());
}

pub(crate) fn transcript_forgets_nothing<D: Tested>() {
    let base = statement(20, D::several());
    let mut other = base.clone();
    other.context[0] ^= 1;
    forgets_nothing(&base, &other, || proved(&base, false).proof);
}

pub(crate) fn skips_no_claim<D: Tested>(each: bool) {
    let base = statement(20, D::several());
    let draws = draws(&base);
    all_are_needed(&base, || prove_columns(&base, &draws), each);
}

/// A prover states a false value and compensates for it in all other claims; the proof is accepted only if one claim is
/// omitted.
pub(crate) fn one_false_value<D: Tested>(name: &str) {
    let base = statement(20, D::several());
    let draws = draws(&base);
    each_claim_excludes_a_false_value(
        name,
        || prove_columns(&base, &draws),
        |proof| crate::kit::verify(&base, proof),
    );
}

/// A value that is not the sum of its draws, and values beyond the capacity.
pub(crate) fn forged_columns<D: Tested>(base: &DrawnStatement<D>) {
    let claim = format!("column claim: {}", D::LABELS.column);
    assert!(forged(base, |_| ()));
    for n in [0, 3, base.capacity - 1] {
        let other = |d: &mut Draws| d.column[n] = i64::from(d.column[n] == 0);
        caught_by(&claim, || forged(base, other));
    }
    caught_by(&claim, || forged(base, |d| d.column.push(1)));
    let places = base.capacity.next_power_of_two();
    caught_by(&claim, || {
        forged(base, |d| {
            d.column.resize(places - 1, 0);
            d.column.push(1);
        })
    });
    // The last row of a small tenant has more places, which no functional reads: their values are arbitrary.
    assert!(forged(base, |d| {
        d.column.resize(places, 0);
        d.column.push(1);
    }));
}

/// The draws end within a block of leaves and within a row. The claims protect the first draw, the last draw of a position and
/// the last draw of all as they protect every other draw, and there is no place for one more value.
pub(crate) fn no_draw_left_out<D: Tested>() {
    let base = statement(1200, D::one());
    for n in [0, 1199] {
        let other = |d: &mut Draws| d.column[n] = i64::from(d.column[n] == 0);
        assert!(!forged(&base, other), "draw {n} left out of its position");
        assert!(!forged(&base, |d| d.limbs[0][n] ^= 1), "draw {n}");
    }
    assert!(!forged(&base, |d| d.column.push(1)), "a value too many");
}

/// word + r has the same residue and other draws; its high part is above the bound.
pub(crate) fn non_canonical_word<D: Tested>() {
    let base = statement(40, D::one());
    let mut all = stream(&base);
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
    assert!(!accepted(&base, &prove_columns(&base, &draws)));
    // A negative remainder, limb by limb: correct except for its range.
    push_upper(&mut forged.high, high, above - highest());
    for (column, forged) in draws.high.iter_mut().zip(&forged.high).skip(HIGH_LIMBS) {
        column[0] = -forged[1];
    }
    caught_by("constraint: lookup layer", || {
        accepted(&base, &prove_columns(&base, &draws))
    });
    // The same with the true high part and the forged low one fails at the word itself.
    all[0][3] |= honest[3] & !0xff;
    let draws = Draws::new(&base, &all).unwrap();
    assert!(!accepted(&base, &prove_columns(&base, &draws)));
}

/// A seed commitment without a known opening.
pub(crate) fn simulated_without_a_seed<D: Tested>() {
    let real = proved(&statement(40, D::several()), false);
    let mut public = statement(40, D::several());
    public.slots[0].c_seed = Fr::from(31_337u64);
    simulated(&public, &real.proof);
}

/// A test of each of these for a distribution.
macro_rules! drawn_tests {
    ($name:literal, $distribution:ty) => {
        use crate::drawn::tests as of;

        #[test]
        fn low_memory_gives_the_same_proof() {
            of::low_memory_is_the_same::<$distribution>();
        }

        #[test]
        fn proofs_take_the_same_work() {
            of::same_work::<$distribution>();
        }

        #[test]
        fn a_proof_is_for_its_statement_only() {
            of::for_its_statement_only::<$distribution>();
        }

        #[test]
        fn a_transcript_forgets_nothing() {
            of::transcript_forgets_nothing::<$distribution>();
        }

        #[test]
        fn claims_and_openings_are_all_needed() {
            of::skips_no_claim::<$distribution>(false);
        }

        #[test]
        #[ignore = "a prover skips each single claim in turn (a minute): make test-full"]
        fn every_single_claim_is_needed() {
            of::skips_no_claim::<$distribution>(true);
        }

        #[test]
        #[ignore = "a prover states one false value, for each claim (15 s to a minute): make test-full"]
        fn each_claim_stands_against_one_false_value() {
            of::one_false_value::<$distribution>($name);
        }

        #[test]
        fn no_draw_is_left_out_or_added() {
            of::no_draw_left_out::<$distribution>();
        }

        #[test]
        fn a_non_canonical_word_is_refused() {
            of::non_canonical_word::<$distribution>();
        }

        #[test]
        fn proofs_are_simulated_without_a_seed() {
            of::simulated_without_a_seed::<$distribution>();
        }
    };
}
pub(crate) use drawn_tests;

#[test]
fn words_are_cut_below_the_modulus() {
    let largest = (-Fr::ONE).into_bigint().0;
    assert_eq!(highest(), upper(&largest) - 1);
    assert_eq!(high(&largest) >> 54, 0);
}

/// A word of the modulus's high part has a proof as any other, unless 40 bits more are the modulus's too.
#[test]
fn words_up_to_the_modulus_are_provable() {
    let base = statement(1, Noise { gains: vec![1] });
    let mut word = (-Fr::ONE).into_bigint().0;
    assert!(Draws::new(&base, &[word]).is_err());
    word[2] -= 1 << (BELOW_BITS - 128);
    let draws = Draws::new(&base, &[word]).unwrap();
    let rest = &draws.high[HIGH_LIMBS..];
    assert!(rest.iter().all(|limb| limb[0] == 0));
}
