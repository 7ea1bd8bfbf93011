//! The published layers with their proof, and proofs of wrong layers.
use super::*;
use ark_ff::Field as _;

use crate::attention::inputs::Witness as AttentionWitness;
use crate::attention::tests::vectors::fixed_marks_in_rows;
use crate::block::NormWitness;
use crate::feed_forward::inputs::Witness as FeedForwardWitness;
use crate::test_vectors::{
    above_0, base64_text, committed, element, fixed, hex_text, int16_text, list, negative,
    negatives, object, points_text, small as numbers, Field, Negative,
};

const PLACES: usize = 16;
const USED: usize = 11;
/// Columns are committed in rows of 2^9 entries.
const ROWS_OF: usize = 9;

fn published_shape() -> Shape {
    sized([12, 6, 48], [5, 6, 6, 7, 6, 5])
}

/// Width, heads and inner components; the scales of x, q, v, o, z and g.
fn sized([width, heads, inner]: [usize; 3], [x, q, v, o, z, g]: [u32; 6]) -> Shape {
    Shape {
        attention: attention::Shape {
            width,
            heads,
            x,
            q,
            v,
            o,
        },
        feed_forward: feed_forward::Shape {
            width,
            inner,
            x,
            z,
            g,
        },
    }
}

fn published() -> Case {
    let shape = published_shape();
    let rows = activations(78, PLACES * shape.attention.width);
    let integers = (0..2u64).map(|n| Integers::random(shape, 6 + 100 * n).in_rows(ROWS_OF));
    let integers: Vec<Integers> = integers.collect();
    let layers = layers_of(&integers);
    let outputs = forward(&layers.iter().collect::<Vec<_>>(), USED, &rows).unwrap();
    let marks = marks_of(USED, PLACES);
    Case {
        x: wide(&rows),
        used: fixed_marks_in_rows(&marks, ROWS_OF),
        inputs: fixed_places(&wide(&rows)),
        outputs: fixed_places(&wide(&outputs)),
        marks,
        integers,
        layers,
        places: PLACES,
    }
}

fn fixed_places(values: &[i64]) -> Committed {
    let rows = Rows {
        width: published_shape().attention.width,
        places: PLACES,
        row_variables: ROWS_OF,
    };
    committed(rows, values)
}

/// A run without secrets. The numbers are width, heads and inner components; the scales of x, q, v, o, z and g; layers and
/// places.
pub(crate) fn simulate_any(sizes: [usize; 3], scales: [u32; 6], [count, places]: [usize; 2]) {
    let shape = sized(sizes, scales);
    let layer = Integers::random(shape, 5).of_points(MAX_ROW_VARIABLES);
    let point = crate::group::vector_generators(1)[0];
    let rows = vec![vec![point; layer.attention.rows(places)]; shape.width_blocks().blocks];
    simulate(&EncoderStatement {
        context: Fr::ONE,
        layers: vec![&layer; count],
        places,
        marks: point,
        inputs: &rows,
        outputs: &rows,
    });
}

/// A prover of this witness that makes all claims but one is refused by that claim alone.
fn wrong(
    case: &Case,
    name: &'static str,
    claim: &'static str,
    witness: &Witness,
    entries: impl Fn() -> Entries,
) -> Negative {
    let inputs = fixed_places(&witness.layers[0].attention.x);
    let outputs = fixed_places(witness.outputs());
    let statement = EncoderStatement {
        inputs: &inputs.rows,
        outputs: &outputs.rows,
        ..case.statement()
    };
    let prove = || {
        let places = [&inputs, &outputs];
        let made =
            prove_entries::<MaliciousProver>(&statement, witness, &case.used, places, entries());
        made.unwrap()
    };
    negative(
        name,
        claim,
        &[
            ("marks", &[vec![case.used.point]]),
            ("inputs", &inputs.rows),
            ("outputs", &outputs.rows),
        ],
        prove,
        |proof| verify(&statement, proof).is_ok(),
    )
}

/// The second layer of values that follow from the first layer's.
fn follow(case: &Case, witness: &mut Witness) {
    let x = witness.layers[0].feed_forward.norm.y.clone();
    let layer = &case.layers[1];
    let attention = AttentionWitness::new(&layer.attention, &case.marks, &x).unwrap();
    witness.layers[1].feed_forward =
        FeedForwardWitness::new(&layer.feed_forward, &attention.norm.y).unwrap();
    witness.layers[1].attention = attention;
}

