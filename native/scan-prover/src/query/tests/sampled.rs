//! Answers of sampled tenants, and of those without noise.
use super::*;
use crate::malicious::{answers as said, end_is_held_by, Log};
use crate::mle::prefix;
use ark_ff::AdditiveGroup;

/// With and without a sample, with several gains, one or none; at the borders of blocks of draws and of rows.
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
        let prove = |low| case.prove(low);
        verify(&case.statement(), &prove(false)).unwrap();
        let witness = case.witness();
        assert!(case.forged(&witness));
        if let Some(sample) = &case.sample {
            let bits = &sample.opening.as_ref().unwrap().values;
            let scored = bits.iter().zip(&witness.quantised).map(|(k, u)| k * u);
            assert!(scored.eq(witness.scored.iter().copied()));
        }
        REPEATED.set(true);
        let [sample, anew] = [false, true].map(prove);
        REPEATED.set(false);
        assert!(sample == anew, "in low memory another proof");
    }
}

/// A prover that ends the selection's sumcheck in a false value compensates for it in a later message: one claim each protects
/// products and columns' values.
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
            || case.prove(false),
            |proof| verify(&statement, proof),
        );
    }
}

/// The list has the first sampled positions, in the order of the relation; a position outside the sample scores 0 and can be
/// listed.
#[test]
fn the_exact_first_of_the_sample_are_listed() {
    let case = sampled([30, 37, 70, 4], &[]);
    let bits = case.bernoulli();
    let window = ScoreWindow::new(LO, HI, LATTICE).unwrap();
    let scores: Vec<i32> = case.answer.scores.iter().map(|s| *s as i32).collect();
    let sample: Vec<i32> = scores
        .iter()
        .zip(bits)
        .map(|(s, k)| s * *k as i32)
        .collect();
    let first = |scores: &[i32]| -> Vec<i64> {
        let listed = ragaudit_field_simd::selection::noised_top_k(scores, &window, &[0; 37], 4);
        listed.unwrap().iter().map(|p| *p as i64).collect()
    };
    assert_eq!(case.answer.positions, first(&sample));
    assert_ne!(case.answer.positions, first(&scores), "the sample matters");
    // Without a document there are more positions than scores above 0: the order decides.
    let mut empty = sampled([1, 9, 3, 4], &[]);
    assert!(empty.lists(empty.answer.positions.clone()));
}

#[test]
fn a_sampled_proof_is_for_its_statement_only() {
    let case = sampled([30, 37, 70, 4], &[1, 8]);
    let base = case.statement();
    let proof = case.prove(false);
    let [slot, blinded] = [9, 8].map(|slot| bernoulli(37, slot));
    let other = noise_proof(37, &[1, 8], 5);
    let changes: Vec<Change<QueryStatement>> = vec![
        Box::new(|s| s.sample = Some(&slot.rows)),
        // The same Bernoulli bits under other blindings.
        Box::new(|s| s.sample = Some(&blinded.rows)),
        Box::new(|s| s.sample = Some(base.noise[0])),
        Box::new(|s| s.sample = None),
        Box::new(|s| s.noise = vec![&other.rows]),
        Box::new(|s| (s.noise, s.gains) = (Vec::new(), Vec::new())),
        Box::new(|s| s.gains = vec![1, 7]),
        Box::new(|s| s.context[5] ^= 1),
        Box::new(|s| s.records[0][0] += Fr::ONE),
        Box::new(|s| s.records[0][1] += Fr::ONE),
        Box::new(|s| s.lattice *= 2),
        Box::new(|s| s.listed -= 1),
    ];
    only_for(&base, &proof, &changes);
    // Nor is one of an answer without noise or sample for a tenant that has either.
    let exact = any_case([LO, HI, LATTICE], [30, 37, 70, 4], &[], None);
    let (statement, proof) = (exact.statement(), exact.prove(false));
    verify(&statement, &proof).unwrap();
    let sample = QueryStatement {
        sample: Some(&slot.rows),
        ..statement.clone()
    };
    let noised = QueryStatement {
        noise: vec![&other.rows],
        gains: vec![1, 8],
        ..statement
    };
    assert!(verify(&sample, &proof).is_err());
    assert!(verify(&noised, &proof).is_err());
}

#[test]
fn openings_are_those_that_the_statement_asks_for() {
    let both = sampled([30, 37, 70, 4], &[1]);
    let exact = any_case([LO, HI, LATTICE], [30, 37, 70, 4], &[], None);
    let (noise, sample) = (both.noise_columns(), both.sample.as_ref());
    for (case, noise, sample) in [
        (&both, noise, None),
        (&both, &[][..], sample),
        (&exact, noise, None),
        (&exact, &[], sample),
    ] {
        let result = case.try_prove(ProvenColumns { noise, sample }, false);
        assert!(matches!(result, Err(Error::Unsatisfied(_))));
    }
}

