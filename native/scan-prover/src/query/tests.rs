use super::inputs::*;
use super::statement::*;
use super::*;
use crate::bernoulli::Bernoulli;
use crate::channel::Channel;
use crate::drawn::{self, Draw, DrawnStatement, Slot};
use crate::fixtures::{components, list_hash, scores, vector_hash};
use crate::group::{vector_generators, Fr, G1Affine};
use crate::index::{commit_index, IndexCommitment, Layout, MAX_CAPACITY, MAX_DIMENSION};
use crate::kit::{
    all_are_needed, changes_are_refused, forgets_nothing, only_for, simulated, verify, Change,
    Protocol,
};
use crate::malicious::{caught_by, MaliciousProver, REPEATED};
use crate::malicious_claims::each_claim_excludes_a_false_value;
use crate::noise::tests::MAXIMUM_GAINS;
use crate::noise::Noise;
use crate::transcript::{Oracle, Transcript};
use crate::words::{seed_commitment, Seed};
use ark_ff::Field;
use ragaudit_field_simd::selection::{ScoreWindow, MAX_LATTICE};

struct Case {
    index: IndexCommitment,
    key: IndexKey,
    /// Zeros without commitments where there are no gains.
    noise: Column,
    sample: Option<Column>,
    answer: Answer,
    gains: Vec<u32>,
    cq: Fr,
    htopk: Fr,
    /// lo, hi, lattice.
    window: [i64; 3],
}

const LO: i64 = 10;
const HI: i64 = 90;
const LATTICE: i64 = 64;

impl Protocol for QueryStatement<'_> {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript()
    }

    fn rows(&self) -> Result<usize> {
        Ok(self.row_variables())
    }

    fn points(&self) -> &[G1Affine] {
        &self.index.points
    }

    fn run<'a, C: Channel>(&'a self, session: Session<'a, C>) -> Result<C::Closed> {
        answer_protocol(session, self, None)
    }
}

/// The column that a slot's draws make, under its verified noise proof.
fn drawn<D: Draw>(capacity: usize, slot: u64, distribution: D) -> Column {
    let seed = Seed([Fr::from(9u8), Fr::from(10u8)]);
    let slot = Slot {
        c_seed: seed_commitment(&seed),
        beacon: Fr::from(3u8),
        slot: Fr::from(slot),
    };
    let statement = DrawnStatement::single([1; 32], slot, capacity, distribution);
    let mut noise_proof = drawn::prove(&statement, &[seed], false).unwrap();
    drawn::verify(&statement, &noise_proof.proof).unwrap();
    noise_proof.columns.remove(0)
}

fn noise_proof(capacity: usize, gains: &[u32], slot: u64) -> Column {
    let gains = gains.to_vec();
    drawn(capacity, slot, Noise { gains })
}

/// About half of the positions, or those of another slot.
fn bernoulli(capacity: usize, slot: u64) -> Column {
    drawn(capacity, slot, Bernoulli { bound: 1 << 39 })
}

fn case(documents: usize, capacity: usize, dimension: usize, gains: &[u32], listed: usize) -> Case {
    let sizes = [documents, capacity, dimension, listed];
    case_in([LO, HI, LATTICE], sizes, gains)
}

fn case_in(window: [i64; 3], sizes: [usize; 4], gains: &[u32]) -> Case {
    any_case(window, sizes, gains, None)
}

/// The case of a sampled tenant.
fn sampled(sizes: [usize; 4], gains: &[u32]) -> Case {
    any_case(
        [LO, HI, LATTICE],
        sizes,
        gains,
        Some(bernoulli(sizes[1], 8)),
    )
}

