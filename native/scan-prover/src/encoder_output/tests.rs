use super::*;
use crate::attention::{commit_marks_in, inputs::marks_of};
use crate::block::Rows;
use crate::channel::Channel;
use crate::fixtures::{quantised, random, unbounded_hash};
use crate::group::G1Affine;
use crate::kit::{only_for, run_tests, simulate, simulated, verify, Change, Protocol};
use crate::malicious::{caught_by, MaliciousProver};
use crate::transcript::{Oracle, Transcript};
use ark_ff::Field;
use ragaudit_scan_protocol::block::{MAX_PLACES, MAX_WIDTH};
use ragaudit_scan_protocol::vector::{MAX_NORM_FACTOR, ROOT_SHIFT};

pub(crate) mod vectors;

const NORM_FACTOR: u64 = 11_712;
const USED_ROWS: &str = "product: used rows";
const LOOKUP: &str = "constraint: lookup layer";

impl Protocol for OutputStatement<'_> {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript()
    }

    fn rows(&self) -> Result<usize> {
        self.check()?;
        Ok(self.row_variables())
    }

    fn run<'a, C: Channel>(&'a self, session: Session<'a, C>) -> Result<C::Closed> {
        output_protocol(session, self, None)
    }
}

struct Case {
    shape: Shape,
    places: usize,
    y: Vec<i64>,
    marks: Vec<i64>,
    used: Used,
    inputs: Committed,
    salt: Fr,
    cq: Fr,
}

fn row_variables(shape: &Shape, places: usize) -> usize {
    (places.ilog2() as usize + shape.width_blocks().variables).min(12)
}

fn commit(shape: &Shape, places: usize, y: &[i64]) -> Committed {
    let of = Rows {
        width: shape.width,
        places,
        row_variables: row_variables(shape, places),
    };
    Committed::values(b"rag-audit/scan/encoder/output...", of, y).unwrap()
}

fn marked(shape: &Shape, marks: &[i64]) -> Used {
    commit_marks_in(row_variables(shape, marks.len()), marks).unwrap()
}

fn case_of(shape: Shape, used: usize, y: Vec<i64>) -> Case {
    let places = y.len() / shape.width;
    let marks = marks_of(used, places);
    let salt = Fr::from(200u8);
    let witness = Witness::new(&shape, &marks, &y).unwrap();
    Case {
        cq: unbounded_hash(salt, &witness.vector.components),
        used: marked(&shape, &marks),
        inputs: commit(&shape, places, &y),
        shape,
        places,
        y,
        marks,
        salt,
    }
}

fn case(width: usize, places: usize, used: usize) -> Case {
    let shape = Shape {
        width,
        norm_factor: NORM_FACTOR,
    };
    let y = random(91, places * width, 4096).into_iter();
    case_of(shape, used, y.map(|v| v - 2048).collect())
}

fn small() -> Case {
    case(6, 4, 3)
}

impl Case {
    fn statement(&self) -> OutputStatement<'_> {
        OutputStatement {
            context: Fr::from(77u8),
            shape: self.shape,
            places: self.places,
            marks: self.used.point,
            inputs: &self.inputs.rows,
            cq: self.cq,
        }
    }

    fn prove(&self) -> Vec<u8> {
        let statement = self.statement();
        prove_as::<MaliciousProver>(&statement, &self.used, &self.inputs, &self.salt).unwrap()
    }

    fn witness(&self) -> Witness {
        Witness::new(&self.shape, &self.marks, &self.y).unwrap()
    }

    /// The vector of these sums, with the true rows and marks.
    fn with_sums(&self, sums: Vec<i64>) -> Witness {
        let bounds = self.shape.vector(self.places).bounds;
        let mut witness = self.witness();
        witness.vector = vector::Witness::new(sums, self.shape.norm_factor, &bounds).unwrap();
        witness
    }

    /// Whether a prover without checks gets through with this witness, and with commitments to its rows, marks and vector.
    fn forged(&self, witness: &Witness) -> bool {
        self.forged_for(witness, |_| ())
    }

    fn forged_for(&self, witness: &Witness, change: impl Fn(&mut OutputStatement)) -> bool {
        let inputs = commit(&self.shape, self.places, &witness.y);
        let used = marked(&self.shape, &witness.marks);
        let mut statement = OutputStatement {
            marks: used.point,
            inputs: &inputs.rows,
            cq: unbounded_hash(self.salt, &witness.vector.components),
            ..self.statement()
        };
        change(&mut statement);
        let claimed = Claimed::of(&witness.vector);
        let secret = (witness, &claimed);
        let proof = prove_with::<MaliciousProver>(&statement, secret, &used, &inputs, &self.salt);
        verify(&statement, &proof.unwrap()).is_ok()
    }
}

