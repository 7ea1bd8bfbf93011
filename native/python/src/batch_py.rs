//! Verification of many records of the scan argument, with a class for each kind of record. Encodings are as in `scan_py`.
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use ragaudit_scan_prover::answer::{self, Item};
use ragaudit_scan_prover::batch::{Failures, CHUNK};
use ragaudit_scan_prover::index::IndexCommitment;
use ragaudit_scan_prover::pooled_listing_records;
use ragaudit_scan_prover::{embed, Error, Result};

use crate::guard;
use crate::pooled_listing_py::{pooled_records, PooledRecord, ScanPooledListing};
use crate::scan_py::{answered, embed_statement, Answered, ScanIndex, ScanParameters, ScanTable};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ScanBatch>()?;
    m.add_class::<ScanPooledBatch>()?;
    m.add_class::<ScanEmbedBatch>()
}

/// The reasons why proofs do not hold, by the number of the proof in a chunk.
type Reasons = Vec<(usize, String)>;

fn reasons(failures: Failures) -> Reasons {
    let text = |(i, reason): (usize, Error)| (i, reason.to_string());
    failures.into_iter().map(text).collect()
}

/// The methods of every batch. The arguments are a class, its records as bytes that Python owns, their reader, and the
/// constructor.
macro_rules! batch {
    ($class:ident, $record:ty, $read:path, ($($argument:ident: $type:ty),*), $new:expr) => {
        #[pymethods]
        impl $class {
            /// The recommended number of records of a chunk.
            #[classattr]
            const CHUNK: usize = CHUNK;

            #[new]
            fn new(py: Python<'_>, $($argument: $type),*) -> PyResult<Self> {
                guard(py, || Ok::<_, Error>($new))
            }

            /// Adds records. Returns the numbers of malformed proofs, with the reasons.
            fn add(&mut self, py: Python<'_>, records: Vec<$record>) -> PyResult<Reasons> {
                let Self { of, batch } = self;
                guard(py, || {
                    Ok::<_, Error>(reasons(batch.add(&$read(of, &records)?)))
                })
            }

            /// Whether all added records that were not refused are proved.
            fn holds(&self, py: Python<'_>) -> PyResult<bool> {
                guard(py, || Ok::<_, Error>(self.batch.holds()))
            }

            /// The numbers of the records that do not verify, with the reasons. Earlier added records do not affect the result.
            fn search(&self, py: Python<'_>, records: Vec<$record>) -> PyResult<Reasons> {
                let Self { of, batch } = self;
                guard(py, || {
                    Ok::<_, Error>(reasons(batch.search(&$read(of, &records)?)))
                })
            }

            /// The number of points and scalars that stay in memory between chunks.
            fn retained(&self) -> usize {
                self.batch.retained()
            }
        }
    };
}

/// Verifies proofs of one tenant's records chunk by chunk. Each proof is for one record or several. The sum in memory does
/// not grow with the number of proofs.
#[pyclass]
struct ScanBatch {
    of: (),
    batch: answer::Batch,
}

fn all_answered<'a>(_: &(), proofs: &'a [Answered]) -> Result<Vec<Item<'a>>> {
    proofs.iter().map(answered).collect()
}

batch!(
    ScanBatch,
    Answered,
    all_answered,
    (index: &ScanIndex, parameters: &ScanParameters),
    Self {
        of: (),
        batch: answer::Batch::new(Arc::clone(&index.0), parameters.0.clone()),
    }
);

/// The same for records of one tenant with pooled listing.
#[pyclass]
struct ScanPooledBatch {
    of: (),
    batch: pooled_listing_records::Batch,
}

batch!(
    ScanPooledBatch,
    PooledRecord,
    pooled_records,
    (index: &ScanIndex, pooled_listing: &ScanPooledListing),
    Self {
        of: (),
        batch: pooled_listing_records::Batch::new(Arc::clone(&index.0), pooled_listing.0.clone()),
    }
);

/// The same for proofs of A1 about one table, with `parameters` as in `scan_embed_prove`.
#[pyclass]
struct ScanEmbedBatch {
    of: Embedder,
    batch: embed::Batch,
}

/// The table, maximum tokens of a query, and A.
type Embedder = (Arc<IndexCommitment>, (usize, u64));

/// A statement with its proof.
type Embedded = (PyBackedBytes, PyBackedBytes);

fn embedded<'a>(
    (table, parameters): &'a Embedder,
    records: &'a [Embedded],
) -> Result<Vec<embed::Item<'a>>> {
    records
        .iter()
        .map(|(of, proof)| Ok((embed_statement(table, *parameters, of)?, &proof[..])))
        .collect()
}

batch!(
    ScanEmbedBatch,
    Embedded,
    embedded,
    (table: &ScanTable, parameters: (usize, u64)),
    Self {
        of: (Arc::clone(&table.0), parameters),
        batch: embed::Batch::new(Arc::clone(&table.0), embed::OfTable),
    }
);
