//! Groth16: bytes and paths in, bytes out. Errors are `ValueError` (bad content) or `OSError` (files).
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ragaudit_groth16::prove::prove;
use ragaudit_groth16::r1cs::{R1cs, Witness};
use ragaudit_groth16::verify::{decode_each, decode_inputs, decode_proof, key_json, VerifyingKey};
use ragaudit_groth16::zkey::KeyFile;
use ragaudit_groth16::{ptau, zkey};

use crate::{guard, guard_inline};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(ptau_new, m)?)?;
    m.add_function(wrap_pyfunction!(groth16_setup, m)?)?;
    m.add_function(wrap_pyfunction!(groth16_setup_one_party, m)?)?;
    m.add_function(wrap_pyfunction!(zkey_new, m)?)?;
    m.add_function(wrap_pyfunction!(zkey_contribute, m)?)?;
    m.add_function(wrap_pyfunction!(groth16_verification_key, m)?)?;
    m.add_function(wrap_pyfunction!(r1cs_unsatisfied, m)?)?;
    m.add_function(wrap_pyfunction!(groth16_prove, m)?)?;
    m.add_function(wrap_pyfunction!(groth16_verify, m)?)?;
    m.add_function(wrap_pyfunction!(groth16_verify_batch, m)?)?;
    Ok(())
}

/// Write a one-party phase 1 of 2^power (1 to 27), prepared for phase 2: for development only.
#[pyfunction]
fn ptau_new(py: Python<'_>, power: u32, path: PathBuf) -> PyResult<()> {
    guard(py, || ptau::new(power, &path))
}

/// Proving key of a circuit from powers of tau, with one local contribution.
#[pyfunction]
fn groth16_setup(
    py: Python<'_>,
    r1cs_path: PathBuf,
    ptau_path: PathBuf,
    zkey_path: PathBuf,
) -> PyResult<()> {
    guard(py, || zkey::setup(&r1cs_path, &ptau_path, &zkey_path))
}

/// Proving key of a circuit from secrets drawn here and wiped, and its powers of tau if a path is given.
#[pyfunction]
#[pyo3(signature = (r1cs_path, zkey_path, ptau_path = None))]
fn groth16_setup_one_party(
    py: Python<'_>,
    r1cs_path: PathBuf,
    zkey_path: PathBuf,
    ptau_path: Option<PathBuf>,
) -> PyResult<()> {
    guard(py, || {
        zkey::setup_one_party(&r1cs_path, &zkey_path, ptau_path.as_deref())
    })
}

/// The initial proving key, before any contribution, equal to snarkjs's.
#[pyfunction]
fn zkey_new(
    py: Python<'_>,
    r1cs_path: PathBuf,
    ptau_path: PathBuf,
    zkey_path: PathBuf,
) -> PyResult<()> {
    guard(py, || zkey::new(&r1cs_path, &ptau_path, &zkey_path))
}

/// Add a phase-2 contribution with fresh randomness.
#[pyfunction]
fn zkey_contribute(
    py: Python<'_>,
    old_path: PathBuf,
    new_path: PathBuf,
    name: &str,
) -> PyResult<()> {
    guard(py, || zkey::contribute(&old_path, &new_path, name))
}

/// The text of snarkjs's verification_key.json.
#[pyfunction]
fn groth16_verification_key(py: Python<'_>, zkey_path: PathBuf) -> PyResult<String> {
    guard(py, || key_json(&KeyFile::open(&zkey_path)?))
}

/// Indices of the constraints that a witness (.wtns bytes) breaks, ascending, at most `limit`.
#[pyfunction]
#[pyo3(signature = (r1cs_path, witness, limit = 16))]
fn r1cs_unsatisfied(
    py: Python<'_>,
    r1cs_path: PathBuf,
    witness: &[u8],
    limit: usize,
) -> PyResult<Vec<usize>> {
    guard(py, || {
        R1cs::read(&r1cs_path)?.unsatisfied(&Witness::parse(witness)?, limit)
    })
}

/// Prove: A.x A.y | B.x1 B.x0 B.y1 B.y0 | C.x C.y, 32 bytes big-endian each.
#[pyfunction]
fn groth16_prove<'py>(
    py: Python<'py>,
    zkey_path: PathBuf,
    witness: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let proof = guard(py, || prove(&zkey_path, &Witness::parse(witness)?))?;
    Ok(PyBytes::new(py, &proof.to_bytes()))
}

/// True if the proof verifies, False if the pairing equation fails; ValueError if anything is malformed.
#[pyfunction]
fn groth16_verify(py: Python<'_>, vk_json: &str, proof: &[u8], inputs: &[u8]) -> PyResult<bool> {
    guard_inline(py, || {
        let inputs = decode_inputs(inputs)?;
        let proof = decode_proof(proof)?;
        VerifyingKey::cached(vk_json)?.verify(&proof, &inputs)
    })
}

/// Indices of the proofs that do not verify; ValueError, naming the proof, if one is malformed.
#[pyfunction]
fn groth16_verify_batch(
    py: Python<'_>,
    vk_json: &str,
    proofs: Vec<Vec<u8>>,
    inputs: Vec<Vec<u8>>,
) -> PyResult<Vec<usize>> {
    guard(py, || {
        let key = VerifyingKey::cached(vk_json)?;
        let proofs = decode_each(&proofs, decode_proof)?;
        let inputs = decode_each(&inputs, decode_inputs)?;
        key.verify_batch(&proofs, &inputs)
    })
}
