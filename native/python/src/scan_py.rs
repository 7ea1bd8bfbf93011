//! The scan argument: field elements are 32 bytes big-endian, integers little-endian bytes, keys 32 bytes.
use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_field_simd::field::{element, elements, exactly, to_bytes_all};
use ragaudit_scan_prover::answer::{self, Item, Parameters, Record, Slot};
use ragaudit_scan_prover::bernoulli::{bernoulli_column, Bernoulli, BernoulliStatement};
use ragaudit_scan_prover::coalition::{
    self, distinct_norms, prove_pairs, prove_records, Blocks, CoalitionSecret, CoalitionStatement,
};
use ragaudit_scan_prover::drawn;
use ragaudit_scan_prover::embed::{prove_embed, verify_embed, EmbedStatement, Query};
use ragaudit_scan_prover::group::{decode_points, encode_points, prepared_generators};
use ragaudit_scan_prover::index::{
    commit_components, commit_index, commit_table, decode_index, IndexCommitment, IndexKey, Layout,
};
use ragaudit_scan_prover::noise::{noise_column, Seed};
use ragaudit_scan_prover::query::{Answer, ProvenColumns};
use ragaudit_scan_prover::session::Column;
use ragaudit_scan_prover::{batch_size, protocol, Error, Result};
use zeroize::Zeroizing;

use crate::{array, guard, guard_inline};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ScanIndex>()?;
    m.add_class::<ScanParameters>()?;
    m.add_class::<ScanCoalition>()?;
    m.add_class::<ScanTable>()?;
    m.add_function(wrap_pyfunction!(scan_protocol, m)?)?;
    m.add_function(wrap_pyfunction!(scan_limits, m)?)?;
    m.add_function(wrap_pyfunction!(scan_generators, m)?)?;
    m.add_function(wrap_pyfunction!(scan_prove_noise, m)?)?;
    m.add_function(wrap_pyfunction!(scan_bits_prove, m)?)?;
    m.add_function(wrap_pyfunction!(scan_bits_verify, m)?)?;
    m.add_function(wrap_pyfunction!(scan_prove, m)?)?;
    m.add_function(wrap_pyfunction!(scan_max_batch, m)?)?;
    m.add_function(wrap_pyfunction!(scan_verify, m)?)?;
    m.add_function(wrap_pyfunction!(scan_embed_prove, m)?)?;
    m.add_function(wrap_pyfunction!(scan_embed_verify, m)?)?;
    Ok(())
}

/// The digest that names the protocol.
#[pyfunction]
fn scan_protocol(py: Python<'_>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &protocol::name())
}

/// The largest value of every public parameter, by name.
#[pyfunction]
fn scan_limits() -> BTreeMap<&'static str, u64> {
    protocol::limits().into()
}

/// The first generators as a table, which a page uses instead of hashing them.
#[pyfunction]
fn scan_generators(py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
    let table = guard(py, || Ok::<_, Error>(prepared_generators()))?;
    Ok(PyBytes::new(py, &table))
}

pub(crate) fn integers(bytes: &[u8]) -> Vec<i64> {
    bytes
        .chunks_exact(4)
        .map(|c| i64::from(i32::from_le_bytes([c[0], c[1], c[2], c[3]])))
        .collect()
}

/// Commitments to the components of an index's positions.
#[pyclass(frozen)]
pub(crate) struct ScanIndex(pub(crate) Arc<IndexCommitment>);

#[pymethods]
impl ScanIndex {
    /// The published points, checked.
    #[new]
    fn new(py: Python<'_>, points: &[u8], dimension: usize, capacity: usize) -> PyResult<Self> {
        guard(py, || decode_index(points, dimension, capacity)).map(|c| Self(Arc::new(c)))
    }

    /// Commits to int8 rows in -7..7 of shape (positions, dimension), blinded from a fresh 32-byte key.
    #[staticmethod]
    fn commit(
        py: Python<'_>,
        rows_int8: &[u8],
        dimension: usize,
        capacity: usize,
        key: &[u8],
    ) -> PyResult<Self> {
        guard(py, || {
            commit_index(
                &signed(rows_int8),
                dimension,
                capacity,
                &IndexKey(array(key, "key")?),
            )
        })
        .map(|c| Self(Arc::new(c)))
    }

