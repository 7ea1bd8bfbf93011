//! Sampling by document, by its provers: `docs/scan/document-table.md`.
use std::sync::Arc;

use ark_ff::PrimeField;
use ragaudit_scan_protocol::document_table::{document_table_protocol, Private};
pub use ragaudit_scan_protocol::document_table::{
    Columns, DocumentTableStatement, Names, Previous, Proven, Table, MAX_ROWS, NAME_LIMBS,
    NAME_LIMB_BITS, TAG_CARRIED, TAG_COUNT, TAG_ROW,
};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::bernoulli::BernoulliStatement;
use crate::channel::Proves;
use crate::claims::{Bound, Column, Opening};
use crate::drawn::{self, Draws};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{Fr, G1Affine};
use crate::index::Layout;
use crate::numbers::log2_ceil;
use crate::prover::columns::{self, count};
use crate::prover::fractional_sumcheck::LEAST;
use crate::prover::Prover;
use crate::secrets::Nonces;
use crate::session::Session;
use crate::verifier::Verifier;
use crate::words::{noise_key, words, Seed};
use ragaudit_scan_protocol::prover::Recomputed;

/// The limbs of a name.
fn limbs_of(name: Fr) -> [i64; NAME_LIMBS] {
    let mut rest = name.into_bigint();
    let limbs = std::array::from_fn(|_| {
        let limb = rest.0[0] & ((1 << NAME_LIMB_BITS) - 1);
        rest >>= NAME_LIMB_BITS as u32;
        limb as i64
    });
    rest.zeroize();
    limbs
}

/// The key from which the blindings of a table are derived; every table has a new key. A column's blindings depend on its
/// values too, so a key that commits to two tables by mistake reveals only which columns are equal.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct TableKey(pub [u8; 32]);

impl TableKey {
    /// The blindings of column k, the column's number in [`Table::each`].
    fn blindings(&self, k: usize, values: &[i64], count: usize) -> Vec<Fr> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(8 * values.len() + 8));
        bytes.extend((k as u64).to_le_bytes());
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        Nonces::derived(&self.0, b"rag-audit/scan/v1/document-table", &bytes).draw_many(count)
    }
}

/// Commits to a table before the beacon, under blindings from a key: the row of each position, or the number of rows for a
/// position without a row, and the name of each row that has one.
///
/// # Errors
/// Numbers of positions and of rows beyond their limits, and a row that is not in the table.
pub fn commit(
    layout: Layout,
    row: Vec<i64>,
    names: &[Option<Fr>],
    key: &TableKey,
) -> Result<Table<Column>> {
    let row = row_column(layout, row, names.len())?;
    let columns = std::iter::once(row).chain(name_columns(names));
    let columns = commit_columns(layout, columns, key, 0);
    Ok(Table::named(&mut columns.into_iter()))
}

/// Only the names of [`commit`]: the columns of a table before that the next window's proof opens.
///
/// # Errors
/// A number of rows beyond its limits.
pub fn commit_names(layout: Layout, names: &[Option<Fr>], key: &TableKey) -> Result<Names<Column>> {
    check_rows(layout, names.len())?;
    let columns = commit_columns(layout, name_columns(names), key, 1);
    Ok(Names::named(&mut columns.into_iter()))
}

/// [`commit`] for a table whose commitment is known.
///
/// # Errors
/// As [`commit`], and if the commitment is another one.
pub fn open_table(
    layout: Layout,
    points: &Table<Vec<G1Affine>>,
    row: Vec<i64>,
    names: &[Option<Fr>],
    key: &TableKey,
) -> Result<Table<Column>> {
    let table = commit(layout, row, names, key)?;
    let same = table.each().map(|c| &c.rows).eq(points.each());
    same.then_some(table).ok_or_else(|| {
        Error::Unsatisfied("the key and the values are not those of the committed table".to_owned())
    })
}

