//! Several records' noise proof and query proof, by all parties.
use super::*;
use crate::batch_size::{MAX_BATCH, MAX_ENTRIES};
use crate::fixtures::components;
use crate::group::vector_generators;
use crate::index::{Layout, MAX_DIMENSION};
use crate::kit::{absorbed, all_are_needed, simulated, verify as verify_as, Change};
use crate::malicious::{answers as said, caught_by, end_is_held_by, nothing_is_forgotten, Log};
use crate::malicious_claims::each_claim_excludes_a_false_value;
use crate::mle::{eq_table, prefix};
use crate::noise::tests::MAXIMUM_GAINS;
use crate::noise::{Noise, NoiseStatement};
use crate::query::inputs::{Openings, Secret, Witness};
use crate::query::{openings, prove_with, witnesses, QueryStatement, MAX_LISTED};
use ark_ff::{AdditiveGroup, Field};
use ragaudit_field_simd::selection::MAX_LATTICE;

/// A tenant with records, each of another account's slot.
pub(crate) struct Case {
    pub(crate) rows: Vec<i8>,
    pub(crate) key: IndexKey,
    pub(crate) index: Arc<IndexCommitment>,
    pub(crate) parameters: Parameters,
    pub(crate) records: Vec<Record>,
    pub(crate) seeds: Vec<Seed>,
    pub(crate) answers: Vec<Answer>,
}

fn case(count: usize, [capacity, dimension, listed]: [usize; 3], gains: &[u32]) -> Case {
    let key = IndexKey([9; 32]);
    let rows = components(5, capacity * dimension);
    let index = Arc::new(commit_index(&rows, dimension, capacity, &key).unwrap());
    let parameters = Parameters {
        window: [4; 32],
        gains: gains.to_vec(),
        listed,
        lo: 5,
        hi: 60,
        lattice: 32,
        sample: None,
    };
    let mut case = Case {
        rows,
        key,
        index,
        parameters,
        records: Vec::new(),
        seeds: Vec::new(),
        answers: Vec::new(),
    };
    for k in 0..count as u64 {
        case.answer(k, components(70 + k, dimension));
    }
    case
}

/// Small, and neither records nor positions a power of two.
pub(crate) fn small() -> Case {
    case(3, [12, 3, 2], &[1, 8])
}

/// A tenant that lists the exact first positions.
pub(crate) fn exact() -> Case {
    case(2, [12, 3, 2], &[])
}

impl Case {
    /// Adds a record with its list.
    fn answer(&mut self, k: u64, query: Vec<i8>) {
        let seed = Seed([2 * k, 2 * k + 1].map(Fr::from));
        let slot = Slot {
            c_seed: seed_commitment(&seed),
            beacon: Fr::from(8 + k),
            slot: Fr::from(90 + k),
        };
        let scores: Vec<i32> = scores(&self.rows, &query);
        let listed = listed(&self.parameters, &seed, &slot, &scores);
        let (record, answer) = request(slot, 77 + k, (query, &scores, &listed), [500 + k, 600 + k]);
        self.records.push(record);
        self.seeds.push(seed);
        self.answers.push(answer);
    }

    /// Noise proof and query proof; the noise proof is empty without gains.
    pub(crate) fn prove(&self, low_memory: bool) -> Result<[Vec<u8>; 2]> {
        let (index, parameters) = (&self.index, &self.parameters);
        let result = match parameters.gains.is_empty() {
            true => DrawnProof::default(),
            false => {
                let slots = self.of_slots();
                prove_noise_as::<MaliciousProver>(
                    index,
                    parameters,
                    &slots,
                    &self.seeds,
                    low_memory,
                )?
            }
        };
        let proven = ProvenColumns {
            noise: &result.columns,
            sample: None,
        };
        let proof = prove_as::<MaliciousProver>(
            index,
            parameters,
            &self.records,
            &self.answers,
            &result.proof,
            proven,
            &self.key,
            low_memory,
        )?;
        Ok([result.proof, proof])
    }

