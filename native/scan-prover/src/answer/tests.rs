use super::*;
use std::sync::{Arc, OnceLock};

use crate::batch::{self, verify_all};
use crate::bernoulli::{Bernoulli, BernoulliStatement};
use crate::error::Error;
use crate::fixtures::{list_hash, scores, vector_hash};
use crate::group::Fr;
use crate::index::commit_index;
use crate::kit::{numbers, state_of};
use crate::malicious::{MaliciousProver, REPEATED};
use crate::mutations::refused;
use crate::noise::noise_key;
use crate::session::Column;
use crate::words::seed_commitment;
use ragaudit_field_simd::noise::draw;
use ragaudit_field_simd::selection::{noised_top_k, ScoreWindow};

pub(crate) mod batches;

const CAPACITY: usize = 12;

fn parameters() -> Parameters {
    Parameters {
        window: [4; 32],
        gains: vec![1, 8],
        listed: 2,
        lo: 5,
        hi: 60,
        lattice: 32,
        sample: None,
    }
}

/// The kinds of tenants without noise for all positions.
fn kinds() -> [Parameters; 3] {
    let bernoulli = bernoulli();
    let sample = || Some(bernoulli.columns[0].rows.clone());
    [(None, vec![]), (sample(), vec![]), (sample(), vec![1, 8])].map(|(sample, gains)| Parameters {
        sample,
        gains,
        ..parameters()
    })
}

fn seed() -> Seed {
    Seed([1u8, 2].map(Fr::from))
}

/// The window's sampling proof. Its nonces are fixed, so the tests share one.
fn bernoulli() -> &'static DrawnProof {
    static RESULT: OnceLock<DrawnProof> = OnceLock::new();
    RESULT.get_or_init(prove_bernoulli)
}

fn prove_bernoulli() -> DrawnProof {
    let slot = Slot {
        c_seed: seed_commitment(&seed()),
        beacon: Fr::from(8u8),
        slot: Fr::from(99u8),
    };
    let statement =
        BernoulliStatement::single([6; 32], slot, CAPACITY, Bernoulli { bound: 1 << 39 });
    let repeated = REPEATED.replace(true);
    let result = drawn::prove_as::<MaliciousProver, _>(&statement, &[seed()], false).unwrap();
    REPEATED.set(repeated);
    drawn::verify(&statement, &result.proof).unwrap();
    result
}

fn index(key: &IndexKey) -> (Vec<i8>, Arc<IndexCommitment>) {
    let rows: Vec<i8> = (0..3 * CAPACITY).map(|i| (i * 5 % 15) as i8 - 7).collect();
    let index = commit_index(&rows, 3, CAPACITY, key).unwrap();
    (rows, Arc::new(index))
}

/// Everything that a record's proof is made of.
pub(crate) struct KnownAnswer {
    pub(crate) parameters: Parameters,
    pub(crate) rows: Vec<i8>,
    pub(crate) key: IndexKey,
    pub(crate) index: Arc<IndexCommitment>,
    pub(crate) seed: Seed,
    pub(crate) record: Record,
    pub(crate) answer: Answer,
    pub(crate) bernoulli: Option<&'static DrawnProof>,
    low_memory: bool,
}

/// The positions that come first under these scores and the noise of a slot, if there is any.
pub(crate) fn listed(
    parameters: &Parameters,
    seed: &Seed,
    slot: &Slot,
    scores: &[i32],
) -> Vec<usize> {
    let noise = match &parameters.gains[..] {
        [] => vec![0; scores.len()],
        gains => {
            let kappa = noise_key(seed, slot.beacon, slot.slot);
            draw(&kappa, scores.len(), gains).unwrap()
        }
    };
    let window = ScoreWindow::new(parameters.lo, parameters.hi, parameters.lattice).unwrap();
    noised_top_k(scores, &window, &noise, parameters.listed).unwrap()
}

/// The record of a query with these scores and this list, and its witness.
pub(crate) fn request(
    slot: Slot,
    context: u64,
    (query, scores, listed): (Vec<i8>, &[i32], &[usize]),
    salts: [u64; 2],
) -> (Record, Answer) {
    let positions: Vec<i64> = listed.iter().map(|p| *p as i64).collect();
    let [query_salt, list_salt] = salts.map(Fr::from);
    let record = Record {
        slot,
        context: Fr::from(context),
        cq: vector_hash(query_salt, &query),
        htopk: list_hash(list_salt, &positions),
    };
    let answer = Answer {
        query,
        query_salt,
        positions,
        list_salt,
        scores: scores.iter().map(|s| i64::from(*s)).collect(),
    };
    (record, answer)
}

