use super::*;
use ragaudit_scan_protocol::attention::statement::MAX_HEADS;
use ragaudit_scan_protocol::block::{wide, MAX_PLACES, MAX_ROW_VARIABLES, MAX_WIDTH};
use ragaudit_transformer::{Encoder, Scales};

use crate::attention::inputs::marks_of;
use crate::attention::tests::Integers as AttentionIntegers;
use crate::channel::Channel;
use crate::feed_forward::tests::Integers as FeedForwardIntegers;
use crate::fixtures::{activations, cut, int16};
use crate::group::{Fr, G1Affine};
use crate::kit::{only_for, run_tests, simulate, simulated, verify, Change, Protocol};
use crate::malicious::{caught_by, entries, MaliciousProver};
use crate::transcript::{Oracle, Transcript};
use crate::{attention, feed_forward};
use ark_ff::Field;

mod forgeries;
pub(crate) mod vectors;

impl Protocol for EncoderStatement<'_> {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript(&self.layers[0].shape())
    }

    fn rows(&self) -> Result<usize> {
        self.check()?;
        Ok(self.row_variables())
    }

    fn run<'a, C: Channel>(&'a self, session: Session<'a, C>) -> Result<C::Closed> {
        encoder_protocol(session, self, None)
    }
}

/// The integers of one layer.
#[derive(Clone)]
pub(crate) struct Integers {
    pub(crate) attention: AttentionIntegers,
    pub(crate) feed_forward: FeedForwardIntegers,
}

impl Integers {
    pub(crate) fn random(shape: Shape, seed: u64) -> Self {
        Self {
            attention: AttentionIntegers::random(shape.attention, seed),
            feed_forward: FeedForwardIntegers::random(shape.feed_forward, seed + 50),
        }
    }

    pub(crate) fn layer(&self) -> Result<Layer> {
        Layer::new(self.attention.weights()?, self.feed_forward.weights()?)
    }

    /// In the order of the integer weights.
    pub(crate) fn in_order(&self) -> Vec<i16> {
        let mut all = Vec::new();
        for (matrix, bias) in self.attention.matrices.iter().zip(&self.attention.biases) {
            all.extend(matrix.iter().chain(bias));
        }
        let parts = self.attention.norm.iter().chain(&self.feed_forward.each);
        all.extend(parts.flatten());
        all
    }

    /// A layer of any points, in rows of 2^row_variables.
    pub(crate) fn of_points(&self, row_variables: usize) -> Layer {
        let of_attention = self.attention.of_points(row_variables);
        Layer::new(of_attention, self.feed_forward.of_points(row_variables)).unwrap()
    }

    /// With other rows of the matrices' columns.
    pub(crate) fn in_rows(mut self, row_variables: usize) -> Self {
        self.attention.row_variables = row_variables;
        self.feed_forward.row_variables = row_variables;
        self
    }
}

struct Case {
    integers: Vec<Integers>,
    layers: Vec<Layer>,
    places: usize,
    x: Vec<i64>,
    marks: Vec<i64>,
    used: Used,
    inputs: Committed,
    outputs: Committed,
}

pub(crate) fn shape(width: usize, heads: usize, inner: usize) -> Shape {
    Shape {
        attention: attention::Shape {
            width,
            heads,
            x: 6,
            q: 7,
            v: 8,
            o: 8,
        },
        feed_forward: feed_forward::Shape {
            width,
            inner,
            x: 6,
            z: 6,
            g: 6,
        },
    }
}

pub(crate) fn layers_of(integers: &[Integers]) -> Vec<Layer> {
    integers.iter().map(|one| one.layer().unwrap()).collect()
}

