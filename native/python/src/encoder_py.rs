//! A1 for the integer encoder. Encodings are as in `scan_py`, integer weights and tables int16.
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ragaudit_field_simd::field::exactly;
use ragaudit_scan_prover::attention;
use ragaudit_scan_prover::block::MAX_PLACES;
use ragaudit_scan_prover::encoder_embed::{
    verify_encoder_embed, verify_encoder_embeds, Hashes, Text,
};
use ragaudit_scan_prover::encoder_model::{decode_pins, Integers, Model, Pins, Sizes};
use ragaudit_scan_prover::group::Fr;
use ragaudit_scan_prover::{protocol, Error, Result};

use crate::guard;
use crate::transformer_py::to_int16;

create_exception!(
    _native,
    EncoderOutOfRange,
    PyValueError,
    "A text whose values leave a range of the integer encoder: no proof about it exists."
);

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("EncoderOutOfRange", m.py().get_type::<EncoderOutOfRange>())?;
    m.add_function(wrap_pyfunction!(scan_encoder_protocol, m)?)?;
    m.add_class::<EncoderModel>()?;
    m.add_class::<EncoderPins>()
}

/// The digest that names the protocol of A1 for the integer encoder.
#[pyfunction]
fn scan_encoder_protocol(py: Python<'_>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &protocol::encoder_name())
}

/// Columns are committed in rows of 2^ROW_VARIABLES.
const ROW_VARIABLES: usize = 12;

/// The hashes of queries: context, hq, cq of each.
fn all_hashes(statements: &[Vec<u8>]) -> Result<Vec<Hashes>> {
    let one = |bytes: &Vec<u8>| {
        let [context, hq, cq] = exactly(bytes, "statement")?;
        Ok(Hashes { context, hq, cq })
    };
    statements.iter().map(one).collect()
}

fn text_of(tokens: &[u8], salts: &[u8]) -> Result<(Text, Fr)> {
    let [query_salt, vector_salt] = exactly(salts, "salts")?;
    let text = Text {
        tokens: tokens_of(tokens)?,
        salt: query_salt,
    };
    Ok((text, vector_salt))
}

fn tokens_of(bytes: &[u8]) -> Result<Vec<u32>> {
    match bytes.as_chunks() {
        (words, []) => Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect()),
        _ => {
            let actual = format!("{} bytes", bytes.len());
            Err(Error::invalid("tokens", "a multiple of 4 bytes", actual))
        }
    }
}

/// A model of the integer encoder with its integers.
#[pyclass(frozen)]
struct EncoderModel(Model);

