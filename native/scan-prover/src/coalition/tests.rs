use crate::engine::Fast;
use crate::error::Error;
use crate::group::Fr;
use crate::session::Session;
use crate::simulator::Simulates;
use crate::transcript::Transcript;
use ark_ff::{AdditiveGroup, Field};

use super::inputs::*;
use super::pairs::*;
use super::records::*;
use super::statement::*;
use super::*;
use crate::equation::Equation;
use crate::fixtures::vector_hash;
use crate::malicious::{
    every_point_is_opened, no_claim_is_skipped, nothing_is_forgotten, MaliciousProver, Told,
};
use crate::malicious_claims::each_claim_excludes_a_false_value;
use crate::mutations::refused;
use crate::numbers::{from_small, power_of_two};
use ragaudit_scan_protocol::gates::Numbers;

/// Small blocks, so that few records fill several.
const SMALL: Blocks = Blocks {
    variables: 2,
    of_run: 3,
};

#[derive(Clone)]
struct Case {
    statement: CoalitionStatement,
    secret: CoalitionSecret,
}

/// Whether two vectors are near by the definition of docs/estimator.md.
fn near(a: &[i8], b: &[i8], [p, q]: [u64; 2]) -> bool {
    let dot: i64 = a
        .iter()
        .zip(b)
        .map(|(a, b)| i64::from(*a) * i64::from(*b))
        .sum();
    let (p, q) = (i128::from(p), i128::from(q));
    dot > 0 && (q * i128::from(dot)).pow(2) >= p * p * i128::from(norm(a) * norm(b))
}

impl Case {
    /// Accounts and vectors of the records; salts are numbers. All other values follow from the near pairs.
    fn new(accounts: &[usize], tenants: &[usize], vectors: &[&[i8]], tau: usize) -> Self {
        let theta = [4, 5];
        let dimension = vectors[0].len();
        let first: Vec<usize> = (0..accounts.len())
            .map(|j| if tau == 0 { 0 } else { j.saturating_sub(tau) })
            .collect();
        let mut labels: Vec<usize> = (0..tenants.len()).collect();
        for j in 0..accounts.len() {
            for i in first[j]..j {
                let (a, b) = (labels[accounts[i]], labels[accounts[j]]);
                if near(vectors[i], vectors[j], theta) {
                    labels.iter_mut().filter(|l| **l == b).for_each(|l| *l = a);
                }
            }
        }
        let maximum = |tenant: Option<usize>| {
            let of = |label: usize| {
                let pairs = labels.iter().zip(tenants);
                pairs
                    .filter(|(l, t)| **l == label && tenant.is_none_or(|x| x == **t))
                    .count()
            };
            (0..tenants.len()).map(of).max().unwrap_or(0) as u64
        };
        let in_tenant = tenants.iter().map(|t| maximum(Some(*t))).max().unwrap_or(0);
        let salts: Vec<Fr> = (0..accounts.len())
            .map(|i| -Fr::from(1 + i as u64))
            .collect();
        let cq = vectors
            .iter()
            .zip(&salts)
            .map(|(v, s)| vector_hash(*s, v))
            .collect();
        let distinct = distinct_norms(&vectors.concat(), dimension);
        Self {
            statement: CoalitionStatement {
                context: [9; 32],
                dimension,
                cq,
                accounts: accounts.to_vec(),
                tenants: tenants.to_vec(),
                first,
                theta,
                largest: [maximum(None), in_tenant],
                class_variables: CoalitionStatement::class_variables(accounts.len(), distinct),
                blocks: SMALL,
            },
            secret: CoalitionSecret {
                vectors: vectors.concat(),
                salts,
                labels,
            },
        }
    }

    /// With the blocks that ship.
    fn shipped(mut self) -> Self {
        self.statement.blocks = Blocks::default();
        self
    }

    fn prove(&self) -> Result<(Vec<u8>, Vec<Vec<u8>>)> {
        let (records, blindings) = prove_records(&self.statement, &self.secret)?;
        let runs = 0..self.statement.runs()?;
        let prove = |run| prove_pairs(&self.statement, &self.secret, &records, &blindings, run);
        let pairs = runs.map(prove).collect::<Result<_>>()?;
        Ok((records, pairs))
    }
}

fn verified(statement: &CoalitionStatement, (records, pairs): &(Vec<u8>, Vec<Vec<u8>>)) -> bool {
    let pairs: Vec<&[u8]> = pairs.iter().map(Vec::as_slice).collect();
    verify_coalition(statement, records, &pairs).is_ok()
}

