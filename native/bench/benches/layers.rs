//! One bench for each layer of the scan argument, from the group up: `cargo bench -p ragaudit-bench`.
use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion};
use ragaudit_bench::Case;
use ragaudit_scan::answer::{certify, prove, verify, verify_batch};
use ragaudit_scan::expr::Expr;
use ragaudit_scan::group::{decode_point, encode_point, small_msm, vector_generators, Fr};
use ragaudit_scan::index::commit_index;
use ragaudit_scan::lookup::{lookups, Count, Entry, Segment};
use ragaudit_scan::session::Session;
use ragaudit_scan::sumcheck::sumcheck;
use ragaudit_scan::transcript::Transcript;

const VARIABLES: usize = 14;
const ROW_VARIABLES: usize = 11;

fn session() -> Session<'static> {
    Session::prover(Transcript::new("bench"), ROW_VARIABLES, b"bench").expect("randomness")
}

fn group(c: &mut Criterion) {
    let points = vector_generators(4096);
    for bits in [4, 8, 16, 32] {
        let values: Vec<i64> = (0..4096i64)
            .map(|i| i * 2_654_435_761 % (1 << bits))
            .collect();
        c.bench_function(&format!("group/4096 values of {bits} bits"), |b| {
            b.iter(|| small_msm(&points[..4096], &values))
        });
    }
    let bytes = encode_point(&points[1]);
    c.bench_function("group/decoding", |b| b.iter(|| decode_point(&bytes)));
}

fn transcript(c: &mut Criterion) {
    let mut transcript = Transcript::new("bench");
    c.bench_function("transcript/challenge", |b| {
        b.iter(|| transcript.challenge("bench"))
    });
}

fn columns(c: &mut Criterion) {
    let values: Vec<i64> = (0..1 << VARIABLES).map(|i| i * 31 % 65_536).collect();
    c.bench_function("session/a column of 2^14", |b| {
        b.iter(|| session().commit("column", &[VARIABLES], Some(vec![values.clone()])))
    });
}

fn sums(c: &mut Criterion) {
    let table: Vec<Fr> = (0..1u64 << VARIABLES)
        .map(|i| Fr::from(i * i + 1))
        .collect();
    c.bench_function("sumcheck/cubic over 2^14", |b| {
        b.iter(|| {
            let mut session = session();
            let tau = session.challenges("tau", VARIABLES);
            let tables = vec![table.clone(), table.clone(), table.clone()];
            let gate = |t: &[Fr]| t[0] * t[1] * t[2];
            sumcheck(
                &mut session,
                "bench",
                &tau,
                Expr::zero(),
                3,
                Some(tables),
                gate,
            )
        })
    });
}

fn look_up(c: &mut Criterion) {
    let values: Vec<i64> = (0..1 << VARIABLES).map(|i| i * 31 % 1024).collect();
    let mut counts = vec![0; 1024];
    values.iter().for_each(|v| counts[*v as usize] += 1);
    c.bench_function("lookup/2^14 values in 2^10 rows", |b| {
        b.iter(|| {
            let mut session = session();
            let columns = Some(vec![values.clone(), counts.clone()]);
            let ids = session
                .commit("columns", &[VARIABLES, 10], columns)
                .expect("columns");
            let looked_up = Segment {
                variables: VARIABLES,
                tag: 1,
                entries: vec![Entry::Columns(vec![(ids[0], Fr::from(1u8))])],
                count: Count::Once,
            };
            let table = Segment {
                variables: 10,
                tag: 1,
                entries: vec![Entry::Row],
                count: Count::Table(ids[1]),
            };
            lookups(&mut session, vec![looked_up, table])
        })
    });
}

fn records(c: &mut Criterion) {
    let mut group = c.benchmark_group("record");
    group.sample_size(10);
    for (capacity, gains) in [(256, &[1][..]), (10_000, &[1]), (10_000, &[1, 8, 64])] {
        let case = Case::new(capacity, 256, gains);
        let name =
            |what| BenchmarkId::new(what, format!("{capacity} positions, {} gains", gains.len()));
        group.bench_function(name("index"), |b| {
            b.iter(|| commit_index(&case.rows, case.dimension, capacity, &case.key))
        });
        let certificate = || certify(&case.index, &case.parameters, &case.record.slot, &case.seed);
        group.bench_function(name("certificate"), |b| b.iter(certificate));
        let made = certificate().expect("a true statement");
        let proof = || {
            prove(
                &case.index,
                &case.parameters,
                &case.record,
                &case.answer,
                &made.proof,
                &made.noise,
                &case.key,
            )
        };
        group.bench_function(name("query proof"), |b| b.iter(proof));
        let proof = proof().expect("a true statement");
        let parts = [&made.proof[..], &proof[..]];
        group.bench_function(name("verify"), |b| {
            b.iter(|| verify(&case.index, &case.parameters, &case.record, parts).expect("it holds"))
        });
        let batch = vec![(case.record, parts); 10];
        group.bench_function(name("verify ten"), |b| {
            b.iter(|| verify_batch(&case.index, &case.parameters, &batch))
        });
    }
    group.finish();
}

criterion_group!(benches, group, transcript, columns, sums, look_up, records);
criterion_main!(benches);
