//! Listed rows of tenants with pooled listing: carried from the table of the window before.
use super::*;

const UNLISTED: &str = "column claim: unlisted rows";

impl Case {
    /// Whether another column of listed rows gets through.
    fn listing(&self, false_value: impl Fn(&mut [i64])) -> bool {
        self.forged(|w| false_value(w.columns.listed.as_mut().unwrap()))
    }

    /// Whether the prover may open other listed rows before than the stated ones.
    fn opening(&self, listed: Vec<i64>) -> bool {
        let mut other = self.clone();
        let column = other.previous.as_mut().unwrap().listed.as_mut().unwrap();
        let blindings = column.opening.as_ref().unwrap().blindings.clone();
        column.opening = Some(Arc::new(Opening {
            values: listed,
            blindings,
        }));
        other.forged(|_| ())
    }
}

/// Listed rows that are not those of the window before.
#[test]
fn false_listed_rows_are_refused() {
    let base = Case::pooled_second();
    let honest = base.witness();
    assert_eq!(
        honest.columns.listed.as_deref(),
        Some(&[0, 0, 0, 0, 1, 0, 1, 1, 1][..])
    );
    assert!(base.listing(|_| ()));
    // A fresh row that is listed: a document of this window.
    for r in 0..3 {
        caught_by(UNLISTED, || {
            // The lookup of carried rows leaves fresh rows out, whatever they have.
            base.listing(|listed| listed[r] = 1)
        });
    }
    // A carried row that is cleared, one that is set, and two that exchange their bits.
    for (r, bit) in [(4, 0), (8, 0), (3, 1), (5, 1), (3, -1), (4, 2)] {
        caught_by(LOOKUP, || base.listing(|listed| listed[r] = bit));
    }
    for (a, b) in [(3, 4), (5, 8)] {
        caught_by(LOOKUP, || base.listing(|listed| listed.swap(a, b)));
    }
    // A coin and a mark that are no bits, with the sum that one entry for both would have.
    caught_by(LOOKUP, || {
        base.forged(|w| {
            let coin = w.draws.column[3] + 2;
            base.flip(w, 3, coin);
            w.columns.listed.as_mut().unwrap()[3] -= 1;
        })
    });
    // A cleared set, and the set of another window, stated or opened.
    caught_by(LOOKUP, || base.listing(|listed| listed.fill(0)));
    assert!(!base.opening(vec![0; 9]));
    assert!(!base.opening(vec![1; 9]));
    let mut later = LISTED;
    later[1] = 1;
    assert!(!base.opening(later.to_vec()));
    // A set that the provider states instead is another statement, and the caller compares it with the ledger.
    let row = opened(&base.table.row).to_vec();
    let other = Case::first().pooled(1, (row, base.names()), &base.carried, &later);
    assert!(other.forged(|_| ()));
    let proof = other.proved(false).proof;
    assert!(other.accepted(&proof) && !base.accepted(&proof));
    // A window that carries no set is another run.
    let mut without = base.statement.clone();
    without.previous.as_mut().unwrap().listed = None;
    let proof = base.proved(false).proof;
    assert!(crate::kit::verify(&without, &proof).is_err());
    let mut with = Case::second().statement;
    with.previous.as_mut().unwrap().listed = base.statement.previous.unwrap().listed;
    let proof = Case::second().proved(false).proof;
    assert!(crate::kit::verify(&with, &proof).is_err());
}

/// A row keeps its mark over three windows while its document has positions, and without. Rows that take its place have none.
#[test]
fn rows_stay_listed_over_windows() {
    let second = Case::pooled_second();
    let proven = second.proved(false).columns;
    let mut listed = opened(proven.listed.as_ref().unwrap()).to_vec();
    assert_eq!(listed, [0, 0, 0, 0, 1, 0, 1, 1, 1]);
    // The second window lists its first row. In the third one the row of the former row 5, now row 8, is without positions.
    listed[0] = 1;
    let carried = [0, 1, 3, 4, 5, 6, 7, 8];
    let names = second.names();
    let mut names: Vec<_> = carried.iter().map(|r| names[*r]).collect();
    names.insert(0, name(77));
    let row = (0..20).map(|p| [0, 1, 2, 3, 4, 5, 6, 9][p % 8]).collect();
    let third = second.pooled(2, (row, names), &carried, &listed);
    let made = super::prove(
        &third.statement,
        &seed(),
        &third.table,
        third.carried(),
        false,
    );
    let proven = verify(&third.statement, &made.unwrap().proof).unwrap();
    let own = third.witness().columns.listed.unwrap();
    assert_eq!(own, [0, 1, 0, 0, 1, 0, 1, 1, 1]);
    assert!(proven.listed.is_some());
}

/// [`open_previous`] names the part that is not the statement's.
#[test]
fn the_openings_before_are_compared() {
    let base = Case::pooled_second();
    let before = base.previous.as_ref().unwrap();
    let opening = |column: &Column| {
        let opening = column.opening.as_ref().unwrap();
        Opening {
            values: opening.values.clone(),
            blindings: opening.blindings.clone(),
        }
    };
    let (_, names) = Case::contents();
    REPEATED.set(true);
    let key = key(0);
    REPEATED.set(false);
    let mut statement = base.statement.clone();
    let layout = statement.layout().unwrap();
    let of_names = commit_names(layout, &names, &key).unwrap();
    let of_names = Names::named(&mut points(of_names.each()));
    statement.previous.as_mut().unwrap().names = of_names;
    let open = |listed: Option<Opening>| {
        let [kept, count] = [&before.kept, &before.count].map(opening);
        let result = open_previous(&statement, &names, &key, kept, count, listed);
        result.err().map_or(String::new(), |e| e.to_string())
    };
    let listed = || opening(before.listed.as_ref().unwrap());
    assert_eq!(open(Some(listed())), "");
    let other = "the private values do not satisfy the statement: the listed rows are not those of the committed table before";
    assert_eq!(open(None), other);
    let mut cleared = listed();
    cleared.values[0] = 0;
    assert_eq!(open(Some(cleared)), other);
    let mut wrong = listed();
    wrong.values[1] = 2;
    assert_eq!(open(Some(wrong)), other);
}
