//! Bindings of `ragaudit_field_simd`. Field elements are 32 bytes, big-endian, concatenated; int8 and int32 vectors
//! little-endian bytes.
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_field_simd::commitment;
use ragaudit_field_simd::field::{self, Fr};
use ragaudit_field_simd::int4;
use ragaudit_field_simd::lanes::Lanes;
use ragaudit_field_simd::selection::{self, ScoreWindow};
use ragaudit_field_simd::{
    dispatch, noise, pairs, pooled, poseidon, signatures, table, threads, Error,
};

use crate::{guard, guard_inline};

fn to_int8(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|&b| b as i8).collect()
}

/// Four bytes for each int32.
fn words<'b>(bytes: &'b [u8], field: &str) -> Result<&'b [[u8; 4]], Error> {
    match bytes.as_chunks::<4>() {
        (words, []) => Ok(words),
        _ => {
            let actual = format!("{} bytes", bytes.len());
            Err(Error::invalid(field, "a multiple of 4 bytes", actual))
        }
    }
}

fn to_int32(bytes: &[u8], field: &str) -> Result<Vec<i32>, Error> {
    let words = words(bytes, field)?.iter();
    Ok(words.map(|word| i32::from_le_bytes(*word)).collect())
}

fn from_int32(values: &[i32]) -> Vec<u8> {
    let mut out = vec![0; 4 * values.len()];
    for (chunk, value) in out.chunks_exact_mut(4).zip(values) {
        chunk.copy_from_slice(&value.to_le_bytes());
    }
    out
}

fn to_gains(gains: &[i64]) -> Result<Vec<u32>, Error> {
    let parse = |(c, &g): (usize, &i64)| {
        u32::try_from(g)
            .map_err(|_| Error::invalid(format!("gains[{c}]"), "a positive integer", g.to_string()))
    };
    gains.iter().enumerate().map(parse).collect()
}

/// Sets how many threads later native computations use (1..1024).
#[pyfunction]
pub fn set_threads(py: Python<'_>, n: usize) -> PyResult<()> {
    guard_inline(py, || threads::set(n))
}

/// The number of threads that native computations use: by default the cores available to the process.
#[pyfunction(name = "threads")]
pub fn thread_count() -> usize {
    threads::count()
}

/// How many residues the field's kernels take at a time, and whether int4 products use AVX2: both are chosen when the
/// process starts, by what its processor has.
#[pyfunction]
pub fn lanes() -> (usize, bool) {
    #[cfg(target_arch = "x86_64")]
    let products = is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let products = false;
    (dispatch!(l => width(l)), products)
}

fn width<L: Lanes<Fr>>(_: L) -> usize {
    L::N
}

fn permuted<const T: usize>(
    words: &[Fr],
    permute: impl Fn(&[Fr; T]) -> [Fr; T],
) -> Option<Vec<u8>> {
    Some(field::to_bytes_all(&permute(words.try_into().ok()?)))
}

/// Poseidon permutation, t = 9 or 17.
#[pyfunction]
pub fn poseidon_permute(py: Python<'_>, state: &[u8]) -> PyResult<Vec<u8>> {
    guard_inline(py, || {
        let words = field::elements(state, "state")?;
        permuted(&words, poseidon::permute)
            .or_else(|| permuted(&words, |s| poseidon::narrow_9().permute(s)))
            .ok_or_else(|| Error::invalid("state", "9 or 17 elements", words.len().to_string()))
    })
}

/// H: 1 to 16 field elements, padded with zeros, to one.
#[pyfunction]
pub fn poseidon_hash(py: Python<'_>, inputs: &[u8]) -> PyResult<Vec<u8>> {
    guard_inline(py, || {
        let hash = poseidon::hash(&field::elements(inputs, "inputs")?)?;
        Ok::<_, Error>(field::to_bytes(&hash).to_vec())
    })
}

/// HL: a list of field elements under a domain tag, to one.
#[pyfunction]
pub fn poseidon_hash_list(py: Python<'_>, tag: u64, elements: &[u8]) -> PyResult<Vec<u8>> {
    guard_inline(py, || {
        let hash = poseidon::hash_list(tag, &field::elements(elements, "elements")?);
        Ok::<_, Error>(field::to_bytes(&hash).to_vec())
    })
}