const A: &[i8] = &[7, 1, 0, -2, 3, 0];
const B: &[i8] = &[7, 2, 0, -2, 3, 1];
const C: &[i8] = &[4, 6, 1, -2, 3, 1];
const D: &[i8] = &[-7, 1, 5, 2, -3, 0];
const E: &[i8] = &[0, 0, 7, 0, 0, 6];
const F: &[i8] = &[0, -3, 0, 6, 0, 1];

/// Accounts 0, 1 and 2 are a chain over several blocks: A near B, B near C, A not near C. Account 5 is near to no account,
/// accounts 3 and 4 are of the other tenant, and account 4 has the query of account 0.
fn chain() -> Case {
    let accounts = [0, 3, 1, 0, 3, 3, 5, 5, 2, 1, 4, 2, 0];
    let vectors = [D, E, B, A, E, D, F, F, C, D, A, C, A];
    let mut vectors = vectors.to_vec();
    (vectors[0], vectors[5], vectors[9]) = (A, E, B);
    Case::new(&accounts, &[0, 0, 0, 1, 1, 0], &vectors, 0)
}

#[test]
fn the_chain_is_one() {
    let theta = [4, 5];
    assert!(near(A, B, theta) && near(B, C, theta) && !near(A, C, theta));
    let case = chain();
    assert_eq!(case.statement.largest, [4, 3]);
    assert!(case.statement.runs().unwrap() > 1);
}

#[test]
fn proofs_verify() {
    let case = chain();
    let proof = case.prove().unwrap();
    assert!(verified(&case.statement, &proof));
    // The same sizes whatever is hidden.
    let mut other = Case::new(
        &case.statement.accounts,
        &[0; 6],
        &[D, E, F, D, E, F, D, E, F, D, E, F, D],
        0,
    );
    other.statement.tenants = case.statement.tenants.clone();
    other.statement.largest = [6, 4];
    let others = other.prove().unwrap();
    assert!(verified(&other.statement, &others));
    assert_eq!(proof.0.len(), others.0.len());
    let lengths = |c: &(Vec<u8>, Vec<Vec<u8>>)| c.1.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lengths(&proof), lengths(&others));
}

#[test]
fn windows_of_every_kind_are_proved() {
    let zero: &[i8] = &[0; 6];
    let long: Vec<i8> = (0..130).map(|k| (k % 15) as i8 - 7).collect();
    let back: Vec<i8> = long.iter().rev().copied().collect();
    for case in [
        Case::new(&[0], &[0], &[A], 0),
        Case::new(&[0, 0, 0], &[0], &[A, B, A], 0),
        Case::new(&[0, 1, 2], &[0, 1, 2], &[A, A, A], 0),
        Case::new(&[0, 1, 0, 1, 2, 0], &[0, 1, 1], &[A, C, D, E, B, D], 1),
        Case::new(&[0, 1, 2, 1, 2], &[0, 1, 0], &[zero, A, zero, zero, D], 0),
        Case::new(&[0, 1], &[0, 0], &[&long, &back], 0),
    ] {
        let proof = case.prove().unwrap();
        assert!(verified(&case.statement, &proof), "{:?}", case.statement);
    }
}

/// Accounts 0 and 1 are near, in the first block and in the last of this number of records; no other accounts are.
fn of_blocks_that_ship(records: usize, runs: usize) {
    let side = 1 << Blocks::default().variables;
    let mut accounts = vec![2; records];
    let mut vectors = vec![D; records];
    (accounts[1], vectors[1]) = (0, A);
    (accounts[records - 1], vectors[records - 1]) = (1, B);
    let case = Case::new(&accounts, &[0, 0, 1], &vectors, 0).shipped();
    assert_eq!(case.statement.shape().unwrap().block_variables, 8);
    assert!(records > side && case.statement.largest == [2, 2]);
    let proof = case.prove().unwrap();
    assert_eq!(proof.1.len(), runs);
    assert!(verified(&case.statement, &proof));
    let mut other = case.clone();
    other.statement.blocks = SMALL;
    assert!(!verified(&other.statement, &proof));
    // A split cluster, by a prover without checks that claims an excuse for its pair.
    let split = |w: &mut Witness, s: &CoalitionStatement, shape: &Shape| {
        w.labels[1] = 1;
        w.set_counts(s, shape);
    };
    let excused = |d: &mut Columnwise| {
        let below = d.iter_mut().flatten().filter(|d| **d < 0);
        below.for_each(|d| *d += case.statement.excuse());
    };
    assert!(!forged(&case, split, |_| (), excused, |_, _| ()));
}

