use super::*;
use crate::bernoulli::Bernoulli;
use crate::channel::Channel;
use crate::document_table::MAX_ROWS;
use crate::drawn::Slot;
use crate::fixtures::{components, list_hash, scores, vector_hash};
use crate::group::{vector_generators, G1Affine};
use crate::index::{commit_index, IndexCommitment, Layout, MAX_CAPACITY, MAX_DIMENSION};
use crate::kit::{all_are_needed, forgets_nothing, only_for, shape, simulated, Change, Protocol};
use crate::malicious::{caught_by, every_point_is_opened, MaliciousProver, REPEATED};
use crate::malicious_claims::each_claim_excludes_a_false_value;
use crate::mutations::refused;
use crate::omissions::no_claim_is_omitted;
use crate::transcript::{Oracle, Transcript};
use crate::words::seed_commitment;
use ragaudit_field_simd::noise::bernoulli_bits;

const LOOKUP: &str = "constraint: lookup layer";
/// Chance of about one in eight.
const CHANCE: u64 = 1 << 37;
const LISTED: usize = 4;
const THRESHOLD: i64 = 60;

impl Protocol for PooledListingStatement<'_> {
    fn start<O: Oracle>(&self) -> Transcript<O> {
        self.transcript()
    }

    fn rows(&self) -> Result<usize> {
        Ok(self.index.layout.row_variables)
    }

    fn points(&self) -> &[G1Affine] {
        &self.index.points
    }

    fn run<'a, C: Channel>(&'a self, mut session: Session<'a, C>) -> Result<C::Closed> {
        let link = pooled_listing_protocol(&mut session, self, None)?;
        session.close(Some(link))
    }
}

/// A tenant with some records in the order of the ledger.
pub(crate) struct Case {
    index: IndexCommitment,
    key: IndexKey,
    rows: usize,
    positions_per_row: usize,
    pub(crate) row: Column,
    pub(crate) kept: Column,
    pub(crate) before: Column,
    records: Vec<Record>,
    pub(crate) requests: Vec<Answer>,
    seeds: Vec<Seed>,
    /// The listed rows after each record, and their blindings.
    pub(crate) after: Vec<Column>,
    blindings: Vec<Vec<Fr>>,
}

/// The three records of the published proof.
pub(crate) fn known_answer() -> Case {
    Case::several()
}

/// A column of any values in the rows of a layout, under blindings that follow from a number.
fn column(layout: Layout, values: Vec<i64>, number: u64) -> Column {
    let blindings = blindings(layout, values.len(), number);
    super::column(layout, values, blindings).unwrap()
}

fn blindings(layout: Layout, entries: usize, number: u64) -> Vec<Fr> {
    let rows = entries.div_ceil(1 << layout.row_variables) as u64;
    (0..rows).map(|k| Fr::from(10_000 * number + k)).collect()
}

/// The slot, the seed and the question of the ledger's record `number`.
fn seed_of(number: u64) -> Seed {
    Seed([Fr::from(900 + number), Fr::from(77u64)])
}

impl Case {
    /// `count` records after `first` others, with these rows of the positions, and these sets.
    fn of(dimension: usize, [first, count]: [u64; 2], [row, kept, before]: [Vec<i64>; 3]) -> Self {
        let (capacity, rows) = (row.len(), kept.len());
        let layout = Layout::new(capacity).unwrap();
        let documents = components(5, (capacity - capacity / 8) * dimension);
        let key = IndexKey([3; 32]);
        let index = commit_index(&documents, dimension, capacity, &key).unwrap();
        let most = (0..rows as i64)
            .map(|r| row.iter().filter(|of| **of == r).count())
            .max();
        let mut case = Self {
            index,
            key,
            rows,
            positions_per_row: most.unwrap().max(1),
            row: column(layout, row, 1),
            kept: column(layout, kept, 2),
            before: column(layout, before, 3),
            records: Vec::new(),
            requests: Vec::new(),
            seeds: Vec::new(),
            after: Vec::new(),
            blindings: Vec::new(),
        };
        for number in first..first + count {
            let query = components(70 + number, dimension);
            let mut scores: Vec<i64> = scores(&documents, &query);
            scores.resize(capacity, 0);
            case.ask(number, query, scores);
        }
        case.answer();
        case
    }

