//! Changed proofs: every range of bytes in a proof of each kind, single and in a batch, with all changes of a forger or a
//! damaged disk. The verifier refuses all of them and never panics.
use ark_bn254::Fq;
use ark_ff::{BigInteger, PrimeField};
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{Rng, SeedableRng};
use ragaudit_field_simd::selection::{noised_top_k, ScoreWindow};
use rayon::prelude::*;

use crate::drawn::{self, DrawnProof, Slot};
use crate::fixtures::{list_hash, scores, vector_hash};
use crate::group::{Fr, ENCODED};
use crate::index::{commit_index, IndexCommitment, IndexKey};
use crate::kit::verify;
use crate::noise::{Noise, NoiseStatement};
use crate::prover::Prover;
use crate::query::{prove_as, Answer, ProvenColumns, QueryStatement};
use crate::words::{seed_commitment, Seed};
use crate::{answer, bernoulli, coalition, document_table, embed, pooled_listing};

/// Ways to change a proof. The first ones keep its length.
const WAYS: usize = 14;

/// A changed copy: the `i`-th of `count` starts at the `i`-th part of the proof, so that no range is left out.
fn mutation(proof: &[u8], i: usize, count: usize) -> Vec<u8> {
    let mut rng = StdRng::seed_from_u64(i as u64);
    let mut out = proof.to_vec();
    let (from, to) = (
        i * proof.len() / count,
        ((i + 1) * proof.len()).div_ceil(count),
    );
    let at = rng.gen_range(from..to.max(from + 1));
    let word = at / ENCODED * ENCODED;
    let words = proof.len() / ENCODED;
    let other = rng.gen_range(0..words) * ENCODED;
    let add = |word: &mut [u8], modulus: &[u8]| {
        // The same residue, not below the modulus; with wrap-around where it does not fit.
        let mut carry = 0u16;
        for (b, m) in word.iter_mut().rev().zip(modulus.iter().rev()) {
            carry += u16::from(*b) + u16::from(*m);
            *b = carry as u8;
            carry >>= 8;
        }
    };
    match rng.gen_range(0..WAYS) {
        0 => out[at] ^= 1 << rng.gen_range(0..8),
        1 => out[at] = out[at].wrapping_add(rng.gen_range(1..=255)),
        2 => {
            let end = proof.len().min(at + rng.gen_range(1..200));
            rng.fill(&mut out[at..end]);
        }
        // The opposite point, or a scalar that is too large.
        3 => out[word] ^= 0x80,
        4 => {
            out[word..word + ENCODED].fill(0);
            out[word] = 0x40;
        }
        5 => out[word..word + ENCODED].fill(0),
        6 => out[word..word + ENCODED].fill(0xff),
        7 => out.copy_within(other..other + ENCODED, word),
        8 => (0..ENCODED).for_each(|k| out.swap(word + k, other + k)),
        9 => add(&mut out[word..word + ENCODED], &Fr::MODULUS.to_bytes_be()),
        10 => add(&mut out[word..word + ENCODED], &Fq::MODULUS.to_bytes_be()),
        11 => out.truncate(at),
        12 => drop(out.drain(word..word + ENCODED)),
        _ => drop(out.splice(at..at, proof[other..other + ENCODED].to_vec())),
    }
    out
}

/// Holds that `count` mutations of a proof are refused. Some leave it as it is (a word exchanged for its equal): those
/// are the proof.
pub(crate) fn refused(
    name: &str,
    proof: &[u8],
    count: usize,
    accepts: impl Fn(&[u8]) -> bool + Sync,
) {
    assert!(accepts(proof), "{name}");
    let changed: usize = (0..count)
        .into_par_iter()
        .map(|i| {
            let mutated = mutation(proof, i, count);
            if mutated == proof {
                return 0;
            }
            assert!(!accepts(&mutated), "{name}: mutation {i} of {count}");
            1
        })
        .sum();
    assert!(changed * 10 > count * 9, "{name}: only {changed} changed");
    println!(
        "{name}: {changed} changed proofs of {} bytes, all refused",
        proof.len()
    );
}

struct Case {
    slot: NoiseStatement,
    noise_proof: DrawnProof,
    index: IndexCommitment,
    proof: Vec<u8>,
    cq: Fr,
    htopk: Fr,
}

impl Case {
    /// The smallest tenant: three positions of two components.
    fn new() -> Self {
        const CAPACITY: usize = 3;
        let seed = Seed([Fr::from(1u8), Fr::from(2u8)]);
        let of = Slot {
            c_seed: seed_commitment(&seed),
            beacon: Fr::from(3u8),
            slot: Fr::from(4u8),
        };
        let slot = NoiseStatement::single([1; 32], of, CAPACITY, Noise { gains: vec![1] });
        let noise_proof = drawn::prove(&slot, &[seed], false).unwrap();
        let (rows, query, key) = ([5i8, -1, 2, 7, -3, 0], vec![4i8, -6], IndexKey([5; 32]));
        let index = commit_index(&rows, 2, CAPACITY, &key).unwrap();
        let noise = &noise_proof.columns[0].opening.as_ref().unwrap().values[..CAPACITY];
        let scores: Vec<i32> = scores(&rows, &query);
        let noise: Vec<i32> = noise.iter().map(|z| *z as i32).collect();
        let window = ScoreWindow::new(5, 60, 32).unwrap();
        let listed = noised_top_k(&scores, &window, &noise, 2).unwrap();
        let (query_salt, list_salt) = (Fr::from(6u8), Fr::from(7u8));
        let answer = Answer {
            query_salt,
            list_salt,
            positions: listed.iter().map(|p| *p as i64).collect(),
            scores: scores.iter().map(|s| i64::from(*s)).collect(),
            query,
        };
        let mut case = Self {
            slot,
            noise_proof,
            index,
            proof: Vec::new(),
            cq: vector_hash(query_salt, &answer.query),
            htopk: list_hash(list_salt, &answer.positions),
        };
        let statement = case.statement();
        let proven = ProvenColumns {
            noise: &case.noise_proof.columns,
            sample: None,
        };
        case.proof = prove_as::<Prover>(&statement, &[answer], proven, &key, false).unwrap();
        case
    }

    fn statement(&self) -> QueryStatement<'_> {
        QueryStatement {
            context: [2; 32],
            index: &self.index,
            noise: vec![&self.noise_proof.columns[0].rows],
            sample: None,
            gains: vec![1],
            records: vec![[self.cq, self.htopk]],
            listed: 2,
            lo: 5,
            hi: 60,
            lattice: 32,
        }
    }

    fn mutations(&self, count: usize) {
        refused("certificate", &self.noise_proof.proof, count, |proof| {
            verify(&self.slot, proof).is_ok()
        });
        refused("query proof", &self.proof, count, |proof| {
            verify(&self.statement(), proof).is_ok()
        });
    }
}

/// So many changes of a proof of each kind, and a tenth as many in a batch and of pooled listing.
fn mutations(count: usize) {
    Case::new().mutations(count);
    bernoulli::tests::mutations(count);
    document_table::tests::mutations(count);
    pooled_listing::tests::mutations(count / 10);
    embed::tests::mutations(count);
    coalition::tests::mutations(count);
    answer::tests::mutations(count / 10);
    answer::tests::batches::mutations(count / 10);
}

#[test]
fn changed_proofs_are_refused() {
    mutations(150);
}

#[test]
#[ignore = "verifies 100,000 proofs with one change each (minutes): make test-full"]
fn a_hundred_thousand_changed_proofs_are_refused() {
    mutations(20_000);
}
