//! Proofs of the draws of slots, by their provers: `docs/scan/noise.md`, `docs/scan/bernoulli-bits.md`.
use ragaudit_field_simd::noise::draws_of;
use ragaudit_scan_protocol::drawn::{drawn_protocol, Private, TABLE_VARIABLES};
pub use ragaudit_scan_protocol::drawn::{Columns, Distribution, DrawnStatement, Shape, Slot};
use zeroize::{Zeroize, Zeroizing};

use crate::channel::Proves;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::prover::columns::{add_counts, count};
use crate::prover::fractional_sumcheck::LEAST;
use crate::prover::Prover;
use crate::session::{Column, Session};
use crate::verifier::Verifier;
use crate::words::{
    noise_key, push_limbs, stream_columns, upper_parts, words, Limbs, Seed, Upper, DRAWS_PER_WORD,
    WORDS_PER_BLOCK,
};
use ragaudit_scan_protocol::prover::Recomputed;

/// A distribution as its provers draw it.
pub trait Draw: Distribution {
    /// Appends a run of draws, each a byte and t, with the other values of their columns. The draws are secret, so every draw
    /// takes the same steps.
    fn draw(&self, run: &[(u8, u32)], draws: &mut Draws);
}

/// The private columns of a slot.
#[derive(Clone, Default)]
pub struct Draws {
    /// The columns of each draw: the byte, the outcome, and the table's other values.
    pub(crate) drawn: Vec<Vec<i64>>,
    /// Limbs of t, then of the distance from the threshold.
    pub(crate) limbs: Limbs,
    pub(crate) high: Upper,
    /// Over the positions.
    pub(crate) column: Vec<i64>,
}

impl Drop for Draws {
    fn drop(&mut self) {
        self.drawn.zeroize();
        self.limbs.zeroize();
        self.high.zeroize();
        self.column.zeroize();
    }
}

impl Draws {
    pub(crate) fn empty<D: Distribution>(distribution: &D) -> Self {
        let mut draws = Self::default();
        draws.drawn = vec![Vec::new(); distribution.bounds().len()];
        draws
    }

    /// From the words of the stream as integers.
    pub(crate) fn new<D: Draw>(statement: &DrawnStatement<D>, words: &[[u64; 4]]) -> Result<Self> {
        let mut draws = Self::empty(&statement.distribution);
        // Columns that never grow leave no copies of secrets behind.
        let count = words.len() * DRAWS_PER_WORD;
        let columns = draws.drawn.iter_mut().chain(&mut draws.limbs);
        columns.for_each(|column| column.reserve_exact(count));
        for run in words.chunks(WORDS_PER_BLOCK) {
            let drawn = run.iter().flat_map(draws_of).collect();
            let drawn: Zeroizing<Vec<(u8, u32)>> = Zeroizing::new(drawn);
            statement.distribution.draw(&drawn, &mut draws);
        }
        draws.high = upper_parts(words)?;
        draws.add_up(statement);
        Ok(draws)
    }

    /// Appends a draw: the values of its columns, byte and outcome first, its t, and the distance of t from the threshold.
    pub(crate) fn push(&mut self, drawn: &[i64], t: i64, distance: u128) {
        let columns = self.drawn.iter_mut().zip(drawn);
        columns.for_each(|(column, v)| column.push(*v));
        push_limbs(&mut self.limbs, t, distance);
    }

    /// Gives every position the sum of its draws.
    pub(crate) fn add_up<D: Distribution>(&mut self, statement: &DrawnStatement<D>) {
        let factors = statement.distribution.factors();
        let sum = |run: &[i64]| {
            let pairs = run.iter().zip(&factors);
            pairs.map(|(x, factor)| x * i64::from(*factor)).sum()
        };
        let runs = self.drawn[D::VALUE].chunks(factors.len());
        self.column = runs.take(statement.capacity).map(sum).collect();
    }

    /// The columns in the order of their commitments, with the multiplicities of the table.
    pub(crate) fn into_columns(mut self) -> Columns<Vec<i64>> {
        let mut table = vec![0; 1 << TABLE_VARIABLES];
        let rows = self.drawn[0].iter().zip(&self.drawn[1]);
        rows.for_each(|(byte, outcome)| count(&mut table, byte + 256 * outcome));
        Columns {
            column: std::mem::take(&mut self.column),
            drawn: std::mem::take(&mut self.drawn),
            stream: stream_columns(&mut self.limbs, &mut self.high),
            table,
        }
    }
}

/// A proof, with the columns that the query proofs based on it need.
#[derive(Default)]
pub struct DrawnProof {
    pub proof: Vec<u8>,
    /// One column for each slot, with its commitments.
    pub columns: Vec<Column>,
}

