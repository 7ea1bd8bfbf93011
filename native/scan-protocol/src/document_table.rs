//! Sampling by document: the proof that a committed column has the coin of each position's document. `docs/scan/document-table.md`.
//!
//! A table maps positions to rows, and names the rows. The first rows are fresh: their coins are the draws of this window. The
//! other rows are carried, with name and coin, from the table of the window before. With pooled listing a carried row also
//! stays listed or not, and no fresh row is listed.
use std::sync::Arc;

use ark_ff::Field;

use crate::bernoulli::Bernoulli;
use crate::channel::{Channel, Verifies};
use crate::claims::Bound;
use crate::drawn::{self, Distribution, Drawing, Target};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::group::{Fr, G1Affine};
use crate::index::Layout;
use crate::lookup::{lookups, Count, Entry, Segment};
use crate::mle::Weight;
use crate::numbers::{log2_ceil, power_of_two};
use crate::session::{Column, ColumnId, Opening, Session};
use crate::transcript::{Oracle, Transcript};
use crate::words::{Blocks, Slot};

/// The largest number of rows.
pub const MAX_ROWS: usize = 1 << 20;
/// A name is sum of 2^([`NAME_LIMB_BITS`] k) limb_k, an element of the field.
pub const NAME_LIMBS: usize = 5;
pub const NAME_LIMB_BITS: usize = 51;
/// The tags of the tables of rows, of numbers of positions, and of carried rows.
pub const TAG_ROW: u64 = 4;
pub const TAG_COUNT: u64 = 5;
pub const TAG_CARRIED: u64 = 6;

/// The constants that determine the positions of values, and the largest number of rows.
pub const RULES: [u64; 6] = [
    MAX_ROWS as u64,
    NAME_LIMBS as u64,
    NAME_LIMB_BITS as u64,
    TAG_ROW,
    TAG_COUNT,
    TAG_CARRIED,
];

/// The names of the rows, as columns over the rows.
#[derive(Clone, Debug)]
pub struct Names<T> {
    /// 1 for a row with a name.
    pub named: T,
    pub limbs: [T; NAME_LIMBS],
}

/// The columns that are committed to before the beacon.
#[derive(Clone, Debug)]
pub struct Table<T> {
    /// The row of each position, or the number of rows for a position without a row.
    pub row: T,
    pub names: Names<T>,
}

/// The columns of the window before: the names of its table, and what its proof says of the rows.
#[derive(Clone, Debug)]
pub struct Previous<T> {
    pub names: Names<T>,
    /// The coin of each row.
    pub kept: T,
    /// How many positions each row has.
    pub count: T,
    /// With pooled listing, 1 for each row that was listed when the window before ended. None for other mechanisms.
    pub listed: Option<T>,
}

/// The columns that a proof yields: the coin of each position's row, which query proofs take, and the columns that the next
/// window carries, beside the names.
pub struct Proven<T> {
    pub sample: T,
    pub kept: T,
    pub count: T,
    /// 1 for each row that is listed before the window's first record, if the statement has the listed rows of the window
    /// before.
    pub listed: Option<T>,
}

impl<T> Names<T> {
    /// Takes its columns from others.
    pub fn named(all: &mut impl Iterator<Item = T>) -> Self {
        let mut next = || all.next().expect("one for each name");
        Self {
            named: next(),
            limbs: std::array::from_fn(|_| next()),
        }
    }

    pub fn each(&self) -> impl Iterator<Item = &T> {
        [&self.named].into_iter().chain(&self.limbs)
    }
}

impl<T> Table<T> {
    /// Takes its columns from others.
    pub fn named(all: &mut impl Iterator<Item = T>) -> Self {
        Self {
            row: all.next().expect("one for each name"),
            names: Names::named(all),
        }
    }

    pub fn each(&self) -> impl Iterator<Item = &T> {
        [&self.row].into_iter().chain(self.names.each())
    }
}

