//! The published proof of names of rows, and proofs of wrong names.
use super::*;
use crate::test_vectors::{
    base64_text, element, fixed, hex_text, list, negative_of, negatives, object, points_text,
    small, Field, Negative,
};
use ark_ff::Field as _;

fn published() -> Case {
    REPEATED.set(true);
    let case = Case::small();
    REPEATED.set(false);
    case
}

/// The parts of a statement that differ among the proofs of the file.
fn parts(case: &Case) -> [Field; 3] {
    let (positions, names): (Vec<usize>, Vec<Fr>) = case.statement.opened.iter().copied().unzip();
    let table: Vec<Vec<G1Affine>> = case.statement.table.each().cloned().collect();
    [
        ("table_points", points_text(&table)),
        ("opened", list(positions, |p| p.to_string())),
        ("names", list(&names, element)),
    ]
}

/// A prover of these numbers of rows that makes all claims but one is refused by that claim alone.
fn wrong(
    name: &'static str,
    claim: &'static str,
    case: &Case,
    numbers: &[(usize, i64)],
) -> Negative {
    let prove = || {
        let mut witness = case.witness();
        let of_names = &mut witness.columns.numbers;
        numbers.iter().for_each(|(k, r)| of_names[*k] = *r);
        witness.count_rows(&case.statement, case.statement.names().0.len());
        case.prove(witness)
    };
    let accepts = |proof: &[u8]| case.accepted(proof);
    negative_of(name, claim, parts(case).to_vec(), prove, accepts)
}

fn faults() -> Vec<Negative> {
    REPEATED.set(true);
    let base = Case::small();
    let unplaced = Case::opening(&[0, 13]).naming(|opened| opened[1].1 = name(7));
    let swapped = base.naming(|opened| {
        (opened[1].1, opened[6].1) = (name(5), name(2));
    });
    let other = base.naming(|opened| opened[1].1 = name(7));
    let (row, mut names) = Case::contents();
    names[1] = names[0];
    let alike = Case::of(row.clone(), &names, &[0, 1, 2]);
    let unmarked = base.with_entry(|table| &mut table.names.named, 3, 0);
    let (mut unnamed, names) = Case::contents();
    unnamed[13] = 8;
    let unnamed = Case::of(unnamed, &names, &[0, 13]);
    let renamed: Vec<_> = names.iter().map(|n| n.map(|n| n - Fr::ONE)).collect();
    let renamed = Case::of(row, &renamed, &[0, 1, 2, 3, 4, 5, 8]);
    let of_another = base.naming(|opened| opened.clone_from_slice(&renamed.statement.opened));
    REPEATED.set(false);
    vec![
        wrong(
            "a position with the name of another row",
            LOOKUP,
            &other,
            &[],
        ),
        wrong(
            "a position with the number of another row",
            ROW_NUMBERS,
            &other,
            &[(1, 6)],
        ),
        wrong(
            "two positions with each other's names",
            LOOKUP,
            &swapped,
            &[],
        ),
        wrong(
            "two positions with each other's names and numbers",
            ROW_NUMBERS,
            &swapped,
            &[(1, 4), (4, 1)],
        ),
        wrong("a position without a row", LOOKUP, &unplaced, &[]),
        wrong(
            "a position without a row that has the number of a row",
            ROW_NUMBERS,
            &unplaced,
            &[(1, 6)],
        ),
        wrong("a row without a name", LOOKUP, &unnamed, &[]),
        wrong(
            "a row with a name and without its mark",
            LOOKUP,
            &unmarked,
            &[],
        ),
        wrong(
            "positions of two rows with one name",
            ROW_NUMBERS,
            &alike,
            &[],
        ),
        wrong("names of another table", LOOKUP, &of_another, &[]),
    ]
}

/// The names, their proof and the wrong proofs, as JSON.
pub(crate) fn fields() -> [Field; 2] {
    let case = published();
    let (proof, states) = fixed(|| case.proved());
    verify(&case.statement, &proof).unwrap();
    let of_table = [
        ("capacity", case.statement.capacity.to_string()),
        ("rows", case.statement.rows.to_string()),
        ("context", hex_text(&case.statement.context)),
        ("row", small(values(&case.table.row).unwrap())),
        ("named", small(values(&case.table.names.named).unwrap())),
    ];
    let of_proof = [("proof", base64_text(&proof))];
    let fields = [&of_table[..], &parts(&case), &of_proof, &states].concat();
    [
        ("row_names", object(&fields, " ")),
        ("negative", negatives(&faults())),
    ]
}
