//! Pooled listing: the proof that answers use one growing set of listed rows. `docs/scan/pooled-listing.md`.
//!
//! A row of a document table becomes listed if chance draws it, or if one of its positions reaches the threshold and the row is
//! in the sample. An answer has the first positions of all rows that are listed by then. The records of a run act one after
//! another: each starts from the set that the record before it leaves.
use std::sync::Arc;

use ragaudit_relation::window::ScoreWindow;

use crate::batch_size::check_batch_size;
use crate::bernoulli::Bernoulli;
use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::document_table::{check_commitments, one, segment, within, MAX_ROWS};
use crate::drawn::{self, Distribution, Drawing, Target};
use crate::engine::Engine;
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{bases, Fr, G1Affine};
use crate::hidden_query::{
    nibble_table, score_rows, score_variables, send_query, vector_lists, HiddenQuery, SCORE,
};
use crate::index::{IndexCommitment, Layout};
use crate::index_link::{IndexLink, IndexLinkSecret};
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::nibbles::{NIBBLE_VARIABLES, TAG_VECTOR};
use crate::numbers::log2_ceil;
use crate::poseidon::Call;
use crate::prover::Blindings;
use crate::query::statement::{Columns as AnswerColumns, RecordColumns as AnswerRecord, TAG_TOPK};
use crate::query::{of_list, select, send_lists, Committed, Listed, QueryStatement};
use crate::ranges::LIMB_BITS;
use crate::session::{Column, ColumnId, Opening, Session};
use crate::transcript::{Oracle, Transcript};
use crate::words::{Blocks, Slot};

/// The tag of the table of scores with their steps and whether they reach the threshold. The draws' table has the tag 2.
pub const TAG_REACHED: u64 = 7;
/// The tag of the table of numbers of positions that reach the threshold.
pub const TAG_RELEVANT: u64 = 8;
/// The tag of the table of what becomes of a row.
pub const TAG_UPDATE: u64 = 9;
/// The tag of the first record's table of rows; the tag of record k's table is larger by k.
pub const TAG_ROWS: u64 = 1 << 11;
/// Variables of the table of what becomes of a row.
pub const UPDATE_VARIABLES: usize = 4;
const _: () =
    assert!(TAG_ROWS >= crate::query::statement::TAG_SELECT + crate::batch_size::MAX_BATCH as u64);

/// The constants that determine the positions of values in a proof.
pub(crate) fn rules() -> [u64; 7] {
    [
        TAG_REACHED,
        TAG_RELEVANT,
        TAG_UPDATE,
        TAG_ROWS,
        UPDATE_VARIABLES as u64,
        EMPTY as u64,
        MAX_ROWS as u64,
    ]
}

/// The public values of one record.
#[derive(Clone, Debug)]
pub struct Record {
    /// The slot of the record's chance.
    pub slot: Slot,
    pub cq: Fr,
    pub htopk: Fr,
    /// The commitments to the listed rows after the record.
    pub after: Vec<G1Affine>,
}

/// The statement of a proof. The verifier rebuilds every value and reads none from a file.
#[derive(Clone)]
pub struct PooledListingStatement<'a> {
    /// Digest of everything else that the records say, and of the proof of the document table.
    pub context: [u8; 32],
    pub index: &'a IndexCommitment,
    /// Chance: the probability that a record lists a row without relevance.
    pub chance: Bernoulli,
    pub rows: usize,
    /// The largest number of positions of a row.
    pub positions_per_row: usize,
    /// The commitments to the row of each position, from the document table.
    pub row: &'a [G1Affine],
    /// The commitments to the coin of each row, from the proof of the document table.
    pub kept: &'a [G1Affine],
    /// The commitments to the listed rows before the first record.
    pub before: &'a [G1Affine],
    /// In the order of the ledger.
    pub records: Vec<Record>,
    pub threshold: i64,
    pub listed: usize,
    pub lo: i64,
    pub hi: i64,
    pub lattice: i64,
}