impl<T> Previous<T> {
    /// Takes its columns from others, and the listed rows from the last of them if there is one more.
    pub fn named(all: &mut impl Iterator<Item = T>) -> Self {
        let names = Names::named(all);
        let mut next = || all.next().expect("one for each name");
        Self {
            names,
            kept: next(),
            count: next(),
            listed: all.next(),
        }
    }

    pub fn each(&self) -> impl Iterator<Item = &T> {
        let own = [&self.kept, &self.count];
        self.names.each().chain(own).chain(&self.listed)
    }
}

/// The points of columns that follow one another: of one with an entry for each position if `positions`, then of `columns` with
/// an entry for each row. `field` is their name in errors.
fn split(
    points: &[G1Affine],
    field: &str,
    (capacity, rows): (usize, usize),
    (positions, columns): (bool, usize),
) -> Result<Vec<Vec<G1Affine>>> {
    let length = 1 << Layout::new(capacity)?.row_variables;
    within("rows", rows, MAX_ROWS.min(capacity))?;
    let first = if positions {
        capacity.div_ceil(length)
    } else {
        0
    };
    let each = rows.div_ceil(length);
    let expected = first + columns * each;
    if points.len() != expected {
        let [expected, actual] = [expected, points.len()].map(|n| format!("{n} commitments"));
        return Err(Error::invalid(field, expected, actual));
    }
    let (first, rest) = points.split_at(first);
    let rest = rest.chunks_exact(each).map(<[_]>::to_vec);
    Ok(positions
        .then(|| first.to_vec())
        .into_iter()
        .chain(rest)
        .collect())
}

impl Table<Vec<G1Affine>> {
    /// From the points of its columns, in order.
    pub fn split(points: &[G1Affine], capacity: usize, rows: usize) -> Result<Self> {
        let columns = split(points, "table", (capacity, rows), (true, 1 + NAME_LIMBS))?;
        Ok(Self::named(&mut columns.into_iter()))
    }

    /// Label, entries and commitments of the columns, in order.
    pub(crate) fn labelled(&self, capacity: usize, rows: usize) -> Vec<Labelled<'_>> {
        let labels = ["row", "named"].into_iter().chain(["name"; NAME_LIMBS]);
        let entries = [capacity].into_iter().chain(std::iter::repeat(rows));
        let all = labels.zip(entries).zip(self.each());
        all.map(|((label, entries), points)| (label, entries, &points[..]))
            .collect()
    }
}

impl Previous<Vec<G1Affine>> {
    /// From the points of its columns, in order.
    ///
    /// `listed`: whether the last of these columns are the listed rows
    pub fn split(points: &[G1Affine], capacity: usize, rows: usize, listed: bool) -> Result<Self> {
        let of = (false, 3 + NAME_LIMBS + usize::from(listed));
        let columns = split(points, "previous", (capacity, rows), of)?;
        Ok(Self::named(&mut columns.into_iter()))
    }
}

/// The statement of a proof. The verifier rebuilds every value and reads none from a file.
#[derive(Clone, Debug)]
pub struct DocumentTableStatement {
    /// Digest of all other data that the coins depend on.
    pub context: [u8; 32],
    pub slot: Slot,
    pub coins: Bernoulli,
    pub capacity: usize,
    pub rows: usize,
    /// The largest number of positions of a row.
    pub positions_per_row: usize,
    /// The number of fresh rows, which are the first ones.
    pub fresh: usize,
    pub table: Table<Vec<G1Affine>>,
    /// None for the first window of a chain, whose rows are all fresh.
    pub previous: Option<Previous<Vec<G1Affine>>>,
}

impl DocumentTableStatement {
    /// The layout of the positions. All columns have its rows. Refuses values beyond their limits.
    pub fn layout(&self) -> Result<Layout> {
        let layout = Layout::new(self.capacity)?;
        self.coins.check()?;
        within("rows", self.rows, MAX_ROWS.min(self.capacity))?;
        within("positions per row", self.positions_per_row, self.capacity)?;
        within("fresh rows", self.fresh, self.rows)?;
        if self.previous.is_none() && self.fresh < self.rows {
            let expected = format!("{}: there is no table before", self.rows);
            return Err(Error::invalid("fresh rows", expected, self.fresh));
        }
        check_commitments(layout, self.columns())?;
        Ok(layout)
    }

