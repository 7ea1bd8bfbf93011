use super::*;
use crate::batch::CHUNK;
use crate::error::Error;
use crate::group::encode_points;
use crate::pooled_listing::tests::Case;

impl Case {
    pub(crate) fn constants(&self) -> Constants {
        let s = self.statement();
        Constants {
            window: [9; 32],
            chance: s.chance.clone(),
            rows: s.rows,
            positions_per_row: s.positions_per_row,
            row: s.row.to_vec(),
            kept: s.kept.to_vec(),
            threshold: s.threshold,
            listed: s.listed,
            lo: s.lo,
            hi: s.hi,
            lattice: s.lattice,
        }
    }

    pub(crate) fn record(&self, k: usize) -> Record {
        let record = &self.statement().records[k];
        Record {
            slot: record.slot,
            context: Fr::from(21u8),
            cq: record.cq,
            htopk: record.htopk,
        }
    }

    /// The proof of the record with this number, from the set of the record before it.
    fn record_proof(&self, k: usize) -> Result<Vec<u8>> {
        let inputs = self.inputs();
        let before = if k == 0 {
            &self.before
        } else {
            &self.after[k - 1]
        };
        let private = Private {
            request: &inputs.requests[k],
            seed: &inputs.seeds[k],
            given: Given {
                before,
                ..inputs.given
            },
            after: &inputs.after[k],
            key: inputs.key,
        };
        let (index, constants) = (self.shared_index(), self.constants());
        let (proof, after) = prove(&index, &constants, &self.record(k), private, false)?;
        assert_eq!(after, self.after[k].rows);
        Ok(proof)
    }
}

/// Proofs are made from the last record to the first, and a batch finds the false ones.
#[test]
fn records_verify_one_by_one_and_in_a_batch() {
    let case = Case::several();
    let (index, constants) = (case.shared_index(), case.constants());
    let mut proofs: Vec<Vec<u8>> = (0..3)
        .rev()
        .map(|k| case.record_proof(k).unwrap())
        .collect();
    proofs.reverse();
    let sets: Vec<Vec<u8>> = std::iter::once(&case.before)
        .chain(&case.after)
        .map(|column| encode_points(&column.rows))
        .collect();
    let item = |k: usize, [before, after]: [usize; 2]| {
        let rows = Rows {
            before: &sets[before],
            after: &sets[after],
        };
        (case.record(k), rows, &proofs[k][..])
    };
    for k in 0..3 {
        verify(&index, &constants, &item(k, [k, k + 1])).unwrap();
    }
    let honest: Vec<Item> = (0..3).map(|k| item(k, [k, k + 1])).collect();
    let mut batch: Batch = Batch::new(index.clone(), constants.clone());
    assert!(honest.len() < CHUNK && batch.add(&honest).is_empty());
    assert!(batch.holds());
    // A skipped record, a forked set, a cleared set, and another set after the record.
    for (k, sets) in [
        (2, [1, 3]),
        (1, [0, 2]),
        (2, [0, 3]),
        (1, [1, 3]),
        (1, [1, 1]),
    ] {
        let false_item = item(k, sets);
        assert_eq!(
            verify(&index, &constants, &false_item),
            Err(Error::Rejected)
        );
        let mut batch: Batch = Batch::new(index.clone(), constants.clone());
        let items = [honest[0], false_item];
        assert!(batch.add(&items).is_empty());
        assert!(!batch.holds());
        assert_eq!(batch.search(&items), [(1, Error::Rejected)]);
    }
    // A proof is for its window and for its record's context.
    let mut other = constants.clone();
    other.window[0] ^= 1;
    assert!(verify(&index, &other, &honest[0]).is_err());
    let mut context = honest[0];
    context.0.context += Fr::from(1u8);
    assert!(verify(&index, &constants, &context).is_err());
}