impl<'a> PooledListingStatement<'a> {
    /// Refuses values beyond their limits.
    pub fn check(&self) -> Result<ScoreWindow> {
        let layout = self.index.layout;
        // The records have one draw for each row, and a table has at most one row for each position.
        check_batch_size(self.records.len(), layout.capacity, 1, false)?;
        crate::query::statement::check_answer(self.index, &[], self.listed)?;
        self.chance.check()?;
        within("rows", self.rows, MAX_ROWS.min(layout.capacity))?;
        within("positions per row", self.positions_per_row, layout.capacity)?;
        let largest = SCORE * self.index.dimension as i64;
        if !(1..=largest).contains(&self.threshold) {
            let expected = format!("1 to {largest}");
            return Err(Error::invalid("threshold", expected, self.threshold));
        }
        check_commitments(layout, self.columns())?;
        let after = self.records.iter().map(|r| &r.after[..]);
        check_commitments(
            layout,
            after.map(|points| ("listed after", self.rows, points)),
        )?;
        Ok(ScoreWindow::new(self.lo, self.hi, self.lattice)?)
    }

    /// Label, entries and commitments of the columns in the statement, in order.
    fn columns(&self) -> [(&'static str, usize, &'a [G1Affine]); 3] {
        [
            ("row", self.index.layout.capacity, self.row),
            ("kept", self.rows, self.kept),
            ("listed before", self.rows, self.before),
        ]
    }

    /// A draw for each row.
    pub fn blocks(&self) -> Blocks {
        Blocks::of_draws(self.rows)
    }

    /// The statement about the lists, for the steps that query proofs share.
    pub fn answers(&self) -> QueryStatement<'a> {
        QueryStatement {
            context: self.context,
            index: self.index,
            noise: Vec::new(),
            sample: None,
            gains: Vec::new(),
            records: self.records.iter().map(|r| [r.cq, r.htopk]).collect(),
            listed: self.listed,
            lo: self.lo,
            hi: self.hi,
            lattice: self.lattice,
        }
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new("pooled listing");
        t.bytes("context", &self.context);
        t.bytes("index", &self.index.digest());
        t.integer("capacity", self.index.layout.capacity as u64);
        t.integer("dimension", self.index.dimension as u64);
        t.integer("rows", self.rows as u64);
        t.integer("positions per row", self.positions_per_row as u64);
        self.chance.absorb(&mut t);
        t.integer("threshold", self.threshold as u64);
        t.integer("lo", self.lo as u64);
        t.integer("hi", self.hi as u64);
        t.integer("lattice", self.lattice as u64);
        t.integer("listed", self.listed as u64);
        for (label, _, points) in self.columns() {
            t.points(label, points);
        }
        t.integer("record count", self.records.len() as u64);
        for record in &self.records {
            record.slot.absorb(&mut t);
            t.scalar("cq", &record.cq);
            t.scalar("htopk", &record.htopk);
            t.points("listed after", &record.after);
        }
        t
    }
}

/// The columns of the run's own, beside those of the draws, in the order of their commitments.
#[derive(Clone)]
pub struct Columns<T> {
    pub records: Vec<RecordColumns<T>>,
    /// How often each row of a table is looked up.
    pub score_rows: T,
    pub nibbles: T,
    pub numbers: T,
    pub updates: T,
}

/// The columns of one record.
#[derive(Clone)]
pub struct RecordColumns<T> {
    pub answer: AnswerRecord<T>,
    /// 1 for a position of a listed row.
    pub sample: T,
    /// 1 for a position that reaches the threshold.
    pub reaches: T,
    /// The numbers of positions of each row that reach the threshold, and that do not.
    pub relevant: T,
    pub other: T,
    /// 1 for a row without a position that reaches the threshold.
    pub idle: T,
    /// The numbers of positions without a row that do not reach the threshold, and that do.
    pub unplaced: T,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let mut out = Vec::new();
        for record in self.records {
            out.push(record.answer.quantised);
            out.extend(record.answer.scored);
            out.push(record.answer.selected);
            out.extend(record.answer.distance);
            out.extend([record.sample, record.reaches, record.relevant, record.other]);
            out.extend([record.idle, record.unplaced]);
        }
        out.extend([self.score_rows, self.nibbles, self.numbers, self.updates]);
        out
    }

    pub fn named(all: Vec<T>, records: usize, key_limbs: usize) -> Self {
        let mut all = all.into_iter();
        let mut next = || all.next().expect("one for each name");
        let record = |_| RecordColumns {
            answer: AnswerRecord {
                quantised: next(),
                scored: Some(next()),
                selected: next(),
                distance: (0..key_limbs).map(|_| next()).collect(),
            },
            sample: next(),
            reaches: next(),
            relevant: next(),
            other: next(),
            idle: next(),
            unplaced: next(),
        };
        Self {
            records: (0..records).map(record).collect(),
            score_rows: next(),
            nibbles: next(),
            numbers: next(),
            updates: next(),
        }
    }
}

