use super::inputs::*;
use super::statement::*;
use super::*;
use std::sync::Arc;

use crate::batch::{self, verify_all};
use crate::channel::Channel;
use crate::engine::Fast;
use crate::equation::Equation;
use crate::error::Error;
use crate::fixtures::{components, quantised, tokens_hash, unbounded_hash};
use crate::group::{vector_generators, G1Affine};
use crate::index::{commit_table, IndexCommitment, Layout, MAX_DIMENSION};
use crate::kit::{
    all_are_needed, changes_are_refused, forgets_nothing, numbers, only_for, stands_for, verify,
    Change, Protocol,
};
use crate::malicious::{caught_by, MaliciousProver};
use crate::malicious_claims::each_claim_excludes_a_false_value;
use crate::mutations::refused;
use crate::numbers::{from_small, power_of_two};
use crate::simulator::Simulates;
use crate::transcript::{Oracle, Transcript};
use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::poseidon::hash_list;
use ragaudit_scan_protocol::embed::Functional;

const VOCABULARY: usize = 45;
const DIMENSION: usize = 70;
const MAXIMUM: usize = 20;
const NORM_FACTOR: u64 = 8145;

fn hq_of(salt: Fr, tokens: &[u32]) -> Fr {
    tokens_hash(salt, tokens.len(), tokens)
}

impl Protocol for EmbedStatement<'_> {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript()
    }

    fn rows(&self) -> Result<usize> {
        self.check()?;
        Ok(self.table.layout.row_variables)
    }

    fn points(&self) -> &[G1Affine] {
        &self.table.points
    }

    fn run<'a, C: Channel>(&'a self, session: Session<'a, C>) -> Result<C::Closed> {
        embed_protocol(session, self, None, None)
    }
}

struct Case {
    rows: Vec<i8>,
    table: Arc<IndexCommitment>,
    query: Query,
    maximum: usize,
    hq: Fr,
    cq: Fr,
}

fn case(vocabulary: usize, dimension: usize, maximum: usize, tokens: &[u32]) -> Case {
    let rows = components(9, vocabulary * dimension);
    let query = Query {
        tokens: tokens.to_vec(),
        query_salt: Fr::from(100u8),
        vector_salt: Fr::from(200u8),
    };
    let mut case = Case {
        table: Arc::new(commit_table(&rows, dimension).unwrap()),
        rows,
        hq: hq_of(query.query_salt, tokens),
        cq: Fr::ZERO,
        query,
        maximum,
    };
    case.cq = unbounded_hash(case.query.vector_salt, &case.witness().vector.components);
    case
}

fn small() -> Case {
    case(
        VOCABULARY,
        DIMENSION,
        MAXIMUM,
        &[
            3, 44, 3, 0, 17, 8, 9, 10, 11, 12, 13, 14, 15, 16, 5, 4, 2, 1,
        ],
    )
}

