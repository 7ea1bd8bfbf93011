//! One bench for each layer of the scan argument, from the group up: `cargo bench -p ragaudit-bench`.
use std::sync::Arc;

use criterion::{criterion_group, criterion_main, BatchSize, BenchmarkId, Criterion};
use ragaudit_bench::{bernoulli_statement, coalition, Case, EmbedCase};
use ragaudit_field_simd::poseidon::{permute, WIDTH};
use ragaudit_scan_prover::answer::{prove, prove_noise, verify, Item};
use ragaudit_scan_prover::batch::verify_all;
use ragaudit_scan_prover::claims::Bound;
use ragaudit_scan_prover::coalition::{prove_pairs, prove_records, verify_coalition};
use ragaudit_scan_prover::drawn;
use ragaudit_scan_prover::embed::{prove_embed, verify_embed};
use ragaudit_scan_prover::expr::Expr;
use ragaudit_scan_prover::group::{
    decode_points, encode_points, small_msm, vector_generators, Fr, G1Affine,
};
use ragaudit_scan_prover::hidden_query::HiddenQuery;
use ragaudit_scan_prover::index::commit_index;
use ragaudit_scan_prover::index_link::{commit_query, IndexLink, IndexLinkSecret};
use ragaudit_scan_prover::lookup::{lookups, Count, Entry, Segment};
use ragaudit_scan_prover::mle::{evaluate, Weight};
use ragaudit_scan_prover::numbers::from_small;
use ragaudit_scan_prover::poseidon::hashes;
use ragaudit_scan_prover::prover::Prover;
use ragaudit_scan_prover::query::ProvenColumns;
use ragaudit_scan_prover::session::{Column, ColumnId, Opening, Session};
use ragaudit_scan_prover::sumcheck::{sumcheck, Gate};
use ragaudit_scan_prover::transcript::Transcript;

const VARIABLES: usize = 14;
const ROW_VARIABLES: usize = 11;

fn session() -> Session<'static, Prover> {
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
    let bytes = encode_points(&points[..256]);
    c.bench_function("group/decoding of 256 points", |b| {
        b.iter(|| decode_points(&bytes))
    });
}

fn transcript(c: &mut Criterion) {
    let mut transcript: Transcript = Transcript::new("bench");
    c.bench_function("transcript/challenge", |b| {
        b.iter(|| transcript.challenge("bench"))
    });
}

fn columns(c: &mut Criterion) {
    let values: Vec<i64> = (0..1 << VARIABLES).map(|i| i * 31 % 65_536).collect();
    c.bench_function("session/a column of 2^14", |b| {
        b.iter(|| {
            let values = Some(vec![values.clone()]);
            session().commit_bounded("column", &[(1 << VARIABLES, Bound::Unsigned(16))], values)
        })
    });
}

/// Claims what a column extends to at a random point.
fn claim(session: &mut Session<Prover>, id: ColumnId, variables: usize) {
    let point = session.challenges("point", variables);
    let known = session.known().expect("the prover's side");
    let mut table: Vec<Fr> = known.column(id).iter().map(|v| from_small(*v)).collect();
    table.resize(1 << variables, Fr::from(0u8));
    let value = evaluate(&table, &point);
    let sent = session.send("value", 1, Some(&[value])).expect("a message");
    let weight = Weight::evaluation(&point);
    session.claim(weight, vec![(id, Fr::from(1u8))], sent[0].into());
}

fn openings(c: &mut Criterion) {
    let values: Vec<i64> = (0..1 << VARIABLES).map(|i| i * 31 % 65_536).collect();
    let claimed = || {
        let mut session = session();
        let ids = session
            .commit("column", &[VARIABLES], Some(vec![values.clone()]))
            .expect("a column");
        claim(&mut session, ids[0], VARIABLES);
        session
    };
    c.bench_function("inner product/a column of 2^14 opened", |b| {
        b.iter_batched(
            claimed,
            |session| session.close(None).expect("a proof"),
            BatchSize::LargeInput,
        )
    });
}