    /// The stream's blocks: a draw for each fresh row.
    pub fn blocks(&self) -> Blocks {
        Blocks::of_draws(self.fresh)
    }

    /// Label, entries and commitments of the columns in the statement, in order.
    fn columns(&self) -> Vec<Labelled<'_>> {
        let mut columns = self.table.labelled(self.capacity, self.rows);
        if let Some(previous) = &self.previous {
            let mut labels = vec!["previous named"];
            labels.extend(["previous name"; NAME_LIMBS]);
            labels.extend(["previous kept", "previous count"]);
            labels.extend(previous.listed.as_ref().map(|_| "previous listed"));
            let previous = labels.into_iter().zip(previous.each());
            columns.extend(previous.map(|(label, points)| (label, self.rows, &points[..])));
        }
        columns
    }

    /// Whether rows stay listed.
    fn carries_listed(&self) -> bool {
        (self.previous.as_ref()).is_some_and(|previous| previous.listed.is_some())
    }

    pub fn transcript<O: Oracle>(&self) -> Transcript<O> {
        let mut t = Transcript::new(match self.carries_listed() {
            true => "pooled document table",
            false => "document table",
        });
        t.bytes("context", &self.context);
        self.slot.absorb(&mut t);
        t.integer("capacity", self.capacity as u64);
        t.integer("rows", self.rows as u64);
        t.integer("positions per row", self.positions_per_row as u64);
        t.integer("fresh rows", self.fresh as u64);
        self.coins.absorb(&mut t);
        t.integer("previous tables", self.previous.is_some().into());
        for (label, _, points) in self.columns() {
            t.points(label, points);
        }
        t
    }
}

/// Label, entries and commitments of a column.
pub(crate) type Labelled<'a> = (&'static str, usize, &'a [G1Affine]);

/// Refuses a column with another number of commitments than its entries have rows.
pub(crate) fn check_commitments<'a>(
    layout: Layout,
    columns: impl IntoIterator<Item = Labelled<'a>>,
) -> Result<()> {
    for (label, entries, points) in columns {
        let expected = entries.div_ceil(1 << layout.row_variables);
        if points.len() != expected {
            let [expected, actual] = [expected, points.len()].map(|n| format!("{n} commitments"));
            return Err(Error::invalid(label, expected, actual));
        }
    }
    Ok(())
}

pub(crate) fn within(name: &str, actual: usize, maximum: usize) -> Result<()> {
    if (1..=maximum).contains(&actual) {
        return Ok(());
    }
    Err(Error::invalid(name, format!("1 to {maximum}"), actual))
}

/// The columns of the run's own, beside those of the draws, in the order of their commitments.
#[derive(Clone)]
pub struct Columns<T> {
    /// The coin of each position's row; 0 for a position without a row.
    pub sample: T,
    /// The number of positions of each row.
    pub count: T,
    /// The number of positions without a row, one entry.
    pub unplaced: T,
    /// How often each row of the table of numbers of positions is looked up.
    pub counts: T,
    /// 1 for a row of the table before that is a row of this one.
    pub carried: Option<T>,
    /// 1 for a row of this table that is listed when the window begins.
    pub listed: Option<T>,
}

impl<T> Columns<T> {
    pub fn in_order(self) -> Vec<T> {
        let own = [self.sample, self.count, self.unplaced, self.counts];
        let own = own.into_iter().chain(self.carried);
        own.chain(self.listed).collect()
    }

    pub fn named(all: Vec<T>) -> Self {
        let mut all = all.into_iter();
        let mut next = || all.next().expect("one for each name");
        Self {
            sample: next(),
            count: next(),
            unplaced: next(),
            counts: next(),
            carried: all.next(),
            listed: all.next(),
        }
    }
}