fn any_case(
    window: [i64; 3],
    [documents, capacity, dimension, listed]: [usize; 4],
    gains: &[u32],
    sample: Option<Column>,
) -> Case {
    let rows = components(5, documents * dimension);
    let query = components(77, dimension);
    let key = IndexKey([3; 32]);
    let index = commit_index(&rows, dimension, capacity, &key).unwrap();
    let mut scores: Vec<i64> = scores(&rows, &query);
    scores.resize(capacity, 0);
    let noise = match gains {
        [] => Column {
            variables: 0,
            rows: Vec::new(),
            opening: Some(Arc::new(Opening {
                values: vec![0; capacity],
                blindings: Vec::new(),
            })),
        },
        _ => noise_proof(capacity, gains, 4),
    };
    let bits = sample
        .as_ref()
        .map(|sample| &sample.opening.as_ref().unwrap().values);
    let scores_of = |p: usize| bits.map_or(1, |bits| bits[p]);
    let [lo, hi, lattice] = window;
    let steps = ScoreWindow::new(lo, hi, lattice).unwrap();
    let drawn = &noise.opening.as_ref().unwrap().values;
    let mut order: Vec<i64> = (0..capacity as i64).collect();
    order.sort_by_key(|p| {
        let p = *p as usize;
        (
            std::cmp::Reverse(scores_of(p) * steps.quantise(scores[p] as i32) + drawn[p]),
            p,
        )
    });
    let positions = order[..listed].to_vec();
    let (query_salt, list_salt) = (Fr::from(1000u64), Fr::from(2000u64));
    Case {
        index,
        key,
        noise,
        sample,
        gains: gains.to_vec(),
        cq: vector_hash(query_salt, &query),
        htopk: list_hash(list_salt, &positions),
        window,
        answer: Answer {
            query,
            query_salt,
            positions,
            list_salt,
            scores,
        },
    }
}

impl Case {
    fn statement(&self) -> QueryStatement<'_> {
        QueryStatement {
            context: [2; 32],
            index: &self.index,
            noise: self.noise_columns().iter().map(|c| &c.rows[..]).collect(),
            sample: self.sample.as_ref().map(|sample| &sample.rows[..]),
            gains: self.gains.clone(),
            records: vec![[self.cq, self.htopk]],
            listed: self.answer.positions.len(),
            lo: self.window[0],
            hi: self.window[1],
            lattice: self.window[2],
        }
    }

    fn noise_columns(&self) -> &[Column] {
        match self.gains[..] {
            [] => &[],
            _ => std::slice::from_ref(&self.noise),
        }
    }

    /// The bits of the sampled positions.
    fn bernoulli(&self) -> &[i64] {
        &self
            .sample
            .as_ref()
            .unwrap()
            .opening
            .as_ref()
            .unwrap()
            .values
    }

    fn proven(&self) -> ProvenColumns<'_> {
        ProvenColumns {
            noise: self.noise_columns(),
            sample: self.sample.as_ref(),
        }
    }

    fn openings(&self) -> Openings<'_> {
        openings(&self.statement(), self.proven()).unwrap()
    }

    fn witness(&self) -> Witness {
        let statement = self.statement();
        let answers = std::slice::from_ref(&self.answer);
        let mut witnesses = witnesses(&statement, answers, &self.openings()).unwrap();
        witnesses.remove(0)
    }

    fn secret<'a>(&'a self, witness: &'a Witness) -> Secret<'a> {
        Secret {
            answers: std::slice::from_ref(&self.answer),
            witnesses: std::slice::from_ref(witness),
            openings: self.openings(),
            key: &self.key,
        }
    }

    fn try_prove(&self, proven: ProvenColumns, low_memory: bool) -> Result<Vec<u8>> {
        let answers = std::slice::from_ref(&self.answer);
        prove_as::<MaliciousProver>(&self.statement(), answers, proven, &self.key, low_memory)
    }

    fn prove(&self, low_memory: bool) -> Vec<u8> {
        self.try_prove(self.proven(), low_memory).unwrap()
    }

    /// The proof of a prover without checks.
    fn prove_witness(&self, witness: &Witness) -> Vec<u8> {
        prove_with::<MaliciousProver>(&self.statement(), &self.secret(witness), None).unwrap()
    }

    /// Whether it gets through with this witness.
    fn forged(&self, witness: &Witness) -> bool {
        verify(&self.statement(), &self.prove_witness(witness)).is_ok()
    }

    /// The proof of a prover that runs the protocol for its own statement and absorbs another one.
    fn said_of(&self, claimed: &QueryStatement) -> Vec<u8> {
        let rows = claimed.row_variables();
        let session: Session<MaliciousProver> =
            Session::prover(claimed.transcript(), rows, b"").unwrap();
        let (own, witness) = (self.statement(), self.witness());
        let blinding = |place| self.key.blinding(place);
        let private = self.secret(&witness).private(&own, &blinding);
        answer_protocol(session, &own, Some(private))
            .unwrap()
            .into()
    }

    /// The first positions under the scores, noise and Bernoulli bits that it has.
    fn order(&self) -> Vec<i64> {
        let witness = self.witness();
        let noise = &self.noise.opening.as_ref().unwrap().values;
        let mut order: Vec<i64> = (0..self.answer.scores.len() as i64).collect();
        order.sort_by_key(|p| (-witness.scored[*p as usize] - noise[*p as usize], *p));
        order.truncate(self.answer.positions.len());
        order
    }

    /// The same with other positions, as if they were the answer.
    fn lists(&mut self, positions: Vec<i64>) -> bool {
        self.answer.positions = positions;
        self.htopk = list_hash(self.answer.list_salt, &self.answer.positions);
        self.forged(&self.witness())
    }
}

