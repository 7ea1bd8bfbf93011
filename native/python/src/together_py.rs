//! Several records of a tenant in one proof; encodings as in `scan_py`.
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_scan_prover::answer::{self, Parameters, Record};
use ragaudit_scan_prover::index::IndexKey;
use ragaudit_scan_prover::noise::Seed;
use ragaudit_scan_prover::query::Answer;
use ragaudit_scan_prover::together::{self, Format};
use ragaudit_scan_prover::Result;

use crate::scan_py::{answer_of, record, seed_of, ScanIndex, ScanParameters};
use crate::{array, guard};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(scan_most_together, m)?)?;
    m.add_function(wrap_pyfunction!(scan_prove_together, m)?)
}

/// The most records that one proof may be about, of so many positions and gains.
#[pyfunction]
fn scan_most_together(capacity: usize, gains: usize) -> usize {
    together::most_together(capacity, gains)
}

/// A tenant's parameters for proofs of several records.
pub(crate) fn batched(parameters: &Parameters) -> Parameters {
    Parameters {
        format: Format::Batch,
        ..parameters.clone()
    }
}

/// A record with its seed, the scores of all positions (int32), the query (int8) and its salt, the listed positions
/// (int32) and theirs.
type Asked = (
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    (PyBackedBytes, PyBackedBytes),
    (PyBackedBytes, PyBackedBytes),
);

fn read((of, seed, scores, query, positions): &Asked) -> Result<(Record, Seed, Answer)> {
    let answer = answer_of(scores, query, positions)?;
    Ok((record(of)?, seed_of(seed)?, answer))
}

/// The certificate, empty without gains, and the query proof of several records of a tenant that keeps all positions.
#[pyfunction]
fn scan_prove_together<'py>(
    py: Python<'py>,
    index: &ScanIndex,
    parameters: &ScanParameters,
    records: Vec<Asked>,
    key: &[u8],
    low_memory: bool,
) -> PyResult<[Bound<'py, PyBytes>; 2]> {
    let parts = guard(py, || {
        let key = IndexKey(array(key, "key")?);
        let (mut of, mut seeds, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for asked in &records {
            let (record, seed, answer) = read(asked)?;
            of.push(record);
            seeds.push(seed);
            answers.push(answer);
        }
        let parameters = batched(&parameters.0);
        let (index, low) = (&index.0, low_memory);
        answer::prove_both(index, &parameters, &of, &seeds, &answers, &key, low)
    })?;
    Ok(parts.map(|part| PyBytes::new(py, &part)))
}