#[test]
fn blocks_that_ship_are_proved() {
    of_blocks_that_ship(258, 1);
}

/// 66 pairs of 11 blocks, where one run takes 63 pairs.
#[test]
#[ignore = "proves a coalition of 11 blocks of records in two runs (10 s): make test-full"]
fn runs_that_ship_are_proved() {
    of_blocks_that_ship(10 * 256 + 1, 2);
}

/// The threshold is exactly where docs/estimator.md has it.
#[test]
fn thresholds_are_exact() {
    let mut statement = chain().statement;
    statement.dimension = 256;
    for theta in [[4, 5], [1, 1000], [999, 1000], [1, 2], [3, 5]] {
        statement.theta = theta;
        let [p, q] = theta.map(i128::from);
        for product in [
            0,
            1,
            2,
            4,
            25,
            100,
            1012 * 1012,
            1013 * 999,
            12_544 * 12_544i64,
        ] {
            let t = statement.threshold(product);
            let below = |t: i64| t == 0 || (q * i128::from(t)).pow(2) < p * p * i128::from(product);
            assert!(below(t) && (product == 0 || !below(t + 1)));
            assert!(statement.bound(t) <= product);
            assert!(t >= statement.maximum() || statement.bound(t + 1) > product);
        }
    }
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let case = chain();
    let proof = case.prove().unwrap();
    let changes: [fn(&mut CoalitionStatement); 12] = [
        |s| s.context[0] ^= 1,
        |s| s.cq[3] += Fr::ONE,
        |s| s.cq.swap(0, 2),
        |s| s.accounts[3] = 1,
        |s| s.tenants[4] = 0,
        |s| s.first[12] = 11,
        |s| s.theta = [3, 5],
        |s| s.largest[0] -= 1,
        |s| s.largest[1] -= 1,
        |s| s.dimension += 1,
        |s| s.class_variables += 1,
        |s| {
            s.cq.pop();
            s.accounts.pop();
            s.first.pop();
        },
    ];
    // A new field has to be changed above.
    let CoalitionStatement {
        context: _,
        dimension: _,
        cq: _,
        accounts: _,
        tenants: _,
        first: _,
        theta: _,
        largest: _,
        class_variables: _,
        // The protocol's own value, which its name contains.
        blocks: _,
    } = &case.statement;
    for (k, change) in changes.iter().enumerate() {
        let mut other = case.statement.clone();
        change(&mut other);
        assert!(!verified(&other, &proof), "change {k}");
        let digests = |s: &CoalitionStatement| {
            [s.transcript(), s.run_transcript(&proof.0, 0)].map(|t: Transcript| t.digest())
        };
        let (changed, before) = (digests(&other), digests(&case.statement));
        assert!(
            changed[0] != before[0] && changed[1] != before[1],
            "change {k}"
        );
    }
    let of_run = |records: &[u8], run| {
        let transcript: Transcript = case.statement.run_transcript(records, run);
        transcript.digest()
    };
    assert_ne!(of_run(&proof.0, 0), of_run(&proof.0, 1));
    assert_ne!(of_run(&proof.0, 0), of_run(&proof.0[1..], 0));
    // Runs missing, doubled, in another order, or after another run over records.
    let (records, pairs) = &proof;
    let again = prove_records(&case.statement, &case.secret).unwrap().0;
    let mut swapped = pairs.clone();
    swapped.swap(0, 1);
    for other in [
        (records.clone(), pairs[1..].to_vec()),
        (records.clone(), swapped),
        (records.clone(), [&pairs[..], &pairs[..1]].concat()),
        (again, pairs.clone()),
        (records[1..].to_vec(), pairs.clone()),
    ] {
        assert!(!verified(&case.statement, &other));
    }
}

fn holds(session: Session<MaliciousProver>) -> Result<()> {
    let equation: Equation = session.close(None)?.into();
    let accepted = equation.holds::<Fast>(&[]);
    accepted.then_some(()).ok_or(Error::Rejected)
}

/// Verifies only the run over records.
fn verify_records(statement: &CoalitionStatement, proof: &[u8]) -> Result<()> {
    let shape = statement.shape()?;
    let mut session = Session::verifier(statement.transcript(), shape.row_variables, proof);
    records(&mut session, statement, &shape, None)?;
    holds(session)
}

