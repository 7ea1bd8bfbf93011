//! Answers of sampled tenants, and of those without noise.
use super::*;
use crate::cheat::{answers as said, end_is_held_by, Log};
use crate::engine::Fast;
use crate::group::Fr;
use crate::mle::prefix;
use crate::simulator::Simulates;
use ark_ff::{AdditiveGroup, Field};

/// Kept or not, with several gains, one or none; at the borders of blocks of draws and of rows.
fn sampled_cases() -> Vec<Case> {
    let exact = |sizes| any_case([LO, HI, LATTICE], sizes, &[], None);
    vec![
        exact([30, 37, 70, 4]),
        exact([1, 1, 1, 1]),
        exact([1024, 1024, 3, 5]),
        sampled([30, 37, 70, 4], &[]),
        sampled([1, 1, 2, 1], &[]),
        sampled([2, 2, 2, 2], &[1]),
        sampled([70, 80, 8, 5], &[1, 8, 64]),
        sampled([81, 81, 8, 81], &[]),
        sampled([1000, 1025, 3, 5], &[1, 8]),
    ]
}

#[test]
fn sampled_answers_verify() {
    for case in sampled_cases() {
        let statement = case.statement();
        let prove =
            |low| prove_query(&statement, &case.answer, case.certified(), &case.key, low).unwrap();
        verify_query(&statement, &prove(false)).unwrap();
        let witness = case.witness();
        assert!(case.forged(&witness));
        if let Some(kept) = &case.kept {
            let bits = &kept.opening.as_ref().unwrap().values;
            let scored = bits.iter().zip(&witness.quantised).map(|(k, u)| k * u);
            assert!(scored.eq(witness.scored.iter().copied()));
        }
        REPEATED.set(true);
        let [kept, anew] = [false, true].map(prove);
        REPEATED.set(false);
        assert!(kept == anew, "in low memory another proof");
    }
}

/// Whoever ends the selection's sumcheck in a false value says another one in a message behind it: products and columns'
/// values are held by a claim each.
#[test]
fn the_selection_ends_in_the_columns_values() {
    let case = sampled([30, 37, 3, 4], &[1, 8]);
    let statement = case.statement();
    let within = |log: &Log| {
        let of_rounds = said(log, "selection");
        prefix(&of_rounds[of_rounds.len() / 2..], 37)
    };
    let chi = |log: &Log| said(log, "selected rows")[0];
    type Factor<'a> = &'a dyn Fn(&Log) -> Fr;
    let claims: [(&str, &str, usize, Factor); 4] = [
        ("product: selection", "selection", 3, &|log| {
            within(log).double()
        }),
        ("product: selected rows", "selection", 4, &chi),
        ("product: kept rows", "kept rows", 3, &|log| {
            chi(log).square()
        }),
        ("column claim: kept rows", "kept rows", 2, &|log| {
            -chi(log).square()
        }),
    ];
    for (claim, label, place, factor) in claims {
        end_is_held_by(
            claim,
            ["selection", label],
            place,
            factor,
            || prove_query(&statement, &case.answer, case.certified(), &case.key, false).unwrap(),
            |proof| verify_query(&statement, proof),
        );
    }
}

/// The first positions of the kept ones, in the order of the relation; what is not kept scores 0 and can be listed.
#[test]
fn the_exact_first_of_the_kept_are_listed() {
    let case = sampled([30, 37, 70, 4], &[]);
    let bits = &case.kept.as_ref().unwrap().opening.as_ref().unwrap().values;
    let window = ScoreWindow::new(LO, HI, LATTICE).unwrap();
    let scores: Vec<i32> = case.answer.scores.iter().map(|s| *s as i32).collect();
    let kept: Vec<i32> = scores
        .iter()
        .zip(bits)
        .map(|(s, k)| s * *k as i32)
        .collect();
    let first = |scores: &[i32]| -> Vec<i64> {
        let listed = ragaudit_field_simd::selection::noised_top_k(scores, &window, &[0; 37], 4);
        listed.unwrap().iter().map(|p| *p as i64).collect()
    };
    assert_eq!(case.answer.positions, first(&kept));
    assert_ne!(case.answer.positions, first(&scores), "the sample matters");
    // Without a document there are more positions than scores above 0: the order decides.
    let mut empty = sampled([1, 9, 3, 4], &[]);
    assert!(empty.lists(empty.answer.positions.clone()));
}

