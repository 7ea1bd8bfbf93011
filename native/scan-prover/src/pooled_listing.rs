//! Pooled listing, by its provers: `docs/scan/pooled-listing.md`.
use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field};
use ragaudit_scan_protocol::index_link::IndexLink;
use ragaudit_scan_protocol::pooled_listing::{pooled_listing_protocol, Private};
pub use ragaudit_scan_protocol::pooled_listing::{
    update_rows, Columns, PooledListingStatement, Record, RecordColumns, EMPTY, TAG_REACHED,
    TAG_RELEVANT, TAG_ROWS, TAG_UPDATE, UPDATE_VARIABLES,
};
use zeroize::Zeroizing;

use crate::bernoulli::BernoulliStatement;
use crate::channel::Proves;
use crate::claims::{Bound, Column, Opening};
use crate::document_table::check_rows;
use crate::drawn::{self, Draws};
use crate::engine::Fast;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{encode_scalar, Fr, G1Affine};
use crate::hidden_query::{count_components, count_scores};
use crate::index::{IndexKey, Layout};
use crate::numbers::{from_small, log2_ceil};
use crate::prover::columns::{self, add_counts, count};
use crate::prover::fractional_sumcheck::LEAST;
use crate::prover::Prover;
use crate::query::inputs::{key, Witness as AnswerWitness};
use crate::query::Answer;
use crate::ranges::LIMB_BITS;
use crate::session::Session;
use crate::verifier::Verifier;
use crate::words::{noise_key, words, Seed};
use ragaudit_scan_protocol::drawn::TABLES;
use ragaudit_scan_protocol::prover::Blindings;
use ragaudit_scan_protocol::prover::Recomputed;
use ragaudit_scan_protocol::query::statement::RecordColumns as AnswerColumns;

/// The columns whose commitments the statement has, with their openings.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    pub row: &'a Column,
    pub kept: &'a Column,
    pub before: &'a Column,
}

impl Given<'_> {
    fn openings(&self) -> Result<[Arc<Opening>; 3]> {
        let missing = || Error::Unsatisfied("the opening of a column is missing".to_owned());
        let opening = |column: &Column| column.opening.clone().ok_or_else(missing);
        Ok([
            opening(self.row)?,
            opening(self.kept)?,
            opening(self.before)?,
        ])
    }
}

/// The listed rows as a column under these blindings, which have no other use. The steps do not depend on the rows.
///
/// # Errors
/// A number of rows beyond its limits, another number of blindings than rows of commitments, and a value that is no bit.
pub fn listed_column(layout: Layout, listed: Vec<i64>, blindings: Vec<Fr>) -> Result<Column> {
    check_rows(layout, listed.len())?;
    if !Bound::Unsigned(1).holds(&listed) {
        return Err(Error::invalid("listed rows", "bits", "another value"));
    }
    column(layout, listed, blindings)
}

/// [`listed_column`] for a column of bits of the rows whose commitment is known.
///
/// # Errors
/// As [`listed_column`], and if the commitment is another one than these points.
pub fn open_listed(
    layout: Layout,
    what: &str,
    points: &[G1Affine],
    bits: Vec<i64>,
    blindings: Vec<Fr>,
) -> Result<Column> {
    let column = listed_column(layout, bits, blindings)?;
    if column.rows == points {
        return Ok(column);
    }
    let reason = format!("the {what} and their blindings are not those of the commitment");
    Err(Error::Unsatisfied(reason))
}

fn column(layout: Layout, values: Vec<i64>, blindings: Vec<Fr>) -> Result<Column> {
    let length = 1 << layout.row_variables;
    let expected = values.len().div_ceil(length);
    if blindings.len() != expected {
        let expected = format!("{expected} of them");
        return Err(Error::invalid("blindings", expected, blindings.len()));
    }
    let opening = Opening { values, blindings };
    let secret = columns::Secret {
        values: &opening.values,
        blindings: &opening.blindings,
        bound: Bound::ANY,
    };
    Ok(Column {
        variables: log2_ceil(opening.values.len()),
        rows: columns::commit(&[secret], length).remove(0),
        opening: Some(Arc::new(opening)),
    })
}

