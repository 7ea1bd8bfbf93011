//! The Python module `rag_audit._native`: thin bindings, no logic of their own.
//!
//! Each submodule registers its functions through `register(m)`. Every function releases the GIL while it
//! computes, and turns a Rust panic into a Python `RuntimeError` (`guard`): a panic that reaches Python is a bug.
use pyo3::prelude::*;

mod core_py;
mod groth16_py;

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    core_py::register(m)?;
    groth16_py::register(m)?;
    Ok(())
}
