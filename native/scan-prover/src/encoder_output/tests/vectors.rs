//! The published output with its proof, and proofs of wrong outputs.
use super::*;
use ark_ff::Field as _;
use ragaudit_scan_protocol::block::wide;

use crate::attention::tests::vectors::fixed_marks_in_rows;
use crate::fixtures::activations;
use crate::malicious::{run, Without, FALSE};
use crate::test_vectors::{
    base64_text, committed, element, fixed, int16_text, negative, negatives, object, points_text,
    small as list, Field, Negative,
};

/// Three blocks of components, two packed elements, and several rows for each table.
const PLACES: usize = 16;
const USED: usize = 11;
const SHAPE: Shape = Shape {
    width: 96,
    norm_factor: NORM_FACTOR,
};

fn published() -> Case {
    let case = case_of(SHAPE, USED, wide(&activations(91, PLACES * SHAPE.width)));
    Case {
        used: fixed_marks(&case.marks),
        inputs: fixed_places(&case.y),
        ..case
    }
}

fn fixed_marks(marks: &[i64]) -> Used {
    fixed_marks_in_rows(marks, row_variables(&SHAPE, PLACES))
}

fn fixed_places(y: &[i64]) -> Committed {
    let of = Rows {
        width: SHAPE.width,
        places: PLACES,
        row_variables: row_variables(&SHAPE, PLACES),
    };
    committed(of, y)
}

/// A run without secrets.
pub(crate) fn simulate_any(width: usize, places: usize, norm_factor: u64) {
    let shape = Shape { width, norm_factor };
    let point = crate::group::vector_generators(1)[0];
    let each =
        (places * shape.width_blocks().entries()).div_ceil(1 << row_variables(&shape, places));
    let rows = vec![vec![point; each]; shape.width_blocks().blocks];
    simulate(&OutputStatement {
        context: Fr::ONE,
        shape,
        places,
        marks: point,
        inputs: &rows,
        cq: Fr::ONE,
    });
}

/// A wrong output: its values, the marks of its statement, and its statement's hash.
struct Wrong {
    witness: Witness,
    used: Used,
    cq: Fr,
    /// The place whose hidden mark is one more than the committed one.
    false_mark: Option<usize>,
}

impl Wrong {
    fn new(case: &Case, witness: &Witness) -> Self {
        Self {
            witness: witness.clone(),
            used: fixed_marks(&witness.marks),
            cq: unbounded_hash(case.salt, &witness.vector.components),
            false_mark: None,
        }
    }

    /// A prover that makes all claims but one is refused by that claim alone.
    fn proof(&self, case: &Case, name: &'static str, claim: &'static str) -> Negative {
        let inputs = fixed_places(&self.witness.y);
        let statement = OutputStatement {
            marks: self.used.point,
            inputs: &inputs.rows,
            cq: self.cq,
            ..case.statement()
        };
        let claimed = Claimed::of(&self.witness.vector);
        let made = || {
            let secret = (&self.witness, &claimed);
            prove_with::<MaliciousProver>(&statement, secret, &self.used, &inputs, &case.salt)
                .unwrap()
        };
        let said = self.false_mark.map(|place| {
            let (_, log) = run(Without::Nothing, made);
            let sent = log.points.iter().position(|point| point == "marks");
            (sent.expect("a message"), place, Fr::ONE)
        });
        let prove = || {
            FALSE.set(said.into_iter().collect());
            let proof = made();
            FALSE.set(Vec::new());
            proof
        };
        let columns: [(&str, &[_]); 2] = [
            ("marks", &[vec![self.used.point]]),
            ("inputs", &inputs.rows),
        ];
        let accepts = |proof: &[u8]| verify(&statement, proof).is_ok();
        negative(name, claim, &columns, prove, accepts).with("cq", &self.cq)
    }
}

fn faults(case: &Case) -> Vec<Negative> {
    let right = case.witness();
    let sums = |marks: &[i64]| sums_of(SHAPE.width, marks, &case.y);
    let scaled = SHAPE.vector(PLACES).bounds.scaled;
    let mut all = Vec::new();
    let mut add = |name, claim, wrong: &Wrong| all.push(wrong.proof(case, name, claim));
    let of = |witness: &Witness| Wrong::new(case, witness);

    let one_more = marks_of(USED + 1, PLACES);
    let with_unused = case.with_sums(sums(&one_more));
    add("the sum with an unused place", USED_ROWS, &of(&with_unused));

    let mut witness = right.clone();
    witness.vector.components = quantised(&right.vector.sums, NORM_FACTOR / 2);
    witness.vector.measure(2 * NORM_FACTOR as i64, scaled);
    add("the vector of another norm factor", LOOKUP, &of(&witness));

    let mut wrong = of(&right);
    wrong.cq = unbounded_hash(case.salt, &with_unused.vector.components);
    add(
        "the hash of another vector",
        "constraint: hash outputs",
        &wrong,
    );

    let mut wrong = of(&Witness::new(&SHAPE, &one_more, &case.y).unwrap());
    wrong.used = fixed_marks(&case.marks);
    wrong.false_mark = Some(USED);
    add(
        "a used place more than the committed marks",
        "column claim: marks",
        &wrong,
    );
    all
}

/// The output, its proof and the wrong proofs, as JSON.
pub(crate) fn fields() -> [Field; 2] {
    let case = published();
    let statement = case.statement();
    let (proof, states) = fixed(|| case.prove());
    verify(&statement, &proof).unwrap();
    let narrow: Vec<i16> = case.y.iter().map(|v| *v as i16).collect();
    let marks: &[Vec<G1Affine>] = &[vec![case.used.point]];
    let fields = [
        ("places", PLACES.to_string()),
        ("width", SHAPE.width.to_string()),
        ("norm_factor", SHAPE.norm_factor.to_string()),
        ("context", element(&statement.context)),
        ("used", USED.to_string()),
        ("y", int16_text(&narrow)),
        ("vector", list(&case.witness().vector.components)),
        ("salt", element(&case.salt)),
        ("cq", element(&case.cq)),
        ("marks", points_text(marks)),
        ("inputs", points_text(&case.inputs.rows)),
        ("proof", base64_text(&proof)),
    ];
    let output = object(&[&fields[..], &states].concat(), " ");
    [("output", output), ("negative", negatives(&faults(&case)))]
}
