//! Statements of the scan argument for the benches, at any size, and the processor time of work.
use std::sync::Arc;

use ragaudit_field_simd::commitment::pack_nibbles;
use ragaudit_field_simd::noise::draw;
use ragaudit_field_simd::poseidon::{hash, hash_list};
use ragaudit_field_simd::selection::{noised_top_k, ScoreWindow};
use ragaudit_scan_prover::answer::{self, Item, Parameters, Record, Slot};
use ragaudit_scan_prover::bernoulli::{Bernoulli, BernoulliStatement};
use ragaudit_scan_prover::coalition::{
    distinct_norms, Blocks, CoalitionSecret, CoalitionStatement,
};
use ragaudit_scan_prover::drawn::{self, DrawnProof};
use ragaudit_scan_prover::embed::statement::{TAG_QUERY, TOKENS_PER_ELEMENT, TOKEN_BITS};
use ragaudit_scan_prover::embed::{EmbedStatement, Query};
use ragaudit_scan_prover::group::Fr;
use ragaudit_scan_prover::index::{commit_index, commit_table, IndexCommitment, IndexKey};
use ragaudit_scan_prover::noise::{noise_key, Noise, NoiseStatement, Seed};
use ragaudit_scan_prover::query::{Answer, ProvenColumns};

pub mod encoder;

/// Seconds of all threads of this process.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the process's times");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let ticks = |k: usize| fields[k].parse::<f64>().expect("a number of ticks");
    (ticks(12) + ticks(13)) / 100.0
}

/// The result of some work, with the processor time of all threads in seconds.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = cpu();
    let result = work();
    (result, cpu() - before)
}

/// The most memory that this process has used, as the system states it.
pub fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("the process's status");
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.unwrap_or_default().to_owned()
}

/// As many integers of magnitude below `below`, and always the same ones of a seed.
pub fn random(seed: u64, count: usize, below: i64) -> Vec<i16> {
    let mut x = seed;
    let mut next = || {
        x = x
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((x >> 33) as i64 % (2 * below) - below) as i16
    };
    (0..count).map(|_| next()).collect()
}

/// The integers of a file of int16, little-endian.
pub fn int16_file(path: &str) -> Vec<i16> {
    let bytes = std::fs::read(path).expect("a file of integers");
    let pairs = bytes.chunks_exact(2);
    pairs.map(|b| i16::from_le_bytes([b[0], b[1]])).collect()
}

/// Prints time and size of four proofs, and the time of a verification.
pub fn measure_block(prove: impl Fn() -> Vec<u8>, verify: impl Fn(&[u8]) -> bool) {
    const VERIFICATIONS: usize = 10;
    for _ in 0..4 {
        let (proof, seconds) = timed(&prove);
        let (checked, verifying) = timed(|| (0..VERIFICATIONS).all(|_| verify(&proof)));
        assert!(checked);
        println!(
            "proof: {seconds:.2} s, {} bytes, verified in {:.3} s, {}",
            proof.len(),
            verifying / VERIFICATIONS as f64,
            memory()
        );
    }
}

/// Prints time and size of three noise proofs of 10^5 positions with three gains, for comparison.
pub fn measure_noise() {
    const POSITIONS: usize = 100_000;
    let slot = bernoulli_statement(POSITIONS).slots[0];
    let noise = Noise {
        gains: vec![1, 2, 4],
    };
    let statement = NoiseStatement::single([4; 32], slot, POSITIONS, noise);
    let seed = Seed([Fr::from(1u8), Fr::from(2u8)]);
    for _ in 0..3 {
        let (proof, seconds) =
            timed(|| drawn::prove(&statement, std::slice::from_ref(&seed), false));
        let proof = proof.expect("a true statement").proof;
        let (checked, verifying) = timed(|| drawn::verify(&statement, &proof).is_ok());
        assert!(checked);
        println!(
            "noise of {POSITIONS} positions: {seconds:.2} s, {} bytes, verified in {verifying:.3} s",
            proof.len()
        );
    }
}

