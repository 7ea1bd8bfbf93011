//! Names of rows, by their provers: `docs/scan/row-names.md`.
use std::sync::Arc;

use ragaudit_scan_protocol::row_names::{row_names_protocol, Private};
pub use ragaudit_scan_protocol::row_names::{Columns, RowNamesStatement, MAX_OPENED, TAG_NAME};
use zeroize::Zeroizing;

use crate::channel::Proves;
use crate::claims::{Column, Opening};
use crate::document_table::{openings_of, values, Table, NAME_LIMBS, NAME_LIMB_BITS};
use crate::equation::Equation;
use crate::error::{Error, Result};
use crate::group::{encode_scalar, Fr};
use crate::numbers::power_of_two;
use crate::prover::columns::count;
use crate::prover::Prover;
use crate::session::Session;
use crate::verifier::Verifier;

/// The private columns of a run, beside those of the table.
#[derive(Clone)]
pub(crate) struct Witness {
    columns: Columns<Vec<i64>>,
}

impl Witness {
    /// From a table, whatever the statement allows.
    fn new(statement: &RowNamesStatement, table: &Table<Column>) -> Result<Self> {
        let row = values(&table.row)?;
        let (names, of_positions) = statement.names();
        let mut numbers = vec![0; statement.opened.len()];
        // Of several positions with one name, the first one is written last.
        for ((position, _), name) in statement.opened.iter().zip(&of_positions).rev() {
            numbers[*name] = row[*position];
        }
        let mut witness = Self {
            columns: Columns {
                numbers,
                multiplicities: Vec::new(),
            },
        };
        witness.count_rows(statement, names.len());
        Ok(witness)
    }

    /// Counts the lookups of rows.
    fn count_rows(&mut self, statement: &RowNamesStatement, names: usize) {
        let mut multiplicities = vec![0; statement.rows];
        let numbers = self.columns.numbers[..names].iter();
        numbers.for_each(|r| count(&mut multiplicities, *r));
        self.columns.multiplicities = multiplicities;
    }

    fn private(self, openings: Vec<Arc<Opening>>) -> Private {
        Private {
            openings,
            columns: self.columns.in_order(),
        }
    }

    /// Names the first position that has no proof.
    fn refuse(&self, statement: &RowNamesStatement, table: &Table<Column>) -> Result<()> {
        let unsatisfied = |reason: String| Err(Error::Unsatisfied(reason));
        let row = values(&table.row)?;
        let named = values(&table.names.named)?;
        let limbs = (table.names.limbs.each_ref()).map(values);
        let limbs: Vec<&[i64]> = limbs.into_iter().collect::<Result<_>>()?;
        let (_, of_positions) = statement.names();
        for ((position, name), number) in statement.opened.iter().zip(of_positions) {
            let r = row[*position] as usize;
            if r >= statement.rows {
                return unsatisfied(format!("position {position} has no row, so no name"));
            }
            if named[r] == 0 {
                return unsatisfied(format!("the row of position {position} has no name"));
            }
            let limb = |k: usize| Fr::from(limbs[k][r] as u64) * power_of_two(NAME_LIMB_BITS * k);
            if (0..NAME_LIMBS).map(limb).sum::<Fr>() != *name {
                let reason = format!("the row of position {position} has another name");
                return unsatisfied(reason);
            }
            if self.columns.numbers[number] != r as i64 {
                let reason = format!(
                    "position {position} and an earlier position have one name and two rows"
                );
                return unsatisfied(reason);
            }
        }
        Ok(())
    }
}

/// Proves the names of the rows of positions.
///
/// ```
/// use ragaudit_scan_prover::document_table::{commit, Table, TableKey};
/// use ragaudit_scan_prover::group::Fr;
/// use ragaudit_scan_prover::index::Layout;
/// use ragaudit_scan_prover::row_names::{prove, verify, RowNamesStatement};
///
/// // A document in the positions 0 and 2, another one in position 3, and position 1 is empty.
/// let names = [71u8, 72].map(Fr::from);
/// let of_rows = [Some(names[0]), None, Some(names[1])];
/// let table = commit(Layout::new(4)?, vec![0, 3, 0, 2], &of_rows, &TableKey([5; 32]))?;
/// let mut statement = RowNamesStatement {
///     context: [7; 32],
///     capacity: 4,
///     rows: 3,
///     table: Table::named(&mut table.each().map(|column| column.rows.clone())),
///     opened: vec![(0, names[0]), (2, names[0]), (3, names[1])],
/// };
/// let proof = prove(&statement, &table)?;
/// assert_eq!(verify(&statement, &proof), Ok(()));
/// statement.opened[2].1 = names[0];
/// assert!(verify(&statement, &proof).is_err());
/// assert!(prove(&statement, &table).is_err());
/// # Ok::<(), ragaudit_scan_prover::Error>(())
/// ```
///
/// # Errors
/// A statement beyond its limits, and the first position that has no row, no name, another name, or a row that another
/// position with its name does not have.
pub fn prove(statement: &RowNamesStatement, table: &Table<Column>) -> Result<Vec<u8>> {
    statement.layout()?;
    let witness = Witness::new(statement, table)?;
    witness.refuse(statement, table)?;
    let openings = openings_of(table.each())?;
    prove_witness::<Prover>(statement, witness, openings)
}

/// Proves these columns, whatever they are.
pub(crate) fn prove_witness<P: Proves>(
    statement: &RowNamesStatement,
    witness: Witness,
    openings: Vec<Arc<Opening>>,
) -> Result<Vec<u8>> {
    let rows = statement.layout()?.row_variables;
    // The blindings depend on the table's key and on all values of its columns.
    let blindings = openings.iter().flat_map(|opening| &opening.blindings);
    let seed: Zeroizing<Vec<u8>> = Zeroizing::new(blindings.flat_map(encode_scalar).collect());
    let mut session: Session<P> = Session::prover(statement.transcript(), rows, &seed)?;
    row_names_protocol(&mut session, statement, Some(witness.private(openings)))?;
    Ok(session.close(None)?.into())
}

/// See [`ragaudit_scan_protocol::row_names::check`].
pub fn check(statement: &RowNamesStatement, proof: &[u8]) -> Result<Equation> {
    ragaudit_scan_protocol::row_names::check::<Verifier>(statement, proof)
}

/// See [`ragaudit_scan_protocol::row_names::verify`].
pub fn verify(statement: &RowNamesStatement, proof: &[u8]) -> Result<()> {
    ragaudit_scan_protocol::row_names::verify::<Verifier>(statement, proof)
}

#[cfg(test)]
pub(crate) mod tests;
