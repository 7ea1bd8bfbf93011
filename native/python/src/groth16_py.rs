//! Groth16: bytes and paths in, bytes out. Errors are `ValueError` (bad content) or `OSError` (files).
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ragaudit_groth16::ceremony::{phase1_contributions, powers_claimed, verify_key, verify_powers};
use ragaudit_groth16::prove::prove;
use ragaudit_groth16::r1cs::{R1cs, Witness};
use ragaudit_groth16::transcript::{Beacon, Parameters};
use ragaudit_groth16::verify::{decode_inputs, decode_proof, key_json, VerifyingKey};
use ragaudit_groth16::widths::Widths;
use ragaudit_groth16::zkey::KeyFile;
use ragaudit_groth16::{ptau, zkey, Error, Result};

use crate::plan_py::Groth16Witness;
use crate::{guard, guard_inline};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(ptau_new, m)?)?;
    m.add_function(wrap_pyfunction!(groth16_setup, m)?)?;
    m.add_function(wrap_pyfunction!(groth16_setup_one_party, m)?)?;
    m.add_function(wrap_pyfunction!(zkey_new, m)?)?;
    m.add_function(wrap_pyfunction!(zkey_contribute, m)?)?;
    m.add_function(wrap_pyfunction!(zkey_beacon, m)?)?;
    m.add_function(wrap_pyfunction!(zkey_contributions, m)?)?;
    m.add_function(wrap_pyfunction!(zkey_fault, m)?)?;
    m.add_function(wrap_pyfunction!(ptau_contributions, m)?)?;
    m.add_function(wrap_pyfunction!(ptau_fault, m)?)?;
    m.add_function(wrap_pyfunction!(ptau_powers, m)?)?;
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

/// Add a phase-2 contribution with fresh randomness; its hash, 64 bytes.
#[pyfunction]
fn zkey_contribute<'py>(
    py: Python<'py>,
    old_path: PathBuf,
    new_path: PathBuf,
    name: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let digest = guard(py, || zkey::contribute(&old_path, &new_path, name))?;
    Ok(PyBytes::new(py, &digest))
}

/// Add a public value, hashed 2^exponent times, as the last contribution; its hash, 64 bytes.
#[pyfunction]
fn zkey_beacon<'py>(
    py: Python<'py>,
    old_path: PathBuf,
    new_path: PathBuf,
    name: &str,
    value: &[u8],
    exponent: u8,
) -> PyResult<Bound<'py, PyBytes>> {
    let beacon = Beacon {
        value: value.to_vec(),
        exponent,
    };
    let digest = guard(py, || {
        zkey::apply_beacon(&old_path, &new_path, name, beacon)
    })?;
    Ok(PyBytes::new(py, &digest))
}

/// Name, value of the beacon if it is one, hash of the contribution (in phase 1, of its response).
type Contribution<'py> = (String, Option<Bound<'py, PyBytes>>, Bound<'py, PyBytes>);

fn contribution<'py>(py: Python<'py>, parameters: Parameters, digest: &[u8]) -> Contribution<'py> {
    let beacon = parameters.beacon.map(|b| PyBytes::new(py, &b.value));
    (parameters.name, beacon, PyBytes::new(py, digest))
}

/// What a key's contributions say of themselves; unchecked: see zkey_fault.
#[pyfunction]
fn zkey_contributions(py: Python<'_>, zkey_path: PathBuf) -> PyResult<Vec<Contribution<'_>>> {
    let (_, found) = guard(py, || KeyFile::open(&zkey_path)?.contributions())?;
    Ok(found
        .into_iter()
        .map(|c| {
            let digest = c.digest();
            contribution(py, c.parameters, &digest)
        })
        .collect())
}

/// What the contributions of powers of tau say of themselves; unchecked: see ptau_fault.
#[pyfunction]
fn ptau_contributions(py: Python<'_>, ptau_path: PathBuf) -> PyResult<Vec<Contribution<'_>>> {
    let found = guard(py, || phase1_contributions(&ptau_path))?;
    Ok(found
        .into_iter()
        .map(|(parameters, digest)| contribution(py, parameters, &digest))
        .collect())
}

/// What is false as a text, None if nothing is; other errors stay errors.
fn fault(outcome: Result<()>) -> Result<Option<String>> {
    match outcome {
        Ok(()) => Ok(None),
        Err(Error::Mismatch(reason)) => Ok(Some(reason)),
        Err(e) => Err(e),
    }
}

/// Why a key is not the circuit's under these powers, changed only by its contributions; None if it is.
#[pyfunction]
fn zkey_fault(
    py: Python<'_>,
    r1cs_path: PathBuf,
    ptau_path: PathBuf,
    zkey_path: PathBuf,
) -> PyResult<Option<String>> {
    guard(py, || fault(verify_key(&r1cs_path, &ptau_path, &zkey_path)))
}

/// Why powers of tau are not what their contributions make; None if they are. With `part`, they may be cut from the file
/// of a larger ceremony.
#[pyfunction]
#[pyo3(signature = (ptau_path, part = false))]
fn ptau_fault(py: Python<'_>, ptau_path: PathBuf, part: bool) -> PyResult<Option<String>> {
    guard(py, || fault(verify_powers(&ptau_path, part)))
}

/// (power, power of the ceremony that the file says it is from); unchecked.
#[pyfunction]
fn ptau_powers(py: Python<'_>, ptau_path: PathBuf) -> PyResult<(u32, u32)> {
    guard(py, || powers_claimed(&ptau_path))
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

/// Prove, for a witness that was made here or the content of a .wtns file:
/// A.x A.y | B.x1 B.x0 B.y1 B.y0 | C.x C.y, 32 bytes big-endian each. The constraints say how long values can be.
#[pyfunction]
#[pyo3(signature = (zkey_path, witness, r1cs_path = None))]
fn groth16_prove<'py>(
    py: Python<'py>,
    zkey_path: PathBuf,
    witness: &Bound<'py, PyAny>,
    r1cs_path: Option<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    let proved = |witness: &Witness| {
        let widths = r1cs_path.map(|path| Widths::read(&path)).transpose()?;
        prove(&zkey_path, witness, widths.as_deref())
    };
    let proof = if let Ok(made) = witness.cast::<Groth16Witness>() {
        let made = &made.get().0;
        guard(py, || proved(made))
    } else {
        let data: &[u8] = witness.extract()?;
        guard(py, || proved(&Witness::parse(data)?))
    }?;
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

/// The numbers of the proofs that do not verify, ascending: with the reason where proof or inputs are malformed, with None
/// where the pairing equation fails. ValueError if the key is malformed.
#[pyfunction]
fn groth16_verify_batch(
    py: Python<'_>,
    vk_json: &str,
    proofs: Vec<Vec<u8>>,
    inputs: Vec<Vec<u8>>,
) -> PyResult<Vec<(usize, Option<String>)>> {
    guard(py, || {
        let refused = VerifyingKey::cached(vk_json)?.verify_encoded(&proofs, &inputs)?;
        let text = |(i, reason): (usize, Option<Error>)| (i, reason.map(|r| r.to_string()));
        Ok::<_, Error>(refused.into_iter().map(text).collect())
    })
}