/// The private columns of one record.
#[derive(Clone)]
pub(crate) struct RecordWitness {
    /// The drawn column is the set of listed rows after the record.
    draws: Draws,
    /// The answer with K positions of the index, those of score 0 included.
    positions: Vec<i64>,
    /// The entry of htopk for each place.
    shown: Vec<i64>,
    /// The hidden values of each place: whether it has a text, the inverse of its score, and its entry of htopk.
    places: Vec<Fr>,
    answer: AnswerWitness,
    sample: Vec<i64>,
    reaches: Vec<i64>,
    relevant: Vec<i64>,
    other: Vec<i64>,
    idle: Vec<i64>,
    unplaced: Vec<i64>,
}

impl RecordWitness {
    /// From the chance of a slot and the set before the record.
    fn new(
        statement: &PooledListingStatement,
        request: &Answer,
        draws: Draws,
        [row, kept, before]: [&[i64]; 3],
    ) -> Result<Self> {
        let window = statement.check()?;
        let (capacity, rows) = (statement.index.layout.capacity, statement.rows);
        let lengths = [row.len(), kept.len(), before.len(), request.scores.len()];
        if lengths != [capacity, rows, rows, capacity] {
            let expected = format!("{capacity} positions and {rows} rows");
            return Err(Error::invalid("columns", expected, format!("{lengths:?}")));
        }
        let mut witness = Self {
            draws,
            positions: Vec::new(),
            shown: Vec::new(),
            places: Vec::new(),
            answer: AnswerWitness::default(),
            sample: Vec::new(),
            reaches: (request.scores.iter())
                .map(|s| i64::from(*s >= statement.threshold))
                .collect(),
            relevant: Vec::new(),
            other: Vec::new(),
            idle: Vec::new(),
            unplaced: Vec::new(),
        };
        witness.count_positions(row, rows);
        let chance = witness.draws.column.iter();
        witness.draws.column = (chance.zip(before).zip(kept).zip(&witness.idle))
            .map(|(((chance, before), kept), idle)| chance | before | (kept & (1 - idle)))
            .collect();
        witness.give_marks(row);
        let quantised: Vec<i64> = (request.scores.iter())
            .map(|s| window.quantise(*s as i32))
            .collect();
        let scored = quantised.iter().zip(&witness.sample).map(|(u, k)| u * k);
        witness.choose(statement, request, &scored.collect::<Vec<i64>>())?;
        Ok(witness)
    }

    /// The rows of the drawn column.
    fn after(&self) -> &[i64] {
        &self.draws.column
    }

    /// Counts the positions of each row, by whether they reach the threshold.
    fn count_positions(&mut self, row: &[i64], rows: usize) {
        let mut numbers = vec![0; 2 * (rows + 1)];
        let places = row.iter().zip(&self.reaches);
        places.for_each(|(r, reaches)| count(&mut numbers, r + reaches * (rows as i64 + 1)));
        let mut relevant = numbers.split_off(rows + 1);
        self.unplaced = vec![numbers[rows], relevant[rows]];
        numbers.truncate(rows);
        relevant.truncate(rows);
        self.idle = relevant.iter().map(|n| i64::from(*n == 0)).collect();
        (self.relevant, self.other) = (relevant, numbers);
    }

    /// Gives each position its row's mark; a position without a row has none.
    fn give_marks(&mut self, row: &[i64]) {
        let after = self.after();
        let mark = |r: &i64| usize::try_from(*r).ok().and_then(|r| after.get(r)).copied();
        self.sample = row.iter().map(|r| mark(r).unwrap_or_default()).collect();
    }

    /// The first K positions of these scores, and the columns of their list.
    fn choose(
        &mut self,
        statement: &PooledListingStatement,
        request: &Answer,
        scored: &[i64],
    ) -> Result<()> {
        let none = statement.index.layout.capacity as i64;
        let order: Vec<usize> = first(statement, scored).collect();
        self.shown = (order.iter())
            .map(|p| if scored[*p] == 0 { none } else { *p as i64 })
            .collect();
        self.positions = order.iter().map(|p| *p as i64).collect();
        self.fit(statement, request)?;
        self.fill();
        Ok(())
    }

