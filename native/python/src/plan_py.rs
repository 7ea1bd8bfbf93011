//! Witnesses of circom's circuits by plan: made of a circuit's code once, and run for each proof.
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ragaudit_groth16::field::limbs_from_be;
use ragaudit_groth16::plan::{plan, Limits, Plan};
use ragaudit_groth16::r1cs::Witness;
use ragaudit_groth16::{Error, Result};

use crate::guard;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Groth16Witness>()?;
    m.add_function(wrap_pyfunction!(groth16_plan, m)?)?;
    m.add_function(wrap_pyfunction!(groth16_witness, m)?)
}

/// The values of all wires, which are secret, in memory that is overwritten when it is given back.
#[pyclass(frozen)]
pub(crate) struct Groth16Witness(pub(crate) Witness);

#[pymethods]
impl Groth16Witness {
    /// The content of a .wtns file, which Python does not overwrite.
    fn wtns<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    fn __len__(&self) -> usize {
        self.0 .0.len()
    }
}

/// Write the plan of the circuit whose code is in a file to another file, or say why it has none.
#[pyfunction]
fn groth16_plan(
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

/// The witness for inputs by name, 32 bytes big-endian each value; None where they are not the circuit's, or an assertion
/// of the circuit fails.
#[pyfunction]
fn groth16_witness(
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