/// The scores' column follows from the index commitment and the hidden query, and is opened at a point.
fn matrix_vector(c: &mut Criterion) {
    let case = Case::new(10_000, 256, &[1]);
    let layout = case.index.layout;
    let (salt, blinding) = (Fr::from(5u8), Fr::from(6u8));
    let query = G1Affine::from(commit_query(&case.answer.query, &salt, &blinding));
    let claimed = || {
        let transcript = Transcript::new("bench");
        let mut session: Session<Prover> =
            Session::prover(transcript, layout.row_variables, b"bench").expect("randomness");
        let id = session.add_column(Column {
            variables: layout.variables,
            rows: Vec::new(),
            opening: Some(Arc::new(Opening {
                values: case.answer.scores.clone(),
                blindings: Vec::new(),
            })),
        });
        claim(&mut session, id, layout.variables);
        session
    };
    let blindings = |place| case.key.blinding(place);
    let link = || IndexLink {
        index: &case.index,
        queries: vec![query],
        secret: Some(IndexLinkSecret {
            hidden_queries: vec![HiddenQuery {
                components: &case.answer.query,
                salt,
            }],
            blindings: vec![blinding],
            index: &blindings,
        }),
        claims: Vec::new(),
        scores: vec![ColumnId(0)],
    };
    c.bench_function("matrix-vector/256 components, 10000 positions", |b| {
        b.iter_batched(
            claimed,
            |session| session.close(Some(link())).expect("a proof"),
            BatchSize::LargeInput,
        )
    });
}

fn permutations(c: &mut Criterion) {
    let states: Vec<[Fr; WIDTH]> = (0..512u64)
        .map(|b| {
            let mut state = [Fr::from(0u8); WIDTH];
            state[1] = Fr::from(b);
            state
        })
        .collect();
    let outputs: Vec<Fr> = states.iter().map(|state| permute(state)[0]).collect();
    c.bench_function("poseidon/512 hashes", |b| {
        b.iter(|| hashes(&mut session(), &outputs, Some(&states)).expect("hashes"))
    });
}