    fn ask(&mut self, number: u64, query: Vec<i8>, scores: Vec<i64>) {
        let seed = seed_of(number);
        let slot = Slot {
            c_seed: seed_commitment(&seed),
            beacon: Fr::from(5u8),
            slot: Fr::from(60 + number),
        };
        let [query_salt, list_salt] = [1000, 2000].map(|salt| Fr::from(salt + number));
        self.records.push(Record {
            slot,
            cq: vector_hash(query_salt, &query),
            htopk: Fr::ZERO,
            after: nothing_listed(self.index.layout, self.rows).rows,
        });
        let own = blindings(self.index.layout, self.rows, 50 + number);
        self.blindings.push(own);
        self.requests.push(Answer {
            query,
            query_salt,
            positions: Vec::new(),
            list_salt,
            scores,
        });
        self.seeds.push(seed);
    }

    /// Puts the answers that follow into the requests and their hashes, and the sets that follow into the records.
    fn answer(&mut self) {
        let results = answers(&self.statement(), self.inputs()).unwrap();
        self.after.clear();
        for (k, (list, after)) in results.into_iter().enumerate() {
            self.records[k].htopk = list_hash(self.requests[k].list_salt, &list);
            self.requests[k].positions = list;
            self.records[k].after.clone_from(&after.rows);
            self.after.push(after);
        }
    }

    /// Positions 0 to 31 in nine rows and some without a row.
    fn small(records: [u64; 2], before: Vec<i64>) -> Self {
        let row = (0..32)
            .map(|p| [0, 1, 2, 2, 3, 9, 4, 5, 6, 7, 7][p % 11])
            .collect();
        let kept = vec![1, 0, 1, 1, 0, 1, 1, 0, 1];
        Self::of(6, records, [row, kept, before])
    }

    fn single() -> Self {
        Self::small([0, 1], vec![0, 0, 0, 0, 1, 0, 0, 0, 0])
    }

    /// The first records of a tenant.
    pub(crate) fn several() -> Self {
        let mut case = Self::small([0, 3], vec![0; 9]);
        case.before = nothing_listed(case.index.layout, 9);
        case
    }

    pub(crate) fn statement(&self) -> PooledListingStatement<'_> {
        PooledListingStatement {
            context: [7; 32],
            index: &self.index,
            chance: Bernoulli { bound: CHANCE },
            rows: self.rows,
            positions_per_row: self.positions_per_row,
            row: &self.row.rows,
            kept: &self.kept.rows,
            before: &self.before.rows,
            records: self.records.clone(),
            threshold: THRESHOLD,
            listed: LISTED,
            lo: 0,
            hi: 128,
            lattice: 64,
        }
    }

    pub(crate) fn shared_index(&self) -> Arc<IndexCommitment> {
        Arc::new(self.index.clone())
    }

    pub(crate) fn inputs(&self) -> Inputs<'_> {
        Inputs {
            requests: &self.requests,
            seeds: &self.seeds,
            given: Given {
                row: &self.row,
                kept: &self.kept,
                before: &self.before,
            },
            after: &self.blindings,
            key: &self.key,
        }
    }

    fn witness(&self) -> Witness {
        witness(&self.statement(), self.inputs()).unwrap()
    }

    /// The proof of a prover without checks.
    fn prove(&self, witness: Witness, low_memory: Option<Recomputed>) -> Vec<u8> {
        let statement = self.statement();
        prove_witness::<MaliciousProver>(&statement, self.inputs(), witness, low_memory).unwrap()
    }

    /// In low memory or not.
    pub(crate) fn made(&self, low_memory: bool) -> Vec<u8> {
        self.prove(self.witness(), low_memory.then_some(LEAST))
    }

    fn proved(&self) -> Vec<u8> {
        self.made(false)
    }

    fn accepted(&self, proof: &[u8]) -> bool {
        crate::kit::verify(&self.statement(), proof).is_ok()
    }
}

fn opened(column: &Column) -> &[i64] {
    &column.opening.as_ref().unwrap().values
}

/// The rules once more, position by position.
fn expected(case: &Case) -> (Vec<Vec<i64>>, Vec<Vec<i64>>) {
    let window = case.statement().check().unwrap();
    let (row, kept) = (opened(&case.row), opened(&case.kept));
    let mut listed = opened(&case.before).to_vec();
    let (mut sets, mut answers) = (Vec::new(), Vec::new());
    for ((request, record), seed) in case.requests.iter().zip(&case.records).zip(&case.seeds) {
        let kappa = noise_key(seed, record.slot.beacon, record.slot.slot);
        let chance = bernoulli_bits(&kappa, case.rows, CHANCE).unwrap();
        for r in 0..case.rows {
            let reaches = |(p, s): (usize, &i64)| row[p] == r as i64 && *s >= THRESHOLD;
            let relevant = request.scores.iter().enumerate().any(reaches);
            if chance[r] == 1 || (relevant && kept[r] == 1) {
                listed[r] = 1;
            }
        }
        let of = |p: usize| {
            let mark = listed.get(row[p] as usize).copied().unwrap_or(0);
            mark * window.quantise(request.scores[p] as i32)
        };
        let mut order: Vec<usize> = (0..row.len()).filter(|p| of(*p) > 0).collect();
        order.sort_by_key(|p| (std::cmp::Reverse(of(*p)), *p));
        let mut answer: Vec<i64> = order.into_iter().map(|p| p as i64).collect();
        answer.resize(LISTED, row.len() as i64);
        answers.push(answer);
        sets.push(listed.clone());
    }
    (sets, answers)
}