/// Proves the draws of slots, each under its own seed; with `low_memory` the same proof in more time.
///
/// ```
/// use ragaudit_scan_prover::bernoulli::{BernoulliStatement, Bernoulli};
/// use ragaudit_scan_prover::drawn::{prove, verify, Slot};
/// use ragaudit_scan_prover::group::Fr;
/// use ragaudit_scan_prover::words::{seed_commitment, Seed};
///
/// let seed = Seed([Fr::from(1u8), Fr::from(2u8)]);
/// let slot = Slot {
///     c_seed: seed_commitment(&seed),
///     beacon: Fr::from(3u8),
///     slot: Fr::from(4u8),
/// };
/// // Each of ten positions has the bit 1 with probability one half.
/// let statement = BernoulliStatement::single([7; 32], slot, 10, Bernoulli { bound: 1 << 39 });
/// let noise_proof = prove(&statement, &[seed], false)?;
/// let columns = verify(&statement, &noise_proof.proof)?;
/// assert_eq!(columns[0].rows, noise_proof.columns[0].rows);
/// # Ok::<(), ragaudit_scan_prover::Error>(())
/// ```
pub fn prove<D: Draw>(
    statement: &DrawnStatement<D>,
    seeds: &[Seed],
    low_memory: bool,
) -> Result<DrawnProof> {
    prove_as::<Prover, D>(statement, seeds, low_memory)
}

pub(crate) fn prove_as<P: Proves, D: Draw>(
    statement: &DrawnStatement<D>,
    seeds: &[Seed],
    low_memory: bool,
) -> Result<DrawnProof> {
    let blocks = statement.shape()?.blocks.count;
    if seeds.len() != statement.slots.len() {
        let expected = format!("{} of them", statement.slots.len());
        return Err(Error::invalid("seeds", expected, seeds.len()));
    }
    let of_slot = |(seed, slot): (&Seed, &Slot)| {
        let kappa = noise_key(seed, slot.beacon, slot.slot);
        Draws::new(statement, &words(kappa, blocks))
    };
    let draws = seeds.iter().zip(&statement.slots).map(of_slot);
    let draws = draws.collect::<Result<Vec<_>>>()?;
    prove_draws::<P, D>(statement, seeds, draws, low_memory.then_some(LEAST))
}

/// Proves these draws, whatever the stream gives; in low memory so many blocks at a time.
pub(crate) fn prove_draws<P: Proves, D: Draw>(
    statement: &DrawnStatement<D>,
    seeds: &[Seed],
    draws: Vec<Draws>,
    low_memory: Option<Recomputed>,
) -> Result<DrawnProof> {
    let witness: Vec<u8> = (seeds.iter())
        .flat_map(|seed| seed.witness().to_vec())
        .collect();
    let witness = Zeroizing::new(witness);
    let row_variables = statement.shape()?.row_variables;
    let mut session: Session<P> = Session::prover(statement.transcript(), row_variables, &witness)?;
    session.low_memory = low_memory;
    let private = private(statement, seeds, draws, false);
    let ids = drawn_protocol(&mut session, statement, Some(private))?;
    let columns = ids.into_iter().map(|id| session.columns[id.0].clone());
    let columns = columns.collect();
    let proof = session.close(None)?.into();
    Ok(DrawnProof { proof, columns })
}

/// The private values in the protocol's form, without the drawn columns if they are given.
pub(crate) fn private<D: Distribution>(
    statement: &DrawnStatement<D>,
    seeds: &[Seed],
    draws: Vec<Draws>,
    given: bool,
) -> Private {
    let mut columns: Vec<_> = draws.into_iter().map(Draws::into_columns).collect();
    add_up(&mut columns, |c| &mut c.stream.range);
    add_up(&mut columns, |c| &mut c.table);
    let keys = seeds.iter().zip(&statement.slots);
    Private {
        columns: Columns::for_batch(columns, given),
        keys: keys
            .map(|(seed, of)| seed.keys(of.beacon, of.slot))
            .collect(),
    }
}

/// Adds the lookups of all slots to the last slot's table, which serves all of them.
fn add_up(
    columns: &mut [Columns<Vec<i64>>],
    table: impl Fn(&mut Columns<Vec<i64>>) -> &mut Vec<i64>,
) {
    let Some((last, others)) = columns.split_last_mut() else {
        return;
    };
    for other in others {
        add_counts(table(last), table(other));
    }
}

/// See [`ragaudit_scan_protocol::drawn::check`].
pub fn check<D: Distribution>(
    statement: &DrawnStatement<D>,
    proof: &[u8],
) -> Result<(Vec<Column>, Equation)> {
    ragaudit_scan_protocol::drawn::check::<Verifier, D>(statement, proof)
}

/// See [`ragaudit_scan_protocol::drawn::verify`].
pub fn verify<D: Distribution>(statement: &DrawnStatement<D>, proof: &[u8]) -> Result<Vec<Column>> {
    ragaudit_scan_protocol::drawn::verify::<Verifier, D>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
