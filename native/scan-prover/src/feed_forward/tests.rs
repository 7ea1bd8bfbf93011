use super::inputs::*;
use super::*;
use ragaudit_scan_protocol::block::{
    limb_widths, wide, ACTIVATION_LIMIT, LIMB_BITS, MAX_PLACES, MAX_ROW_VARIABLES, MAX_WIDTH,
};
use ragaudit_transformer::{Encoder, Scales};

use crate::block::{rests, slacks, target, variance};
use crate::channel::Channel;
use crate::error::Error;
use crate::fixtures::{activations, any_matrix, cut, int16, OTHER_MATRICES, ROW_VARIABLES};
use crate::group::{Fr, G1Affine};
use crate::kit::{only_for, run_tests, simulate, simulated, verify, Change, Protocol};
use crate::malicious::{
    caught_by, entries, lookup_point, run, MaliciousProver, Without, FALSE, REPEATED,
};
use crate::numbers::power_of_two;
use crate::transcript::{Oracle, Transcript};
use ark_ff::Field;

pub(crate) mod vectors;

impl Protocol for FeedForwardStatement<'_> {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript()
    }

    fn rows(&self) -> Result<usize> {
        self.check()?;
        Ok(self.row_variables())
    }

    fn run<'a, C: Channel>(&'a self, session: Session<'a, C>) -> Result<C::Closed> {
        feed_forward_protocol(session, self, None)
    }
}

/// The integers of a block: matrices and biases, gain and bias.
#[derive(Clone)]
pub(crate) struct Integers {
    pub(crate) shape: Shape,
    pub(crate) row_variables: usize,
    pub(crate) each: [Vec<i16>; 6],
    pub(crate) gelu: Vec<i16>,
}

impl Integers {
    /// Small random weights, and a table that is no line.
    pub(crate) fn random(shape: Shape, seed: u64) -> Self {
        let draw = |salt: u64, count: usize, below: i64| int16(seed + salt, count, below);
        let (d, i) = (shape.width, shape.inner);
        let scale = |count: usize| (9000 / count.isqrt() as i64).clamp(1, 9000);
        let gain = draw(4, d, 1000).iter().map(|v| 3500 + v).collect();
        let gelu = |z: i16| if z < 0 { -(z.rem_euclid(40) / 8) } else { z };
        Self {
            shape,
            row_variables: ROW_VARIABLES,
            each: [
                draw(0, d * i, scale(d)),
                draw(1, i, 3000),
                draw(2, i * d, scale(i)),
                draw(3, d, 3000),
                gain,
                draw(5, d, 2000),
            ],
            gelu: (-2048..2048).map(gelu).collect(),
        }
    }

    pub(crate) fn weights(&self) -> Result<Weights> {
        let parameters = Parameters {
            first: &self.each[0],
            second: &self.each[2],
            vectors: self.vectors(),
        };
        open_weights(self.shape, self.row_variables, parameters, None)
    }

    fn vectors(&self) -> Vectors<'_> {
        let [_, first_bias, _, second_bias, gain, bias] = &self.each;
        Vectors {
            first_bias,
            second_bias,
            gain,
            bias,
            gelu: &self.gelu,
        }
    }

    /// Weights with these vectors and any points, in rows of 2^row_variables.
    pub(crate) fn of_points(&self, row_variables: usize) -> Weights {
        let (d, i) = (self.shape.width, self.shape.inner);
        let matrices = [[d, i], [i, d]].map(|sizes| any_matrix(sizes, row_variables));
        Weights::new(self.shape, row_variables, matrices, self.vectors()).unwrap()
    }
}

struct Case {
    integers: Integers,
    weights: Weights,
    places: usize,
    x: Vec<i64>,
    inputs: Committed,
    outputs: Committed,
}

fn shape(width: usize, inner: usize) -> Shape {
    Shape {
        width,
        inner,
        x: 6,
        z: 6,
        g: 6,
    }
}

fn case_of(integers: Integers, places: usize, rows: &[i16]) -> Case {
    let weights = integers.weights().unwrap();
    let outputs = forward(&weights, rows).unwrap();
    let commit = |values: &[i16]| commit_places(&weights, places, values).unwrap();
    Case {
        x: wide(rows),
        inputs: commit(rows),
        outputs: commit(&outputs),
        integers,
        weights,
        places,
    }
}