    /// The points of only the components `first..`, from their int8 columns of shape (components, positions).
    #[staticmethod]
    fn commit_components<'py>(
        py: Python<'py>,
        columns_int8: &[u8],
        first: usize,
        positions: usize,
        capacity: usize,
        key: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let points = guard(py, || {
            let key = IndexKey(array(key, "key")?);
            let points =
                commit_components(&signed(columns_int8), first, positions, capacity, &key)?;
            Ok::<_, Error>(encode_points(&points))
        })?;
        Ok(PyBytes::new(py, &points))
    }

    /// The points, 32 bytes each.
    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }

    /// SHA-256 over capacity, dimension and points.
    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.digest())
    }
}

/// The constants of a tenant: the 32-byte digest of the window, gains, listed positions, score window and lattice, and the
/// commitments to its sampled positions if it has a sample.
#[pyclass(frozen)]
pub(crate) struct ScanParameters(pub(crate) Parameters);

#[pymethods]
impl ScanParameters {
    #[new]
    #[pyo3(signature = (window, gains, listed, lo, hi, lattice, sample=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        window: &[u8],
        gains: Vec<u32>,
        listed: usize,
        lo: i64,
        hi: i64,
        lattice: i64,
        sample: Option<&[u8]>,
    ) -> PyResult<Self> {
        guard_inline(py, || {
            let window = array(window, "window")?;
            Ok::<_, Error>(Self(Parameters {
                window,
                gains,
                listed,
                lo,
                hi,
                lattice,
                sample: sample.map(decode_points).transpose()?,
            }))
        })
    }
}

/// c_seed, beacon, slot.
pub(crate) fn slot(bytes: &[u8]) -> Result<Slot> {
    Ok(Slot::from(exactly(bytes, "slot")?))
}

/// c_seed, beacon, slot, context, cq, htopk.
pub(crate) fn record(bytes: &[u8]) -> Result<Record> {
    Ok(Record::from(exactly(bytes, "record")?))
}

/// s0, s1.
pub(crate) fn seed_of(bytes: &[u8]) -> Result<Seed> {
    Ok(Seed(exactly(bytes, "seed")?))
}

fn answer_of((_, _, scores, query, positions): &PrivateRecord) -> Result<Answer> {
    Ok(Answer {
        query: signed(&query.0),
        query_salt: element(&query.1, "query salt")?,
        positions: integers(&positions.0),
        list_salt: element(&positions.1, "list salt")?,
        scores: integers(scores),
    })
}

/// Commitments to each of a proof's columns, and their blindings, which are secret.
pub(crate) fn opened(columns: &[Column]) -> (Vec<Vec<u8>>, Zeroizing<Vec<Vec<u8>>>) {
    let rows = columns.iter().map(|column| encode_points(&column.rows));
    let openings = columns.iter().map(|column| column.opening.as_ref());
    let blindings = openings.map(|o| o.map_or(Vec::new(), |o| to_bytes_all(&o.blindings)));
    (rows.collect(), Zeroizing::new(blindings.collect()))
}

pub(crate) type ByteStrings<'py> = Vec<Bound<'py, PyBytes>>;

pub(crate) fn byte_strings<'py>(py: Python<'py>, all: &[Vec<u8>]) -> ByteStrings<'py> {
    all.iter().map(|bytes| PyBytes::new(py, bytes)).collect()
}

/// The noise proof of slots (c_seed, beacon, slot), each with its seed; and for each slot the noise commitments and their
/// blindings, which are secret until the slot's query is proved.
#[pyfunction]
fn scan_prove_noise<'py>(
    py: Python<'py>,
    index: &ScanIndex,
    parameters: &ScanParameters,
    slots: Vec<PyBackedBytes>,
    seeds: Vec<PyBackedBytes>,
    low_memory: bool,
) -> PyResult<(Bound<'py, PyBytes>, ByteStrings<'py>, ByteStrings<'py>)> {
    let (proof, (rows, blindings)) = guard(py, || {
        let slots: Vec<Slot> = slots.iter().map(|s| slot(s)).collect::<Result<_>>()?;
        let seeds: Vec<Seed> = seeds.iter().map(|s| seed_of(s)).collect::<Result<_>>()?;
        let result = answer::prove_noise(&index.0, &parameters.0, &slots, &seeds, low_memory)?;
        Ok::<_, Error>((result.proof, opened(&result.columns)))
    })?;
    let proof = PyBytes::new(py, &proof);
    Ok((proof, byte_strings(py, &rows), byte_strings(py, &blindings)))
}