/// The prover's private values, all fixed before the first challenge.
pub struct Private<'a> {
    pub hidden_queries: Vec<HiddenQuery<'a>>,
    pub scores: Vec<Arc<Opening>>,
    /// The openings of the columns in the statement, in order.
    pub openings: [Arc<Opening>; 3],
    /// The openings of the listed rows after each record.
    pub after: Vec<Arc<Opening>>,
    /// Without the drawn columns, which are the listed rows after each record.
    pub draws: drawn::Private,
    /// The values of the other columns, in order.
    pub columns: Vec<Vec<i64>>,
    /// The lists as query proofs send them, then [`EMPTY`] values of each place of each list.
    pub listed: Vec<Fr>,
    pub places: Vec<Fr>,
    pub index: Blindings<'a>,
}

/// Hidden values of a place of an answer: whether it has a text, the inverse of its score, and what htopk says.
pub const EMPTY: usize = 3;

/// The listed rows before a tenant's first record: none, under the blinding 1 in every row. Every party can compute it.
///
/// ```
/// use ragaudit_scan_protocol::engine::Plain;
/// use ragaudit_scan_protocol::group::bases;
/// use ragaudit_scan_protocol::index::Layout;
/// use ragaudit_scan_protocol::pooled_listing::nothing_listed;
///
/// let column = nothing_listed::<Plain>(Layout::new(100)?, 30);
/// assert_eq!(column.rows, [bases::<Plain>().h]);
/// # Ok::<(), ragaudit_scan_protocol::Error>(())
/// ```
pub fn nothing_listed<E: Engine>(layout: Layout, rows: usize) -> Column {
    let points = rows.div_ceil(1 << layout.row_variables);
    Column {
        variables: log2_ceil(rows),
        rows: vec![bases::<E>().h; points],
        opening: Some(Arc::new(Opening {
            values: vec![0; rows],
            blindings: vec![Fr::from(1u8); points],
        })),
    }
}

/// Reads a proof. Returns the equation that must hold over the index points.
pub fn check<'p, V: Verifies<'p>>(
    statement: &PooledListingStatement,
    proof: &'p [u8],
) -> Result<Equation> {
    statement.check()?;
    let rows = statement.index.layout.row_variables;
    let mut session: Session<V> = Session::verifier(statement.transcript(), rows, proof);
    let link = pooled_listing_protocol(&mut session, statement, None)?;
    Ok(session.close(Some(link))?.into())
}

/// Verifies a proof.
pub fn verify<'p, V: Verifies<'p>>(
    statement: &PooledListingStatement,
    proof: &'p [u8],
) -> Result<()> {
    check::<V>(statement, proof)?.verify::<V::Engine>(&statement.index.points)
}

/// The columns of the statement.
struct Given {
    row: ColumnId,
    kept: ColumnId,
    before: ColumnId,
}

