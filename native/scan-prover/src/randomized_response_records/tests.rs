use super::*;
use std::sync::Arc;

use crate::answer::Slot;
use crate::batch::{self, verify_all};
use crate::drawn;
use crate::error::Error;
use crate::fixtures::{packed_hash, scores, vector_hash};
use crate::index::commit_index;
use crate::kit::{numbers, state_of};
use crate::mutations::refused;
use crate::noise::Seed;
use crate::randomized_response::nothing_disclosed;
use crate::session::Column;
use ragaudit_field_simd::poseidon::hash;

const CAPACITY: usize = 14;

pub(crate) fn rows_of_index() -> Vec<i8> {
    (0..3 * CAPACITY).map(|i| (i * 5 % 15) as i8 - 7).collect()
}

fn index() -> Arc<IndexCommitment> {
    Arc::new(commit_index(&rows_of_index(), 3, CAPACITY, &key()).unwrap())
}

pub(crate) fn key() -> IndexKey {
    IndexKey([9; 32])
}

fn bits_at(ones: &[usize]) -> Vec<i64> {
    let bit = |i| i64::from(ones.contains(&i));
    (0..CAPACITY).map(bit).collect()
}

fn column(index: &IndexCommitment, ones: &[usize], blinding: u64) -> Column {
    bit_column(index.layout, bits_at(ones), vec![Fr::from(blinding)]).unwrap()
}

fn sample(index: &IndexCommitment) -> Column {
    column(index, &[0, 1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 13], 70)
}

fn constants(index: &IndexCommitment) -> Constants {
    Constants {
        window: [4; 32],
        sample: sample(index).rows,
        threshold: 20,
        maximum: 3,
        flip_probability: None,
    }
}

/// A record of an account, before its proof.
pub(crate) struct Case {
    pub(crate) index: Arc<IndexCommitment>,
    pub(crate) constants: Constants,
    pub(crate) record: Record,
    pub(crate) witness: ListWitness,
    pub(crate) flips: Column,
    pub(crate) sample: Column,
    pub(crate) disclosed: Column,
    /// The blindings of the disclosed set after the record.
    pub(crate) blindings: Vec<Fr>,
    after: Vec<i64>,
    flip_rows: Vec<u8>,
    disclosed_rows: Vec<u8>,
}

impl Case {
    /// The record of slot `slot`, after this disclosed set.
    fn new(slot: u64, disclosed: Column) -> Self {
        let flips = column(&index(), &[slot as usize, 10], 80 + slot);
        Self::of(slot_of(slot), slot, disclosed, flips)
    }

    fn of(of: Slot, slot: u64, disclosed: Column, flips: Column) -> Self {
        let index = index();
        let constants = constants(&index);
        let query = vec![3i8, -7, slot as i8 % 7];
        let (query_salt, list_salt) = (Fr::from(5u8), Fr::from(6u8));
        let witness = ListWitness {
            scores: scores(&rows_of_index(), &query),
            query,
            query_salt,
            list_salt,
        };
        let sample = sample(&index);
        let bits = Bits {
            flips: &flips,
            sample: &sample,
            disclosed: &disclosed,
        };
        let outcome = Outcome::new(&index, (20, 3), &witness, &bits).unwrap();
        let record = Record {
            slot: of,
            context: Fr::from(77u8),
            cq: vector_hash(query_salt, &witness.query),
            htopk: packed_hash(list_salt, CAPACITY, &outcome.packed()),
        };
        Self {
            flip_rows: encode_points(&flips.rows),
            disclosed_rows: encode_points(&disclosed.rows),
            blindings: vec![Fr::from(900 + slot)],
            after: outcome.after.clone(),
            index,
            constants,
            record,
            witness,
            flips,
            sample,
            disclosed,
        }
    }

    /// The proof, and the commitments to the disclosed set after the record.
    pub(crate) fn prove<P: Proves>(&self, low_memory: bool) -> (Vec<u8>, Vec<u8>) {
        let bits = Bits {
            flips: &self.flips,
            sample: &self.sample,
            disclosed: &self.disclosed,
        };
        prove_as::<P>(
            &self.index,
            &self.constants,
            &self.record,
            &self.witness,
            &bits,
            self.blindings.clone(),
            &key(),
            low_memory,
        )
        .unwrap()
    }