#[test]
fn outputs_verify() {
    for case in [
        small(),
        case(2, 1, 1),
        case(3, 2, 2),
        case(8, 4, 1),
        case(12, 8, 5),
        case(96, 2, 1),
        case(64, 4, 4),
    ] {
        let statement = case.statement();
        let witness = case.witness();
        let expected = quantised(&witness.vector.sums, NORM_FACTOR);
        assert_eq!(witness.vector.components, expected);
        let vector = vector_of(&case.shape, &case.used, &case.inputs).unwrap();
        assert_eq!(
            vector.iter().map(|v| i64::from(*v)).collect::<Vec<_>>(),
            expected
        );
        assert_eq!(verify(&statement, &case.prove()), Ok(()));
        assert!(case.forged(&witness));
        let proof = prove_output(&statement, &case.used, &case.inputs, &case.salt).unwrap();
        assert_eq!(verify_output(&statement, &proof), Ok(()));
    }
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let case = small();
    let proof = case.prove();
    let statement = case.statement();
    // A new field has to be changed below.
    let OutputStatement {
        context: _,
        shape: Shape {
            width: _,
            norm_factor: _,
        },
        places: _,
        marks: _,
        inputs: _,
        cq: _,
    } = &statement;
    let two = marked(&case.shape, &marks_of(2, 4));
    let mut other = case.y.clone();
    other[0] ^= 1;
    let other = commit(&case.shape, case.places, &other);
    let changes: Vec<Change<OutputStatement>> = vec![
        Box::new(|s| s.context += Fr::ONE),
        Box::new(|s| s.shape.norm_factor += 1),
        Box::new(|s| s.marks = two.point),
        Box::new(|s| s.inputs = &other.rows),
        Box::new(|s| s.cq += Fr::ONE),
    ];
    only_for(&statement, &proof, &changes);
    for change in [
        (|s: &mut OutputStatement| s.places = 2) as fn(&mut OutputStatement),
        |s| s.places = 8,
        |s| s.shape.width = 4,
    ] {
        let mut other = statement.clone();
        change(&mut other);
        assert!(verify(&other, &proof).is_err());
    }
}

run_tests!(
    "encoder output",
    small: small(),
    of_claims: case(2, 2, 1),
    every: 293,
    ignored: "a prover skips each single claim in turn (a minute): make test-full",
);

/// The sum of other rows than the used ones, and other multiples of it; the vector follows from the false sums.
#[test]
fn sums_are_of_the_used_rows() {
    let case = small();
    let right = case.witness().vector.sums.clone();
    let of = |marks: &[i64]| sums_of(case.shape.width, marks, &case.y);
    assert!(case.forged(&case.with_sums(right.clone())));
    let mut others = vec![
        // An unused place, all places but one used one, one used place twice, one place instead of another.
        of(&[1, 1, 1, 1]),
        of(&[1, 1, 0, 0]),
        of(&[0, 1, 1, 0]),
        of(&[1, 2, 1, 0]),
        of(&[1, 1, 0, 1]),
        of(&[1, 0, 0, 0]),
        of(&[0, 0, 0, 1]),
        // The first place's components in another order, the negated sum, twice the sum, and the mean rounded down.
        right.iter().rev().copied().collect(),
        right.iter().map(|e| -e).collect(),
        right.iter().map(|e| 2 * e).collect(),
        right.iter().map(|e| e.div_euclid(3)).collect(),
    ];
    for (j, step) in (0..right.len()).flat_map(|j| [(j, 1), (j, -1)]) {
        let mut other = right.clone();
        other[j] += step;
        others.push(other);
    }
    for other in others {
        let witness = case.with_sums(other);
        caught_by(USED_ROWS, || case.forged(&witness));
    }
}

