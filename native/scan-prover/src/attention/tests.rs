use super::inputs::*;
use super::*;
use ragaudit_scan_protocol::attention::statement::{DISTANCES, MAX_HEADS};
use ragaudit_scan_protocol::block::{
    limb_widths, wide, ACTIVATION_LIMIT, LIMB_BITS, MAX_PLACES, MAX_ROW_VARIABLES, MAX_WIDTH,
};
use ragaudit_transformer::{Encoder, Scales};

use crate::block::{rests, slacks, target, variance, NormWitness};
use crate::channel::Channel;
use crate::error::Error;
use crate::fixtures::{activations, any_matrix, cut, int16, OTHER_MATRICES, ROW_VARIABLES};
use crate::group::Fr;
use crate::kit::{only_for, run_tests, simulate, simulated, verify, Change, Protocol};
use crate::malicious::{
    caught_by, entries, lookup_point, run, MaliciousProver, Without, FALSE, REPEATED,
};
use crate::numbers::power_of_two;
use crate::transcript::{Oracle, Transcript};
use ark_ff::Field;

mod forgeries;
pub(crate) mod vectors;

impl Protocol for AttentionStatement<'_> {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript()
    }

    fn rows(&self) -> Result<usize> {
        self.check()?;
        Ok(self.row_variables())
    }

    fn run<'a, C: Channel>(&'a self, session: Session<'a, C>) -> Result<C::Closed> {
        attention_protocol(session, self, None)
    }
}

/// The integers of a block: matrices and biases of queries, keys, values and output, gain and bias.
#[derive(Clone)]
pub(crate) struct Integers {
    pub(crate) shape: Shape,
    pub(crate) row_variables: usize,
    pub(crate) matrices: [Vec<i16>; 4],
    pub(crate) biases: [Vec<i16>; 4],
    pub(crate) norm: [Vec<i16>; 2],
    pub(crate) exp: Vec<i16>,
}

impl Integers {
    /// Small random weights, and the encoder's table of exp.
    pub(crate) fn random(shape: Shape, seed: u64) -> Self {
        let draw = |salt: u64, count: usize, below: i64| int16(seed + salt, count, below);
        let d = shape.width;
        let scale = 9000 / d.isqrt() as i64;
        let gain = draw(8, d, 1000).iter().map(|v| 3500 + v).collect();
        let exp = |u: usize| (4096.0 * (-(u as f64) / 32.0).exp()).round() as i16;
        Self {
            shape,
            row_variables: ROW_VARIABLES,
            matrices: std::array::from_fn(|k| draw(k as u64, d * d, scale)),
            biases: std::array::from_fn(|k| draw(4 + k as u64, d, 3000)),
            norm: [gain, draw(9, d, 2000)],
            exp: (0..DISTANCES).map(exp).collect(),
        }
    }

    pub(crate) fn weights(&self) -> Result<Weights> {
        let parameters = Parameters {
            matrices: self.matrices.each_ref().map(|m| &m[..]),
            vectors: self.vectors(),
        };
        open_weights(self.shape, self.row_variables, parameters, None)
    }

    fn vectors(&self) -> Vectors<'_> {
        Vectors {
            biases: self.biases.each_ref().map(|b| &b[..]),
            gain: &self.norm[0],
            bias: &self.norm[1],
            exp: &self.exp,
        }
    }

    /// Weights with these vectors and any points, in rows of 2^row_variables.
    pub(crate) fn of_points(&self, row_variables: usize) -> Weights {
        let matrices = [0; 4].map(|_| any_matrix([self.shape.width; 2], row_variables));
        Weights::new(self.shape, row_variables, matrices, self.vectors()).unwrap()
    }

    /// Matrices and biases in turn, then gain and bias.
    fn part(&mut self, part: usize) -> &mut Vec<i16> {
        match part {
            0..8 if part.is_multiple_of(2) => &mut self.matrices[part / 2],
            0..8 => &mut self.biases[part / 2],
            _ => &mut self.norm[part - 8],
        }
    }
}