/// All claims of the run, before they are closed, for both parties.
pub fn pooled_listing_protocol<'a, C: Channel>(
    session: &mut Session<C>,
    statement: &PooledListingStatement<'a>,
    mut secret: Option<Private<'a>>,
) -> Result<IndexLink<'a>> {
    let window = statement.check()?;
    let answers = statement.answers();
    let (count, dimension) = (statement.records.len(), statement.index.dimension);
    let hidden_queries: Option<Vec<HiddenQuery>> =
        secret.as_ref().map(|s| s.hidden_queries.clone());
    let hidden_query_of = |record: usize| hidden_queries.as_ref().map(|queries| queries[record]);
    let (mut queries, mut blindings) = (Vec::new(), Vec::new());
    for record in 0..count {
        let (query, blinding) = send_query(session, hidden_query_of(record))?;
        queries.push(query);
        blindings.push(blinding);
    }

    let (scores, given) = add_given(session, statement, secret.as_ref());
    let after = add_after(session, statement, secret.as_ref());
    let slots: Vec<Slot> = statement.records.iter().map(|r| r.slot).collect();
    let draws = secret.as_mut().map(|s| {
        std::mem::replace(
            &mut s.draws,
            drawn::Private {
                columns: Vec::new(),
                keys: Vec::new(),
            },
        )
    });
    let drawing = Drawing::send(
        session,
        (&statement.chance, statement.blocks()),
        &slots,
        (Target::Given(&after), range_lookups(&answers)),
        draws,
    )?;
    let values = secret.as_mut().map(|s| std::mem::take(&mut s.columns));
    let bounds = bounds(statement, &answers);
    let ids = session.commit_bounded("pooled columns", &bounds.in_order(), values)?;
    let own = Columns::named(ids, count, answers.key_limbs());
    let range = drawing.slots[0].stream.range;
    let columns = committed(scores, &own, range);

    let lists = send_lists(session, &answers, secret.as_ref().map(|s| &s.listed[..]))?;
    let shown = send_places(
        session,
        statement,
        &lists,
        secret.as_ref().map(|s| &s.places[..]),
    )?;

    // cq and htopk.
    let all = hidden_queries.as_deref();
    let (mut claims, vectors) = vector_lists(session, dimension, count, all)?;
    let mut calls = Vec::new();
    for (((list, shown), vector), record) in
        lists.iter().zip(shown).zip(vectors).zip(&statement.records)
    {
        let mut positions = vec![list.salt.clone(), (statement.listed as u64).into()];
        positions.extend(shown);
        calls.extend(Call::list(session, TAG_VECTOR, &vector, record.cq)?);
        calls.extend(Call::list(session, TAG_TOPK, &positions, record.htopk)?);
    }

    let mut segments = drawing.segments();
    segments.extend(tables(statement, &window, &own));
    for (record, list) in lists.iter().enumerate() {
        segments.push(of_scores(statement, &columns, &own, record));
        segments.extend(of_list(
            &answers,
            &columns,
            record,
            list,
            hidden_query_of(record),
        ));
        // The set that the record before leaves is the one that this record starts from.
        let sets = match record {
            0 => [given.before, after[0]],
            _ => [after[record - 1], after[record]],
        };
        let chance = drawing.slots[record].drawn[Bernoulli::VALUE];
        segments.extend(of_rows(
            statement,
            &own.records[record],
            record,
            &given,
            sets,
            chance,
        ));
    }
    // All of one length, so that their weights are the same.
    let (weights, vars): (Vec<_>, Vec<_>) = lookups(session, segments)?.into_iter().unzip();
    claims.extend(weights.into_iter().next().map(|weights| (weights, vars)));

    drawing.compare(session)?;
    select(session, &answers, &columns, &lists)?;
    drawing.prove_words(session, calls)?;
    Ok(IndexLink {
        index: statement.index,
        queries,
        secret: secret.map(|s| IndexLinkSecret {
            hidden_queries: s.hidden_queries,
            blindings,
            index: s.index,
        }),
        claims,
        scores: columns.scores,
    })
}

/// Adds the columns with earlier commitments, and the scores, which have none.
fn add_given<C: Channel>(
    session: &mut Session<C>,
    statement: &PooledListingStatement,
    secret: Option<&Private>,
) -> (Vec<ColumnId>, Given) {
    let variables = statement.index.layout.variables;
    let scores = (0..statement.records.len())
        .map(|record| {
            session.add_column(Column {
                variables,
                rows: Vec::new(),
                opening: secret.map(|s| Arc::clone(&s.scores[record])),
            })
        })
        .collect();
    let mut number = 0..;
    let [row, kept, before] = statement.columns().map(|(_, entries, points)| {
        let k: usize = number.next().expect("there are three");
        session.add_column(Column {
            variables: log2_ceil(entries),
            rows: points.to_vec(),
            opening: secret.map(|s| Arc::clone(&s.openings[k])),
        })
    });
    (scores, Given { row, kept, before })
}

