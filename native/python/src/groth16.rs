//! Groth16: bytes and paths in, bytes out. Errors are `ValueError` (bad content) or `OSError` (files).
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use ragaudit_groth16::ceremony::{phase1_contributions, powers_claimed, verify_key, verify_powers};
use ragaudit_groth16::field::limbs_from_be;
use ragaudit_groth16::plan::{plan, Limits, Plan};
use ragaudit_groth16::prove::prove;
use ragaudit_groth16::r1cs::{R1cs, Witness};
use ragaudit_groth16::transcript::{Beacon, Parameters};
use ragaudit_groth16::verify::{key_json, VerifyingKey, PROOF_BYTES};
use ragaudit_groth16::widths::Widths;
use ragaudit_groth16::zkey::KeyFile;
use ragaudit_groth16::{ptau, zkey, Error, Result};

use crate::guard;

/// Write a one-party phase 1 of 2^power (1 to 27), prepared for phase 2: for development only.
#[pyfunction]
pub fn ptau_new(py: Python<'_>, power: u32, path: PathBuf) -> PyResult<()> {
    guard(py, || ptau::new(power, &path))
}

/// Write the proving key of a circuit from powers of tau, with one local contribution.
#[pyfunction]
pub fn groth16_setup(
    py: Python<'_>,
    r1cs_path: PathBuf,
    ptau_path: PathBuf,
    zkey_path: PathBuf,
) -> PyResult<()> {
    guard(py, || zkey::setup(&r1cs_path, &ptau_path, &zkey_path))
}

/// Write the proving key of a circuit from secrets that the function draws and wipes, and its powers of tau if a path is
/// given.
#[pyfunction]
#[pyo3(signature = (r1cs_path, zkey_path, ptau_path = None))]
pub fn groth16_setup_one_party(
    py: Python<'_>,
    r1cs_path: PathBuf,
    zkey_path: PathBuf,
    ptau_path: Option<PathBuf>,
) -> PyResult<()> {
    guard(py, || {
        zkey::setup_one_party(&r1cs_path, &zkey_path, ptau_path.as_deref())
    })
}

/// Write the initial proving key, before any contribution. It equals the key of snarkjs.
#[pyfunction]
pub fn zkey_new(
    py: Python<'_>,
    r1cs_path: PathBuf,
    ptau_path: PathBuf,
    zkey_path: PathBuf,
) -> PyResult<()> {
    guard(py, || zkey::new(&r1cs_path, &ptau_path, &zkey_path))
}

/// Add a phase-2 contribution with fresh randomness, and return its hash of 64 bytes.
#[pyfunction]
pub fn zkey_contribute(
    py: Python<'_>,
    old_path: PathBuf,
    new_path: PathBuf,
    name: &str,
) -> PyResult<[u8; 64]> {
    guard(py, || zkey::contribute(&old_path, &new_path, name))
}

/// Add a public value, hashed 2^exponent times, as the last contribution, and return its hash of
/// 64 bytes.
#[pyfunction]
pub fn zkey_beacon(
    py: Python<'_>,
    old_path: PathBuf,
    new_path: PathBuf,
    name: &str,
    value: Vec<u8>,
    exponent: u8,
) -> PyResult<[u8; 64]> {
    guard(py, || {
        zkey::apply_beacon(&old_path, &new_path, name, Beacon { value, exponent })
    })
}

/// Name, value of the beacon if it is one, hash of the contribution (in phase 1, of its response).
type Contribution = (String, Option<Vec<u8>>, [u8; 64]);

fn contribution(parameters: Parameters, digest: [u8; 64]) -> Contribution {
    let beacon = parameters.beacon.map(|beacon| beacon.value);
    (parameters.name, beacon, digest)
}

/// The parameters that a key's contributions state. `zkey_fault` checks them.
#[pyfunction]
pub fn zkey_contributions(py: Python<'_>, zkey_path: PathBuf) -> PyResult<Vec<Contribution>> {
    let (_, contributions) = guard(py, || KeyFile::open(&zkey_path)?.contributions())?;
    let all = contributions.into_iter().map(|c| {
        let digest = c.digest();
        contribution(c.parameters, digest)
    });
    Ok(all.collect())
}

/// The parameters that the contributions of powers of tau state. `ptau_fault` checks them.
#[pyfunction]
pub fn ptau_contributions(py: Python<'_>, ptau_path: PathBuf) -> PyResult<Vec<Contribution>> {
    let contributions = guard(py, || phase1_contributions(&ptau_path))?;
    let all = contributions
        .into_iter()
        .map(|(parameters, digest)| contribution(parameters, digest));
    Ok(all.collect())
}

/// The text of a mismatch, None without a mismatch; other errors remain errors.
fn fault(outcome: Result<()>) -> Result<Option<String>> {
    match outcome {
        Ok(()) => Ok(None),
        Err(Error::Mismatch(reason)) => Ok(Some(reason)),
        Err(e) => Err(e),
    }
}

/// The reason why a key is not the circuit's initial key under these powers after the key's contributions; None if it is.
#[pyfunction]
pub fn zkey_fault(
    py: Python<'_>,
    r1cs_path: PathBuf,
    ptau_path: PathBuf,
    zkey_path: PathBuf,
) -> PyResult<Option<String>> {
    guard(py, || fault(verify_key(&r1cs_path, &ptau_path, &zkey_path)))
}