fn small() -> Case {
    case(30, 37, 70, &[1, 8], 4)
}

/// For the tests that prove it many times.
fn tiny() -> Case {
    case(5, 6, 3, &[1, 8], 2)
}

#[test]
fn answers_verify() {
    for case in [
        small(),
        case(1, 1, 1, &[1], 1),
        case(150, 150, 64, &[1, 8, 64], 5),
        case(4, 9, 3, &[1, 8], 9),
    ] {
        let statement = case.statement();
        let proof = case.prove(false);
        verify(&statement, &proof).unwrap();
        assert!(case.forged(&case.witness()));
    }
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let case = small();
    let base = case.statement();
    let proof = case.prove(false);
    // A new field has to be changed below.
    let QueryStatement {
        context: _,
        index: _,
        noise: _,
        sample: _,
        gains: _,
        records: _,
        listed: _,
        lo: _,
        hi: _,
        lattice: _,
    } = &base;
    let rows = components(5, 30 * 70);
    let index = |rows: &[i8], dimension, capacity| {
        commit_index(rows, dimension, capacity, &case.key).unwrap()
    };
    let mut swapped = case.index.clone();
    swapped.points.swap(0, 1);
    let indices = [
        index(&components(6, 30 * 70), 70, 37),
        index(&rows, 70, 38),
        index(&rows[..30 * 69], 69, 37),
        swapped,
    ];
    let (slot, shorter) = (noise_proof(37, &[1, 8], 5), noise_proof(37, &[1, 8], 4));
    let mut changes: Vec<Change<QueryStatement>> = vec![
        Box::new(|s| s.context[5] ^= 1),
        Box::new(|s| s.records[0][0] += Fr::ONE),
        Box::new(|s| s.records[0][1] += Fr::ONE),
        Box::new(|s| s.lo += 1),
        Box::new(|s| s.hi += 1),
        Box::new(|s| s.lattice *= 2),
        Box::new(|s| s.listed -= 1),
        Box::new(|s| s.gains = vec![1, 7]),
        Box::new(|s| s.gains.push(1)),
        Box::new(|s| s.noise = vec![&slot.rows]),
        // The same noise under other blindings.
        Box::new(|s| s.noise = vec![&shorter.rows]),
    ];
    for index in &indices {
        changes.push(Box::new(move |s| s.index = index));
    }
    only_for(&base, &proof, &changes);
}

#[test]
fn a_transcript_forgets_nothing() {
    let case = tiny();
    let (base, mut other) = (case.statement(), case.statement());
    other.context[0] ^= 1;
    forgets_nothing(&base, &other, || case.prove(false));
}

fn skips_no_claim(case: &Case, each: bool) {
    let witness = case.witness();
    all_are_needed(&case.statement(), || case.prove_witness(&witness), each);
}

#[test]
fn claims_and_openings_are_all_needed() {
    skips_no_claim(&tiny(), false);
}

/// A prover states a false value and compensates for it in all other claims; the proof is accepted only if one claim is
/// omitted.
#[test]
#[ignore = "a prover states one false value, for each claim (15 s to a minute): make test-full"]
fn each_claim_stands_against_one_false_value() {
    let case = tiny();
    let base = case.statement();
    let prove = || case.prove(false);
    each_claim_excludes_a_false_value("query", prove, |proof| verify(&base, proof));
}

