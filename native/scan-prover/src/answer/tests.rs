use super::*;
use std::sync::{Arc, OnceLock};

use crate::batch::{self, verify_all};
use crate::cheat::{Cheat, REPEATED};
use crate::coins::{CoinStatement, Coins};
use crate::error::Error;
use crate::fixtures::{list_hash, scores, vector_hash};
use crate::group::Fr;
use crate::index::commit_index;
use crate::kit::{numbers, state_of};
use crate::mutations::refused;
use crate::noise::noise_key;
use crate::session::Column;
use crate::words::seed_commitment;
use ragaudit_field_simd::noise::draw;
use ragaudit_field_simd::selection::{noised_top_k, ScoreWindow};

pub(crate) mod together;

const CAPACITY: usize = 12;

fn parameters() -> Parameters {
    Parameters {
        window: [4; 32],
        gains: vec![1, 8],
        listed: 2,
        lo: 5,
        hi: 60,
        lattice: 32,
        kept: None,
    }
}

/// The kinds of tenants without noise for all positions.
fn kinds() -> [Parameters; 3] {
    let coins = coins();
    let kept = || Some(coins.columns[0].rows.clone());
    [(None, vec![]), (kept(), vec![]), (kept(), vec![1, 8])].map(|(kept, gains)| Parameters {
        kept,
        gains,
        ..parameters()
    })
}

fn seed() -> Seed {
    Seed([1u8, 2].map(Fr::from))
}

/// The window's sampling proof. Its nonces are fixed, so the tests share one.
fn coins() -> &'static Certificate {
    static MADE: OnceLock<Certificate> = OnceLock::new();
    MADE.get_or_init(prove_coins)
}

fn prove_coins() -> Certificate {
    let slot = Slot {
        c_seed: seed_commitment(&seed()),
        beacon: Fr::from(8u8),
        slot: Fr::from(99u8),
    };
    let statement = CoinStatement::single([6; 32], slot, CAPACITY, Coins { bound: 1 << 39 });
    let repeated = REPEATED.replace(true);
    let made = drawn::prove_as::<Cheat, _>(&statement, &[seed()], false).unwrap();
    REPEATED.set(repeated);
    drawn::verify(&statement, &made.proof).unwrap();
    made
}

fn index(key: &IndexKey) -> (Vec<i8>, Arc<IndexCommitment>) {
    let rows: Vec<i8> = (0..3 * CAPACITY).map(|i| (i * 5 % 15) as i8 - 7).collect();
    let index = commit_index(&rows, 3, CAPACITY, key).unwrap();
    (rows, Arc::new(index))
}