#[test]
fn proofs_verify_and_sets_grow_in_order() {
    let cases = [Case::single(), Case::several()];
    for case in cases {
        let statement = case.statement();
        let proof = super::prove(&statement, case.inputs(), false).unwrap();
        verify(&statement, &proof).unwrap();
        let (sets, answers) = expected(&case);
        let own: Vec<&[i64]> = case.after.iter().map(opened).collect();
        assert_eq!(own, sets);
        for (k, set) in sets.into_iter().enumerate() {
            let again = listed_column(case.index.layout, set, case.blindings[k].clone());
            assert_eq!(again.unwrap().rows, statement.records[k].after);
        }
        let shown: Vec<Vec<i64>> = case.requests.iter().map(|r| r.positions.clone()).collect();
        assert_eq!(shown, answers);
    }
}

impl Case {
    /// Whether the proof of these columns gets through. htopk says what the changed lists say, and the records have the
    /// commitments to the changed sets.
    fn forged(&self, false_value: impl Fn(&mut Witness)) -> bool {
        let mut witness = self.witness();
        false_value(&mut witness);
        let mut statement = self.statement();
        let lists = statement.records.iter_mut().zip(&self.requests);
        for ((record, request), own) in lists.zip(&witness.0) {
            record.htopk = list_hash(request.list_salt, &own.shown);
        }
        let after = witness.after(self.index.layout, &self.blindings).unwrap();
        for (record, column) in statement.records.iter_mut().zip(after) {
            record.after = column.rows;
        }
        let made = prove_witness::<MaliciousProver>(&statement, self.inputs(), witness, None);
        crate::kit::verify(&statement, &made.unwrap()).is_ok()
    }

    /// Gives positions and answer of a record what follows from its set.
    fn follow(&self, record: &mut RecordWitness, k: usize) {
        record.give_marks(opened(&self.row));
        self.answer_by_marks(record, k);
    }

    /// Gives a record the answer that follows from the marks of its positions.
    fn answer_by_marks(&self, record: &mut RecordWitness, k: usize) {
        let statement = self.statement();
        let window = statement.check().unwrap();
        let scores = self.requests[k].scores.iter().zip(&record.sample);
        let scored: Vec<i64> = scores
            .map(|(s, mark)| mark * window.quantise(*s as i32))
            .collect();
        record
            .choose(&statement, &self.requests[k], &scored)
            .unwrap();
    }

    /// A row of each kind in the first record.
    fn find(&self, what: impl Fn(usize, &RecordWitness) -> bool) -> usize {
        let witness = self.witness();
        let row = (0..self.rows).find(|r| what(*r, &witness.0[0]));
        row.expect("the case has such a row")
    }

    /// A row that the first record lists because it is relevant and in the sample.
    fn newly_listed(&self) -> usize {
        let (kept, before) = (opened(&self.kept), opened(&self.before));
        self.find(|r, w| {
            w.idle[r] == 0 && kept[r] == 1 && before[r] == 0 && w.draws.drawn[1][r] == 0
        })
    }

    /// A row that the first record does not list, with a position of a positive score.
    fn unlisted(&self) -> usize {
        let (row, scores) = (opened(&self.row), &self.requests[0].scores);
        self.find(|r, w| {
            let scoring = |p: usize| row[p] == r as i64 && scores[p] > 20;
            w.after()[r] == 0 && (0..row.len()).any(scoring)
        })
    }
}

