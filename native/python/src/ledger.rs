//! Bindings for readers and writers of ledgers: RFC 9162 trees, and Ed25519 signatures.
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use ragaudit_field_simd::merkle::{self, Hash};
use ragaudit_field_simd::{signatures, Error};

use crate::{array, guard_inline};

fn invalid(error: Error) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(error.to_string())
}

/// A growing RFC 9162 tree over SHA-256. Safe to use from several threads.
#[pyclass(frozen)]
pub struct GrowingTree(Mutex<merkle::Tree>);

impl GrowingTree {
    fn locked(&self) -> MutexGuard<'_, merkle::Tree> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// The methods take a few microseconds and hold the GIL: releasing the GIL would take other threads longer.
#[pymethods]
impl GrowingTree {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    #[getter]
    fn size(&self) -> usize {
        self.locked().size()
    }

    /// Adds leaf hashes, 32 bytes each, concatenated.
    fn extend(&self, leaves: &[u8]) -> PyResult<()> {
        let (whole, rest) = leaves.as_chunks::<32>();
        if !rest.is_empty() {
            let actual = format!("{} bytes", leaves.len());
            return Err(invalid(Error::invalid("leaves", "32 bytes each", actual)));
        }
        let mut tree = self.locked();
        whole.iter().for_each(|leaf| tree.push(*leaf));
        Ok(())
    }

    fn leaves(&self, start: usize, end: usize) -> PyResult<Vec<Hash>> {
        Ok(self.locked().leaves(start, end).map_err(invalid)?.to_vec())
    }

    fn root(&self, size: usize) -> PyResult<Hash> {
        self.locked().root(size).map_err(invalid)
    }

    fn inclusion_path(&self, index: usize, size: usize) -> PyResult<Vec<Hash>> {
        self.locked().inclusion_path(index, size).map_err(invalid)
    }

    fn consistency_path(&self, m: usize, n: usize) -> PyResult<Vec<Hash>> {
        self.locked().consistency_path(m, n).map_err(invalid)
    }
}

/// The root from a leaf hash, its index in a tree and a path; None if the path has another length.
#[pyfunction]
pub fn path_root(
    leaf: &[u8],
    index: u64,
    size: u64,
    path: Vec<PyBackedBytes>,
) -> PyResult<Option<Hash>> {
    let leaf = array(leaf, "leaf").map_err(invalid)?;
    let path = path.iter().map(|hash| array(hash, "path"));
    let path = path.collect::<Result<Vec<Hash>, _>>().map_err(invalid)?;
    Ok(merkle::path_root(leaf, index, size, &path))
}

/// Whether 64 bytes are the Ed25519 signature of a message under a key of 32 bytes.
#[pyfunction]
pub fn ed25519_verifies(
    py: Python<'_>,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> PyResult<bool> {
    guard_inline(py, || {
        let (key, signature) = (array(key, "key")?, array(signature, "signature")?);
        Ok::<_, Error>(signatures::ed25519_verifies(&key, message, &signature))
    })
}
