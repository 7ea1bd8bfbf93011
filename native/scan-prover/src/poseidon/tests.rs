use super::*;
use crate::engine::Fast;
use crate::expr::Expr;
use crate::group::Fr;
use crate::malicious::MaliciousProver;
use crate::prover::digits::TASK;
use crate::session::Session;
use crate::tests::{check, prove_anyway};
use ark_ff::AdditiveGroup;
use ragaudit_field_simd::noise::block_state;
use ragaudit_field_simd::poseidon::State;
use ragaudit_field_simd::poseidon::{hash_list, permute_all};

fn words(kappa: Fr, blocks: usize) -> Vec<Fr> {
    let mut states: Vec<State> = (0..blocks).map(|b| block_state(&kappa, b)).collect();
    permute_all(&mut states);
    let mut out: Vec<Fr> = states.iter().flat_map(|s| s[1..].to_vec()).collect();
    out.resize(16 << block_variables(blocks, 3), Fr::ZERO);
    out
}

/// Proves the words of a stream and one list hash of 20 hidden elements, with false values where requested.
fn run(blocks: usize, false_word: u64, false_kappa: u64, false_hash: u64) -> bool {
    let kappa = Fr::from(77u8);
    let list: Vec<Fr> = (0..20u64).map(|i| Fr::from(i * i + 1)).collect();
    let protocol = |session: &mut Session<MaliciousProver>, prover: bool| {
        let hidden = session.send("list", 20, prover.then_some(&list))?;
        let value = kappa + Fr::from(false_kappa);
        let key = session.send("kappa", 1, prover.then_some(&[value]))?[0];
        let output = hash_list(6, &list) + Fr::from(false_hash);
        let exprs: Vec<Expr> = hidden.into_iter().map(Expr::from).collect();
        let calls = Call::list(session, 6, &exprs, output)?;
        let variables = block_variables(blocks, calls.len());
        let r = session.challenges("point", WORD_VARIABLES + variables);
        let mut table = words(kappa, blocks);
        table[37] += Fr::from(false_word);
        table.truncate(1 << r.len());
        let value = crate::mle::evaluate(&table, &r);
        let (word_point, block_point) = r.split_at(WORD_VARIABLES);
        let stream = Stream {
            kappas: vec![key.into()],
            record_point: Vec::new(),
            blocks,
            word_point: word_point.to_vec(),
            block_point: block_point.to_vec(),
            value: value.into(),
        };
        permutations(session, Some(stream), calls)
    };
    let proof = prove_anyway(4, &protocol).unwrap();
    check(4, &proof, &protocol).is_ok_and(|e| e.holds::<Fast>(&[]))
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