#[test]
fn false_sets_are_refused() {
    let case = Case::single();
    assert!(case.forged(|_| ()));
    let (row, new, not) = (opened(&case.row), case.newly_listed(), case.unlisted());
    let set = |w: &mut Witness, r: usize, mark: i64| {
        w.0[0].draws.column[r] = mark;
        case.follow(&mut w.0[0], 0);
    };
    // A relevant row of the sample is omitted, and a row without a reason is listed.
    caught_by(LOOKUP, || case.forged(|w| set(w, new, 0)));
    caught_by(LOOKUP, || case.forged(|w| set(w, not, 1)));
    // A mark that is no bit.
    for mark in [2, -1] {
        assert!(!case.forged(|w| set(w, new, mark)));
    }
    // A listed row is taken out of the set.
    let before = opened(&case.before);
    let old = case.find(|r, w| before[r] == 1 && w.idle[r] == 1);
    caught_by(LOOKUP, || case.forged(|w| set(w, old, 0)));
    // The omitted row is said to have no relevant position, with the true numbers and with one moved.
    let idle = |w: &mut Witness| {
        w.0[0].idle[new] = 1;
        set(w, new, 0);
    };
    caught_by(LOOKUP, || case.forged(idle));
    caught_by(LOOKUP, || {
        case.forged(|w| {
            w.0[0].other[new] += w.0[0].relevant[new];
            w.0[0].relevant[new] = 0;
            idle(w);
        })
    });
    // Its positions are said not to reach the threshold.
    caught_by(LOOKUP, || {
        case.forged(|w| {
            let of_row = (w.0[0].reaches.iter_mut().zip(row)).filter(|(_, r)| **r == new as i64);
            of_row.for_each(|(reaches, _)| *reaches = 0);
            let scores = &case.requests[0].scores;
            assert_eq!(scores.len(), row.len());
            w.0[0].count_positions(row, case.rows);
            set(w, new, 0);
        })
    });
    // A row without a relevant position is said to have one.
    let kept = opened(&case.kept);
    let quiet = case.find(|r, w| w.idle[r] == 1 && kept[r] == 1 && w.after()[r] == 0);
    caught_by(LOOKUP, || {
        case.forged(|w| {
            w.0[0].idle[quiet] = 0;
            set(w, quiet, 1);
        })
    });
    // A relevant position without a row lists no row.
    caught_by(LOOKUP, || {
        case.forged(|w| {
            w.0[0].idle[quiet] = 0;
            w.0[0].relevant[quiet] = 1;
            w.0[0].unplaced[1] -= 1;
            set(w, quiet, 1);
        })
    });
    // Places behind the last row's are read by no claim.
    assert!(case.forged(|w| {
        w.0[0].draws.column.push(1);
        w.0[0].idle.push(1);
        w.0[0].relevant.push(3);
    }));
}

/// Requests act one by one, in one proof and from proof to proof.
#[test]
fn sets_grow_in_the_order_of_the_ledger() {
    let case = Case::several();
    let honest = case.witness();
    let [row, kept, before] = [&case.row, &case.kept, &case.before].map(opened);
    // What the first record lists, and the second one does not list by itself.
    let alone = |w: &Witness, of: &[i64]| {
        let statement = case.statement();
        let seed = &case.seeds[1];
        let slot = statement.records[1].slot;
        let kappa = noise_key(seed, slot.beacon, slot.slot);
        let stream = words(kappa, statement.blocks().count);
        let draws = Draws::new(&drawn_statement(&statement), &stream).unwrap();
        assert_eq!(w.0[1].draws.drawn[1], draws.drawn[1]);
        RecordWitness::new(&statement, &case.requests[1], draws, [row, kept, of]).unwrap()
    };
    assert_eq!(
        alone(&honest, honest.0[0].after()).after(),
        honest.0[1].after()
    );
    let apart = alone(&honest, before);
    assert_ne!(
        apart.after(),
        honest.0[1].after(),
        "the case distinguishes the sets"
    );
    // Two requests on one set.
    caught_by(LOOKUP, || case.forged(|w| w.0[1] = alone(w, before)));
    // The same records in one proof each: every proof starts from the set that the one before it yields.
    let single = |k: usize, before: &Column| {
        let set = opened(before).to_vec();
        let mut next = Case::small([k as u64, 1], set);
        next.before = before.clone();
        next
    };
    let first = single(0, &case.before);
    let second = single(1, &first.after[0]);
    // The second record is proved before the first.
    let proof = super::prove(&second.statement(), second.inputs(), false).unwrap();
    assert!(first.accepted(&super::prove(&first.statement(), first.inputs(), false).unwrap()));
    assert_eq!(opened(&second.after[0]), honest.0[1].after());
    assert_eq!(second.requests[0].positions, case.requests[1].positions);
    assert!(second.accepted(&proof));
    // A skipped record, a fork and a cleared set are other statements: the proof does not suit this one.
    for other in [
        &first.before,
        &second.after[0],
        &column(first.index.layout, vec![0; 9], 9),
    ] {
        let other = single(1, other);
        let proof = other.proved();
        assert!(other.accepted(&proof));
        assert!(!second.accepted(&proof));
        // The prover states the true set, and opens the other one.
        let mut lying = single(1, &first.after[0]);
        lying.before.opening.clone_from(&other.before.opening);
        lying.answer();
        assert!(!lying.accepted(&lying.proved()));
    }
    // The record states another set after it than the one that follows, and opens the one that follows.
    for stated in [
        &first.after[0],
        &first.before,
        &column(first.index.layout, vec![1; 9], 9),
    ] {
        let mut lying = single(1, &first.after[0]);
        lying.records[0].after.clone_from(&stated.rows);
        assert!(!lying.accepted(&lying.proved()));
        let refused = super::prove(&lying.statement(), lying.inputs(), false).err();
        let reason = "request 0: the commitment is not to the rows that are listed after it";
        assert!(refused.unwrap().to_string().ends_with(reason));
    }
    // The right set under other blindings is another commitment.
    assert!(!second.accepted(&{
        let mut other = single(1, &first.after[0]);
        other.blindings[0][0] += Fr::ONE;
        other.answer();
        let proof = other.proved();
        assert!(other.accepted(&proof));
        proof
    }));
}