impl Case {
    fn statement(&self) -> EmbedStatement<'_> {
        EmbedStatement {
            context: Fr::from(77u8),
            table: &self.table,
            tokens: self.maximum,
            norm_factor: NORM_FACTOR,
            hq: self.hq,
            cq: self.cq,
        }
    }

    fn prove(&self) -> Result<Vec<u8>> {
        prove_as::<MaliciousProver>(&self.statement(), &self.rows, &self.query)
    }

    fn witness(&self) -> Witness {
        Witness::new(&self.statement(), &self.rows, &self.query).unwrap()
    }

    /// The proof of a prover without checks.
    fn prove_witness(&self, witness: &Witness) -> Vec<u8> {
        let secret = (witness, &Claimed::of(&witness.vector));
        prove_with::<MaliciousProver>(&self.statement(), &self.rows, &self.query, secret).unwrap()
    }

    /// Whether it gets through with this witness.
    fn forged(&self, witness: &Witness) -> bool {
        self.says(witness, |_| ())
    }

    /// Whether the prover is accepted with other claims about its columns.
    fn says(&self, witness: &Witness, false_value: impl Fn(&mut Claimed)) -> bool {
        let statement = self.statement();
        let mut claimed = Claimed::of(&witness.vector);
        false_value(&mut claimed);
        let secret = (witness, &claimed);
        let proof =
            prove_with::<MaliciousProver>(&statement, &self.rows, &self.query, secret).unwrap();
        verify(&statement, &proof).is_ok()
    }

    fn measure(&self, witness: &mut Witness) {
        let scaled = self.statement().check().unwrap().scaled;
        witness.vector.measure(2 * NORM_FACTOR as i64, scaled);
    }

    /// The witness with other sums of rows, and everything that follows from them.
    fn with_sums(&mut self, sums: Vec<i64>) -> Witness {
        let mut witness = self.witness();
        let square = sums.iter().map(|e| e * e).sum::<i64>() << ROOT_SHIFT;
        let root = square.isqrt();
        witness.vector.components = quantised(&sums, NORM_FACTOR);
        (
            witness.vector.sums,
            witness.vector.root,
            witness.vector.rest,
        ) = (sums, root, square - root * root);
        self.measure(&mut witness);
        self.cq = unbounded_hash(self.query.vector_salt, &witness.vector.components);
        witness
    }

    /// The witness with another root, and with the vector that this root gives.
    fn with_root(&mut self, root: i64) -> Witness {
        let mut witness = self.witness();
        let factor = 2 * NORM_FACTOR as i64;
        witness.vector.components = (witness.vector.sums.iter())
            .map(|e| e.signum() * ((factor * e.abs() + root) / (2 * root)).min(7))
            .collect();
        witness.vector.root = root;
        self.measure(&mut witness);
        self.cq = unbounded_hash(self.query.vector_salt, &witness.vector.components);
        witness
    }

    /// With another vector for the same sums: with negative distances as they are, and with zeros for them.
    fn forged_vector(&mut self, vector: Vec<i64>) -> bool {
        let mut witness = self.witness();
        witness.vector.components = vector;
        self.measure(&mut witness);
        self.cq = unbounded_hash(self.query.vector_salt, &witness.vector.components);
        let as_they_are = self.forged(&witness);
        let distances = witness.vector.distances.iter_mut().flatten();
        distances.for_each(|d| *d = (*d).max(0));
        as_they_are || self.forged(&witness)
    }
}

#[test]
fn embeddings_verify() {
    let full: Vec<u32> = (0..MAXIMUM as u32).collect();
    for case in [
        small(),
        case(VOCABULARY, DIMENSION, MAXIMUM, &[44]),
        case(VOCABULARY, DIMENSION, MAXIMUM, &full),
        case(VOCABULARY, DIMENSION, MAXIMUM, &full[..16]),
        case(VOCABULARY, DIMENSION, MAXIMUM, &full[..17]),
        case(4, 1, 1, &[2]),
        case(3, 63, 33, &[2, 2, 2]),
    ] {
        verify(&case.statement(), &case.prove().unwrap()).unwrap();
        assert!(case.forged(&case.witness()));
    }
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let case = small();
    let proof = case.prove().unwrap();
    let statement = case.statement();
    // A new field has to be changed below.
    let EmbedStatement {
        context: _,
        table: _,
        tokens: _,
        norm_factor: _,
        hq: _,
        cq: _,
    } = &statement;
    let mut swapped = (*case.table).clone();
    swapped.points.swap(0, 1);
    let mut rows = case.rows.clone();
    rows[30 * DIMENSION] ^= 1;
    let unused = commit_table(&rows, DIMENSION).unwrap();
    let changes: [Change<EmbedStatement>; 7] = [
        Box::new(|s| s.context += Fr::ONE),
        Box::new(|s| s.hq += Fr::ONE),
        Box::new(|s| s.cq += Fr::ONE),
        Box::new(|s| s.tokens += 1),
        Box::new(|s| s.norm_factor += 1),
        Box::new(|s| s.table = &swapped),
        Box::new(|s| s.table = &unused),
    ];
    only_for(&statement, &proof, &changes);
}

/// A small case for tests that prove it many times, with a prover without checks.
fn tiny() -> Case {
    case(9, 3, 2, &[1, 8])
}

