use super::*;
use crate::tests::{check, prove_anyway};
use ark_ff::{BigInt, UniformRand};
use ragaudit_core::lanes::tracked::Tracked;
use ragaudit_core::poseidon::{hash_list, permute_all};

fn words(kappa: Fr, blocks: usize) -> Vec<Fr> {
    let mut states: Vec<State> = (0..blocks).map(|b| block_state(&kappa, b)).collect();
    permute_all(&mut states);
    let mut out: Vec<Fr> = states.iter().flat_map(|s| s[1..].to_vec()).collect();
    out.resize(16 << block_variables(blocks, 3), Fr::ZERO);
    out
}

/// Proves the words of a stream and one list hash of 20 hidden elements, with lies where asked.
fn run(blocks: usize, lie_word: u64, lie_kappa: u64, lie_hash: u64) -> bool {
    let kappa = Fr::from(77u8);
    let list: Vec<Fr> = (0..20u64).map(|i| Fr::from(i * i + 1)).collect();
    let protocol = |session: &mut Session, prover: bool| {
        let hidden = session.send("list", 20, prover.then_some(&list))?;
        let held = kappa + Fr::from(lie_kappa);
        let key = session.send("kappa", 1, prover.then_some(&[held]))?[0];
        let output = hash_list(6, &list) + Fr::from(lie_hash);
        let exprs: Vec<Expr> = hidden.into_iter().map(Expr::from).collect();
        let calls = Call::list(session, 6, &exprs, output)?;
        let variables = block_variables(blocks, calls.len());
        let r = session.challenges("point", WORD_VARIABLES + variables);
        let mut table = words(kappa, blocks);
        table[37] += Fr::from(lie_word);
        table.truncate(1 << r.len());
        let value = crate::mle::evaluate(&table, &r);
        let (word_point, block_point) = r.split_at(WORD_VARIABLES);
        let stream = Stream {
            kappa: key.into(),
            blocks,
            word_point: word_point.to_vec(),
            block_point: block_point.to_vec(),
            value: value.into(),
        };
        permutations(session, Some(stream), calls)
    };
    let proof = prove_anyway(4, &protocol).unwrap();
    check(4, &proof, &protocol).is_ok_and(|e| e.holds(&[]))
}

#[test]
fn streams_and_hashes() {
    // Fewer blocks than lanes, an odd number, and several tasks of pairs.
    for blocks in [1, 2 * TASK + 5] {
        assert!(run(blocks, 0, 0, 0));
    }
    assert!(run(5, 0, 0, 0));
    assert!(!run(5, 1, 0, 0), "a word that is not the stream's");
    assert!(!run(5, 0, 1, 0), "words of another key");
    assert!(!run(5, 0, 0, 1), "a hash that is not the list's");
}

/// Extreme residues and random ones.
fn residues(count: usize) -> Vec<Fr> {
    let mut rng = ark_std::test_rng();
    let extreme = [Fr::ZERO, -Fr::ONE, Fr::new_unchecked(BigInt::one())];
    let mut out: Vec<Fr> = extreme.repeat(count / 12);
    out.resize_with(count, || Fr::rand(&mut rng));
    out
}

#[test]
fn kernels_agree_with_the_field_within_their_bounds() {
    let t = residues(6 * TASK);
    let (pairs, rest) = t.split_at(2 * TASK);
    let (weights, rest) = rest.split_at(TASK);
    let (x, y) = rest.split_at(TASK);
    let r = t[1500];

    let mut expected = [Fr::ZERO; 6];
    let mut steps = Fr::ZERO;
    for (pair, w) in pairs.chunks(2).zip(weights) {
        let (a, d) = (pair[0], pair[1] - pair[0]);
        for (k, sum) in expected.iter_mut().enumerate() {
            *sum += *w * a.pow([5 - k as u64]) * d.pow([k as u64]);
        }
        steps += *w * d;
    }
    assert_eq!(
        power_sums_lanes::<_, true>(Tracked, pairs, weights),
        expected
    );
    assert_eq!(power_sums::<true>(pairs, weights), expected);
    let short = power_sums::<true>(&pairs[..26], &weights[..13]);
    assert_eq!(
        power_sums_lanes::<_, true>(Portable, &pairs[..26], &weights[..13]),
        short
    );
    expected[0] = Fr::ZERO;
    assert_eq!(power_sums::<false>(pairs, weights), expected);
    assert_eq!(step_sum_lanes(Tracked, pairs, weights), steps);
    assert_eq!(step_sum(pairs, weights), steps);

    let folded: Vec<Fr> = pairs.chunks(2).map(|p| p[0] + r * (p[1] - p[0])).collect();
    let mut out = vec![Fr::ZERO; TASK];
    fold_lanes(Tracked, &mut out, pairs, r);
    assert_eq!(out, folded);
    let mut out = vec![Fr::ZERO; TASK - 3];
    fold(&mut out, &pairs[..2 * TASK - 6], r);
    assert_eq!(out, folded[..TASK - 3]);

    let terms: Vec<(&[Fr], Fr)> = (0..WIDTH + 1)
        .map(|i| (&t[i..i + TASK], t[900 + i]))
        .collect();
    let sum = |i: usize| terms.iter().map(|(v, f)| v[i] * f).sum::<Fr>() + r + y[0] * fifth(x[i]);
    let expected: Vec<Fr> = (0..TASK).map(sum).collect();
    let mut out = vec![Fr::ZERO; TASK];
    combine_lanes(Tracked, &mut out, &terms, 0, r, x, y[0]);
    assert_eq!(out, expected);
    let table = |values: &'_ [Fr]| Table {
        values: Cow::Owned(values[..TASK - 3].to_vec()),
        rest: values[TASK - 1],
    };
    let tables: Vec<(Table, Fr)> = terms.iter().map(|(v, f)| (table(v), *f)).collect();
    let combined = combine(&tables, r, &table(x), y[0]);
    assert_eq!(combined.values[..], expected[..TASK - 3]);
    assert_eq!(combined.rest, expected[TASK - 1]);
}