/// Adds the listed rows after each record.
fn add_after<C: Channel>(
    session: &mut Session<C>,
    statement: &PooledListingStatement,
    secret: Option<&Private>,
) -> Vec<ColumnId> {
    let add = |(k, record): (usize, &Record)| {
        session.add_column(Column {
            variables: log2_ceil(statement.rows),
            rows: record.after.clone(),
            opening: secret.map(|s| Arc::clone(&s.after[k])),
        })
    };
    statement.records.iter().enumerate().map(add).collect()
}

/// The lookups of limbs of distances and orders in the range table.
fn range_lookups(answers: &QueryStatement) -> usize {
    let of_record = (answers.index.layout.capacity + answers.listed) * answers.key_limbs();
    answers.records.len() * of_record
}

/// Entries and bounds of the columns.
fn bounds(statement: &PooledListingStatement, answers: &QueryStatement) -> Columns<(usize, Bound)> {
    let (capacity, rows) = (statement.index.layout.capacity, statement.rows);
    let (count, dimension) = (statement.records.len(), statement.index.dimension);
    let bit = Bound::Unsigned(1);
    let steps = (capacity, Bound::up_to(statement.lattice as usize));
    let number = (rows, Bound::up_to(statement.positions_per_row));
    let of_record = RecordColumns {
        answer: AnswerRecord {
            quantised: steps,
            scored: Some(steps),
            selected: (capacity, bit),
            distance: vec![(capacity, Bound::Unsigned(LIMB_BITS)); answers.key_limbs()],
        },
        sample: (capacity, bit),
        reaches: (capacity, bit),
        relevant: number,
        other: number,
        idle: (rows, bit),
        unplaced: (2, Bound::up_to(capacity)),
    };
    let counted = |variables: usize, maximum: usize| (1 << variables, Bound::up_to(maximum));
    Columns {
        records: vec![of_record; count],
        score_rows: counted(score_variables(dimension), count * capacity),
        nibbles: counted(NIBBLE_VARIABLES, count * dimension.next_power_of_two()),
        numbers: (statement.positions_per_row + 1, Bound::up_to(count * rows)),
        updates: counted(UPDATE_VARIABLES, count * rows),
    }
}

/// The columns as the steps of query proofs name them.
fn committed(scores: Vec<ColumnId>, own: &Columns<ColumnId>, range: ColumnId) -> Committed {
    Committed {
        scores,
        noise: Vec::new(),
        sample: own.records.iter().map(|r| r.sample).collect(),
        own: AnswerColumns {
            records: own.records.iter().map(|r| r.answer.clone()).collect(),
            score_rows: own.score_rows,
            range,
            nibbles: own.nibbles,
        },
    }
}

/// Constrains the entry of htopk for each place: its position, or the capacity if the position's score is 0.
fn send_places<C: Channel>(
    session: &mut Session<C>,
    statement: &PooledListingStatement,
    lists: &[Listed],
    values: Option<&[Fr]>,
) -> Result<Vec<Vec<Expr>>> {
    let count = EMPTY * statement.listed * lists.len();
    let vars = session.send("places", count, values)?;
    let none = || Expr::from(statement.index.layout.capacity as u64);
    let mut all = Vec::new();
    for (list, run) in lists.iter().zip(vars.chunks(EMPTY * statement.listed)) {
        let mut shown = Vec::new();
        let places = list.positions.iter().zip(&list.noised);
        for ((position, score), of_place) in places.zip(run.chunks(EMPTY)) {
            let [filled, inverse, place] = [0, 1, 2].map(|i| Expr::from(of_place[i]));
            // With the score 0 the first product makes `filled` 0, with any other score the second makes it 1.
            session.constrain_product("empty place", score.clone(), inverse, filled.clone());
            session.constrain_product("filled place", score.clone(), filled.clone(), score.clone());
            let (position, behind) = (position.clone() - none(), place.clone() - none());
            session.constrain_product("place", filled, position, behind);
            shown.push(place);
        }
        all.push(shown);
    }
    Ok(all)
}