fn bernoulli_statement(
    capacity: usize,
    context: &[u8],
    slot_elements: &[u8],
    bound: u64,
) -> Result<BernoulliStatement> {
    let (context, slot) = (array(context, "context")?, slot(slot_elements)?);
    Ok(BernoulliStatement::single(
        context,
        slot,
        capacity,
        Bernoulli { bound },
    ))
}

/// The proof of a slot's Bernoulli bits, which are 1 if a position's draw is below the bound; with the commitments to the
/// bits and their secret blindings.
#[pyfunction]
fn scan_bits_prove<'py>(
    py: Python<'py>,
    capacity: usize,
    context: &[u8],
    slot_elements: &[u8],
    seed: &[u8],
    bound: u64,
    low_memory: bool,
) -> PyResult<[Bound<'py, PyBytes>; 3]> {
    let (proof, (rows, blindings)) = guard(py, || {
        let statement = bernoulli_statement(capacity, context, slot_elements, bound)?;
        let result = drawn::prove(&statement, &[seed_of(seed)?], low_memory)?;
        Ok::<_, Error>((result.proof, opened(&result.columns)))
    })?;
    Ok([&proof, &rows[0], &blindings[0]].map(|part| PyBytes::new(py, part)))
}

/// The commitments to the Bernoulli bits of a proof. Raises ValueError with the reason unless the proof holds.
#[pyfunction]
fn scan_bits_verify<'py>(
    py: Python<'py>,
    capacity: usize,
    context: &[u8],
    slot_elements: &[u8],
    bound: u64,
    proof: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let rows = guard(py, || {
        let statement = bernoulli_statement(capacity, context, slot_elements, bound)?;
        Ok::<_, Error>(encode_points(&drawn::verify(&statement, proof)?[0].rows))
    })?;
    Ok(PyBytes::new(py, &rows))
}

/// A record (c_seed, beacon, slot, context, cq, htopk) with the noise and the scores of all positions (int32), the query
/// (int8) and its salt, and the listed positions (int32) and their salt. The noise is empty without gains.
type PrivateRecord = (
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    (PyBackedBytes, PyBackedBytes),
    (PyBackedBytes, PyBackedBytes),
);

/// The noise proof of the records' slots, and for each slot its commitments and their blindings.
type SlotsProof = (PyBackedBytes, Vec<PyBackedBytes>, Vec<PyBackedBytes>);

/// The noise columns of records; their number is the number in the noise proof.
fn noise_columns(
    layout: Layout,
    (_, rows, blindings): &SlotsProof,
    records: &[PrivateRecord],
) -> Result<Vec<Column>> {
    let slots = records.len();
    if [rows.len(), blindings.len()] != [slots; 2] {
        let actual = format!("{} commitments, {} blindings", rows.len(), blindings.len());
        return Err(Error::invalid(
            "certificate",
            format!("{slots} of each"),
            actual,
        ));
    }
    let opened = records.iter().zip(rows.iter().zip(blindings));
    opened
        .map(|((_, noise, ..), (rows, blindings))| {
            let blindings = elements(blindings, "blindings")?;
            noise_column(rows, integers(noise), blindings, layout, slots)
        })
        .collect()
}

/// The query proof of records, from the noise proof of their slots and the index's key. Without gains there is no noise
/// proof. A sampled tenant also has the sampled positions (a byte 0 or 1 each) and the blindings of their commitments.
#[pyfunction]
#[pyo3(signature = (index, parameters, records, noise_proof, key, low_memory, sample=None))]
#[allow(clippy::too_many_arguments)]
fn scan_prove<'py>(
    py: Python<'py>,
    index: &ScanIndex,
    parameters: &ScanParameters,
    records: Vec<PrivateRecord>,
    noise_proof: Option<SlotsProof>,
    key: &[u8],
    low_memory: bool,
    sample: Option<(Vec<u8>, Vec<u8>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let proof = guard(py, || {
        let layout = index.0.layout;
        let noise = match &noise_proof {
            Some(noise_proof) => noise_columns(layout, noise_proof, &records)?,
            None => Vec::new(),
        };
        if let (None, Some(noise)) = (&noise_proof, records.iter().find(|r| !r.1.is_empty())) {
            let actual = format!("{} bytes", noise.1.len());
            return Err(Error::invalid(
                "noise",
                "none without a certificate",
                actual,
            ));
        }
        let sample = sample.as_ref().map(|(bernoulli, blindings)| {
            let rows = parameters.0.sample.clone().unwrap_or_default();
            bernoulli_column(rows, bernoulli, elements(blindings, "blindings")?, layout)
        });
        let sample = sample.transpose()?;
        let of: Vec<Record> = records
            .iter()
            .map(|r| record(&r.0))
            .collect::<Result<_>>()?;
        let answers: Vec<Answer> = records.iter().map(answer_of).collect::<Result<_>>()?;
        answer::prove(
            &index.0,
            &parameters.0,
            &of,
            &answers,
            noise_proof.as_ref().map_or(&[], |(proof, ..)| proof),
            ProvenColumns {
                noise: &noise,
                sample: sample.as_ref(),
            },
            &IndexKey(array(key, "key")?),
            low_memory,
        )
    })?;
    Ok(PyBytes::new(py, &proof))
}

