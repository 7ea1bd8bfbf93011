use super::*;
use crate::channel::Channel;
use crate::claims::Bound;
use crate::document_table::tests::key;
use crate::document_table::{commit, Names, MAX_ROWS};
use crate::group::{vector_generators, G1Affine};
use crate::index::{Layout, MAX_CAPACITY};
use crate::kit::{
    all_are_needed, changes_are_refused, forgets_nothing, only_for, shape, simulated, Change,
    Protocol,
};
use crate::malicious::{caught_by, MaliciousProver, REPEATED};
use crate::malicious_claims::each_claim_excludes_a_false_value;
use crate::prover::columns;
use crate::transcript::{Oracle, Transcript};
use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::count;

pub(crate) mod vectors;

const LOOKUP: &str = "constraint: lookup layer";
const ROW_NUMBERS: &str = "column claim: row numbers";

impl Protocol for RowNamesStatement {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript()
    }

    fn rows(&self) -> Result<usize> {
        Ok(self.layout()?.row_variables)
    }

    fn run<'a, C: Channel>(&'a self, mut session: Session<'a, C>) -> Result<C::Closed> {
        row_names_protocol(&mut session, self, None)?;
        session.close(None)
    }
}

/// A statement, with the table behind its commitments.
#[derive(Clone)]
struct Case {
    statement: RowNamesStatement,
    table: Table<Column>,
}

fn name(n: u64) -> Fr {
    -Fr::from(n)
}

fn points(table: &Table<Column>) -> Table<Vec<G1Affine>> {
    Table::named(&mut table.each().map(|column| column.rows.clone()))
}

impl Case {
    /// The true names of these positions.
    fn of(row: Vec<i64>, names: &[Option<Fr>], positions: &[usize]) -> Self {
        let (capacity, rows) = (row.len(), names.len());
        let name = |p: &usize| names.get(row[*p] as usize).copied().flatten();
        let opened = positions.iter().map(|p| (*p, name(p).unwrap_or_default()));
        let opened = opened.collect();
        let table = commit(Layout::new(capacity).unwrap(), row, names, &key(0)).unwrap();
        Self {
            statement: RowNamesStatement {
                context: [7; 32],
                capacity,
                rows,
                table: points(&table),
                opened,
            },
            table,
        }
    }

    /// Documents in the rows 0 to 5, names without positions in the rows 6 and 7, a row without a name, and positions
    /// without a row.
    fn contents() -> (Vec<i64>, Vec<Option<Fr>>) {
        let row = vec![0, 1, 2, 2, 3, 0, 3, 3, 4, 0, 5, 5, 9, 9, 9, 9, 9, 9, 9, 9];
        let names = (1..9).map(|n| Some(name(n)));
        (row, names.chain([None]).collect())
    }

    fn opening(positions: &[usize]) -> Self {
        let (row, names) = Self::contents();
        Self::of(row, &names, positions)
    }

    /// Two positions of row 0, two of row 2, and one of each of the rows 1, 3 and 4.
    fn small() -> Self {
        Self::opening(&[0, 1, 2, 3, 4, 5, 8])
    }

    /// More positions and rows than a row of commitments.
    fn large() -> Self {
        let (capacity, rows) = (3000, 1100);
        let row = (0..capacity).map(|p| p * 7 % (rows + 1)).collect();
        let names: Vec<_> = (0..rows as u64).map(|r| Some(name(r + 1))).collect();
        let of_a_row = |p: &usize| (*p as i64) * 7 % (rows + 1) != rows;
        let positions = (0..3000).filter(of_a_row).step_by(2);
        Self::of(row, &names, &positions.collect::<Vec<_>>())
    }

    fn witness(&self) -> Witness {
        Witness::new(&self.statement, &self.table).unwrap()
    }