/// The reason why powers of tau do not follow from their contributions; None if they do. With `part`, the file may be a
/// part of a larger ceremony's file.
#[pyfunction]
#[pyo3(signature = (ptau_path, part = false))]
pub fn ptau_fault(py: Python<'_>, ptau_path: PathBuf, part: bool) -> PyResult<Option<String>> {
    guard(py, || fault(verify_powers(&ptau_path, part)))
}

/// (power, power of the ceremony that the file names as its origin). Nothing is checked.
#[pyfunction]
pub fn ptau_powers(py: Python<'_>, ptau_path: PathBuf) -> PyResult<(u32, u32)> {
    guard(py, || powers_claimed(&ptau_path))
}

/// The text of snarkjs's verification_key.json.
#[pyfunction]
pub fn groth16_verification_key(py: Python<'_>, zkey_path: PathBuf) -> PyResult<String> {
    guard(py, || key_json(&KeyFile::open(&zkey_path)?))
}

/// Indices of the constraints that a witness (.wtns bytes) does not satisfy, ascending, at most `limit`.
#[pyfunction]
#[pyo3(signature = (r1cs_path, witness, limit = 16))]
pub fn r1cs_unsatisfied(
    py: Python<'_>,
    r1cs_path: PathBuf,
    witness: &[u8],
    limit: usize,
) -> PyResult<Vec<usize>> {
    guard(py, || {
        R1cs::read(&r1cs_path)?.unsatisfied(&Witness::parse(witness)?, limit)
    })
}

/// Prove a statement with a witness of this module or with the content of a .wtns file. The proof is
/// A.x A.y | B.x1 B.x0 B.y1 B.y0 | C.x C.y, 32 bytes big-endian each. The constraints determine the
/// maximum lengths of values.
#[pyfunction]
#[pyo3(signature = (zkey_path, witness, r1cs_path = None))]
pub fn groth16_prove(
    py: Python<'_>,
    zkey_path: PathBuf,
    witness: AnyWitness,
    r1cs_path: Option<PathBuf>,
) -> PyResult<[u8; PROOF_BYTES]> {
    guard(py, || {
        let widths = r1cs_path.map(|path| Widths::read(&path)).transpose()?;
        let proof = match &witness {
            AnyWitness::Native(result) => prove(&zkey_path, &result.get().0, widths.as_deref()),
            AnyWitness::Wtns(data) => prove(&zkey_path, &Witness::parse(data)?, widths.as_deref()),
        };
        Ok::<_, Error>(proof?.to_bytes())
    })
}

/// The numbers of the proofs that do not verify, ascending, each with the reason if proof or inputs are malformed, or with
/// None if the pairing equation is false. Raises ValueError if the key is malformed.
#[pyfunction]
pub fn groth16_verify_batch(
    py: Python<'_>,
    vk_json: &str,
    proofs: Vec<PyBackedBytes>,
    inputs: Vec<PyBackedBytes>,
) -> PyResult<Vec<(usize, Option<String>)>> {
    guard(py, || {
        let refused = VerifyingKey::cached(vk_json)?.failures(&proofs, &inputs)?;
        let text = |(i, reason): (usize, Option<Error>)| (i, reason.map(|r| r.to_string()));
        Ok::<_, Error>(refused.into_iter().map(text).collect())
    })
}

/// The secret values of all wires, in memory that is overwritten before it is freed.
#[pyclass(frozen)]
pub struct Groth16Witness(Witness);

/// A witness of this module, or the content of a .wtns file.
#[derive(FromPyObject)]
pub enum AnyWitness {
    Native(Py<Groth16Witness>),
    Wtns(PyBackedBytes),
}

#[pymethods]
impl Groth16Witness {
    /// The content of a .wtns file, which Python does not overwrite.
    fn wtns(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    fn __len__(&self) -> usize {
        self.0 .0.len()
    }
}

/// Write the plan of a circuit, from a file with its code, to another file. Returns the reason if the circuit has no plan.
#[pyfunction]
pub fn groth16_plan(
    py: Python<'_>,
    code_path: PathBuf,
    plan_path: PathBuf,
) -> PyResult<Option<String>> {
    guard(py, || {
        let failed = |path: &PathBuf, source| Error::Io {
            place: path.display().to_string(),
            source,
        };
        let code = std::fs::read(&code_path).map_err(|e| failed(&code_path, e))?;
        let reason = match plan(&code, &Limits::WIDE)? {
            Ok(plan) => {
                std::fs::write(&plan_path, plan.to_bytes()).map_err(|e| failed(&plan_path, e))?;
                None
            }
            Err(reason) => Some(reason.to_string()),
        };
        Result::Ok(reason)
    })
}

/// The witness for inputs by name, 32 bytes big-endian each value; None if the circuit has other inputs, or if an
/// assertion of the circuit fails.
#[pyfunction]
pub fn groth16_witness(
    py: Python<'_>,
    plan_path: PathBuf,
    inputs: Vec<(String, Vec<u8>)>,
) -> PyResult<Option<Groth16Witness>> {
    guard(py, || {
        let plan = Plan::read(&plan_path)?;
        let values: Vec<(&str, Vec<_>)> = inputs
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.chunks(32).map(limbs_from_be).collect()))
            .collect();
        if inputs.iter().any(|(_, bytes)| bytes.len() % 32 != 0) {
            return Err(Error::Mismatch("inputs: expected 32 bytes a value".into()));
        }
        let named: Vec<_> = values
            .iter()
            .map(|(name, v)| (*name, v.as_slice()))
            .collect();
        Result::Ok(plan.witness(&named).map(Groth16Witness))
    })
}
