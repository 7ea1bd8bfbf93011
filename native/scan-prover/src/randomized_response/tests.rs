use super::inputs::*;
use super::statement::*;
use super::*;
use crate::channel::Channel;
use crate::fixtures::{components, packed_hash, random, scores, vector_hash};
use crate::group::{tables, vector_generators, Fr, G1Affine};
use crate::index::{commit_index, IndexCommitment, Layout, MAX_CAPACITY, MAX_DIMENSION};
use crate::kit::{
    all_are_needed, changes_are_refused, forgets_nothing, only_for, simulated, verify, Change,
    Protocol,
};
use crate::malicious::{MaliciousProver, REPEATED};
use crate::malicious_claims::each_claim_excludes_a_false_value;
use crate::prover::fractional_sumcheck::RUN;
use crate::prover::Prover;
use crate::transcript::{Oracle, Transcript};
use ark_ff::Field;
use ragaudit_scan_protocol::randomized_response::claim_list;

/// One in so many is 1.
fn some_bits(seed: u64, count: usize, of: u64) -> Vec<i64> {
    let drawn = random(seed, count, of).into_iter();
    drawn.map(|v| i64::from(v == 0)).collect()
}

fn column(layout: Layout, bits: Vec<i64>, blinding: u64) -> Column {
    let blindings = (0..layout.rows() as u64).map(|a| Fr::from(blinding + a));
    bit_column(layout, bits, blindings.collect()).unwrap()
}

#[cfg(test)]
mod malicious;

struct Case {
    index: IndexCommitment,
    key: IndexKey,
    witness: ListWitness,
    flips: Column,
    sample: Column,
    disclosed: Column,
    after: Column,
    outcome: Outcome,
    cq: Fr,
    htopk: Fr,
    threshold: i64,
    maximum: usize,
}

/// The statement's columns of bits.
#[derive(Clone)]
struct Given {
    flips: Vec<i64>,
    sample: Vec<i64>,
    disclosed: Vec<i64>,
}

impl Given {
    fn new(capacity: usize) -> Self {
        Self {
            flips: some_bits(11, capacity, 9),
            sample: some_bits(12, capacity, 10).iter().map(|b| 1 - b).collect(),
            disclosed: some_bits(13, capacity, 5),
        }
    }
}

fn case_of(
    [documents, capacity, dimension, maximum]: [usize; 4],
    threshold: i64,
    given: Given,
) -> Case {
    let rows = components(5, documents * dimension);
    let query = components(77, dimension);
    let key = IndexKey([3; 32]);
    let index = commit_index(&rows, dimension, capacity, &key).unwrap();
    let layout = index.layout;
    let mut scores: Vec<i64> = scores(&rows, &query);
    scores.resize(capacity, 0);
    let witness = ListWitness {
        query,
        query_salt: Fr::from(1000u64),
        list_salt: Fr::from(2000u64),
        scores,
    };
    let flips = column(layout, given.flips, 100);
    let sample = column(layout, given.sample, 200);
    let disclosed = column(layout, given.disclosed, 300);
    let bits = Bits {
        flips: &flips,
        sample: &sample,
        disclosed: &disclosed,
    };
    let outcome = Outcome::new(&index, (threshold, maximum), &witness, &bits).unwrap();
    Case {
        cq: vector_hash(witness.query_salt, &witness.query),
        htopk: packed_hash(witness.list_salt, capacity, &outcome.packed()),
        after: column(layout, outcome.after.clone(), 400),
        index,
        key,
        witness,
        flips,
        sample,
        disclosed,
        outcome,
        threshold,
        maximum,
    }
}

fn case(documents: usize, capacity: usize, dimension: usize, maximum: usize) -> Case {
    let sizes = [documents, capacity, dimension, maximum];
    case_of(sizes, 40, Given::new(capacity))
}

/// Fewer win than may be listed.
fn short() -> Case {
    let case = case(300, 310, 7, 200);
    assert!(case.outcome.count < 190);
    case
}

