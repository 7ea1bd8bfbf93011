//! Bindings of `ragaudit_transformer`. int16 and int32 vectors are little-endian bytes.
use pyo3::prelude::*;
use ragaudit_field_simd::Error;
use ragaudit_transformer::{Encoder, OutOfRange, Pooling, Scales, Shape};

use crate::guard;

/// An integer encoder (docs/minilm-int.md).
#[pyclass(frozen)]
pub struct IntegerEncoder(Encoder);

/// Layer, name and first value of a text that leaves a range.
type Outside = (usize, &'static str, i64);

/// The vector of a text, or the value that left its range.
type Embedded = (Option<Vec<u8>>, Option<Outside>);
/// Layer, name and int16 values.
type Named = (usize, &'static str, Vec<u8>);

pub(crate) fn to_int16(bytes: &[u8], field: &str) -> Result<Vec<i16>, Error> {
    let chunks = bytes.chunks_exact(2);
    if !chunks.remainder().is_empty() {
        let actual = format!("{} bytes", bytes.len());
        return Err(Error::invalid(field, "a multiple of 2 bytes", actual));
    }
    Ok(chunks.map(|c| i16::from_le_bytes([c[0], c[1]])).collect())
}

fn outside(fault: OutOfRange) -> Outside {
    (fault.layer, fault.part, fault.value)
}

#[pymethods]
impl IntegerEncoder {
    /// The encoder with these sizes (layers, width, heads, inner, vocabulary, places), scales (x, q, v, o, z, g), weights
    /// and tables as int16.
    #[new]
    fn new(
        py: Python<'_>,
        shape: [usize; 6],
        scales: [u32; 6],
        weights: &[u8],
        exp: &[u8],
        gelu: &[u8],
    ) -> PyResult<Self> {
        let [layers, width, heads, inner, vocabulary, places] = shape;
        let shape = Shape {
            layers,
            width,
            heads,
            inner,
            vocabulary,
            places,
        };
        let [x, q, v, o, z, g] = scales;
        let scales = Scales { x, q, v, o, z, g };
        guard(py, || {
            let weights = to_int16(weights, "weights")?;
            let (exp, gelu) = (to_int16(exp, "exp")?, to_int16(gelu, "gelu")?);
            Encoder::new(shape, scales, &weights, &exp, &gelu).map(Self)
        })
    }

    /// The vectors of texts, int32, in their order: the sum of the last layer's rows, or the first row. A text that leaves
    /// a range has none; its place has layer, name and first such value instead.
    fn embed(&self, py: Python<'_>, texts: Vec<Vec<u32>>, first: bool) -> PyResult<Vec<Embedded>> {
        let pooling = if first { Pooling::First } else { Pooling::Sum };
        guard(py, || {
            let results = self.0.embed(&texts, pooling)?.into_iter();
            let one = |result: Result<Vec<i32>, OutOfRange>| match result {
                Ok(sums) => (
                    Some(sums.iter().flat_map(|v| v.to_le_bytes()).collect()),
                    None,
                ),
                Err(fault) => (None, Some(outside(fault))),
            };
            Ok::<_, Error>(results.map(one).collect())
        })
    }

    /// Layer, name and values of each named value of one text, up to the one that leaves its range, if there is one.
    fn trace(&self, py: Python<'_>, tokens: Vec<u32>) -> PyResult<(Vec<Named>, Option<Outside>)> {
        guard(py, || {
            self.0.check(&tokens)?;
            let mut named = Vec::new();
            let fault = self.0.rows(&tokens, &mut |layer, part, values| {
                named.push((
                    layer,
                    part,
                    values.iter().flat_map(|v| v.to_le_bytes()).collect(),
                ));
            });
            Ok::<_, Error>((named, fault.err().map(outside)))
        })
    }
}