fn case(shape: Shape, places: usize) -> Case {
    let rows = activations(77, places * shape.width);
    case_of(Integers::random(shape, 5), places, &rows)
}

fn small() -> Case {
    case(shape(4, 8), 2)
}

/// Commits to values that may be no activations.
fn commit_values(weights: &Weights, places: usize, values: &[i64]) -> Committed {
    Committed::values(ROWS, rows_of(weights, places), values).unwrap()
}

impl Case {
    fn statement(&self) -> FeedForwardStatement<'_> {
        FeedForwardStatement {
            context: Fr::from(77u8),
            weights: &self.weights,
            places: self.places,
            inputs: &self.inputs.rows,
            outputs: &self.outputs.rows,
        }
    }

    fn prove(&self) -> Vec<u8> {
        prove_as::<MaliciousProver>(&self.statement(), &self.inputs, &self.outputs).unwrap()
    }

    fn witness(&self) -> Witness {
        Witness::new(&self.weights, &self.x).unwrap()
    }

    fn commit(&self, values: &[i64]) -> Committed {
        commit_values(&self.weights, self.places, values)
    }

    /// Whether a prover without checks gets through with this witness, and with commitments to its x and y.
    fn forged(&self, witness: &Witness) -> bool {
        self.passes(
            witness,
            &self.commit(&witness.x),
            &self.commit(&witness.norm.y),
        )
    }

    fn passes(&self, witness: &Witness, inputs: &Committed, outputs: &Committed) -> bool {
        let statement = FeedForwardStatement {
            inputs: &inputs.rows,
            outputs: &outputs.rows,
            ..self.statement()
        };
        let proof = prove_with::<MaliciousProver>(&statement, witness, inputs, outputs).unwrap();
        verify(&statement, &proof).is_ok()
    }

    /// The values after g, computed from g.
    fn after_g(&self, witness: &mut Witness) {
        deviate(&self.weights, witness);
        self.after_deviations(witness);
    }

    /// The values after a, computed from a.
    fn after_deviations(&self, witness: &mut Witness) {
        witness.norm.take_roots(&self.weights.norm);
        self.after_roots(witness);
    }

    fn after_roots(&self, witness: &mut Witness) {
        witness.norm.normalise(&self.weights.norm);
        witness.norm.divide(&self.weights.norm);
    }
}

impl Witness {
    /// The remainders of another z.
    pub(crate) fn divide_dense(&mut self, weights: &Weights) {
        let sums = sums_of_dense(weights, &self.x);
        self.dense_rests = rests(&sums, &self.z, weights.shape.dense_shift());
    }
}

/// a and V of each row.
fn deviate(weights: &Weights, witness: &mut Witness) {
    let r = witness.sums_of_residual(weights);
    witness.norm.deviate(&weights.norm, &r);
}

#[test]
fn feed_forward_blocks_verify() {
    let scales = |x, z, g| Shape {
        x,
        z,
        g,
        ..shape(4, 8)
    };
    for case in [
        small(),
        case(shape(2, 1), 1),
        case(shape(6, 5), 4),
        case(shape(16, 4), 2),
        case(scales(6, 5, 7), 2),
        case(scales(5, 6, 5), 1),
    ] {
        let proof = case.prove();
        assert_eq!(verify(&case.statement(), &proof), Ok(()));
        assert!(case.forged(&case.witness()));
    }
}