#[pymethods]
impl EncoderModel {
    /// From the arguments of `IntegerEncoder`, the token that all texts begin with, and stored pins or None.
    #[new]
    #[pyo3(signature = (shape, scales, weights, exp, gelu, first, pins=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        shape: [usize; 6],
        scales: [u32; 6],
        weights: &[u8],
        exp: &[u8],
        gelu: &[u8],
        first: u32,
        pins: Option<&[u8]>,
    ) -> PyResult<Self> {
        let [layers, width, heads, inner, vocabulary, places] = shape;
        let [x, q, v, o, z, g] = scales;
        let pinned = places.clamp(1, MAX_PLACES);
        let sizes = Sizes {
            layers,
            vocabulary,
            attention: attention::Shape {
                width,
                heads,
                x,
                q,
                v,
                o,
            },
            inner,
            z,
            g,
            places: 1 << pinned.ilog2(),
            row_variables: ROW_VARIABLES,
        };
        guard(py, || {
            let [weights, exp, gelu] = [(weights, "weights"), (exp, "exp"), (gelu, "gelu")]
                .map(|(b, name)| to_int16(b, name));
            let integers = Integers {
                weights: &weights?,
                places,
                exp: &exp?,
                gelu: &gelu?,
                first,
            };
            Model::new(sizes, integers, pins)
        })
        .map(Self)
    }

    /// The pins, which a verifier has instead of the integers.
    fn pins<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.pins())
    }

    /// The digest of the pins.
    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.digest())
    }

    /// The proof of A1 for a record (context, hq, cq), given the tokens (uint32) and the salts of hq and cq. `parameters`: the
    /// places T, and A.
    fn prove<'py>(
        &self,
        py: Python<'py>,
        parameters: (usize, u64),
        statement: &[u8],
        tokens: &[u8],
        salts: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let [statements, tokens, salts] = [statement, tokens, salts].map(|one| vec![one.to_vec()]);
        self.prove_all(py, parameters, statements, tokens, salts)
    }

    /// One proof for several records, 2, 4, 8 or 16: of each its statement, tokens and salts, as in [`Self::prove`].
    fn prove_all<'py>(
        &self,
        py: Python<'py>,
        parameters: (usize, u64),
        statements: Vec<Vec<u8>>,
        tokens: Vec<Vec<u8>>,
        salts: Vec<Vec<u8>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let proof = guard(py, || {
            let count = statements.len();
            for (field, lists) in [("tokens", &tokens), ("salts", &salts)] {
                if lists.len() != count {
                    return Err(Error::invalid(field, format!("{count} lists"), lists.len()));
                }
            }
            let texts = tokens.iter().zip(&salts).map(|(t, s)| text_of(t, s));
            let texts = texts.collect::<Result<Vec<(Text, Fr)>>>()?;
            let queries: Vec<(&Text, &Fr)> =
                texts.iter().map(|(text, salt)| (text, salt)).collect();
            let statement = self.0.statement_of(&all_hashes(&statements)?, parameters);
            match self.0.prove_all(&statement, &queries) {
                Err(Error::OutOfRange(what)) => Ok(Err(what)),
                proof => proof.map(Ok),
            }
        })?;
        proof
            .map(|proof| PyBytes::new(py, &proof))
            .map_err(EncoderOutOfRange::new_err)
    }
}

/// A model of the integer encoder without its integers.
#[pyclass(frozen)]
struct EncoderPins(Pins);

#[pymethods]
impl EncoderPins {
    /// The pins, checked.
    #[new]
    fn new(py: Python<'_>, pins: &[u8]) -> PyResult<Self> {
        guard(py, || decode_pins(pins)).map(Self)
    }

    /// SHA-256 of the pins.
    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.digest())
    }

    /// Raises ValueError with the reason unless the proof of A1 holds for (context, hq, cq) and `parameters`.
    fn verify(
        &self,
        py: Python<'_>,
        parameters: (usize, u64),
        statement: &[u8],
        proof: &[u8],
    ) -> PyResult<()> {
        self.verify_all(py, parameters, vec![statement.to_vec()], proof)
    }

    /// The same for one proof of several records.
    fn verify_all(
        &self,
        py: Python<'_>,
        parameters: (usize, u64),
        statements: Vec<Vec<u8>>,
        proof: &[u8],
    ) -> PyResult<()> {
        guard(py, || {
            let statement = self.0.statement_of(&all_hashes(&statements)?, parameters);
            verify_encoder_embed(&statement, proof)
        })
    }

    /// Verifies many proofs in one sum, each of one or several records. Returns the numbers of the refused proofs with the
    /// reasons.
    fn verify_many(
        &self,
        py: Python<'_>,
        parameters: (usize, u64),
        items: Vec<(Vec<Vec<u8>>, Vec<u8>)>,
    ) -> PyResult<Vec<(usize, String)>> {
        guard(py, || -> Result<_> {
            let mut all = Vec::new();
            for (statements, proof) in &items {
                let statement = self.0.statement_of(&all_hashes(statements)?, parameters);
                all.push((statement, proof.as_slice()));
            }
            let refused = verify_encoder_embeds(&all)?.into_iter();
            let reasons = refused.map(|(k, error)| (k, error.to_string()));
            Ok(reasons.collect())
        })
    }
}
