//! What the core parses, fed by libFuzzer: `make fuzz`. RAG_AUDIT_FUZZ names the target.
//!
//! Whatever the bytes, a parser takes them or refuses them by an error; libFuzzer ends with the bytes that make one panic,
//! overflow, take more memory than they are worth, or never return. Proofs are read to their end under statements that are
//! not theirs, since a verifier decides at the end alone.
#![no_main]
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::OnceLock;

use ark_bn254::{g1, g2, Fr};
use ark_ff::BigInt;
use libfuzzer_sys::fuzz_target;
use ragaudit_groth16::plan::{plan, Limits, Plan};
use ragaudit_groth16::ptau::PowersOfTau;
use ragaudit_groth16::r1cs::{R1cs, Witness};
use ragaudit_groth16::verify::{decode_inputs, decode_proof, VerifyingKey};
use ragaudit_groth16::zkey::{Key, KeyFile};
use ragaudit_scan_protocol::coalition::statement::{Blocks, CoalitionStatement};
use ragaudit_scan_protocol::coalition::verify_coalition;
use ragaudit_scan_protocol::bernoulli::{BernoulliStatement, Bernoulli};
use ragaudit_scan_protocol::drawn::{self, Slot};
use ragaudit_scan_protocol::embed::{check_embed, EmbedStatement};
use ragaudit_scan_protocol::engine::Plain;
use ragaudit_scan_protocol::group::{vector_generators, G1Affine};
use ragaudit_scan_protocol::index::{IndexCommitment, Layout};
use ragaudit_scan_protocol::noise::{Noise, NoiseStatement};
use ragaudit_scan_protocol::query::{check_query, QueryStatement};
use ragaudit_scan_protocol::verifier::Verifier;

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 10] = [
    ("proof", proof),
    ("certificate", noise_proof),
    ("index", index_file),
    ("zkey", zkey),
    ("ptau", ptau),
    ("r1cs", r1cs),
    ("wtns", wtns),
    ("groth16", groth16),
    ("plan", plan_file),
    ("module", module),
];

fn target() -> Target {
    let name = std::env::var("RAG_AUDIT_FUZZ").expect("RAG_AUDIT_FUZZ names the target");
    let result = TARGETS.iter().find(|(known, _)| *known == name);
    result
        .unwrap_or_else(|| panic!("no target is named {name}"))
        .1
}

fuzz_target!(|data: &[u8]| {
    static TARGET: OnceLock<Target> = OnceLock::new();
    TARGET.get_or_init(target)(data);
});

// Statements as large as those of the published proofs (`proofs*.json` of the vectors), with other values.
const CONTEXT: [u8; 32] = [9; 32];

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |all, b| all << 8 | usize::from(*b))
}

fn element(i: u64) -> Fr {
    Fr::from(i)
}

fn points(count: usize) -> Vec<G1Affine> {
    vector_generators::<Plain>(count)[..count].to_vec()
}

fn index(dimension: usize, capacity: usize) -> IndexCommitment {
    let layout = Layout::new(capacity).expect("a capacity");
    let points = points(dimension * layout.rows());
    IndexCommitment {
        layout,
        dimension,
        points,
    }
}

/// The first byte selects the run.
fn proof(data: &[u8]) {
    let Some((run, data)) = data.split_first() else {
        return;
    };
    match run % 3 {
        0 => {
            let (index, rows) = (index(3, 12), points(1));
            let statement = QueryStatement {
                context: CONTEXT,
                index: &index,
                noise: vec![&rows],
                sample: None,
                gains: vec![1, 8],
                records: vec![[element(1), element(2)]],
                listed: 2,
                lo: 5,
                hi: 60,
                lattice: 32,
            };
            let _ = check_query::<Verifier>(&statement, data);
        }
        1 => {
            let table = index(3, 10);
            let statement = EmbedStatement {
                context: element(3),
                table: &table,
                tokens: 4,
                norm_factor: 8145,
                hq: element(1),
                cq: element(2),
            };
            let _ = check_embed::<Verifier>(&statement, data);
        }
        _ => {
            let statement = CoalitionStatement {
                context: CONTEXT,
                dimension: 6,
                cq: (1..=4).map(element).collect(),
                accounts: vec![0, 1, 2, 0],
                tenants: vec![0, 0, 1],
                first: vec![0; 4],
                theta: [4, 5],
                largest: [2, 2],
                class_variables: 2,
                blocks: Blocks::SHIPPED,
            };
            // How long the run over records is, in three bytes; it, and the one over pairs.
            let Some((length, data)) = data.split_at_checked(3) else {
                return;
            };
            let (records, pairs) = data.split_at(number(length).min(data.len()));
            let result = verify_coalition::<Plain>(&statement, records, &[pairs]);
            assert!(result.is_err(), "a proof of a false statement");
        }
    }
}