    pub(crate) fn item<'a>(&'a self, parts: &'a [Vec<u8>; 2]) -> Item<'a> {
        Item {
            records: self.records.clone(),
            parts: [&parts[0], &parts[1]],
        }
    }

    fn verify(&self, parts: &[Vec<u8>; 2]) -> Result<()> {
        verify(&self.index, &self.parameters, self.item(parts))
    }

    fn of_slots(&self) -> Vec<Slot> {
        self.records.iter().map(|record| record.slot).collect()
    }

    fn slots(&self) -> NoiseStatement {
        noise_statement(&self.index, &self.parameters, &self.of_slots())
    }

    fn noise_proofs(&self) -> DrawnProof {
        drawn::prove_as::<MaliciousProver, _>(&self.slots(), &self.seeds, false).unwrap()
    }

    fn queries<'a>(&'a self, noise: &'a [Column]) -> QueryStatement<'a> {
        query_statement(&self.index, &self.parameters, &self.records, b"", noise)
    }

    fn proved(&self, noise: &[Column]) -> Vec<u8> {
        let proven = ProvenColumns {
            noise,
            sample: None,
        };
        let statement = self.queries(noise);
        query::prove_as::<MaliciousProver>(&statement, &self.answers, proven, &self.key, false)
            .unwrap()
    }

    /// Whether a prover without checks is accepted with this noise and these witnesses.
    fn forged(&self, noise: &[Column], false_value: impl Fn(&mut Vec<Witness>)) -> bool {
        let statement = self.queries(noise);
        let openings: Openings = openings(
            &statement,
            ProvenColumns {
                noise,
                sample: None,
            },
        )
        .unwrap();
        let mut witnesses = witnesses(&statement, &self.answers, &openings).unwrap();
        false_value(&mut witnesses);
        let secret = Secret {
            answers: &self.answers,
            witnesses: &witnesses,
            openings,
            key: &self.key,
        };
        let proof = prove_with::<MaliciousProver>(&statement, &secret, None).unwrap();
        verify_as(&statement, &proof).is_ok()
    }
}

#[test]
fn records_verify_as_a_batch() {
    for (count, sizes, gains) in [
        (1, [12, 3, 2], &[1, 8][..]),
        (2, [1, 1, 1], &[1]),
        (3, [70, 65, 4], &[]),
        (5, [81, 8, 5], &[1, 8, 64]),
        (9, [1025, 3, 5], &[1]),
        (MAX_BATCH, [2, 2, 2], &[1]),
    ] {
        let case = case(count, sizes, gains);
        let parts = case.prove(false).unwrap();
        assert_eq!(case.verify(&parts), Ok(()), "{count}");
        assert_eq!(parts[0].is_empty(), gains.is_empty());
    }
    let maximum = case(MAX_BATCH + 1, [2, 2, 2], &[1]);
    let failure = maximum.prove(false).map(drop).unwrap_err().to_string();
    assert!(failure.contains("1 to 64"), "{failure}");
    let mut sampled = small();
    sampled.parameters.sample = Some(vec![sampled.index.points[0]]);
    let failure = sampled.prove(false).map(drop).unwrap_err().to_string();
    assert!(failure.contains("1 to 1"), "{failure}");
}

#[test]
fn low_memory_gives_the_same_proofs() {
    let case = case(3, [1500, 3, 5], &[1, 8]);
    REPEATED.set(true);
    let [sample, anew] = [false, true].map(|low| case.prove(low).unwrap());
    REPEATED.set(false);
    assert_eq!(case.verify(&anew), Ok(()));
    assert!(sample == anew);
    let [one, other] = [(); 2].map(|()| small().prove(false).unwrap());
    assert!((0..2).all(|k| one[k] != other[k]), "nonces are fresh");
}