/// The encoder that computes the vectors has the same results.
#[test]
fn blocks_are_the_encoders() {
    let (width, inner) = (6, 10);
    let integers = Integers::random(shape(width, inner), 9);
    let [first, first_bias, second, second_bias, gain, bias] = &integers.each;
    let plain = |count: usize| int16(3, count, 500);
    let one = vec![4096; width];
    // Words, places, gain and bias; then attention with the first LayerNorm, and the block.
    let mut weights: Vec<i16> = plain(5 * width);
    weights.extend(one.iter().chain(&vec![0; width]));
    weights.extend(plain(4 * (width * width + width)));
    weights.extend(one.iter().chain(&vec![0; width]));
    for part in [first, first_bias, second, second_bias, gain, bias] {
        weights.extend(part);
    }
    let mut exp = vec![0; 1 << 13];
    exp[0] = 4096;
    let size = ragaudit_transformer::Shape {
        layers: 1,
        width,
        heads: 2,
        inner,
        vocabulary: 3,
        places: 2,
    };
    let scales = Scales {
        x: 6,
        q: 6,
        v: 6,
        o: 6,
        z: 6,
        g: 6,
    };
    let encoder = Encoder::new(size, scales, &weights, &exp, &integers.gelu).unwrap();
    let mut seen = std::collections::BTreeMap::new();
    let mut see = |_, name, values: &[i16]| {
        seen.insert(name, values.to_vec());
    };
    encoder.rows(&[2, 0], &mut see).unwrap();
    let block = integers.weights().unwrap();
    assert_eq!(forward(&block, &seen["x1"]).unwrap(), seen["x2"]);
    let witness = Witness::new(&block, &wide(&seen["x1"])).unwrap();
    assert_eq!(witness.z, wide(&seen["z"]));
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let case = small();
    let proof = case.prove();
    let statement = case.statement();
    // A new field has to be changed below.
    let FeedForwardStatement {
        context: _,
        weights: _,
        places: _,
        inputs: _,
        outputs: _,
    } = &statement;
    let mut other = case.integers.clone();
    other.each[4][1] += 1;
    let gain = other.weights().unwrap();
    let mut others: Vec<Weights> = vec![gain];
    for k in 0..6 {
        let mut other = case.integers.clone();
        other.each[k][0] += 1;
        others.push(other.weights().unwrap());
    }
    let mut gelu = case.integers.clone();
    gelu.gelu[0] += 1;
    others.push(gelu.weights().unwrap());
    let scaled = Shape {
        z: 7,
        ..case.weights.shape
    };
    let scaled = Integers {
        shape: scaled,
        ..case.integers.clone()
    };
    others.push(scaled.weights().unwrap());
    let mut changes: Vec<Change<FeedForwardStatement>> = vec![
        Box::new(|s| s.context += Fr::ONE),
        Box::new(|s| s.inputs = &case.outputs.rows),
        Box::new(|s| s.outputs = &case.inputs.rows),
    ];
    for weights in &others {
        changes.push(Box::new(move |s| s.weights = weights));
    }
    only_for(&statement, &proof, &changes);
    let four = FeedForwardStatement {
        places: 4,
        ..statement
    };
    assert!(verify(&four, &proof).is_err());
}

run_tests!(
    "feed forward",
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
    simulated(&public, &real);
}

/// A false quotient that is in its table, with the true one's remainder: the value that the prover sends for the columns of the division
/// is then the true one's.
#[test]
fn values_at_the_point_are_the_columns() {
    let case = small();
    let shape = case.weights.shape;
    REPEATED.set(true);
    for label in ["dense", "norm"] {
        let mut witness = case.witness();
        let (variables, shift) = match label {
            "dense" => {
                witness.z[0] += 1;
                witness.g[0] = case.weights.gelu[(witness.z[0] + ACTIVATION_LIMIT) as usize];
                case.after_g(&mut witness);
                (4, shape.dense_shift())
            }
            _ => {
                witness.norm.y[0] += 1;
                (3, shape.norm_shift())
            }
        };
        let (inputs, outputs) = (case.commit(&witness.x), case.commit(&witness.norm.y));
        let forged = || case.passes(&witness, &inputs, &outputs);
        let (_, log) = run(Without::Nothing, || {
            let statement = FeedForwardStatement {
                inputs: &inputs.rows,
                outputs: &outputs.rows,
                ..case.statement()
            };
            prove_with::<MaliciousProver>(&statement, &witness, &inputs, &outputs).unwrap()
        });
        let sent = log.points.iter().position(|point| point == label);
        let more = -power_of_two(shift) * crate::mle::eq_at(&lookup_point(&log)[..variables], 0);
        FALSE.set(vec![(sent.expect("a message"), 0, more)]);
        caught_by(&format!("column claim: {label}"), forged);
        FALSE.set(Vec::new());
    }
    REPEATED.set(false);
}

