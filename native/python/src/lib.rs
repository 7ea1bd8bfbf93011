//! The Python module `rag_audit._native`: thin bindings, no logic of their own.
//!
//! Each submodule registers its functions through `register(m)`. Every function releases the GIL while it
//! computes, and turns a Rust panic into a Python `RuntimeError` (`guard`): a panic that reaches Python is a bug.
use std::error::Error;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use ragaudit_field_simd::threads;
use ragaudit_zeroizing_alloc::{Stacks, Wiping};

mod batch_py;
mod core_py;
mod groth16_py;
mod json_py;
mod json_reading_py;
mod ledger_py;
mod listing_py;
mod plan_py;
mod scan_py;
mod together_py;

/// What is computed here is computed on secrets: nothing of it stays in memory that was given back.
#[global_allocator]
static MEMORY: Wiping = Wiping;

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    core_py::register(m)?;
    groth16_py::register(m)?;
    plan_py::register(m)?;
    json_py::register(m)?;
    json_reading_py::register(m)?;
    ledger_py::register(m)?;
    scan_py::register(m)?;
    listing_py::register(m)?;
    together_py::register(m)?;
    batch_py::register(m)
}

/// Runs `work` on the thread pool without the GIL. An error becomes `ValueError` (`OSError` if an I/O error is
/// or caused it), a panic `RuntimeError`.
pub(crate) fn guard<T, E>(py: Python<'_>, work: impl FnOnce() -> Result<T, E> + Send) -> PyResult<T>
where
    T: Send,
    E: Error + Send + 'static,
{
    let run = || {
        threads::run(|| {
            let _stacks = Stacks;
            catch_unwind(AssertUnwindSafe(work))
        })
    };
    match py.detach(run) {
        Ok(outcome) => settle(outcome),
        Err(e) => Err(PyRuntimeError::new_err(e.to_string())),
    }
}

/// [`guard`] on the calling thread: for short sequential work, where handing over would cost more than it does.
pub(crate) fn guard_inline<T, E>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T>
where
    T: Send,
    E: Error + Send + 'static,
{
    settle(py.detach(|| catch_unwind(AssertUnwindSafe(work))))
}

fn settle<T, E: Error + 'static>(outcome: std::thread::Result<Result<T, E>>) -> PyResult<T> {
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if caused_by_io(&error) => Err(PyOSError::new_err(error.to_string())),
        Ok(Err(error)) => Err(PyValueError::new_err(error.to_string())),
        Err(panic) => {
            let reason = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("panic without a message");
            Err(PyRuntimeError::new_err(format!(
                "internal error in the native core: {reason}"
            )))
        }
    }
}

fn caused_by_io(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(e) = cause {
        if e.is::<io::Error>() {
            return true;
        }
        cause = e.source();
    }
    false
}