/// Only the row of each position of [`commit`]: the column that records of pooled listing open.
///
/// # Errors
/// As [`commit`], and if the commitment is another one than these points.
pub fn open_row(
    layout: Layout,
    points: &[G1Affine],
    row: Vec<i64>,
    rows: usize,
    key: &TableKey,
) -> Result<Column> {
    let row = row_column(layout, row, rows)?;
    let column = commit_columns(layout, std::iter::once(row), key, 0).remove(0);
    let other = "the key and the rows of the positions are not those of the committed table";
    match column.rows == points {
        true => Ok(column),
        false => Err(Error::Unsatisfied(other.to_owned())),
    }
}

/// The table before of a statement, from the names with their key, coins and numbers of positions with the blindings that
/// the proof before yielded, and the listed rows with the blindings of their commitment.
///
/// # Errors
/// Another number of rows, and if a commitment is another one.
pub fn open_previous(
    statement: &DocumentTableStatement,
    names: &[Option<Fr>],
    key: &TableKey,
    kept: Opening,
    count: Opening,
    listed: Option<Opening>,
) -> Result<Previous<Column>> {
    let layout = statement.layout()?;
    let other = |what: &str| {
        let reason = format!("the {what} are not those of the committed table before");
        Error::Unsatisfied(reason)
    };
    let expected = (statement.previous.as_ref())
        .ok_or_else(|| Error::invalid("previous", "no table before", "one"))?;
    let names = commit_names(layout, names, key)?;
    if !names.each().map(|c| &c.rows).eq(expected.names.each()) {
        return Err(other("names"));
    }
    let length = 1 << layout.row_variables;
    let column = |opening: Opening, bound: Bound, rows: &Vec<G1Affine>, what: &str| {
        let same = opening.values.len() == statement.rows
            && opening.blindings.len() == rows.len()
            && bound.holds(&opening.values);
        let secret = columns::Secret {
            values: &opening.values,
            blindings: &opening.blindings,
            bound,
        };
        if !same || columns::commit(&[secret], length)[0] != *rows {
            return Err(other(what));
        }
        Ok(Column {
            variables: log2_ceil(statement.rows),
            rows: rows.clone(),
            opening: Some(Arc::new(opening)),
        })
    };
    let most = Bound::up_to(statement.positions_per_row);
    let bit = Bound::Unsigned(1);
    let listed = match (listed, &expected.listed) {
        (Some(opening), Some(rows)) => Some(column(opening, bit, rows, "listed rows")?),
        (None, None) => None,
        _ => return Err(other("listed rows")),
    };
    Ok(Previous {
        names,
        kept: column(kept, bit, &expected.kept, "coins")?,
        count: column(count, most, &expected.count, "numbers of positions")?,
        listed,
    })
}

pub(crate) fn check_rows(layout: Layout, rows: usize) -> Result<()> {
    let largest = MAX_ROWS.min(layout.capacity);
    if (1..=largest).contains(&rows) {
        return Ok(());
    }
    Err(Error::invalid("rows", format!("1 to {largest}"), rows))
}

fn row_column(layout: Layout, row: Vec<i64>, rows: usize) -> Result<(Vec<i64>, Bound)> {
    check_rows(layout, rows)?;
    if row.len() != layout.capacity {
        let expected = format!("{} positions", layout.capacity);
        return Err(Error::invalid("row", expected, row.len()));
    }
    if row.iter().any(|r| !(0..=rows as i64).contains(r)) {
        return Err(Error::invalid("row", format!("0 to {rows}"), "another row"));
    }
    Ok((row, Bound::up_to(rows)))
}

/// Whether each row has a name, and the limbs of the names.
fn name_columns(names: &[Option<Fr>]) -> impl Iterator<Item = (Vec<i64>, Bound)> {
    let named = names.iter().map(|n| n.is_some().into()).collect();
    let limbs = names.iter().map(|name| limbs_of(name.unwrap_or_default()));
    let limbs: Zeroizing<Vec<_>> = Zeroizing::new(limbs.collect());
    let limbs = (0..NAME_LIMBS).map(move |k| {
        let column = limbs.iter().map(|limb| limb[k]).collect();
        (column, Bound::Unsigned(NAME_LIMB_BITS))
    });
    std::iter::once((named, Bound::Unsigned(1))).chain(limbs)
}

