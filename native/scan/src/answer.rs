//! An answer's whole proof, certificate and query proof, and many of them at once: `docs/scan/verification.md`.
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::closing::Equation;
use crate::error::{Error, Result};
use crate::group::{encode_scalar, Fr};
use crate::index::{IndexCommitment, IndexKey};
use crate::noise::{check_noise, prove_noise, Certificate, NoiseStatement, Seed};
use crate::query::{check_query, prove_query, Answer, QueryStatement};
use crate::session::Column;
use crate::transcript::Transcript;

/// What a tenant's policy fixes for all its answers.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Digest of everything a window fixes: protocol, opening, policy, tenant.
    pub window: [u8; 32],
    pub gains: Vec<u32>,
    pub listed: usize,
    pub lo: i64,
    pub hi: i64,
    pub lattice: i64,
}

/// One slot, published before its query exists.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub c_seed: Fr,
    pub beacon: Fr,
    pub slot: Fr,
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub slot: Slot,
    /// Digest of everything else that the record says.
    pub context: Fr,
    pub cq: Fr,
    pub htopk: Fr,
}

fn noise_statement(
    index: &IndexCommitment,
    parameters: &Parameters,
    slot: &Slot,
) -> NoiseStatement {
    NoiseStatement {
        context: parameters.window,
        c_seed: slot.c_seed,
        beacon: slot.beacon,
        slot: slot.slot,
        capacity: index.layout.capacity,
        gains: parameters.gains.clone(),
    }
}

fn query_statement<'a>(
    index: &'a IndexCommitment,
    parameters: &Parameters,
    record: &Record,
    certificate: &[u8],
    noise: &'a Column,
) -> QueryStatement<'a> {
    let mut hash = Sha256::new().chain_update(b"rag-audit/scan/v1/record");
    hash.update(parameters.window);
    for x in [
        &record.slot.c_seed,
        &record.slot.beacon,
        &record.slot.slot,
        &record.context,
    ] {
        hash.update(encode_scalar(x));
    }
    hash.update(Sha256::digest(certificate));
    QueryStatement {
        context: hash.finalize().into(),
        index,
        noise: &noise.rows,
        gains: parameters.gains.clone(),
        cq: record.cq,
        htopk: record.htopk,
        listed: parameters.listed,
        lo: parameters.lo,
        hi: parameters.hi,
        lattice: parameters.lattice,
    }
}

/// The certificate of a slot, before its query or after. In `low_memory` the prover makes its largest tables several
/// times instead of keeping them: the same certificate in more time.
pub fn certify(
    index: &IndexCommitment,
    parameters: &Parameters,
    slot: &Slot,
    seed: &Seed,
    low_memory: bool,
) -> Result<Certificate> {
    prove_noise(&noise_statement(index, parameters, slot), seed, low_memory)
}

/// The query proof of a record whose slot has this certificate; `low_memory` as for [`certify`].
#[allow(clippy::too_many_arguments)]
pub fn prove(
    index: &IndexCommitment,
    parameters: &Parameters,
    record: &Record,
    answer: &Answer,
    certificate: &[u8],
    noise: &Column,
    key: &IndexKey,
    low_memory: bool,
) -> Result<Vec<u8>> {
    let statement = query_statement(index, parameters, record, certificate, noise);
    prove_query(&statement, answer, noise, key, low_memory)
}

/// Both parts of one record's proof as sums that have to vanish.
fn check(
    index: &IndexCommitment,
    parameters: &Parameters,
    record: &Record,
    parts: [&[u8]; 2],
) -> Result<[Equation; 2]> {
    let [certificate, proof] = parts;
    let (noise, first) = check_noise(
        &noise_statement(index, parameters, &record.slot),
        certificate,
    )?;
    let second = check_query(
        &query_statement(index, parameters, record, certificate, &noise),
        proof,
    )?;
    Ok([first, second])
}

/// Verifies one record's certificate and query proof.
pub fn verify(
    index: &IndexCommitment,
    parameters: &Parameters,
    record: &Record,
    parts: [&[u8]; 2],
) -> Result<()> {
    let mut transcript = batch_transcript(index, parameters, &[(*record, parts)]);
    let [mut sum, second] = check(index, parameters, record, parts)?;
    sum.add(&second, transcript.challenge("weight"));
    if sum.holds(&index.points) {
        Ok(())
    } else {
        Err(Error::Rejected)
    }
}

/// Absorbs everything that the equations depend on, every record with its proof last: the weights that follow are drawn
/// after all of it is fixed.
fn batch_transcript(
    index: &IndexCommitment,
    parameters: &Parameters,
    records: &[(Record, [&[u8]; 2])],
) -> Transcript {
    let mut transcript = Transcript::new("batch");
    transcript.bytes("index", &index.digest());
    transcript.bytes("window", &parameters.window);
    transcript.integer("gain count", parameters.gains.len() as u64);
    for gain in &parameters.gains {
        transcript.integer("gain", u64::from(*gain));
    }
    transcript.integer("listed", parameters.listed as u64);
    for value in [parameters.lo, parameters.hi, parameters.lattice] {
        transcript.integer("score window", value as u64);
    }
    for (record, parts) in records {
        let Slot {
            c_seed,
            beacon,
            slot,
        } = &record.slot;
        for x in [
            c_seed,
            beacon,
            slot,
            &record.context,
            &record.cq,
            &record.htopk,
        ] {
            transcript.scalar("record", x);
        }
        for part in parts {
            transcript.bytes("proof", part);
        }
    }
    transcript
}