impl KnownAnswer {
    /// The case of slot `slot`.
    fn new(slot: u64, parameters: Parameters, low_memory: bool) -> Self {
        let (key, seed) = (IndexKey([9; 32]), seed());
        let (rows, index) = index(&key);
        let query = vec![3i8, -7, slot as i8 % 7];
        let slot = Slot {
            c_seed: seed_commitment(&seed),
            beacon: Fr::from(8u8),
            slot: Fr::from(slot),
        };
        let scores: Vec<i32> = scores(&rows, &query);
        // Quantised, a score of 0 is 0.
        let mut scoring = scores.clone();
        let bernoulli = parameters.sample.as_ref().map(|_| bernoulli());
        if let Some(bernoulli) = &bernoulli {
            let bits = &bernoulli.columns[0].opening.as_ref().unwrap().values;
            let sample = scoring.iter_mut().zip(bits);
            sample.for_each(|(score, bit)| *score *= *bit as i32);
        }
        let listed = listed(&parameters, &seed, &slot, &scoring);
        let (record, answer) = request(slot, 77, (query, &scores, &listed), [5, 6]);
        Self {
            parameters,
            rows,
            key,
            index,
            seed,
            record,
            answer,
            bernoulli,
            low_memory,
        }
    }

    pub(crate) fn has_noise(&self) -> bool {
        !self.parameters.gains.is_empty()
    }

    pub(crate) fn prove_noise(&self) -> Result<DrawnProof> {
        let slots = [self.record.slot];
        let seeds = std::slice::from_ref(&self.seed);
        prove_noise_as::<MaliciousProver>(
            &self.index,
            &self.parameters,
            &slots,
            seeds,
            self.low_memory,
        )
    }

    pub(crate) fn prove(&self, noise_proof: Option<&DrawnProof>) -> Vec<u8> {
        let proven = ProvenColumns {
            noise: noise_proof.map_or(&[], |c| &c.columns),
            sample: self.bernoulli.map(|c| &c.columns[0]),
        };
        prove_as::<MaliciousProver>(
            &self.index,
            &self.parameters,
            &[self.record],
            std::slice::from_ref(&self.answer),
            noise_proof.map_or(&[], |c| &c.proof),
            proven,
            &self.key,
            self.low_memory,
        )
        .unwrap()
    }
}

pub(crate) fn known_answer(low_memory: bool) -> KnownAnswer {
    KnownAnswer::new(1, parameters(), low_memory)
}

/// A tenant without noise, a sampled tenant, and a sampled tenant with noise.
pub(crate) fn known_answer_sampled(low_memory: bool) -> [KnownAnswer; 3] {
    // With a query that scores above 0.
    kinds().map(|parameters| KnownAnswer::new(6, parameters, low_memory))
}

/// A record of slot `slot` with its noise proof and query proof.
fn answered(slot: u64) -> (Record, Vec<u8>, Vec<u8>) {
    answered_by(slot, parameters())
}

fn answered_by(slot: u64, parameters: Parameters) -> (Record, Vec<u8>, Vec<u8>) {
    let case = KnownAnswer::new(slot, parameters, false);
    let noise_proof = case.has_noise().then(|| case.prove_noise().unwrap());
    let proof = case.prove(noise_proof.as_ref());
    let noise_proof = noise_proof.map(|c| c.proof).unwrap_or_default();
    (case.record, noise_proof, proof)
}

/// A batch names the item with a changed noise proof or query proof.
pub(crate) fn mutations(count: usize) {
    let (_, index) = index(&IndexKey([9; 32]));
    let parameters = parameters();
    let [good, bad] = [1, 2].map(answered);
    let other = Item::single(good.0, [&good.1, &good.2]);
    for (name, part) in [("certificate in a batch", 0), ("query proof in a batch", 1)] {
        let proof = [&bad.1, &bad.2][part];
        refused(name, proof, count, |proof| {
            let mut parts = [&bad.1[..], &bad.2[..]];
            parts[part] = proof;
            let items = [other.clone(), Item::single(bad.0, parts)];
            let named = verify_all(&index, &parameters, &items);
            numbers(&named) != [1]
        });
    }
    let [_, _, both] = kinds();
    let bad = answered_by(6, both.clone());
    refused("sampled query proof", &bad.2, count, |proof| {
        verify(&index, &both, Item::single(bad.0, [&bad.1, proof])).is_ok()
    });
}