#[test]
#[ignore = "a prover skips each single claim in turn (a minute): make test-full"]
fn every_single_claim_is_needed() {
    skips_no_claim(&tiny(), true);
}

#[test]
fn other_lists_are_refused() {
    let right = small().answer.positions.clone();
    let mut swapped = right.clone();
    swapped.swap(1, 2);
    caught_by("constraint: order of the list", || {
        small().lists(swapped.clone())
    });
    // A position that is not among the first.
    let mut missing = right.clone();
    let other = (0..37).find(|p| !right.contains(p)).unwrap();
    missing[3] = other;
    caught_by("constraint: selection", || {
        let mut case = small();
        case.lists(missing.clone())
    });
    // Two claims refute it: the list's strict order, and its multiset.
    let mut twice = right.clone();
    twice[3] = twice[2];
    assert!(!small().lists(twice), "one position twice");
    assert!(small().lists(right));
}

/// All noise is negative, so that row 3 of a capacity of 3 would be the first of four.
#[test]
fn a_padding_row_is_never_selected() {
    let mut case = case(0, 3, 2, &[1], 1);
    case.noise = (4..)
        .map(|slot| noise_proof(3, &[1], slot))
        .find(|noise| {
            noise.opening.as_ref().unwrap().values[..3]
                .iter()
                .all(|z| *z < 0)
        })
        .unwrap();
    let noise = case.noise.opening.as_ref().unwrap().values.clone();
    case.answer.positions = vec![3];
    case.htopk = list_hash(case.answer.list_salt, &[3]);
    let witness = Witness {
        quantised: vec![0; 3],
        scored: vec![0; 3],
        selected: vec![0, 0, 0, 1],
        distances: (0..3)
            .map(|p| key(0, 3, 2) - 1 - key(noise[p as usize], p, 2))
            .collect(),
        noised: vec![0],
        order: vec![],
    };
    assert!(!case.forged(&witness));
    let best = (0..3).min_by_key(|p| (-noise[*p as usize], *p)).unwrap();
    assert!(case.lists(vec![best]));
}

#[test]
fn false_columns_are_refused() {
    let case = small();
    let out = (0..37)
        .find(|p| !case.answer.positions.contains(p))
        .unwrap() as usize;
    let first = case.answer.positions[0] as usize;
    type FalseValue<'a> = (&'a str, &'a dyn Fn(&mut Witness));
    let false_values: [FalseValue; 3] = [
        // A step that is not the score's, with the distance that it makes.
        ("constraint: lookup layer", &|w| {
            w.quantised[out] -= 1;
            w.distances[out] += 1 << case.index.layout.variables;
        }),
        ("constraint: selection", &|w| w.distances[out] += 1),
        // A listed score that is not the position's.
        ("constraint: lookup layer", &|w| {
            w.noised[0] += 1;
            w.order[0] += 1 << case.index.layout.variables;
        }),
    ];
    for (claim, false_value) in false_values {
        let mut witness = case.witness();
        false_value(&mut witness);
        caught_by(claim, || case.forged(&witness));
    }
    // An unlisted row with a mark, and a listed row without one: the multiset of the list and the distance refute both.
    for (row, mark) in [(out, 1), (first, 0)] {
        let mut witness = case.witness();
        witness.selected[row] = mark;
        assert!(!case.forged(&witness), "{mark}");
        witness.distances[row] = -1 - witness.distances[row];
        assert!(!case.forged(&witness), "{mark}");
    }
}

/// Scores are looked up in a table of all that the components admit, so no window takes a score out of it: not one
/// beyond reach, where all are 0, nor one unit wide, nor the largest lattice.
#[test]
fn false_scores_are_refused_in_every_window() {
    let reach = 64 * 70;
    let maximum = i64::from(i32::MAX);
    for window in [
        [reach + 1, reach + 709, LATTICE],
        [maximum - 1, maximum, LATTICE],
        [0, maximum, MAX_LATTICE],
        [10, 11, LATTICE],
        [LO, HI, MAX_LATTICE],
        [LO, HI, 1],
    ] {
        let case = case_in(window, [30, 37, 70, 4], &[1, 8]);
        assert!(case.forged(&case.witness()), "{window:?}: the honest one");
        let out = (0..37)
            .find(|p| !case.answer.positions.contains(p))
            .unwrap() as usize;
        let mut witness = case.witness();
        witness.quantised[out] -= 1;
        witness.distances[out] += 1 << case.index.layout.variables;
        caught_by("constraint: lookup layer", || case.forged(&witness));
    }
}