struct Case {
    integers: Integers,
    weights: Weights,
    places: usize,
    x: Vec<i64>,
    marks: Vec<i64>,
    used: Used,
    inputs: Committed,
    outputs: Committed,
}

impl Witness {
    /// The remainders of other queries, keys or values.
    fn divide_projection(&mut self, weights: &Weights, kind: usize) {
        let sums = self.sums_of_projection(weights, kind);
        let shift = weights.shape.remainders()[kind];
        self.rests[kind] = rests(&sums, &self.projections[kind], shift);
    }
}

struct Commitments {
    used: Used,
    inputs: Committed,
    outputs: Committed,
}

fn shape(width: usize, heads: usize) -> Shape {
    Shape {
        width,
        heads,
        x: 6,
        q: 7,
        v: 8,
        o: 8,
    }
}

fn case_of(integers: Integers, places: usize, used: usize, rows: &[i16]) -> Case {
    let weights = integers.weights().unwrap();
    let outputs = forward(&weights, used, rows).unwrap();
    let commit = |values: &[i16]| commit_places(&weights, places, values).unwrap();
    Case {
        x: wide(rows),
        marks: marks_of(used, places),
        used: commit_used(&weights, places, used).unwrap(),
        inputs: commit(rows),
        outputs: commit(&outputs),
        integers,
        weights,
        places,
    }
}

fn case(shape: Shape, places: usize, used: usize) -> Case {
    let rows = activations(77, places * shape.width);
    case_of(Integers::random(shape, 5), places, used, &rows)
}

fn small() -> Case {
    case(shape(4, 2), 4, 3)
}

/// Commits to values that may be no activations.
fn commit_values(weights: &Weights, places: usize, values: &[i64]) -> Committed {
    Committed::values(ROWS, rows_of(weights, places), values).unwrap()
}

impl Case {
    fn statement(&self) -> AttentionStatement<'_> {
        AttentionStatement {
            context: Fr::from(77u8),
            weights: &self.weights,
            places: self.places,
            marks: self.used.point,
            inputs: &self.inputs.rows,
            outputs: &self.outputs.rows,
        }
    }

    fn prove(&self) -> Vec<u8> {
        let statement = self.statement();
        prove_as::<MaliciousProver>(&statement, &self.used, &self.inputs, &self.outputs).unwrap()
    }

    fn witness(&self) -> Witness {
        Witness::new(&self.weights, &self.marks, &self.x).unwrap()
    }

    fn commit(&self, values: &[i64]) -> Committed {
        commit_values(&self.weights, self.places, values)
    }

    /// Whether a prover without checks gets through with this witness, and with commitments to its x, y and marks.
    fn forged(&self, witness: &Witness) -> bool {
        let derived = || witness.derived(&self.weights.shape);
        self.forged_with(witness, &derived)
    }

    fn forged_with(&self, witness: &Witness, derived: &dyn Fn() -> Derived) -> bool {
        self.passes(witness, &self.commitments(witness), derived)
    }

    fn commitments(&self, witness: &Witness) -> Commitments {
        Commitments {
            used: commit_marks_in(self.weights.row_variables, &witness.marks).unwrap(),
            inputs: self.commit(&witness.x),
            outputs: self.commit(&witness.norm.y),
        }
    }

    /// Whether a prover without checks gets through with this witness and these commitments.
    fn passes(&self, witness: &Witness, to: &Commitments, derived: &dyn Fn() -> Derived) -> bool {
        let statement = AttentionStatement {
            marks: to.used.point,
            inputs: &to.inputs.rows,
            outputs: &to.outputs.rows,
            ..self.statement()
        };
        let shape = &self.weights.shape;
        let columns = (witness.columns(shape), witness.multiplicities(shape));
        let places = (&to.used, [&to.inputs, &to.outputs]);
        let proof =
            prove_columns::<MaliciousProver>(&statement, witness, places, columns, derived());
        verify(&statement, &proof.unwrap()).is_ok()
    }

    fn after_scores(&self, witness: &mut Witness) {
        witness.normalise();
        self.after_quotients(witness);
    }

    fn after_quotients(&self, witness: &mut Witness) {
        witness.weigh(&self.weights);
        self.after_heads(witness);
    }

    /// The LayerNorm of the witness's sums.
    fn after_heads(&self, witness: &mut Witness) {
        self.after_residual(witness, &self.weights);
    }

    fn after_residual(&self, witness: &mut Witness, weights: &Weights) {
        let r = witness.sums_of_residual(weights);
        witness.norm = NormWitness::default();
        witness.norm.deviate(&self.weights.norm, &r);
        self.after_deviations(witness);
    }

    fn after_deviations(&self, witness: &mut Witness) {
        witness.norm.take_roots(&self.weights.norm);
        witness.norm.normalise(&self.weights.norm);
        witness.norm.divide(&self.weights.norm);
    }

    /// All values after queries, keys and values.
    fn after_projections(&self, witness: &mut Witness) {
        witness.score(&self.weights);
        self.after_scores(witness);
    }
}

