//! Names of the rows of opened positions. Encodings are as in `document_table_py`.
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_field_simd::field::elements;
use ragaudit_scan_prover::document_table::{open_table, Table};
use ragaudit_scan_prover::group::decode_points;
use ragaudit_scan_prover::row_names::{self, RowNamesStatement};
use ragaudit_scan_prover::{Error, Result};

use crate::document_table_py::{key_of, names_of};
use crate::scan_py::integers;
use crate::{array, guard};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(scan_row_names_prove, m)?)?;
    m.add_function(wrap_pyfunction!(scan_row_names_verify, m)?)?;
    Ok(())
}

fn statement(
    context: &[u8],
    (capacity, rows): (usize, usize),
    table: &[u8],
    positions: &[u8],
    names: &[u8],
) -> Result<RowNamesStatement> {
    let names = elements(names, "names")?;
    if positions.len() != 4 * names.len() {
        let expected = format!("{} bytes, four for each name", 4 * names.len());
        let actual = format!("{} bytes", positions.len());
        return Err(Error::invalid("positions", expected, actual));
    }
    let positions = integers(positions).into_iter();
    let position = |p: i64| usize::try_from(p).unwrap_or(usize::MAX);
    let statement = RowNamesStatement {
        context: array(context, "context")?,
        capacity,
        rows,
        table: Table::split(&decode_points(table)?, capacity, rows)?,
        opened: positions.map(position).zip(names).collect(),
    };
    statement.layout()?;
    Ok(statement)
}

/// The row of each position, and names, marks and key of the table.
type Private = (PyBackedBytes, PyBackedBytes, PyBackedBytes, PyBackedBytes);

/// The proof that the rows of positions (int32, increasing) have these names (elements), of a table with these points.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn scan_row_names_prove<'py>(
    py: Python<'py>,
    context: &[u8],
    capacity: usize,
    rows: usize,
    table: &[u8],
    positions: &[u8],
    names: &[u8],
    private: Private,
) -> PyResult<Bound<'py, PyBytes>> {
    let proof = guard(py, || {
        let statement = statement(context, (capacity, rows), table, positions, names)?;
        let (row, names, named, key) = &private;
        let (names, key) = (names_of(names, named)?, key_of(key)?);
        let (layout, points) = (statement.layout()?, &statement.table);
        let table = open_table(layout, points, integers(row), &names, &key)?;
        row_names::prove(&statement, &table)
    })?;
    Ok(PyBytes::new(py, &proof))
}

/// Raises ValueError with the reason unless the proof holds.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn scan_row_names_verify(
    py: Python<'_>,
    context: &[u8],
    capacity: usize,
    rows: usize,
    table: &[u8],
    positions: &[u8],
    names: &[u8],
    proof: &[u8],
) -> PyResult<()> {
    guard(py, || {
        let statement = statement(context, (capacity, rows), table, positions, names)?;
        row_names::verify(&statement, proof)
    })
}