#[test]
fn batch_weights_follow_everything() {
    let (rows, index) = index(&IndexKey([9; 32]));
    let (record, noise_proof, proof) = answered(1);
    let parameters = parameters();
    let other_index = commit_index(&rows, 3, CAPACITY, &IndexKey([8; 32])).unwrap();
    let (mut other_noise_proof, mut other_proof) = (noise_proof.clone(), proof.clone());
    *other_noise_proof.last_mut().unwrap() ^= 1;
    *other_proof.last_mut().unwrap() ^= 1;
    let item = |record, parts| Item::single(record, parts);
    let base = item(record, [&noise_proof[..], &proof[..]]);
    // A new field has to be changed below.
    let Parameters {
        window: _,
        gains: _,
        listed: _,
        lo: _,
        hi: _,
        lattice: _,
        sample: _,
    } = &parameters;
    let Record {
        slot: Slot {
            c_seed: _,
            beacon: _,
            slot: _,
        },
        context: _,
        cq: _,
        htopk: _,
    } = &record;
    let with = |change: &dyn Fn(&mut Parameters)| {
        let mut other = parameters.clone();
        change(&mut other);
        state_of(&index, &other, std::slice::from_ref(&base))
    };
    let about = |change: &dyn Fn(&mut Record)| {
        let mut other = base.clone();
        change(&mut other.records[0]);
        state_of(&index, &parameters, &[other])
    };
    let of = |items: &[Item]| state_of(&index, &parameters, items);
    let both = Item {
        records: vec![record; 2],
        parts: base.parts,
    };
    let one = Fr::from(1u8);
    let digests = [
        of(std::slice::from_ref(&base)),
        of(&[base.clone(), base.clone()]),
        of(&[]),
        of(&[item(record, [&other_noise_proof, &proof])]),
        of(&[item(record, [&noise_proof, &other_proof])]),
        state_of(&other_index, &parameters, std::slice::from_ref(&base)),
        of(std::slice::from_ref(&both)),
        of(&[base.clone(), both.clone()]),
        of(&[both, base.clone()]),
        with(&|p| p.window[0] ^= 1),
        with(&|p| p.gains[1] = 7),
        with(&|p| p.gains.push(1)),
        with(&|p| p.listed += 1),
        with(&|p| p.lo += 1),
        with(&|p| p.hi += 1),
        with(&|p| p.lattice *= 2),
        with(&|p| p.gains = Vec::new()),
        with(&|p| p.sample = Some(vec![index.points[0]])),
        with(&|p| p.sample = Some(vec![index.points[1]])),
        with(&|p| p.sample = Some(index.points[..2].to_vec())),
        about(&|r| r.slot.c_seed += one),
        about(&|r| r.slot.beacon += one),
        about(&|r| r.slot.slot += one),
        about(&|r| r.context += one),
        about(&|r| r.cq += one),
        about(&|r| r.htopk += one),
    ];
    for (k, digest) in digests.iter().enumerate() {
        assert!(!digests[..k].contains(digest), "change {k}");
    }
}

#[test]
fn batches_name_the_bad_ones() {
    let (_, index) = index(&IndexKey([9; 32]));
    let parameters = parameters();
    let cases: Vec<_> = (1..=3).map(answered).collect();
    let mut items: Vec<Item> = cases
        .iter()
        .map(|(r, c, p)| Item::single(*r, [c, p]))
        .collect();
    let named = |items: &[Item]| numbers(&verify_all(&index, &parameters, items));
    assert!(named(&items).is_empty());
    assert!(named(&[]).is_empty());
    verify(&index, &parameters, items[0].clone()).unwrap();

    // Another record's noise proof: one noise for two slots.
    items[1].parts[0] = &cases[0].1;
    assert_eq!(named(&items), [1]);
    assert_eq!(
        verify(&index, &parameters, items[1].clone()),
        Err(Error::Rejected)
    );
    items[1].parts = [&cases[1].1, &cases[2].2];
    items[2].parts[1] = &cases[2].2[1..];
    assert_eq!(named(&items), [1, 2]);
    items[1].parts = [&cases[1].1, &cases[1].2];
    items[2].parts = [&cases[2].1, &cases[2].2];
    items[0].records[0].context += Fr::from(1u8);
    assert_eq!(named(&items), [0]);
    let mut other = parameters.clone();
    other.window[0] ^= 1;
    assert_eq!(numbers(&verify_all(&index, &other, &items)), [0, 1, 2]);
}

