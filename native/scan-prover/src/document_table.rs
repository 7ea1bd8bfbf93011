//! Sampling by document, by its provers: `docs/scan/document-table.md`.
use std::sync::Arc;

use ark_ff::PrimeField;
use ragaudit_scan_protocol::document_table::{document_table_protocol, Private};
pub use ragaudit_scan_protocol::document_table::{
    Columns, DocumentTableStatement, Names, Previous, Proven, Table, MAX_ROWS, NAME_LIMBS,
    NAME_LIMB_BITS, TAG_CARRIED, TAG_COUNT, TAG_ROW,
};
use zeroize::{Zeroize, Zeroizing};

use crate::bernoulli::BernoulliStatement;
use crate::channel::Proves;
use crate::claims::{Bound, Column, Opening};
use crate::drawn::{self, Draws};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::Fr;
use crate::index::Layout;
use crate::numbers::log2_ceil;
use crate::prover::columns::{self, count};
use crate::prover::fractional_sumcheck::RUN;
use crate::prover::Prover;
use crate::secrets::Nonces;
use crate::session::Session;
use crate::verifier::Verifier;
use crate::words::{noise_key, words, Seed};

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

/// Commits to a table before the beacon, under fresh blindings: the row of each position, or the number of rows for a position
/// without a row, and the name of each row that has one.
///
/// # Errors
/// Numbers of positions and of rows beyond their limits, and a row that is not in the table.
pub fn commit(layout: Layout, row: Vec<i64>, names: &[Option<Fr>]) -> Result<Table<Column>> {
    let nonces = Nonces::new(&[0; 32], b"document table")?;
    commit_under(layout, row, names, nonces)
}

fn commit_under(
    layout: Layout,
    row: Vec<i64>,
    names: &[Option<Fr>],
    nonces: Nonces,
) -> Result<Table<Column>> {
    let rows = names.len();
    let largest = MAX_ROWS.min(layout.capacity);
    if !(1..=largest).contains(&rows) {
        return Err(Error::invalid("rows", format!("1 to {largest}"), rows));
    }
    if row.len() != layout.capacity {
        let expected = format!("{} positions", layout.capacity);
        return Err(Error::invalid("row", expected, row.len()));
    }
    if row.iter().any(|r| !(0..=rows as i64).contains(r)) {
        return Err(Error::invalid("row", format!("0 to {rows}"), "another row"));
    }
    let mut values = vec![row, names.iter().map(|n| n.is_some().into()).collect()];
    let limbs = names.iter().map(|name| limbs_of(name.unwrap_or_default()));
    let limbs: Zeroizing<Vec<_>> = Zeroizing::new(limbs.collect());
    values.extend((0..NAME_LIMBS).map(|k| limbs.iter().map(|limb| limb[k]).collect()));
    let bounds = [Bound::up_to(rows), Bound::Unsigned(1)];
    let limb = Bound::Unsigned(NAME_LIMB_BITS);
    let bounds = bounds.into_iter().chain([limb; NAME_LIMBS]);
    let columns = values.into_iter().zip(bounds);
    Ok(commit_columns(layout, columns, nonces))
}

/// The columns of a table under these blindings.
fn commit_columns(
    layout: Layout,
    values: impl Iterator<Item = (Vec<i64>, Bound)>,
    mut nonces: Nonces,
) -> Table<Column> {
    let length = 1 << layout.row_variables;
    let (openings, bounds): (Vec<Opening>, Vec<Bound>) = values
        .map(|(values, bound)| {
            let blindings = nonces.draw_many(values.len().div_ceil(length));
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
    Table::named(&mut columns.collect::<Vec<_>>().into_iter())
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
fn values(column: &Column) -> Result<&[i64]> {
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
        let mut taken = None;
        if let Some(Carried { previous, rows: of }) = carried {
            let kept = values(&previous.kept)?;
            draws.column.extend(of.iter().map(|r| kept[*r]));
            let mut column = vec![0; rows];
            of.iter().for_each(|r| column[*r] += 1);
            taken = Some(column);
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
            draws: drawn::private(&draws, std::slice::from_ref(seed), vec![self.draws]),
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
    let opening = |column: &Column| {
        let missing =
            || Error::Unsatisfied("the opening of a table's column is missing".to_owned());
        column.opening.clone().ok_or_else(missing)
    };
    table.each().chain(before).map(opening).collect()
}

/// Proves the coins of a table; with `low_memory` the same proof in more time.
///
/// ```
/// use ragaudit_scan_prover::bernoulli::Bernoulli;
/// use ragaudit_scan_prover::document_table::{commit, prove, verify, DocumentTableStatement, Table};
/// use ragaudit_scan_prover::drawn::Slot;
/// use ragaudit_scan_prover::group::Fr;
/// use ragaudit_scan_prover::index::Layout;
/// use ragaudit_scan_prover::words::{seed_commitment, Seed};
///
/// // A document in the positions 0 and 2, another one in position 3, and position 1 is empty.
/// let names = [Some(Fr::from(71u8)), None, Some(Fr::from(72u8))];
/// let table = commit(Layout::new(4)?, vec![0, 3, 0, 2], &names)?;
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
        low_memory.then_some(RUN),
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
    low_memory: Option<usize>,
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