/// Every remainder and every quotient: z and y are one step away, and all later values follow from them.
#[test]
fn quotients_are_the_rounded_ones() {
    let case = small();
    for step in [-1, 1] {
        for at in entries(case.witness().z.len()) {
            let mut witness = case.witness();
            witness.z[at] += step;
            witness.g[at] = case.weights.gelu[(witness.z[at] + ACTIVATION_LIMIT) as usize];
            witness.divide_dense(&case.weights);
            case.after_g(&mut witness);
            let mut masked = witness.clone();
            cut(&mut masked.dense_rests, case.weights.shape.dense_shift());
            if at == 0 {
                caught_by("constraint: lookup layer", || case.forged(&witness));
                caught_by("constraint: matrices", || case.forged(&masked));
            }
            assert!(!case.forged(&witness) && !case.forged(&masked), "z {at}");
        }
        for at in entries(case.witness().norm.y.len()) {
            let mut witness = case.witness();
            witness.norm.y[at] += step;
            witness.norm.divide(&case.weights.norm);
            let mut masked = witness.clone();
            cut(&mut masked.norm.rests, case.weights.shape.norm_shift());
            if at == 0 {
                caught_by("constraint: lookup layer", || case.forged(&witness));
                caught_by("constraint: roots", || case.forged(&masked));
            }
            assert!(!case.forged(&witness) && !case.forged(&masked), "y {at}");
        }
    }
}

/// A remainder that differs from the true one, with every limb in its range.
#[test]
fn remainders_are_the_divisions() {
    let case = small();
    for at in entries(case.witness().dense_rests.len()) {
        let mut witness = case.witness();
        witness.dense_rests[at] ^= 1;
        if at == 0 {
            caught_by("constraint: matrices", || case.forged(&witness));
        }
        assert!(!case.forged(&witness), "{at}");
    }
    let shift = case.weights.shape.norm_shift();
    for at in entries(case.witness().norm.rests.len()) {
        // One bit in each limb.
        for k in 0..limb_widths(shift).len() {
            let mut witness = case.witness();
            witness.norm.rests[at] ^= 1 << (LIMB_BITS * k);
            if at == 0 {
                caught_by("constraint: roots", || case.forged(&witness));
            }
            assert!(!case.forged(&witness), "{at}");
        }
    }
}

/// A remainder beyond its range as its lowest limb, with the other limbs 0 and counted.
#[test]
fn limbs_below_the_top_are_in_range() {
    let case = small();
    let shape = &case.weights.shape;
    let mut witness = case.witness();
    witness.norm.y[0] += 1;
    witness.norm.divide(&case.weights.norm);
    assert!(witness.norm.rests[0] < 0);
    let mut columns = witness.columns(shape);
    let mut multiplicities = witness.multiplicities(shape);
    let [dense_tops, mut norm_tops] = witness.tops(shape);
    columns
        .norm_limbs
        .iter_mut()
        .for_each(|limb| limb[0][0] = 0);
    columns.norm_limbs[0][0][0] = witness.norm.rests[0];
    norm_tops[0][0] = 0;
    let mut counts = vec![0; 1 << LIMB_BITS];
    let limbs = columns.dense_limbs.iter().chain(&columns.norm_limbs);
    let limbs = limbs.flatten().chain(&dense_tops).chain(&norm_tops);
    for value in limbs.chain([&columns.roots]).flatten() {
        crate::prover::columns::count(&mut counts, *value);
    }
    multiplicities.shared.of_limbs[0] = counts;
    let (inputs, outputs) = (case.commit(&witness.x), case.commit(&witness.norm.y));
    let statement = FeedForwardStatement {
        inputs: &inputs.rows,
        outputs: &outputs.rows,
        ..case.statement()
    };
    caught_by("constraint: lookup layer", || {
        let columns = (columns.clone(), multiplicities.clone());
        let tops = [dense_tops.clone(), norm_tops.clone()];
        let places = [&inputs, &outputs];
        let proof = prove_columns::<MaliciousProver>(&statement, &witness, places, columns, tops);
        verify(&statement, &proof.unwrap()).is_ok()
    });
}