#[test]
fn a_sampled_proof_is_for_its_statement_only() {
    let case = sampled([30, 37, 70, 4], &[1, 8]);
    let base = case.statement();
    let proof = prove_query(&base, &case.answer, case.certified(), &case.key, false).unwrap();
    verify_query(&base, &proof).unwrap();
    let [slot, blinded] = [9, 8].map(|slot| coins(37, slot));
    let other = certificate(37, &[1, 8], 5);
    type Change<'a> = Box<dyn Fn(&mut QueryStatement<'a>) + 'a>;
    let changes: Vec<Change> = vec![
        Box::new(|s| s.kept = Some(&slot.rows)),
        // The same coins under other blindings.
        Box::new(|s| s.kept = Some(&blinded.rows)),
        Box::new(|s| s.kept = Some(base.noise)),
        Box::new(|s| s.kept = None),
        Box::new(|s| s.noise = &other.rows),
        Box::new(|s| (s.noise, s.gains) = (&[], Vec::new())),
        Box::new(|s| s.gains = vec![1, 7]),
        Box::new(|s| s.context[5] ^= 1),
        Box::new(|s| s.cq += Fr::ONE),
        Box::new(|s| s.htopk += Fr::ONE),
        Box::new(|s| s.lattice *= 2),
        Box::new(|s| s.listed -= 1),
    ];
    for (i, change) in changes.iter().enumerate() {
        let mut other = base.clone();
        change(&mut other);
        assert!(verify_query(&other, &proof).is_err(), "change {i}");
        let [changed, before] = [&other, &base].map(|s| s.transcript::<Hash>().digest());
        assert_ne!(changed, before, "change {i}");
    }
    // Nor is one of an answer without noise or sample for a tenant that has either.
    let exact = any_case([LO, HI, LATTICE], [30, 37, 70, 4], &[], None);
    let statement = exact.statement();
    let proof = prove_query(
        &statement,
        &exact.answer,
        exact.certified(),
        &exact.key,
        false,
    );
    let proof = proof.unwrap();
    verify_query(&statement, &proof).unwrap();
    let kept = QueryStatement {
        kept: Some(&slot.rows),
        ..statement.clone()
    };
    let noised = QueryStatement {
        noise: &other.rows,
        gains: vec![1, 8],
        ..statement
    };
    assert!(verify_query(&kept, &proof).is_err());
    assert!(verify_query(&noised, &proof).is_err());
}

#[test]
fn openings_are_those_that_the_statement_asks_for() {
    let both = sampled([30, 37, 70, 4], &[1]);
    let exact = any_case([LO, HI, LATTICE], [30, 37, 70, 4], &[], None);
    let [noise, kept] = [Some(&both.noise), both.kept.as_ref()];
    let none = None;
    for (case, certified) in [
        (&both, [noise, none]),
        (&both, [none, kept]),
        (&exact, [noise, none]),
        (&exact, [none, kept]),
    ] {
        let [noise, kept] = certified;
        let certified = Certified { noise, kept };
        let made = prove_query(&case.statement(), &case.answer, certified, &case.key, false);
        assert!(matches!(made, Err(Error::Unsatisfied(_))));
    }
}

#[test]
fn a_sampled_transcript_forgets_nothing() {
    let case = sampled([5, 6, 3, 2], &[1, 8]);
    let base = case.statement();
    let prove = || prove_query(&base, &case.answer, case.certified(), &case.key, false).unwrap();
    nothing_is_forgotten(prove, |proof| verify_query(&base, proof));
}

fn skips_no_claim(each: bool) {
    for case in [sampled([5, 6, 3, 2], &[1]), sampled([5, 6, 3, 2], &[])] {
        let base = case.statement();
        let witness = case.witness();
        let prove = || {
            let openings = case.openings();
            prove_with::<Cheat>(&base, &case.answer, &witness, openings, &case.key, None).unwrap()
        };
        no_claim_is_skipped(prove, |proof| verify_query(&base, proof), each);
        every_point_is_opened(prove, |proof| verify_query(&base, proof));
    }
}

#[test]
fn sampled_claims_and_openings_are_all_needed() {
    skips_no_claim(false);
}

#[test]
#[ignore = "a minute"]
fn every_single_sampled_claim_is_needed() {
    skips_no_claim(true);
}

/// A witness in which a position scores so much, the list and its order being what they were.
fn scoring(case: &Case, position: usize, scored: i64) -> Witness {
    let mut witness = case.witness();
    let by = scored - witness.scored[position];
    witness.scored[position] = scored;
    // Not listed, so its distance is what its key lacks of the least listed one.
    witness.distances[position] -= by << case.index.layout.variables;
    witness
}

#[test]
fn what_positions_score_is_their_own() {
    for gains in [&[1, 8][..], &[]] {
        let case = sampled([30, 37, 70, 4], gains);
        let bits = case
            .kept
            .as_ref()
            .unwrap()
            .opening
            .as_ref()
            .unwrap()
            .values
            .clone();
        let honest = case.witness();
        let unlisted = |p: &usize| !case.answer.positions.contains(&(*p as i64));
        let least = honest.noised.last().unwrap();
        let room = |p: &usize| honest.distances[*p] >> case.index.layout.variables;
        // One that is not kept and yet scores, one that is kept and scores more, less, or nothing.
        let unkept = (0..30)
            .filter(unlisted)
            .find(|p| bits[*p] == 0 && honest.quantised[*p] > 0 && room(p) > honest.quantised[*p])
            .unwrap_or_else(|| panic!("no such position below {least}"));
        let kept = (0..30)
            .filter(unlisted)
            .find(|p| bits[*p] == 1 && honest.quantised[*p] > 1 && room(p) > 1)
            .unwrap();
        let u = honest.quantised[kept];
        for (position, scored) in [
            (unkept, honest.quantised[unkept]),
            (kept, 0),
            (kept, u - 1),
            (kept, u + 1),
        ] {
            let witness = scoring(&case, position, scored);
            caught_by("constraint: selection", || case.forged(&witness));
        }
        assert!(case.forged(&scoring(&case, kept, u)));
    }
}