fn faults(case: &Case) -> Vec<Negative> {
    const LOOKUP: &str = "constraint: lookup layer";
    const MATRICES: &str = "constraint: matrices";
    const ROOTS: &str = "constraint: roots";
    let shape = published_shape();
    let right = || case.witness();
    let own = |witness: &Witness| Entries::new(witness, &shape);
    let first = &case.layers[0];
    let mut all = Vec::new();

    let mut witness = right();
    let block = &mut witness.layers[0].feed_forward;
    block.norm.y = block.x.clone();
    block.norm.divide(&first.feed_forward.norm);
    cut(&mut block.norm.rests, first.feed_forward.norm.shift);
    follow(case, &mut witness);
    all.push(wrong(case, "a skipped block", ROOTS, &witness, || {
        own(&witness)
    }));

    let mut witness = right();
    witness.layers[0].feed_forward.norm.y[5] += 1;
    follow(case, &mut witness);
    all.push(wrong(
        case,
        "a matrix between two layers that is not the result",
        ROOTS,
        &witness,
        || own(&witness),
    ));
    witness.layers[0].feed_forward.norm.y[5] -= 1;
    all.push(wrong(
        case,
        "a layer that reads another matrix than the result before it",
        MATRICES,
        &witness,
        || own(&witness),
    ));

    // The last place at the distance 0 in the second layer.
    let mut witness = right();
    let layer = &case.layers[1];
    let attention = &mut witness.layers[1].attention;
    let rows = attention.exps.chunks_exact_mut(PLACES);
    rows.for_each(|row| row[PLACES - 1] = 4096);
    attention.normalise();
    attention.weigh(&layer.attention);
    let sums = attention.sums_of_residual(&layer.attention);
    attention.norm = NormWitness::new(&layer.attention.norm, &sums).unwrap();
    attention.marks[PLACES - 1] = 1;
    let y = attention.norm.y.clone();
    witness.layers[1].feed_forward = FeedForwardWitness::new(&layer.feed_forward, &y).unwrap();
    all.push(wrong(
        case,
        "a place that one layer uses and the marks exclude",
        "constraint: key",
        &witness,
        || own(&witness),
    ));

    let witness = right();
    all.push(wrong(
        case,
        "counts of one layer only",
        LOOKUP,
        &witness,
        || {
            let one = Witness {
                layers: vec![witness.layers[0].clone()],
            };
            let mut entries = own(&witness);
            entries.multiplicities = own(&one).multiplicities;
            entries
        },
    ));
    all.push(wrong(
        case,
        "top limbs of another layer",
        MATRICES,
        &witness,
        || {
            let mut entries = own(&witness);
            let [(_, first), (_, second)] = &mut entries.derived[..] else {
                unreachable!("two layers")
            };
            std::mem::swap(&mut first[0], &mut second[0]);
            entries
        },
    ));
    all
}

/// The layers, their proof and the wrong proofs, as JSON.
pub(crate) fn fields() -> [Field; 2] {
    let case = published();
    let statement = case.statement();
    let (proof, states) = fixed(|| case.prove());
    verify(&statement, &proof).unwrap();
    let marks: &[Vec<G1Affine>] = &[vec![case.used.point]];
    let sizes = [
        ("places", PLACES.to_string()),
        ("width", published_shape().attention.width.to_string()),
    ];
    let fields = [
        ("context", element(&statement.context)),
        ("used", USED.to_string()),
        ("x", numbers(&case.x)),
        ("y", numbers(case.witness().outputs())),
        ("marks", points_text(marks)),
        ("inputs", points_text(&case.inputs.rows)),
        ("outputs", points_text(&case.outputs.rows)),
        ("proof", base64_text(&proof)),
    ];
    let layers = layers_fields(&case.integers);
    let block = object(&[&sizes[..], &layers, &fields, &states].concat(), " ");
    [("layers", block), ("negative", negatives(&faults(&case)))]
}

/// The layers as a verifier has them, without their width.
pub(crate) fn layers_fields(layers: &[Integers]) -> [Field; 14] {
    let first = &layers[0];
    let (a, f) = (first.attention.shape, first.feed_forward.shape);
    let weights = |layer: &Integers| int16_text(&layer.in_order());
    let matrices = |layer: &Layer| {
        let points = [layer.attention.points(), layer.feed_forward.points()];
        points_text(&points.concat())
    };
    let digests = |layer: &Layer| {
        let both = [layer.attention.digest(), layer.feed_forward.digest()];
        list(both, |digest| hex_text(&digest))
    };
    [
        ("heads", a.heads.to_string()),
        ("inner", f.inner.to_string()),
        ("scale_x", a.x.to_string()),
        ("scale_q", a.q.to_string()),
        ("scale_v", a.v.to_string()),
        ("scale_o", a.o.to_string()),
        ("scale_z", f.z.to_string()),
        ("scale_g", f.g.to_string()),
        ("row_variables", first.attention.row_variables.to_string()),
        ("weights", list(layers, weights)),
        ("matrices", list(&layers_of(layers), matrices)),
        ("weights_digests", list(&layers_of(layers), digests)),
        ("exp_above_0", numbers(above_0(&first.attention.exp))),
        ("gelu", int16_text(&first.feed_forward.gelu)),
    ]
}