#[test]
fn attention_blocks_verify() {
    let scales = |x, q, v, o| Shape {
        x,
        q,
        v,
        o,
        ..shape(8, 2)
    };
    for case in [
        small(),
        case(shape(2, 1), 1, 1),
        case(shape(12, 3), 4, 1),
        case(shape(6, 6), 2, 2),
        case(shape(24, 3), 2, 1),
        case(shape(16, 2), 8, 5),
        case(scales(6, 5, 7, 6), 2, 2),
        case(scales(5, 6, 6, 7), 4, 2),
    ] {
        let proof = case.prove();
        assert_eq!(verify(&case.statement(), &proof), Ok(()));
        assert!(case.forged(&case.witness()));
    }
}

/// The encoder that computes the vectors has the same results at the used places, whatever the other places contain.
#[test]
fn blocks_are_the_encoders() {
    let (width, heads) = (8, 2);
    let integers = Integers::random(shape(width, heads), 9);
    let plain = |count: usize| int16(3, count, 500);
    let one = vec![4096; width];
    // Words, places, gain and bias; then attention with its LayerNorm, and a feed-forward block.
    let mut weights: Vec<i16> = plain(5 * width);
    weights.extend(plain(3 * width));
    weights.extend(one.iter().chain(&vec![0; width]));
    for (matrix, bias) in integers.matrices.iter().zip(&integers.biases) {
        weights.extend(matrix.iter().chain(bias));
    }
    integers.norm.iter().for_each(|part| weights.extend(part));
    weights.extend(plain(2 * width * 4 + 4 + width));
    weights.extend(one.iter().chain(&vec![0; width]));
    let size = ragaudit_transformer::Shape {
        layers: 1,
        width,
        heads,
        inner: 4,
        vocabulary: 5,
        places: 3,
    };
    let scales = Scales {
        x: 6,
        q: 7,
        v: 8,
        o: 8,
        z: 6,
        g: 6,
    };
    let gelu: Vec<i16> = (-2048..2048).map(|z: i16| z.max(0)).collect();
    let encoder = Encoder::new(size, scales, &weights, &integers.exp, &gelu).unwrap();
    let mut seen = std::collections::BTreeMap::new();
    let mut see = |_, name, values: &[i16]| {
        seen.insert(name, values.to_vec());
    };
    encoder.rows(&[2, 0, 4], &mut see).unwrap();
    let block = integers.weights().unwrap();
    for unused in [-50, 70] {
        let mut rows = seen["x0"].clone();
        rows.extend((0..width as i16).map(|c| unused - 9 * c));
        let out = forward(&block, 3, &rows).unwrap();
        assert_eq!(out[..3 * width], seen["x1"]);
        let witness = Witness::new(&block, &marks_of(3, 4), &wide(&rows)).unwrap();
        for (values, name) in witness.projections.iter().zip(["q", "k", "v", "o"]) {
            assert_eq!(values[..3 * width], wide(&seen[name]), "{name}");
        }
    }
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let case = small();
    let proof = case.prove();
    let statement = case.statement();
    // A new field has to be changed below.
    let AttentionStatement {
        context: _,
        weights: _,
        places: _,
        marks: _,
        inputs: _,
        outputs: _,
    } = &statement;
    let mut others: Vec<Weights> = Vec::new();
    for part in 0..10 {
        let mut other = case.integers.clone();
        other.part(part)[1] += 1;
        others.push(other.weights().unwrap());
    }
    let mut exp = case.integers.clone();
    exp.exp[1] += 1;
    others.push(exp.weights().unwrap());
    for scaled in [
        Shape {
            q: 6,
            ..case.weights.shape
        },
        Shape {
            o: 7,
            ..case.weights.shape
        },
        shape(4, 1),
    ] {
        let scaled = Integers {
            shape: scaled,
            ..case.integers.clone()
        };
        others.push(scaled.weights().unwrap());
    }
    let two = commit_used(&case.weights, 4, 2).unwrap();
    let mut changes: Vec<Change<AttentionStatement>> = vec![
        Box::new(|s| s.context += Fr::ONE),
        Box::new(|s| s.marks = two.point),
        Box::new(|s| s.inputs = &case.outputs.rows),
        Box::new(|s| s.outputs = &case.inputs.rows),
    ];
    for weights in &others {
        changes.push(Box::new(move |s| s.weights = weights));
    }
    only_for(&statement, &proof, &changes);
    let eight = AttentionStatement {
        places: 8,
        ..statement
    };
    assert!(verify(&eight, &proof).is_err());
}