#[test]
fn a_transcript_forgets_nothing() {
    let case = tiny();
    let (base, mut other) = (case.statement(), case.statement());
    other.context += Fr::ONE;
    forgets_nothing(&base, &other, || case.prove().unwrap());
}

fn skips_no_claim(each: bool) {
    let case = tiny();
    let witness = case.witness();
    all_are_needed(&case.statement(), || case.prove_witness(&witness), each);
}

#[test]
fn claims_and_openings_are_all_needed() {
    skips_no_claim(false);
}

#[test]
#[ignore = "a prover skips each single claim in turn (a minute): make test-full"]
fn every_single_claim_is_needed() {
    skips_no_claim(true);
}

/// A prover states a false value and compensates for it in all other claims; the proof is accepted only if one claim is
/// omitted.
#[test]
fn each_claim_stands_against_one_false_value() {
    let case = tiny();
    let (statement, witness) = (case.statement(), case.witness());
    let prove = || case.prove_witness(&witness);
    each_claim_excludes_a_false_value("embed", prove, |proof| verify(&statement, proof));
}

pub(crate) fn mutations(count: usize) {
    let case = tiny();
    let statement = case.statement();
    refused("A1", &case.prove().unwrap(), count, |proof| {
        verify(&statement, proof).is_ok()
    });
}

/// A prover that has another table than the committed one.
#[test]
fn the_table_is_the_committed_one() {
    let mut case = small();
    case.rows[3 * DIMENSION] = if case.rows[3 * DIMENSION] == 7 { -7 } else { 7 };
    let witness = case.witness();
    case.cq = unbounded_hash(case.query.vector_salt, &witness.vector.components);
    assert!(!case.forged(&witness));
    case.table = Arc::new(commit_table(&case.rows, DIMENSION).unwrap());
    assert!(case.forged(&witness));
}

#[test]
fn sums_are_of_the_tokens_rows() {
    let mut case = small();
    let honest = case.witness();
    let rows = case.rows.clone();
    let row = |t: usize| rows[t * DIMENSION..][..DIMENSION].to_vec();
    let moved: Vec<i64> = (honest.vector.sums.iter().zip(row(3)).zip(row(20)))
        .map(|((e, from), to)| e - i64::from(from) + i64::from(to))
        .collect();
    let witness = case.with_sums(moved.clone());
    caught_by("table claim: components", || case.forged(&witness));
    let mut counted = witness.clone();
    counted.histogram[3] -= 1;
    counted.histogram[20] += 1;
    caught_by("constraint: lookup layer", || case.forged(&counted));
    let again: Vec<i64> = honest
        .vector
        .sums
        .iter()
        .zip(row(3))
        .map(|(e, v)| e + i64::from(v))
        .collect();
    let mut more = case.with_sums(again);
    more.histogram[3] += 1;
    caught_by("constraint: lookup layer", || case.forged(&more));
    let witness = case.with_sums(honest.vector.sums.clone());
    assert!(case.forged(&witness));
}

#[test]
fn tokens_are_those_of_the_commitment() {
    let right = small();
    let mut tokens = right.query.tokens.clone();
    tokens.swap(0, 1);
    let mut swapped = small();
    swapped.hq = hq_of(swapped.query.query_salt, &tokens);
    assert!(
        !swapped.forged(&swapped.witness()),
        "the same tokens in another order"
    );
    let mut salt = small();
    salt.query.query_salt += Fr::ONE;
    assert!(!salt.forged(&salt.witness()), "another salt");
    let mut vector = small();
    vector.query.vector_salt += Fr::ONE;
    assert!(!vector.forged(&vector.witness()), "another salt of cq");
    let mut other = small();
    other.cq = unbounded_hash(other.query.vector_salt, &vec![1; DIMENSION]);
    assert!(!other.forged(&other.witness()), "cq of another vector");
}

/// The last of these tokens adds 0 to the sum, because the row after the vocabulary is zero.
#[test]
fn tokens_are_of_the_vocabulary() {
    let mut case = small();
    let mut witness = case.witness();
    let mut tokens = case.query.tokens.clone();
    tokens.push(VOCABULARY as u32);
    let place = tokens.len() - 1;
    (witness.tokens[place], witness.used[place]) = (VOCABULARY as i64, 1);
    case.hq = hq_of(case.query.query_salt, &tokens);
    assert!(!case.forged(&witness));
    case.query.tokens = tokens;
    assert!(matches!(case.prove(), Err(Error::Invalid { .. })));
}