/// More win than may be listed.
fn full() -> Case {
    let case = case(300, 310, 7, 20);
    assert_eq!(case.outcome.count, 20);
    assert!(short().outcome.count > 30);
    case
}

impl Case {
    fn statement(&self) -> RandomizedResponseStatement<'_> {
        RandomizedResponseStatement {
            context: [2; 32],
            index: &self.index,
            flips: &self.flips.rows,
            sample: &self.sample.rows,
            disclosed: &self.disclosed.rows,
            after: &self.after.rows,
            cq: self.cq,
            htopk: self.htopk,
            threshold: self.threshold,
            maximum: self.maximum,
        }
    }

    fn columns(&self) -> [&Column; 4] {
        [&self.flips, &self.sample, &self.disclosed, &self.after]
    }

    fn secret(&self) -> Secret<'_> {
        Secret {
            witness: &self.witness,
            outcome: &self.outcome,
            hidden: hidden_values(&self.statement(), &self.witness, &self.outcome),
            openings: self.columns().map(|c| c.opening.as_ref().unwrap()),
            key: &self.key,
        }
    }

    /// The proof of a prover without checks.
    fn proof(&self, low_memory: Option<usize>) -> Vec<u8> {
        prove_with::<MaliciousProver>(&self.statement(), self.secret(), low_memory).unwrap()
    }

    fn forged(&self) -> bool {
        verify(&self.statement(), &self.proof(None)).is_ok()
    }

    /// Whether a prover gets through with another outcome, which it commits to and hashes as if it were the true one.
    fn claims(&self, false_value: impl Fn(&mut Outcome)) -> bool {
        let mut other = self.again();
        false_value(&mut other.outcome);
        let packed = other.outcome.packed();
        let packed = &packed[..other.statement().elements()];
        other.htopk = packed_hash(other.witness.list_salt, other.outcome.after.len(), packed);
        other.after = column(other.index.layout, other.outcome.after.clone(), 400);
        other.forged()
    }

    /// Whether the prover is accepted with other hidden values; the first ones are htopk's list.
    fn hides(&self, false_value: impl Fn(&mut [Fr])) -> bool {
        let mut other = self.again();
        let mut hidden = self.secret().hidden.clone();
        false_value(&mut hidden);
        let packed = &hidden[1..1 + self.statement().elements()];
        other.htopk = packed_hash(hidden[0], self.outcome.after.len(), packed);
        let mut secret = other.secret();
        secret.hidden = hidden;
        let proof = prove_with::<MaliciousProver>(&other.statement(), secret, None).unwrap();
        verify(&other.statement(), &proof).is_ok()
    }

    fn again(&self) -> Self {
        let [flips, sample, disclosed, after] = self.columns().map(Clone::clone);
        Self {
            index: self.index.clone(),
            key: self.key.clone(),
            witness: ListWitness {
                query: self.witness.query.clone(),
                scores: self.witness.scores.clone(),
                ..self.witness
            },
            flips,
            sample,
            disclosed,
            after,
            outcome: self.outcome.clone(),
            ..*self
        }
    }

    /// The first position with this property of its five bits: chance, relevant, sampled, disclosed, listed.
    fn find(&self, what: impl Fn([bool; 5]) -> bool) -> usize {
        let columns = [&self.flips, &self.sample, &self.disclosed];
        let [c, k, h] = columns.map(|c| &c.opening.as_ref().unwrap().values);
        let (r, l) = (&self.outcome.relevant, &self.outcome.listed);
        let actual = (0..r.len()).find(|i| what([c, r, k, h, l].map(|bits| bits[*i] == 1)));
        actual.expect("the case has such a position")
    }
}

impl Protocol for RandomizedResponseStatement<'_> {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript()
    }

    fn rows(&self) -> Result<usize> {
        self.check()?;
        Ok(self.index.layout.row_variables)
    }

    fn points(&self) -> &[G1Affine] {
        &self.index.points
    }

    fn run<'a, C: Channel>(&'a self, session: Session<'a, C>) -> Result<C::Closed> {
        randomized_response_protocol(session, self, None)
    }
}

