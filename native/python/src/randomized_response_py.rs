//! Lists by randomized response in the scan argument. Encodings are as in `scan_py`; bits are one byte for each position.
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ragaudit_field_simd::field::{element, elements};
use ragaudit_scan_prover::group::{decode_points, encode_points};
use ragaudit_scan_prover::index::{IndexKey, Layout};
use ragaudit_scan_prover::randomized_response::{
    bit_column, committed_bits, nothing_disclosed, Bits, ListWitness,
};
use ragaudit_scan_prover::randomized_response_records::{self, Constants, FlipProbability, Rows};
use ragaudit_scan_prover::session::Column;
use ragaudit_scan_prover::{Error, Result};
use zeroize::Zeroizing;

use crate::scan_py::{integers, record, signed, ScanIndex};
use crate::{array, guard};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ScanRandomizedResponse>()?;
    m.add_function(wrap_pyfunction!(scan_list_prove, m)?)?;
    m.add_function(wrap_pyfunction!(scan_list_verify, m)?)?;
    m.add_function(wrap_pyfunction!(scan_disclosed_rows, m)?)?;
    m.add_function(wrap_pyfunction!(scan_disclosed_empty, m)?)?;
    Ok(())
}

/// The constants of a tenant with randomized response: the 32-byte digest of the window, commitments to the sampled
/// positions, the minimum score of a relevant position, the maximum number of positions of a list; and the context and the
/// bound of the slots' Bernoulli bits, if records come with their proof instead of verified commitments.
#[pyclass(frozen)]
pub(crate) struct ScanRandomizedResponse(pub(crate) Constants);

#[pymethods]
impl ScanRandomizedResponse {
    #[new]
    #[pyo3(signature = (window, sample, threshold, maximum, flip_probability=None))]
    fn new(
        py: Python<'_>,
        window: &[u8],
        sample: &[u8],
        threshold: i64,
        maximum: usize,
        flip_probability: Option<(Vec<u8>, u64)>,
    ) -> PyResult<Self> {
        guard(py, || {
            let flip_probability = flip_probability.map(|(context, bound)| {
                let context = array(&context, "context")?;
                Ok::<_, Error>(FlipProbability { context, bound })
            });
            Ok::<_, Error>(Self(Constants {
                window: array(window, "window")?,
                sample: decode_points(sample)?,
                threshold,
                maximum,
                flip_probability: flip_probability.transpose()?,
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

/// The proof of a record's list (c_seed, beacon, slot, context, cq, htopk) and the commitments to the account's disclosed set
/// after it, under the blindings `after`, which must have no other use. `flips` are the slot's Bernoulli bits and
/// `disclosed` the disclosed set before, each with its commitments; the commitments of `sample` are
/// in `randomized_response`. The scores of all positions are int32, the query int8 with its salt; `salt_k` is htopk's, `key` the
/// index's.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn scan_list_prove<'py>(
    py: Python<'py>,
    index: &ScanIndex,
    randomized_response: &ScanRandomizedResponse,
    record_elements: &[u8],
    flips: Committed,
    sample: (Vec<u8>, Vec<u8>),
    disclosed: Committed,
    after: &[u8],
    scores: &[u8],
    query: (Vec<u8>, Vec<u8>),
    salt_k: &[u8],
    key: &[u8],
    low_memory: bool,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (proof, rows) = guard(py, || {
        let (layout, constants) = (index.0.layout, &randomized_response.0);
        let [flips, disclosed] = [flips, disclosed].map(Zeroizing::new).map(|c| {
            let (rows, bytes, blindings) = &*c;
            column(layout, rows, bytes, blindings)
        });
        let (bytes, blindings) = &*Zeroizing::new(sample);
        let blindings = elements(blindings, "blindings")?;
        let sample = committed_bits(layout, constants.sample.clone(), bits(bytes), blindings)?;
        let bits = Bits {
            flips: &flips?,
            sample: &sample,
            disclosed: &disclosed?,
        };
        let witness = ListWitness {
            query: signed(&query.0),
            query_salt: element(&query.1, "query salt")?,
            list_salt: element(salt_k, "list salt")?,
            scores: integers(scores),
        };
        randomized_response_records::prove(
            &index.0,
            constants,
            &record(record_elements)?,
            &witness,
            &bits,
            elements(after, "blindings")?,
            &IndexKey(array(key, "key")?),
            low_memory,
        )
    })?;
    Ok((PyBytes::new(py, &proof), PyBytes::new(py, &rows)))
}

/// Raises ValueError with the reason unless the proof holds for the record. The arguments include commitments to the slot's
/// Bernoulli bits, or their proof, according to `randomized_response`, and commitments to the account's disclosed set before
/// and after the record.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn scan_list_verify(
    py: Python<'_>,
    index: &ScanIndex,
    randomized_response: &ScanRandomizedResponse,
    record_elements: &[u8],
    flip_rows: &[u8],
    disclosed_rows: &[u8],
    after_rows: &[u8],
    proof: &[u8],
) -> PyResult<()> {
    guard(py, || {
        let rows = Rows {
            flips: flip_rows,
            disclosed: disclosed_rows,
            after: after_rows,
        };
        let item = (record(record_elements)?, rows, proof);
        randomized_response_records::verify(&index.0, &randomized_response.0, &item)
    })
}

/// Commitments to an account's disclosed set (one byte for each position) under blindings (one for each row).
#[pyfunction]
fn scan_disclosed_rows<'py>(
    py: Python<'py>,
    capacity: usize,
    values: &[u8],
    blindings: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let rows = guard(py, || {
        let blindings = elements(blindings, "blindings")?;
        let result = bit_column(Layout::new(capacity)?, bits(values), blindings)?;
        Ok::<_, Error>(encode_points(&result.rows))
    })?;
    Ok(PyBytes::new(py, &rows))
}

/// The commitments before an account's first record: an empty disclosed set with the blinding 1 in every row.
#[pyfunction]
fn scan_disclosed_empty(py: Python<'_>, capacity: usize) -> PyResult<Bound<'_, PyBytes>> {
    let rows = guard(py, || {
        Ok::<_, Error>(encode_points(
            &nothing_disclosed(Layout::new(capacity)?).rows,
        ))
    })?;
    Ok(PyBytes::new(py, &rows))
}