#[test]
fn results_of_gelu_are_the_tables() {
    let case = small();
    for step in [-1, 1] {
        for at in entries(case.witness().g.len()) {
            let mut witness = case.witness();
            witness.g[at] += step;
            case.after_g(&mut witness);
            if at == 0 {
                caught_by("constraint: lookup layer", || case.forged(&witness));
            }
            assert!(!case.forged(&witness), "{at}");
        }
    }
}

/// Other roots with the slacks that belong to them, one of which is negative, and with slacks in their ranges.
#[test]
fn normalisers_are_the_integer_roots() {
    let case = small();
    let target = target(case.weights.shape.width);
    for place in 0..case.places {
        for step in [-1, 1, 5, -1000] {
            let mut witness = case.witness();
            let root = (witness.norm.normalisers[place][0] + step) as u128;
            witness.norm.normalisers[place] = slacks(target, root, witness.norm.variances[place]);
            case.after_roots(&mut witness);
            assert!(witness.norm.normalisers[place].iter().any(|v| *v < 0));
            caught_by("constraint: lookup layer", || case.forged(&witness));
            for k in 1..3 {
                let mut witness = witness.clone();
                let slack = &mut witness.norm.normalisers[place][k];
                *slack = (*slack).max(0);
                let other = 3 - k;
                let rest = &mut witness.norm.normalisers[place][other];
                *rest = (*rest).max(0);
                assert!(!case.forged(&witness), "{place} {step}");
                caught_by("constraint: roots", || case.forged(&witness));
            }
        }
        // Each slack alone.
        for k in 1..3 {
            let mut witness = case.witness();
            witness.norm.normalisers[place][k] ^= 1;
            caught_by("constraint: roots", || case.forged(&witness));
        }
    }
}

/// Equal components have no deviation, and no root.
#[test]
fn a_row_without_deviation_has_no_proof() {
    let mut integers = Integers::random(shape(4, 8), 5);
    integers.each[2].fill(0);
    integers.each[3].fill(0);
    let weights = integers.weights().unwrap();
    let flat = [50i16, 50, 50, 50, 1, 2, 3, 4];
    assert!(matches!(
        forward(&weights, &flat),
        Err(Error::Unsatisfied(_))
    ));
    let case = case_of(integers, 2, &[1, 2, 3, 4, 4, 3, 2, 1]);
    let mut witness = case.witness();
    witness.x[..4].fill(50);
    witness.z = dense(&case.weights, &witness.x);
    witness.g = witness
        .z
        .iter()
        .map(|z| case.weights.gelu[(z + ACTIVATION_LIMIT) as usize])
        .collect();
    witness.divide_dense(&case.weights);
    deviate(&case.weights, &mut witness);
    assert_eq!(witness.norm.variances[0], 0);
    for root in [0, 1, (1 << 48) - 1] {
        let target = target(case.weights.shape.width);
        witness.norm.normalisers[0] = slacks(target, root, 0);
        case.after_roots(&mut witness);
        assert!(!case.forged(&witness), "{root}");
        witness.norm.normalisers[0][2] = 0;
        assert!(!case.forged(&witness), "{root}");
    }
}

/// V of other deviations, and deviations of another r: the omitted residual and the omitted bias among them.
#[test]
fn deviations_are_those_of_the_residual() {
    let case = small();
    for place in 0..case.places {
        for more in [1, 1 << 40] {
            let mut witness = case.witness();
            witness.norm.variances[place] += more;
            case.after_deviations(&mut witness);
            caught_by("product: deviation", || case.forged(&witness));
        }
    }
    for at in 0..case.places * case.weights.shape.width {
        let mut witness = case.witness();
        let (place, j) = (at / case.weights.shape.width, at % case.weights.shape.width);
        let a = &mut witness.norm.deviations[place];
        a[j] += 1;
        witness.norm.variances[place] = variance(a);
        case.after_deviations(&mut witness);
        if at == 0 {
            caught_by("constraint: matrices", || case.forged(&witness));
        }
        assert!(!case.forged(&witness), "{at}");
    }
    for part in [Part::Residual, Part::Block, Part::Bias] {
        let witness = without(&case, part);
        assert!(witness.norm.y != case.witness().norm.y);
        caught_by("constraint: matrices", || case.forged(&witness));
    }
}

#[derive(Clone, Copy)]
enum Part {
    Residual,
    Block,
    Bias,
}