/// Two equal noised scores listed with the larger position first.
#[test]
fn ties_go_to_the_smaller_position() {
    // Without documents all scores are equal; look for a tie of noise at the border of the list.
    let mut case = case(0, 60, 4, &[1], 1);
    let noise = case.noise.opening.as_ref().unwrap().values[..60].to_vec();
    let mut order: Vec<usize> = (0..60).collect();
    order.sort_by_key(|p| (std::cmp::Reverse(noise[*p]), *p));
    let at = (0..59)
        .find(|i| noise[order[*i]] == noise[order[i + 1]])
        .unwrap();
    let mut list: Vec<i64> = order[..=at].iter().map(|p| *p as i64).collect();
    assert!(case.lists(list.clone()));
    list[at] = order[at + 1] as i64;
    assert!(!case.lists(list));
}

#[test]
fn the_query_is_the_committed_one() {
    // Scores and proof of another vector than cq's.
    let mut other = small();
    other.answer.query[0] = if other.answer.query[0] == 0 { 1 } else { 0 };
    assert!(!other.forged(&other.witness()), "cq of another query");
    let mut salt = small();
    salt.answer.query_salt += Fr::ONE;
    assert!(!salt.forged(&salt.witness()), "another salt");
    // 16 taken from one component and 1 added to the next pack into the same element.
    let mut wide = small();
    wide.answer.query[0] -= 16;
    wide.answer.query[1] += 1;
    let rows = components(5, 30 * 70);
    for (row, score) in rows.chunks(70).zip(&mut wide.answer.scores) {
        *score += i64::from(row[1]) - 16 * i64::from(row[0]);
    }
    let window = ScoreWindow::new(LO, HI, LATTICE).unwrap();
    let noise = wide.noise.opening.as_ref().unwrap().values.clone();
    let mut order: Vec<i64> = (0..37).collect();
    order.sort_by_key(|p| {
        let i = *p as usize;
        (
            -window.quantise(wide.answer.scores[i] as i32) - noise[i],
            *p,
        )
    });
    order.truncate(4);
    assert!(!wide.lists(order), "components that are not int4");
    // Scores that are not the index's, consistent in themselves.
    let mut scores = small();
    scores.answer.scores[0] += 1;
    assert!(!scores.forged(&scores.witness()), "a score of no row");
    let mut key = small();
    key.key = IndexKey([4; 32]);
    assert!(!key.forged(&key.witness()), "another index's blindings");
}

#[test]
fn noise_is_the_noise_proof_s() {
    let mut case = small();
    let mut opening = case.noise.opening.as_ref().unwrap().as_ref().clone();
    opening.values[0] += 500;
    case.noise.opening = Some(Arc::new(opening));
    assert!(!case.forged(&case.witness()));
}

/// A prover that claims the tenant's index and computes scores with another: another tenant's index, and its own with two
/// components exchanged.
#[test]
fn scores_are_of_the_tenant_s_index() {
    let case = small();
    let (statement, rows) = (case.statement(), components(5, 30 * 70));
    let mut turned = rows.clone();
    turned.chunks_mut(70).for_each(|row| row.swap(0, 1));
    for (rows, accepted) in [
        (components(6, 30 * 70), false),
        (turned, false),
        (rows, true),
    ] {
        let mut lying = self::case(30, 37, 70, &[1, 8], 4);
        lying.index = commit_index(&rows, 70, 37, &lying.key).unwrap();
        lying.noise = case.noise.clone();
        let scores = scores(&rows, &lying.answer.query);
        lying.answer.scores[..30].copy_from_slice(&scores);
        let noise = case.noise.opening.as_ref().unwrap();
        let window = statement.check().unwrap();
        let noised = |p: &i64| {
            let p = *p as usize;
            window.quantise(lying.answer.scores[p] as i32) + noise.values[p]
        };
        let mut order: Vec<i64> = (0..37).collect();
        order.sort_by_key(|p| (-noised(p), *p));
        lying.answer.positions = order[..4].to_vec();
        let htopk = list_hash(lying.answer.list_salt, &lying.answer.positions);
        lying.htopk = htopk;
        let claimed = QueryStatement {
            records: vec![[statement.records[0][0], htopk]],
            ..statement.clone()
        };
        let proof = lying.said_of(&claimed);
        assert_eq!(verify(&claimed, &proof).is_ok(), accepted);
    }
}

