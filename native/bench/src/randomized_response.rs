//! One record of a tenant with randomized response for the benches.
use ragaudit_field_simd::poseidon::hash_list;
use ragaudit_scan_prover::answer::Record;
use ragaudit_scan_prover::error::Result;
use ragaudit_scan_prover::group::Fr;
use ragaudit_scan_prover::randomized_response::{
    bit_column, nothing_disclosed, Bits, ListWitness, Outcome,
};
use ragaudit_scan_prover::randomized_response_records::{prove, Constants};
use ragaudit_scan_prover::session::Column;

use crate::Case;

/// Of the tenant of [`Case`], with one position in eight outside the sample and one in a thousand listed by chance.
pub struct ListCase {
    pub case: Case,
    pub constants: Constants,
    pub record: Record,
    pub witness: ListWitness,
    pub flips: Column,
    pub sample: Column,
    pub disclosed: Column,
    blindings: Vec<Fr>,
}

impl ListCase {
    pub fn new(capacity: usize, dimension: usize) -> Self {
        let case = Case::new(capacity, dimension, &[1]);
        let layout = case.index.layout;
        let blindings: Vec<Fr> = (1..=layout.rows() as u64).map(Fr::from).collect();
        let column = |bit: &dyn Fn(usize) -> bool| {
            let bits = (0..capacity).map(|i| i64::from(bit(i))).collect();
            bit_column(layout, bits, blindings.clone()).expect("bits")
        };
        let flips = column(&|i| i * 7919 % 1000 == 3);
        let sample = column(&|i| i * 7919 % 8 != 5);
        let witness = ListWitness {
            query: case.answer.query.clone(),
            query_salt: case.answer.query_salt,
            list_salt: case.answer.list_salt,
            scores: case.answer.scores.clone(),
        };
        let constants = Constants {
            window: case.parameters.window,
            sample: sample.rows.clone(),
            threshold: 354,
            maximum: 9,
            flip_probability: None,
        };
        let disclosed = nothing_disclosed(layout);
        let bits = Bits {
            flips: &flips,
            sample: &sample,
            disclosed: &disclosed,
        };
        let of_policy = (constants.threshold, constants.maximum);
        let outcome =
            Outcome::new(&case.index, of_policy, &witness, &bits).expect("well-formed inputs");
        let mut list = vec![witness.list_salt, Fr::from(capacity as u64)];
        list.extend(outcome.packed());
        Self {
            record: Record {
                htopk: hash_list(5, &list),
                ..case.record
            },
            case,
            constants,
            witness,
            flips,
            sample,
            disclosed,
            blindings,
        }
    }

    /// The proof and the commitments to what the account holds after it.
    pub fn prove(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let bits = Bits {
            flips: &self.flips,
            sample: &self.sample,
            disclosed: &self.disclosed,
        };
        prove(
            &self.case.index,
            &self.constants,
            &self.record,
            &self.witness,
            &bits,
            self.blindings.clone(),
            &self.case.key,
            false,
        )
    }
}
