//! Processor time and size of a sampling proof, of proofs of a document table over the same positions, and of proofs of names of
//! its rows, in one run:
//! `cargo run --release -p ragaudit-bench --example document_table -- 100000`.
use ragaudit_bench::{bernoulli_statement, timed};
use ragaudit_scan_prover::document_table::{
    self, commit, Carried, DocumentTableProof, DocumentTableStatement, Previous, Table, TableKey,
};
use ragaudit_scan_prover::drawn;
use ragaudit_scan_prover::group::Fr;
use ragaudit_scan_prover::index::Layout;
use ragaudit_scan_prover::pooled_listing::listed_column;
use ragaudit_scan_prover::row_names::{self, RowNamesStatement};
use ragaudit_scan_prover::session::Column;
use ragaudit_scan_prover::words::Seed;

fn points(columns: &[&Column]) -> std::vec::IntoIter<Vec<ragaudit_scan_prover::group::G1Affine>> {
    let all: Vec<_> = columns.iter().map(|c| c.rows.clone()).collect();
    all.into_iter()
}

/// A table of rows with equally many positions; the first rows of the first window have none, so that they may be given up.
fn table(capacity: usize, rows: usize, empty: usize) -> Table<Column> {
    let row = |p: usize| (empty + p % (rows - empty)) as i64;
    let names: Vec<_> = (0..rows as u64).map(|r| Some(-Fr::from(r + 1))).collect();
    let layout = Layout::new(capacity).expect("a capacity");
    let row = (0..capacity).map(row).collect();
    commit(layout, row, &names, &TableKey([3; 32])).expect("a table")
}

/// Proves and verifies a statement, and prints the costs.
fn measured(
    fresh: &str,
    statement: &DocumentTableStatement,
    seed: &Seed,
    table: &Table<Column>,
    carried: Option<Carried>,
) -> DocumentTableProof {
    let (made, seconds) = timed(|| document_table::prove(statement, seed, table, carried, false));
    let made = made.expect("a true statement");
    let (checked, verifying) = timed(|| document_table::verify(statement, &made.proof).is_ok());
    assert!(checked);
    println!(
        "{} rows, {fresh}: {seconds:.2} s, {} bytes, verified in {verifying:.3} s",
        statement.rows,
        made.proof.len()
    );
    made
}

/// Proves and verifies the names of `count` positions, and prints the costs.
fn measured_names(capacity: usize, rows: usize, count: usize, table: &Table<Column>) {
    let row = &table.row.opening.as_ref().expect("an opening").values;
    let step = capacity / count;
    let opened = (0..count).map(|j| (j * step, -Fr::from(row[j * step] as u64 + 1)));
    let statement = RowNamesStatement {
        context: [6; 32],
        capacity,
        rows,
        table: Table::named(&mut points(&table.each().collect::<Vec<_>>())),
        opened: opened.collect(),
    };
    let (proof, seconds) = timed(|| row_names::prove(&statement, table));
    let proof = proof.expect("a true statement");
    let (checked, verifying) = timed(|| row_names::verify(&statement, &proof).is_ok());
    assert!(checked);
    println!(
        "{rows} rows, names of {count} positions: {seconds:.3} s, {} bytes, verified in {verifying:.3} s",
        proof.len()
    );
}

fn main() {
    let capacity: usize = std::env::args()
        .nth(1)
        .map_or(100_000, |n| n.parse().expect("a number of positions"));
    let seed = Seed([Fr::from(1u8), Fr::from(2u8)]);
    let sampling = bernoulli_statement(capacity);
    // The first proof makes tables of generators.
    let seeds = std::slice::from_ref(&seed);
    drawn::prove(&sampling, seeds, false).expect("a true statement");
    for share in [1, 2, 4, 40] {
        let (made, seconds) = timed(|| drawn::prove(&sampling, seeds, false));
        let proof = made.expect("a true statement").proof;
        println!("sampling proof: {seconds:.2} s, {} bytes", proof.len());
        let rows = capacity / share;
        let fresh = rows / 20;
        let statement = |table: &Table<Column>, fresh, previous: Option<&Previous<Column>>| {
            DocumentTableStatement {
                context: [6; 32],
                slot: sampling.slots[0],
                coins: sampling.distribution.clone(),
                capacity,
                rows,
                positions_per_row: 2 * share,
                fresh,
                table: Table::named(&mut points(&table.each().collect::<Vec<_>>())),
                previous: previous
                    .map(|p| Previous::named(&mut points(&p.each().collect::<Vec<_>>()))),
            }
        };
        let (first, committing) = timed(|| table(capacity, rows, fresh));
        let s = statement(&first, rows, None);
        let made = measured(
            &format!("all fresh, table {committing:.2} s"),
            &s,
            &seed,
            &first,
            None,
        );
        for count in [10, 200, 10_000] {
            measured_names(capacity, rows, count.min(capacity), &first);
        }
        let mut previous = Previous {
            names: first.names.clone(),
            kept: made.columns.kept,
            count: made.columns.count,
            listed: None,
        };
        let rows_before: Vec<usize> = (fresh..rows).collect();
        // Without the listed rows of the window before, and with a tenth of all rows listed.
        for listed in ["", ", listed rows carried"] {
            if !listed.is_empty() {
                let layout = Layout::new(capacity).expect("a capacity");
                let points = rows.div_ceil(1 << layout.row_variables) as u64;
                let blindings = (1..=points).map(Fr::from).collect();
                let bits = (0..rows).map(|r| i64::from(r % 10 == 0)).collect();
                previous.listed = Some(listed_column(layout, bits, blindings).expect("a column"));
            }
            let s = statement(&first, fresh, Some(&previous));
            let carried = Carried {
                previous: &previous,
                rows: &rows_before,
            };
            let name = format!("{fresh} fresh{listed}");
            measured(&name, &s, &seed, &first, Some(carried));
        }
    }
}