/// HL of several lists side by side, each from the hash that its tag and length give: H(10, tag, len).
#[pyfunction]
pub fn poseidon_absorb(
    py: Python<'_>,
    lists: Vec<(PyBackedBytes, PyBackedBytes)>,
) -> PyResult<Vec<Vec<u8>>> {
    guard_inline(py, || {
        let mut starts = Vec::with_capacity(lists.len());
        let mut elements = Vec::with_capacity(lists.len());
        for (start, list) in &lists {
            starts.push(field::element(start, "start")?);
            elements.push(field::elements(list, "elements")?);
        }
        let hashes = poseidon::absorb_all(&starts, &elements);
        let bytes = hashes.iter().map(|hash| field::to_bytes(hash).to_vec());
        Ok::<_, Error>(bytes.collect())
    })
}

/// HL(7, [salt, nibble stream]) over int8 rows of shape (positions, dimension).
#[pyfunction]
pub fn index_commitment(
    py: Python<'_>,
    salt: &[u8],
    rows_int8: &[u8],
    dimension: usize,
) -> PyResult<Vec<u8>> {
    guard_inline(py, || {
        let salt = field::element(salt, "salt")?;
        let hash = commitment::index_commitment(salt, &to_int8(rows_int8), dimension)?;
        Ok::<_, Error>(field::to_bytes(&hash).to_vec())
    })
}

/// Whether a BLS12-381 signature in G1 (48 bytes) is that of a key in G2 (96 bytes) on a message: RFC 9380, ZCash form.
#[pyfunction]
pub fn bls_signed_in_g1(
    py: Python<'_>,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> PyResult<bool> {
    guard_inline(py, || signatures::signed_in_g1(key, message, signature))
}

/// The same for a signature in G2 (96 bytes) and a key in G1 (48 bytes).
#[pyfunction]
pub fn bls_signed_in_g2(
    py: Python<'_>,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> PyResult<bool> {
    guard_inline(py, || signatures::signed_in_g2(key, message, signature))
}

/// All nodes of the tree over an embedder's table, int8 rows of shape (rows, dimension): leaves first, root last.
#[pyfunction]
pub fn table_tree(
    py: Python<'_>,
    rows_int8: &[u8],
    dimension: usize,
    depth: usize,
) -> PyResult<Vec<u8>> {
    guard(py, || {
        let nodes = table::tree(&to_int8(rows_int8), dimension, depth)?;
        Ok::<_, Error>(field::to_bytes_all(&nodes))
    })
}

/// DGS-1 noise of one slot, one int32 a position.
#[pyfunction]
pub fn draw_noise(
    py: Python<'_>,
    kappa: &[u8],
    positions: usize,
    gains: Vec<i64>,
) -> PyResult<Vec<u8>> {
    guard(py, || {
        let kappa = field::element(kappa, "kappa")?;
        let gains = to_gains(&gains)?;
        Ok::<_, Error>(from_int32(&noise::draw(&kappa, positions, &gains)?))
    })
}

/// One byte a position, 1 where the slot's draw is below the bound, a probability over 2^40.
#[pyfunction]
pub fn draw_bernoulli_bits(
    py: Python<'_>,
    kappa: &[u8],
    positions: usize,
    bound: u64,
) -> PyResult<Vec<u8>> {
    guard(py, || {
        let kappa = field::element(kappa, "kappa")?;
        noise::bernoulli_bits(&kappa, positions, bound)
    })
}

/// The DGS-1 alias table: 128 records of 5 bytes, threshold (uint32, little-endian) and alias (uint8).
#[pyfunction]
pub fn noise_table(py: Python<'_>) -> PyResult<Vec<u8>> {
    guard_inline(py, || {
        let table = noise::alias_table();
        let record = |(t, w): (&u32, &u8)| [t.to_le_bytes().as_slice(), &[*w]].concat();
        let records = table.thresholds.iter().zip(&table.aliases);
        Ok::<_, Error>(records.flat_map(record).collect())
    })
}

/// An int4 index in the layout that the score kernel reads; immutable.
#[pyclass(frozen)]
pub struct PackedIndex(int4::PackedIndex);

#[pymethods]
impl PackedIndex {
    #[new]
    fn new(py: Python<'_>, rows_int8: &[u8], dimension: usize) -> PyResult<Self> {
        guard(py, || {
            int4::PackedIndex::new(&to_int8(rows_int8), dimension)
        })
        .map(Self)
    }

    #[getter]
    fn rows(&self) -> usize {
        self.0.rows()
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    /// Inner products of every row with the query, as int32.
    fn scores<'py>(&self, py: Python<'py>, query_int8: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, 4 * self.0.rows(), |out| {
            guard(py, || self.0.write_scores(&to_int8(query_int8), out))
        })
    }
}

/// The row of each position of a tenant under pooled listing, for its answers; immutable.
#[pyclass(frozen)]
pub struct PooledRows(pooled::RowOfPosition);

