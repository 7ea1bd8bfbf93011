//! One record of a listing tenant for the benches.
use ragaudit_field_simd::poseidon::hash_list;
use ragaudit_scan_prover::answer::Record;
use ragaudit_scan_prover::error::Result;
use ragaudit_scan_prover::group::Fr;
use ragaudit_scan_prover::listing::{bit_column, nothing_held, Bits, Listing, Outcome};
use ragaudit_scan_prover::lists::{prove, Constants};
use ragaudit_scan_prover::session::Column;

use crate::Case;

/// Of the tenant of [`Case`], with one position in eight kept from it and one in a thousand listed by chance.
pub struct ListCase {
    pub case: Case,
    pub constants: Constants,
    pub record: Record,
    pub listing: Listing,
    pub chance: Column,
    pub kept: Column,
    pub held: Column,
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
        let chance = column(&|i| i * 7919 % 1000 == 3);
        let kept = column(&|i| i * 7919 % 8 != 5);
        let listing = Listing {
            query: case.answer.query.clone(),
            query_salt: case.answer.query_salt,
            list_salt: case.answer.list_salt,
            scores: case.answer.scores.clone(),
        };
        let constants = Constants {
            window: case.parameters.window,
            kept: kept.rows.clone(),
            threshold: 354,
            most: 9,
            chance: None,
        };
        let held = nothing_held(layout);
        let bits = Bits {
            chance: &chance,
            kept: &kept,
            held: &held,
        };
        let of_policy = (constants.threshold, constants.most);
        let outcome =
            Outcome::new(&case.index, of_policy, &listing, &bits).expect("well-formed inputs");
        let mut list = vec![listing.list_salt, Fr::from(capacity as u64)];
        list.extend(outcome.packed());
        Self {
            record: Record {
                htopk: hash_list(5, &list),
                ..case.record
            },
            case,
            constants,
            listing,
            chance,
            kept,
            held,
            blindings,
        }
    }

    /// The proof and the commitments to what the account holds after it.
    pub fn prove(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let bits = Bits {
            chance: &self.chance,
            kept: &self.kept,
            held: &self.held,
        };
        prove(
            &self.case.index,
            &self.constants,
            &self.record,
            &self.listing,
            &bits,
            self.blindings.clone(),
            &self.case.key,
            false,
        )
    }
}