    pub(crate) fn rows<'a>(&'a self, after: &'a [u8]) -> Rows<'a> {
        Rows {
            flips: &self.flip_rows,
            disclosed: &self.disclosed_rows,
            after,
        }
    }
}

fn slot_of(slot: u64) -> Slot {
    Slot {
        c_seed: Fr::from(3u8),
        beacon: Fr::from(8u8),
        slot: Fr::from(slot),
    }
}

pub(crate) fn known_answer() -> Case {
    Case::new(1, nothing_disclosed(index().layout))
}

/// A record with its proof.
struct Answered {
    case: Case,
    after: Vec<u8>,
    proof: Vec<u8>,
}

impl Answered {
    fn item(&self) -> Item<'_> {
        (self.case.record, self.case.rows(&self.after), &self.proof)
    }
}

/// The records of one account, one after another.
fn chain(length: u64) -> Vec<Answered> {
    let mut disclosed = nothing_disclosed(index().layout);
    let mut out = Vec::new();
    for slot in 1..=length {
        let case = Case::new(slot, disclosed);
        let (proof, after) = case.prove::<Prover>(false);
        let (bits, blindings) = (case.after.clone(), case.blindings.clone());
        disclosed = bit_column(case.index.layout, bits, blindings).unwrap();
        assert_eq!(encode_points(&disclosed.rows), after);
        out.push(Answered { case, after, proof });
    }
    out
}

/// A batch names the changed proof.
pub(crate) fn mutations(count: usize) {
    let index = index();
    let constants = constants(&index);
    let cases = chain(2);
    let [good, bad] = [0, 1].map(|i| cases[i].item());
    refused("list", bad.2, count, |proof| {
        verify(&index, &constants, &(bad.0, bad.1, proof)).is_ok()
    });
    refused("list in a batch", bad.2, count / 10 + 10, |proof| {
        let named = verify_all(&index, &constants, &[good, (bad.0, bad.1, proof)]);
        numbers(&named) != [1]
    });
    proof_mutations(count / 10 + 10);
}

/// A changed proof of Bernoulli bits is named as its record's.
fn proof_mutations(count: usize) {
    let index = index();
    let of = batched(&[1, 2]);
    let (constants, items) = (&of.constants, of.items());
    refused(
        "coins in a batch of lists",
        items[1].1.flips,
        count,
        |flips| {
            let mut changed = items.clone();
            changed[1].1.flips = flips;
            numbers(&verify_all(&index, constants, &changed)) != [1]
        },
    );
}

#[test]
fn batch_weights_follow_everything() {
    let index = index();
    let constants = constants(&index);
    let case = &chain(1)[0];
    let base = case.item();
    let other_index = commit_index(&rows_of_index(), 3, CAPACITY, &IndexKey([8; 32])).unwrap();
    // A new field has to be changed below.
    let Constants {
        window: _,
        sample: _,
        threshold: _,
        maximum: _,
        flip_probability: _,
    } = &constants;
    let Record {
        slot: Slot {
            c_seed: _,
            beacon: _,
            slot: _,
        },
        context: _,
        cq: _,
        htopk: _,
    } = &base.0;
    let Rows {
        flips: _,
        disclosed: _,
        after: _,
    } = &base.1;
    let with = |change: &dyn Fn(&mut Constants)| {
        let mut other = constants.clone();
        change(&mut other);
        state_of(&index, &other, &[base])
    };
    let about = |change: &dyn Fn(&mut Item)| {
        let mut other = base;
        change(&mut other);
        state_of(&index, &constants, &[other])
    };
    let of = |items: &[Item]| state_of(&index, &constants, items);
    let one = Fr::from(1u8);
    let other = column(&index, &[4], 1);
    let (bytes, rows) = (encode_points(&other.rows), other.rows[0]);
    let digests = [
        of(&[base]),
        of(&[base, base]),
        of(&[]),
        state_of(&other_index, &constants, &[base]),
        with(&|c| c.window[0] ^= 1),
        with(&|c| c.sample[0] = rows),
        with(&|c| c.sample.push(rows)),
        with(&|c| c.threshold += 1),
        with(&|c| c.maximum += 1),
        about(&|i| i.0.slot.c_seed += one),
        about(&|i| i.0.slot.beacon += one),
        about(&|i| i.0.slot.slot += one),
        about(&|i| i.0.context += one),
        about(&|i| i.0.cq += one),
        about(&|i| i.0.htopk += one),
        about(&|i| i.1.flips = &[]),
        about(&|i| i.1.disclosed = &[]),
        about(&|i| i.1.after = &[]),
        about(&|i| i.2 = &[]),
    ];
    for (k, digest) in digests.iter().enumerate() {
        assert!(!digests[..k].contains(digest), "change {k}");
    }
    for change in [
        (&|i: &mut Item| i.0.slot.c_seed += Fr::from(1u8)) as &dyn Fn(&mut Item),
        &|i| i.0.slot.beacon += Fr::from(1u8),
        &|i| i.0.slot.slot += Fr::from(1u8),
        &|i| i.0.context += Fr::from(1u8),
    ] {
        let mut other = base;
        change(&mut other);
        assert_eq!(verify(&index, &constants, &other), Err(Error::Rejected));
    }
    let mut other = base;
    other.1.flips = &bytes;
    assert_eq!(verify(&index, &constants, &other), Err(Error::Rejected));
    verify(&index, &constants, &base).unwrap();
}