/// Prints the time of three verifications of a query proof of 10^5 positions with three gains, for comparison.
pub fn measure_query() {
    let case = Case::new(100_000, 256, &[1, 2, 4]);
    let seeds = std::slice::from_ref(&case.seed);
    let (index, parameters) = (&case.index, &case.parameters);
    let noise = answer::prove_noise(index, parameters, &[case.record.slot], seeds, false);
    let noise = noise.expect("a true statement");
    let proven = ProvenColumns {
        noise: &noise.columns,
        sample: None,
    };
    let records = std::slice::from_ref(&case.record);
    let answers = std::slice::from_ref(&case.answer);
    let key = &case.key;
    let proof = answer::prove(
        index,
        parameters,
        records,
        answers,
        &noise.proof,
        proven,
        key,
        false,
    );
    let proof = proof.expect("a true statement");
    let alone = |proofs: [&[u8]; 2]| {
        let item = Item::single(case.record, proofs);
        answer::verify(index, parameters, item).is_ok()
    };
    let statement = NoiseStatement::single(
        parameters.window,
        case.record.slot,
        index.layout.capacity,
        Noise {
            gains: parameters.gains.clone(),
        },
    );
    for _ in 0..3 {
        let (checked, both) = timed(|| (0..10).all(|_| alone([&noise.proof, &proof])));
        let noises = || (0..10).all(|_| drawn::verify(&statement, &noise.proof).is_ok());
        let (noise_checked, first) = timed(noises);
        assert!(checked && noise_checked);
        println!(
            "query proof: {} bytes, verified in {:.4} s ({:.4} s with its noise proof)",
            proof.len(),
            (both - first) / 10.0,
            both / 10.0
        );
    }
}

const NORM_FACTOR: u64 = 8145;

fn int4(i: usize) -> i8 {
    ((i * i / 7 + i) % 15) as i8 - 7
}

/// cq, hq or htopk by its tag.
fn commitment(tag: u64, salt: Fr, rest: impl IntoIterator<Item = Fr>) -> Fr {
    let mut list = vec![salt];
    list.extend(rest);
    hash_list(tag, &list)
}

/// hq.
pub fn tokens_hash(salt: Fr, tokens: &[u32]) -> Fr {
    let base = Fr::from(1u64 << TOKEN_BITS);
    let pack = |sum: Fr, token: &u32| sum * base + Fr::from(*token);
    let packed = tokens.chunks(TOKENS_PER_ELEMENT);
    let packed = packed.map(|run| run.iter().rev().fold(Fr::from(0u8), pack));
    let number = Fr::from(tokens.len() as u64);
    commitment(TAG_QUERY, salt, [number].into_iter().chain(packed))
}

/// cq.
pub fn vector_hash(salt: Fr, vector: &[i8]) -> Fr {
    commitment(4, salt, pack_nibbles(vector))
}

/// One tenant with one record, from fixed numbers.
pub struct Case {
    pub key: IndexKey,
    pub seed: Seed,
    pub rows: Vec<i8>,
    pub dimension: usize,
    pub parameters: Parameters,
    pub index: Arc<IndexCommitment>,
    pub record: Record,
    pub answer: Answer,
    /// Of a sampled tenant.
    pub bernoulli: Option<DrawnProof>,
}

/// About the Bernoulli bits of 0.9 of a tenant's positions.
pub fn bernoulli_statement(capacity: usize) -> BernoulliStatement {
    let slot = Slot {
        c_seed: hash(&[1u8, 1, 2].map(Fr::from)).expect("three inputs fit"),
        beacon: Fr::from(8u8),
        slot: Fr::from(99u8),
    };
    let bound = 989_560_464_998;
    BernoulliStatement::single([6; 32], slot, capacity, Bernoulli { bound })
}

impl Case {
    /// Without gains the exact top K is listed.
    pub fn new(capacity: usize, dimension: usize, gains: &[u32]) -> Self {
        Self::of(capacity, dimension, gains, None)
    }

    pub fn sampled(capacity: usize, dimension: usize, gains: &[u32]) -> Self {
        let seed = Seed([Fr::from(1u8), Fr::from(2u8)]);
        let bernoulli = drawn::prove(
            &bernoulli_statement(capacity),
            std::slice::from_ref(&seed),
            false,
        )
        .expect("a true statement");
        Self::of(capacity, dimension, gains, Some(bernoulli))
    }