/// The prover's private values.
pub struct Private {
    /// The drawn column is the coin of each row, fresh and carried.
    pub draws: drawn::Private,
    /// The openings of the columns in the statement, in order.
    pub openings: Vec<Arc<Opening>>,
    /// The values of the other columns, in order.
    pub columns: Vec<Vec<i64>>,
}

/// Reads a proof. Returns the columns that it yields, and the equation that must hold.
pub fn check<'p, V: Verifies<'p>>(
    statement: &DocumentTableStatement,
    proof: &'p [u8],
) -> Result<(Proven<Column>, Equation)> {
    let rows = statement.layout()?.row_variables;
    let mut session: Session<V> = Session::verifier(statement.transcript(), rows, proof);
    let proven = document_table_protocol(&mut session, statement, None)?;
    Ok((proven, session.close(None)?.into()))
}

/// Verifies a proof. Returns the columns that it yields.
pub fn verify<'p, V: Verifies<'p>>(
    statement: &DocumentTableStatement,
    proof: &'p [u8],
) -> Result<Proven<Column>> {
    let (proven, equation) = check::<V>(statement, proof)?;
    equation.verify::<V::Engine>(&[])?;
    Ok(proven)
}

/// The protocol, for both parties.
pub fn document_table_protocol<C: Channel>(
    session: &mut Session<C>,
    statement: &DocumentTableStatement,
    secret: Option<Private>,
) -> Result<Proven<Column>> {
    statement.layout()?;
    let rows = statement.rows;
    let (draws, rest) = secret.map(|s| (s.draws, (s.openings, s.columns))).unzip();
    let (openings, values) = rest.unzip();

    let mut given = add_columns(session, &statement.columns(), openings.as_deref()).into_iter();
    let table = Table::named(&mut given);
    let previous = statement.previous.as_ref();
    let previous = previous.map(|_| Previous::named(&mut given));

    let slots = [statement.slot];
    let coins = (&statement.coins, statement.blocks());
    let drawing = Drawing::send(session, coins, &slots, (Target::Own(rows), 0), draws)?;
    let bit = Bound::Unsigned(1);
    let bounds = Columns {
        sample: (statement.capacity, bit),
        count: (rows, Bound::up_to(statement.positions_per_row)),
        unplaced: (1, Bound::up_to(statement.capacity)),
        counts: (statement.positions_per_row + 2, Bound::up_to(2 * rows)),
        carried: previous.as_ref().map(|_| (rows, bit)),
        listed: statement.carries_listed().then_some((rows, bit)),
    };
    let ids = session.commit_bounded("table columns", &bounds.in_order(), values)?;
    let own = Columns::named(ids);
    let [kept, coin] = [
        drawing.slots[0].column,
        drawing.slots[0].drawn[Bernoulli::VALUE],
    ];

    let mut segments = drawing.segments();
    segments.extend(of_positions(statement, table.row, kept, &own));
    segments.extend(of_counts(statement, &table, previous.as_ref(), &own));
    if let (Some(previous), Some(carried)) = (&previous, own.carried) {
        let current = || carried_row(&table.names, kept, own.listed);
        segments.extend([
            segment(TAG_CARRIED, current(), Count::First(rows)),
            segment(TAG_CARRIED, current(), Count::TableOnce(statement.fresh)),
            segment(
                TAG_CARRIED,
                carried_row(&previous.names, previous.kept, previous.listed),
                Count::TableFirst(carried, rows),
            ),
        ]);
    }
    lookups(session, segments)?;

    drawing.compare(session)?;
    let fresh = |point| Weight {
        point,
        coefficients: vec![Fr::ONE],
        items: statement.fresh,
    };
    let of_fresh = log2_ceil(statement.fresh);
    let weight = fresh(session.challenges("fresh coins", of_fresh));
    let difference = vec![(kept, Fr::ONE), (coin, -Fr::ONE)];
    session.claim(weight, difference, Expr::zero());
    if let Some(listed) = own.listed {
        let weight = fresh(session.challenges("unlisted rows", of_fresh));
        session.claim(weight, vec![(listed, Fr::ONE)], Expr::zero());
    }
    drawing.prove_words(session, Vec::new())?;

    let [sample, kept, count] =
        [own.sample, kept, own.count].map(|id| session.columns[id.0].clone());
    Ok(Proven {
        sample,
        kept,
        count,
        listed: own.listed.map(|id| session.columns[id.0].clone()),
    })
}