/// Verifies only the first run over pairs.
fn verify_pairs(statement: &CoalitionStatement, records_proof: &[u8], proof: &[u8]) -> Result<()> {
    let shape = statement.shape()?;
    let shared = Shared::new(
        &committed::<MaliciousProver>(statement, &shape, records_proof)?,
        &shape,
    );
    let transcript = statement.run_transcript(records_proof, 0);
    let mut session = Session::verifier(transcript, shape.row_variables, proof);
    pairs(&mut session, statement, &shape, &shared, 0, None)?;
    holds(session)
}

/// Both runs of a small window, by a prover without checks.
struct Runs {
    case: Case,
    witness: Witness,
    records: Vec<u8>,
    blindings: Vec<Fr>,
}

impl Runs {
    fn new() -> Self {
        let case = Case::new(&[0, 1, 1], &[0, 1], &[A, D, B], 0);
        let witness = witness(&case);
        let (records, blindings) = prove_records(&case.statement, &case.secret).unwrap();
        Self {
            case,
            witness,
            records,
            blindings,
        }
    }

    fn prove_records(&self) -> Vec<u8> {
        let (statement, witness) = (&self.case.statement, &self.witness);
        let columns = witness.columns(statement, &statement.shape().unwrap());
        prove_records_with::<MaliciousProver>(statement, witness, columns)
            .unwrap()
            .0
    }

    fn prove_pairs(&self) -> Vec<u8> {
        let (statement, witness) = (&self.case.statement, &self.witness);
        let own = witness.run(statement, &statement.shape().unwrap(), 0);
        let pairs_run = PairsRun {
            records: &self.records,
            blindings: &self.blindings,
            run: 0,
        };
        prove_pairs_with::<MaliciousProver>(statement, witness, own, &pairs_run).unwrap()
    }

    fn verify_records(&self, proof: &[u8]) -> Result<()> {
        verify_records(&self.case.statement, proof)
    }

    fn verify_pairs(&self, proof: &[u8]) -> Result<()> {
        verify_pairs(&self.case.statement, &self.records, proof)
    }
}

#[test]
fn a_transcript_forgets_nothing() {
    let runs = Runs::new();
    nothing_is_forgotten(|| runs.prove_records(), |proof| runs.verify_records(proof));
    nothing_is_forgotten(|| runs.prove_pairs(), |proof| runs.verify_pairs(proof));
}

fn all_are_needed(each: bool) {
    let runs = Runs::new();
    no_claim_is_skipped(|| runs.prove_records(), |p| runs.verify_records(p), each);
    no_claim_is_skipped(|| runs.prove_pairs(), |p| runs.verify_pairs(p), each);
    every_point_is_opened(|| runs.prove_records(), |p| runs.verify_records(p), each);
    every_point_is_opened(|| runs.prove_pairs(), |p| runs.verify_pairs(p), each);
}

#[test]
fn claims_and_openings_are_all_needed() {
    all_are_needed(false);
}

#[test]
#[ignore = "a prover skips each single claim in turn (a minute): make test-full"]
fn every_single_claim_is_needed() {
    all_are_needed(true);
}

/// A prover states a false value and compensates for it in all other claims; the proof is accepted only if one claim is
/// omitted.
#[test]
#[ignore = "a prover states one false value, for each claim (15 s to a minute): make test-full"]
fn each_claim_stands_against_one_false_value() {
    let runs = Runs::new();
    let prove = || runs.prove_records();
    each_claim_excludes_a_false_value("records", prove, |proof| runs.verify_records(proof));
}

#[test]
fn each_claim_about_pairs_stands_against_one_false_value() {
    let runs = Runs::new();
    let prove = || runs.prove_pairs();
    each_claim_excludes_a_false_value("pairs", prove, |proof| runs.verify_pairs(proof));
}

pub(crate) fn mutations(count: usize) {
    let runs = Runs::new();
    refused("coalition records", &runs.records, count, |proof| {
        runs.verify_records(proof).is_ok()
    });
    refused("coalition pairs", &runs.prove_pairs(), count, |proof| {
        runs.verify_pairs(proof).is_ok()
    });
}

#[test]
fn false_claims_have_no_proof() {
    let change = |false_value: FalseValue| {
        let mut case = chain();
        false_value(&mut case);
        case.prove()
    };
    assert!(change(|_| ()).is_ok());
    let false_values: [(&str, FalseValue); 7] = [
        ("a split cluster", |c| c.secret.labels[2] = 2),
        ("one account of more in a label", |c| {
            c.statement.largest[0] = 3
        }),
        ("one account of more in a tenant", |c| {
            c.statement.largest[1] = 2
        }),
        ("another vector", |c| c.secret.vectors[0] ^= 1),
        ("another salt", |c| c.secret.salts[0] += Fr::ONE),
        ("a component of 8", |c| c.secret.vectors[0] = 8),
        ("a label of nobody", |c| c.secret.labels[2] = 6),
    ];
    for (what, false_value) in false_values {
        assert!(change(false_value).is_err(), "{what}");
    }
}