    fn of(capacity: usize, dimension: usize, gains: &[u32], bernoulli: Option<DrawnProof>) -> Self {
        let (key, seed) = (IndexKey([9; 32]), Seed([Fr::from(1u8), Fr::from(2u8)]));
        let rows: Vec<i8> = (0..capacity * dimension).map(int4).collect();
        let query: Vec<i8> = (0..dimension).map(|j| int4(3 * j + 1)).collect();
        let parameters = Parameters {
            window: [4; 32],
            gains: gains.to_vec(),
            listed: 5,
            lo: 101,
            hi: 810,
            lattice: 128,
            sample: bernoulli
                .as_ref()
                .map(|bernoulli| bernoulli.columns[0].rows.clone()),
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
        let noise = match gains {
            [] => vec![0; capacity],
            _ => draw(&noise_key(&seed, slot.beacon, slot.slot), capacity, gains)
                .expect("gains are well-formed"),
        };
        // Quantised, a score of 0 is 0.
        let mut scoring = scores.clone();
        if let Some(opening) = bernoulli
            .as_ref()
            .and_then(|bernoulli| bernoulli.columns[0].opening.as_ref())
        {
            let sample = scoring.iter_mut().zip(&opening.values);
            sample.for_each(|(score, bit)| *score *= *bit as i32);
        }
        let window = ScoreWindow::new(parameters.lo, parameters.hi, parameters.lattice)
            .expect("a well-formed window");
        let listed = noised_top_k(&scoring, &window, &noise, parameters.listed)
            .expect("fewer than all positions");
        let (query_salt, list_salt) = (Fr::from(5u8), Fr::from(6u8));
        let list = [listed.len()].into_iter().chain(listed.iter().copied());
        Self {
            index: Arc::new(commit_index(&rows, dimension, capacity, &key).expect("int4 rows")),
            record: Record {
                slot,
                context: Fr::from(7u8),
                cq: vector_hash(query_salt, &query),
                htopk: commitment(5, list_salt, list.map(|v| Fr::from(v as u64))),
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
            bernoulli,
        }
    }
}

/// One query of sixteen tokens against a public table.
pub struct EmbedCase {
    pub rows: Vec<i8>,
    pub table: IndexCommitment,
    pub query: Query,
    hq: Fr,
    cq: Fr,
}

impl EmbedCase {
    pub fn new(vocabulary: usize, dimension: usize) -> Self {
        let rows: Vec<i8> = (0..vocabulary * dimension).map(int4).collect();
        let tokens: Vec<u32> = (0..16).map(|i| (3 + i * i) % vocabulary as u32).collect();
        let sum = |j: usize| -> i64 {
            let column = tokens.iter().map(|t| rows[*t as usize * dimension + j]);
            column.map(i64::from).sum()
        };
        let sums: Vec<i64> = (0..dimension).map(sum).collect();
        let root = (sums.iter().map(|e| e * e).sum::<i64>() << 16).isqrt();
        let scaled = |e: &i64| (2 * NORM_FACTOR as i64 * e.abs() + root) / (2 * root);
        let vector: Vec<i8> = sums
            .iter()
            .map(|e| (e.signum() * scaled(e).min(7)) as i8)
            .collect();
        let (query_salt, vector_salt) = (Fr::from(5u8), Fr::from(6u8));
        Self {
            table: commit_table(&rows, dimension).expect("int4 rows"),
            hq: tokens_hash(query_salt, &tokens),
            cq: vector_hash(vector_salt, &vector),
            rows,
            query: Query {
                tokens,
                query_salt,
                vector_salt,
            },
        }
    }

    pub fn statement(&self) -> EmbedStatement<'_> {
        EmbedStatement {
            context: Fr::from(7u8),
            table: &self.table,
            tokens: 64,
            norm_factor: NORM_FACTOR,
            hq: self.hq,
            cq: self.cq,
        }
    }
}

/// A window in which every record is another account's and no two are near.
pub fn coalition(records: usize, dimension: usize) -> (CoalitionStatement, CoalitionSecret) {
    let mut x = 1u64;
    let mut component = || {
        x = x
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((x >> 33) % 15) as i8 - 7
    };
    let vectors: Vec<i8> = (0..records * dimension).map(|_| component()).collect();
    let salts: Vec<Fr> = (0..records).map(|i| Fr::from(1 + i as u64)).collect();
    let cq = vectors
        .chunks(dimension)
        .zip(&salts)
        .map(|(v, s)| vector_hash(*s, v));
    let norms = distinct_norms(&vectors, dimension);
    let statement = CoalitionStatement {
        context: [9; 32],
        dimension,
        cq: cq.collect(),
        accounts: (0..records).collect(),
        tenants: vec![0; records],
        first: vec![0; records],
        theta: [4, 5],
        largest: [1, 1],
        class_variables: CoalitionStatement::class_variables(records, norms),
        blocks: Blocks::default(),
    };
    let secret = CoalitionSecret {
        vectors,
        salts,
        labels: (0..records).collect(),
    };
    (statement, secret)
}