#[test]
fn proofs_are_for_their_records_only() {
    let case = small();
    let parts = case.prove(false).unwrap();
    assert_eq!(case.verify(&parts), Ok(()));
    let changes: [fn(&mut Case); 17] = [
        |c| c.parameters.window[5] ^= 1,
        |c| c.parameters.gains[1] = 7,
        |c| c.parameters.gains = Vec::new(),
        |c| c.parameters.listed -= 1,
        |c| c.parameters.lo += 1,
        |c| c.parameters.hi += 1,
        |c| c.parameters.lattice *= 2,
        |c| c.records[1].slot.c_seed += Fr::ONE,
        |c| c.records[1].slot.beacon += Fr::ONE,
        |c| c.records[1].slot.slot += Fr::ONE,
        |c| c.records[1].context += Fr::ONE,
        |c| c.records[1].cq += Fr::ONE,
        |c| c.records[1].htopk += Fr::ONE,
        // In another order, one fewer, one twice.
        |c| c.records.swap(0, 2),
        |c| c.records.truncate(2),
        |c| c.records.push(c.records[2]),
        |c| {
            let rows = components(6, c.rows.len());
            c.index = Arc::new(commit_index(&rows, 3, 12, &c.key).unwrap());
        },
    ];
    for (i, change) in changes.iter().enumerate() {
        let mut other = small();
        change(&mut other);
        assert!(other.verify(&parts).is_err(), "change {i}");
    }
    // The noise proof is part of the query proof's statement.
    let [first, second] = [(); 2].map(|()| case.prove(false).unwrap());
    let mixed = [first[0].clone(), second[1].clone()];
    assert!(case.verify(&mixed).is_err());
    // Every field of a statement is absorbed; a new one has to be changed below.
    let noise = case.noise_proofs().columns;
    let base = case.queries(&noise);
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
    let others: [Change<QueryStatement>; 12] = [
        Box::new(|s| s.context[0] ^= 1),
        Box::new(|s| s.noise.truncate(2)),
        Box::new(|s| s.noise.swap(0, 1)),
        Box::new(|s| s.gains[0] = 2),
        Box::new(|s| s.gains.push(64)),
        Box::new(|s| s.records[2][0] += Fr::ONE),
        Box::new(|s| s.records[2][1] += Fr::ONE),
        Box::new(|s| s.records.truncate(2)),
        Box::new(|s| s.listed += 1),
        Box::new(|s| s.lo += 1),
        Box::new(|s| s.hi += 1),
        Box::new(|s| s.lattice *= 2),
    ];
    absorbed(&base, &others);
    let others: [Change<NoiseStatement>; 7] = [
        Box::new(|s| s.context[0] ^= 1),
        Box::new(|s| s.slots[1].c_seed += Fr::ONE),
        Box::new(|s| s.slots[1].beacon += Fr::ONE),
        Box::new(|s| s.slots[1].slot += Fr::ONE),
        Box::new(|s| s.slots.truncate(2)),
        Box::new(|s| s.capacity += 1),
        Box::new(|s| s.distribution.gains[0] = 2),
    ];
    absorbed(&case.slots(), &others);
}

/// For the tests that prove it many times.
fn tiny() -> Case {
    case(2, [5, 3, 2], &[1, 8])
}

#[test]
fn transcripts_forget_nothing() {
    let case = tiny();
    let slots = case.slots();
    nothing_is_forgotten(
        || case.noise_proofs().proof,
        |proof| verify_as(&slots, proof),
    );
    let noise = case.noise_proofs().columns;
    let statement = case.queries(&noise);
    nothing_is_forgotten(|| case.proved(&noise), |proof| verify_as(&statement, proof));
}

fn skips_no_claim(each: bool) {
    let case = tiny();
    all_are_needed(&case.slots(), || case.noise_proofs().proof, each);
    let noise = case.noise_proofs().columns;
    all_are_needed(&case.queries(&noise), || case.proved(&noise), each);
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
    let noise = case.noise_proofs().columns;
    let statement = case.queries(&noise);
    let prove = || case.proved(&noise);
    each_claim_excludes_a_false_value("queries", prove, |proof| verify_as(&statement, proof));
}

#[test]
#[ignore = "a prover skips each single claim in turn (a minute): make test-full"]
fn every_single_claim_is_needed() {
    skips_no_claim(true);
}