/// Each record starts from the disclosed set of the record before it, and is refused with every other one.
#[test]
fn a_chain_is_not_forked() {
    let index = index();
    let constants = constants(&index);
    let cases = chain(3);
    let items: Vec<Item> = cases.iter().map(Answered::item).collect();
    assert!(verify_all(&index, &constants, &items).is_empty());
    assert_eq!(
        items[0].1.disclosed,
        encode_points(&nothing_disclosed(index.layout).rows)
    );
    // The set before the earlier record, the empty set, and another account's set.
    for (i, disclosed) in [
        (2, items[1].1.disclosed),
        (1, items[0].1.disclosed),
        (0, items[0].1.after),
    ] {
        let mut other = items.clone();
        other[i].1.disclosed = disclosed;
        assert_eq!(numbers(&verify_all(&index, &constants, &other)), [i]);
    }
    let mut other = items.clone();
    other[1].1.after = items[2].1.after;
    assert_eq!(numbers(&verify_all(&index, &constants, &other)), [1]);
    let mut other = items.clone();
    other[1].1.flips = items[2].1.flips;
    assert_eq!(numbers(&verify_all(&index, &constants, &other)), [1]);
    let mut other = constants.clone();
    other.sample = column(&index, &[0], 70).rows;
    assert_eq!(numbers(&verify_all(&index, &other, &items)), [0, 1, 2]);
}

#[test]
fn batches_name_the_bad_ones() {
    let index = index();
    let constants = constants(&index);
    let cases = chain(3);
    let good: Vec<Item> = cases.iter().map(Answered::item).collect();
    let named = |items: &[Item]| numbers(&verify_all(&index, &constants, items));
    assert!(named(&good).is_empty());
    assert!(named(&[]).is_empty());
    let mut items = good.clone();
    items[1].2 = good[2].2;
    items[2].2 = &good[2].2[1..];
    assert_eq!(named(&items), [1, 2]);
    // Bytes that encode no points, or too few points, hide no false proof.
    let mut items = good.clone();
    items[0].0.context += Fr::from(1u8);
    items[1].1.disclosed = &[0xff; 32];
    items[2].1.after = &[];
    let outcomes = verify_all(&index, &constants, &items);
    assert_eq!(numbers(&outcomes), [0, 1, 2]);
    assert_eq!(outcomes[0].1, Error::Rejected);
    assert!(matches!(outcomes[1].1, Error::Malformed { at: 0, .. }));
    assert!(matches!(outcomes[2].1, Error::Invalid { .. }));
    let mut other = constants.clone();
    other.window[0] ^= 1;
    assert_eq!(numbers(&verify_all(&index, &other, &good)), [0, 1, 2]);
}