    /// The columns of the list of these positions, whatever they are.
    fn fit(&mut self, statement: &PooledListingStatement, request: &Answer) -> Result<()> {
        let answer = self.listed(request);
        let (window, answers) = (statement.check()?, statement.answers());
        let sample = Some(&self.sample[..]);
        self.answer = AnswerWitness::new(&answers, window, &answer, [None, sample])?;
        Ok(())
    }

    /// The hidden values of the places.
    fn fill(&mut self) {
        self.places.clear();
        for (score, shown) in self.answer.noised.iter().zip(&self.shown) {
            let inverse = from_small(*score).inverse();
            self.places.extend([
                Fr::from(inverse.is_some()),
                inverse.unwrap_or(Fr::ZERO),
                from_small(*shown),
            ]);
        }
    }

    /// The request with the positions of the list.
    fn listed(&self, request: &Answer) -> Answer {
        Answer {
            query: request.query.clone(),
            query_salt: request.query_salt,
            positions: self.positions.clone(),
            list_salt: request.list_salt,
            scores: request.scores.clone(),
        }
    }
}

/// The private columns of a run.
#[derive(Clone)]
pub(crate) struct Witness(Vec<RecordWitness>);

impl Witness {
    /// Each record starts from the set that the record before it leaves.
    fn new(
        statement: &PooledListingStatement,
        requests: &[Answer],
        draws: Vec<Draws>,
        openings: &[Arc<Opening>; 3],
    ) -> Result<Self> {
        let [row, kept, before] = openings.each_ref().map(|o| &o.values[..]);
        let mut before = Zeroizing::new(before.to_vec());
        let mut records = Vec::new();
        for (request, draws) in requests.iter().zip(draws) {
            let record = RecordWitness::new(statement, request, draws, [row, kept, &before])?;
            before = Zeroizing::new(record.after().to_vec());
            records.push(record);
        }
        Ok(Self(records))
    }

    /// The listed rows after each record, under their blindings.
    fn after(&self, layout: Layout, blindings: &[Vec<Fr>]) -> Result<Vec<Column>> {
        if blindings.len() != self.0.len() {
            let expected = format!("those of {} records", self.0.len());
            return Err(Error::invalid("blindings", expected, blindings.len()));
        }
        let records = self.0.iter().zip(blindings);
        let columns = records.map(|(r, of)| column(layout, r.after().to_vec(), of.clone()));
        columns.collect()
    }

    /// The columns with the multiplicities of the tables, and the lookups of limbs in the range table.
    fn columns(
        &self,
        statement: &PooledListingStatement,
        requests: &[Answer],
        [kept, before]: [&[i64]; 2],
    ) -> (Columns<Vec<i64>>, Vec<i64>) {
        let key_limbs = statement.answers().key_limbs();
        let dimension = statement.index.dimension;
        let mut range = vec![0; 1 << LIMB_BITS];
        let mut numbers = vec![0; statement.positions_per_row + 1];
        let mut updates = vec![0; 1 << UPDATE_VARIABLES];
        let (mut score_rows, mut nibbles) = (Vec::new(), Vec::new());
        let mut records = Vec::new();
        let mut before = before;
        for (record, request) in self.0.iter().zip(requests) {
            let chance = &record.draws.drawn[1];
            for r in 0..statement.rows {
                let idle = record.idle[r];
                let row = before[r] + 2 * chance[r] + 4 * kept[r] + 8 * idle;
                count(&mut updates, row);
                count(&mut numbers, record.relevant[r]);
            }
            before = record.after();
            let scores = count_scores(&request.scores, dimension);
            add_counts(&mut score_rows, &scores);
            add_counts(&mut nibbles, &count_components(&request.query));
            records.push(RecordColumns {
                answer: AnswerColumns {
                    quantised: record.answer.quantised.clone(),
                    scored: Some(record.answer.scored.clone()),
                    selected: record.answer.selected.clone(),
                    distance: record.answer.distance_limbs(key_limbs, &mut range),
                },
                sample: record.sample.clone(),
                reaches: record.reaches.clone(),
                relevant: record.relevant.clone(),
                other: record.other.clone(),
                idle: record.idle.clone(),
                unplaced: record.unplaced.clone(),
            });
        }
        let columns = Columns {
            records,
            score_rows,
            nibbles,
            numbers,
            updates,
        };
        (columns, range)
    }
}

