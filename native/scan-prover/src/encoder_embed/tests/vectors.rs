//! The published run with its proof, and proofs of wrong vectors.
use super::*;

use crate::encoder::tests::vectors::layers_fields;
use crate::encoder_input::tests::vectors::{embeddings_fields, public};
use crate::test_vectors::{
    base64_text, element, fixed, negative, negatives, object, small as list, Field, Negative,
};

const PLACES: usize = 4;

fn model() -> Model {
    let mut model = Model::random(9, 4, 4, PLACES, 2);
    model.input.row_variables = 10;
    model.layers = model.layers.into_iter().map(|l| l.in_rows(10)).collect();
    model
}

fn published() -> Case {
    case_of(model(), PLACES, &[1, 8, 5])
}

/// A run without secrets. The numbers are vocabulary, width and place rows; heads and inner components; the variables of rows;
/// layers, places and queries.
pub(crate) fn simulate_any(
    [vocabulary, width, most]: [usize; 3],
    [heads, inner]: [usize; 2],
    row_variables: usize,
    [count, places, queries]: [usize; 3],
) {
    let shape = layers_shape(width, heads, inner);
    let layer = Integers::random(shape, 5).of_points(row_variables);
    let embeddings = public(InputShape {
        vocabulary,
        width,
        places: most,
        x: shape.attention.x,
        row_variables,
    });
    simulate(&EncoderEmbedStatement {
        queries: vec![PUBLIC; queries],
        embeddings: &embeddings,
        layers: vec![&layer; count],
        places,
        norm_factor: NORM_FACTOR,
    });
}

/// A prover of this witness that makes all claims but one is refused by that claim alone.
fn wrong(
    case: &Case,
    name: &'static str,
    claim: &'static str,
    witness: &Witness,
    [hq, cq]: [Fr; 2],
) -> Negative {
    let statement = EncoderEmbedStatement {
        queries: vec![case.hashes_of(hq, cq)],
        ..case.statement()
    };
    let prove = || {
        let part = Part::new(witness, &statement.check().unwrap(), &case.salt);
        prove_parts::<MaliciousProver>(&statement, &case.table, vec![part]).unwrap()
    };
    let accepts = |proof: &[u8]| verify(&statement, proof).is_ok();
    let made = negative(name, claim, &[], prove, accepts);
    made.with("hq", &hq).with("cq", &cq)
}

fn faults(case: &Case) -> Vec<Negative> {
    let right = case.witness();
    let other = case.witness_of(&text(&[1, 2, 4]));
    let hashes = |witness: &Witness| {
        let (hq, cq) = case.hashes(witness);
        [hq, cq]
    };
    let mut all = Vec::new();
    let mut add = |name, claim, witness: &Witness, hashes| {
        all.push(wrong(case, name, claim, witness, hashes));
    };

    let shape = case.statement().check().unwrap();
    let before = &right.layers.layers[0].feed_forward.norm.y;
    let output = OutputWitness::new(&shape.output, &right.input.marks, before).unwrap();
    let mut witness = right.clone();
    witness.output.vector = output.vector.clone();
    add(
        "the vector before the last layer",
        USED_ROWS,
        &witness,
        hashes(&witness),
    );

    let mut witness = other.clone();
    witness.input = right.input.clone();
    add(
        "layers on the input of another text",
        MATRICES,
        &witness,
        hashes(&witness),
    );
    all
}

/// A run of two queries under the published model.
pub(crate) fn fields_of_several() -> [Field; 2] {
    let [run, negative] = several::fields(model(), PLACES);
    [("run", run), ("negative", negative)]
}

/// The run, its proof and the wrong proofs, as JSON.
pub(crate) fn fields() -> [Field; 2] {
    let case = published();
    let statement = case.statement();
    let (proof, states) = fixed(|| case.prove());
    verify(&statement, &proof).unwrap();
    let tokens: Vec<i64> = case.text.tokens.iter().map(|t| i64::from(*t)).collect();
    let fields = [
        ("places", PLACES.to_string()),
        ("norm_factor", NORM_FACTOR.to_string()),
        ("context", element(&statement.queries[0].context)),
        ("tokens", list(&tokens)),
        ("salt", element(&case.text.salt)),
        ("hq", element(&case.hq)),
        ("vector", list(&case.witness().output.vector.components)),
        ("vector_salt", element(&case.salt)),
        ("cq", element(&case.cq)),
        ("proof", base64_text(&proof)),
    ];
    let (embeddings, layers) = (
        embeddings_fields(&case.table),
        layers_fields(&case.model.layers),
    );
    let run = object(&[&embeddings[..], &layers, &fields, &states].concat(), " ");
    [("run", run), ("negative", negatives(&faults(&case)))]
}