/// Of noise, or of Bernoulli bits.
fn noise_proof(data: &[u8]) {
    let Some((run, data)) = data.split_first() else {
        return;
    };
    let [c_seed, beacon, slot] = [1, 2, 3].map(element);
    let slot = Slot {
        c_seed,
        beacon,
        slot,
    };
    match run % 2 {
        0 => {
            let statement = NoiseStatement {
                context: CONTEXT,
                slots: vec![slot],
                capacity: 12,
                distribution: Noise { gains: vec![1, 8] },
            };
            let _ = drawn::check::<Verifier, _>(&statement, data);
        }
        _ => {
            let bernoulli = Bernoulli { bound: 1 << 39 };
            let statement = BernoulliStatement::single(CONTEXT, slot, 12, bernoulli);
            let _ = drawn::check::<Verifier, _>(&statement, data);
        }
    }
}

/// Dimension and capacity, three bytes each, then the points.
fn index_file(data: &[u8]) {
    let Some((head, points)) = data.split_at_checked(6) else {
        return;
    };
    let (dimension, capacity) = (number(&head[..3]), number(&head[3..]));
    if let Ok(index) = IndexCommitment::decode::<Plain>(points, dimension, capacity) {
        assert_eq!(index.encode(), points, "two encodings of one index");
    }
}

/// A file of those bytes, which readers open by its path.
fn file(data: &[u8]) -> (File, PathBuf) {
    let path = std::env::temp_dir().join(format!("rag-audit-fuzz-{}", std::process::id()));
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    let mut file = options.open(&path).expect("a file");
    std::fs::remove_file(&path).expect("the file");
    file.write_all(data).expect("room");
    file.rewind().expect("a file");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    (file, path)
}

fn zkey(data: &[u8]) {
    let (_sample, path) = file(data);
    let Ok(key) = KeyFile::open(&path) else {
        return;
    };
    let _ = key.contributions();
    let _ = VerifyingKey::of(&key);
    for id in [3, 5, 6, 8, 9] {
        let _ = key.points::<g1::Config>(id);
        let _ = key.plain_points::<g1::Config>(id);
    }
    let _ = key.points::<g2::Config>(7);
    // What is read as a whole has every section checked.
    let _ = Key::read(&path);
}

fn ptau(data: &[u8]) {
    let (_sample, path) = file(data);
    let Ok(powers) = PowersOfTau::open(&path) else {
        return;
    };
    let n = 1 << powers.power;
    let _ = powers.points::<g1::Config>(2, 0, 2 * n - 1);
    let _ = powers.points::<g2::Config>(3, 0, n);
    for id in [12, 14, 15] {
        let _ = powers.lagrange::<g1::Config>(id, n);
    }
    let _ = powers.lagrange::<g2::Config>(13, n);
}

fn r1cs(data: &[u8]) {
    let (_sample, path) = file(data);
    let _ = R1cs::read(&path);
}

fn wtns(data: &[u8]) {
    let _ = Witness::parse(data);
}

/// A verification key's text, or a proof and public inputs.
fn groth16(data: &[u8]) {
    match std::str::from_utf8(data) {
        Ok(text) if text.starts_with('{') => {
            let _ = VerifyingKey::parse(text);
        }
        _ => {
            let (proof, inputs) = data.split_at(data.len().min(256));
            let _ = (decode_proof(proof), decode_inputs(inputs));
        }
    }
}

/// A plan that is read is written as it was, and its steps go through whatever they do, on inputs `a` and `b`.
fn plan_file(data: &[u8]) {
    let Ok(plan) = Plan::parse(data, "plan") else {
        return;
    };
    assert_eq!(plan.to_bytes(), data, "two files of one plan");
    taken(&plan, data);
}

/// A circuit's code, and the plan of what is one.
fn module(data: &[u8]) {
    let limits = Limits {
        steps: 1 << 18,
        pages: 64,
        nodes: 1 << 14,
        writes: 1 << 10,
    };
    let Ok(Ok(result)) = plan(data, &limits) else {
        return;
    };
    let file = result.to_bytes();
    let read = Plan::parse(&file, "plan").expect("a plan that was made");
    assert_eq!(read, result);
    taken(&read, &file);
}

/// Take a plan's steps on inputs of the numbers that it asks for; the first one is `a`, the second `b`.
fn taken(plan: &Plan, file: &[u8]) {
    let word = |at: usize| file[at..at + 4].try_into().map(u32::from_le_bytes);
    let count = |i: usize| word(28 + 12 * i + 8).expect("4 bytes") as usize;
    let inputs = word(8).expect("4 bytes") as usize;
    if inputs > 2 || (0..inputs).map(count).sum::<usize>() > 1 << 16 {
        let _ = plan.witness(&[("a", &[BigInt([1, 0, 0, 0])])]);
        return;
    }
    let values = |i: usize| -> Vec<BigInt<4>> {
        let numbers = (0..count(i) as u64).map(|k| BigInt([k * k + 7, k, 0, k]));
        numbers.collect()
    };
    let values: Vec<_> = (0..inputs).map(values).collect();
    let named: Vec<(&str, &[BigInt<4>])> = ["a", "b"]
        .into_iter()
        .zip(values.iter().map(Vec::as_slice))
        .collect();
    let _ = plan.witness(&named);
}
