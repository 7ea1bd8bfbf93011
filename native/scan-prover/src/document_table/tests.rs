use super::*;
use crate::bernoulli::Bernoulli;
use crate::channel::Channel;
use crate::drawn::tests::seed;
use crate::drawn::Slot;
use crate::group::{vector_generators, G1Affine};
use crate::index::MAX_CAPACITY;
use crate::kit::{all_are_needed, forgets_nothing, only_for, shape, simulated, Change, Protocol};
use crate::malicious::{caught_by, MaliciousProver, REPEATED};
use crate::malicious_claims::each_claim_excludes_a_false_value;
use crate::mutations::refused;
use crate::transcript::{Oracle, Transcript};
use crate::words::seed_commitment;
use ark_ff::Field;
use ragaudit_field_simd::count;
use ragaudit_field_simd::noise::bernoulli_bits;

const LOOKUP: &str = "constraint: lookup layer";
const FRESH: &str = "column claim: fresh coins";
/// 0.7 of all draws.
const BOUND: u64 = 769_658_139_443;

impl Protocol for DocumentTableStatement {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript()
    }

    fn rows(&self) -> Result<usize> {
        Ok(self.layout()?.row_variables)
    }

    fn run<'a, C: Channel>(&'a self, mut session: Session<'a, C>) -> Result<C::Closed> {
        document_table_protocol(&mut session, self, None)?;
        session.close(None)
    }
}

/// A window's table, with its private side.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) statement: DocumentTableStatement,
    pub(crate) table: Table<Column>,
    previous: Option<Previous<Column>>,
    pub(crate) carried: Vec<usize>,
}

/// The second window of the published proof.
pub(crate) fn known_answer() -> Case {
    REPEATED.set(true);
    let case = Case::second();
    REPEATED.set(false);
    case
}

/// A table as its provider writes it: the row of each position, and the names.
type Contents = (Vec<i64>, Vec<Option<Fr>>);

fn points<'c>(columns: impl Iterator<Item = &'c Column>) -> impl Iterator<Item = Vec<G1Affine>> {
    let points: Vec<Vec<G1Affine>> = columns.map(|column| column.rows.clone()).collect();
    points.into_iter()
}

/// A window's key: a fresh one, except for the published proof.
pub(crate) fn key(window: u64) -> TableKey {
    let mut key = [7 + window as u8; 32];
    if !REPEATED.get() {
        getrandom::fill(&mut key).unwrap();
    }
    TableKey(key)
}

fn name(n: u64) -> Option<Fr> {
    Some(-Fr::from(n))
}

impl Case {
    /// A window of a chain, counted from 0.
    fn of(
        window: u64,
        (row, names): Contents,
        positions_per_row: usize,
        previous: Option<(Previous<Column>, Vec<usize>)>,
    ) -> Self {
        let (capacity, rows) = (row.len(), names.len());
        let layout = Layout::new(capacity).unwrap();
        let table = commit(layout, row, &names, &key(window)).unwrap();
        let (previous, carried) = previous.unzip();
        let carried = carried.unwrap_or_default();
        let before = previous.as_ref();
        let statement = DocumentTableStatement {
            context: [7; 32],
            slot: Slot {
                c_seed: seed_commitment(&seed()),
                beacon: Fr::from(5u8),
                slot: Fr::from(6 + 4 * window),
            },
            coins: Bernoulli { bound: BOUND },
            capacity,
            rows,
            positions_per_row,
            fresh: rows - carried.len(),
            table: Table::named(&mut points(table.each())),
            previous: before.map(|p: &Previous<Column>| Previous::named(&mut points(p.each()))),
        };
        Self {
            statement,
            table,
            previous,
            carried,
        }
    }

    /// Six documents in the rows 0 to 5, a name without positions in row 6, two rows without a name, and some positions
    /// without a row.
    fn contents() -> Contents {
        let row = vec![0, 1, 2, 2, 3, 0, 3, 3, 4, 0, 5, 5, 9, 9, 9, 9, 9, 9, 9, 9];
        let mut names: Vec<_> = (1..8).map(name).collect();
        names.resize(9, None);
        (row, names)
    }

    fn first() -> Self {
        Self::of(0, Self::contents(), 3, None)
    }

    /// The window after this one: `carried` are rows of this one.
    fn next(&self, window: u64, contents: Contents, carried: &[usize]) -> Self {
        let proven = self.proved(false).columns;
        let previous = Previous {
            names: self.table.names.clone(),
            kept: proven.kept,
            count: proven.count,
            listed: None,
        };
        let s = self.statement.positions_per_row;
        Self::of(window, contents, s, Some((previous, carried.to_vec())))
    }

    /// Two new documents, a fresh row without a name, and the six documents of the first window in another order. The document
    /// of the former row 5 has no positions any more.
    fn second() -> Self {
        let carried = [4, 0, 1, 2, 3, 5];
        let names = [Some(20), Some(21), None].map(|n| n.and_then(name));
        let (_, before) = Self::contents();
        let of_carried = carried.iter().map(|r| before[*r]);
        let names = names.into_iter().chain(of_carried).collect();
        let row = vec![0, 0, 1, 3, 4, 4, 4, 5, 6, 6, 7, 9, 9, 9, 9, 9, 9, 9, 9, 7];
        Self::first().next(1, (row, names), &carried)
    }