/// A prover's inputs. The positions of a request are what htopk says: the capacity for a place without a text.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// In the order of the ledger, each with the seed of its slot.
    pub requests: &'a [Answer],
    pub seeds: &'a [Seed],
    pub given: Given<'a>,
    /// The blindings of the listed rows after each record.
    pub after: &'a [Vec<Fr>],
    pub key: &'a IndexKey,
}

/// Proves records that act one after another; with `low_memory` the same proof in more time.
///
/// # Errors
/// Another number of requests or seeds than records, a request whose list is not the one that follows, and a record whose
/// commitment is not to the listed rows that follow.
pub fn prove(
    statement: &PooledListingStatement,
    inputs: Inputs,
    low_memory: bool,
) -> Result<Vec<u8>> {
    let witness = honest(statement, inputs)?;
    let after = witness.after(statement.index.layout, inputs.after)?;
    for (number, (record, column)) in statement.records.iter().zip(after).enumerate() {
        if record.after != column.rows {
            return Err(Error::Unsatisfied(format!(
                "request {number}: the commitment is not to the rows that are listed after it"
            )));
        }
    }
    prove_witness::<Prover>(statement, inputs, witness, low_memory.then_some(LEAST))
}

/// [`prove`] with the commitments that follow, which it puts into the records of the statement.
///
/// # Errors
/// Another number of requests or seeds than records, and a request whose list is not the one that follows.
pub fn commit_and_prove(
    statement: &mut PooledListingStatement,
    inputs: Inputs,
    low_memory: bool,
) -> Result<Vec<u8>> {
    let witness = honest(statement, inputs)?;
    let after = witness.after(statement.index.layout, inputs.after)?;
    for (record, column) in statement.records.iter_mut().zip(after) {
        record.after = column.rows;
    }
    prove_witness::<Prover>(statement, inputs, witness, low_memory.then_some(LEAST))
}

/// The private columns, if the lists are those that follow.
fn honest(statement: &PooledListingStatement, inputs: Inputs) -> Result<Witness> {
    let witness = witness(statement, inputs)?;
    for (number, (record, request)) in witness.0.iter().zip(inputs.requests).enumerate() {
        if record.shown != request.positions {
            return Err(Error::Unsatisfied(format!(
                "request {number}: the list is not the first positions of the listed rows"
            )));
        }
    }
    Ok(witness)
}

/// The list of each record as htopk says it: K positions, best first, or the capacity for a place without a text. With the
/// listed rows after it. The positions of the requests, htopk and the commitments of the records have no influence.
pub fn answers(
    statement: &PooledListingStatement,
    inputs: Inputs,
) -> Result<Vec<(Vec<i64>, Column)>> {
    let witness = witness(statement, inputs)?;
    let after = witness.after(statement.index.layout, inputs.after)?;
    let records = witness.0.into_iter().zip(after);
    Ok(records
        .map(|(record, after)| (record.shown, after))
        .collect())
}

/// The private columns under the seeds.
fn witness(statement: &PooledListingStatement, inputs: Inputs) -> Result<Witness> {
    statement.check()?;
    let expected = statement.records.len();
    for (field, actual) in [
        ("requests", inputs.requests.len()),
        ("seeds", inputs.seeds.len()),
    ] {
        if actual != expected {
            return Err(Error::invalid(field, format!("{expected} of them"), actual));
        }
    }
    let blocks = statement.blocks().count;
    let draws = inputs.seeds.iter().zip(&statement.records);
    let draws = draws.map(|(seed, record)| {
        let kappa = noise_key(seed, record.slot.beacon, record.slot.slot);
        Draws::new(&drawn_statement(statement), &words(kappa, blocks))
    });
    let draws = draws.collect::<Result<Vec<_>>>()?;
    Witness::new(statement, inputs.requests, draws, &inputs.given.openings()?)
}

/// The draws of the rows, of all slots.
fn drawn_statement(statement: &PooledListingStatement) -> BernoulliStatement {
    BernoulliStatement {
        context: statement.context,
        slots: statement.records.iter().map(|record| record.slot).collect(),
        capacity: statement.rows,
        distribution: statement.chance.clone(),
    }
}