/// Adds columns of the statement, which a prover has the openings of.
pub(crate) fn add_columns<C: Channel>(
    session: &mut Session<C>,
    columns: &[Labelled],
    openings: Option<&[Arc<Opening>]>,
) -> Vec<ColumnId> {
    let mut column = |(k, (_, entries, points)): (usize, &Labelled)| {
        session.add_column(Column {
            variables: log2_ceil(*entries),
            rows: points.to_vec(),
            opening: openings.map(|o| Arc::clone(&o[k])),
        })
    };
    columns.iter().enumerate().map(&mut column).collect()
}

/// A segment of as many rows as count.
pub(crate) fn segment(tag: u64, entries: Vec<Entry>, count: Count) -> Segment {
    let mut segment = Segment {
        variables: 0,
        tag,
        entries,
        count,
    };
    segment.variables = log2_ceil(segment.rows());
    segment
}

pub(crate) fn one(id: ColumnId) -> Entry {
    Entry::Columns(vec![(id, Fr::ONE)])
}

/// Row and coin of each position are a row of the table with its coin, or no row with the coin 0.
fn of_positions(
    statement: &DocumentTableStatement,
    row: ColumnId,
    kept: ColumnId,
    own: &Columns<ColumnId>,
) -> [Segment; 3] {
    let none = [statement.rows as i64, 0].map(|v| Entry::Public(vec![v]));
    [
        segment(
            TAG_ROW,
            vec![one(row), one(own.sample)],
            Count::First(statement.capacity),
        ),
        segment(
            TAG_ROW,
            vec![Entry::Row, one(kept)],
            Count::TableFirst(own.count, statement.rows),
        ),
        segment(TAG_ROW, none.into(), Count::TableFirst(own.unplaced, 1)),
    ]
}

/// A row of this table has 0 to s positions, and none without a name. A row of the table before has none unless it is carried.
/// Both are pairs of a number and a bit: (0, 1) to (s, 1), and (0, 0).
fn of_counts(
    statement: &DocumentTableStatement,
    table: &Table<ColumnId>,
    previous: Option<&Previous<ColumnId>>,
    own: &Columns<ColumnId>,
) -> Vec<Segment> {
    let end = statement.positions_per_row + 1;
    let looked_up = |count: ColumnId, bit: ColumnId| {
        let entries = vec![one(count), one(bit)];
        segment(TAG_COUNT, entries, Count::First(statement.rows))
    };
    let mut segments = vec![
        segment(
            TAG_COUNT,
            vec![Entry::RowBelow(end), Entry::Below(end)],
            Count::TableFirst(own.counts, end + 1),
        ),
        looked_up(own.count, table.names.named),
    ];
    let previous = previous.zip(own.carried);
    segments.extend(previous.map(|(previous, carried)| looked_up(previous.count, carried)));
    segments
}

/// What a row keeps when it is carried: whether it is named, its name, its coin, and whether it is listed. The last two are
/// entries of their own, because nothing else shows that they are bits.
fn carried_row(names: &Names<ColumnId>, kept: ColumnId, listed: Option<ColumnId>) -> Vec<Entry> {
    let mut entries = vec![one(names.named), name_of(names), one(kept)];
    entries.extend(listed.map(one));
    entries
}

/// The name of a row, as an element.
pub(crate) fn name_of(names: &Names<ColumnId>) -> Entry {
    let limb = |(k, id): (usize, &ColumnId)| (*id, power_of_two(NAME_LIMB_BITS * k));
    Entry::Columns(names.limbs.iter().enumerate().map(limb).collect())
}