    /// The window after this one of a tenant with pooled listing, with the rows of this one that were listed when it ended.
    fn pooled(&self, window: u64, contents: Contents, carried: &[usize], listed: &[i64]) -> Self {
        let mut case = self.next(window, contents, carried);
        let layout = self.statement.layout().unwrap();
        let bits = std::iter::once((listed.to_vec(), Bound::Unsigned(1)));
        let column = commit_columns(layout, bits, &key(50 + window), 0).remove(0);
        let stated = case.statement.previous.as_mut().unwrap();
        stated.listed = Some(column.rows.clone());
        case.previous.as_mut().unwrap().listed = Some(column);
        case
    }

    /// [`Case::second`] for pooled listing. Five rows are listed; one of them, without positions, is given up.
    fn pooled_second() -> Self {
        let Self { table, carried, .. } = &Self::second();
        let row = opened(&table.row).to_vec();
        let names = Self::second().names();
        Self::first().pooled(1, (row, names), carried, &LISTED)
    }

    fn carried(&self) -> Option<Carried<'_>> {
        let rows = &self.carried;
        self.previous
            .as_ref()
            .map(|previous| Carried { previous, rows })
    }

    /// The same window with another table.
    fn with(&self, change: impl FnOnce(&mut [i64], &mut [Option<Fr>])) -> Self {
        let mut row = values(&self.table.row).unwrap().to_vec();
        let mut names = self.names();
        change(&mut row, &mut names);
        let layout = self.statement.layout().unwrap();
        let mut other = self.clone();
        other.table = commit(layout, row, &names, &TableKey([9; 32])).unwrap();
        other.statement.table = Table::named(&mut points(other.table.each()));
        other
    }

    fn names(&self) -> Vec<Option<Fr>> {
        let columns: Vec<&[i64]> = (self.table.names.each())
            .map(|column| values(column).unwrap())
            .collect();
        let limb = |r: usize, k: usize| {
            Fr::from(columns[1 + k][r] as u64) * Fr::from(2u8).pow([(NAME_LIMB_BITS * k) as u64])
        };
        let name = |r: usize| (0..NAME_LIMBS).map(|k| limb(r, k)).sum();
        (0..self.statement.rows)
            .map(|r| (columns[0][r] == 1).then(|| name(r)))
            .collect()
    }

    fn witness(&self) -> Witness {
        witness(&self.statement, &seed(), &self.table, self.carried()).unwrap()
    }

    /// The proof of a prover without checks.
    fn prove(&self, witness: Witness, low_memory: Option<Recomputed>) -> DocumentTableProof {
        let openings = openings(&self.table, self.carried()).unwrap();
        prove_witness::<MaliciousProver>(&self.statement, &seed(), witness, openings, low_memory)
            .unwrap()
    }

    pub(crate) fn proved(&self, low_memory: bool) -> DocumentTableProof {
        self.prove(self.witness(), low_memory.then_some(LEAST))
    }

    fn accepted(&self, proof: &[u8]) -> bool {
        crate::kit::verify(&self.statement, proof).is_ok()
    }

    /// Whether columns changed by `false_value` get through.
    fn forged(&self, false_value: impl Fn(&mut Witness)) -> bool {
        let mut witness = self.witness();
        false_value(&mut witness);
        self.accepted(&self.prove(witness, None).proof)
    }

    /// The same with the lookups of numbers of positions counted again.
    fn recounted(&self, false_value: impl Fn(&mut Witness)) -> bool {
        self.forged(|w| {
            false_value(w);
            w.count_counts(&self.statement, &self.table, self.carried())
                .unwrap();
        })
    }

    /// Gives a row another coin, and its positions too.
    fn flip(&self, witness: &mut Witness, row: usize, coin: i64) {
        witness.draws.column[row] = coin;
        let rows = values(&self.table.row).unwrap();
        for (sample, r) in witness.columns.sample.iter_mut().zip(rows) {
            if *r == row as i64 {
                *sample = coin;
            }
        }
    }

    /// The honest prover's reason not to prove.
    fn reason(&self) -> String {
        let result = super::prove(&self.statement, &seed(), &self.table, self.carried(), false);
        result.err().map_or(String::new(), |e| e.to_string())
    }
}

/// The listed rows at the end of the window before [`Case::pooled_second`].
const LISTED: [i64; 9] = [1, 0, 1, 1, 0, 1, 0, 0, 1];

/// The second window of the published proof of pooled listing.
pub(crate) fn pooled_known_answer() -> Case {
    REPEATED.set(true);
    let case = Case::pooled_second();
    REPEATED.set(false);
    case
}