/// A proof of a prover without checks. It changes `witness` before it computes the columns, and `columns` afterwards;
/// `distances` are the distances of every run's blocks.
fn forged(
    case: &Case,
    witness: impl Fn(&mut Witness, &CoalitionStatement, &Shape),
    columns: impl Fn(&mut Columns<Vec<i64>>),
    distances: impl Fn(&mut Vec<Vec<i64>>),
    in_run: impl Fn(&mut Witness, usize),
) -> bool {
    let (statement, shape) = (&case.statement, case.statement.shape().unwrap());
    let mut false_value = Witness::new(statement, &shape, &case.secret).unwrap();
    witness(&mut false_value, statement, &shape);
    let mut changed = false_value.columns(statement, &shape);
    columns(&mut changed);
    let (records, blindings) =
        prove_records_with::<MaliciousProver>(statement, &false_value, changed).unwrap();
    let prove = |run: usize| {
        let mut of_run = false_value.clone();
        in_run(&mut of_run, run);
        let mut own = of_run.run(statement, &shape, run);
        distances(&mut own);
        let pairs_run = PairsRun {
            records: &records,
            blindings: &blindings,
            run,
        };
        prove_pairs_with::<MaliciousProver>(statement, &of_run, own, &pairs_run).unwrap()
    };
    let pairs = (0..statement.runs().unwrap()).map(prove).collect();
    verified(statement, &(records, pairs))
}

type FalseValue = fn(&mut Case);
type Forgery = fn(&mut Witness, &CoalitionStatement, &Shape);
type Columnwise = Vec<Vec<i64>>;

#[test]
fn forged_records_are_refused() {
    let case = chain();
    let run = |false_value: Forgery| forged(&case, false_value, |_| (), |_| (), |_, _| ());
    assert!(run(|_, _, _| ()));
    let false_values: [(&str, Forgery); 7] = [
        ("another vector than cq's", |w, s, shape| {
            w.vectors[0] -= 1;
            let norm = norm(&w.vectors[..s.dimension]);
            w.norms[5] = norm;
            w.classes[0] = 5;
            w.set_thresholds(s);
            let _ = shape;
        }),
        ("a component beyond the dimension", |w, s, _| {
            w.vectors[s.dimension] = 1;
            w.norms[5] = norm(&w.vectors[..8]);
            w.classes[0] = 5;
            w.set_thresholds(s);
        }),
        ("a larger norm", |w, s, _| {
            w.norms[w.classes[0]] += 100;
            w.set_thresholds(s);
        }),
        ("the class of another norm", |w, _, _| {
            w.classes[0] = w.classes[1];
        }),
        ("a larger threshold without its bound", |w, _, _| {
            w.thresholds[0] += 1;
        }),
        ("a larger threshold with its bound", |w, s, _| {
            w.thresholds[0] += 1;
            w.bounds[0] = s.bound(w.thresholds[0]);
        }),
        (
            "a larger threshold with its bound and slack wrapped around",
            |w, s, _| {
                w.thresholds[0] += 1;
                let bound = s.bound(w.thresholds[0]);
                w.slack[0] += w.bounds[0] - bound;
                w.bounds[0] = bound;
            },
        ),
    ];
    for (what, false_value) in false_values {
        assert!(!run(false_value), "{what}");
    }
}

#[test]
fn forged_counts_are_refused() {
    // The largest label, or its part in a tenant, has one account more than the statement allows.
    for which in [0, 1] {
        let mut case = chain();
        case.statement.largest[which] -= 1;
        assert!(
            !forged(&case, |_, _, _| (), |_| (), |_| (), |_, _| ()),
            "below 0"
        );
        let clipped = |w: &mut Witness, _: &CoalitionStatement, _: &Shape| {
            w.spare.iter_mut().for_each(|s| *s = 0.max(*s));
            w.spare_in_tenant.iter_mut().for_each(|s| *s = 0.max(*s));
        };
        assert!(
            !forged(&case, clipped, |_| (), |_| (), |_, _| ()),
            "another count"
        );
    }
}