/// The public tables: scores, components, numbers of relevant positions, and what becomes of a row.
fn tables(
    statement: &PooledListingStatement,
    window: &ScoreWindow,
    own: &Columns<ColumnId>,
) -> [Segment; 4] {
    let dimension = statement.index.dimension;
    let scores = score_rows(dimension);
    let steps = scores.iter().map(|s| window.quantise(*s as i32)).collect();
    let reached = scores.iter().map(|s| i64::from(*s >= statement.threshold));
    let reached = reached.collect();
    [
        Segment {
            variables: score_variables(dimension),
            tag: TAG_REACHED,
            entries: [scores, steps, reached].map(Entry::Public).into(),
            count: Count::Table(own.score_rows),
        },
        nibble_table(own.nibbles),
        // No position, or some.
        segment(
            TAG_RELEVANT,
            vec![Entry::Row, Entry::Below(1)],
            Count::TableFirst(own.numbers, statement.positions_per_row + 1),
        ),
        Segment {
            variables: UPDATE_VARIABLES,
            tag: TAG_UPDATE,
            entries: update_rows().map(Entry::Public).into(),
            count: Count::Table(own.updates),
        },
    ]
}

/// The table of what becomes of a row, column by column: listed before, plus 2 if chance draws it; in the sample; without a
/// relevant position; listed after.
///
/// ```
/// use ragaudit_scan_protocol::pooled_listing::update_rows;
///
/// let [drawn, kept, idle, after] = update_rows();
/// // In the sample, with a relevant position.
/// assert_eq!([drawn[4], kept[4], idle[4], after[4]], [0, 1, 0, 1]);
/// // In the sample, without one.
/// assert_eq!([drawn[12], kept[12], idle[12], after[12]], [0, 1, 1, 0]);
/// ```
pub fn update_rows() -> [Vec<i64>; 4] {
    let of = |row: i64| {
        let (drawn, kept, idle) = (row & 3, row >> 2 & 1, row >> 3);
        [drawn, kept, idle, i64::from(drawn != 0 || kept > idle)]
    };
    let rows = 0..1i64 << UPDATE_VARIABLES;
    [0, 1, 2, 3].map(|k: usize| rows.clone().map(|row| of(row)[k]).collect())
}

/// Every position's score has its step, and reaches the threshold or not.
fn of_scores(
    statement: &PooledListingStatement,
    columns: &Committed,
    own: &Columns<ColumnId>,
    record: usize,
) -> Segment {
    let of = &own.records[record];
    segment(
        TAG_REACHED,
        vec![
            one(columns.scores[record]),
            one(of.answer.quantised),
            one(of.reaches),
        ],
        Count::First(statement.index.layout.capacity),
    )
}

/// The lookups of rows. Those of positions count the relevant positions of each row, and give each position its row's mark.
fn of_rows(
    statement: &PooledListingStatement,
    own: &RecordColumns<ColumnId>,
    record: usize,
    given: &Given,
    [before, after]: [ColumnId; 2],
    chance: ColumnId,
) -> [Segment; 6] {
    let rows = statement.rows;
    let tag = TAG_ROWS + record as u64;
    let none = [vec![rows as i64; 2], vec![0, 1], vec![0, 0]];
    [
        segment(
            tag,
            vec![one(given.row), one(own.reaches), one(own.sample)],
            Count::First(statement.index.layout.capacity),
        ),
        segment(
            tag,
            vec![Entry::Row, Entry::Below(rows), one(after)],
            Count::TableFirst(own.relevant, rows),
        ),
        segment(
            tag,
            vec![Entry::Row, Entry::Below(0), one(after)],
            Count::TableFirst(own.other, rows),
        ),
        segment(
            tag,
            none.map(Entry::Public).into(),
            Count::TableFirst(own.unplaced, 2),
        ),
        segment(
            TAG_RELEVANT,
            vec![one(own.relevant), one(own.idle)],
            Count::First(rows),
        ),
        segment(
            TAG_UPDATE,
            vec![
                // Both are bits, so their sum with these factors has one reading.
                Entry::Columns(vec![(before, Fr::from(1u8)), (chance, Fr::from(2u8))]),
                one(given.kept),
                one(own.idle),
                one(after),
            ],
            Count::First(rows),
        ),
    ]
}