/// A chain of two windows over several rows of commitments. The first rows of the first window have no positions.
fn large() -> [Case; 2] {
    let (capacity, rows, fresh) = (3000i64, 1100i64, 150i64);
    let row = |p: i64| (fresh + p * 7 % (rows + 40)).min(rows);
    let names: Vec<_> = (0..rows as u64).map(|r| name(r + 1)).collect();
    let contents = ((0..capacity).map(row).collect(), names.clone());
    let first = Case::of(0, contents, 100, None);
    let names = (0..fresh as u64)
        .map(|r| name(r + 9999))
        .chain(names[fresh as usize..].iter().copied());
    let row = (0..capacity).map(|p| p * 5 % (rows + 1)).collect();
    let carried: Vec<usize> = (fresh as usize..rows as usize).collect();
    let second = first.next(1, (row, names.collect()), &carried);
    [first, second]
}

/// The second window of [`large`], for pooled listing.
fn large_pooled() -> Case {
    let [first, second] = large();
    let row = opened(&second.table.row).to_vec();
    let listed: Vec<i64> = (0..1100).map(|r| r % 3 / 2).collect();
    first.pooled(1, (row, second.names()), &second.carried, &listed)
}

fn opened(column: &Column) -> &[i64] {
    values(column).unwrap()
}

#[test]
fn proofs_verify_and_coins_persist() {
    let small = [Case::first(), Case::second()];
    let third = small[1].next(2, (vec![9; 20], small[1].names()), &[3, 4, 5, 6, 7, 8]);
    assert_eq!(third.reason(), "the private values do not satisfy the statement: row 0 of the table before has positions there and is not carried");
    let pooled = [Case::pooled_second(), large_pooled()];
    for case in small.into_iter().chain(large()).chain(pooled) {
        let made = super::prove(&case.statement, &seed(), &case.table, case.carried(), false);
        let made = made.unwrap();
        let proven = verify(&case.statement, &made.proof).unwrap();
        for (actual, own) in [
            (&proven.sample, &made.columns.sample),
            (&proven.kept, &made.columns.kept),
            (&proven.count, &made.columns.count),
        ] {
            assert_eq!(actual.rows, own.rows);
            assert_eq!(actual.variables, own.variables);
        }
        let listed = (proven.listed.as_ref()).zip(made.columns.listed.as_ref());
        let before = case.previous.as_ref().and_then(|p| p.listed.as_ref());
        assert_eq!(listed.is_some(), before.is_some());
        if let (Some((actual, own)), Some(before)) = (listed, before) {
            assert_eq!(actual.rows, own.rows);
            assert_eq!(actual.variables, own.variables);
            let (fresh, of_carried) = opened(own).split_at(case.statement.fresh);
            assert!(fresh.iter().all(|bit| *bit == 0));
            let before = case.carried.iter().map(|r| opened(before)[*r]);
            assert!(before.eq(of_carried.iter().copied()));
        }
        let DocumentTableStatement {
            slot, fresh, rows, ..
        } = &case.statement;
        let kept = opened(&made.columns.kept);
        let bits = bernoulli_bits(&noise_key(&seed(), slot.beacon, slot.slot), *fresh, BOUND);
        assert!(bits
            .unwrap()
            .into_iter()
            .map(i64::from)
            .eq(kept[..*fresh].iter().copied()));
        for (r, before) in (*fresh..).zip(&case.carried) {
            let previous = &case.previous.as_ref().unwrap();
            assert_eq!(kept[r], opened(&previous.kept)[*before]);
        }
        let (row, sample) = (opened(&case.table.row), opened(&made.columns.sample));
        for (r, coin) in row.iter().zip(sample) {
            assert_eq!(*coin, kept.get(*r as usize).copied().unwrap_or(0));
        }
        let number = |r: usize| row.iter().filter(|of| **of == r as i64).count() as i64;
        let numbers: Vec<i64> = (0..*rows).map(number).collect();
        assert_eq!(opened(&made.columns.count), numbers);
        assert_eq!(case.names(), case.with(|_, _| ()).names());
    }
}

/// The identity map with one position a row: the coins of a sampling proof.
#[test]
fn one_position_a_row_has_the_coins_of_positions() {
    let names = (1..13).map(name).collect();
    let case = Case::of(0, ((0..12).collect(), names), 1, None);
    let made = case.proved(false);
    let DocumentTableStatement { slot, .. } = case.statement;
    let kappa = noise_key(&seed(), slot.beacon, slot.slot);
    let bits = bernoulli_bits(&kappa, 12, BOUND).unwrap();
    let sample = opened(&made.columns.sample).iter().map(|v| *v as u8);
    assert!(sample.eq(bits));
    assert!(case.accepted(&made.proof));
}