/// Whether the run over records is accepted, with columns changed after they were made.
fn accepted(case: &Case, witness: &Witness, false_value: impl Fn(&mut Columns<Vec<i64>>)) -> bool {
    let shape = case.statement.shape().unwrap();
    let mut columns = witness.columns(&case.statement, &shape);
    false_value(&mut columns);
    let (proof, _) =
        prove_records_with::<MaliciousProver>(&case.statement, witness, columns).unwrap();
    let transcript = case.statement.transcript();
    let mut session = Session::verifier(transcript, shape.row_variables, &proof);
    records(&mut session, &case.statement, &shape, None).unwrap();
    holds(session).is_ok()
}

fn witness(case: &Case) -> Witness {
    let shape = case.statement.shape().unwrap();
    Witness::new(&case.statement, &shape, &case.secret).unwrap()
}

/// With bits 2 and -1, two accounts count once for each of two labels.
#[test]
fn labels_are_made_of_bits() {
    let case = Case::new(&[0, 1], &[0, 0], &[A, D], 0);
    assert_eq!(case.statement.largest, [1, 1]);
    let witness = witness(&case);
    assert!(accepted(&case, &witness, |_| ()));
    assert!(!accepted(&case, &witness, |columns| {
        columns.labels[0] = vec![2, -1];
    }));
}

/// 16 more in one component and 1 less in the next give the same element.
#[test]
fn components_are_int4() {
    let case = chain();
    let mut witness = witness(&case);
    witness.vectors[0] += 16;
    witness.vectors[1] -= 1;
    witness.norms[5] = norm(&witness.vectors[..8]);
    witness.classes[0] = 5;
    witness.set_thresholds(&case.statement);
    assert!(!accepted(&case, &witness, |_| ()));
}

/// Components and salts other than the hashed ones, of the same norm.
#[test]
fn columns_are_what_cq_commits_to() {
    let case = chain();
    let witness = witness(&case);
    assert_eq!(case.secret.vectors[1], 1);
    assert!(!accepted(&case, &witness, |columns| {
        columns.vectors[1] = -1;
        columns.nibbles[8] -= 1;
        columns.nibbles[6] += 1;
    }));
    assert!(!accepted(&case, &witness, |columns| {
        columns.salts[0] += 1;
    }));
}

#[test]
fn slack_is_not_negative() {
    let case = chain();
    let mut witness = witness(&case);
    witness.thresholds[0] += 1;
    let bound = case.statement.bound(witness.thresholds[0]);
    let slack = witness.slack[0] + witness.bounds[0] - bound;
    assert!(slack < 0);
    witness.bounds[0] = bound;
    assert!(!accepted(&case, &witness, |columns| {
        columns.slack[0][0] = slack;
        columns.slack[1][0] = 0;
    }));
}

#[test]
fn forged_pairs_are_refused() {
    let case = chain();
    let excuse = case.statement.excuse();
    let size = 1 << case.statement.distance_variables();
    let split = |w: &mut Witness, s: &CoalitionStatement, shape: &Shape| {
        w.labels[2] = 2;
        w.set_counts(s, shape);
    };
    let below = |d: &mut Columnwise, by: i64| {
        d.iter_mut()
            .flatten()
            .filter(|d| **d < 0)
            .for_each(|d| *d += by);
    };
    let run =
        |distances: &dyn Fn(&mut Columnwise)| forged(&case, split, |_| (), distances, |_, _| ());
    assert!(!run(&|_| ()), "a split cluster");
    assert!(!run(&|d| below(d, excuse)), "a false excuse");
    assert!(!run(&|d| below(d, size)), "a distance wrapped around");
    // The chain's link would have another label in the second run.
    let other = |w: &mut Witness, run: usize| w.labels[2] = if run == 0 { 2 } else { 0 };
    assert!(
        !forged(&case, |_, _, _| (), |_| (), |_| (), other),
        "an account of two labels"
    );
    // Vectors of the pairs that are not those of the records.
    let other = |w: &mut Witness, _: usize| w.vectors[0] = -w.vectors[0];
    assert!(
        !forged(&case, |_, _, _| (), |_| (), |_| (), other),
        "another vector"
    );
    // Pairs that tau compares, left out.
    let mut narrow = case.clone();
    narrow.statement.first = (0..13).collect();
    let shape = case.statement.shape().unwrap();
    let excused = |w: &Witness, run: usize| w.run(&narrow.statement, &shape, run);
    let witness = Witness::new(&case.statement, &shape, &case.secret).unwrap();
    let columns = witness.columns(&case.statement, &shape);
    let (records, blindings) =
        prove_records_with::<MaliciousProver>(&case.statement, &witness, columns).unwrap();
    let prove = |run: usize| {
        let pairs_run = PairsRun {
            records: &records,
            blindings: &blindings,
            run,
        };
        let own = excused(&witness, run);
        prove_pairs_with::<MaliciousProver>(&case.statement, &witness, own, &pairs_run).unwrap()
    };
    let pairs = (0..case.statement.runs().unwrap()).map(prove).collect();
    assert!(
        !verified(&case.statement, &(records, pairs)),
        "a smaller tau"
    );
}