/// The columns under a key, numbered from `first`.
fn commit_columns(
    layout: Layout,
    values: impl Iterator<Item = (Vec<i64>, Bound)>,
    key: &TableKey,
    first: usize,
) -> Vec<Column> {
    let length = 1 << layout.row_variables;
    let (openings, bounds): (Vec<Opening>, Vec<Bound>) = (first..)
        .zip(values)
        .map(|(k, (values, bound))| {
            let blindings = key.blindings(k, &values, values.len().div_ceil(length));
            (Opening { values, blindings }, bound)
        })
        .unzip();
    let secrets: Vec<columns::Secret> = (openings.iter().zip(bounds))
        .map(|(opening, bound)| columns::Secret {
            values: &opening.values,
            blindings: &opening.blindings,
            bound,
        })
        .collect();
    let rows = columns::commit(&secrets, length);
    let columns = openings
        .into_iter()
        .zip(rows)
        .map(|(opening, rows)| Column {
            variables: log2_ceil(opening.values.len()),
            rows,
            opening: Some(Arc::new(opening)),
        });
    columns.collect()
}

/// The table before, and the row in it of each row that is carried: of the rows behind the fresh ones, in order.
#[derive(Clone, Copy)]
pub struct Carried<'a> {
    pub previous: &'a Previous<Column>,
    pub rows: &'a [usize],
}

/// A proof, with the columns that it yields.
pub struct DocumentTableProof {
    pub proof: Vec<u8>,
    pub columns: Proven<Column>,
}

/// The private columns of a run, beside those of the statement.
#[derive(Clone)]
pub(crate) struct Witness {
    /// The drawn column is the coin of each row.
    draws: Draws,
    columns: Columns<Vec<i64>>,
}

/// A column's values.
pub(crate) fn values(column: &Column) -> Result<&[i64]> {
    let missing = || Error::Unsatisfied("the opening of a column of a table is missing".to_owned());
    let opening = column.opening.as_ref().ok_or_else(missing)?;
    Ok(&opening.values)
}

impl Witness {
    /// From the words of the stream as integers, whatever the statement allows.
    fn new(
        statement: &DocumentTableStatement,
        words: &[[u64; 4]],
        table: &Table<Column>,
        carried: Option<Carried>,
    ) -> Result<Self> {
        let rows = statement.rows;
        let mut draws = Draws::new(&drawn_statement(statement), words)?;
        let (mut taken, mut listed) = (None, None);
        if let Some(Carried { previous, rows: of }) = carried {
            let kept = values(&previous.kept)?;
            draws.column.extend(of.iter().map(|r| kept[*r]));
            let mut column = vec![0; rows];
            of.iter().for_each(|r| column[*r] += 1);
            taken = Some(column);
            if let Some(before) = &previous.listed {
                let before = values(before)?;
                let mut column = vec![0; statement.fresh];
                column.extend(of.iter().map(|r| before[*r]));
                listed = Some(column);
            }
        }
        let row = values(&table.row)?;
        let coin = |r: &i64| {
            let coin = usize::try_from(*r).ok().and_then(|r| draws.column.get(r));
            coin.copied().unwrap_or_default()
        };
        let sample = row.iter().map(coin).collect();
        // Of each row, and of the positions without a row.
        let mut positions = vec![0; rows + 1];
        row.iter().for_each(|r| count(&mut positions, *r));
        let unplaced = positions.split_off(rows);
        let mut witness = Self {
            draws,
            columns: Columns {
                sample,
                count: positions,
                unplaced,
                counts: Vec::new(),
                carried: taken,
                listed,
            },
        };
        witness.count_counts(statement, table, carried)?;
        Ok(witness)
    }