/// A record cannot use another record's table of positions and noised scores, noise, query or scores.
#[test]
fn records_do_not_borrow_from_each_other() {
    let case = small();
    let noise = case.noise_proofs().columns;
    assert!(case.forged(&noise, |_| ()));
    let n = case.index.layout.variables;
    // A position with its noised score in another record, and the mark in that record's table.
    let other = (0..12).find(|p| !case.answers.iter().any(|a| a.positions.contains(p)));
    let p = other.expect("lists are short") as usize;
    let false_value = |w: &mut Vec<Witness>| {
        let y = noised(&noise[1], &w[1], p);
        let minimum = *case.answers[0].positions.last().unwrap();
        assert_ne!(y, noised(&noise[0], &w[0], p));
        let key = |p: i64, y: i64| crate::query::inputs::key(y, p, n);
        let last = w[0].noised.len() - 1;
        w[0].noised[last] = y;
        // The rest of the list follows from the position in the last place.
        let first = key(case.answers[0].positions[0], w[0].noised[0]);
        w[0].order[last - 1] = first - key(minimum, y) - 1;
        w[1].selected[p] += 1;
    };
    assert!(!case.forged(&noise, false_value));
    // Noise of another record's slot, with the list that it makes.
    let mut turned = small();
    turned
        .answers
        .iter_mut()
        .zip([1, 0, 2])
        .for_each(|(answer, k)| {
            let noise: Vec<i32> = values(&noise[k]).iter().map(|z| *z as i32).collect();
            let scores: Vec<i32> = answer.scores.iter().map(|s| *s as i32).collect();
            let window = ScoreWindow::new(5, 60, 32).unwrap();
            let listed = noised_top_k(&scores, &window, &noise, 2).unwrap();
            answer.positions = listed.iter().map(|p| *p as i64).collect();
        });
    for (record, answer) in turned.records.iter_mut().zip(&turned.answers) {
        record.htopk = list_hash(answer.list_salt, &answer.positions);
    }
    let mut opened = noise.clone();
    let openings = [1, 0, 2].map(|k| noise[k].opening.clone());
    opened
        .iter_mut()
        .zip(openings)
        .for_each(|(c, o)| c.opening = o);
    assert!(!turned.forged(&opened, |_| ()));
    // Another record's query behind cq, and its scores.
    let mut swapped = small();
    swapped.answers.swap(0, 1);
    assert!(!swapped.forged(&noise, |_| ()), "queries changed round");
    let mut swapped = small();
    let [a, b] = [0, 1].map(|k| swapped.answers[k].scores.clone());
    (swapped.answers[0].scores, swapped.answers[1].scores) = (b, a);
    assert!(!swapped.forged(&noise, |_| ()), "scores changed round");
}

fn values(column: &Column) -> &[i64] {
    &column.opening.as_ref().unwrap().values
}

fn noised(noise: &Column, witness: &Witness, p: usize) -> i64 {
    witness.scored[p] + values(noise)[p]
}

/// A false record among honest ones is refused, as it is in a proof of its own.
#[test]
fn one_false_record_spoils_the_proof() {
    let base = small();
    let noise = base.noise_proofs().columns;
    type FalseValue = fn(&mut Witness);
    let false_values: [(&str, FalseValue); 3] = [
        ("constraint: lookup layer", |w| {
            w.quantised[3] -= 1;
            w.scored[3] -= 1;
        }),
        ("constraint: selection", |w| w.distances[4] += 1),
        ("constraint: order of the list", |w| w.order[0] += 1),
    ];
    for (claim, false_value) in false_values {
        for k in [0, 2] {
            let forged = || base.forged(&noise, |w| false_value(&mut w[k]));
            if claim == "constraint: lookup layer" {
                assert!(!forged());
            } else {
                caught_by(claim, forged);
            }
        }
    }
    // Two false records with errors of opposite sign.
    let both = |w: &mut Vec<Witness>| {
        w[0].distances[4] += 1;
        w[1].distances[4] -= 1;
    };
    assert!(!base.forged(&noise, both));
    // cq and the components.
    for change in [
        |c: &mut Case| c.records[2].cq += Fr::ONE,
        |c: &mut Case| c.answers[2].query_salt += Fr::ONE,
        |c: &mut Case| c.answers[2].query[0] += 16,
        |c: &mut Case| c.answers[2].scores[0] += 1,
        |c: &mut Case| c.answers[2].list_salt += Fr::ONE,
        |c: &mut Case| c.key = IndexKey([4; 32]),
    ] {
        let mut other = small();
        change(&mut other);
        assert!(!other.forged(&noise, |_| ()));
    }
}