#[test]
fn a_row_without_a_proof_is_named() {
    let (first, second) = (Case::first(), Case::second());
    let ends = |reason: String, end: &str| assert!(reason.ends_with(end), "{reason}");
    ends(
        first.with(|row, _| row[12] = 0).reason(),
        "row 0 has more than 3 positions",
    );
    ends(
        first.with(|row, _| row[12] = 7).reason(),
        "row 7 has positions and no name",
    );
    ends(
        second.with(|_, names| names[3] = name(99)).reason(),
        "row 3 has not the name that is carried",
    );
    let mut twice = second.clone();
    twice.carried[5] = 4;
    ends(
        twice.reason(),
        "row 5 of the table before has positions there and is not carried",
    );
    twice.carried[5] = 9;
    ends(
        twice.reason(),
        "carried rows: expected 6 rows below 9, found 6",
    );
    let layout = Layout::new(20).unwrap();
    let (row, names) = Case::contents();
    let refused = |row: Vec<i64>, names: &[Option<Fr>], field: &str| {
        let reason = commit(layout, row, names, &key(0))
            .err()
            .map(|e| e.to_string());
        assert!(
            reason.as_ref().is_some_and(|r| r.starts_with(field)),
            "{reason:?}"
        );
    };
    refused(row[1..].to_vec(), &names, "row: ");
    refused(row.clone(), &names[1..], "row: ");
    refused(row.clone(), &[], "rows: ");
    refused(row, &[None; 21], "rows: ");
}

#[test]
fn parameters_end_where_the_errors_do() {
    let base = Case::first().statement;
    let refused = |name: &str, change: &dyn Fn(&mut DocumentTableStatement)| {
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
        refused("positions per row", &|s| s.positions_per_row = bad);
    }
    refused("rows", &|s| {
        s.capacity = MAX_CAPACITY;
        s.rows = MAX_ROWS + 1;
    });
    refused("fresh rows", &|s| s.fresh = 0);
    refused("fresh rows", &|s| s.fresh = 10);
    // Without a table before, all rows are fresh.
    refused("fresh rows", &|s| s.fresh = 8);
    refused("bound", &|s| s.coins.bound = 0);
    refused("bound", &|s| s.coins.bound = 1 << 40);
    refused("row", &|s| s.table.row.clear());
    refused("named", &|s| s.table.names.named.push(s.table.row[0]));
    refused("name", &|s| s.table.names.limbs[4].clear());
    let base = Case::second().statement;
    let refused = |name: &str, change: &dyn Fn(&mut Previous<Vec<G1Affine>>)| {
        let mut other = base.clone();
        change(other.previous.as_mut().unwrap());
        let reason = check(&other, &[]).err().map(|e| e.to_string());
        let expected = format!("{name}: expected 1 commitments, found 0 commitments");
        assert_eq!(reason, Some(expected));
    };
    refused("previous named", &|p| p.names.named.clear());
    refused("previous name", &|p| p.names.limbs[0].clear());
    refused("previous kept", &|p| p.kept.clear());
    refused("previous count", &|p| p.count.clear());
    refused("previous listed", &|p| p.listed = Some(Vec::new()));
    let largest = of_sizes([MAX_CAPACITY, MAX_ROWS, MAX_CAPACITY, MAX_ROWS], Some(true));
    let taken = check(&largest, &[]).err();
    assert!(matches!(taken, Some(Error::Malformed { at: 0, .. })));
}

/// False columns of the run's own, over a true table.
#[test]
fn forged_coins_and_numbers_are_refused() {
    let (first, second) = (Case::first(), Case::second());
    for case in [&first, &second] {
        let honest = case.witness();
        let coin = |r: usize| honest.draws.column[r];
        assert!(case.forged(|_| ()));
        // The coin of a position: in a row, and without a row.
        for p in [0, 8, 12] {
            caught_by(LOOKUP, || case.forged(|w| w.columns.sample[p] ^= 1));
        }
        // The coin of a fresh row, with the coins of its positions; and two of them exchanged.
        for r in [0, 1, case.statement.fresh - 1] {
            caught_by(FRESH, || case.forged(|w| case.flip(w, r, 1 - coin(r))));
        }
        let fresh = 0..case.statement.fresh;
        let other = fresh.clone().find(|r| coin(*r) != coin(0)).unwrap();
        caught_by(FRESH, || {
            case.forged(|w| {
                case.flip(w, 0, coin(other));
                case.flip(w, other, coin(0));
            })
        });
        // The draw behind the last fresh row's, in the place of one of them.
        let bits = &honest.draws.drawn[1];
        let beyond = fresh.end;
        let row = fresh.clone().find(|r| bits[*r] != bits[beyond]).unwrap();
        caught_by(FRESH, || case.forged(|w| case.flip(w, row, bits[beyond])));
        // A value that is no bit.
        caught_by(FRESH, || case.forged(|w| case.flip(w, 0, 2)));
        // The number of positions of a row: too few, too many, and one moved to another row.
        for r in [0, 3, 8] {
            for more in [-1, 1] {
                assert!(!case.recounted(|w| w.columns.count[r] += more));
            }
        }
        assert!(!case.recounted(|w| {
            w.columns.count[0] -= 1;
            w.columns.unplaced[0] += 1;
        }));
        assert!(!case.forged(|w| w.columns.counts[1] += 1));
        // Places behind the last row's and behind the last position's are read by no claim.
        assert!(case.forged(|w| {
            w.draws.column.push(1);
            w.columns.sample.push(1);
            w.columns.count.push(5);
        }));
    }
    // The coin of a carried row; and of a row with a draw of this window.
    let honest = second.witness();
    for r in 3..9 {
        let coin = 1 - honest.draws.column[r];
        caught_by(LOOKUP, || second.forged(|w| second.flip(w, r, coin)));
    }
    // Two carried rows with different coins exchange them.
    let kept = &honest.draws.column;
    let other = (4..9).find(|r| kept[*r] != kept[3]).unwrap();
    caught_by(LOOKUP, || {
        second.forged(|w| {
            second.flip(w, 3, kept[other]);
            second.flip(w, other, kept[3]);
        })
    });
    // A fresh row with the coin of a row of the window before.
    let before = &first.witness().draws.column;
    let r = (0..9).find(|r| before[*r] != kept[0]).unwrap();
    caught_by(FRESH, || second.forged(|w| second.flip(w, 0, before[r])));
}