/// Records that come with the proofs of their Bernoulli bits.
struct Batched {
    constants: Constants,
    answered: Vec<Answered>,
    noise_proofs: Vec<Vec<u8>>,
}

fn batched(slots: &[u64]) -> Batched {
    let seed = Seed([1u8, 2].map(Fr::from));
    let flip_probability = FlipProbability {
        context: [6; 32],
        bound: 1 << 38,
    };
    let mut disclosed = nothing_disclosed(index().layout);
    let (mut answered, mut noise_proofs) = (Vec::new(), Vec::new());
    for slot in slots {
        let of = Slot {
            c_seed: hash(&[1u8, 1, 2].map(Fr::from)).unwrap(),
            ..slot_of(*slot)
        };
        let statement = flip_probability.statement(&of, CAPACITY);
        let mut result = drawn::prove(&statement, std::slice::from_ref(&seed), false).unwrap();
        let case = Case::of(of, *slot, disclosed, result.columns.remove(0));
        let (proof, after) = case.prove::<Prover>(false);
        let (bits, blindings) = (case.after.clone(), case.blindings.clone());
        disclosed = bit_column(case.index.layout, bits, blindings).unwrap();
        answered.push(Answered { case, after, proof });
        noise_proofs.push(result.proof);
    }
    Batched {
        constants: Constants {
            flip_probability: Some(flip_probability),
            ..constants(&index())
        },
        answered,
        noise_proofs,
    }
}

impl Batched {
    fn items(&self) -> Vec<Item<'_>> {
        let mut items: Vec<Item> = self.answered.iter().map(Answered::item).collect();
        for (item, noise_proof) in items.iter_mut().zip(&self.noise_proofs) {
            item.1.flips = noise_proof;
        }
        items
    }
}

/// The proof of the bits and the list are in one sum, and neither compensates for the other.
#[test]
fn proofs_of_bernoulli_bits_are_verified_with_the_records() {
    let index = index();
    let of = batched(&[1, 2, 3]);
    let (constants, good) = (&of.constants, of.items());
    let outcomes = |items: &[Item]| verify_all(&index, constants, items);
    assert_eq!(outcomes(&good), []);
    verify(&index, constants, &good[0]).unwrap();
    // Another slot's proof, a shortened one, and commitments without a proof.
    let mut items = good.clone();
    items[0].1.flips = good[2].1.flips;
    items[1].1.flips = &good[1].1.flips[1..];
    items[2].1.flips = &of.answered[2].case.flip_rows;
    let [(0, Error::Rejected), (1, Error::Malformed { .. }), (2, Error::Malformed { .. })] =
        outcomes(&items)[..]
    else {
        panic!("{:?}", outcomes(&items));
    };
    // The commitments of a false proof can be the very ones in the list's statement.
    let mut bytes = good[1].1.flips.to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let mut items = good.clone();
    items[1].1.flips = &bytes;
    assert_eq!(outcomes(&items), [(1, Error::Rejected)]);
    assert_eq!(verify(&index, constants, &items[1]), Err(Error::Rejected));
    for change in [
        (&|c: &mut FlipProbability| c.bound += 1) as &dyn Fn(&mut FlipProbability),
        &|c| c.context[0] ^= 1,
    ] {
        let mut other = constants.clone();
        change(other.flip_probability.as_mut().unwrap());
        assert_eq!(numbers(&verify_all(&index, &other, &good)), [0, 1, 2]);
        assert_ne!(
            state_of(&index, &other, &good),
            state_of(&index, constants, &good)
        );
    }
}

#[test]
fn a_batch_keeps_no_more_for_more_records() {
    let index = index();
    let cases = chain(1);
    let chunk = vec![cases[0].item(); batch::CHUNK];
    let mut batch: Batch = Batch::new(Arc::clone(&index), constants(&index));
    let mut retained = Vec::new();
    for count in [batch::CHUNK, 3, 1] {
        assert_eq!(batch.add(&chunk[..count]), []);
        retained.push(batch.retained());
    }
    assert!(batch.holds());
    let shared = (1 << index.layout.row_variables) + 4 + index.points.len() + 3;
    assert_eq!(retained, [shared; 3]);
}