    /// The proof of a prover without checks.
    fn prove(&self, witness: Witness) -> Vec<u8> {
        let openings = openings_of(self.table.each()).unwrap();
        prove_witness::<MaliciousProver>(&self.statement, witness, openings).unwrap()
    }

    fn proved(&self) -> Vec<u8> {
        self.prove(self.witness())
    }

    fn accepted(&self, proof: &[u8]) -> bool {
        crate::kit::verify(&self.statement, proof).is_ok()
    }

    /// Whether changed columns get through.
    fn forged(&self, false_value: impl Fn(&mut Columns<Vec<i64>>)) -> bool {
        let mut witness = self.witness();
        false_value(&mut witness.columns);
        self.accepted(&self.prove(witness))
    }

    /// The same with the lookups of rows counted again.
    fn recounted(&self, false_value: impl Fn(&mut Columns<Vec<i64>>)) -> bool {
        let mut witness = self.witness();
        false_value(&mut witness.columns);
        witness.count_rows(&self.statement, self.statement.names().0.len());
        self.accepted(&self.prove(witness))
    }

    /// The same statement with other names.
    fn naming(&self, change: impl FnOnce(&mut [(usize, Fr)])) -> Self {
        let mut other = self.clone();
        change(&mut other.statement.opened);
        other
    }

    /// The same statement about a table with another value of one entry, which may be behind the last.
    fn with_entry(
        &self,
        column: impl FnOnce(&mut Table<Column>) -> &mut Column,
        entry: usize,
        value: i64,
    ) -> Self {
        let mut other = self.clone();
        let column = column(&mut other.table);
        let opening = column.opening.as_ref().unwrap();
        let (mut values, blindings) = (opening.values.clone(), opening.blindings.clone());
        values.resize(values.len().max(entry + 1), 0);
        values[entry] = value;
        let secret = columns::Secret {
            values: &values,
            blindings: &blindings,
            bound: Bound::ANY,
        };
        let length = 1 << self.statement.layout().unwrap().row_variables;
        *column = Column {
            variables: column.variables,
            rows: columns::commit(&[secret], length).remove(0),
            opening: Some(Arc::new(Opening { values, blindings })),
        };
        other.statement.table = points(&other.table);
        other
    }

    /// The honest prover's reason not to prove.
    fn reason(&self) -> String {
        let result = super::prove(&self.statement, &self.table);
        result.err().map_or(String::new(), |e| e.to_string())
    }
}

#[test]
fn proofs_verify() {
    let all: Vec<usize> = (0..12).collect();
    for (case, distinct) in [
        (Case::small(), 5),
        (Case::opening(&[4]), 1),
        (Case::opening(&[0, 5, 9]), 1),
        (Case::opening(&all), 6),
        (Case::large(), 550),
    ] {
        let (names, of_positions) = case.statement.names();
        assert_eq!(names.len(), distinct);
        let each = of_positions.iter().map(|k| names[*k]);
        assert!(each.eq(case.statement.opened.iter().map(|(_, name)| *name)));
        let proof = super::prove(&case.statement, &case.table).unwrap();
        assert_eq!(verify(&case.statement, &proof), Ok(()));
        assert_ne!(super::prove(&case.statement, &case.table), Ok(proof));
        assert!(case.forged(|_| ()));
    }
}

/// A table with one row and one position.
#[test]
fn the_smallest_table_has_a_proof() {
    let case = Case::of(vec![0], &[Some(name(1))], &[0]);
    let proof = super::prove(&case.statement, &case.table).unwrap();
    assert_eq!(verify(&case.statement, &proof), Ok(()));
    let case = Case::of(vec![1], &[Some(name(1))], &[0]);
    assert!(case.reason().ends_with("position 0 has no row, so no name"));
}

