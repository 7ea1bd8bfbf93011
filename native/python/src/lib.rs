//! The Python module `rag_audit._native`: thin bindings, no logic of their own.
//!
//! Every function releases the GIL while it computes, and turns a Rust panic into a Python `RuntimeError` (`guard`): a panic
//! that reaches Python is a bug.
use std::error::Error;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use ragaudit_field_simd::threads;
use ragaudit_zeroizing_alloc::{Stacks, Wiping};

mod arithmetic;
mod batch_py;
mod document_table_py;
mod encoder_py;
mod groth16;
mod json;
mod ledger;
mod pooled_listing_py;
mod row_names_py;
mod scan_py;
mod transformer_py;

/// The allocator overwrites freed memory, because the functions of this module compute on secrets.
#[global_allocator]
static MEMORY: Wiping = Wiping;

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use arithmetic::{
        bls_signed_in_g1, bls_signed_in_g2, draw_bernoulli_bits, draw_noise, index_commitment,
        joining_pairs, lanes, noise_table, noised_top_k, poseidon_absorb, poseidon_hash,
        poseidon_hash_list, poseidon_permute, set_threads, table_tree, thread_count, top_k,
        PackedIndex, PooledRows,
    };

    #[pymodule_export]
    use groth16::{
        groth16_plan, groth16_prove, groth16_setup, groth16_setup_one_party,
        groth16_verification_key, groth16_verify_batch, groth16_witness, ptau_contributions,
        ptau_fault, ptau_new, ptau_powers, r1cs_unsatisfied, zkey_beacon, zkey_contribute,
        zkey_contributions, zkey_fault, zkey_new, Groth16Witness,
    };

    #[pymodule_export]
    use json::{canonical_json, json_values, plain_json};

    #[pymodule_export]
    use ledger::{ed25519_verifies, path_root, GrowingTree};

    #[pymodule_export]
    use transformer_py::IntegerEncoder;

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        scan_py::register(m)?;
        document_table_py::register(m)?;
        row_names_py::register(m)?;
        pooled_listing_py::register(m)?;
        encoder_py::register(m)?;
        batch_py::register(m)
    }
}

/// The bytes as an array; an error for another number of bytes.
pub(crate) fn array<const N: usize>(
    bytes: &[u8],
    field: &str,
) -> Result<[u8; N], ragaudit_field_simd::Error> {
    let wrong = |_| {
        ragaudit_field_simd::Error::invalid(
            field,
            format!("{N} bytes"),
            format!("{} bytes", bytes.len()),
        )
    };
    bytes.try_into().map_err(wrong)
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

/// [`guard`] on the calling thread, for short sequential work that takes less time than a change of threads.
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