run_tests!(
    "attention",
    small: small(),
    of_claims: small(),
    every: 97,
    ignored: "a prover skips each single claim in turn (a minute): make test-full",
);

/// Commitments without a known opening.
#[test]
fn proofs_are_simulated_without_places() {
    let case = small();
    let real = case.prove();
    let points: Vec<Vec<G1Affine>> = case.inputs.rows.iter().rev().cloned().collect();
    let mut public = case.statement();
    (public.inputs, public.outputs) = (&case.outputs.rows, &points);
    public.marks = case.inputs.rows[0][0];
    simulated(&public, &real);
}

#[test]
fn proofs_have_one_shape() {
    let rows = [
        9, -9, 0, 4, 7, 8, -200, 199, 30, 1, 2, 3, 100, -100, 50, -50,
    ];
    let integers = || Integers::random(shape(4, 2), 5);
    let cases = [
        small(),
        case_of(integers(), 4, 1, &rows),
        case_of(integers(), 4, 4, &rows),
    ];
    let shape = |case: &Case| crate::kit::shape(|| case.prove());
    assert_eq!(shape(&cases[0]), shape(&cases[1]));
    assert_eq!(shape(&cases[0]), shape(&cases[2]));
}

#[test]
fn parameters_out_of_range_are_refused() {
    let case = small();
    let refused = |change: &dyn Fn(&mut AttentionStatement)| {
        let mut statement = case.statement();
        change(&mut statement);
        matches!(verify(&statement, &[]), Err(Error::Invalid { .. }))
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|s| s.places = 3));
    assert!(refused(&|s| s.places = 0));
    assert!(refused(&|s| s.places = 2 * MAX_PLACES));
    assert!(refused(&|s| s.inputs = &[]));
    assert!(refused(&|s| s.outputs = &[]));
    let refused = |change: &dyn Fn(&mut Integers)| {
        let mut integers = case.integers.clone();
        change(&mut integers);
        matches!(integers.weights(), Err(Error::Invalid { .. }))
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|i| i.shape.width = 1));
    assert!(refused(&|i| i.shape.width = 2 * MAX_WIDTH));
    assert!(refused(&|i| i.shape.heads = 0));
    assert!(refused(&|i| i.shape.heads = 3));
    assert!(refused(&|i| i.shape.heads = MAX_HEADS + 1));
    for change in [
        |s: &mut Shape| s.x = 12,
        |s: &mut Shape| s.q = 12,
        |s: &mut Shape| s.v = 12,
        |s: &mut Shape| s.o = 12,
    ] {
        assert!(refused(&|i| change(&mut i.shape)));
    }
    for part in 0..10 {
        assert!(refused(&|i| i.part(part).clear()));
    }
    assert!(refused(&|i| i.exp.clear()));
    assert!(refused(&|i| i.exp[0] = 4095));
    assert!(refused(&|i| i.exp[7] = 4097));
    assert!(refused(&|i| i.exp[7] = -1));
    // A head of three components, and sums that reach 2^31.
    let large = |width: usize, heads: usize, weight: i16| {
        let mut integers = Integers::random(shape(width, heads), 5);
        integers.matrices[2].fill(weight);
        matches!(integers.weights(), Err(Error::Invalid { .. }))
    };
    assert!(large(6, 2, 1) && !large(6, 3, 1));
    assert!(large(32, 2, i16::MIN) && !large(16, 2, i16::MIN));
    let commit = |values: &[i16]| commit_places(&case.weights, 4, values);
    assert!(commit(&[2047; 16]).is_ok());
    assert!(matches!(commit(&[2048; 16]), Err(Error::Invalid { .. })));
    assert!(matches!(commit(&[0; 15]), Err(Error::Invalid { .. })));
    for (places, used) in [(4, 0), (4, 5), (3, 1), (128, 1)] {
        let used = commit_used(&case.weights, places, used);
        assert!(matches!(used, Err(Error::Invalid { .. })));
    }
    let proof = |used: &Used, outputs: &Committed| {
        prove_attention(&case.statement(), used, &case.inputs, outputs)
    };
    let unsatisfied = |proof| matches!(proof, Err(Error::Unsatisfied(_)));
    assert!(proof(&case.used, &case.outputs).is_ok());
    assert!(unsatisfied(proof(&case.used, &case.inputs)));
    let two = commit_used(&case.weights, 4, 2).unwrap();
    assert!(unsatisfied(proof(&two, &case.outputs)));
    let statement = AttentionStatement {
        marks: two.point,
        ..case.statement()
    };
    let result = prove_attention(&statement, &two, &case.inputs, &case.outputs);
    assert!(unsatisfied(result));
}