#[test]
fn a_position_without_a_proof_is_named() {
    let ends = |case: &Case, end: &str| {
        let reason = case.reason();
        assert!(reason.ends_with(end), "{reason}");
    };
    let base = Case::small();
    ends(
        &Case::opening(&[0, 12]),
        "position 12 has no row, so no name",
    );
    ends(
        &base.naming(|opened| opened[6].1 = name(7)),
        "the row of position 8 has another name",
    );
    ends(
        &base.with_entry(|table| &mut table.names.named, 2, 0),
        "the row of position 2 has no name",
    );
    let (row, mut names) = Case::contents();
    names[1] = names[0];
    ends(
        &Case::of(row, &names, &[0, 1]),
        "position 1 and an earlier position have one name and two rows",
    );
}

#[test]
fn parameters_end_where_the_errors_do() {
    let base = Case::small().statement;
    let refused = |name: &str, change: &dyn Fn(&mut RowNamesStatement)| {
        let mut other = base.clone();
        change(&mut other);
        match check(&other, &[]).err() {
            Some(Error::Invalid { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    };
    for bad in [0, MAX_CAPACITY + 1, usize::MAX] {
        refused("capacity", &|s| s.capacity = bad);
    }
    for bad in [0, 21, usize::MAX] {
        refused("rows", &|s| s.rows = bad);
    }
    refused("rows", &|s| {
        s.capacity = MAX_CAPACITY;
        s.rows = MAX_ROWS + 1;
    });
    refused("row", &|s| s.table.row.clear());
    refused("named", &|s| s.table.names.named.push(s.table.row[0]));
    refused("name", &|s| s.table.names.limbs[4].clear());
    refused("opened positions", &|s| s.opened.clear());
    refused("opened positions", &|s| {
        s.opened = (0..21).map(|p| (p, Fr::ONE)).collect();
    });
    let mut many = of_sizes([MAX_OPENED + 1, 1, 1]);
    many.opened = (0..=MAX_OPENED).map(|p| (p, Fr::ONE)).collect();
    let reason = check(&many, &[]).err().map(|e| e.to_string());
    let expected = "opened positions: expected 1 to 10000, found 10001";
    assert_eq!(reason.as_deref(), Some(expected));
    // In another order, twice, and behind the last position.
    refused("opened position", &|s| s.opened.swap(0, 1));
    refused("opened position", &|s| s.opened[1].0 = 0);
    refused("opened position", &|s| s.opened[6].0 = 20);
    refused("opened position", &|s| s.opened[6].0 = usize::MAX);
    let largest = of_sizes([MAX_CAPACITY, MAX_ROWS, MAX_OPENED]);
    let taken = check(&largest, &[]).err();
    assert!(matches!(taken, Some(Error::Malformed { at: 0, .. })));
}

/// False names of true positions, with the row numbers of the positions and with those of the names.
#[test]
fn names_are_those_of_the_rows() {
    let base = Case::small();
    let first = |name: Fr| base.naming(|opened| opened[0].1 = name);
    // The name of another row, without opened positions, and a name of no row.
    for (other, row) in [(6, 5), (7, 6), (99, 0)] {
        let case = first(name(other));
        caught_by(LOOKUP, || case.forged(|_| ()));
        if row > 0 {
            let number = case.statement.names().1[0];
            caught_by(ROW_NUMBERS, || {
                case.recounted(|columns| columns.numbers[number] = row)
            });
        }
    }
    // The name of a row with opened positions: the name has one number, the one row's or the other's.
    for (other, row) in [(2, 1), (5, 4)] {
        let case = first(name(other));
        assert!(!case.forged(|_| ()));
        let number = case.statement.names().1[0];
        caught_by(ROW_NUMBERS, || {
            case.recounted(|columns| columns.numbers[number] = row)
        });
    }
    // Two positions exchange their names.
    let swapped = base.naming(|opened| {
        let first = opened[1].1;
        opened[1].1 = opened[6].1;
        opened[6].1 = first;
    });
    caught_by(LOOKUP, || swapped.forged(|_| ()));
    let (_, of_positions) = swapped.statement.names();
    caught_by(ROW_NUMBERS, || {
        swapped.recounted(|columns| {
            columns.numbers[of_positions[1]] = 4;
            columns.numbers[of_positions[6]] = 1;
        })
    });
    // The names of one row and of two rows exchanged, with the same sum of row numbers.
    let rotated = base.naming(|opened| {
        let name = |r: u64| name(r + 1);
        (opened[1].1, opened[4].1) = (name(3), name(1));
    });
    assert!(!rotated.forged(|_| ()));
}

/// Positions without a row, and rows without a name.
#[test]
fn a_position_without_a_name_has_no_proof() {
    // A position without a row: with the name 0, with the name of a row, and with the row's number.
    let unplaced = |name: Fr| Case::opening(&[0, 13]).naming(|opened| opened[1].1 = name);
    for other in [Fr::ZERO, name(7)] {
        let case = unplaced(other);
        assert_eq!(case.witness().columns.numbers, [0, 9]);
        caught_by(LOOKUP, || case.forged(|_| ()));
    }
    caught_by(ROW_NUMBERS, || {
        unplaced(name(7)).recounted(|columns| columns.numbers[1] = 6)
    });
    // The same with the name of a row with an opened position.
    let case = unplaced(name(1));
    caught_by(ROW_NUMBERS, || case.forged(|_| ()));
    assert!(!case.recounted(|columns| columns.numbers[0] = 9));
    // Behind the last row, the columns of names have a name with a mark.
    let mut beyond = Case::opening(&[0, 13]).naming(|opened| opened[1].1 = Fr::ONE);
    beyond = beyond.with_entry(|table| &mut table.names.named, 9, 1);
    beyond = beyond.with_entry(|table| &mut table.names.limbs[0], 9, 1);
    caught_by(LOOKUP, || beyond.forged(|_| ()));
    // A row without a name has positions.
    let (mut row, names) = Case::contents();
    row[13] = 8;
    let unnamed = Case::of(row, &names, &[0, 13]);
    caught_by(LOOKUP, || unnamed.forged(|_| ()));
    // A name without its mark, and marks that are no bits.
    for mark in [0, 2, -1] {
        let marked = Case::small();
        let marked = marked.with_entry(|table| &mut table.names.named, 3, mark);
        caught_by(LOOKUP, || marked.forged(|_| ()));
        // The marks of rows without an opened position are not part of the statement.
        let other = Case::opening(&[0, 1]);
        let other = other.with_entry(|table| &mut table.names.named, 3, mark);
        assert!(other.forged(|_| ()));
    }
    // A row number that no row has.
    for number in [9, 10, 15] {
        let base = Case::small();
        let case = base.with_entry(|table| &mut table.row, 4, number);
        caught_by(LOOKUP, || case.forged(|_| ()));
    }
}

/// Numbers of rows that are not those of the positions, and wrong counts of lookups.
#[test]
fn row_numbers_are_those_of_the_positions() {
    let base = Case::small();
    // Two rows have one name.
    let (row, mut names) = Case::contents();
    names[1] = names[0];
    let alike = Case::of(row, &names, &[0, 1, 2]);
    for number in [0, 1] {
        caught_by(ROW_NUMBERS, || {
            alike.recounted(|columns| columns.numbers[0] = number)
        });
    }
    // One row of the two is a proof of its own positions, and a prover cannot take the number of the other row for them.
    let (row, _) = Case::contents();
    let alone = Case::of(row, &names, &[0, 2]);
    assert!(alone.forged(|_| ()));
    caught_by(ROW_NUMBERS, || {
        alone.recounted(|columns| columns.numbers[0] = 1)
    });
    // Numbers with the sum of the true ones: no row of the table has such a number with such a name.
    for more in [1, 2] {
        assert!(!base.recounted(|columns| {
            columns.numbers[0] += more;
            columns.numbers[1] -= more;
        }));
    }
    // Too many lookups of a row, too few, and a lookup of another row.
    for (row, more) in [(0, 1), (0, -1), (6, 1), (8, 1)] {
        caught_by(LOOKUP, || {
            base.forged(|columns| columns.multiplicities[row] += more)
        });
    }
    caught_by(LOOKUP, || {
        base.forged(|columns| columns.multiplicities.swap(0, 6))
    });
    caught_by(LOOKUP, || {
        base.forged(|columns| columns.multiplicities.fill(0))
    });
    // A lookup of each position: the names are looked up, each once.
    caught_by(LOOKUP, || {
        base.forged(|columns| columns.multiplicities[0] = 2)
    });
    // No claim reads the places behind the last name, the last position and the last row.
    assert!(base.forged(|columns| {
        columns.numbers[5] = 3;
        columns.numbers[6] = 15;
        columns.numbers.push(4);
        columns.multiplicities.push(1);
    }));
}

/// The table of the statement, and no other one.
#[test]
fn the_table_is_the_stated_one() {
    let base = Case::small();
    let proof = base.proved();
    assert!(base.accepted(&proof));
    // Another table with the same contents, under other blindings.
    let other = Case::small();
    let mut moved = base.clone();
    moved.statement.table.clone_from(&other.statement.table);
    assert!(!moved.accepted(&proof));
    // The prover states the table, and opens its own.
    assert!(!moved.forged(|_| ()));
    // The names of another table, which the prover has too.
    let (row, names) = Case::contents();
    let names: Vec<_> = names.iter().map(|n| n.map(|n| n - Fr::ONE)).collect();
    let renamed = Case::of(row, &names, &[0, 1, 2, 3, 4, 5, 8]);
    assert!(renamed.forged(|_| ()));
    let mut mixed = renamed.clone();
    mixed.statement.table.clone_from(&base.statement.table);
    assert!(!mixed.forged(|_| ()));
    let mut named = base.clone();
    named.statement.opened.clone_from(&renamed.statement.opened);
    caught_by(LOOKUP, || named.forged(|_| ()));
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let base = Case::small();
    // A new field has to be changed below.
    let RowNamesStatement {
        context: _,
        capacity: _,
        rows: _,
        table: _,
        opened: _,
    } = &base.statement;
    let h = vector_generators(1)[0];
    let mut changes: Vec<Change<RowNamesStatement>> = vec![
        Box::new(|s| s.context[0] ^= 1),
        Box::new(|s| s.capacity += 1),
        Box::new(|s| s.rows += 1),
        Box::new(|s| s.rows -= 1),
        Box::new(|s| s.opened[6].0 += 1),
        Box::new(|s| s.opened[6].1 += Fr::ONE),
        Box::new(|s| s.opened[5].1 = name(2)),
        Box::new(|s| s.opened.truncate(6)),
        Box::new(|s| s.opened.push((10, name(6)))),
        Box::new(move |s| s.table.row[0] = h),
        Box::new(move |s| s.table.names.named[0] = h),
    ];
    for k in 0..NAME_LIMBS {
        changes.push(Box::new(move |s| s.table.names.limbs[k][0] = h));
    }
    only_for(&base.statement, &base.proved(), &changes);
}

#[test]
fn a_transcript_forgets_nothing() {
    let base = Case::small();
    let mut other = base.statement.clone();
    other.context[0] ^= 1;
    forgets_nothing(&base.statement, &other, || base.proved());
}

#[test]
fn claims_and_openings_are_all_needed() {
    let base = Case::small();
    all_are_needed(&base.statement, || base.proved(), false);
}

#[test]
#[ignore = "a prover skips each single claim in turn (half a minute): make test-full"]
fn every_single_claim_is_needed() {
    let base = Case::small();
    all_are_needed(&base.statement, || base.proved(), true);
}

/// A prover states a false value and compensates for it in all other claims; the proof is accepted only if one claim is omitted.
#[test]
fn each_claim_stands_against_one_false_value() {
    let base = Case::small();
    each_claim_excludes_a_false_value(
        "row names",
        || base.proved(),
        |proof| crate::kit::verify(&base.statement, proof),
    );
}

#[test]
fn changed_proofs_are_refused() {
    let base = Case::small();
    changes_are_refused(&base.statement, &base.proved(), 293);
}

/// A statement of these sizes without known openings: positions, rows, opened positions, two with each name.
fn of_sizes([capacity, rows, opened]: [usize; 3]) -> RowNamesStatement {
    let points = vector_generators(64);
    let length = 1 << Layout::new(capacity).unwrap().row_variables;
    let column = |entries: usize| -> Vec<G1Affine> {
        let all = points.iter().cycle().copied();
        all.take(entries.div_ceil(length)).collect()
    };
    let step = capacity / opened;
    RowNamesStatement {
        context: [7; 32],
        capacity,
        rows,
        table: Table {
            row: column(capacity),
            names: Names {
                named: column(rows),
                limbs: std::array::from_fn(|_| column(rows)),
            },
        },
        opened: (0..opened)
            .map(|j| (j * step, name(j as u64 / 2)))
            .collect(),
    }
}

/// The most that a proof may be about.
pub(crate) fn largest() {
    simulate([MAX_CAPACITY, MAX_ROWS, MAX_OPENED]);
}

pub(crate) fn simulate(sizes: [usize; 3]) {
    crate::kit::simulate(&of_sizes(sizes));
}

/// Commitments without a known opening.
#[test]
fn proofs_are_simulated_without_a_table() {
    let base = Case::small();
    simulated(&of_sizes([20, 9, 7]), &base.proved());
}

/// The messages of a proof depend on the numbers of positions, rows and opened positions: not on the names or on how many
/// of them are equal.
#[test]
fn proofs_have_one_shape() {
    let of = |case: &Case| shape(|| case.proved());
    let base = Case::small();
    for positions in [[0, 1, 2, 4, 6, 8, 10], [2, 3, 4, 6, 7, 10, 11]] {
        assert_eq!(of(&base), of(&Case::opening(&positions)));
    }
    let (_, names) = Case::contents();
    let one = Case::of(vec![3; 20], &names, &[0, 4, 5, 6, 7, 8, 19]);
    assert_eq!(of(&base), of(&one));
}

/// Tables with the same names at the opened positions take the same steps, up to the closing.
#[test]
fn proofs_take_the_same_work() {
    let base = Case::large();
    let rows = base.statement.rows as i64;
    // The same names in other rows; and other positions without a row.
    let names: Vec<_> = (0..rows as u64).rev().map(|r| Some(name(r + 1))).collect();
    let row = values(&base.table.row).unwrap().iter();
    let turned = row.map(|r| if *r == rows { rows } else { rows - 1 - r });
    let mut turned: Vec<i64> = turned.collect();
    let positions: Vec<usize> = base.statement.opened.iter().map(|(p, _)| *p).collect();
    for p in (0..turned.len()).filter(|p| positions.binary_search(p).is_err()) {
        turned[p] = rows;
    }
    let other = Case::of(turned, &names, &positions);
    assert_eq!(other.statement.opened, base.statement.opened);
    let work = |case: &Case| {
        let rows = case.statement.rows().unwrap();
        let start = case.statement.transcript();
        let mut session: Session<Prover> = Session::prover(start, rows, b"").unwrap();
        let openings = openings_of(case.table.each()).unwrap();
        let private = case.witness().private(openings);
        count::take();
        row_names_protocol(&mut session, &case.statement, Some(private)).unwrap();
        count::take()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let counts = pool.unwrap().install(|| {
        // The first one makes tables.
        work(&base);
        [&base, &other].map(work)
    });
    assert_eq!(counts[0], counts[1]);
    assert_eq!(counts[0][2], 0, "additions without a chord");
}