#[test]
fn false_statements_are_refused_by_name() {
    let changes: [fn(&mut CoalitionStatement); 12] = [
        |s| s.cq.clear(),
        |s| s.dimension = 0,
        |s| s.dimension = MAX_COMPONENTS + 1,
        |s| s.accounts[0] = 6,
        |s| s.tenants[0] = 6,
        |s| s.tenants.resize(14, 0),
        |s| s.first[0] = 1,
        |s| s.theta = [5, 5],
        |s| s.theta = [1, 1001],
        |s| s.largest[0] = 0,
        |s| s.largest[1] = 7,
        |s| s.class_variables += 1,
    ];
    for (k, change) in changes.iter().enumerate() {
        let mut statement = chain().statement;
        change(&mut statement);
        assert!(
            matches!(statement.runs(), Err(Error::Invalid { .. })),
            "change {k}"
        );
    }
}

#[test]
fn salts_are_their_limbs() {
    for salt in [
        Fr::ZERO,
        Fr::ONE,
        -Fr::ONE,
        Fr::from(3u8).inverse().unwrap(),
    ] {
        let limbs = salt_limbs(&salt);
        let sum: Fr = (0..)
            .zip(limbs)
            .map(|(k, l)| from_small(l) * power_of_two(SALT_BITS * k))
            .sum();
        assert_eq!(sum, salt);
    }
}

/// So many records of as many accounts, at most 64 tenants, with the most classes.
fn public(records: usize, dimension: usize, first: Vec<usize>) -> CoalitionStatement {
    CoalitionStatement {
        context: [9; 32],
        dimension,
        cq: vec![Fr::ONE; records],
        accounts: (0..records).collect(),
        tenants: (0..records).map(|a| a % 64).collect(),
        first,
        theta: [4, 5],
        largest: [1, 1],
        class_variables: variables_of(records).min(MAX_CLASS_VARIABLES),
        blocks: Blocks::SHIPPED,
    }
}

/// A run over records, and a run over so many pairs of blocks after it, of the sizes that ship.
fn simulate(public: &CoalitionStatement, blocks: Option<Vec<(usize, usize)>>) {
    let mut shape = public.shape().unwrap();
    let mut session = Session::simulator(public.transcript(), shape.row_variables);
    records(&mut session, public, &shape, None).unwrap();
    let shared = Shared::new(&session.columns, &shape);
    if let Some(blocks) = blocks {
        shape.blocks = blocks;
        let transcript = public.run_transcript(&[], 0);
        session = Session::simulator(transcript, shape.row_variables);
        pairs(&mut session, public, &shape, &shared, 0, None).unwrap();
    }
    session.close(None).unwrap();
}

/// The same where all records are compared.
pub(crate) fn simulate_all(records: usize, dimension: usize, blocks: Option<Vec<(usize, usize)>>) {
    simulate(&public(records, dimension, vec![0; records]), blocks);
}

/// The largest coalition proof, without compared pairs: only the sizes matter.
fn simulate_full(blocks: Option<Vec<(usize, usize)>>) {
    let first = (0..MAX_RECORDS).collect();
    simulate(&public(MAX_RECORDS, MAX_COMPONENTS, first), blocks);
}

/// The weights of a proof's sum.
pub(crate) fn weigh_sum(records: usize, dimension: usize) {
    let statement = public(records, dimension, vec![0; records]);
    let mut weights: Transcript<Told> = statement.sum_transcript(&[1; 100], &[&[2; 70], &[3; 70]]);
    weights.challenges("weight", 3);
}

type Change<'a> = &'a dyn Fn(&mut CoalitionStatement);