/// Tables that the statement does not allow, with the columns that follow from them.
#[test]
fn false_tables_are_refused() {
    let (first, second) = (Case::first(), Case::second());
    let caught = |case: &Case| caught_by(LOOKUP, || case.forged(|_| ()));
    for case in [&first, &second] {
        // s + 1 positions of a row; and s of it are a proof.
        let row = [0, 4][usize::from(case.previous.is_some())];
        assert_eq!(case.witness().columns.count[row], 3);
        caught(&case.with(|rows, _| rows[13] = row as i64));
        let fewer = case.with(|rows, _| {
            let place = rows.iter().position(|r| *r == row as i64);
            rows[place.unwrap()] = 9;
        });
        assert!(fewer.forged(|_| ()));
        // Positions of a row without a name, fresh in both windows.
        let unnamed = [7, 2][usize::from(case.previous.is_some())];
        caught(&case.with(|rows, _| rows[13] = unnamed));
        // A position whose row is not in the table.
        let mut beyond = case.clone();
        let opening = case.table.row.opening.as_ref().unwrap();
        for r in [10, -1] {
            let mut values = opening.values.clone();
            values[13] = r;
            beyond.put_row(values);
            caught(&beyond);
        }
        // A mark of a name that is no bit, with the numbers that suit it.
        for mark in [2, -1] {
            let mut marked = case.clone();
            let mut values = opened(&case.table.names.named).to_vec();
            values[0] = mark;
            marked.put_named(values);
            caught(&marked);
        }
    }
    // Carried rows with another name: of another document, without one, or given to a row without a name.
    caught(&second.with(|_, names| names[3] = name(99)));
    assert_eq!(second.witness().draws.column[3..6], [1, 1, 0]);
    caught(&second.with(|_, names| names.swap(4, 5)));
    // With equal coins the two documents have changed places.
    assert!(second.with(|_, names| names.swap(3, 4)).forged(|_| ()));
    caught(&second.with(|_, names| {
        names[3] = names[3].map(|name| name + Fr::from(1u64 << 60));
    }));
    caught(&second.with(|_, names| names[8] = None));
    // The name of a fresh row is for the provider to choose: it has no coin yet.
    assert!(second.with(|_, names| names[0] = name(99)).forged(|_| ()));
}

impl Case {
    /// Commits to a column with values that [`commit`] refuses.
    fn column_of(&self, values: Vec<i64>) -> Column {
        let layout = self.statement.layout().unwrap();
        let bounded = std::iter::once((values, Bound::ANY));
        commit_columns(layout, bounded, &key(99), 0).remove(0)
    }

    fn put_row(&mut self, values: Vec<i64>) {
        self.table.row = self.column_of(values);
        self.statement.table.row.clone_from(&self.table.row.rows);
    }

    fn put_named(&mut self, values: Vec<i64>) {
        self.table.names.named = self.column_of(values);
        let rows = &self.table.names.named.rows;
        self.statement.table.names.named.clone_from(rows);
    }
}