fn case_of(integers: Vec<Integers>, places: usize, used: usize, rows: &[i16]) -> Case {
    let layers = layers_of(&integers);
    let outputs = forward(&layers.iter().collect::<Vec<_>>(), used, rows).unwrap();
    let commit = |values: &[i16]| commit_places(&layers[0], places, values).unwrap();
    Case {
        x: wide(rows),
        marks: marks_of(used, places),
        used: commit_used(&layers[0], places, used).unwrap(),
        inputs: commit(rows),
        outputs: commit(&outputs),
        integers,
        layers,
        places,
    }
}

fn case(shape: Shape, count: usize, places: usize, used: usize) -> Case {
    let rows = activations(77, places * shape.attention.width);
    let integers = (0..count as u64).map(|n| Integers::random(shape, 5 + 100 * n));
    case_of(integers.collect(), places, used, &rows)
}

/// Two layers.
fn small() -> Case {
    case(shape(4, 2, 8), 2, 4, 3)
}

impl Case {
    fn shape(&self) -> Shape {
        self.layers[0].shape()
    }

    fn statement(&self) -> EncoderStatement<'_> {
        EncoderStatement {
            context: Fr::from(77u8),
            layers: self.layers.iter().collect(),
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
        self.witness_of(&self.layers.iter().collect::<Vec<_>>())
    }

    /// The values of other layers on the same inputs.
    fn witness_of(&self, layers: &[&Layer]) -> Witness {
        Witness::new(layers, &self.marks, &self.x).unwrap()
    }

    fn commit(&self, values: &[i64]) -> Committed {
        Committed::values(ROWS, rows_of(&self.layers[0], self.places), values).unwrap()
    }

    /// Whether a prover without checks gets through with this witness, and with commitments to its first x and last y.
    fn forged(&self, witness: &Witness) -> bool {
        self.forged_with(witness, Entries::new(witness, &self.shape()))
    }

    fn forged_with(&self, witness: &Witness, entries: Entries) -> bool {
        let inputs = self.commit(&witness.layers[0].attention.x);
        let outputs = self.commit(witness.outputs());
        let statement = EncoderStatement {
            inputs: &inputs.rows,
            outputs: &outputs.rows,
            ..self.statement()
        };
        let places = [&inputs, &outputs];
        let proof =
            prove_entries::<MaliciousProver>(&statement, witness, &self.used, places, entries);
        verify(&statement, &proof.unwrap()).is_ok()
    }
}

#[test]
fn layers_verify() {
    let mut scales = shape(8, 2, 4);
    scales.attention.v = 7;
    scales.attention.o = 6;
    scales.feed_forward.z = 5;
    scales.feed_forward.g = 7;
    for case in [
        small(),
        case(shape(2, 1, 1), 1, 1, 1),
        case(shape(8, 2, 16), 1, 4, 3),
        case(shape(8, 2, 16), 2, 4, 2),
        case(shape(16, 2, 8), 2, 8, 5),
        case(shape(12, 3, 5), 3, 2, 1),
        case(scales, 2, 2, 2),
    ] {
        let statement = case.statement();
        assert_eq!(verify(&statement, &case.prove()), Ok(()));
        assert!(case.forged(&case.witness()));
        let proof = prove_encoder(&statement, &case.used, &case.inputs, &case.outputs).unwrap();
        assert_eq!(verify_encoder(&statement, &proof), Ok(()));
    }
}