#[test]
fn false_chance_is_refused() {
    const CHOICE: &str = "constraint: coins below the bound";
    // The chance of one row decides: neither the set nor relevance lists it.
    let decisive = |case: &Case, r: usize, w: &RecordWitness| {
        let [kept, before] = [&case.kept, &case.before].map(opened);
        before[r] == 0 && (kept[r] == 0 || w.idle[r] == 1)
    };
    let with = |case: &Case, bit: i64| {
        let witness = case.witness();
        let w = &witness.0[0];
        (0..case.rows).find(|r| decisive(case, *r, w) && w.draws.drawn[1][*r] == bit)
    };
    let cases = (0..40).map(|k| Case::small([k, 1], vec![0, 0, 0, 0, 1, 0, 0, 0, 0]));
    let mut cases = cases.filter(|case| with(case, 1).is_some() && with(case, 0).is_some());
    let case = cases.next().expect("chance lists a row in one of 40 slots");
    let flipped = |w: &mut Witness, r: usize| {
        let record = &mut w.0[0];
        record.draws.drawn[1][r] ^= 1;
        record.draws.column[r] = record.draws.drawn[1][r];
        case.follow(record, 0);
    };
    for r in [1, 0].map(|bit| with(&case, bit).unwrap()) {
        caught_by(CHOICE, || case.forged(|w| flipped(w, r)));
        // The set has the bit, and the draws do not.
        caught_by(LOOKUP, || {
            case.forged(|w| {
                let record = &mut w.0[0];
                record.draws.column[r] ^= 1;
                case.follow(record, 0);
            })
        });
    }
    // A prover with a chance above the stated one.
    let mut above = case.statement();
    above.chance.bound = 1 << 39;
    let witness = witness(&above, case.inputs()).unwrap();
    let own = case.witness();
    assert_ne!(witness.0[0].after(), own.0[0].after());
    caught_by(CHOICE, || case.forged(|w| *w = witness.clone()));
}

#[test]
fn false_answers_are_refused() {
    let case = Case::single();
    let (row, not) = (opened(&case.row), case.unlisted());
    let honest = case.witness();
    // The positions of an unlisted row count, and those of a listed one do not.
    let scores = &case.requests[0].scores;
    let scoring = |p: &usize| row[*p] == not as i64 && scores[*p] > 20;
    let unlisted = (0..row.len()).find(scoring).unwrap();
    let listed = honest.0[0].positions[0] as usize;
    let unplaced = row.iter().position(|r| *r == 9).unwrap();
    for p in [unlisted, listed, unplaced] {
        caught_by(LOOKUP, || {
            case.forged(|w| {
                w.0[0].sample[p] ^= 1;
                case.answer_by_marks(&mut w.0[0], 0);
            })
        });
    }
    // Other lists over the true marks.
    let listing = |w: &mut Witness, change: &dyn Fn(&mut Vec<i64>)| {
        let record = &mut w.0[0];
        change(&mut record.positions);
        record.shown.clone_from(&record.positions);
        record.fit(&case.statement(), &case.requests[0]).unwrap();
        record.fill();
    };
    let all = &honest.0[0].positions;
    let behind = (0..32).find(|p| !all.contains(p)).unwrap();
    for change in [
        &(|list: &mut Vec<i64>| list.swap(0, 1)) as &dyn Fn(&mut Vec<i64>),
        &|list: &mut Vec<i64>| list[1] = list[0],
        &move |list: &mut Vec<i64>| list[LISTED - 1] = behind,
        &|list: &mut Vec<i64>| list[0] = unlisted as i64,
    ] {
        assert!(!case.forged(|w| listing(w, change)));
    }
    // The score of a position of an unlisted row.
    caught_by("constraint: selection", || {
        case.forged(|w| {
            let record = &mut w.0[0];
            record.answer.scored[unlisted] = record.answer.quantised[unlisted];
            let step = record.answer.scored[unlisted];
            assert!(step > 0);
            let variables = case.index.layout.variables;
            let key_of = |p: usize, y: i64| key(y, p as i64, variables);
            let last = *record.positions.last().unwrap() as usize;
            // It stays below the last listed position, so only its product is false.
            let y = record.answer.scored[last];
            if key_of(unlisted, step) > key_of(last, y) {
                record.answer.scored[unlisted] = 0;
                record.answer.quantised[unlisted] += 1;
            } else {
                let distance = key_of(last, y) - 1 - key_of(unlisted, step);
                record.answer.distances[unlisted] = distance;
            }
        })
    });
}

