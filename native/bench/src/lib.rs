//! Statements of the scan argument for the benches, at any size.
use ragaudit_core::commitment::pack_nibbles;
use ragaudit_core::noise::draw;
use ragaudit_core::poseidon::{hash, hash_list};
use ragaudit_core::selection::{noised_top_k, ScoreWindow};
use ragaudit_scan::answer::{Parameters, Record, Slot};
use ragaudit_scan::group::Fr;
use ragaudit_scan::index::{commit_index, IndexCommitment, IndexKey};
use ragaudit_scan::noise::{noise_key, Seed};
use ragaudit_scan::query::Answer;

/// One tenant with one record, from fixed numbers.
pub struct Case {
    pub key: IndexKey,
    pub seed: Seed,
    pub rows: Vec<i8>,
    pub dimension: usize,
    pub parameters: Parameters,
    pub index: IndexCommitment,
    pub record: Record,
    pub answer: Answer,
}

impl Case {
    pub fn new(capacity: usize, dimension: usize, gains: &[u32]) -> Self {
        let (key, seed) = (IndexKey([9; 32]), Seed([Fr::from(1u8), Fr::from(2u8)]));
        let int4 = |i: usize| ((i * i / 7 + i) % 15) as i8 - 7;
        let rows: Vec<i8> = (0..capacity * dimension).map(int4).collect();
        let query: Vec<i8> = (0..dimension).map(|j| int4(3 * j + 1)).collect();
        let parameters = Parameters {
            window: [4; 32],
            gains: gains.to_vec(),
            listed: 5,
            lo: 101,
            hi: 810,
            lattice: 128,
        };
        let slot = Slot {
            c_seed: hash(&[Fr::from(1u8), seed.0[0], seed.0[1]]).expect("three inputs fit"),
            beacon: Fr::from(8u8),
            slot: Fr::from(9u8),
        };
        let dot = |row: &[i8]| {
            let products = row
                .iter()
                .zip(&query)
                .map(|(a, b)| i32::from(*a) * i32::from(*b));
            products.sum()
        };
        let scores: Vec<i32> = rows.chunks(dimension).map(dot).collect();
        let noise = draw(&noise_key(&seed, slot.beacon, slot.slot), capacity, gains)
            .expect("gains are well-formed");
        let window = ScoreWindow::new(parameters.lo, parameters.hi, parameters.lattice)
            .expect("a well-formed window");
        let listed = noised_top_k(&scores, &window, &noise, parameters.listed)
            .expect("fewer than all positions");
        let (query_salt, list_salt) = (Fr::from(5u8), Fr::from(6u8));
        let mut vector = vec![query_salt];
        vector.extend(pack_nibbles(&query));
        let mut list = vec![list_salt, Fr::from(listed.len() as u64)];
        list.extend(listed.iter().map(|p| Fr::from(*p as u64)));
        Self {
            index: commit_index(&rows, dimension, capacity, &key).expect("int4 rows"),
            record: Record {
                slot,
                context: Fr::from(7u8),
                cq: hash_list(4, &vector),
                htopk: hash_list(5, &list),
            },
            answer: Answer {
                query,
                query_salt,
                positions: listed.iter().map(|p| *p as i64).collect(),
                list_salt,
                scores: scores.iter().map(|s| i64::from(*s)).collect(),
            },
            key,
            seed,
            rows,
            dimension,
            parameters,
        }
    }
}