#[test]
fn there_are_no_more_tokens_than_places() {
    let full: Vec<u32> = (0..=MAXIMUM as u32).collect();
    let mut case = case(VOCABULARY, DIMENSION, MAXIMUM, &full[..MAXIMUM]);
    let mut witness = case.witness();
    // The token too many, packed into the place before it.
    case.hq = hq_of(case.query.query_salt, &full);
    witness.tokens[MAXIMUM - 1] += (MAXIMUM as i64) << TOKEN_BITS;
    witness.used[MAXIMUM - 1] = 2;
    assert!(!case.forged(&witness));
    case.query.tokens = full;
    assert!(matches!(case.prove(), Err(Error::Invalid { .. })));
    case.query.tokens.clear();
    assert!(matches!(case.prove(), Err(Error::Invalid { .. })));
}

/// hq of a list with a gap, with the packing of a longer list.
#[test]
fn used_places_come_first() {
    let mut case = case(VOCABULARY, DIMENSION, MAXIMUM, &[5, 6]);
    let mut witness = case.witness();
    witness.tokens.swap(1, 2);
    witness.used.swap(1, 2);
    let mut list = vec![case.query.query_salt, Fr::from(2u8)];
    list.push(Fr::from(5u8) + Fr::from(6u8) * power_of_two(2 * TOKEN_BITS));
    case.hq = hash_list(TAG_QUERY, &list);
    caught_by("product: used places", || case.forged(&witness));
    // All places unused, and a hash of no token.
    let mut none = case.with_sums(vec![0; DIMENSION - 1].into_iter().chain([1]).collect());
    none.tokens[0] = 0;
    none.used = vec![0; MAXIMUM];
    assert!(!case.forged(&none));
}

/// A token that the number of tokens omits, or counts three times.
#[test]
fn every_token_has_its_mark() {
    for mark in [0, 3] {
        let mut case = case(VOCABULARY, DIMENSION, MAXIMUM, &[5, 6]);
        let mut witness = case.witness();
        witness.used[1] = mark;
        let packed = Fr::from(5u8) + Fr::from(6u8) * power_of_two(TOKEN_BITS);
        let number = from_small(1 + mark);
        case.hq = hash_list(TAG_QUERY, &[case.query.query_salt, number, packed]);
        assert!(!case.forged(&witness), "{mark}");
    }
}

/// Each component one step up and one down, with the distances that belong to it: one of them is negative.
#[test]
fn components_are_the_rounded_ones() {
    let mut case = case(VOCABULARY, 8, 5, &[7, 30, 30]);
    let right = case.witness().vector.components.clone();
    assert!(case.forged_vector(right.clone()));
    for (j, v) in right.iter().enumerate() {
        for other in [v - 1, v + 1] {
            if other.abs() <= 7 {
                let mut vector = right.clone();
                vector[j] = other;
                assert!(!case.forged_vector(vector), "{v} to {other}");
            }
        }
    }
    // Distances of the true vector with another vector.
    let mut witness = case.witness();
    witness.vector.components[0] -= witness.vector.components[0].signum();
    case.cq = unbounded_hash(case.query.vector_salt, &witness.vector.components);
    assert!(!case.forged(&witness));
}

/// The norm of a single component makes it more than 7 steps: 8 would be right if vectors were not int4.
#[test]
fn components_are_int4() {
    let mut case = case(VOCABULARY, 20, 5, &[7, 30, 30]);
    let right = case.witness();
    let unclamped =
        |e: &i64| (2 * NORM_FACTOR as i64 * e.abs() + right.vector.root) / (2 * right.vector.root);
    let (j, steps) = (right.vector.sums.iter().map(unclamped).enumerate())
        .find(|(_, steps)| *steps > 7)
        .unwrap();
    let mut vector = right.vector.components.clone();
    vector[j] = steps * right.vector.sums[j].signum();
    assert!(!case.forged_vector(vector));
    // 16 from one component and 1 to the next: packed alike.
    let mut packed = right.vector.components.clone();
    (packed[0], packed[1]) = (packed[0] - 16, packed[1] + 1);
    assert!(!case.forged_vector(packed));
}

