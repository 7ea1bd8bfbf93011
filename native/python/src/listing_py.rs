//! Lists by randomised response in the scan argument; encodings as in `scan_py`, bits one byte a position.
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ragaudit_field_simd::field::{element, elements};
use ragaudit_scan_prover::group::{decode_points, encode_points};
use ragaudit_scan_prover::index::{IndexKey, Layout};
use ragaudit_scan_prover::listing::{bit_column, committed_bits, nothing_held, Bits, Listing};
use ragaudit_scan_prover::lists::{self, Chance, Constants, Rows};
use ragaudit_scan_prover::session::Column;
use ragaudit_scan_prover::{Error, Result};
use zeroize::Zeroizing;

use crate::scan_py::{integers, record, signed, ScanIndex};
use crate::{array, guard};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ScanListing>()?;
    m.add_function(wrap_pyfunction!(scan_list_prove, m)?)?;
    m.add_function(wrap_pyfunction!(scan_list_verify, m)?)?;
    m.add_function(wrap_pyfunction!(scan_held_rows, m)?)?;
    m.add_function(wrap_pyfunction!(scan_held_zero, m)?)?;
    Ok(())
}

/// What a listing tenant's policy and window fix: 32-byte digest of the window, commitments to the kept positions, the
/// least score of a relevant position, the most positions of a list; and context and bound of the slots' coins, where a
/// record comes with their certificate instead of commitments that are verified.
#[pyclass(frozen)]
pub(crate) struct ScanListing(pub(crate) Constants);

#[pymethods]
impl ScanListing {
    #[new]
    #[pyo3(signature = (window, kept, threshold, most, chance=None))]
    fn new(
        py: Python<'_>,
        window: &[u8],
        kept: &[u8],
        threshold: i64,
        most: usize,
        chance: Option<(Vec<u8>, u64)>,
    ) -> PyResult<Self> {
        guard(py, || {
            let chance = chance.map(|(context, bound)| {
                let context = array(&context, "context")?;
                Ok::<_, Error>(Chance { context, bound })
            });
            Ok::<_, Error>(Self(Constants {
                window: array(window, "window")?,
                kept: decode_points(kept)?,
                threshold,
                most,
                chance: chance.transpose()?,
            }))
        })
    }
}

fn bits(bytes: &[u8]) -> Vec<i64> {
    bytes.iter().map(|b| i64::from(*b)).collect()
}

/// A column of bits with its commitments, from one byte a position and the blindings.
fn column(layout: Layout, rows: &[u8], bytes: &[u8], blindings: &[u8]) -> Result<Column> {
    let blindings = elements(blindings, "blindings")?;
    committed_bits(layout, decode_points(rows)?, bits(bytes), blindings)
}

/// Commitments, one byte a position, and the blindings of the commitments.
type Committed = (Vec<u8>, Vec<u8>, Vec<u8>);

/// The proof of a record's list (c_seed, beacon, slot, context, cq, htopk) and the commitments to what the account holds
/// after it, under the blindings `after`, which must be used for nothing else. `chance` is the slot's and `held` what the
/// account held before, each with its commitments; `kept` has no commitments of its own but those of `listing`. The
/// scores of all positions are int32, the query int8 with its salt; `salt_k` is htopk's, `key` the index's.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn scan_list_prove<'py>(
    py: Python<'py>,
    index: &ScanIndex,
    listing: &ScanListing,
    record_elements: &[u8],
    chance: Committed,
    kept: (Vec<u8>, Vec<u8>),
    held: Committed,
    after: &[u8],
    scores: &[u8],
    query: (Vec<u8>, Vec<u8>),
    salt_k: &[u8],
    key: &[u8],
    low_memory: bool,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (proof, rows) = guard(py, || {
        let (layout, constants) = (index.0.layout, &listing.0);
        let [chance, held] = [chance, held].map(Zeroizing::new).map(|c| {
            let (rows, bytes, blindings) = &*c;
            column(layout, rows, bytes, blindings)
        });
        let (bytes, blindings) = &*Zeroizing::new(kept);
        let blindings = elements(blindings, "blindings")?;
        let kept = committed_bits(layout, constants.kept.clone(), bits(bytes), blindings)?;
        let bits = Bits {
            chance: &chance?,
            kept: &kept,
            held: &held?,
        };
        let asked = Listing {
            query: signed(&query.0),
            query_salt: element(&query.1, "query salt")?,
            list_salt: element(salt_k, "list salt")?,
            scores: integers(scores),
        };
        lists::prove(
            &index.0,
            constants,
            &record(record_elements)?,
            &asked,
            &bits,
            elements(after, "blindings")?,
            &IndexKey(array(key, "key")?),
            low_memory,
        )
    })?;
    Ok((PyBytes::new(py, &proof), PyBytes::new(py, &rows)))
}

/// Raises ValueError with the reason unless the proof holds for the record: with these commitments to the slot's chance, or
/// their certificate, as `listing` says, and to what the account held before and holds after.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn scan_list_verify(
    py: Python<'_>,
    index: &ScanIndex,
    listing: &ScanListing,
    record_elements: &[u8],
    chance_rows: &[u8],
    held_rows: &[u8],
    after_rows: &[u8],
    proof: &[u8],
) -> PyResult<()> {
    guard(py, || {
        let rows = Rows {
            chance: chance_rows,
            held: held_rows,
            after: after_rows,
        };
        let item = (record(record_elements)?, rows, proof);
        lists::verify(&index.0, &listing.0, &item)
    })
}

/// Commitments to what an account holds, one byte a position, under these blindings, one a row.
#[pyfunction]
fn scan_held_rows<'py>(
    py: Python<'py>,
    capacity: usize,
    values: &[u8],
    blindings: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let rows = guard(py, || {
        let blindings = elements(blindings, "blindings")?;
        let made = bit_column(Layout::new(capacity)?, bits(values), blindings)?;
        Ok::<_, Error>(encode_points(&made.rows))
    })?;
    Ok(PyBytes::new(py, &rows))
}

/// The commitments that an account's first record starts from: nothing held, under the blinding 1 in every row.
#[pyfunction]
fn scan_held_zero(py: Python<'_>, capacity: usize) -> PyResult<Bound<'_, PyBytes>> {
    let rows = guard(py, || {
        Ok::<_, Error>(encode_points(&nothing_held(Layout::new(capacity)?).rows))
    })?;
    Ok(PyBytes::new(py, &rows))
}