/// Indices of the records whose proofs do not verify, ascending. All equations are summed under random weights into
/// one multi-scalar multiplication; a sum that does not vanish is halved until the bad ones are found.
pub fn verify_batch(
    index: &IndexCommitment,
    parameters: &Parameters,
    records: &[(Record, [&[u8]; 2])],
) -> Vec<usize> {
    let mut transcript = batch_transcript(index, parameters, records);
    let weights: Vec<[Fr; 2]> = records
        .iter()
        .map(|_| [(); 2].map(|()| transcript.challenge("weight")))
        .collect();
    let checked: Vec<Result<Equation>> = records
        .par_iter()
        .zip(&weights)
        .map(|((record, parts), weights)| {
            let mut sum = Equation::default();
            for (equation, weight) in check(index, parameters, record, *parts)?
                .iter()
                .zip(weights)
            {
                sum.add(equation, *weight);
            }
            Ok(sum)
        })
        .collect();
    let (mut bad, mut left) = (Vec::new(), Vec::new());
    for (i, equation) in checked.into_iter().enumerate() {
        match equation {
            Err(_) => bad.push(i),
            Ok(sum) => left.push((i, sum)),
        }
    }
    bisect(index, &left, &mut bad);
    bad.sort_unstable();
    bad
}

pub(crate) fn bisect(
    index: &IndexCommitment,
    equations: &[(usize, Equation)],
    bad: &mut Vec<usize>,
) {
    let mut sum = Equation::default();
    for (_, equation) in equations {
        sum.add(equation, Fr::from(1u8));
    }
    if sum.holds(&index.points) {
        return;
    }
    match equations {
        [(i, _)] => bad.push(*i),
        _ => {
            let (low, high) = equations.split_at(equations.len() / 2);
            bisect(index, low, bad);
            bisect(index, high, bad);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::index::commit_index;
    use crate::mutations::refused;
    use ragaudit_core::commitment::pack_nibbles;
    use ragaudit_core::poseidon::{hash, hash_list};
    use ragaudit_core::selection::{noised_top_k, ScoreWindow};

    const CAPACITY: usize = 12;

    fn parameters() -> Parameters {
        Parameters {
            window: [4; 32],
            gains: vec![1, 8],
            listed: 2,
            lo: 5,
            hi: 60,
            lattice: 32,
        }
    }

    fn index(key: &IndexKey) -> (Vec<i8>, IndexCommitment) {
        let rows: Vec<i8> = (0..3 * CAPACITY).map(|i| (i * 5 % 15) as i8 - 7).collect();
        let index = commit_index(&rows, 3, CAPACITY, key).unwrap();
        (rows, index)
    }

    /// A record of slot `slot` with its certificate and proof.
    fn answered(slot: u64) -> (Record, Vec<u8>, Vec<u8>) {
        let (key, seed) = (IndexKey([9; 32]), Seed([Fr::from(1u8), Fr::from(2u8)]));
        let (rows, index) = index(&key);
        let query = vec![3i8, -7, slot as i8 % 7];
        let slot = Slot {
            c_seed: hash(&[1u8, 1, 2].map(Fr::from)).unwrap(),
            beacon: Fr::from(8u8),
            slot: Fr::from(slot),
        };
        let parameters = parameters();
        let certificate = certify(&index, &parameters, &slot, &seed, false).unwrap();
        let noise = certificate.noise.opening.as_ref().unwrap().values[..CAPACITY].to_vec();
        let scores: Vec<i64> = rows
            .chunks(3)
            .map(|row| {
                row.iter()
                    .zip(&query)
                    .map(|(a, b)| i64::from(*a) * i64::from(*b))
                    .sum()
            })
            .collect();
        let window = ScoreWindow::new(parameters.lo, parameters.hi, parameters.lattice).unwrap();
        let int32 = |v: &[i64]| v.iter().map(|x| *x as i32).collect::<Vec<_>>();
        let listed =
            noised_top_k(&int32(&scores), &window, &int32(&noise), parameters.listed).unwrap();
        let positions: Vec<i64> = listed.iter().map(|p| *p as i64).collect();
        let (query_salt, list_salt) = (Fr::from(5u8), Fr::from(6u8));
        let mut vector = vec![query_salt];
        vector.extend(pack_nibbles(&query));
        let mut list = vec![list_salt, Fr::from(positions.len() as u64)];
        list.extend(positions.iter().map(|p| Fr::from(*p as u64)));
        let record = Record {
            slot,
            context: Fr::from(77u8),
            cq: hash_list(4, &vector),
            htopk: hash_list(5, &list),
        };
        let answer = Answer {
            query,
            query_salt,
            positions,
            list_salt,
            scores,
        };
        let proof = prove(
            &index,
            &parameters,
            &record,
            &answer,
            &certificate.proof,
            &certificate.noise,
            &key,
            false,
        )
        .unwrap();
        (record, certificate.proof, proof)
    }

    /// A changed certificate or query proof is the one that its batch names.
    pub(crate) fn mutations(count: usize) {
        let (_, index) = index(&IndexKey([9; 32]));
        let parameters = parameters();
        let [good, bad] = [1, 2].map(answered);
        let others = [(good.0, [&good.1[..], &good.2[..]])];
        for (name, part) in [("certificate in a batch", 0), ("query proof in a batch", 1)] {
            let proof = [&bad.1, &bad.2][part];
            refused(name, proof, count, |proof| {
                let mut parts = [&bad.1[..], &bad.2[..]];
                parts[part] = proof;
                let named = verify_batch(&index, &parameters, &[others[0], (bad.0, parts)]);
                named != [1]
            });
        }
    }

    #[test]
    fn batch_weights_follow_everything() {
        let (rows, index) = index(&IndexKey([9; 32]));
        let (record, certificate, proof) = answered(1);
        let parameters = parameters();
        let other_index = commit_index(&rows, 3, CAPACITY, &IndexKey([8; 32])).unwrap();
        let (mut other_certificate, mut other_proof) = (certificate.clone(), proof.clone());
        *other_certificate.last_mut().unwrap() ^= 1;
        *other_proof.last_mut().unwrap() ^= 1;
        let base = (record, [&certificate[..], &proof[..]]);
        // A new field has to be changed below.
        let Parameters {
            window: _,
            gains: _,
            listed: _,
            lo: _,
            hi: _,
            lattice: _,
        } = &parameters;
        let Record {
            slot:
                Slot {
                    c_seed: _,
                    beacon: _,
                    slot: _,
                },
            context: _,
            cq: _,
            htopk: _,
        } = &record;
        let with = |change: &dyn Fn(&mut Parameters)| {
            let mut other = parameters.clone();
            change(&mut other);
            batch_transcript(&index, &other, &[base]).digest()
        };
        let about = |change: &dyn Fn(&mut Record)| {
            let mut other = base;
            change(&mut other.0);
            batch_transcript(&index, &parameters, &[other]).digest()
        };
        let of =
            |items: &[(Record, [&[u8]; 2])]| batch_transcript(&index, &parameters, items).digest();
        let one = Fr::from(1u8);
        let digests = [
            of(&[base]),
            of(&[base, base]),
            of(&[]),
            of(&[(record, [&other_certificate, &proof])]),
            of(&[(record, [&certificate, &other_proof])]),
            batch_transcript(&other_index, &parameters, &[base]).digest(),
            with(&|p| p.window[0] ^= 1),
            with(&|p| p.gains[1] = 7),
            with(&|p| p.gains.push(1)),
            with(&|p| p.listed += 1),
            with(&|p| p.lo += 1),
            with(&|p| p.hi += 1),
            with(&|p| p.lattice *= 2),
            about(&|r| r.slot.c_seed += one),
            about(&|r| r.slot.beacon += one),
            about(&|r| r.slot.slot += one),
            about(&|r| r.context += one),
            about(&|r| r.cq += one),
            about(&|r| r.htopk += one),
        ];
        for (k, digest) in digests.iter().enumerate() {
            assert!(!digests[..k].contains(digest), "change {k}");
        }
    }

    #[test]
    fn batches_name_the_bad_ones() {
        let (_, index) = index(&IndexKey([9; 32]));
        let parameters = parameters();
        let made: Vec<_> = (1..=3).map(answered).collect();
        let mut items: Vec<(Record, [&[u8]; 2])> = made
            .iter()
            .map(|(r, c, p)| (*r, [&c[..], &p[..]]))
            .collect();
        assert!(verify_batch(&index, &parameters, &items).is_empty());
        assert!(verify_batch(&index, &parameters, &[]).is_empty());
        verify(&index, &parameters, &items[0].0, items[0].1).unwrap();

        // Another record's certificate: one noise for two slots.
        items[1].1[0] = &made[0].1;
        assert_eq!(verify_batch(&index, &parameters, &items), [1]);
        assert_eq!(
            verify(&index, &parameters, &items[1].0, items[1].1),
            Err(Error::Rejected)
        );
        items[1].1 = [&made[1].1, &made[2].2];
        items[2].1[1] = &made[2].2[1..];
        assert_eq!(verify_batch(&index, &parameters, &items), [1, 2]);
        items[1].1 = [&made[1].1, &made[1].2];
        items[2].1 = [&made[2].1, &made[2].2];
        items[0].0.context += Fr::from(1u8);
        assert_eq!(verify_batch(&index, &parameters, &items), [0]);
        let mut other = parameters.clone();
        other.window[0] ^= 1;
        assert_eq!(verify_batch(&index, &other, &items), [0, 1, 2]);
    }
}