/// The maximum number of records of one proof for a number of positions and of gains.
#[pyfunction]
fn scan_max_batch(capacity: usize, gains: usize) -> usize {
    batch_size::max_batch(capacity, gains)
}

/// Records with their noise proof (empty without gains) and their query proof.
pub(crate) type Answered = (Vec<PyBackedBytes>, PyBackedBytes, PyBackedBytes);

pub(crate) fn answered((records, noise_proof, proof): &Answered) -> Result<Item<'_>> {
    Ok(Item {
        records: records.iter().map(|of| record(of)).collect::<Result<_>>()?,
        parts: [noise_proof, proof],
    })
}

/// Raises ValueError with the reason unless noise proof and query proof hold for the records. Without gains the noise proof
/// is empty.
#[pyfunction]
fn scan_verify(
    py: Python<'_>,
    index: &ScanIndex,
    parameters: &ScanParameters,
    records: Vec<PyBackedBytes>,
    noise_proof: PyBackedBytes,
    proof: PyBackedBytes,
) -> PyResult<()> {
    guard(py, || {
        let item = (records, noise_proof, proof);
        answer::verify(&index.0, &parameters.0, answered(&item)?)
    })
}

/// Commitments to the columns of an embedder's published table.
#[pyclass(frozen)]
pub(crate) struct ScanTable(pub(crate) Arc<IndexCommitment>);

#[pymethods]
impl ScanTable {
    /// The published points, checked.
    #[new]
    fn new(py: Python<'_>, points: &[u8], dimension: usize, vocabulary: usize) -> PyResult<Self> {
        let capacity = vocabulary.saturating_add(1);
        guard(py, || decode_index(points, dimension, capacity)).map(|c| Self(Arc::new(c)))
    }

    /// Commits to int8 rows in -7..7 of shape (vocabulary, dimension), without blinding.
    #[staticmethod]
    fn commit(py: Python<'_>, rows_int8: &[u8], dimension: usize) -> PyResult<Self> {
        guard(py, || commit_table(&signed(rows_int8), dimension)).map(|c| Self(Arc::new(c)))
    }

    /// The points, 32 bytes each.
    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }

    /// SHA-256 over rows (with the zero row after the vocabulary's), dimension and points.
    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.digest())
    }
}

pub(crate) fn signed(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|&b| b as i8).collect()
}

/// The statement from (maximum tokens, norm factor) and (context, hq, cq).
pub(crate) fn embed_statement<'a>(
    table: &'a IndexCommitment,
    (tokens, norm_factor): (usize, u64),
    bytes: &[u8],
) -> Result<EmbedStatement<'a>> {
    let [context, hq, cq] = exactly(bytes, "statement")?;
    Ok(EmbedStatement {
        context,
        table,
        tokens,
        norm_factor,
        hq,
        cq,
    })
}

/// The proof of A1 for a record (context, hq, cq), given the table's int8 rows, the query's tokens (uint32) and the
/// salts of hq and cq. `parameters`: maximum tokens of a query, and A.
#[pyfunction]
fn scan_embed_prove<'py>(
    py: Python<'py>,
    table: &ScanTable,
    parameters: (usize, u64),
    statement: &[u8],
    rows_int8: &[u8],
    tokens: &[u8],
    salts: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let proof = guard(py, || {
        let [query_salt, vector_salt] = exactly(salts, "salts")?;
        let query = Query {
            tokens: tokens
                .chunks_exact(4)
                .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
                .collect(),
            query_salt,
            vector_salt,
        };
        let statement = embed_statement(&table.0, parameters, statement)?;
        prove_embed(&statement, &signed(rows_int8), &query)
    })?;
    Ok(PyBytes::new(py, &proof))
}