/// The witness of a prover that omits a summand of r.
fn without(case: &Case, part: Part) -> Witness {
    let mut witness = case.witness();
    let (x, g) = (witness.x.clone(), witness.g.clone());
    let mut integers = case.integers.clone();
    match part {
        Part::Residual => witness.x.fill(0),
        Part::Block => witness.g.fill(0),
        Part::Bias => integers.each[3].fill(0),
    }
    let other = integers.weights().unwrap();
    deviate(&other, &mut witness);
    (witness.x, witness.g) = (x, g);
    case.after_deviations(&mut witness);
    witness
}

/// The witness of the same places under other weights or scales, for the statement of the right ones.
#[test]
fn weights_and_scales_are_the_statements() {
    let case = small();
    let claims = [
        "constraint: matrices",
        "constraint: matrices",
        "constraint: matrices",
        "constraint: matrices",
        "constraint: roots",
        "constraint: roots",
    ];
    for (k, claim) in claims.into_iter().enumerate() {
        let mut other = case.integers.clone();
        let last = other.each[k].len() - 1;
        other.each[k][last] += 1;
        let witness = Witness::new(&other.weights().unwrap(), &case.x).unwrap();
        caught_by(claim, || case.forged(&witness));
    }
    let mut gelu = case.integers.clone();
    gelu.gelu.iter_mut().for_each(|g| *g = (*g - 1).max(-2048));
    let witness = Witness::new(&gelu.weights().unwrap(), &case.x).unwrap();
    caught_by("constraint: lookup layer", || case.forged(&witness));
    for scaled in [
        Shape {
            z: 5,
            ..case.weights.shape
        },
        Shape {
            z: 7,
            ..case.weights.shape
        },
        Shape {
            g: 7,
            ..case.weights.shape
        },
        Shape {
            x: 5,
            ..case.weights.shape
        },
    ] {
        let other = Integers {
            shape: scaled,
            ..case.integers.clone()
        };
        let witness = Witness::new(&other.weights().unwrap(), &case.x).unwrap();
        assert!(!case.forged(&witness), "{scaled:?}");
    }
}

/// A prover opens other matrices than the committed ones, and computes all values from them.
#[test]
fn matrices_are_the_committed_ones() {
    let honest = || case(shape(6, 12), 2);
    for (part, change) in [0, 2]
        .into_iter()
        .flat_map(|k| OTHER_MATRICES.map(|c| (k, c)))
    {
        let mut integers = honest().integers;
        change(&mut integers.each[part]);
        let Weights { first, second, .. } = integers.weights().unwrap();
        let mut case = honest();
        match part {
            0 => case.weights.first.opened = first.opened,
            _ => case.weights.second.opened = second.opened,
        }
        let witness = case.witness();
        caught_by("column claim: matrices", || case.forged(&witness));
    }
    let matrix = any_matrix([2, 2], ROW_VARIABLES);
    assert!(matches!(
        check_opened(&[&matrix]),
        Err(Error::Invalid { .. })
    ));
}

/// Outputs that are the inputs, the other place's outputs, and nothing.
#[test]
fn outputs_are_the_blocks() {
    let case = small();
    let right = case.witness();
    let mut swapped = right.norm.y.clone();
    swapped.rotate_left(case.weights.shape.width);
    for y in [right.x.clone(), swapped, vec![0; right.norm.y.len()]] {
        let mut witness = right.clone();
        witness.norm.y = y;
        witness.norm.divide(&case.weights.norm);
        assert!(!case.forged(&witness));
        cut(&mut witness.norm.rests, case.weights.shape.norm_shift());
        caught_by("constraint: roots", || case.forged(&witness));
    }
}