    /// Counts the lookups of pairs of a number of positions and a bit.
    fn count_counts(
        &mut self,
        statement: &DocumentTableStatement,
        table: &Table<Column>,
        carried: Option<Carried>,
    ) -> Result<()> {
        let end = statement.positions_per_row as i64 + 1;
        let mut counts = vec![0; end as usize + 1];
        let mut pairs = vec![(&self.columns.count[..], values(&table.names.named)?)];
        if let (Some(carried), Some(taken)) = (carried, &self.columns.carried) {
            pairs.push((values(&carried.previous.count)?, taken));
        }
        for (number, bit) in pairs.into_iter().flat_map(|(n, b)| n.iter().zip(b)) {
            // Numbers above the largest, and numbers without the bit, are at places beyond the table.
            let beyond = (end - 1 - number) >> 63 & end;
            count(&mut counts, number + beyond + (1 - bit) * end);
        }
        self.columns.counts = counts;
        Ok(())
    }

    /// Names the first row that has no proof.
    fn refuse(
        &self,
        statement: &DocumentTableStatement,
        table: &Table<Column>,
        carried: Option<Carried>,
    ) -> Result<()> {
        let first = |what: &dyn Fn(usize) -> bool, text: &str| {
            let row = (0..statement.rows).find(|r| what(*r));
            row.map_or(Ok(()), |r| {
                Err(Error::Unsatisfied(format!("row {r} {text}")))
            })
        };
        let most = statement.positions_per_row;
        let number = &self.columns.count;
        first(
            &|r| number[r] > most as i64,
            &format!("has more than {most} positions"),
        )?;
        let named = values(&table.names.named)?;
        first(
            &|r| number[r] > 0 && named[r] == 0,
            "has positions and no name",
        )?;
        let (Some(carried), Some(taken)) = (carried, &self.columns.carried) else {
            return Ok(());
        };
        let number = values(&carried.previous.count)?;
        let given_up = "of the table before has positions there and is not carried";
        first(&|r| number[r] > 0 && taken[r] == 0, given_up)?;
        first(&|r| taken[r] > 1, "of the table before is carried twice")?;
        let (now, before) = (table.names.each(), carried.previous.names.each());
        for (now, before) in now.zip(before) {
            let (now, before) = (values(now)?, values(before)?);
            let of = |r: usize| carried.rows[r - statement.fresh];
            first(
                &|r| r >= statement.fresh && now[r] != before[of(r)],
                "has not the name that is carried",
            )?;
        }
        Ok(())
    }

    fn private(
        self,
        statement: &DocumentTableStatement,
        seed: &Seed,
        openings: Vec<Arc<Opening>>,
    ) -> Private {
        let draws = drawn_statement(statement);
        Private {
            draws: drawn::private(&draws, std::slice::from_ref(seed), vec![self.draws], false),
            openings,
            columns: self.columns.in_order(),
        }
    }
}

/// The draws of the fresh rows.
fn drawn_statement(statement: &DocumentTableStatement) -> BernoulliStatement {
    let coins = statement.coins.clone();
    BernoulliStatement::single(statement.context, statement.slot, statement.fresh, coins)
}

/// The openings of the statement's columns, in order.
fn openings(table: &Table<Column>, carried: Option<Carried>) -> Result<Vec<Arc<Opening>>> {
    let before = carried.iter().flat_map(|carried| carried.previous.each());
    openings_of(table.each().chain(before))
}

/// The openings of columns.
pub(crate) fn openings_of<'c>(
    columns: impl Iterator<Item = &'c Column>,
) -> Result<Vec<Arc<Opening>>> {
    let opening = |column: &Column| {
        let missing =
            || Error::Unsatisfied("the opening of a table's column is missing".to_owned());
        column.opening.clone().ok_or_else(missing)
    };
    columns.map(opening).collect()
}