/// The sums' column has entries after the last component.
#[test]
fn sums_have_no_further_component() {
    let case = case(3, 2, 2);
    let mut witness = case.witness();
    witness.vector.sums.push(3);
    witness.vector.components.push(0);
    let factor = 2 * NORM_FACTOR as i64;
    let square = witness.vector.sums.iter().map(|e| e * e).sum::<i64>() << ROOT_SHIFT;
    witness.vector.root = square.isqrt();
    witness.vector.rest = square - witness.vector.root * witness.vector.root;
    let components = quantised(&witness.vector.sums, NORM_FACTOR);
    witness.vector.components = components;
    let scaled = case.shape.vector(2).bounds.scaled;
    witness.vector.measure(factor, scaled);
    let cq = unbounded_hash(case.salt, &witness.vector.components[..3]);
    caught_by(USED_ROWS, || {
        let mut witness = witness.clone();
        witness.vector.components[3] = 0;
        witness.vector.measure(factor, scaled);
        case.forged_for(&witness, |s| s.cq = cq)
    });
}

/// Each component one step up and down, the vector of another factor, and that of another query.
#[test]
fn the_vector_is_that_of_the_sums() {
    let case = small();
    let right = case.witness();
    let scaled = case.shape.vector(4).bounds.scaled;
    let with = |components: Vec<i64>| {
        let mut witness = case.witness();
        witness.vector.components = components;
        witness.vector.measure(2 * NORM_FACTOR as i64, scaled);
        witness
    };
    assert!(case.forged(&with(right.vector.components.clone())));
    for j in 0..case.shape.width {
        for step in [-1, 1] {
            let mut components = right.vector.components.clone();
            components[j] += step;
            if components[j].abs() <= 7 {
                let mut witness = with(components);
                caught_by(LOOKUP, || case.forged(&witness));
                let distances = witness.vector.distances.iter_mut().flatten();
                distances.for_each(|d| *d = (*d).max(0));
                assert!(!case.forged(&witness), "{j} {step}");
            }
        }
    }
    for factor in [NORM_FACTOR / 2, NORM_FACTOR + 2000] {
        let components = quantised(&right.vector.sums, factor);
        assert_ne!(components, right.vector.components);
        let mut witness = with(components);
        caught_by(LOOKUP, || case.forged(&witness));
        // The distances of the other factor.
        let other = Shape {
            norm_factor: factor,
            ..case.shape
        };
        witness.vector.measure(2 * factor as i64, scaled);
        assert!(!case.forged(&witness));
        assert!(
            case.forged_for(&Witness::new(&other, &case.marks, &case.y).unwrap(), |s| {
                s.shape = other;
            }) || other.vector(4).bounds != case.shape.vector(4).bounds
        );
    }
    let mut y = case.y.clone();
    y.reverse();
    let other = Witness::new(&case.shape, &case.marks, &y).unwrap();
    let cq = unbounded_hash(case.salt, &other.vector.components);
    assert!(!case.forged_for(&right, |s| s.cq = cq), "another query");
    let cq = unbounded_hash(case.salt + Fr::ONE, &right.vector.components);
    assert!(!case.forged_for(&right, |s| s.cq = cq), "another salt");
}

/// Marks with a gap, without a used place, and other than 0 and 1; the sums follow from the marks.
#[test]
fn used_places_come_first() {
    let case = small();
    let marked = |marks: [i64; 4]| Witness::new(&case.shape, &marks, &case.y).unwrap();
    for marks in [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]] {
        caught_by("product: used places", || case.forged(&marked(marks)));
    }
    assert!(!case.forged(&marked([1, 1, 1, 2])));
    assert!(!case.forged(&marked([2, 0, 0, 0])));
    assert!(!case.forged(&marked([1, 1, -1, 0])));
    let mut none = case.witness();
    none.marks = vec![0; 4];
    assert!(!case.forged(&none));
}

