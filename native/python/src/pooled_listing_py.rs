//! Pooled listing. Encodings are as in `scan_py`; bits are one byte for each row of the document table.
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_field_simd::field::{element, elements};
use ragaudit_scan_prover::bernoulli::Bernoulli;
use ragaudit_scan_prover::document_table::{open_row, TableKey};
use ragaudit_scan_prover::group::{decode_points, encode_points};
use ragaudit_scan_prover::index::{IndexKey, Layout};
use ragaudit_scan_prover::pooled_listing::{listed_column, nothing_listed, open_listed, Given};
use ragaudit_scan_prover::pooled_listing_records::{self, Constants, Private, Rows};
use ragaudit_scan_prover::query::Answer;
use ragaudit_scan_prover::{protocol, Error, Result};

use crate::scan_py::{integers, record, seed_of, signed, ScanIndex};
use crate::{array, guard};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ScanPooledListing>()?;
    m.add_function(wrap_pyfunction!(scan_pooled_protocol, m)?)?;
    m.add_function(wrap_pyfunction!(scan_pooled_prove, m)?)?;
    m.add_function(wrap_pyfunction!(scan_listed_rows, m)?)?;
    m.add_function(wrap_pyfunction!(scan_listed_empty, m)?)?;
    Ok(())
}

/// The digest that names the protocol of pooled listing.
#[pyfunction]
fn scan_pooled_protocol(py: Python<'_>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &protocol::pooled_name())
}

/// The constants of a tenant with pooled listing: the 32-byte digest of the window; commitments to the row of each position and
/// to the bit of each row; rows, maximum positions of a row, bound of chance; threshold, places, score window and lattice.
#[pyclass(frozen)]
pub(crate) struct ScanPooledListing(pub(crate) Constants);

#[pymethods]
impl ScanPooledListing {
    #[new]
    fn new(
        py: Python<'_>,
        window: &[u8],
        row: &[u8],
        kept: &[u8],
        numbers: (usize, usize, u64),
        answer: (i64, usize),
        scores: (i64, i64, i64),
    ) -> PyResult<Self> {
        let (rows, positions_per_row, bound) = numbers;
        let ((threshold, listed), (lo, hi, lattice)) = (answer, scores);
        guard(py, || {
            Ok::<_, Error>(Self(Constants {
                window: array(window, "window")?,
                chance: Bernoulli { bound },
                rows,
                positions_per_row,
                row: decode_points(row)?,
                kept: decode_points(kept)?,
                threshold,
                listed,
                lo,
                hi,
                lattice,
            }))
        })
    }
}

fn bits(bytes: &[u8]) -> Vec<i64> {
    bytes.iter().map(|b| i64::from(*b)).collect()
}

/// Seed, the row of each position (int32), the key of the table, the bits of its rows, and their blindings.
type Table = (
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
);

/// Commitments to the listed rows before a record, their bits and blindings; and the blindings after it.
type Listed = (PyBackedBytes, PyBackedBytes, PyBackedBytes, PyBackedBytes);

/// Scores of all positions (int32), the query (int8) and its salt, the places (int32) and the salt of htopk.
type Answered = (
    PyBackedBytes,
    (PyBackedBytes, PyBackedBytes),
    (PyBackedBytes, PyBackedBytes),
);

/// The proof of a record (c_seed, beacon, slot, context, cq, htopk), and the commitments to the listed rows after it; `key` is the
/// index's.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn scan_pooled_prove<'py>(
    py: Python<'py>,
    index: &ScanIndex,
    pooled_listing: &ScanPooledListing,
    record_elements: &[u8],
    table: Table,
    listed: Listed,
    answer: Answered,
    key: &[u8],
    low_memory: bool,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (proof, after) = guard(py, || {
        let (layout, constants) = (index.0.layout, &pooled_listing.0);
        let (seed, row, table_key, kept, of_kept) = &table;
        let (rows, before, of_before, of_after) = &listed;
        let (scores, query, places) = &answer;
        let given = |what: &str, points: &[_], values: &[u8], blindings: &[u8]| {
            open_listed(
                layout,
                what,
                points,
                bits(values),
                elements(blindings, "blindings")?,
            )
        };
        let table_key = TableKey(array(table_key, "table key")?);
        let row = open_row(
            layout,
            &constants.row,
            integers(row),
            constants.rows,
            &table_key,
        )?;
        let kept = given("bits of the table", &constants.kept, kept, of_kept)?;
        let before = given(
            "listed rows before",
            &decode_points(rows)?,
            before,
            of_before,
        )?;
        let request = Answer {
            query: signed(&query.0),
            query_salt: element(&query.1, "query salt")?,
            positions: integers(&places.0),
            list_salt: element(&places.1, "list salt")?,
            scores: integers(scores),
        };
        let private = Private {
            request: &request,
            seed: &seed_of(seed)?,
            given: Given {
                row: &row,
                kept: &kept,
                before: &before,
            },
            after: &elements(of_after, "blindings")?,
            key: &IndexKey(array(key, "key")?),
        };
        let record = record(record_elements)?;
        let (proof, after) =
            pooled_listing_records::prove(&index.0, constants, &record, private, low_memory)?;
        Ok::<_, Error>((proof, encode_points(&after)))
    })?;
    Ok((PyBytes::new(py, &proof), PyBytes::new(py, &after)))
}

/// A record with the commitments to the listed rows before and after it, and its proof.
pub(crate) type PooledRecord = (PyBackedBytes, PyBackedBytes, PyBackedBytes, PyBackedBytes);

pub(crate) fn pooled_records<'a>(
    _: &(),
    records: &'a [PooledRecord],
) -> Result<Vec<pooled_listing_records::Item<'a>>> {
    records
        .iter()
        .map(|(of, before, after, proof)| Ok((record(of)?, Rows { before, after }, &proof[..])))
        .collect()
}

/// Commitments to the listed rows of a document table over `capacity` positions, under blindings (one for each row of points).
#[pyfunction]
fn scan_listed_rows<'py>(
    py: Python<'py>,
    capacity: usize,
    listed: &[u8],
    blindings: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let rows = guard(py, || {
        let blindings = elements(blindings, "blindings")?;
        let column = listed_column(Layout::new(capacity)?, bits(listed), blindings)?;
        Ok::<_, Error>(encode_points(&column.rows))
    })?;
    Ok(PyBytes::new(py, &rows))
}

/// The commitments before a tenant's first record: no listed row, with the blinding 1 in every row of points.
#[pyfunction]
fn scan_listed_empty(py: Python<'_>, capacity: usize, rows: usize) -> PyResult<Bound<'_, PyBytes>> {
    let rows = guard(py, || {
        let column = nothing_listed(Layout::new(capacity)?, rows);
        Ok::<_, Error>(encode_points(&column.rows))
    })?;
    Ok(PyBytes::new(py, &rows))
}
