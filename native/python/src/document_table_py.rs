//! Sampling by document. Encodings are as in `scan_py`; names are field elements, and 0 for a row without a name.
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_field_simd::field::elements;
use ragaudit_scan_prover::bernoulli::Bernoulli;
use ragaudit_scan_prover::claims::Opening;
use ragaudit_scan_prover::document_table::{
    self, Carried, DocumentTableStatement, Previous, Proven, Table, TableKey,
};
use ragaudit_scan_prover::group::{decode_points, encode_points, Fr};
use ragaudit_scan_prover::index::Layout;
use ragaudit_scan_prover::session::Column;
use ragaudit_scan_prover::{Error, Result};

use crate::scan_py::{byte_strings, integers, opened, seed_of, slot, ByteStrings};
use crate::{array, guard};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(scan_documents_commit, m)?)?;
    m.add_function(wrap_pyfunction!(scan_documents_prove, m)?)?;
    m.add_function(wrap_pyfunction!(scan_documents_verify, m)?)?;
    Ok(())
}

/// Capacity, rows, maximum positions of a row, fresh rows, bound of the draws.
type Numbers = (usize, usize, usize, usize, u64);

fn statement(
    context: &[u8],
    slot_elements: &[u8],
    (capacity, rows, positions_per_row, fresh, bound): Numbers,
    table: &[u8],
    (previous, listed): (Option<&[u8]>, bool),
) -> Result<DocumentTableStatement> {
    let previous = previous
        .map(|points| Previous::split(&decode_points(points)?, capacity, rows, listed))
        .transpose()?;
    let statement = DocumentTableStatement {
        context: array(context, "context")?,
        slot: slot(slot_elements)?,
        coins: Bernoulli { bound },
        capacity,
        rows,
        positions_per_row,
        fresh,
        table: Table::split(&decode_points(table)?, capacity, rows)?,
        previous,
    };
    statement.layout()?;
    Ok(statement)
}

/// A name for each row with a mark, from elements and marks.
pub(crate) fn names_of(names: &[u8], named: &[u8]) -> Result<Vec<Option<Fr>>> {
    let names = elements(names, "names")?;
    if names.len() != named.len() {
        let expected = format!("{} marks", names.len());
        return Err(Error::invalid("named", expected, named.len()));
    }
    bits(named, "named")?;
    let pairs = names.into_iter().zip(named);
    Ok(pairs
        .map(|(name, mark)| (*mark == 1).then_some(name))
        .collect())
}

fn bits(bytes: &[u8], field: &str) -> Result<Vec<i64>> {
    if bytes.iter().fold(0, |all, b| all | b) > 1 {
        return Err(Error::invalid(field, "bytes 0 and 1", "another byte"));
    }
    Ok(bytes.iter().map(|b| i64::from(*b)).collect())
}

pub(crate) fn key_of(key: &[u8]) -> Result<TableKey> {
    Ok(TableKey(array(key, "key")?))
}

/// The points of a table, blinded from a 32-byte key: of the row of each position (int32), of the marks of rows with a name, and
/// of the five columns of names.
#[pyfunction]
fn scan_documents_commit<'py>(
    py: Python<'py>,
    capacity: usize,
    row: &[u8],
    names: &[u8],
    named: &[u8],
    key: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let points = guard(py, || {
        let names = names_of(names, named)?;
        let layout = Layout::new(capacity)?;
        let table = document_table::commit(layout, integers(row), &names, &key_of(key)?)?;
        let points = table.each().flat_map(|column| encode_points(&column.rows));
        Ok::<_, Error>(points.collect::<Vec<u8>>())
    })?;
    Ok(PyBytes::new(py, &points))
}

/// Seed; and the row of each position, names, marks and key of the table.
type Private = (
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
);

/// Names, marks and key of the table before; the coin (byte) and the number of positions (int32) of its rows, with the blindings
/// of both; a mark for each row that is carried; and with pooled listing the listed rows (bytes) with their blindings.
type Before = (
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    Option<(PyBackedBytes, PyBackedBytes)>,
);