/// The encoder that computes the vectors has the same results at the used places, whatever the other places contain.
#[test]
fn layers_are_the_encoders() {
    let (width, heads, inner, count) = (8, 2, 12, 2);
    let integers: Vec<Integers> = (0..count as u64)
        .map(|n| Integers::random(shape(width, heads, inner), 9 + 100 * n))
        .collect();
    let plain = |count: usize| int16(3, count, 500);
    // Words, places, gain and bias; then the layers.
    let mut weights: Vec<i16> = plain(8 * width);
    weights.extend(std::iter::repeat_n(4096, width).chain(vec![0; width]));
    for layer in &integers {
        weights.extend(layer.in_order());
    }
    let size = ragaudit_transformer::Shape {
        layers: count,
        width,
        heads,
        inner,
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
    let (exp, gelu) = (&integers[0].attention.exp, &integers[0].feed_forward.gelu);
    let encoder = Encoder::new(size, scales, &weights, exp, gelu).unwrap();
    let mut seen = std::collections::BTreeMap::new();
    // The encoder numbers its layers from 1.
    let mut see = |layer: usize, name, values: &[i16]| {
        seen.insert((layer, name), values.to_vec());
    };
    encoder.rows(&[2, 0, 4], &mut see).unwrap();
    let layers = layers_of(&integers);
    let layers: Vec<&Layer> = layers.iter().collect();
    for unused in [-50, 70] {
        let mut rows = seen[&(0, "x0")].clone();
        rows.extend((0..width as i16).map(|c| unused - 9 * c));
        let out = forward(&layers, 3, &rows).unwrap();
        assert_eq!(out[..3 * width], seen[&(count, "x2")]);
        let witness = Witness::new(&layers, &marks_of(3, 4), &wide(&rows)).unwrap();
        for (n, layer) in witness.layers.iter().enumerate() {
            let blocks = [&layer.attention.norm.y, &layer.feed_forward.norm.y];
            for (y, name) in blocks.into_iter().zip(["x1", "x2"]) {
                assert_eq!(y[..3 * width], wide(&seen[&(n + 1, name)]), "{n} {name}");
            }
        }
    }
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let case = small();
    let proof = case.prove();
    let statement = case.statement();
    // A new field has to be changed below.
    let EncoderStatement {
        context: _,
        layers: _,
        places: _,
        marks: _,
        inputs: _,
        outputs: _,
    } = &statement;
    let two = commit_used(&case.layers[0], 4, 2).unwrap();
    let mut others = Vec::new();
    for n in 0..2 {
        let mut attention = case.integers[n].clone();
        attention.attention.matrices[0][1] += 1;
        let mut feed_forward = case.integers[n].clone();
        feed_forward.feed_forward.each[5][1] += 1;
        others.extend([attention, feed_forward].map(|other| (n, other.layer().unwrap())));
    }
    let mut changes: Vec<Change<EncoderStatement>> = vec![
        Box::new(|s| s.context += Fr::ONE),
        Box::new(|s| s.marks = two.point),
        Box::new(|s| s.inputs = &case.outputs.rows),
        Box::new(|s| s.outputs = &case.inputs.rows),
        Box::new(|s| s.layers.reverse()),
        Box::new(|s| s.layers.truncate(1)),
        Box::new(|s| s.layers.push(&case.layers[1])),
        Box::new(|s| s.layers[1] = &case.layers[0]),
    ];
    for (n, other) in &others {
        changes.push(Box::new(move |s| s.layers[*n] = other));
    }
    only_for(&statement, &proof, &changes);
    let eight = EncoderStatement {
        places: 8,
        ..statement.clone()
    };
    assert!(verify(&eight, &proof).is_err());
    // All layers have other scales, sizes or tables.
    let mut scaled = case.integers.clone();
    for layer in &mut scaled {
        layer.attention.shape.q = 6;
    }
    let mut tables = case.integers.clone();
    for layer in &mut tables {
        layer.attention.exp[1] += 1;
    }
    for other in [scaled, tables] {
        let layers = layers_of(&other);
        let other = EncoderStatement {
            layers: layers.iter().collect(),
            ..statement.clone()
        };
        assert!(verify(&other, &proof).is_err());
    }
}

run_tests!(
    "encoder",
    small: small(),
    of_claims: small(),
    every: 293,
    ignored: "a prover skips each single claim in turn (minutes): make test-full",
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
    let base = small();
    let shape = |case: &Case| crate::kit::shape(|| case.prove());
    for used in 1..=4 {
        let other = case_of(base.integers.clone(), 4, used, &rows);
        assert_eq!(shape(&base), shape(&other), "{used}");
    }
}

/// Whether a changed statement is refused by name.
fn invalid<'s>(
    mut statement: EncoderStatement<'s>,
    change: impl Fn(&mut EncoderStatement<'s>),
) -> bool {
    change(&mut statement);
    matches!(verify(&statement, &[]), Err(Error::Invalid { .. }))
}

#[test]
fn parameters_out_of_range_are_refused() {
    let case = small();
    assert!(!invalid(case.statement(), |_| ()));
    assert!(invalid(case.statement(), |s| s.places = 3));
    assert!(invalid(case.statement(), |s| s.places = 0));
    assert!(invalid(case.statement(), |s| s.places = 2 * MAX_PLACES));
    assert!(invalid(case.statement(), |s| s.inputs = &[]));
    assert!(invalid(case.statement(), |s| s.outputs = &[]));
    let first = &case.layers[0];
    assert!(!invalid(case.statement(), |s| s.layers = vec![first; MAX_LAYERS]));
    assert!(invalid(case.statement(), |s| s.layers = vec![first; MAX_LAYERS + 1]));
    assert!(matches!(
        EncoderStatement {
            layers: Vec::new(),
            ..case.statement()
        }
        .check(),
        Err(Error::Invalid { .. })
    ));
    // A layer of another shape or with another table.
    let changes: [&dyn Fn(&mut Integers); 4] = [
        &|i| i.attention.shape.q = 6,
        &|i| i.feed_forward.shape.z = 5,
        &|i| i.attention.exp[1] += 1,
        &|i| i.feed_forward.gelu[1] += 1,
    ];
    for change in changes {
        let mut other = case.integers[1].clone();
        change(&mut other);
        let other = other.layer().unwrap();
        assert!(invalid(case.statement(), |s| s.layers[1] = &other));
    }
    // Blocks of different widths or scales.
    let weights = |shape: Shape| Integers::random(shape, 5);
    for other in [weights(shape(8, 2, 8)), {
        let mut scaled = case.integers[0].clone();
        scaled.feed_forward.shape.x = 5;
        scaled
    }] {
        let mixed = Integers {
            attention: case.integers[0].attention.clone(),
            ..other
        };
        assert!(matches!(mixed.layer(), Err(Error::Invalid { .. })));
    }
    let commit = |values: &[i16]| commit_places(&case.layers[0], 4, values);
    assert!(commit(&[2047; 16]).is_ok());
    assert!(matches!(commit(&[2048; 16]), Err(Error::Invalid { .. })));
    assert!(matches!(commit(&[0; 15]), Err(Error::Invalid { .. })));
    let proof = |used: &Used, outputs: &Committed| {
        prove_encoder(&case.statement(), used, &case.inputs, outputs)
    };
    let unsatisfied = |proof| matches!(proof, Err(Error::Unsatisfied(_)));
    assert!(proof(&case.used, &case.outputs).is_ok());
    assert!(unsatisfied(proof(&case.used, &case.inputs)));
    let two = commit_used(&case.layers[0], 4, 2).unwrap();
    assert!(unsatisfied(proof(&two, &case.outputs)));
    // One layer's results are not those of two layers.
    let one = forward(
        &[&case.layers[0]],
        3,
        &case.x.iter().map(|v| *v as i16).collect::<Vec<_>>(),
    );
    let one = commit(&one.unwrap()).unwrap();
    let statement = EncoderStatement {
        outputs: &one.rows,
        ..case.statement()
    };
    assert!(unsatisfied(prove_encoder(
        &statement,
        &case.used,
        &case.inputs,
        &one
    )));
}

/// The most layers of the largest size.
pub(crate) fn largest() {
    let sizes = [MAX_WIDTH, MAX_HEADS, feed_forward::MAX_INNER];
    vectors::simulate_any(sizes, [6, 7, 8, 8, 6, 6], [MAX_LAYERS, MAX_PLACES]);
}