/// A distance beyond the table of exp has no result.
#[test]
fn distances_are_in_the_table() {
    let mut integers = Integers::random(shape(4, 1), 5);
    integers.shape.q = 6;
    for kind in 0..2 {
        integers.matrices[kind].fill(0);
        integers.biases[kind].fill(0);
        (0..4).for_each(|k| integers.matrices[kind][5 * k] = 4096);
    }
    let weights = integers.weights().unwrap();
    let rows: Vec<i16> = [2000; 4].into_iter().chain([-2000; 4]).collect();
    assert!(matches!(
        forward(&weights, 2, &rows),
        Err(Error::Unsatisfied(_))
    ));
    assert!(forward(&weights, 1, &[1, 2, 3, 4, 3, 2, 1, 0]).is_ok());
}

/// The largest block.
pub(crate) fn largest() {
    vectors::simulate_any([MAX_WIDTH, MAX_HEADS, 6, 7, 8, 8], MAX_PLACES);
}

/// The published size with random weights.
#[test]
#[ignore = "proves a block of 32 places, 384 components and 12 heads (seconds): make test-full"]
fn a_block_of_the_published_size() {
    let mut integers = Integers::random(shape(384, 12), 5);
    let weights = integers.matrices.iter_mut().flatten();
    weights.for_each(|w| *w /= 2);
    let rows = activations(77, 32 * 384);
    let case = case_of(integers, 32, 20, &rows);
    let statement = case.statement();
    let proof = prove_attention(&statement, &case.used, &case.inputs, &case.outputs).unwrap();
    assert_eq!(verify_attention(&statement, &proof), Ok(()));
    assert!(proof.len() < 16_384);
}