/// A place without a score has no text, and a place with one has its own.
#[test]
fn texts_of_positions_without_a_score_are_refused() {
    // Two listed rows with few positions of a positive score.
    let row = (0..32).map(|p| [2, 2, 2, 2, 0, 2, 2, 1][p % 8]).collect();
    let case = Case::of(6, [4, 1], [row, vec![1, 0, 0], vec![1, 0, 0]]);
    let honest = &case.witness().0[0];
    let empty = honest.shown.iter().position(|p| *p == 32).unwrap();
    assert!(empty > 0, "{:?}", honest.shown);
    assert!(case.forged(|_| ()));
    let told = |w: &mut Witness, k: usize, filled: bool, shown: i64| {
        let record = &mut w.0[0];
        record.shown[k] = shown;
        record.places[EMPTY * k] = Fr::from(filled);
        record.places[EMPTY * k + 2] = from_small(shown);
    };
    let position = honest.positions[empty];
    caught_by("product: empty place", || {
        case.forged(|w| told(w, empty, true, position))
    });
    caught_by("product: place", || {
        case.forged(|w| told(w, empty, false, position))
    });
    caught_by("product: place", || {
        case.forged(|w| told(w, 0, true, position))
    });
    // A place with a text is called empty.
    caught_by("product: filled place", || {
        case.forged(|w| {
            told(w, 0, false, 32);
            w.0[0].places[1] = Fr::ZERO;
        })
    });
}

#[test]
fn an_honest_prover_proves_its_own_list_only() {
    let mut case = Case::single();
    let reason = |case: &Case| {
        let result = super::prove(&case.statement(), case.inputs(), false);
        result.err().map_or(String::new(), |e| e.to_string())
    };
    assert_eq!(reason(&case), "");
    case.requests[0].positions.swap(0, 1);
    assert!(reason(&case)
        .ends_with("request 0: the list is not the first positions of the listed rows"));
    case.requests[0].positions.swap(0, 1);
    case.seeds.clear();
    assert_eq!(reason(&case), "seeds: expected 1 of them, found 0");
    case.seeds = vec![seed_of(0)];
    case.records[0].slot.c_seed += Fr::ONE;
    assert!(!reason(&case).is_empty());
}

#[test]
fn parameters_end_where_the_errors_do() {
    let case = Case::single();
    let h = vec![vector_generators(1)[0]; 2];
    let refused = |name: &str, change: &dyn Fn(&mut PooledListingStatement)| {
        let mut other = case.statement();
        change(&mut other);
        match check(&other, &[]).err() {
            Some(Error::Invalid { field, .. }) => assert_eq!(field, name),
            Some(Error::Core(error)) => assert!(error.to_string().starts_with(name), "{error}"),
            other => panic!("{name}: {other:?}"),
        }
    };
    for bad in [0, 33, usize::MAX] {
        refused("rows", &|s| s.rows = bad);
        refused("positions per row", &|s| s.positions_per_row = bad);
        refused("listed positions", &|s| s.listed = bad);
    }
    for bad in [0, -1, 6 * 49 + 1] {
        refused("threshold", &|s| s.threshold = bad);
    }
    refused("bound", &|s| s.chance.bound = 0);
    refused("bound", &|s| s.chance.bound = 1 << 40);
    refused("lattice", &|s| s.lattice = 3);
    refused("records together", &|s| s.records.clear());
    refused("records together", &|s| {
        s.records = vec![s.records[0].clone(); 65]
    });
    let two: &[G1Affine] = &h;
    for label in ["row", "kept", "listed before", "listed after"] {
        for points in [&two[..0], two] {
            let mut other = case.statement();
            match label {
                "row" => other.row = points,
                "kept" => other.kept = points,
                "listed after" => other.records[0].after = points.to_vec(),
                _ => other.before = points,
            }
            let reason = check(&other, &[]).err().map(|e| e.to_string());
            let n = points.len();
            let expected = format!("{label}: expected 1 commitments, found {n} commitments");
            assert_eq!(reason, Some(expected));
        }
    }
}

