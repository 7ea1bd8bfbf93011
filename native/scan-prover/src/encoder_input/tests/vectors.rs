//! The published input with its proof, and proofs of wrong inputs.
use super::*;
use ark_ff::Field as _;

use crate::attention::tests::vectors::fixed_marks_in_rows;
use crate::test_vectors::{
    base64_text, committed, element, fixed, hex_text, int16_text, negative, negatives, object,
    points_text, small as list, Field, Negative,
};

/// Three blocks of components, lists of two packed elements, more place rows than places, and several rows for each table.
const PLACES: usize = 32;
const USED: usize = 19;

fn published_shape() -> Shape {
    sized([300, 12, 64], 5, 9)
}

/// Vocabulary, width and place rows.
fn sized([vocabulary, width, places]: [usize; 3], x: u32, row_variables: usize) -> Shape {
    Shape {
        vocabulary,
        width,
        places,
        x,
        row_variables,
    }
}

fn published() -> Case {
    let tokens: Vec<u32> = (0..USED as u32)
        .map(|n| (n * n + 101 * n + 1) % 300)
        .collect();
    let case = case(published_shape(), PLACES, &tokens);
    Case {
        placed: fixed_placed(&case.table, &case.witness()),
        ..case
    }
}

fn fixed_placed(table: &Table, witness: &Witness) -> Placed {
    Placed {
        used: fixed_marks_in_rows(&witness.marks, table.public.shape.row_variables),
        outputs: committed(rows_of(table, PLACES), &witness.norm.y),
    }
}

/// A run without secrets. The numbers are vocabulary, width and place rows; the scale, the variables of rows and the places.
pub(crate) fn simulate_any(sizes: [usize; 3], x: u32, row_variables: usize, places: usize) {
    let shape = sized(sizes, x, row_variables);
    let embeddings = public(shape);
    let rows = shape.rows(places * shape.width_blocks().entries());
    let outputs = vec![vec![vector_generators(1)[0]; rows]; shape.width_blocks().blocks];
    simulate(&InputStatement {
        context: Fr::ONE,
        embeddings: &embeddings,
        places,
        hq: Fr::ONE,
        marks: vector_generators(1)[0],
        outputs: &outputs,
    });
}

/// Embeddings of this shape with any commitments.
pub(crate) fn public(shape: Shape) -> Embeddings {
    let point = vector_generators(1)[0];
    let columns = |count: usize, entries: usize| vec![vec![point; shape.rows(entries)]; count];
    let blocks = shape.width_blocks();
    let of_places = columns(blocks.blocks, shape.places * blocks.entries());
    let (integers, unused) = (vec![1; shape.width], vec![1; shape.width]);
    let vectors = Vectors {
        gain: &integers,
        bias: &integers,
        unused: &unused,
    };
    let words = columns(shape.width, shape.vocabulary);
    Embeddings::new(shape, words, of_places, vectors).unwrap()
}

/// The embeddings as a verifier has them.
pub(crate) fn embeddings_fields(table: &Table) -> [Field; 10] {
    let (public, shape) = (&table.public, &table.public.shape);
    let unused: Vec<i64> = public.unused.clone();
    let [gain, bias] = [&public.norm.gain, &public.norm.bias].map(|values| {
        let values: Vec<i16> = values.iter().map(|v| *v as i16).collect();
        int16_text(&values)
    });
    [
        ("vocabulary", shape.vocabulary.to_string()),
        ("width", shape.width.to_string()),
        ("place_rows", shape.places.to_string()),
        ("row_bits", shape.row_variables.to_string()),
        ("words", points_text(&public.words)),
        ("of_places", points_text(&public.positions)),
        ("gain", gain),
        ("bias", bias),
        ("unused", list(&unused)),
        ("embeddings_digest", hex_text(&public.digest())),
    ]
}

/// A prover of this witness that makes all claims but one is refused by that claim alone.
fn wrong(case: &Case, name: &'static str, claim: &'static str, witness: &Witness) -> Negative {
    let placed = fixed_placed(&case.table, witness);
    let number = witness.marks.iter().sum::<i64>() as usize;
    let statement = InputStatement {
        // A list has at least one packed element.
        hq: tokens_hash(witness.salt, number, &witness.tokens[..number.max(1)]),
        marks: placed.used.point,
        outputs: &placed.outputs.rows,
        ..case.statement()
    };
    let prove = || {
        let entries = Entries::new(witness, &case.table.public.shape);
        prove_entries::<MaliciousProver>(&statement, &case.table, witness, &placed, entries)
            .unwrap()
    };
    let columns: [(&str, &[_]); 2] = [
        ("marks", &[vec![placed.used.point]]),
        ("outputs", &placed.outputs.rows),
    ];
    let accepts = |proof: &[u8]| verify(&statement, proof).is_ok();
    negative(name, claim, &columns, prove, accepts).with("hq", &statement.hq)
}

fn faults(case: &Case) -> Vec<Negative> {
    let shape = case.table.public.shape;
    let mut all = Vec::new();
    let mut add = |name, claim, witness: &Witness| all.push(wrong(case, name, claim, witness));
    let with_token = |token: i64| {
        let mut witness = case.witness();
        witness.tokens[2] = token;
        witness.split_tokens(&shape);
        case.follow(&mut witness);
        witness
    };

    add("a token outside the vocabulary", LOOKUP, &with_token(300));
    let mut witness = with_token(13);
    let listed = case.witness();
    (witness.tokens, witness.slacks) = (listed.tokens.clone(), listed.slacks.clone());
    add("digits of another token", DIGITS, &witness);

    let mut witness = case.witness();
    witness.marks.fill(0);
    witness.tokens.fill(0);
    witness.split_tokens(&shape);
    case.follow(&mut witness);
    add("no used place", "constraint: first place", &witness);

    let mut rows = case.rows_of_digits(&case.witness());
    let of_places = &case.integers.each[1];
    let first = USED * shape.width;
    for j in 0..shape.width {
        rows[first + j] += i64::from(of_places[first + j]) - i64::from(of_places[j]);
    }
    let mut witness = case.witness();
    case.normed(&mut witness, &rows);
    add(
        "an unused place with its place row",
        ROWS_OF_TOKENS,
        &witness,
    );
    all
}

/// The input, its proof and the wrong proofs, as JSON.
pub(crate) fn fields() -> [Field; 2] {
    let case = published();
    let statement = case.statement();
    let (proof, states) = fixed(|| case.prove());
    verify(&statement, &proof).unwrap();
    let marks: &[Vec<G1Affine>] = &[vec![case.placed.used.point]];
    let tokens: Vec<i64> = case.text.tokens.iter().map(|t| i64::from(*t)).collect();
    let fields = [
        ("scale_x", published_shape().x.to_string()),
        ("places", PLACES.to_string()),
        ("context", element(&statement.context)),
        ("tokens", list(&tokens)),
        ("salt", element(&case.text.salt)),
        ("hq", element(&case.hq)),
        ("x", list(&case.witness().norm.y)),
        ("marks", points_text(marks)),
        ("outputs", points_text(&case.placed.outputs.rows)),
        ("proof", base64_text(&proof)),
    ];
    let embeddings = embeddings_fields(&case.table);
    let input = object(&[&embeddings[..], &fields, &states].concat(), " ");
    [("input", input), ("negative", negatives(&faults(&case)))]
}