#[test]
fn lists_verify() {
    for case in [
        short(),
        full(),
        case(1, 1, 1, 1),
        case(2, 2, 3, 1),
        case(2, 2, 3, 2),
        case(250, 252, 3, 252),
        case(253, 253, 3, 10),
        case(1024, 1024, 2, 1024),
        case(1025, 1025, 2, 3),
        case(2100, 2100, 70, 50),
    ] {
        assert!(
            case.forged(),
            "{:?}, at most {}",
            case.index.layout,
            case.maximum
        );
    }
}

/// A list without winners, one with all positions disclosed, one with only chance winners, one that ends at the last position,
/// and one with only the first position.
#[test]
fn lists_of_every_kind_verify() {
    let capacity = 300;
    let of = |maximum: usize, threshold: i64, given: Given| {
        case_of([300, capacity, 7, maximum], threshold, given)
    };
    let bits = |bit: i64| vec![bit; capacity];
    let (none, all) = (bits(0), bits(1));
    let given = |flips: &[i64], sample: &[i64], disclosed: &[i64]| Given {
        flips: flips.to_vec(),
        sample: sample.to_vec(),
        disclosed: disclosed.to_vec(),
    };
    let mut last = none.clone();
    last[capacity - 1] = 1;
    let cases = [
        (of(5, 49 * 7, given(&none, &all, &none)), 0),
        (of(5, 40, given(&none, &all, &all)), 0),
        (of(5, 40, given(&none, &none, &none)), 0),
        (of(300, 40, given(&all, &none, &all)), 300),
        (of(299, 40, given(&all, &all, &none)), 299),
        (of(1, 40, given(&all, &all, &none)), 1),
        (of(1, 49 * 7, given(&last, &all, &none)), 1),
        (of(2, 49 * 7, given(&last, &all, &none)), 1),
    ];
    for (k, (case, count)) in cases.iter().enumerate() {
        assert_eq!(case.outcome.count, *count, "case {k}");
        assert!(case.forged(), "case {k}");
        let disclosed = &case.disclosed.opening.as_ref().unwrap().values;
        let both = disclosed
            .iter()
            .zip(&case.outcome.listed)
            .map(|(h, l)| h | l);
        assert!(both.eq(case.outcome.after.iter().copied()));
    }
}

/// The definition of docs/relation.md, position by position.
#[test]
fn outcomes_are_the_first_winners() {
    for case in [short(), full(), case(1, 1, 1, 1), case(2, 2, 3, 1)] {
        let columns = [&case.flips, &case.sample, &case.disclosed];
        let [c, k, h] = columns.map(|c| &c.opening.as_ref().unwrap().values);
        let wins = |i: &usize| {
            let relevant = case.witness.scores[*i] >= case.threshold;
            c[*i] == 1 || (relevant && k[*i] == 1 && h[*i] == 0)
        };
        let winners = (0..c.len()).filter(wins).take(case.maximum);
        let listed = (0..c.len()).filter(|i| case.outcome.listed[*i] == 1);
        assert!(winners.eq(listed));
    }
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let case = full();
    let base = case.statement();
    let proof = case.proof(None);
    // A new field has to be changed below.
    let RandomizedResponseStatement {
        context: _,
        index: _,
        flips: _,
        sample: _,
        disclosed: _,
        after: _,
        cq: _,
        htopk: _,
        threshold: _,
        maximum: _,
    } = &base;
    let rows = components(5, 300 * 7);
    let index = |rows: &[i8], dimension, capacity| {
        commit_index(rows, dimension, capacity, &case.key).unwrap()
    };
    let mut swapped = case.index.clone();
    swapped.points.swap(0, 1);
    let indices = [
        index(&components(6, 300 * 7), 7, 310),
        index(&rows, 7, 311),
        index(&rows[..300 * 6], 6, 310),
        swapped,
    ];
    // The same bits under another blinding, and other bits.
    let layout = case.index.layout;
    let mut other_bits = case.outcome.after.clone();
    other_bits[309] ^= 1;
    let others = case.columns().map(|c| {
        let values = c.opening.as_ref().unwrap().values.clone();
        column(layout, values, 999)
    });
    let other_after = column(layout, other_bits, 400);
    let mut changes: Vec<Change<RandomizedResponseStatement>> = vec![
        Box::new(|s| s.context[5] ^= 1),
        Box::new(|s| s.cq += Fr::ONE),
        Box::new(|s| s.htopk += Fr::ONE),
        Box::new(|s| s.threshold += 1),
        Box::new(|s| s.threshold -= 1),
        Box::new(|s| s.maximum += 1),
        Box::new(|s| s.maximum -= 1),
        Box::new(|s| s.flips = &others[0].rows),
        Box::new(|s| s.sample = &others[1].rows),
        Box::new(|s| s.disclosed = &others[2].rows),
        Box::new(|s| s.after = &others[3].rows),
        Box::new(|s| s.after = &other_after.rows),
        Box::new(|s| std::mem::swap(&mut s.disclosed, &mut s.after)),
        Box::new(|s| std::mem::swap(&mut s.flips, &mut s.sample)),
    ];
    for index in &indices {
        changes.push(Box::new(move |s| s.index = index));
    }
    only_for(&base, &proof, &changes);
}