#[test]
fn the_root_is_the_largest_one() {
    let mut case = small();
    let right = case.witness();
    let square = right.vector.root * right.vector.root + right.vector.rest;
    for root in [
        right.vector.root - 1,
        right.vector.root + 1,
        right.vector.root / 2,
    ] {
        let mut witness = case.with_root(root);
        witness.vector.rest = square - root * root;
        assert!(!case.forged(&witness), "{root}");
        assert!(!case.says(&witness, |s| s.lacking = 0), "too much left");
        if root == right.vector.root - 1 {
            let false_value = |s: &mut Claimed| s.lacking = 0;
            caught_by("constraint: root", || case.says(&witness, false_value));
        }
        witness.vector.rest = 0;
        let false_value = |s: &mut Claimed| s.root_squared = square;
        caught_by("product: root", || case.says(&witness, false_value));
    }
    // Rows that sum to zero have no vector, and no root.
    case.rows[DIMENSION..2 * DIMENSION].fill(0);
    case.table = Arc::new(commit_table(&case.rows, DIMENSION).unwrap());
    case.query.tokens = vec![1];
    case.hq = hq_of(case.query.query_salt, &[1]);
    assert!(matches!(case.prove(), Err(Error::Unsatisfied(_))));
    let mut witness = small().witness();
    witness.tokens = vec![0; MAXIMUM];
    witness.used = vec![0; MAXIMUM];
    (witness.tokens[0], witness.used[0]) = (1, 1);
    witness.histogram = vec![0; VOCABULARY + 1];
    (witness.histogram[1], witness.histogram[VOCABULARY]) = (1, MAXIMUM as i64 - 1);
    witness.vector.sums = vec![0; DIMENSION];
    witness.vector.components = vec![7; DIMENSION];
    (witness.vector.root, witness.vector.rest) = (0, 0);
    case.measure(&mut witness);
    case.cq = unbounded_hash(case.query.vector_salt, &witness.vector.components);
    assert!(!case.forged(&witness), "a root of zero");
}

/// Every value that is sent for one column and belongs to another.
#[test]
fn values_are_those_of_the_columns() {
    let mut case = small();
    let right = case.witness();
    let mut sums = right.vector.sums.clone();
    sums.reverse();
    let witness = case.with_sums(sums);
    assert!(
        !case.says(&witness, |s| s.at_point[0] = right.vector.sums.clone()),
        "sums"
    );

    // Another component with the same slack, so that only its own value is false.
    let mut witness = right.clone();
    let j = right
        .vector
        .components
        .iter()
        .position(|v| (1..6).contains(v))
        .unwrap();
    witness.vector.components[j] += 1;
    assert!(
        !case.says(&witness, |s| s.packed = right.vector.components.clone()),
        "vector"
    );
    case.cq = unbounded_hash(case.query.vector_salt, &witness.vector.components);
    let false_value = |s: &mut Claimed| {
        s.at_point[1..].clone_from_slice(&Claimed::of(&right.vector).at_point[1..])
    };
    assert!(!case.says(&witness, false_value), "vector at the point");
    assert!(
        !case.says(&right, |s| s.packed = witness.vector.components.clone()),
        "packed vector"
    );

    // The root of twice as large sums.
    let mut case = small();
    let sums: Vec<i64> = right.vector.sums.iter().map(|e| 2 * e).collect();
    let square = sums.iter().map(|e| e * e).sum::<i64>() << ROOT_SHIFT;
    let mut witness = case.with_root(square.isqrt());
    witness.vector.rest = square - witness.vector.root * witness.vector.root;
    assert!(!case.forged(&witness), "a sum of squares");
    let false_value = |s: &mut Claimed| s.squared = sums.clone();
    caught_by("column claim: squares", || case.says(&witness, false_value));
}