/// Rows of the table before that are not the rows that may be carried.
#[test]
fn false_carrying_is_refused() {
    let base = Case::second();
    let carrying = |carried: &[usize]| {
        let mut case = base.clone();
        let (_, before) = Case::contents();
        let place = |r: usize, names: &mut [Option<Fr>]| names[3 + r] = before[carried[r]];
        case = case.with(|_, names| (0..carried.len()).for_each(|r| place(r, names)));
        case.carried = carried.to_vec();
        case
    };
    assert!(carrying(&base.carried).forged(|_| ()));
    // A row without positions may be given up, also one with a name, and be carried.
    assert_eq!(
        values(&base.previous.as_ref().unwrap().count).unwrap(),
        [3, 1, 2, 3, 1, 2, 0, 0, 0]
    );
    // A row with positions is given up for one without: row 5 for row 6. The fresh rows take its place.
    let refreshed = carrying(&[4, 0, 1, 2, 3, 6]);
    caught_by(LOOKUP, || refreshed.forged(|_| ()));
    // More rows, or fewer, are marked as carried.
    for (r, mark) in [(6, 1), (6, -1), (0, 0), (0, 2)] {
        let marked = |w: &mut Witness| w.columns.carried.as_mut().unwrap()[r] = mark;
        assert!(!base.recounted(marked), "row {r} marked {mark}");
    }
    // With one fresh row, row 8 is given up.
    let first = Case::first();
    let (row, names) = (vec![9; 20], first.names());
    let carrying = |carried: &[usize; 8]| {
        let mut of = vec![name(99)];
        of.extend(carried.iter().map(|r| names[*r]));
        first.next(1, (row.clone(), of), carried)
    };
    let eight = carrying(&[0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(eight.forged(|_| ()));
    // One row is carried twice, in the place of a row that may be given up: marked so, and with the marks of honest carrying.
    let twice = carrying(&[0, 1, 2, 3, 4, 5, 6, 3]);
    caught_by(LOOKUP, || twice.forged(|_| ()));
    caught_by(LOOKUP, || {
        twice.recounted(|w| w.columns.carried = Some(vec![1, 1, 1, 1, 1, 1, 1, 1, 0]))
    });
    // A row that was carried without a name gets positions.
    caught_by(LOOKUP, || eight.with(|row, _| row[0] = 8).forged(|_| ()));
    // Rows that are alike in name and coin may stand for one another.
    let kept = opened(&eight.previous.as_ref().unwrap().kept);
    let other = carrying(&[0, 1, 2, 3, 4, 5, 6, 8]);
    assert!(other.forged(|_| ()));
    assert_eq!(
        eight.forged(|w| w.columns.carried = Some(vec![1, 1, 1, 1, 1, 1, 1, 0, 1])),
        kept[7] == kept[8]
    );
}

/// Blindings follow from key, column and values. The names of a table can be opened without its rows.
#[test]
fn a_commitment_follows_from_its_key() {
    let layout = Layout::new(20).unwrap();
    let (row, names) = Case::contents();
    let points = |row: &[i64], names: &[Option<Fr>], key: u8| -> Vec<G1Affine> {
        let table = commit(layout, row.to_vec(), names, &TableKey([key; 32])).unwrap();
        table.each().flat_map(|c| c.rows.clone()).collect()
    };
    let base = points(&row, &names, 1);
    assert_eq!(base, points(&row, &names, 1));
    let other = points(&row, &names, 2);
    assert!(base.iter().all(|p| !other.contains(p)));
    // Columns with equal values have different points: the upper limbs of these names are 0.
    let small = points(&row, &[Some(Fr::ONE); 9], 1);
    assert!((3..7).all(|k| (3..k).all(|j| small[j] != small[k])));
    let mut moved = row.clone();
    moved.swap(0, 1);
    let moved = points(&moved, &names, 1);
    assert!(moved[0] != base[0] && moved[1..] == base[1..]);
    let of_names = commit_names(layout, &names, &TableKey([1; 32])).unwrap();
    let of_names: Vec<_> = of_names.each().flat_map(|c| c.rows.clone()).collect();
    assert_eq!(of_names, base[1..]);
    let reason = commit_names(layout, &[], &key(0))
        .err()
        .map(|e| e.to_string());
    assert!(reason.is_some_and(|r| r.starts_with("rows: ")));
}

/// The table before is the one in the statement: its names, its coins and its numbers of positions.
#[test]
fn the_table_before_is_the_stated_one() {
    let base = Case::second();
    let proof = base.proved(false).proof;
    assert!(base.accepted(&proof));
    // Another tenant's table of the same contents, under other blindings, and the same tenant's of another window.
    let other = Case::second();
    type Moved = fn(&mut DocumentTableStatement, &DocumentTableStatement);
    let changes: [Moved; 2] = [
        |s, other| s.table.clone_from(&other.table),
        |s, other| s.previous.clone_from(&other.previous),
    ];
    for change in changes {
        let mut moved = base.clone();
        change(&mut moved.statement, &other.statement);
        assert!(!moved.accepted(&proof));
        // The prover states them, and opens its own.
        assert!(!moved.forged(|_| ()));
    }
    // Coins and numbers of the table before that are not its commitments'.
    let lie = |change: fn(&mut Previous<Column>, Column)| {
        let mut false_case = base.clone();
        let previous = false_case.previous.as_mut().unwrap();
        let column = |column: &Column| {
            let opening = column.opening.as_ref().unwrap();
            let flipped = opening.values.iter().map(|v| i64::from(*v == 0)).collect();
            Column {
                opening: Some(Arc::new(Opening {
                    values: flipped,
                    blindings: opening.blindings.clone(),
                })),
                ..column.clone()
            }
        };
        let kept = column(&previous.kept);
        change(previous, kept);
        assert!(!false_case.forged(|_| ()));
    };
    lie(|previous, kept| previous.kept = kept);
    lie(|previous, kept| previous.count = kept);
}

#[test]
fn a_proof_is_for_its_statement_only() {
    for base in [Case::first(), Case::second(), Case::pooled_second()] {
        // A new field has to be changed below.
        let DocumentTableStatement {
            context: _,
            slot: _,
            coins: _,
            capacity: _,
            rows: _,
            positions_per_row: _,
            fresh: _,
            table: _,
            previous: _,
        } = &base.statement;
        let h = vector_generators(1)[0];
        let mut changes: Vec<Change<DocumentTableStatement>> = vec![
            Box::new(|s| s.context[0] ^= 1),
            Box::new(|s| s.slot.c_seed += Fr::ONE),
            Box::new(|s| s.slot.beacon += Fr::ONE),
            Box::new(|s| s.slot.slot += Fr::ONE),
            Box::new(|s| s.coins.bound += 1),
            Box::new(|s| s.coins.bound -= 256),
            Box::new(|s| s.capacity += 1),
            Box::new(|s| s.positions_per_row += 1),
            Box::new(|s| s.positions_per_row -= 1),
            Box::new(move |s| s.table.row[0] = h),
            Box::new(move |s| s.table.names.named[0] = h),
        ];
        for k in 0..NAME_LIMBS {
            changes.push(Box::new(move |s| s.table.names.limbs[k][0] = h));
        }
        if base.previous.is_some() {
            changes.push(Box::new(|s| s.fresh += 1));
            changes.push(Box::new(|s| s.fresh -= 1));
            changes.push(Box::new(|s| s.rows += 1));
            type Of = fn(&mut Previous<Vec<G1Affine>>) -> &mut Vec<G1Affine>;
            let of: [Of; 4] = [
                |p| &mut p.names.named,
                |p| &mut p.names.limbs[4],
                |p| &mut p.kept,
                |p| &mut p.count,
            ];
            for of in of {
                changes.push(Box::new(move |s| of(s.previous.as_mut().unwrap())[0] = h));
            }
            if base.previous.as_ref().is_some_and(|p| p.listed.is_some()) {
                let of: Of = |p| p.listed.as_mut().unwrap();
                changes.push(Box::new(move |s| of(s.previous.as_mut().unwrap())[0] = h));
            }
        } else {
            changes.push(Box::new(|s| {
                s.rows += 1;
                s.fresh += 1;
            }));
        }
        only_for(&base.statement, &base.proved(false).proof, &changes);
        // The key is proved from the seed commitment: another seed makes no proof.
        let mut other = base.clone();
        other.statement.slot.c_seed += Fr::ONE;
        assert!(!other.reason().is_empty());
    }
    // Whether there is a table before.
    let (first, second) = (Case::first(), Case::second());
    let mut other = first.statement.clone();
    other.previous.clone_from(&second.statement.previous);
    assert!(crate::kit::verify(&other, &first.proved(false).proof).is_err());
}

#[test]
fn a_transcript_forgets_nothing() {
    for base in [Case::second(), Case::pooled_second()] {
        let mut other = base.statement.clone();
        other.context[0] ^= 1;
        forgets_nothing(&base.statement, &other, || base.proved(false).proof);
    }
}

#[test]
fn claims_and_openings_are_all_needed() {
    for base in [Case::second(), Case::pooled_second()] {
        all_are_needed(&base.statement, || base.proved(false).proof, false);
    }
}

#[test]
#[ignore = "a prover skips each single claim in turn (minutes): make test-full"]
fn every_single_claim_is_needed() {
    for base in [Case::second(), Case::pooled_second()] {
        all_are_needed(&base.statement, || base.proved(false).proof, true);
    }
}

#[test]
#[ignore = "a prover states one false value, for each claim (15 s to a minute): make test-full"]
fn each_claim_stands_against_one_false_value() {
    for (run, base) in [
        ("document table", Case::second()),
        ("pooled document table", Case::pooled_second()),
    ] {
        each_claim_excludes_a_false_value(
            run,
            || base.proved(false).proof,
            |proof| crate::kit::verify(&base.statement, proof),
        );
    }
}

#[test]
fn low_memory_gives_the_same_proof() {
    REPEATED.set(true);
    for case in large().into_iter().chain([large_pooled()]) {
        let [stored, anew] = [false, true].map(|low| case.proved(low).proof);
        assert!(case.accepted(&anew));
        assert!(stored == anew);
        // Blocks of the released size give one run; blocks of size three give several.
        let few = Recomputed { run: 3, ..LEAST };
        assert!(stored == case.prove(case.witness(), Some(few)).proof);
    }
    REPEATED.set(false);
    let base = Case::first();
    let [one, other] = [(); 2].map(|()| base.proved(true).proof);
    assert_ne!(one, other, "nonces are fresh");
}

/// A changed proof is refused.
pub(crate) fn mutations(count: usize) {
    for (run, base) in [
        ("document table", Case::second()),
        ("pooled document table", Case::pooled_second()),
    ] {
        refused(run, &base.proved(false).proof, count, |proof| {
            verify(&base.statement, proof).is_ok()
        });
    }
}

/// A statement of these sizes without known openings: positions, rows, positions per row, fresh rows.
///
/// `previous`: whether there is a table before, and whether it has listed rows
fn of_sizes(
    [capacity, rows, positions_per_row, fresh]: [usize; 4],
    previous: Option<bool>,
) -> DocumentTableStatement {
    let points = vector_generators(64);
    let length = 1 << Layout::new(capacity).unwrap().row_variables;
    let column = |entries: usize| -> Vec<G1Affine> {
        let all = points.iter().cycle().copied();
        all.take(entries.div_ceil(length)).collect()
    };
    let names = || Names {
        named: column(rows),
        limbs: std::array::from_fn(|_| column(rows)),
    };
    DocumentTableStatement {
        context: [7; 32],
        slot: Slot {
            c_seed: Fr::from(31_337u64),
            beacon: Fr::from(5u8),
            slot: Fr::from(6u8),
        },
        coins: Bernoulli { bound: BOUND },
        capacity,
        rows,
        positions_per_row,
        fresh,
        table: Table {
            row: column(capacity),
            names: names(),
        },
        previous: previous.map(|listed| Previous {
            names: names(),
            kept: column(rows),
            count: column(rows),
            listed: listed.then(|| column(rows)),
        }),
    }
}

/// The most that a proof may be about.
pub(crate) fn largest() {
    simulate([MAX_CAPACITY, MAX_ROWS, MAX_CAPACITY, MAX_ROWS], true);
}

/// [`largest`] with listed rows.
pub(crate) fn largest_pooled() {
    simulate_pooled([MAX_CAPACITY, MAX_ROWS, MAX_CAPACITY, MAX_ROWS]);
}

pub(crate) fn simulate(sizes: [usize; 4], previous: bool) {
    crate::kit::simulate(&of_sizes(sizes, previous.then_some(false)));
}

pub(crate) fn simulate_pooled(sizes: [usize; 4]) {
    crate::kit::simulate(&of_sizes(sizes, Some(true)));
}

/// Commitments without a known opening: to the seed, to this table and to the table before.
#[test]
fn proofs_are_simulated_without_a_table() {
    for (case, previous) in [
        (Case::first(), None),
        (Case::second(), Some(false)),
        (Case::pooled_second(), Some(true)),
    ] {
        let fresh = case.statement.fresh;
        let public = of_sizes([20, 9, 3, fresh], previous);
        simulated(&public, &case.proved(false).proof);
    }
}

/// Two tables of one size have the same messages in the same order, with the same number of bytes.
#[test]
fn proofs_have_one_shape() {
    let (first, second) = (Case::first(), Case::second());
    let of = |case: &Case| shape(|| case.proved(false).proof);
    let spread = |row: &mut [i64], names: &mut [Option<Fr>]| {
        row.iter_mut().zip(0..).for_each(|(r, p)| *r = p % 9);
        names.iter_mut().zip(50..).for_each(|(n, k)| *n = name(k));
    };
    assert_eq!(of(&first.with(spread)), of(&first));
    let none = |row: &mut [i64], names: &mut [Option<Fr>]| {
        row.fill(9);
        names[0] = None;
    };
    assert_eq!(of(&second.with(none)), of(&second));
    // Listed rows of any number.
    let pooled = |listed: &[i64]| {
        let row = opened(&second.table.row).to_vec();
        of(&first.pooled(1, (row, second.names()), &second.carried, listed))
    };
    assert_eq!(pooled(&[0; 9]), pooled(&[1; 9]));
}

/// Tables of one size take the same steps, up to the closing.
#[test]
fn proofs_take_the_same_work() {
    let [_, base] = large();
    let rows = base.statement.rows as i64;
    let cases = [
        base.clone(),
        base.with(|row, _| row.fill(rows)),
        base.with(|row, names| {
            row.iter_mut().zip(0..).for_each(|(r, p)| *r = p % 30);
            names[100..150].fill(None);
        }),
    ];
    let work = |case: &Case| {
        let start = case.statement.transcript();
        let rows = case.statement.rows().unwrap();
        let openings = openings(&case.table, case.carried()).unwrap();
        let mut session: Session<Prover> = Session::prover(start, rows, b"").unwrap();
        let private = case.witness().private(&case.statement, &seed(), openings);
        count::take();
        document_table_protocol(&mut session, &case.statement, Some(private)).unwrap();
        count::take()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let counts = pool.unwrap().install(|| {
        // The first one makes tables.
        work(&base);
        cases.each_ref().map(work)
    });
    assert!(counts.iter().all(|c| *c == counts[0]), "{counts:?}");
    assert_eq!(counts[0][2], 0, "additions without a chord");
    // Listed rows of any number.
    let [first, second] = large();
    let pooled = [0, 1].map(|bit| {
        let row = opened(&second.table.row).to_vec();
        let listed = vec![bit; base.statement.rows];
        let case = first.pooled(1, (row, second.names()), &second.carried, &listed);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        pool.unwrap().install(|| work(&case))
    });
    assert_eq!(pooled[0], pooled[1]);
}

mod listed;