/// Proves these columns, whatever they are; in low memory so many blocks at a time.
pub(crate) fn prove_witness<P: Proves>(
    statement: &PooledListingStatement,
    inputs: Inputs,
    witness: Witness,
    low_memory: Option<Recomputed>,
) -> Result<Vec<u8>> {
    let blinding = |place| inputs.key.blinding(place);
    let (session, link) = before_closing::<P>(statement, inputs, witness, low_memory, &blinding)?;
    Ok(session.close(Some(link))?.into())
}

/// The run up to its closing. `index` has the blindings of the index.
pub(crate) fn before_closing<'a, P: Proves>(
    statement: &PooledListingStatement<'a>,
    inputs: Inputs<'a>,
    witness: Witness,
    low_memory: Option<Recomputed>,
    index: Blindings<'a>,
) -> Result<(Session<'a, P>, IndexLink<'a>)> {
    let mut seed = Zeroizing::new(Vec::new());
    for (request, slot) in inputs.requests.iter().zip(inputs.seeds) {
        seed.extend(request.query.iter().map(|v| *v as u8));
        seed.extend(encode_scalar(&request.query_salt));
        seed.extend(encode_scalar(&request.list_salt));
        seed.extend(slot.witness().iter());
    }
    seed.extend(inputs.key.0);
    let rows = statement.index.layout.row_variables;
    let mut session: Session<P> = Session::prover(statement.transcript(), rows, &seed)?;
    session.low_memory = low_memory;
    let private = private(statement, inputs, witness, index)?;
    let link = pooled_listing_protocol(&mut session, statement, Some(private))?;
    Ok((session, link))
}

/// The private values in the protocol's form.
fn private<'a>(
    statement: &PooledListingStatement,
    inputs: Inputs<'a>,
    witness: Witness,
    index: Blindings<'a>,
) -> Result<Private<'a>> {
    let openings = inputs.given.openings()?;
    let after = witness.after(statement.index.layout, inputs.after)?;
    let after = after.into_iter().filter_map(|column| column.opening);
    let after = after.collect();
    let [_, kept, before] = openings.each_ref().map(|o| &o.values[..]);
    let (columns, range) = witness.columns(statement, inputs.requests, [kept, before]);
    let key_limbs = statement.answers().key_limbs();
    let (mut listed, mut places) = (Vec::new(), Vec::new());
    for (record, request) in witness.0.iter().zip(inputs.requests) {
        listed.extend(record.answer.listed(&record.listed(request), key_limbs));
        places.extend(&record.places);
    }
    let draws = witness.0.into_iter().map(|record| record.draws).collect();
    let mut draws = drawn::private(&drawn_statement(statement), inputs.seeds, draws, true);
    let tables = draws.columns.len() - TABLES;
    add_counts(&mut draws.columns[tables], &range);
    let scores = |request: &Answer| {
        Arc::new(Opening {
            values: request.scores.clone(),
            blindings: Vec::new(),
        })
    };
    Ok(Private {
        hidden_queries: inputs.requests.iter().map(Answer::hidden_query).collect(),
        scores: inputs.requests.iter().map(scores).collect(),
        openings,
        after,
        draws,
        columns: columns.in_order(),
        listed,
        places,
        index,
    })
}

/// See [`ragaudit_scan_protocol::pooled_listing::nothing_listed`].
pub fn nothing_listed(layout: Layout, rows: usize) -> Column {
    ragaudit_scan_protocol::pooled_listing::nothing_listed::<Fast>(layout, rows)
}

/// The first K positions by larger score, then by smaller position.
fn first(statement: &PooledListingStatement, scored: &[i64]) -> impl Iterator<Item = usize> {
    let variables = statement.index.layout.variables;
    let mut order: Vec<usize> = (0..scored.len()).collect();
    order.sort_by_key(|p| std::cmp::Reverse(key(scored[*p], *p as i64, variables)));
    order.truncate(statement.listed);
    order.into_iter()
}

/// See [`ragaudit_scan_protocol::pooled_listing::check`].
pub fn check(statement: &PooledListingStatement, proof: &[u8]) -> Result<Equation> {
    ragaudit_scan_protocol::pooled_listing::check::<Verifier>(statement, proof)
}

/// See [`ragaudit_scan_protocol::pooled_listing::verify`].
pub fn verify(statement: &PooledListingStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::pooled_listing::verify::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