/// Proves the coins of a table; with `low_memory` the same proof in more time.
///
/// ```
/// use ragaudit_scan_prover::bernoulli::Bernoulli;
/// use ragaudit_scan_prover::document_table::{
///     commit, prove, verify, DocumentTableStatement, Table, TableKey,
/// };
/// use ragaudit_scan_prover::drawn::Slot;
/// use ragaudit_scan_prover::group::Fr;
/// use ragaudit_scan_prover::index::Layout;
/// use ragaudit_scan_prover::words::{seed_commitment, Seed};
///
/// // A document in the positions 0 and 2, another one in position 3, and position 1 is empty.
/// let names = [Some(Fr::from(71u8)), None, Some(Fr::from(72u8))];
/// let table = commit(Layout::new(4)?, vec![0, 3, 0, 2], &names, &TableKey([5; 32]))?;
/// let seed = Seed([Fr::from(1u8), Fr::from(2u8)]);
/// let statement = DocumentTableStatement {
///     context: [7; 32],
///     slot: Slot { c_seed: seed_commitment(&seed), beacon: Fr::from(3u8), slot: Fr::from(4u8) },
///     coins: Bernoulli { bound: 1 << 39 },
///     capacity: 4,
///     rows: 3,
///     positions_per_row: 2,
///     fresh: 3,
///     table: Table::named(&mut table.each().map(|column| column.rows.clone())),
///     previous: None,
/// };
/// let made = prove(&statement, &seed, &table, None, false)?;
/// assert_eq!(verify(&statement, &made.proof)?.sample.rows, made.columns.sample.rows);
/// # Ok::<(), ragaudit_scan_prover::Error>(())
/// ```
pub fn prove(
    statement: &DocumentTableStatement,
    seed: &Seed,
    table: &Table<Column>,
    carried: Option<Carried>,
    low_memory: bool,
) -> Result<DocumentTableProof> {
    let witness = witness(statement, seed, table, carried)?;
    witness.refuse(statement, table, carried)?;
    let openings = openings(table, carried)?;
    prove_witness::<Prover>(
        statement,
        seed,
        witness,
        openings,
        low_memory.then_some(LEAST),
    )
}

/// The private columns under a seed.
fn witness(
    statement: &DocumentTableStatement,
    seed: &Seed,
    table: &Table<Column>,
    carried: Option<Carried>,
) -> Result<Witness> {
    statement.layout()?;
    if carried.is_some() != statement.previous.is_some() {
        return Err(Error::Unsatisfied(
            "the statement and the private values disagree on a table before".to_owned(),
        ));
    }
    if let Some(carried) = carried {
        let expected = statement.rows - statement.fresh;
        let inside = carried.rows.iter().all(|r| *r < statement.rows);
        if carried.rows.len() != expected || !inside {
            let expected = format!("{expected} rows below {}", statement.rows);
            return Err(Error::invalid("carried rows", expected, carried.rows.len()));
        }
    }
    let kappa = noise_key(seed, statement.slot.beacon, statement.slot.slot);
    let words = words(kappa, statement.blocks().count);
    Witness::new(statement, &words, table, carried)
}

/// Proves these columns, whatever they are; in low memory so many blocks at a time.
pub(crate) fn prove_witness<P: Proves>(
    statement: &DocumentTableStatement,
    seed: &Seed,
    witness: Witness,
    openings: Vec<Arc<Opening>>,
    low_memory: Option<Recomputed>,
) -> Result<DocumentTableProof> {
    let rows = statement.layout()?.row_variables;
    let mut session: Session<P> = Session::prover(statement.transcript(), rows, &seed.witness())?;
    session.low_memory = low_memory;
    let private = witness.private(statement, seed, openings);
    let columns = document_table_protocol(&mut session, statement, Some(private))?;
    let proof = session.close(None)?.into();
    Ok(DocumentTableProof { proof, columns })
}

/// See [`ragaudit_scan_protocol::document_table::check`].
pub fn check(
    statement: &DocumentTableStatement,
    proof: &[u8],
) -> Result<(Proven<Column>, Equation)> {
    ragaudit_scan_protocol::document_table::check::<Verifier>(statement, proof)
}

/// See [`ragaudit_scan_protocol::document_table::verify`].
pub fn verify(statement: &DocumentTableStatement, proof: &[u8]) -> Result<Proven<Column>> {
    ragaudit_scan_protocol::document_table::verify::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