#[test]
fn a_sampled_transcript_forgets_nothing() {
    let case = sampled([5, 6, 3, 2], &[1, 8]);
    let (base, mut other) = (case.statement(), case.statement());
    other.context[0] ^= 1;
    forgets_nothing(&base, &other, || case.prove(false));
}

fn each_skips_no_claim(each: bool) {
    for gains in [&[1][..], &[]] {
        skips_no_claim(&sampled([5, 6, 3, 2], gains), each);
    }
}

#[test]
fn sampled_claims_and_openings_are_all_needed() {
    each_skips_no_claim(false);
}

#[test]
#[ignore = "a prover of a sampled tenant skips each single claim in turn (a minute): make test-full"]
fn every_single_sampled_claim_is_needed() {
    each_skips_no_claim(true);
}

/// A witness in which a position has this score, with unchanged list and order.
fn scoring(case: &Case, position: usize, scored: i64) -> Witness {
    let mut witness = case.witness();
    let by = scored - witness.scored[position];
    witness.scored[position] = scored;
    // The position is not listed, so its distance is the least listed key minus its key.
    witness.distances[position] -= by << case.index.layout.variables;
    witness
}

#[test]
fn what_positions_score_is_their_own() {
    for gains in [&[1, 8][..], &[]] {
        let case = sampled([30, 37, 70, 4], gains);
        let bits = case.bernoulli().to_vec();
        let honest = case.witness();
        let unlisted = |p: &usize| !case.answer.positions.contains(&(*p as i64));
        let minimum = honest.noised.last().unwrap();
        let room = |p: &usize| honest.distances[*p] >> case.index.layout.variables;
        // A position outside the sample that scores; a sampled position that scores more, less, or 0.
        let unsampled = (0..30)
            .filter(unlisted)
            .find(|p| bits[*p] == 0 && honest.quantised[*p] > 0 && room(p) > honest.quantised[*p])
            .unwrap_or_else(|| panic!("no such position below {minimum}"));
        let sample = (0..30)
            .filter(unlisted)
            .find(|p| bits[*p] == 1 && honest.quantised[*p] > 1 && room(p) > 1)
            .unwrap();
        let u = honest.quantised[sample];
        for (position, scored) in [
            (unsampled, honest.quantised[unsampled]),
            (sample, 0),
            (sample, u - 1),
            (sample, u + 1),
        ] {
            let witness = scoring(&case, position, scored);
            caught_by("constraint: selection", || case.forged(&witness));
        }
        assert!(case.forged(&scoring(&case, sample, u)));
    }
}

/// The list of the scores without a sample, by a prover that claims it for its sampling proof's column.
#[test]
fn sampled_positions_are_the_sampling_proof_s() {
    for gains in [&[1, 8][..], &[]] {
        let base = sampled([30, 37, 70, 4], gains);
        let bits = base.bernoulli().to_vec();
        for position in [0, 29, 36] {
            let mut case = sampled([30, 37, 70, 4], gains);
            let sample = case.sample.as_mut().unwrap();
            let mut opening = sample.opening.as_ref().unwrap().as_ref().clone();
            opening.values[position] ^= 1;
            sample.opening = Some(Arc::new(opening));
            let (witness, order) = (case.witness(), case.order());
            assert!(!case.forged(&witness), "a coin of the other value");
            assert!(!case.lists(order), "and the list that it makes");
        }
        // Another slot's bits, truthfully proved for that slot, and claimed for this one.
        let mut other = sampled([30, 37, 70, 4], gains);
        other.sample = Some(bernoulli(37, 9));
        let openings = other.sample.as_ref().unwrap().opening.as_ref().unwrap();
        assert_ne!(openings.values, bits);
        let order = other.order();
        assert!(other.lists(order), "of its own slot it is true");
        let proof = other.prove_witness(&other.witness());
        let claimed = QueryStatement {
            sample: base.sample.as_ref().map(|sample| &sample.rows[..]),
            records: vec![[base.cq, other.htopk]],
            ..base.statement()
        };
        assert!(verify(&claimed, &proof).is_err());
        // A prover that absorbs the right proof's rows and opens the other's.
        assert!(verify(&claimed, &other.said_of(&claimed)).is_err());
    }
}

/// Other Bernoulli bits: the same messages in the same order, as many bytes; another statement's kind has other labels.
#[test]
fn sampled_proofs_have_one_shape() {
    let shape = |case: &Case| crate::kit::shape(|| case.prove(false));
    let base = sampled([30, 37, 70, 4], &[]);
    let mut other = sampled([30, 37, 70, 4], &[]);
    other.sample = Some(bernoulli(37, 9));
    let order = other.order();
    assert!(other.lists(order));
    assert_eq!(shape(&base), shape(&other));
}

#[test]
fn sampled_proofs_are_simulated_without_a_query() {
    for case in sampled_cases() {
        let mut public = case.statement();
        public.records = vec![[31_337u64, 31_338].map(Fr::from)];
        simulated(&public, &case.prove(false));
    }
}