/// The list that the scores would give if all were kept, by a prover who says so of its certificate's column.
#[test]
fn kept_positions_are_the_certificate_s() {
    for gains in [&[1, 8][..], &[]] {
        let base = sampled([30, 37, 70, 4], gains);
        let bits = base
            .kept
            .as_ref()
            .unwrap()
            .opening
            .as_ref()
            .unwrap()
            .values
            .clone();
        for position in [0, 29, 36] {
            let mut case = sampled([30, 37, 70, 4], gains);
            let kept = case.kept.as_mut().unwrap();
            let mut opening = kept.opening.as_ref().unwrap().as_ref().clone();
            opening.values[position] ^= 1;
            kept.opening = Some(Arc::new(opening));
            let (witness, order) = (case.witness(), case.order());
            assert!(!case.forged(&witness), "a coin of the other value");
            assert!(!case.lists(order), "and the list that it makes");
        }
        // Another slot's coins, proved truly under that slot's certificate and said to be this one's.
        let mut other = sampled([30, 37, 70, 4], gains);
        other.kept = Some(coins(37, 9));
        let openings = other.kept.as_ref().unwrap().opening.as_ref().unwrap();
        assert_ne!(openings.values, bits);
        let order = other.order();
        assert!(other.lists(order), "of its own slot it is true");
        let proof = {
            let witness = other.witness();
            let statement = other.statement();
            let openings = other.openings();
            prove_with::<Cheat>(
                &statement,
                &other.answer,
                &witness,
                openings,
                &other.key,
                None,
            )
            .unwrap()
        };
        let claimed = QueryStatement {
            kept: base.kept.as_ref().map(|kept| &kept.rows[..]),
            htopk: other.htopk,
            ..base.statement()
        };
        assert!(verify_query(&claimed, &proof).is_err());
        // A prover who absorbs the right certificate's rows and opens the other's.
        let session: Result<Session<Cheat>> = Session::prover(
            claimed.transcript(),
            claimed.index.layout.row_variables,
            b"",
        );
        let witness = other.witness();
        let [noise, kept] = other.openings();
        let secret = Secret {
            answer: &other.answer,
            witness: &witness,
            noise,
            kept,
        };
        let (own, blinding) = (other.statement(), |place| other.key.blinding(place));
        let private = secret.private(&own, &blinding);
        let closed = answer_protocol(session.unwrap(), &own, Some(private)).unwrap();
        let proof: Vec<u8> = closed.into();
        assert!(verify_query(&claimed, &proof).is_err());
    }
}

/// Other coins: the same messages in the same order, as many bytes; another statement's kind has other labels.
#[test]
fn sampled_proofs_have_one_shape() {
    let shape = |case: &Case| {
        let statement = case.statement();
        let prove =
            || prove_query(&statement, &case.answer, case.certified(), &case.key, false).unwrap();
        let (proof, log) = run(Without::Nothing, prove);
        (proof.len(), log.trace)
    };
    let base = sampled([30, 37, 70, 4], &[]);
    let mut other = sampled([30, 37, 70, 4], &[]);
    other.kept = Some(coins(37, 9));
    let order = other.order();
    assert!(other.lists(order));
    assert_eq!(shape(&base), shape(&other));
}

#[test]
fn sampled_proofs_are_simulated_without_a_query() {
    for case in sampled_cases() {
        let real = prove_query(
            &case.statement(),
            &case.answer,
            case.certified(),
            &case.key,
            false,
        )
        .unwrap();
        let mut public = case.statement();
        (public.cq, public.htopk) = (Fr::from(31_337u64), Fr::from(31_338u64));
        let rows = public.index.layout.row_variables;
        let session = Session::simulator(public.transcript(), rows);
        let simulated = answer_protocol(session, &public, None).unwrap();
        assert_eq!(simulated.proof.len(), real.len());
        assert!(verify_query(&public, &simulated.proof).is_err());
        let told = simulated.tell(public.transcript());
        let session: Session<Cheat> = Session::verifier(told, rows, &simulated.proof);
        let equation: Equation = answer_protocol(session, &public, None).unwrap().into();
        assert!(equation.holds::<Fast>(&public.index.points));
    }
}