/// A prover that ends the selection's sumcheck in a false value compensates for it in the next message: one claim each
/// protects the product with the marks, the squares of the marks, and the columns' values.
#[test]
fn the_selection_ends_in_the_columns_values() {
    let case = small();
    let noise = case.noise_proofs().columns;
    let statement = case.queries(&noise);
    let within = |log: &Log| {
        let of_rounds = said(log, "selection");
        let point = &of_rounds[of_rounds.len() / 2..];
        let (record, place) = point.split_at(2);
        let every: Fr = eq_table(record)[..3].iter().sum();
        prefix(place, 12) * every
    };
    type Factor<'a> = &'a dyn Fn(&Log) -> Fr;
    let claims: [(&str, usize, Factor); 3] = [
        ("product: selection", 3, &|log| within(log).double()),
        ("product: selected rows", 4, &|log| {
            said(log, "selected rows")[0]
        }),
        ("column claim: selection", 2, &|log| -within(log)),
    ];
    for (claim, place, factor) in claims {
        end_is_held_by(
            claim,
            ["selection"; 2],
            place,
            factor,
            || case.proved(&noise),
            |proof| verify_as(&statement, proof),
        );
    }
}

/// Scores that differ by opposite amounts in two records: their sum is right, their combination is not.
#[test]
fn scores_are_linked_one_by_one() {
    let mut case = small();
    let noise = case.noise_proofs().columns;
    case.answers[0].scores[0] += 1;
    case.answers[1].scores[0] -= 1;
    assert!(!case.forged(&noise, |_| ()));
}

#[test]
fn draws_are_each_slot_s_own() {
    let case = small();
    let statement = case.slots();
    let noise_proofs = case.noise_proofs();
    assert_eq!(verify_as(&statement, &noise_proofs.proof), Ok(()));
    for (k, column) in noise_proofs.columns.iter().enumerate() {
        let slot = &case.records[k].slot;
        let kappa = noise_key(&case.seeds[k], slot.beacon, slot.slot);
        let drawn = draw(&kappa, 12, &[1, 8]).unwrap();
        let same = values(column).iter().zip(&drawn);
        assert!(same.into_iter().all(|(a, b)| *a == i64::from(*b)));
    }
    // Another slot's seed, or the same draws for two slots.
    for seeds in [[1, 0, 2], [0, 0, 2]] {
        let seeds = seeds.map(|k| Seed(case.seeds[k].0));
        let result = drawn::prove_as::<MaliciousProver, _>(&statement, &seeds, false).unwrap();
        assert!(verify_as(&statement, &result.proof).is_err());
    }
    let failure = drawn::prove_as::<MaliciousProver, _>(&statement, &case.seeds[..2], false);
    assert!(failure.is_err());
}

#[test]
fn a_batch_names_the_bad_groups() {
    let groups: Vec<Case> = [3, 1, 2]
        .map(|count| case(count, [12, 3, 2], &[1, 8]))
        .into();
    let mut parts: Vec<_> = groups.iter().map(|g| g.prove(false).unwrap()).collect();
    let (index, parameters) = (&groups[0].index, &groups[0].parameters);
    let bad = |parts: &[[Vec<u8>; 2]]| -> Vec<usize> {
        let items: Vec<Item> = groups.iter().zip(parts).map(|(g, p)| g.item(p)).collect();
        numbers(&verify_all(index, parameters, &items))
    };
    assert_eq!(bad(&parts), []);
    for k in 0..2 {
        let last = parts[2][k].len() - 1;
        parts[2][k][last] ^= 1;
        assert_eq!(bad(&parts), [2]);
        parts[2][k][last] ^= 1;
    }
    parts.swap(0, 1);
    assert_eq!(bad(&parts), [0, 1]);
}