/// Inputs and outputs beyond 12 bits, with values that follow from them by the page's equations.
#[test]
fn activations_are_in_range() {
    let case = small();
    let mut witness = case.witness();
    witness.x[0] = ACTIVATION_LIMIT;
    witness.z = dense(&case.weights, &witness.x);
    let gelu = |z: &i64| case.weights.gelu[(z + ACTIVATION_LIMIT) as usize];
    witness.g = witness.z.iter().map(gelu).collect();
    witness.divide_dense(&case.weights);
    case.after_g(&mut witness);
    caught_by("constraint: lookup layer", || case.forged(&witness));

    let mut integers = case.integers.clone();
    integers.each[4].fill(i16::MAX);
    integers.each[5].fill(i16::MAX);
    let weights = integers.weights().unwrap();
    let rows: Vec<i16> = case.x.iter().map(|v| *v as i16).collect();
    // The gain of the published scale cannot leave the range at this width, but a larger number of fraction bits does.
    let wider = Integers {
        shape: Shape {
            x: 9,
            ..integers.shape
        },
        ..integers
    };
    assert!(forward(&weights, &rows).is_ok());
    let weights = wider.weights().unwrap();
    assert!(matches!(
        forward(&weights, &rows),
        Err(Error::Unsatisfied(_))
    ));
    let mut witness = Witness::new(&case.weights, &case.x).unwrap();
    witness.z = dense(&weights, &witness.x);
    witness.g = witness.z.iter().map(gelu).collect();
    witness.divide_dense(&weights);
    let commit = || commit_values(&weights, 2, &witness.x);
    let other = Case {
        inputs: commit(),
        outputs: commit(),
        x: witness.x.clone(),
        integers: wider,
        weights,
        places: 2,
    };
    other.after_g(&mut witness);
    assert!(witness.norm.y.iter().any(|y| *y >= ACTIVATION_LIMIT));
    caught_by("constraint: lookup layer", || other.forged(&witness));
}

/// z without a check of its range.
fn dense(weights: &Weights, x: &[i64]) -> Vec<i64> {
    let shift = weights.shape.dense_shift();
    let sums = sums_of_dense(weights, x);
    sums.iter()
        .map(|sum| (sum + (1 << (shift - 1))) >> shift)
        .collect()
}

#[test]
fn proofs_have_one_shape() {
    let (one, other) = (
        small(),
        case_of(
            Integers::random(shape(4, 8), 5),
            2,
            &[9, -9, 0, 4, 7, 8, -200, 199],
        ),
    );
    let shape = |case: &Case| crate::kit::shape(|| case.prove());
    assert_eq!(shape(&one), shape(&other));
}

#[test]
fn parameters_out_of_range_are_refused() {
    let case = small();
    let refused = |change: &dyn Fn(&mut FeedForwardStatement)| {
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
    assert!(refused(&|i| i.shape.width = MAX_WIDTH + 1));
    assert!(refused(&|i| i.shape.inner = 0));
    assert!(refused(&|i| i.shape.x = 12));
    for k in 0..6 {
        assert!(refused(&|i| i.each[k].clear()));
    }
    assert!(refused(&|i| i.gelu[7] = 2048));
    assert!(refused(&|i| i.gelu.clear()));
    // 32 columns of the largest weight reach 2^31.
    let large = |width: usize| {
        let mut integers = Integers::random(shape(width, 2), 5);
        integers.each[0].fill(i16::MIN);
        matches!(integers.weights(), Err(Error::Invalid { .. }))
    };
    assert!(large(32) && !large(16));
    let commit = |values: &[i16]| commit_places(&case.weights, 2, values);
    assert!(commit(&[2047; 8]).is_ok());
    assert!(matches!(commit(&[2048; 8]), Err(Error::Invalid { .. })));
    assert!(matches!(commit(&[0; 7]), Err(Error::Invalid { .. })));
    let other = case_of(case.integers.clone(), 2, &[1, 2, 3, 4, 5, 6, 7, 9]);
    let proof = prove_feed_forward(&case.statement(), &case.inputs, &other.outputs);
    assert!(matches!(proof, Err(Error::Unsatisfied(_))));
}

/// The largest block.
pub(crate) fn largest() {
    vectors::simulate_any([MAX_WIDTH, MAX_INNER, 6, 6, 6], MAX_PLACES);
}

/// The published size with random weights.
#[test]
#[ignore = "proves a block of 32 places, 384 components and 1,536 inner ones (seconds): make test-full"]
fn a_block_of_the_published_size() {
    let case = case(shape(384, 1536), 32);
    let statement = case.statement();
    let proof = prove_feed_forward(&statement, &case.inputs, &case.outputs).unwrap();
    assert_eq!(verify_feed_forward(&statement, &proof), Ok(()));
    assert!(proof.len() < 16_384);
}