/// Everything that a record's proof is made of.
pub(crate) struct Golden {
    pub(crate) parameters: Parameters,
    pub(crate) rows: Vec<i8>,
    pub(crate) key: IndexKey,
    pub(crate) index: Arc<IndexCommitment>,
    pub(crate) seed: Seed,
    pub(crate) record: Record,
    pub(crate) answer: Answer,
    pub(crate) coins: Option<&'static Certificate>,
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
pub(crate) fn asked(
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

impl Golden {
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
        let coins = parameters.kept.as_ref().map(|_| coins());
        if let Some(coins) = &coins {
            let bits = &coins.columns[0].opening.as_ref().unwrap().values;
            let kept = scoring.iter_mut().zip(bits);
            kept.for_each(|(score, bit)| *score *= *bit as i32);
        }
        let listed = listed(&parameters, &seed, &slot, &scoring);
        let (record, answer) = asked(slot, 77, (query, &scores, &listed), [5, 6]);
        Self {
            parameters,
            rows,
            key,
            index,
            seed,
            record,
            answer,
            coins,
            low_memory,
        }
    }

    pub(crate) fn has_noise(&self) -> bool {
        !self.parameters.gains.is_empty()
    }

    pub(crate) fn certify(&self) -> Result<Certificate> {
        let slots = [self.record.slot];
        let seeds = std::slice::from_ref(&self.seed);
        certify_as::<Cheat>(
            &self.index,
            &self.parameters,
            &slots,
            seeds,
            self.low_memory,
        )
    }

    pub(crate) fn prove(&self, certificate: Option<&Certificate>) -> Vec<u8> {
        let certified = Certified {
            noise: certificate.map_or(&[], |c| &c.columns),
            kept: self.coins.map(|c| &c.columns[0]),
        };
        prove_as::<Cheat>(
            &self.index,
            &self.parameters,
            &[self.record],
            std::slice::from_ref(&self.answer),
            certificate.map_or(&[], |c| &c.proof),
            certified,
            &self.key,
            self.low_memory,
        )
        .unwrap()
    }
}

pub(crate) fn golden(low_memory: bool) -> Golden {
    Golden::new(1, parameters(), low_memory)
}

/// A tenant without noise, a sampled tenant, and a sampled tenant with noise.
pub(crate) fn golden_sampled(low_memory: bool) -> [Golden; 3] {
    // With a query that scores above 0.
    kinds().map(|parameters| Golden::new(6, parameters, low_memory))
}

/// A record of slot `slot` with its certificate and proof.
fn answered(slot: u64) -> (Record, Vec<u8>, Vec<u8>) {
    answered_by(slot, parameters())
}

fn answered_by(slot: u64, parameters: Parameters) -> (Record, Vec<u8>, Vec<u8>) {
    let case = Golden::new(slot, parameters, false);
    let certificate = case.has_noise().then(|| case.certify().unwrap());
    let proof = case.prove(certificate.as_ref());
    let certificate = certificate.map(|c| c.proof).unwrap_or_default();
    (case.record, certificate, proof)
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
    let (record, certificate, proof) = answered(1);
    let parameters = parameters();
    let other_index = commit_index(&rows, 3, CAPACITY, &IndexKey([8; 32])).unwrap();
    let (mut other_certificate, mut other_proof) = (certificate.clone(), proof.clone());
    *other_certificate.last_mut().unwrap() ^= 1;
    *other_proof.last_mut().unwrap() ^= 1;
    let item = |record, parts| Item::single(record, parts);
    let base = item(record, [&certificate[..], &proof[..]]);
    // A new field has to be changed below.
    let Parameters {
        window: _,
        gains: _,
        listed: _,
        lo: _,
        hi: _,
        lattice: _,
        kept: _,
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
        of(&[item(record, [&other_certificate, &proof])]),
        of(&[item(record, [&certificate, &other_proof])]),
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
        with(&|p| p.kept = Some(vec![index.points[0]])),
        with(&|p| p.kept = Some(vec![index.points[1]])),
        with(&|p| p.kept = Some(index.points[..2].to_vec())),
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

    // Another record's certificate: one noise for two slots.
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
        let certificate: &[u8] = match parameters.gains[..] {
            [] => &other,
            _ => &[],
        };
        items[1].parts[0] = certificate;
        assert_eq!(named(&items), [1]);
        assert!(matches!(
            alone(&items[1]),
            Err(Error::Malformed { at: 0, .. })
        ));
        items[1].parts[0] = &cases[1].1;
        // All other kinds of tenants, and sampled positions with other commitments.
        let swapped = parameters.kept.clone().map(|mut rows| {
            rows[0] = index.points[0];
            Parameters {
                kept: Some(rows),
                ..parameters.clone()
            }
        });
        let kinds = kinds()
            .into_iter()
            .chain([self::parameters()])
            .chain(swapped);
        let of = |p: &Parameters| (p.kept.clone(), p.gains.clone());
        for other in kinds.filter(|other| of(other) != of(&parameters)) {
            assert_eq!(numbers(&verify_all(&index, &other, &items)), [0, 1, 2]);
        }
    }
}

/// The record's context contains the sample rows, independently of the proof.
#[test]
fn contexts_follow_the_kept_rows() {
    let (_, index) = index(&IndexKey([9; 32]));
    let case = Golden::new(1, parameters(), false);
    let context = |parameters: &Parameters| {
        let statement = query_statement(&index, parameters, &[case.record], b"c", &[]);
        statement.context
    };
    let [exact, kept, both] = kinds();
    let mut other = kept.clone();
    other.kept = Some(vec![index.points[0]]);
    let contexts = [&exact, &kept, &other].map(context);
    for (k, one) in contexts.iter().enumerate() {
        assert!(!contexts[..k].contains(one), "{k}");
    }
    // The statement itself absorbs the gains.
    assert_eq!(context(&kept), context(&both));
    assert_eq!(context(&exact), context(&parameters()));
    assert!(certify(&index, &exact, &[case.record.slot], &[seed()], false).is_err());
}

/// A malformed proof and a false proof in one batch, in either order, in one chunk and in two: each has its own outcome.
#[test]
fn a_malformed_proof_hides_no_false_one() {
    let (_, index) = index(&IndexKey([9; 32]));
    let parameters = parameters();
    let (record, certificate, proof) = answered(1);
    let good = Item::single(record, [&certificate, &proof]);
    let mut false_one = good.clone();
    false_one.records[0].context += Fr::from(1u8);
    // No point of the curve: the first word of the query proof.
    let mut bytes = proof.clone();
    bytes[..32].fill(0xff);
    let malformed = Item::single(record, [&certificate, &bytes]);
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
    let (record, certificate, proof) = answered(1);
    let chunk = vec![Item::single(record, [&certificate, &proof]); batch::CHUNK];
    let mut batch: Batch = Batch::new(Arc::clone(&index), parameters());
    let mut kept = Vec::new();
    for count in [batch::CHUNK, 3, 1] {
        assert_eq!(batch.add(&chunk[..count]), []);
        kept.push(batch.kept());
    }
    assert!(batch.holds());
    // The generators of a row, those of the query with its salt, the index's rows, H, U and one point.
    let shared = (1 << index.layout.row_variables) + 4 + index.points.len() + 3;
    assert_eq!(kept, [shared; 3]);
}
