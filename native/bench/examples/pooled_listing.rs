//! Processor time and size of the proof of an answer by pooled listing, alone and with others in a proof, beside the sampling
//! proof of the positions: `cargo run --release -p ragaudit-bench --example pooled_listing -- 100000`.
use ragaudit_bench::{bernoulli_statement, timed, Case};
use ragaudit_field_simd::poseidon::hash_list;
use ragaudit_scan_prover::bernoulli::Bernoulli;
use ragaudit_scan_prover::document_table::{self, commit, DocumentTableStatement, Table, TableKey};
use ragaudit_scan_prover::drawn;
use ragaudit_scan_prover::group::Fr;
use ragaudit_scan_prover::pooled_listing::{
    answers, commit_and_prove, nothing_listed, verify, Given, Inputs, PooledListingStatement,
    Record,
};
use ragaudit_scan_prover::query::Answer;
use ragaudit_scan_prover::words::Seed;

const DIMENSION: usize = 256;
/// The number of measurements of which each figure is the minimum.
const REPETITIONS: usize = 3;

/// The result of the last repetition, with the smallest processor time.
fn repeated<T>(mut work: impl FnMut() -> T) -> (T, f64) {
    let (mut result, mut least) = timed(&mut work);
    for _ in 1..REPETITIONS {
        let (again, seconds) = timed(&mut work);
        (result, least) = (again, least.min(seconds));
    }
    (result, least)
}

fn main() {
    let capacity: usize = std::env::args()
        .nth(1)
        .map_or(100_000, |n| n.parse().expect("a number of positions"));
    let sampling = bernoulli_statement(capacity);
    let seed = Seed([Fr::from(1u8), Fr::from(2u8)]);
    let seeds = std::slice::from_ref(&seed);
    // The first proof makes tables of generators.
    drawn::prove(&sampling, seeds, false).expect("a true statement");
    let case = Case::new(capacity, DIMENSION, &[]);
    let (bits, seconds) = repeated(|| drawn::prove(&sampling, seeds, false));
    let bits = bits.expect("a true statement").proof.len();
    println!("sampling proof: {seconds:.2} s, {bits} bytes");
    for share in [1, 4, 40] {
        let layout = case.index.layout;
        let rows = capacity / share;
        let names: Vec<_> = (0..rows as u64).map(|r| Some(-Fr::from(r + 1))).collect();
        let row = (0..capacity).map(|p| (p % rows) as i64).collect();
        let table = commit(layout, row, &names, &TableKey([3; 32])).expect("a table");
        let statement = DocumentTableStatement {
            context: [6; 32],
            slot: sampling.slots[0],
            coins: sampling.distribution.clone(),
            capacity,
            rows,
            positions_per_row: 2 * share,
            fresh: rows,
            table: Table::named(&mut table.each().map(|column| column.rows.clone())),
            previous: None,
        };
        let proven = document_table::prove(&statement, &seed, &table, None, false);
        let kept = proven.expect("a true table").columns.kept;
        let before = nothing_listed(layout, rows);
        for count in [1, 8] {
            let one = |_| Answer {
                query: case.answer.query.clone(),
                query_salt: case.answer.query_salt,
                positions: Vec::new(),
                list_salt: case.answer.list_salt,
                scores: case.answer.scores.clone(),
            };
            let mut requests: Vec<Answer> = (0..count).map(one).collect();
            let record = |_| Record {
                slot: sampling.slots[0],
                cq: case.record.cq,
                htopk: Fr::from(0u8),
                after: Vec::new(),
            };
            let mut statement = PooledListingStatement {
                context: [6; 32],
                index: &case.index,
                // A tenth of the rows in 1,000 queries.
                chance: Bernoulli { bound: 115_839_009 },
                rows,
                positions_per_row: 2 * share,
                row: &table.row.rows,
                kept: &kept.rows,
                before: &before.rows,
                records: (0..count).map(record).collect(),
                threshold: 354,
                listed: 5,
                lo: 354,
                hi: 2832,
                lattice: 4096,
            };
            let seeds = vec![Seed([Fr::from(1u8), Fr::from(2u8)]); count];
            let points = rows.div_ceil(1 << layout.row_variables) as u64;
            let blindings = |k| (1..=points).map(|b| Fr::from(1000 * k + b)).collect();
            let after: Vec<Vec<Fr>> = (1..=count as u64).map(blindings).collect();
            let given = Given {
                row: &table.row,
                kept: &kept,
                before: &before,
            };
            let inputs = Inputs {
                requests: &requests,
                seeds: &seeds,
                given,
                after: &after,
                key: &case.key,
            };
            for record in &mut statement.records {
                record.after = before.rows.clone();
            }
            let places = answers(&statement, inputs).expect("answers");
            for ((request, record), (places, after)) in
                (requests.iter_mut().zip(&mut statement.records)).zip(places)
            {
                let mut elements = vec![request.list_salt, Fr::from(places.len() as u64)];
                elements.extend(places.iter().map(|p| Fr::from(*p)));
                record.htopk = hash_list(5, &elements);
                record.after = after.rows;
                request.positions = places;
            }
            let inputs = Inputs {
                requests: &requests,
                seeds: &seeds,
                given,
                after: &after,
                key: &case.key,
            };
            let (made, seconds) = repeated(|| commit_and_prove(&mut statement, inputs, false));
            let proof = made.expect("a true statement");
            let (checked, verifying) = repeated(|| verify(&statement, &proof).is_ok());
            assert!(checked);
            let each = |total: f64| total / count as f64;
            println!(
                "{rows} rows, {count} records in a proof: a record {:.2} s, {} bytes, verified in {:.3} s",
                each(seconds),
                proof.len() / count,
                each(verifying)
            );
        }
    }
}