/// Parameters at the end of their range and one beyond it, each refused by its name.
#[test]
fn every_parameter_ends_where_the_errors_do() {
    let of = |change: &dyn Fn(&mut CoalitionStatement)| {
        let mut statement = public(MAX_RECORDS, MAX_COMPONENTS, (0..MAX_RECORDS).collect());
        change(&mut statement);
        statement.shape().map(|_| ())
    };
    assert_eq!(of(&|_| ()), Ok(()));
    assert_eq!(of(&|s| s.theta = [999, 1000]), Ok(()));
    assert_eq!(of(&|s| s.largest = [MAX_RECORDS as u64; 2]), Ok(()));
    let more = |s: &mut CoalitionStatement| {
        s.cq.push(Fr::ONE);
        s.accounts.push(0);
        s.first.push(0);
    };
    let cases: [(&str, Change); 10] = [
        ("records", &more),
        ("records", &|s| s.cq.clear()),
        ("dimension", &|s| s.dimension = MAX_COMPONENTS + 1),
        ("dimension", &|s| s.dimension = 0),
        ("theta", &|s| s.theta = [999, 1001]),
        ("theta", &|s| s.theta = [0, 5]),
        ("c", &|s| s.largest = [MAX_RECORDS as u64 + 1, 1]),
        ("c", &|s| s.largest = [1, 0]),
        ("class variables", &|s| s.class_variables += 1),
        ("tenants", &|s| s.tenants[0] = 64),
    ];
    for (name, change) in cases {
        match of(change) {
            Err(Error::Invalid { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}

pub(crate) struct KnownAnswer {
    pub(crate) statement: CoalitionStatement,
    pub(crate) secret: CoalitionSecret,
}

impl KnownAnswer {
    pub(crate) fn records(&self) -> (Vec<u8>, Vec<Fr>) {
        records::prove_as::<MaliciousProver>(&self.statement, &self.secret).unwrap()
    }

    pub(crate) fn pairs(&self, records: &[u8], blindings: &[Fr]) -> Vec<u8> {
        let (statement, secret) = (&self.statement, &self.secret);
        pairs::prove_as::<MaliciousProver>(statement, secret, records, blindings, 0).unwrap()
    }
}

/// Four records of three accounts, two of them near: one run over pairs.
pub(crate) fn known_answer() -> KnownAnswer {
    let case = Case::new(&[0, 1, 2, 0], &[0, 0, 1], &[A, B, D, A], 0).shipped();
    assert_eq!(case.statement.runs(), Ok(1));
    let Case { statement, secret } = case;
    KnownAnswer { statement, secret }
}

pub(crate) fn largest_records() {
    simulate_full(None);
}

pub(crate) fn largest_pairs() {
    simulate_full(Some((0..63).map(|i| (i, 63)).collect()));
}

/// 256 blocks of 256 records, each compared with all earlier blocks and with itself.
pub(crate) fn max_pair_runs() -> u64 {
    (256 * 257 / 2u64).div_ceil(63)
}

/// Public values only, commitments without a known opening, and an oracle with some answers chosen in advance.
#[test]
fn proofs_are_simulated_without_vectors() {
    let case = chain();
    let real = case.prove().unwrap();
    let mut public = case.statement.clone();
    public.cq.iter_mut().for_each(|cq| *cq += Fr::ONE);
    let shape = public.shape().unwrap();
    let rows = shape.row_variables;
    let mut session = Session::simulator(public.transcript(), rows);
    records(&mut session, &public, &shape, None).unwrap();
    let shared = Shared::new(&session.columns, &shape);
    let simulated = session.close(None).unwrap();
    assert_eq!(simulated.proof.len(), real.0.len());
    let told = simulated.tell(public.transcript());
    for (transcript, expected) in [(public.transcript(), false), (told, true)] {
        let mut session = Session::verifier(transcript, rows, &simulated.proof);
        records(&mut session, &public, &shape, None).unwrap();
        assert_eq!(holds(session).is_ok(), expected);
    }

    let of_run = || public.run_transcript(&simulated.proof, 0);
    let mut session = Session::simulator(of_run(), rows);
    pairs(&mut session, &public, &shape, &shared, 0, None).unwrap();
    let of_pairs = session.close(None).unwrap();
    assert_eq!(of_pairs.proof.len(), real.1[0].len());
    let told = of_pairs.tell(of_run());
    for (transcript, expected) in [(of_run(), false), (told, true)] {
        let mut session = Session::verifier(transcript, rows, &of_pairs.proof);
        pairs(&mut session, &public, &shape, &shared, 0, None).unwrap();
        assert_eq!(holds(session).is_ok(), expected);
    }
}

#[test]
fn the_gate_of_numbers_keeps_within_its_bounds() {
    let powers: Vec<Fr> = (2..10u64).map(|x| -Fr::from(x)).collect();
    for of_bits in [None, Some(&powers[2..])] {
        let points = vec![&powers[2..], &powers[1..7]];
        let of_terms = &powers[..2];
        let tables = 8 + usize::from(of_bits.is_some());
        let gate = Numbers {
            points,
            of_terms,
            of_bits,
        };
        crate::prover::rounds::tests::agree(&gate, 7, tables);
    }
}