/// In one dimension every vector is 7 or -7; with a product of another root it could be 6.
#[test]
fn the_product_is_that_of_the_root() {
    let mut case = case(VOCABULARY, 1, MAXIMUM, &[1, 2, 4]);
    let mut witness = case.witness();
    let sign = witness.vector.sums[0].signum();
    let reach = 2 * NORM_FACTOR as i64 * witness.vector.sums[0].abs();
    let product = reach / 2;
    witness.vector.components = vec![6 * sign];
    // With 2 |e| A = 2 w |v|, both are w, less 1 where the bound is strict.
    let scaled = case.statement().check().unwrap().scaled;
    let [lower, upper] = slack(6 * sign, scaled);
    let off = reach - 2 * product;
    witness.vector.distances = [
        vec![sign * off + witness.vector.root + lower],
        vec![witness.vector.root - sign * off + upper],
    ];
    case.cq = unbounded_hash(case.query.vector_salt, &witness.vector.components);
    let false_value = |s: &mut Claimed| s.at_point[2] = vec![sign * product];
    caught_by("product: steps", || case.says(&witness, false_value));
}

/// Known before the columns are committed, the point of the components lets all but one of them be anything.
#[test]
fn the_point_follows_the_columns() {
    let mut case = small();
    let mut sums = case.witness().vector.sums.clone();
    sums[1..].reverse();
    let witness = case.with_sums(sums);
    assert!(!case.forged(&witness));
    let (statement, claimed) = (case.statement(), Claimed::of(&witness.vector));
    let bounds = statement.check().unwrap();
    let hidden = witness.hidden(&case.query, &claimed, &bounds);
    let size = 1 << case.table.layout.variables;
    let private = Private {
        columns: witness.columns(&claimed, &statement, &bounds).in_order(),
        hidden: &hidden,
        vector: claimed.private(),
    };
    let of_table = |factors: &[Fr]| functional(&case.rows, factors, size);
    let run = |mut session: Session<MaliciousProver>, secret| {
        session.transcript.oracle.predicted = vec![("components", Fr::ZERO)];
        let known: Option<Functional> = session.known().map(|_| &of_table as Functional);
        embed_protocol(session, &statement, known, secret).unwrap()
    };
    let row_variables = case.table.layout.row_variables;
    let prover = Session::prover(statement.transcript(), row_variables, b"").unwrap();
    let proof: Vec<u8> = run(prover, Some(private)).into();
    let verifier = Session::verifier(statement.transcript(), row_variables, &proof);
    let equation: Equation = run(verifier, None).into();
    assert!(equation.holds::<Fast>(&case.table.points));
}

#[test]
fn proofs_have_one_length() {
    let short = case(VOCABULARY, DIMENSION, MAXIMUM, &[1]).prove().unwrap();
    let long = small();
    assert_eq!(short.len(), long.prove().unwrap().len());
    assert_ne!(
        long.prove().unwrap(),
        long.prove().unwrap(),
        "nonces are fresh"
    );
}

#[test]
fn mutated_proofs_are_refused() {
    let case = tiny();
    changes_are_refused(&case.statement(), &case.prove().unwrap(), 397);
}

