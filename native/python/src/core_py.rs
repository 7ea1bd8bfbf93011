//! Bindings of `ragaudit_core`. Field elements are 32 bytes, big-endian, concatenated; integers little-endian.
use pyo3::prelude::*;
use ragaudit_core::threads;

use crate::guard_inline;

/// Sets how many threads later native computations use (1..1024).
#[pyfunction]
fn set_threads(py: Python<'_>, n: usize) -> PyResult<()> {
    guard_inline(py, || threads::set(n))
}

/// The number of threads that native computations use: by default the cores available to the process.
#[pyfunction(name = "threads")]
fn thread_count() -> usize {
    threads::count()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(set_threads, m)?)?;
    m.add_function(wrap_pyfunction!(thread_count, m)?)?;
    Ok(())
}
