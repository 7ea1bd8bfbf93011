//! The proof of one record of a listing tenant, and of many at once: `docs/scan/listing.md`.
//!
//! The certificates of the bits that a record relies on are verified beside it: whoever states a record has digested
//! them into its context.
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::answer::{Record, Slot};
use crate::batch::{self, Refusals};
use crate::channel::Proves;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{decode_points, encode_point, encode_scalar, Fr, G1Affine};
use crate::index::{IndexCommitment, IndexKey};
use crate::listing::{self, bit_column, check_listing, Bits, Listing, ListingStatement, Outcome};
use crate::prover::fractions::RUN;
use crate::prover::Prover;
use crate::transcript::{Hash, Oracle, Transcript};

/// What a listing tenant's policy and window fix for all its lists.
#[derive(Clone, Debug)]
pub struct Constants {
    /// Digest of everything a window fixes: protocol, opening, policy, tenant.
    pub window: [u8; 32],
    /// The verified certificate's commitments to the kept positions.
    pub kept: Vec<G1Affine>,
    pub threshold: i64,
    pub most: usize,
}

/// Encoded commitments to the bits of one record.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// The positions that win by chance, by the slot's verified certificate.
    pub chance: &'a [u8],
    /// What the account held before the record, by the one before it.
    pub held: &'a [u8],
    /// What it holds after the record.
    pub after: &'a [u8],
}

impl Rows<'_> {
    fn decode(&self) -> Result<[Vec<G1Affine>; 3]> {
        Ok([
            decode_points(self.chance)?,
            decode_points(self.held)?,
            decode_points(self.after)?,
        ])
    }
}

fn statement<'a>(
    index: &'a IndexCommitment,
    constants: &'a Constants,
    record: &Record,
    [chance, held, after]: [&'a [G1Affine]; 3],
) -> ListingStatement<'a> {
    let Slot {
        c_seed,
        beacon,
        slot,
    } = &record.slot;
    let mut hash = Sha256::new().chain_update(b"rag-audit/scan/v1/list");
    hash.update(constants.window);
    for x in [c_seed, beacon, slot, &record.context] {
        hash.update(encode_scalar(x));
    }
    ListingStatement {
        context: hash.finalize().into(),
        index,
        chance,
        kept: &constants.kept,
        held,
        after,
        cq: record.cq,
        htopk: record.htopk,
        threshold: constants.threshold,
        most: constants.most,
    }
}

