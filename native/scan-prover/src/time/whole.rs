//! Whole proofs over two indices that differ in one document, and over different noise, counted message by message.
use std::sync::Arc;

use ark_std::rand::rngs::StdRng;
use ark_std::rand::{Rng, SeedableRng};
use ragaudit_field_simd::poseidon::hash;
use ragaudit_field_simd::timing::alone;

use crate::answer::tests::{listed, request};
use crate::answer::{self, Parameters, Record, Slot};
use crate::fixtures::scores;
use crate::group::Fr;
use crate::index::{commit_index, IndexCommitment, IndexKey};
use crate::malicious::{run, Log, MaliciousProver, Without};
use crate::noise::Seed;
use crate::query::{Answer, ProvenColumns};

const CAPACITY: usize = 300;
const DIMENSION: usize = 16;
/// The document in which two indices differ.
const DOCUMENT: usize = 123;

fn parameters() -> Parameters {
    Parameters {
        window: [4; 32],
        gains: vec![1, 8],
        listed: 5,
        lo: 20,
        hi: 300,
        lattice: 64,
        sample: None,
    }
}

/// A record, and all that its proofs are made of.
struct Case {
    index: Arc<IndexCommitment>,
    key: IndexKey,
    seed: Seed,
    record: Record,
    answer: Answer,
}

impl Case {
    /// With one document that is the query itself, or empty.
    fn new(same: bool, seed: [Fr; 2]) -> Self {
        let mut rng = StdRng::seed_from_u64(3);
        let mut drawn =
            |count: usize| -> Vec<i8> { (0..count).map(|_| rng.gen_range(-7..8)).collect() };
        let (mut rows, query) = (drawn(CAPACITY * DIMENSION), drawn(DIMENSION));
        let of_document = &mut rows[DOCUMENT * DIMENSION..][..DIMENSION];
        match same {
            true => of_document.copy_from_slice(&query),
            false => of_document.fill(0),
        }
        let key = IndexKey([9; 32]);
        let index = commit_index(&rows, DIMENSION, CAPACITY, &key).unwrap();
        let [c_seed, beacon, slot] = [
            hash(&[Fr::from(1u8), seed[0], seed[1]]).unwrap(),
            Fr::from(8u8),
            Fr::from(9u8),
        ];
        let seed = Seed(seed);
        let scores: Vec<i32> = scores(&rows, &query);
        let slot = Slot {
            c_seed,
            beacon,
            slot,
        };
        let listed = listed(&parameters(), &seed, &slot, &scores);
        let (record, answer) = request(slot, 77, (query, &scores, &listed), [5, 6]);
        Self {
            index: Arc::new(index),
            key,
            seed,
            record,
            answer,
        }
    }

    /// The operation counts of both provers, message by message.
    fn counted(&self) -> [Log; 2] {
        let (parameters, slots) = (parameters(), [self.record.slot]);
        let seeds = std::slice::from_ref(&self.seed);
        let (result, noise) = run(Without::Nothing, || {
            answer::prove_noise_as::<MaliciousProver>(
                &self.index,
                &parameters,
                &slots,
                seeds,
                false,
            )
            .unwrap()
        });
        let proven = ProvenColumns {
            noise: &result.columns,
            sample: None,
        };
        let (_, proving) = run(Without::Nothing, || {
            answer::prove_as::<MaliciousProver>(
                &self.index,
                &parameters,
                &[self.record],
                std::slice::from_ref(&self.answer),
                &result.proof,
                proven,
                &self.key,
                false,
            )
            .unwrap()
        });
        [noise, proving]
    }
}

fn seeds() -> [[Fr; 2]; 2] {
    [[1u8, 2], [3, 4]].map(|seed| seed.map(Fr::from))
}

/// Additions, inversions, read entries and permutations are the same for every message of both proofs, for every index and
/// noise. Only sums of the closing's folds are over scalars that masks make uniform.
#[test]
fn whole_proofs_take_the_same_work() {
    let [own, other] = seeds();
    let cases =
        [(false, own), (true, own), (false, other)].map(|(same, seed)| Case::new(same, seed));
    let [plain, same, noisy] = &cases;
    assert_ne!(plain.answer.scores, same.answer.scores);
    assert_ne!(plain.answer.positions, noisy.answer.positions);
    let logs: Vec<[Log; 2]> = alone(|| {
        // The first one makes tables.
        cases[0].counted();
        cases.iter().map(Case::counted).collect()
    });
    for part in 0..2 {
        let first = &logs[0][part];
        let total = |kind: usize| first.work.iter().map(|w| w[kind]).sum::<usize>();
        assert!(total(0) > 100_000 && total(1) > 500 && total(3) > 1_000_000);
        for log in &logs[1..] {
            let log = &log[part];
            assert_eq!(log.messages, first.messages);
            for ((label, own), other) in first.messages.iter().zip(&first.work).zip(&log.work) {
                match &label[..] {
                    "column opening" | "fold" => assert_eq!(own[3..], other[3..], "{label}"),
                    _ => assert_eq!(own, other, "{label}"),
                }
            }
        }
    }
    // The blocks of the noise's stream.
    assert_eq!(logs[0][0].work[0][4], (2 * CAPACITY).div_ceil(80));
}