#[test]
fn sampled_records_verify_alone_and_in_batches() {
    let (_, index) = index(&IndexKey([9; 32]));
    for parameters in kinds() {
        let cases = [5, 6, 13].map(|slot| answered_by(slot, parameters.clone()));
        let mut items: Vec<Item> = cases
            .iter()
            .map(|(r, c, p)| Item::single(*r, [c, p]))
            .collect();
        let named = |items: &[Item]| numbers(&verify_all(&index, &parameters, items));
        let alone = |item: &Item| verify(&index, &parameters, item.clone());
        assert!(named(&items).is_empty());
        alone(&items[0]).unwrap();
        // Another record's proof; a missing noise proof, and one that a tenant without noise has.
        items[2].parts[1] = &cases[0].2;
        assert_eq!(named(&items), [2]);
        items[2].parts[1] = &cases[2].2;
        let other = answered(1).1;
        let noise_proof: &[u8] = match parameters.gains[..] {
            [] => &other,
            _ => &[],
        };
        items[1].parts[0] = noise_proof;
        assert_eq!(named(&items), [1]);
        assert!(matches!(
            alone(&items[1]),
            Err(Error::Malformed { at: 0, .. })
        ));
        items[1].parts[0] = &cases[1].1;
        // All other kinds of tenants, and sampled positions with other commitments.
        let swapped = parameters.sample.clone().map(|mut rows| {
            rows[0] = index.points[0];
            Parameters {
                sample: Some(rows),
                ..parameters.clone()
            }
        });
        let kinds = kinds()
            .into_iter()
            .chain([self::parameters()])
            .chain(swapped);
        let of = |p: &Parameters| (p.sample.clone(), p.gains.clone());
        for other in kinds.filter(|other| of(other) != of(&parameters)) {
            assert_eq!(numbers(&verify_all(&index, &other, &items)), [0, 1, 2]);
        }
    }
}

/// The record's context contains the sample rows, independently of the proof.
#[test]
fn contexts_follow_the_sample_s_rows() {
    let (_, index) = index(&IndexKey([9; 32]));
    let case = KnownAnswer::new(1, parameters(), false);
    let context = |parameters: &Parameters| {
        let statement = query_statement(&index, parameters, &[case.record], b"c", &[]);
        statement.context
    };
    let [exact, sample, both] = kinds();
    let mut other = sample.clone();
    other.sample = Some(vec![index.points[0]]);
    let contexts = [&exact, &sample, &other].map(context);
    for (k, one) in contexts.iter().enumerate() {
        assert!(!contexts[..k].contains(one), "{k}");
    }
    // The statement itself absorbs the gains.
    assert_eq!(context(&sample), context(&both));
    assert_eq!(context(&exact), context(&parameters()));
    assert!(prove_noise(&index, &exact, &[case.record.slot], &[seed()], false).is_err());
}

/// A malformed proof and a false proof in one batch, in either order, in one chunk and in two: each has its own outcome.
#[test]
fn a_malformed_proof_hides_no_false_one() {
    let (_, index) = index(&IndexKey([9; 32]));
    let parameters = parameters();
    let (record, noise_proof, proof) = answered(1);
    let good = Item::single(record, [&noise_proof, &proof]);
    let mut false_one = good.clone();
    false_one.records[0].context += Fr::from(1u8);
    // No point of the curve: the first word of the query proof.
    let mut bytes = proof.clone();
    bytes[..32].fill(0xff);
    let malformed = Item::single(record, [&noise_proof, &bytes]);
    let outcomes = |items: &[Item]| verify_all(&index, &parameters, items);
    let no_point = Error::Malformed {
        at: 0,
        reason: crate::group::NO_POINT,
    };
    let (of_malformed, of_false) = (no_point, Error::Rejected);
    assert_eq!(
        outcomes(&[malformed.clone(), false_one.clone(), good.clone()]),
        [(0, of_malformed.clone()), (1, of_false.clone())]
    );
    let mut items = vec![good; batch::CHUNK + 2];
    items[3] = false_one;
    items[batch::CHUNK + 1] = malformed;
    assert_eq!(
        outcomes(&items),
        [(3, of_false), (batch::CHUNK + 1, of_malformed)]
    );
}

#[test]
fn a_batch_keeps_no_more_for_more_records() {
    let (_, index) = index(&IndexKey([9; 32]));
    let (record, noise_proof, proof) = answered(1);
    let chunk = vec![Item::single(record, [&noise_proof, &proof]); batch::CHUNK];
    let mut batch: Batch = Batch::new(Arc::clone(&index), parameters());
    let mut retained = Vec::new();
    for count in [batch::CHUNK, 3, 1] {
        assert_eq!(batch.add(&chunk[..count]), []);
        retained.push(batch.retained());
    }
    assert!(batch.holds());
    // The generators of a row, those of the query with its salt, the index's rows, H, U and one point.
    let shared = (1 << index.layout.row_variables) + 4 + index.points.len() + 3;
    assert_eq!(retained, [shared; 3]);
}