/// Raises ValueError with the reason unless the proof of A1 holds for (context, hq, cq).
#[pyfunction]
fn scan_embed_verify(
    py: Python<'_>,
    table: &ScanTable,
    parameters: (usize, u64),
    statement: &[u8],
    proof: &[u8],
) -> PyResult<()> {
    guard(py, || {
        verify_embed(&embed_statement(&table.0, parameters, statement)?, proof)
    })
}

/// The statement of a coalition proof: 32-byte context; cq (elements), account and first compared record of each
/// record; tenant of each account; theta as (p, q); maximum accounts of a label, and of one in a tenant; log2 of the
/// maximum norm.
#[pyclass(frozen)]
struct ScanCoalition(CoalitionStatement);

/// int4 components of all records (int8), salts of their cq (elements), label of each account.
fn coalition_secret(
    (vectors, salts, labels): (Vec<u8>, Vec<u8>, Vec<usize>),
) -> Result<CoalitionSecret> {
    let salts = Zeroizing::new(salts);
    Ok(CoalitionSecret {
        vectors: signed(&vectors),
        salts: elements(&salts, "salts")?,
        labels,
    })
}

#[pymethods]
impl ScanCoalition {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        context: &[u8],
        dimension: usize,
        cq: &[u8],
        accounts: Vec<usize>,
        tenants: Vec<usize>,
        first: Vec<usize>,
        theta: (u64, u64),
        largest: (u64, u64),
        room: usize,
    ) -> PyResult<Self> {
        guard(py, || {
            let statement = CoalitionStatement {
                context: array(context, "context")?,
                dimension,
                cq: elements(cq, "cq")?,
                accounts,
                tenants,
                first,
                theta: theta.into(),
                largest: largest.into(),
                class_variables: room,
                blocks: Blocks::default(),
            };
            statement.runs()?;
            Ok::<_, Error>(Self(statement))
        })
    }

    /// log2 of the maximum norm that a proof of these vectors needs.
    #[staticmethod]
    fn room(py: Python<'_>, vectors: &[u8], dimension: usize) -> PyResult<usize> {
        guard(py, || {
            let rows = Zeroizing::new(signed(vectors));
            let records = rows.len() / dimension.max(1);
            let norms = distinct_norms(&rows, dimension);
            Ok::<_, Error>(CoalitionStatement::class_variables(records, norms))
        })
    }

    /// The number of runs over pairs of a proof.
    fn runs(&self, py: Python<'_>) -> PyResult<usize> {
        guard_inline(py, || self.0.runs())
    }

    /// The run over records and the blindings of its columns, which stay secret: runs over pairs need them.
    fn prove_records<'py>(
        &self,
        py: Python<'py>,
        witness: (Vec<u8>, Vec<u8>, Vec<usize>),
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (proof, blindings) = guard(py, || {
            let secret = coalition_secret(witness)?;
            let (proof, blindings) = prove_records(&self.0, &secret)?;
            let blindings = Zeroizing::new(blindings);
            Ok::<_, Error>((proof, Zeroizing::new(to_bytes_all(blindings.iter()))))
        })?;
        Ok((PyBytes::new(py, &proof), PyBytes::new(py, &blindings)))
    }

    /// A run over pairs, after a run over records with its blindings.
    fn prove_pairs<'py>(
        &self,
        py: Python<'py>,
        witness: (Vec<u8>, Vec<u8>, Vec<usize>),
        records: &[u8],
        blindings: &[u8],
        run: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let proof = guard(py, || {
            let secret = coalition_secret(witness)?;
            let blindings = Zeroizing::new(elements(blindings, "blindings")?);
            prove_pairs(&self.0, &secret, records, &blindings, run)
        })?;
        Ok(PyBytes::new(py, &proof))
    }

    /// Raises ValueError with the reason unless the run over records and all runs over pairs hold.
    fn verify(&self, py: Python<'_>, records: &[u8], pairs: Vec<Vec<u8>>) -> PyResult<()> {
        guard(py, || {
            let pairs: Vec<&[u8]> = pairs.iter().map(Vec::as_slice).collect();
            coalition::verify_coalition(&self.0, records, &pairs)
        })
    }
}