/// The table before, and the numbers of its carried rows.
fn before_of(
    statement: &DocumentTableStatement,
    (names, named, key, kept, count, blindings, carried, listed): &Before,
) -> Result<(Previous<Column>, Vec<usize>)> {
    let mut of_kept = elements(blindings, "blindings")?;
    let of_count = of_kept.split_off(of_kept.len() / 2);
    let listed = (listed.as_ref())
        .map(|(listed, blindings)| {
            Ok::<_, Error>(Opening {
                values: bits(listed, "listed")?,
                blindings: elements(blindings, "blindings")?,
            })
        })
        .transpose()?;
    let previous = document_table::open_previous(
        statement,
        &names_of(names, named)?,
        &key_of(key)?,
        Opening {
            values: bits(kept, "coins")?,
            blindings: of_kept,
        },
        Opening {
            values: integers(count),
            blindings: of_count,
        },
        listed,
    )?;
    let marks = bits(carried, "carried")?.into_iter().enumerate();
    let rows = marks.filter_map(|(r, mark)| (mark == 1).then_some(r));
    Ok((previous, rows.collect()))
}

/// The proof of a statement's sample; with commitments to sample, coins and numbers of positions, and their secret blindings.
/// With `listed` the last points of the table before are those of its listed rows, and the last commitment is that to the rows
/// that are listed when the window begins.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn scan_documents_prove<'py>(
    py: Python<'py>,
    context: &[u8],
    slot_elements: &[u8],
    numbers: Numbers,
    table: &[u8],
    previous: Option<&[u8]>,
    listed: bool,
    private: Private,
    before: Option<Before>,
    low_memory: bool,
) -> PyResult<(Bound<'py, PyBytes>, ByteStrings<'py>, ByteStrings<'py>)> {
    let (proof, (rows, blindings)) = guard(py, || {
        let of_before = (previous, listed);
        let statement = statement(context, slot_elements, numbers, table, of_before)?;
        let (seed, row, names, named, key) = &private;
        let names = names_of(names, named)?;
        let (layout, key) = (statement.layout()?, key_of(key)?);
        let table =
            document_table::open_table(layout, &statement.table, integers(row), &names, &key)?;
        let before = before
            .as_ref()
            .map(|b| before_of(&statement, b))
            .transpose()?;
        let carried = before
            .as_ref()
            .map(|(previous, rows)| Carried { previous, rows });
        let result =
            document_table::prove(&statement, &seed_of(seed)?, &table, carried, low_memory)?;
        Ok::<_, Error>((result.proof, opened(&in_order(result.columns))))
    })?;
    let proof = PyBytes::new(py, &proof);
    Ok((proof, byte_strings(py, &rows), byte_strings(py, &blindings)))
}

/// The columns that a proof yields, in order.
fn in_order(columns: Proven<Column>) -> Vec<Column> {
    let own = [columns.sample, columns.kept, columns.count];
    own.into_iter().chain(columns.listed).collect()
}

/// The commitments that a proof yields (`scan_documents_prove`). Raises ValueError with the reason unless the proof holds.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn scan_documents_verify<'py>(
    py: Python<'py>,
    context: &[u8],
    slot_elements: &[u8],
    numbers: Numbers,
    table: &[u8],
    previous: Option<&[u8]>,
    listed: bool,
    proof: &[u8],
) -> PyResult<ByteStrings<'py>> {
    let rows = guard(py, || {
        let of_before = (previous, listed);
        let statement = statement(context, slot_elements, numbers, table, of_before)?;
        let columns = in_order(document_table::verify(&statement, proof)?);
        let points = columns.iter().map(|column| encode_points(&column.rows));
        Ok::<_, Error>(points.collect::<Vec<_>>())
    })?;
    Ok(byte_strings(py, &rows))
}
