//! The published block with its proof, and proofs of wrong blocks.
use super::*;
use ark_ff::Field as _;

use crate::group::G1Affine;
use crate::test_vectors::{
    above_0, base64_text, committed, element, fixed, fixed_columns, hex_text, int16_text, negative,
    negatives, object, points_text, small as list, Field, Negative,
};

/// Odd numbers of blocks of both kinds, several rows for each table, and six widths of limbs.
const PLACES: usize = 16;
const USED: usize = 11;
/// Columns are committed in rows of 2^9 entries.
const ROWS_OF: usize = 9;
const SHAPE: Shape = Shape {
    width: 12,
    heads: 6,
    x: 5,
    q: 6,
    v: 6,
    o: 6,
};

fn published() -> Case {
    let rows = activations(78, PLACES * SHAPE.width);
    let integers = Integers {
        row_variables: ROWS_OF,
        ..Integers::random(SHAPE, 6)
    };
    let weights = integers.weights().unwrap();
    let outputs = forward(&weights, USED, &rows).unwrap();
    let marks = marks_of(USED, PLACES);
    Case {
        x: wide(&rows),
        used: fixed_marks(&marks),
        inputs: fixed_places(&wide(&rows)),
        outputs: fixed_places(&wide(&outputs)),
        marks,
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

fn fixed_marks(marks: &[i64]) -> Used {
    fixed_marks_in_rows(marks, ROWS_OF)
}

/// Commits to marks under fixed blindings.
pub(crate) fn fixed_marks_in_rows(marks: &[i64], row_variables: usize) -> Used {
    let (rows, openings) = fixed_columns(vec![marks.to_vec()], row_variables);
    Used {
        point: rows[0][0],
        opening: openings[0].clone(),
    }
}

/// A run without secrets. The numbers are width, heads and the scales of x, q, v and o.
pub(crate) fn simulate_any([width, heads, x, q, v, o]: [usize; 6], places: usize) {
    let [x, q, v, o] = [x, q, v, o].map(|scale| scale as u32);
    let shape = Shape {
        width,
        heads,
        x,
        q,
        v,
        o,
    };
    let weights = Integers::random(shape, 5).of_points(MAX_ROW_VARIABLES);
    let point = crate::group::vector_generators(1)[0];
    let rows = vec![vec![point; weights.rows(places)]; shape.width_blocks().blocks];
    simulate(&AttentionStatement {
        context: Fr::ONE,
        weights: &weights,
        places,
        marks: point,
        inputs: &rows,
        outputs: &rows,
    });
}

/// A wrong block: its values, and the marks of its statement.
struct Wrong {
    witness: Witness,
    used: Used,
    derived: Option<Derived>,
    /// Marks that columns of multiplicities count.
    counted: Vec<i64>,
    /// The place whose hidden mark is one more than the committed one.
    false_mark: Option<usize>,
}

impl Wrong {
    fn new(witness: &Witness) -> Self {
        Self {
            witness: witness.clone(),
            used: fixed_marks(&witness.marks),
            derived: None,
            counted: witness.marks.clone(),
            false_mark: None,
        }
    }

    /// A prover that makes all claims but one is refused by that claim alone.
    fn proof(&self, case: &Case, name: &'static str, claim: &'static str) -> Negative {
        let witness = &self.witness;
        let [inputs, outputs] = [&witness.x, &witness.norm.y].map(|v| fixed_places(v));
        let statement = AttentionStatement {
            marks: self.used.point,
            inputs: &inputs.rows,
            outputs: &outputs.rows,
            ..case.statement()
        };
        let mut counted = witness.clone();
        counted.marks = self.counted.clone();
        let made = || {
            let columns = (witness.columns(&SHAPE), counted.multiplicities(&SHAPE));
            let places = (&self.used, [&inputs, &outputs]);
            let own = || witness.derived(&SHAPE);
            let derived = self.derived.as_ref().map_or_else(own, |d| Derived {
                marks: d.marks.clone(),
                ..own()
            });
            prove_columns::<MaliciousProver>(&statement, witness, places, columns, derived).unwrap()
        };
        let said: Vec<_> = self
            .false_mark
            .iter()
            .map(|place| {
                let (_, log) = run(Without::Nothing, made);
                let sent = log.points.iter().position(|point| point == "marks");
                (sent.expect("a message"), *place, Fr::ONE)
            })
            .collect();
        let prove = || {
            FALSE.set(said.clone());
            let proof = made();
            FALSE.set(Vec::new());
            proof
        };
        negative(
            name,
            claim,
            &[
                ("marks", &[vec![self.used.point]]),
                ("inputs", &inputs.rows),
                ("outputs", &outputs.rows),
            ],
            prove,
            |proof| verify(&statement, proof).is_ok(),
        )
    }
}

fn faults(case: &Case) -> Vec<Negative> {
    const LOOKUP: &str = "constraint: lookup layer";
    const MATRICES: &str = "constraint: matrices";
    const NORMALISERS: &str = "constraint: normalisers";
    let right = || case.witness();
    let bits = SHAPE.remainders();
    let mut all = Vec::new();
    let mut add = |name, claim, wrong: &Wrong| all.push(wrong.proof(case, name, claim));

    let mut witness = right();
    witness.projections[0][5] += 1;
    witness.divide_projection(&case.weights, 0);
    case.after_projections(&mut witness);
    cut(&mut witness.rests[0], bits[0]);
    add(
        "a query with a cut remainder",
        MATRICES,
        &Wrong::new(&witness),
    );

    let mut witness = right();
    witness.projections[3][5] += 1;
    witness.divide_heads(&case.weights);
    case.after_heads(&mut witness);
    add(
        "a result of a head above its range of remainders",
        LOOKUP,
        &Wrong::new(&witness),
    );
    cut(&mut witness.rests[4], bits[4]);
    add(
        "a result of a head with a cut remainder",
        NORMALISERS,
        &Wrong::new(&witness),
    );

    let mut witness = right();
    witness.rests[3][3] ^= 1;
    add(
        "another remainder of a score",
        "product: marked score",
        &Wrong::new(&witness),
    );

    let mut witness = right();
    let hot = witness.hot.clone();
    witness.maxima[2] += 1;
    witness.measure(&case.weights);
    case.after_scores(&mut witness);
    witness.hot = hot;
    add(
        "a maximum above all scores",
        "constraint: maximum",
        &Wrong::new(&witness),
    );
    witness.mark_maxima();
    add(
        "a maximum without a marked place",
        "column claim: normalisers",
        &Wrong::new(&witness),
    );

    let mut witness = right();
    witness.exps[4] += 1;
    case.after_scores(&mut witness);
    add(
        "a result beside the table of exp",
        LOOKUP,
        &Wrong::new(&witness),
    );

    let mut witness = right();
    let [n, rest, slack] = witness.quotients[3];
    witness.quotients[3] = quotient(rest + slack + 1, n - 1);
    let [n, rest, _] = witness.quotients[3];
    assert!(rest >= 0);
    case.after_quotients(&mut witness);
    witness.quotients[3] = [n, rest, 0];
    add(
        "a normaliser below the quotient",
        "constraint: remainders of normalisers",
        &Wrong::new(&witness),
    );

    // The last place has results of exp, the commitment has no mark of it.
    let mut witness = right();
    for exps in witness.exps.chunks_exact_mut(PLACES) {
        exps[PLACES - 1] = 4096;
    }
    case.after_scores(&mut witness);
    let used = |at: usize| at % PLACES < USED || at % PLACES == PLACES - 1;
    let mut wrong = Wrong::new(&witness);
    let mut derived = witness.derived(&SHAPE);
    let count = derived.marks.len();
    derived.marks = (0..count).map(|at| i64::from(used(at))).collect();
    wrong.derived = Some(derived);
    wrong.counted = (0..PLACES).map(|at| i64::from(used(at))).collect();
    add(
        "an unused place with results of exp",
        "constraint: key",
        &wrong,
    );

    let mut marks = case.marks.clone();
    marks[4] = 0;
    let witness = Witness::new(&case.weights, &marks, &case.x).unwrap();
    add(
        "used places with a gap",
        "product: used places",
        &Wrong::new(&witness),
    );

    let mut marks = case.marks.clone();
    marks[USED] = 1;
    let witness = Witness::new(&case.weights, &marks, &case.x).unwrap();
    let mut wrong = Wrong::new(&witness);
    wrong.used = fixed_marks(&case.marks);
    wrong.false_mark = Some(USED);
    add(
        "a used place more than the committed marks",
        "column claim: marks",
        &wrong,
    );

    let mut witness = right();
    let values = witness.projections[2].clone();
    for row in witness.projections[2].chunks_exact_mut(SHAPE.width) {
        row.rotate_left(2);
    }
    witness.weigh(&case.weights);
    witness.projections[2] = values;
    case.after_heads(&mut witness);
    add("values of another head", NORMALISERS, &Wrong::new(&witness));

    let mut witness = right();
    witness.x.fill(0);
    case.after_residual(&mut witness, &case.weights);
    witness.x = case.x.clone();
    add("an omitted residual", MATRICES, &Wrong::new(&witness));

    let mut witness = right();
    witness.norm.y = witness.x.clone();
    witness.norm.divide(&case.weights.norm);
    cut(&mut witness.norm.rests, SHAPE.norm_shift());
    add(
        "outputs that are the inputs",
        "constraint: roots",
        &Wrong::new(&witness),
    );
    all
}

/// The block, its proof and the wrong proofs, as JSON.
pub(crate) fn fields() -> [Field; 2] {
    let case = published();
    let statement = case.statement();
    let (proof, states) = fixed(|| case.prove());
    verify(&statement, &proof).unwrap();
    let i = &case.integers;
    let dense = i.matrices.iter().zip(&i.biases);
    let mut weights: Vec<i16> = dense
        .flat_map(|(m, b)| m.iter().chain(b))
        .copied()
        .collect();
    weights.extend(i.norm.iter().flatten());
    let marks: &[Vec<G1Affine>] = &[vec![case.used.point]];
    let fields = [
        ("places", PLACES.to_string()),
        ("width", SHAPE.width.to_string()),
        ("heads", SHAPE.heads.to_string()),
        ("scale_x", SHAPE.x.to_string()),
        ("scale_q", SHAPE.q.to_string()),
        ("scale_v", SHAPE.v.to_string()),
        ("scale_o", SHAPE.o.to_string()),
        ("row_variables", ROWS_OF.to_string()),
        ("weights", int16_text(&weights)),
        ("matrices", points_text(&case.weights.points())),
        ("exp_above_0", list(above_0(&i.exp))),
        ("weights_digest", hex_text(&case.weights.digest())),
        ("context", element(&statement.context)),
        ("used", USED.to_string()),
        ("x", list(&case.x)),
        ("y", list(&case.witness().norm.y)),
        ("marks", points_text(marks)),
        ("inputs", points_text(&case.inputs.rows)),
        ("outputs", points_text(&case.outputs.rows)),
        ("proof", base64_text(&proof)),
    ];
    let block = object(&[&fields[..], &states].concat(), " ");
    [("block", block), ("negative", negatives(&faults(&case)))]
}