/// Rows beyond 12 bits, and rows without a sum.
#[test]
fn rows_are_activations_with_a_sum() {
    let mut case = small();
    case.y[0] = 2048;
    caught_by(LOOKUP, || case.forged(&case.witness()));
    let width = case.shape.width;
    case.y = vec![0; 4 * width];
    assert!(matches!(
        Witness::new(&case.shape, &case.marks, &case.y),
        Err(Error::Unsatisfied(_))
    ));
    let mut none = small().witness();
    none.y = case.y.clone();
    none.vector.sums = vec![0; width];
    (none.vector.root, none.vector.rest) = (0, 0);
    none.vector.components = vec![7; width];
    let scaled = case.shape.vector(4).bounds.scaled;
    none.vector.measure(2 * NORM_FACTOR as i64, scaled);
    assert!(!case.forged(&none), "a root of zero");
}

/// Commitments without a known opening.
#[test]
fn proofs_are_simulated_without_rows() {
    let case = small();
    let real = case.prove();
    let points: Vec<Vec<G1Affine>> = case.inputs.rows.iter().rev().cloned().collect();
    let mut public = case.statement();
    public.inputs = &points;
    public.marks = case.inputs.rows[0][0];
    public.cq = Fr::from(31_337u64);
    simulated(&public, &real);
}

#[test]
fn proofs_have_one_shape() {
    let shape = |case: &Case| crate::kit::shape(|| case.prove());
    let base = small();
    for used in 1..=4 {
        let y = base.y.iter().rev().copied().collect();
        assert_eq!(shape(&base), shape(&case_of(base.shape, used, y)), "{used}");
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    let case = small();
    let invalid = |change: &dyn Fn(&mut OutputStatement)| {
        let mut statement = case.statement();
        change(&mut statement);
        matches!(verify(&statement, &[]), Err(Error::Invalid { .. }))
    };
    assert!(!invalid(&|_| ()));
    assert!(invalid(&|s| s.places = 0));
    assert!(invalid(&|s| s.places = 3));
    assert!(invalid(&|s| s.places = 2 * MAX_PLACES));
    assert!(invalid(&|s| s.shape.width = 1));
    assert!(invalid(&|s| s.shape.width = 2 * MAX_WIDTH));
    assert!(invalid(&|s| s.shape.norm_factor = 0));
    assert!(invalid(&|s| s.shape.norm_factor = MAX_NORM_FACTOR + 1));
    assert!(invalid(&|s| s.inputs = &[]));
    let proof = |statement: &OutputStatement, used: &Used, salt: Fr| {
        prove_output(statement, used, &case.inputs, &salt)
    };
    let unsatisfied = |proof| matches!(proof, Err(Error::Unsatisfied(_)));
    assert!(proof(&case.statement(), &case.used, case.salt).is_ok());
    assert!(unsatisfied(proof(
        &case.statement(),
        &case.used,
        case.salt + Fr::ONE
    )));
    let two = marked(&case.shape, &marks_of(2, 4));
    assert!(unsatisfied(proof(&case.statement(), &two, case.salt)));
    let other = OutputStatement {
        marks: two.point,
        ..case.statement()
    };
    assert!(unsatisfied(proof(&other, &two, case.salt)));
}

/// The largest size.
pub(crate) fn largest() {
    let shape = Shape {
        width: MAX_WIDTH,
        norm_factor: MAX_NORM_FACTOR,
    };
    let point = crate::group::vector_generators(1)[0];
    let rows = vec![vec![point; (MAX_PLACES * MAX_WIDTH) >> 12]];
    simulate(&OutputStatement {
        context: Fr::ONE,
        shape,
        places: MAX_PLACES,
        marks: point,
        inputs: &rows,
        cq: Fr::ONE,
    });
}