/// The smallest case with two rows of an empty disclosed set, for tests that prove it many times.
fn tiny() -> Case {
    case_of([250, 260, 3, 9], 40, Given::new(260))
}

#[test]
fn a_transcript_forgets_nothing() {
    let case = tiny();
    let (base, mut other) = (case.statement(), case.statement());
    other.context[0] ^= 1;
    forgets_nothing(&base, &other, || case.proof(None));
}

fn skips_no_claim(each: bool) {
    let case = tiny();
    all_are_needed(&case.statement(), || case.proof(None), each);
}

#[test]
fn claims_and_openings_are_all_needed() {
    skips_no_claim(false);
}

/// A prover states a false value and compensates for it in all other claims; the proof is accepted only if one claim is
/// omitted.
#[test]
#[ignore = "a prover states one false value, for each claim (15 s to a minute): make test-full"]
fn each_claim_stands_against_one_false_value() {
    let case = tiny();
    let base = case.statement();
    each_claim_excludes_a_false_value("listing", || case.proof(None), |proof| verify(&base, proof));
}

#[test]
#[ignore = "a prover skips each single claim in turn (a minute): make test-full"]
fn every_single_claim_is_needed() {
    skips_no_claim(true);
}

/// An empty list, a full list and a list of some positions take the same steps, up to the closing.
#[test]
fn lists_take_the_same_work() {
    use ragaudit_field_simd::count;
    let of = |given: Given| case_of([300, 310, 7, 20], 40, given);
    let bits = |bit: i64| vec![bit; 310];
    let given = |bit: i64| Given {
        flips: bits(bit),
        sample: bits(bit),
        disclosed: bits(bit),
    };
    let cases = [of(Given::new(310)), of(given(0)), of(given(1))];
    let work = |case: &Case| {
        let statement = case.statement();
        let rows = statement.index.layout.row_variables;
        let mut session: Session<Prover> =
            Session::prover(statement.transcript(), rows, b"").unwrap();
        let columns = case.columns().map(|c| c.opening.as_ref().unwrap());
        let bits = Bits {
            flips: &case.flips,
            sample: &case.sample,
            disclosed: &case.disclosed,
        };
        count::take();
        let outcome = Outcome::new(&case.index, (40, 20), &case.witness, &bits).unwrap();
        let blindings = vec![Fr::from(5u8)];
        bit_column(case.index.layout, outcome.after.clone(), blindings).unwrap();
        let secret = Secret {
            hidden: hidden_values(&statement, &case.witness, &outcome),
            outcome: &outcome,
            witness: &case.witness,
            openings: columns,
            key: &case.key,
        };
        let blinding = |place| case.key.blinding(place);
        let mut private = secret.private(&statement, &blinding);
        claim_list(&mut session, &statement, Some(&mut private)).unwrap();
        count::take()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let counts = pool.unwrap().install(|| {
        // The first one makes tables.
        work(&cases[0]);
        cases.each_ref().map(work)
    });
    assert!(counts.iter().all(|c| *c == counts[0]), "{counts:?}");
    assert_eq!(counts[0][2], 0, "additions without a chord");
}

#[test]
fn mutated_proofs_are_refused() {
    let case = tiny();
    changes_are_refused(&case.statement(), &case.proof(None), 397);
}

/// Another query, other Bernoulli bits, an empty disclosed set, and a full list: the same messages in the same order, with the
/// same number of bytes.
#[test]
fn proofs_have_one_shape() {
    let shape = |case: &Case| crate::kit::shape(|| case.proof(None));
    let bits = |bit: i64| vec![bit; 310];
    let base = shape(&full());
    for given in [
        Given {
            flips: bits(0),
            sample: bits(0),
            disclosed: bits(0),
        },
        Given {
            flips: bits(1),
            sample: bits(1),
            disclosed: bits(1),
        },
    ] {
        assert_eq!(base, shape(&case_of([3, 310, 7, 20], 40, given)));
    }
    assert_ne!(full().proof(None), full().proof(None), "nonces are fresh");
}

#[test]
fn low_memory_gives_the_same_proof() {
    let case = case(2900, 3000, 70, 40);
    REPEATED.set(true);
    let [sample, anew, several] = [None, Some(RUN), Some(3)].map(|low| case.proof(low));
    REPEATED.set(false);
    verify(&case.statement(), &anew).unwrap();
    assert!(sample == anew);
    assert!(sample == several);
}

/// The most that the proof of a list may be about.
pub(crate) fn largest() {
    simulate(MAX_CAPACITY, MAX_DIMENSION, MAX_LISTED);
}

/// An index and bits without a known opening.
pub(crate) fn simulate(capacity: usize, dimension: usize, maximum: usize) {
    let layout = Layout::new(capacity).unwrap();
    let point = vector_generators(1)[0];
    let index = IndexCommitment {
        layout,
        dimension,
        points: vec![point; dimension * layout.rows()],
    };
    let rows = vec![point; layout.rows()];
    let public = RandomizedResponseStatement {
        context: [2; 32],
        index: &index,
        flips: &rows,
        sample: &rows,
        disclosed: &rows,
        after: &rows,
        cq: Fr::ONE,
        htopk: Fr::ONE,
        threshold: 1,
        maximum,
    };
    crate::kit::simulate(&public);
}

/// The same as for query proofs: commitments without a known opening.
#[test]
fn proofs_are_simulated_without_a_query() {
    let case = full();
    let real = case.proof(None);
    let mut public = case.statement();
    (public.cq, public.htopk) = (Fr::from(31_337u64), Fr::from(31_338u64));
    let point = vec![vector_generators(1)[0]];
    public.after = &point;
    simulated(&public, &real);
}

#[test]
fn malformed_inputs_are_refused() {
    let case = short();
    let layout = case.index.layout;
    let bits = Bits {
        flips: &case.flips,
        sample: &case.sample,
        disclosed: &case.disclosed,
    };
    let outcome = |threshold: i64, maximum: usize, witness: &ListWitness, bits: &Bits| {
        Outcome::new(&case.index, (threshold, maximum), witness, bits)
    };
    assert!(outcome(40, 20, &case.witness, &bits).is_ok());
    for (threshold, maximum) in [(0, 20), (344, 20), (40, 0), (40, 311)] {
        assert!(outcome(threshold, maximum, &case.witness, &bits).is_err());
    }
    let mut witness = case.again().witness;
    witness.scores[0] = 344;
    assert!(outcome(40, 20, &witness, &bits).is_err());
    witness.scores.pop();
    assert!(outcome(40, 20, &witness, &bits).is_err());
    let mut witness = case.again().witness;
    witness.query.pop();
    assert!(outcome(40, 20, &witness, &bits).is_err());
    let no_bits = committed_bits(
        layout,
        case.sample.rows.clone(),
        vec![2; 310],
        vec![Fr::ONE],
    );
    let no_bits = no_bits.unwrap();
    let of = Bits {
        sample: &no_bits,
        ..bits
    };
    assert!(outcome(40, 20, &case.witness, &of).is_err());
    let closed = Column {
        opening: None,
        ..case.disclosed.clone()
    };
    let of = Bits {
        disclosed: &closed,
        ..bits
    };
    assert!(outcome(40, 20, &case.witness, &of).is_err());
    for bits in [vec![2; 310], vec![0; 309], vec![0; 311]] {
        assert!(bit_column(layout, bits, vec![Fr::ONE]).is_err());
    }
    assert!(bit_column(layout, vec![0; 310], vec![]).is_err());
    let (rows, blindings) = (case.sample.rows.clone(), vec![Fr::ONE; 2]);
    assert!(committed_bits(layout, rows, vec![0; 310], blindings).is_err());
    // An honest prover makes no proof of a false claim.
    let mut other = case.again();
    other.outcome.after[0] ^= 1;
    other.after = column(layout, other.outcome.after.clone(), 400);
    let statement = other.statement();
    let refused = prove_as::<Prover>(
        &statement,
        &other.witness,
        &other.outcome,
        other.columns(),
        &other.key,
        None,
    );
    assert!(matches!(refused, Err(Error::Unsatisfied(_))));
}

/// The public parameters at the end of their range and one beyond it, each refused by its name.
#[test]
fn every_parameter_ends_where_the_errors_do() {
    let checked = |dimension: usize, threshold: i64, maximum: usize, rows: [usize; 4]| {
        let layout = Layout::new(2 * MAX_LISTED).unwrap();
        let point = vector_generators(1)[0];
        let index = IndexCommitment {
            layout,
            dimension,
            points: vec![point; dimension * layout.rows()],
        };
        let columns = rows.map(|rows| vec![point; rows]);
        let statement = RandomizedResponseStatement {
            context: [0; 32],
            index: &index,
            flips: &columns[0],
            sample: &columns[1],
            disclosed: &columns[2],
            after: &columns[3],
            cq: Fr::ONE,
            htopk: Fr::ONE,
            threshold,
            maximum,
        };
        match verify(&statement, &[]) {
            // The parameters were taken; there is no proof.
            Err(Error::Malformed { at: 0, .. }) => "taken".to_owned(),
            Err(Error::Invalid { field, .. }) => field,
            other => panic!("{:?}", other.map(|_| ())),
        }
    };
    let (d, rows) = (MAX_DIMENSION, [2; 4]);
    let largest = 49 * d as i64;
    assert_eq!(checked(d, largest, MAX_LISTED, rows), "taken");
    assert_eq!(checked(1, 1, 1, rows), "taken");
    assert_eq!(checked(d + 1, 1, 1, rows), "dimension");
    assert_eq!(checked(0, 1, 1, rows), "dimension");
    for threshold in [0, -1, largest + 1] {
        assert_eq!(checked(d, threshold, 1, rows), "threshold");
    }
    assert_eq!(checked(1, 50, 1, rows), "threshold");
    for maximum in [0, MAX_LISTED + 1] {
        assert_eq!(checked(1, 1, maximum, rows), "listed positions");
    }
    for (k, name) in ["chance", "kept", "held before", "held after"]
        .into_iter()
        .enumerate()
    {
        for wrong in [0, 1, 3] {
            let mut rows = rows;
            rows[k] = wrong;
            assert_eq!(checked(1, 1, 1, rows), name);
        }
    }
}

#[test]
fn nothing_disclosed_is_a_column_that_every_party_can_compute() {
    for capacity in [1, 1000, 1025, 5000] {
        let layout = Layout::new(capacity).unwrap();
        let nothing = nothing_disclosed(layout);
        let blindings = vec![Fr::ONE; layout.rows()];
        let result = bit_column(layout, vec![0; capacity], blindings).unwrap();
        assert_eq!(nothing.rows, result.rows);
        assert!(nothing.rows.iter().all(|p| *p == tables().h.point));
    }
}