#[pymethods]
impl PooledRows {
    #[new]
    fn new(py: Python<'_>, row_of_position_int32: &[u8], rows: usize) -> PyResult<Self> {
        guard(py, || {
            let signed = to_int32(row_of_position_int32, "row_of_position")?;
            let negative = |row: i32| {
                Error::invalid("row_of_position", format!("0 to {rows}"), row.to_string())
            };
            let row = |row: i32| u32::try_from(row).map_err(|_| negative(row));
            let of = signed.into_iter().map(row).collect::<Result<_, _>>()?;
            pooled::RowOfPosition::new(of, rows)
        })
        .map(Self)
    }

    #[getter]
    fn positions(&self) -> usize {
        self.0.positions()
    }

    #[getter]
    fn rows(&self) -> usize {
        self.0.rows()
    }

    /// One byte a row, 1 if it is listed after the request, and the positions of the answer, best first. `states` has one
    /// byte a row each: listed before the request, in the sample, drawn by chance.
    fn answer(
        &self,
        py: Python<'_>,
        scores_int32: &[u8],
        states: (PyBackedBytes, PyBackedBytes, PyBackedBytes),
        threshold: i64,
        window: (i64, i64, i64),
        places: usize,
    ) -> PyResult<(Vec<u8>, Vec<usize>)> {
        let (before, kept, chance) = states;
        guard(py, || {
            let scores = words(scores_int32, "scores")?;
            let (lo, hi, lattice) = window;
            let rules = pooled::PooledRules {
                threshold,
                window: ScoreWindow::new(lo, hi, lattice)?,
                places,
            };
            let request = pooled::PooledRequest {
                scores,
                before: &before,
                kept: &kept,
                chance: &chance,
            };
            let answer = self.0.answer(&request, &rules)?;
            Ok::<_, Error>((answer.after, answer.positions))
        })
    }
}

/// First k positions of quantise(scores) + noise: larger first, then smaller position.
#[pyfunction]
pub fn noised_top_k(
    py: Python<'_>,
    scores: &[u8],
    lo: i64,
    hi: i64,
    lattice: i64,
    noise: &[u8],
    k: usize,
) -> PyResult<Vec<usize>> {
    guard(py, || {
        let window = ScoreWindow::new(lo, hi, lattice)?;
        let (scores, noise) = (to_int32(scores, "scores")?, to_int32(noise, "noise")?);
        selection::noised_top_k(&scores, &window, &noise, k)
    })
}

/// For each query and its noise (int32, or None for none), the first k positions of an index in runs, by quantise(scores of
/// the sample, 0 for the others) + noise: larger first, then smaller position. `sample` is a byte 0 or 1 a position; without it
/// all count.
#[pyfunction]
#[pyo3(signature = (runs, requests, lo, hi, lattice, k, sample=None))]
#[allow(clippy::too_many_arguments)]
pub fn top_k(
    py: Python<'_>,
    runs: Vec<Py<PackedIndex>>,
    requests: Vec<(Vec<u8>, Option<PyBackedBytes>)>,
    lo: i64,
    hi: i64,
    lattice: i64,
    k: usize,
    sample: Option<&[u8]>,
) -> PyResult<Vec<Vec<usize>>> {
    let runs: Vec<&int4::PackedIndex> = runs.iter().map(|run| &run.get().0).collect();
    guard(py, || {
        let window = ScoreWindow::new(lo, hi, lattice)?;
        let read = |(query, noise): &(Vec<u8>, Option<PyBackedBytes>)| {
            let noise = noise.as_ref().map(|noise| to_int32(noise, "noise"));
            Ok::<_, Error>((to_int8(query), noise.transpose()?))
        };
        let requests = requests.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let requests: Vec<_> = requests
            .iter()
            .map(|(query, noise)| selection::NoisedQuery {
                query,
                noise: noise.as_deref(),
            })
            .collect();
        selection::top_k(&runs, &requests, &window, sample, k)
    })
}

/// Pairs of rows (earlier, later) that join accounts whose vectors reach cosine p/q.
#[pyfunction]
pub fn joining_pairs(
    py: Python<'_>,
    rows_int8: &[u8],
    dimension: usize,
    accounts: Vec<u32>,
    first: Vec<u32>,
    p: u64,
    q: u64,
) -> PyResult<Vec<(u32, u32)>> {
    guard(py, || {
        let threshold = pairs::Threshold::new(p, q)?;
        pairs::joining_pairs(&to_int8(rows_int8), dimension, &accounts, &first, threshold)
    })
}