#[test]
fn a_proof_is_for_its_statement_only() {
    let case = Case::several();
    let base = case.statement();
    // A new field has to be changed below.
    let PooledListingStatement {
        context: _,
        index: _,
        chance: _,
        rows: _,
        positions_per_row: _,
        row: _,
        kept: _,
        before: _,
        records: _,
        threshold: _,
        listed: _,
        lo: _,
        hi: _,
        lattice: _,
    } = &base;
    let other = Case::small([0, 3], vec![1; 9]);
    let mut index = case.index.clone();
    index.points[0] = vector_generators(1)[0];
    let h = [vector_generators(1)[0]];
    let changes: Vec<Change<PooledListingStatement>> = vec![
        Box::new(|s| s.context[0] ^= 1),
        Box::new(|s| s.index = &index),
        Box::new(|s| s.chance.bound += 1),
        Box::new(|s| s.chance.bound -= 256),
        Box::new(|s| s.rows += 1),
        Box::new(|s| s.rows -= 1),
        Box::new(|s| s.positions_per_row += 1),
        Box::new(|s| s.positions_per_row -= 1),
        Box::new(|s| s.row = &h),
        Box::new(|s| s.kept = &h),
        Box::new(|s| s.before = &h),
        Box::new(|s| s.before = &other.before.rows),
        Box::new(|s| s.records[0].after = h.to_vec()),
        Box::new(|s| s.records[2].after = h.to_vec()),
        Box::new(|s| s.records[2].after = s.records[1].after.clone()),
        Box::new(|s| s.threshold += 1),
        Box::new(|s| s.threshold -= 1),
        Box::new(|s| s.listed -= 1),
        Box::new(|s| s.lo += 1),
        Box::new(|s| s.hi += 1),
        Box::new(|s| s.lattice *= 2),
        Box::new(|s| s.records.swap(0, 1)),
        Box::new(|s| s.records.swap(1, 2)),
        Box::new(|s| s.records.truncate(2)),
        Box::new(|s| s.records[2].slot.c_seed += Fr::from(1u8)),
        Box::new(|s| s.records[2].slot.beacon += Fr::from(1u8)),
        Box::new(|s| s.records[2].slot.slot += Fr::from(1u8)),
        Box::new(|s| s.records[0].cq += Fr::from(1u8)),
        Box::new(|s| s.records[0].htopk += Fr::from(1u8)),
    ];
    only_for(&base, &case.proved(), &changes);
}

#[test]
fn a_transcript_forgets_nothing() {
    let case = Case::single();
    let base = case.statement();
    let mut other = base.clone();
    other.context[0] ^= 1;
    forgets_nothing(&base, &other, || case.proved());
}

#[test]
fn claims_and_openings_are_all_needed() {
    let case = Case::single();
    all_are_needed(&case.statement(), || case.proved(), false);
}

#[test]
#[ignore = "a prover skips each single claim in turn (a minute): make test-full"]
fn every_single_claim_is_needed() {
    let case = Case::several();
    let statement = case.statement();
    let blinding = |place| case.key.blinding(place);
    let before = || before_closing(&statement, case.inputs(), case.witness(), None, &blinding);
    let verify = |proof: &[u8]| crate::kit::verify(&statement, proof);
    no_claim_is_omitted(|| before().unwrap(), verify);
    every_point_is_opened(|| case.proved(), verify, true);
}

#[test]
#[ignore = "a prover states one false value, for each claim (a minute): make test-full"]
fn each_claim_stands_against_one_false_value() {
    let case = Case::single();
    each_claim_excludes_a_false_value(
        "pooled listing",
        || case.proved(),
        |proof| crate::kit::verify(&case.statement(), proof),
    );
}

/// Several rows of commitments, more of positions than of rows of the table.
fn large() -> Case {
    let (capacity, rows) = (3000i64, 1100i64);
    let row = (0..capacity)
        .map(|p| (p * 7 % (rows + 40)).min(rows))
        .collect();
    let bits = |k: i64| (0..rows).map(|r| i64::from(r * k % 10 < 3)).collect();
    Case::of(9, [0, 2], [row, bits(7), bits(3)])
}

#[test]
fn low_memory_gives_the_same_proof() {
    REPEATED.set(true);
    let case = large();
    let proof = |low: Option<Recomputed>| case.prove(case.witness(), low);
    let stored = proof(None);
    assert!(case.accepted(&stored));
    assert!(stored == proof(Some(LEAST)));
    // Blocks of the released size give one run; blocks of size three give several.
    assert!(stored == proof(Some(Recomputed { run: 3, ..LEAST })));
    REPEATED.set(false);
    assert_ne!(proof(None), stored, "nonces are fresh");
}