fn sums(c: &mut Criterion) {
    let table: Vec<Fr> = (0..1u64 << VARIABLES)
        .map(|i| Fr::from(i * i + 1))
        .collect();
    c.bench_function("sumcheck/product over 2^14", |b| {
        b.iter(|| {
            let mut session = session();
            let tau = session.challenges("tau", VARIABLES);
            let tables = vec![table.clone(), table.clone()];
            sumcheck(
                &mut session,
                "bench",
                &tau,
                Expr::zero(),
                2,
                Some(tables),
                Gate::Product,
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
            lookups(&mut session, vec![looked_up, table]).expect("lookups")
        })
    });
}

fn records(c: &mut Criterion) {
    let mut group = c.benchmark_group("record");
    group.sample_size(10);
    for (capacity, gains) in [(256, &[1][..]), (10_000, &[1]), (10_000, &[1, 8, 64])] {
        let case = Case::new(capacity, 256, gains);
        let (seeds, answers) = ([case.seed.clone()], std::slice::from_ref(&case.answer));
        let name =
            |what| BenchmarkId::new(what, format!("{capacity} positions, {} gains", gains.len()));
        group.bench_function(name("index"), |b| {
            b.iter(|| commit_index(&case.rows, case.dimension, capacity, &case.key))
        });
        let noise_proof = || {
            prove_noise(
                &case.index,
                &case.parameters,
                &[case.record.slot],
                &seeds,
                false,
            )
        };
        group.bench_function(name("certificate"), |b| b.iter(noise_proof));
        let result = noise_proof().expect("a true statement");
        let proof = || {
            prove(
                &case.index,
                &case.parameters,
                &[case.record],
                answers,
                &result.proof,
                ProvenColumns {
                    noise: &result.columns,
                    sample: None,
                },
                &case.key,
                false,
            )
        };
        group.bench_function(name("query proof"), |b| b.iter(proof));
        let proof = proof().expect("a true statement");
        let item = Item::single(case.record, [&result.proof, &proof]);
        group.bench_function(name("verify"), |b| {
            b.iter(|| verify(&case.index, &case.parameters, item.clone()).expect("it holds"))
        });
        let batch = vec![item.clone(); 10];
        group.bench_function(name("verify ten"), |b| {
            b.iter(|| verify_all(&case.index, &case.parameters, &batch))
        });
    }
    group.finish();
}

/// What a sampled tenant needs: the window's Bernoulli bits once, and exact answers without a noise proof of their own.
fn sampled(c: &mut Criterion) {
    let mut group = c.benchmark_group("sampled");
    group.sample_size(10);
    for (capacity, gains) in [(10_000, &[][..]), (10_000, &[1, 8, 64]), (100_000, &[])] {
        let case = Case::sampled(capacity, 256, gains);
        let (seeds, answers) = ([case.seed.clone()], std::slice::from_ref(&case.answer));
        let name =
            |what| BenchmarkId::new(what, format!("{capacity} positions, {} gains", gains.len()));
        let (statement, bernoulli) = (
            bernoulli_statement(capacity),
            case.bernoulli.as_ref().expect("sampled"),
        );
        if gains.is_empty() {
            group.bench_function(name("coin certificate"), |b| {
                b.iter(|| drawn::prove(&statement, &seeds, false))
            });
            group.bench_function(name("verify the coins"), |b| {
                b.iter(|| drawn::verify(&statement, &bernoulli.proof).expect("it holds"))
            });
        }
        let noise_proof = (!gains.is_empty()).then(|| {
            let slots = [case.record.slot];
            prove_noise(&case.index, &case.parameters, &slots, &seeds, false)
                .expect("a certificate")
        });
        let proven = ProvenColumns {
            noise: noise_proof.as_ref().map_or(&[], |result| &result.columns),
            sample: Some(&bernoulli.columns[0]),
        };
        let noise_proof = noise_proof.as_ref().map_or(&[][..], |result| &result.proof);
        let proof = || {
            prove(
                &case.index,
                &case.parameters,
                &[case.record],
                answers,
                noise_proof,
                proven,
                &case.key,
                false,
            )
        };
        group.bench_function(name("query proof"), |b| b.iter(proof));
        let proof = proof().expect("a true statement");
        let item = Item::single(case.record, [noise_proof, &proof]);
        group.bench_function(name("verify"), |b| {
            b.iter(|| verify(&case.index, &case.parameters, item.clone()).expect("it holds"))
        });
    }
    group.finish();
}

fn embeddings(c: &mut Criterion) {
    let mut group = c.benchmark_group("embed");
    group.sample_size(10);
    let case = EmbedCase::new(32_000, 256);
    let prove = || prove_embed(&case.statement(), &case.rows, &case.query).expect("a proof");
    group.bench_function("prove", |b| b.iter(prove));
    let proof = prove();
    group.bench_function("verify", |b| {
        b.iter(|| verify_embed(&case.statement(), &proof).expect("it holds"))
    });
    group.finish();
}

fn coalitions(c: &mut Criterion) {
    let mut group = c.benchmark_group("coalition");
    group.sample_size(10);
    let (statement, secret) = coalition(256, 256);
    let prove = || {
        let (records, blindings) = prove_records(&statement, &secret).expect("a proof");
        let runs = 0..statement.runs().expect("a shape");
        let pairs = runs.map(|run| prove_pairs(&statement, &secret, &records, &blindings, run));
        let pairs: Vec<Vec<u8>> = pairs.collect::<Result<_, _>>().expect("proofs");
        (records, pairs)
    };
    group.bench_function("prove 256 records", |b| b.iter(prove));
    let (records, pairs) = prove();
    let pairs: Vec<&[u8]> = pairs.iter().map(|p| &p[..]).collect();
    group.bench_function("verify 256 records", |b| {
        b.iter(|| verify_coalition(&statement, &records, &pairs).expect("it holds"))
    });
    group.finish();
}

criterion_group!(
    benches,
    group,
    transcript,
    columns,
    openings,
    sums,
    look_up,
    permutations,
    matrix_vector,
    records,
    sampled,
    embeddings,
    coalitions
);
criterion_main!(benches);