/// A record that an honest prover cannot prove is named before there is a proof.
#[test]
fn the_prover_names_a_bad_record() {
    let mut case = small();
    case.answers[1].positions[0] = 12;
    let failure = case.prove(false).map(drop).unwrap_err().to_string();
    assert!(failure.contains("answer 1"), "{failure}");
    case.answers.truncate(2);
    assert!(case.prove(false).is_err());
}

/// Changed proofs, in a batch with another one.
pub(crate) fn mutations(count: usize) {
    let [good, bad] = [case(2, [5, 3, 2], &[1]), case(3, [5, 3, 2], &[1])];
    let (of_good, of_bad) = (good.prove(false).unwrap(), bad.prove(false).unwrap());
    for (name, part) in [("certificate of several", 0), ("query proof of several", 1)] {
        refused(name, &of_bad[part], count, |proof| {
            let mut parts = [&of_bad[0][..], &of_bad[1]];
            parts[part] = proof;
            let items = [
                good.item(&of_good),
                Item {
                    records: bad.records.clone(),
                    parts,
                },
            ];
            numbers(&verify_all(&good.index, &good.parameters, &items)) != [1]
        });
    }
}

/// The most that a noise proof of several slots may be about.
pub(crate) fn largest_slots() {
    let positions = MAX_ENTRIES / MAX_BATCH / MAXIMUM_GAINS.len().next_power_of_two();
    simulate_slots(MAX_BATCH, positions, &MAXIMUM_GAINS);
}

pub(crate) fn simulate_slots(count: usize, capacity: usize, gains: &[u32]) {
    let slot = |k: u64| {
        let [c_seed, beacon, slot] = [k, 2, 3].map(Fr::from);
        Slot {
            c_seed,
            beacon,
            slot,
        }
    };
    crate::kit::simulate(&NoiseStatement {
        context: [1; 32],
        slots: (0..count as u64).map(slot).collect(),
        capacity,
        distribution: Noise {
            gains: gains.to_vec(),
        },
    });
}

/// The most that a proof of several queries may be about.
pub(crate) fn largest() {
    let sizes = [MAX_ENTRIES / MAX_BATCH, MAX_DIMENSION, MAX_LISTED];
    simulate(MAX_BATCH, sizes, &[1]);
}

/// An index without a known opening.
pub(crate) fn simulate(count: usize, [capacity, dimension, listed]: [usize; 3], gains: &[u32]) {
    let layout = Layout::new(capacity).unwrap();
    let point = vector_generators(1)[0];
    let index = IndexCommitment {
        layout,
        dimension,
        points: vec![point; dimension * layout.rows()],
    };
    let length = 1 << crate::batch_size::row_variables(layout, count);
    let column = vec![point; capacity.div_ceil(length)];
    let noise = match gains.is_empty() {
        true => Vec::new(),
        false => vec![&column[..]; count],
    };
    crate::kit::simulate(&QueryStatement {
        context: [2; 32],
        index: &index,
        noise,
        sample: None,
        gains: gains.to_vec(),
        records: vec![[Fr::ONE; 2]; count],
        listed,
        lo: 10,
        hi: 90,
        lattice: MAX_LATTICE,
    });
}

/// Public values only, commitments without a known opening, and an oracle with some answers chosen in advance.
#[test]
fn proofs_are_simulated_without_secrets() {
    let case = small();
    let noise_proofs = case.noise_proofs();
    let mut slots = case.slots();
    let c_seed = Fr::from(31_337u64);
    slots.slots.iter_mut().for_each(|slot| slot.c_seed = c_seed);
    simulated(&slots, &noise_proofs.proof);
    let noise = noise_proofs.columns;
    let mut public = case.queries(&noise);
    let commitments = [31_338u64, 31_339].map(Fr::from);
    public.records.iter_mut().for_each(|r| *r = commitments);
    simulated(&public, &case.proved(&noise));
}