/// The proof of a record's list and the encoded commitments to what the account holds after it, under these blindings, one
/// a row, which nothing else is committed to under. In `low_memory` the same in more time.
#[allow(clippy::too_many_arguments)]
pub fn prove(
    index: &IndexCommitment,
    constants: &Constants,
    record: &Record,
    listing: &Listing,
    bits: &Bits,
    blindings: Vec<Fr>,
    key: &IndexKey,
    low_memory: bool,
) -> Result<(Vec<u8>, Vec<u8>)> {
    prove_as::<Prover>(
        index, constants, record, listing, bits, blindings, key, low_memory,
    )
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn prove_as<P: Proves>(
    index: &IndexCommitment,
    constants: &Constants,
    record: &Record,
    listing: &Listing,
    bits: &Bits,
    blindings: Vec<Fr>,
    key: &IndexKey,
    low_memory: bool,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let of_policy = (constants.threshold, constants.most);
    let outcome = Outcome::new(index, of_policy, listing, bits)?;
    let after = bit_column(index.layout, outcome.after.clone(), blindings)?;
    let rows = [&bits.chance.rows[..], &bits.held.rows, &after.rows];
    let statement = statement(index, constants, record, rows);
    let columns = [bits.chance, bits.kept, bits.held, &after];
    let low_memory = low_memory.then_some(RUN);
    let proof = listing::prove_as::<P>(&statement, listing, &outcome, columns, key, low_memory)?;
    Ok((proof, after.rows.iter().flat_map(encode_point).collect()))
}

/// A record's proof as a sum that has to vanish.
fn check(
    index: &IndexCommitment,
    constants: &Constants,
    (record, rows, proof): &Item,
) -> Result<Equation> {
    let decoded = rows.decode()?;
    let rows = decoded.each_ref().map(|points| &points[..]);
    check_listing(&statement(index, constants, record, rows), proof)
}

/// Verifies one record's proof.
pub fn verify(index: &IndexCommitment, constants: &Constants, item: &Item) -> Result<()> {
    if check(index, constants, item)?.holds(&index.points) {
        Ok(())
    } else {
        Err(Error::Rejected)
    }
}

/// A record with its commitments and its proof.
pub type Item<'a> = (Record, Rows<'a>, &'a [u8]);

/// Starts with everything that the records of a batch share.
fn batch_transcript<O: Oracle>(index: &[u8; 32], constants: &Constants) -> Transcript<O> {
    let mut transcript = Transcript::new("list batch");
    transcript.bytes("index", index);
    transcript.bytes("window", &constants.window);
    transcript.integer("rows", constants.kept.len() as u64);
    for point in &constants.kept {
        transcript.point("kept", point);
    }
    transcript.integer("threshold", constants.threshold as u64);
    transcript.integer("most", constants.most as u64);
    transcript
}

/// Absorbs records with their proofs: the weights that follow are drawn after all of it is fixed.
fn absorb(transcript: &mut Transcript<impl Oracle>, items: &[Item]) {
    for (record, rows, proof) in items {
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
        for part in [rows.chance, rows.held, rows.after, proof] {
            transcript.bytes("proof", part);
        }
    }
}

/// Many records of one listing tenant, verified a chunk at a time: as [`crate::answer::Batch`].
pub struct Batch<O = Hash> {
    constants: Constants,
    digest: [u8; 32],
    batch: batch::Batch<O>,
}

impl<O: Oracle> Batch<O> {
    pub fn new(index: Arc<IndexCommitment>, constants: Constants) -> Self {
        let digest = index.digest();
        let transcript = batch_transcript(&digest, &constants);
        Self {
            constants,
            digest,
            batch: batch::Batch::new(index, transcript),
        }
    }

    /// As [`crate::answer::Batch::add`].
    pub fn add(&mut self, items: &[Item]) -> Refusals {
        let Self {
            constants, batch, ..
        } = self;
        let index = Arc::clone(&batch.index);
        batch.add(
            [items.len(), 1],
            |transcript| absorb(transcript, items),
            |i| Ok(vec![check(&index, constants, &items[i])?]),
        )
    }

    /// As [`crate::answer::Batch::holds`].
    pub fn holds(&self) -> bool {
        self.batch.holds()
    }

    /// As [`crate::answer::Batch::search`].
    pub fn search(&self, items: &[Item]) -> Refusals {
        let (index, constants) = (&self.batch.index, &self.constants);
        let mut transcript: Transcript<O> = batch_transcript(&self.digest, constants);
        absorb(&mut transcript, items);
        let weights: Vec<Vec<Fr>> = items
            .iter()
            .map(|_| transcript.challenges("weight", 1))
            .collect();
        batch::search(index, &weights, |i| {
            Ok(vec![check(index, constants, &items[i])?])
        })
    }

    /// Points and scalars that are kept between chunks.
    pub fn kept(&self) -> usize {
        self.batch.kept()
    }
}

/// Which records' proofs do not hold, ascending, and why: as [`crate::answer::verify_batch`].
pub fn verify_batch(
    index: &Arc<IndexCommitment>,
    constants: &Constants,
    items: &[Item],
) -> Refusals {
    let mut batch: Batch = Batch::new(Arc::clone(index), constants.clone());
    let refused = batch::chunks(items, |chunk| batch.add(chunk));
    match batch.holds() {
        true => refused,
        false => batch::chunks(items, |chunk| batch.search(chunk)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