#[test]
fn mutated_proofs_are_refused() {
    let case = case(5, 6, 3, &[1], 2);
    changes_are_refused(&case.statement(), &case.prove(false), 397);
}

/// Another query, and another document: the same messages in the same order, as many bytes.
#[test]
fn proofs_have_one_shape() {
    let base = small();
    let shape = |case: &Case| crate::kit::shape(|| case.prove_witness(&case.witness()));
    let mut query = small();
    query.answer.query = components(78, 70);
    query.cq = vector_hash(query.answer.query_salt, &query.answer.query);
    assert_eq!(shape(&base), shape(&query));

    let mut rows = components(5, 30 * 70);
    rows[7 * 70..8 * 70].copy_from_slice(&components(79, 70));
    let document = {
        let mut case = small();
        case.index = commit_index(&rows, 70, 37, &case.key).unwrap();
        case.answer.scores[7] = scores::<i64>(&rows, &case.answer.query)[7];
        case
    };
    assert_ne!(document.answer.scores, base.answer.scores);
    assert_eq!(shape(&base), shape(&document));
    assert_ne!(base.prove(false), base.prove(false), "nonces are fresh");
}

/// The most that a query proof may be about.
pub(crate) fn largest() {
    simulate(MAX_CAPACITY, MAX_DIMENSION, MAX_LISTED, &MAXIMUM_GAINS);
}

/// The same of a sampled tenant.
pub(crate) fn largest_sampled() {
    simulate_any(
        [MAX_CAPACITY, MAX_DIMENSION, MAX_LISTED],
        &MAXIMUM_GAINS,
        true,
    );
}

/// An index without a known opening.
pub(crate) fn simulate(capacity: usize, dimension: usize, listed: usize, gains: &[u32]) {
    simulate_any([capacity, dimension, listed], gains, false);
}

/// A sampled tenant, or a tenant without noise.
pub(crate) fn simulate_any([capacity, dimension, listed]: [usize; 3], gains: &[u32], sample: bool) {
    let layout = Layout::new(capacity).unwrap();
    let index = IndexCommitment {
        layout,
        dimension,
        points: vec![vector_generators(1)[0]; dimension * layout.rows()],
    };
    let rows = vec![index.points[0]; layout.rows()];
    let public = QueryStatement {
        context: [2; 32],
        index: &index,
        noise: if gains.is_empty() {
            vec![]
        } else {
            vec![&rows]
        },
        sample: sample.then_some(&rows),
        gains: gains.to_vec(),
        records: vec![[Fr::ONE; 2]],
        listed,
        lo: LO,
        hi: HI,
        lattice: MAX_LATTICE,
    };
    crate::kit::simulate(&public);
}

#[test]
fn low_memory_gives_the_same_proof() {
    let case = case(2900, 3000, 70, &[1, 8], 5);
    let statement = case.statement();
    REPEATED.set(true);
    let [sample, anew] = [false, true].map(|low| case.prove(low));
    let witness = case.witness();
    let few = Recomputed { run: 3, ..LEAST };
    let several = prove_with::<MaliciousProver>(&statement, &case.secret(&witness), Some(few));
    REPEATED.set(false);
    verify(&statement, &anew).unwrap();
    assert!(sample == anew);
    assert!(sample == several.unwrap());
}

/// The same as for noise proofs: cq and htopk without a known opening.
#[test]
fn proofs_are_simulated_without_a_query() {
    let case = small();
    let mut public = case.statement();
    public.records = vec![[31_337u64, 31_338].map(Fr::from)];
    simulated(&public, &case.prove(false));
}

#[cfg(test)]
mod sampled;
