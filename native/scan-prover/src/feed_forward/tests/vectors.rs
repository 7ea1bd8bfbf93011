//! The published block with its proof, and proofs of wrong blocks.
use super::*;
use crate::test_vectors::{
    base64_text, committed, element, fixed, hex_text, int16_text, negative, negatives, object,
    points_text, small, Field, Negative,
};
use ark_ff::Field as _;

/// Odd numbers of blocks of both kinds, rows of 2^10 entries, and three widths of limbs.
const PLACES: usize = 64;
const ROWS_OF: usize = 10;
const SHAPE: Shape = Shape {
    width: 12,
    inner: 48,
    x: 5,
    z: 6,
    g: 5,
};

fn published() -> Case {
    let rows = activations(78, PLACES * SHAPE.width);
    let integers = Integers {
        row_variables: ROWS_OF,
        ..Integers::random(SHAPE, 6)
    };
    let weights = integers.weights().unwrap();
    let outputs = forward(&weights, &rows).unwrap();
    let commit = |values: &[i16]| fixed_places(&wide(values));
    Case {
        x: wide(&rows),
        inputs: commit(&rows),
        outputs: commit(&outputs),
        integers,
        weights,
        places: PLACES,
    }
}

fn fixed_places(values: &[i64]) -> Committed {
    let rows = Rows {
        width: SHAPE.width,
        places: PLACES,
        row_variables: ROWS_OF,
    };
    committed(rows, values)
}

/// A run without secrets. The numbers are width, inner components and the scales of x, z and g.
pub(crate) fn simulate_any([width, inner, x, z, g]: [usize; 5], places: usize) {
    let [x, z, g] = [x, z, g].map(|scale| scale as u32);
    let shape = Shape {
        width,
        inner,
        x,
        z,
        g,
    };
    let weights = Integers::random(shape, 5).of_points(MAX_ROW_VARIABLES);
    let point = crate::group::vector_generators(1)[0];
    let rows = vec![vec![point; weights.rows(places)]; shape.width_blocks().blocks];
    simulate(&FeedForwardStatement {
        context: Fr::ONE,
        weights: &weights,
        places,
        inputs: &rows,
        outputs: &rows,
    });
}

/// A prover of this witness that makes all claims but one is refused by that claim alone.
fn wrong(case: &Case, name: &'static str, claim: &'static str, witness: &Witness) -> Negative {
    let [inputs, outputs] = [&witness.x, &witness.norm.y].map(|v| fixed_places(v));
    let statement = FeedForwardStatement {
        inputs: &inputs.rows,
        outputs: &outputs.rows,
        ..case.statement()
    };
    let prove = || prove_with::<MaliciousProver>(&statement, witness, &inputs, &outputs).unwrap();
    negative(
        name,
        claim,
        &[("inputs", &inputs.rows), ("outputs", &outputs.rows)],
        prove,
        |proof| verify(&statement, proof).is_ok(),
    )
}

fn faults(case: &Case) -> Vec<Negative> {
    const LOOKUP: &str = "constraint: lookup layer";
    const MATRICES: &str = "constraint: matrices";
    const ROOTS: &str = "constraint: roots";
    let right = || case.witness();
    let gelu = |z: i64| case.weights.gelu[(z + ACTIVATION_LIMIT) as usize];
    let mut all = Vec::new();
    let mut add = |name, claim, witness: &Witness| all.push(wrong(case, name, claim, witness));

    let mut witness = right();
    witness.z[7] += 1;
    witness.g[7] = gelu(witness.z[7]);
    witness.divide_dense(&case.weights);
    case.after_g(&mut witness);
    add(
        "a quotient of the dense layer above its range of remainders",
        LOOKUP,
        &witness,
    );
    cut(&mut witness.dense_rests, SHAPE.dense_shift());
    add(
        "a quotient of the dense layer with a cut remainder",
        MATRICES,
        &witness,
    );

    let mut witness = right();
    witness.g[7] += 1;
    case.after_g(&mut witness);
    add("a result beside the table of GELU", LOOKUP, &witness);

    let mut witness = right();
    witness.norm.variances[3] += 1;
    case.after_deviations(&mut witness);
    add(
        "a variance of other deviations",
        "product: deviation",
        &witness,
    );

    let mut witness = right();
    let root = (witness.norm.normalisers[3][0] + 1) as u128;
    let target = target(SHAPE.width);
    witness.norm.normalisers[3] = slacks(target, root, witness.norm.variances[3]);
    case.after_roots(&mut witness);
    add("a root above the integer root", LOOKUP, &witness);
    let slacks = &mut witness.norm.normalisers[3][1..];
    slacks.iter_mut().for_each(|slack| *slack = (*slack).max(0));
    add(
        "a root above the integer root with slacks in range",
        ROOTS,
        &witness,
    );

    add(
        "an omitted residual",
        MATRICES,
        &without(case, Part::Residual),
    );
    add("an omitted bias", MATRICES, &without(case, Part::Bias));

    let mut witness = right();
    witness.norm.y = witness.x.clone();
    witness.norm.divide(&case.weights.norm);
    cut(&mut witness.norm.rests, SHAPE.norm_shift());
    add("outputs that are the inputs", ROOTS, &witness);
    all
}

/// The block, its proof and the wrong proofs, as JSON.
pub(crate) fn fields() -> [Field; 2] {
    let case = published();
    let statement = case.statement();
    let (proof, states) = fixed(|| case.prove());
    verify(&statement, &proof).unwrap();
    let i = &case.integers;
    let weights: Vec<i16> = i.each.iter().flatten().copied().collect();
    let fields = [
        ("places", PLACES.to_string()),
        ("width", SHAPE.width.to_string()),
        ("inner", SHAPE.inner.to_string()),
        ("scale_x", SHAPE.x.to_string()),
        ("scale_z", SHAPE.z.to_string()),
        ("scale_g", SHAPE.g.to_string()),
        ("row_variables", ROWS_OF.to_string()),
        ("weights", int16_text(&weights)),
        ("matrices", points_text(&case.weights.points())),
        ("gelu", int16_text(&i.gelu)),
        ("weights_digest", hex_text(&case.weights.digest())),
        ("context", element(&statement.context)),
        ("x", small(&case.x)),
        ("y", small(&case.witness().norm.y)),
        ("inputs", points_text(&case.inputs.rows)),
        ("outputs", points_text(&case.outputs.rows)),
        ("proof", base64_text(&proof)),
    ];
    let block = object(&[&fields[..], &states].concat(), " ");
    [("block", block), ("negative", negatives(&faults(&case)))]
}