#[test]
fn batches_name_the_bad_ones() {
    let cases: Vec<Case> = [[1u32, 2], [3, 4], [5, 6]]
        .iter()
        .map(|t| case(9, 3, 2, t))
        .collect();
    let proofs: Vec<Vec<u8>> = cases.iter().map(|c| c.prove().unwrap()).collect();
    let table = &cases[0].table;
    let of = |i: usize| EmbedStatement {
        table,
        ..cases[i].statement()
    };
    let verdict = |places: [usize; 3]| {
        let items: Vec<_> = (0..3).map(|i| (of(i), &proofs[places[i]][..])).collect();
        numbers(&verify_all(table, &OfTable, &items))
    };
    assert!(verdict([0, 1, 2]).is_empty());
    assert!(verify_all(table, &OfTable, &[]).is_empty());
    assert_eq!(verdict([0, 2, 1]), [1, 2]);
    let items = [
        (of(0), &proofs[0][..]),
        (of(1), &proofs[1][1..]),
        (cases[2].statement(), &proofs[2][..]),
    ];
    assert_eq!(
        numbers(&verify_all(table, &OfTable, &items)),
        [1, 2],
        "cut short; another table"
    );
    // Neither hides the other.
    let items = [
        (of(0), &proofs[0][1..]),
        (of(1), &proofs[0][..]),
        (of(2), &proofs[2][..]),
    ];
    let outcomes = verify_all(table, &OfTable, &items);
    assert!(matches!(
        outcomes[..],
        [(0, Error::Malformed { .. }), (1, Error::Rejected)]
    ));
    let chunk = vec![(of(0), &proofs[0][..]); batch::CHUNK];
    let mut batch: Batch = Batch::new(Arc::clone(table), OfTable);
    let mut retained = Vec::new();
    for count in [batch::CHUNK, 3, 1] {
        assert_eq!(batch.add(&chunk[..count]), []);
        retained.push(batch.retained());
    }
    assert!(batch.holds());
    assert_eq!(retained, [retained[0]; 3]);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let case = small();
    let refused = |change: &dyn Fn(&mut EmbedStatement)| {
        let mut statement = case.statement();
        change(&mut statement);
        matches!(verify(&statement, &[]), Err(Error::Invalid { .. }))
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|s| s.tokens = 0));
    assert!(refused(&|s| s.tokens = MAX_TOKENS + 1));
    assert!(refused(&|s| s.norm_factor = 0));
    assert!(refused(&|s| s.norm_factor = MAX_NORM_FACTOR + 1));
    let mut short = small();
    short.rows.pop();
    assert!(matches!(short.prove(), Err(Error::Invalid { .. })));
    let mut wide = small();
    wide.rows[0] = 8;
    assert!(matches!(wide.prove(), Err(Error::Invalid { .. })));
}

/// The most that a proof of A1 may be about.
pub(crate) fn largest() {
    simulate(MAX_TOKENS, MAX_VOCABULARY, MAX_DIMENSION, MAX_NORM_FACTOR);
}

/// A table that no party has. The value sent for it is then no functional, and has the length of one.
pub(crate) fn simulate(tokens: usize, vocabulary: usize, dimension: usize, norm_factor: u64) {
    let layout = Layout::new(vocabulary + 1).unwrap();
    let table = IndexCommitment {
        layout,
        dimension,
        points: vec![vector_generators(1)[0]; dimension * layout.rows()],
    };
    let public = EmbedStatement {
        context: Fr::ONE,
        table: &table,
        tokens,
        norm_factor,
        hq: Fr::ONE,
        cq: Fr::ONE,
    };
    crate::kit::simulate(&public);
}

/// The table's rows, the statement of a proof about them, and the proof.
pub(crate) struct KnownAnswer {
    pub(crate) rows: Vec<i8>,
    pub(crate) table: Arc<IndexCommitment>,
    pub(crate) tokens: usize,
    pub(crate) hq: Fr,
    pub(crate) cq: Fr,
    pub(crate) query: Query,
}

impl KnownAnswer {
    pub(crate) fn statement(&self) -> EmbedStatement<'_> {
        EmbedStatement {
            context: Fr::from(77u8),
            table: &self.table,
            tokens: self.tokens,
            norm_factor: NORM_FACTOR,
            hq: self.hq,
            cq: self.cq,
        }
    }
}

pub(crate) fn known_answer() -> KnownAnswer {
    let Case {
        rows,
        table,
        query,
        maximum,
        hq,
        cq,
    } = case(9, 3, 4, &[1, 8, 1]);
    KnownAnswer {
        rows,
        table,
        tokens: maximum,
        hq,
        cq,
        query,
    }
}

/// hq and cq without a known opening.
#[test]
fn proofs_are_simulated_without_tokens() {
    let case = small();
    let real = case.prove().unwrap();
    let mut public = case.statement();
    (public.hq, public.cq) = (Fr::from(31_337u64), Fr::from(31_338u64));
    let row_variables = case.table.layout.row_variables;
    let session = Session::simulator(public.transcript(), row_variables);
    let size = 1 << case.table.layout.variables;
    let of_table = |factors: &[Fr]| functional(&case.rows, factors, size);
    let simulated = embed_protocol(session, &public, Some(&of_table), None).unwrap();
    stands_for(&simulated, &public, &real);
}