/// A changed proof is refused.
pub(crate) fn mutations(count: usize) {
    let case = Case::several();
    let statement = case.statement();
    refused("pooled listing", &case.proved(), count, |proof| {
        verify(&statement, proof).is_ok()
    });
}

/// The public sizes of a statement without known openings: positions, components, rows, positions per row, places, records.
fn with_sizes(sizes: [usize; 6], work: impl FnOnce(&PooledListingStatement)) {
    let [capacity, dimension, rows, positions_per_row, listed, count] = sizes;
    let layout = Layout::new(capacity).unwrap();
    let points = vector_generators(64);
    let some = |n: usize| -> Vec<G1Affine> { points.iter().cycle().copied().take(n).collect() };
    let index = IndexCommitment {
        layout,
        dimension,
        points: some(dimension * layout.rows()),
    };
    let length = 1 << layout.row_variables;
    let [row, of_rows] = [capacity, rows].map(|n| some(n.div_ceil(length)));
    let record = |k: u64| Record {
        slot: Slot {
            c_seed: Fr::from(31_337u64),
            beacon: Fr::from(5u8),
            slot: Fr::from(60 + k),
        },
        cq: Fr::from(11u8),
        htopk: Fr::from(12u8),
        after: of_rows.clone(),
    };
    work(&PooledListingStatement {
        context: [7; 32],
        index: &index,
        chance: Bernoulli { bound: CHANCE },
        rows,
        positions_per_row,
        row: &row,
        kept: &of_rows,
        before: &of_rows,
        records: (0..count as u64).map(record).collect(),
        threshold: THRESHOLD.min(49 * dimension as i64),
        listed,
        lo: 0,
        hi: 128,
        lattice: 64,
    });
}

pub(crate) fn simulate(sizes: [usize; 6]) {
    with_sizes(sizes, |statement| drop(crate::kit::simulate(statement)));
}

/// The most that a proof may be about, as one record.
pub(crate) fn largest() {
    simulate([
        MAX_CAPACITY,
        MAX_DIMENSION,
        MAX_ROWS,
        MAX_CAPACITY,
        crate::query::MAX_LISTED,
        1,
    ]);
}

/// Commitments without a known opening: to the index, the table, the sample and the set.
#[test]
fn proofs_are_simulated_without_a_secret() {
    for case in [Case::single(), Case::several()] {
        let sizes = [32, 6, 9, case.positions_per_row, LISTED, case.records.len()];
        let real = case.proved();
        with_sizes(sizes, |public| simulated(public, &real));
    }
}

/// Two tenants of one size have the same messages in the same order, with the same number of bytes.
#[test]
fn proofs_have_one_shape() {
    let of = |case: &Case| shape(|| case.proved());
    let base = Case::several();
    let mut all = Case::small([5, 3], vec![1; 9]);
    all.positions_per_row = base.positions_per_row;
    assert_eq!(of(&all), of(&base));
    // No position has a row, so no answer has a text.
    let mut none = Case::of(6, [0, 3], [vec![9; 32], vec![0; 9], vec![0; 9]]);
    none.positions_per_row = base.positions_per_row;
    assert_eq!(of(&none), of(&base));
    assert!(none.requests.iter().all(|r| r.positions == [32; LISTED]));
}

/// Tenants of one size take the same steps, up to the closing.
#[test]
fn proofs_take_the_same_work() {
    let base = large();
    let (capacity, rows) = (3000, 1100);
    let mut cases = [
        large(),
        Case::of(9, [3, 2], [vec![rows; 3000], vec![0; 1100], vec![0; 1100]]),
        Case::of(
            9,
            [0, 2],
            [
                (0..capacity).map(|p| p % 30).collect(),
                vec![1; 1100],
                vec![1; 1100],
            ],
        ),
    ];
    let work = |case: &Case| {
        let statement = case.statement();
        let blinding = |place| case.key.blinding(place);
        let mut session: Session<Prover> =
            Session::prover(statement.transcript(), statement.rows().unwrap(), b"").unwrap();
        let private = private(&statement, case.inputs(), case.witness(), &blinding).unwrap();
        ragaudit_field_simd::count::take();
        pooled_listing_protocol(&mut session, &statement, Some(private)).unwrap();
        ragaudit_field_simd::count::take()
    };
    cases
        .iter_mut()
        .for_each(|case| case.positions_per_row = 120);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let counts = pool.unwrap().install(|| {
        // The first one makes tables.
        work(&base);
        cases.each_ref().map(work)
    });
    assert!(counts.iter().all(|c| *c == counts[0]), "{counts:?}");
}
