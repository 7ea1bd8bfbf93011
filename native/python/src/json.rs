//! JSON of the plain values that nearly every document consists of, between bytes and Python's values: texts, integers
//! below 2^53, booleans and null, in lists and dicts at most 64 deep. Python handles other values, and is slower.
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};
use pyo3::IntoPyObjectExt;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

const MAX_DEPTH: usize = 64;
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The RFC 8785 bytes of a value, or None if it is not a plain value or a key is not ASCII.
#[pyfunction]
pub fn canonical_json(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(1024);
    write(value, 0, &mut out)?;
    Some(out)
}

/// Only exact types, because a subclass may print in another way.
fn write(value: &Bound<'_, PyAny>, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Ok(text) = value.cast_exact::<PyString>() {
        return write_text(text, out);
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        return write_items(list.iter(), depth, out);
    }
    if let Ok(list) = value.cast_exact::<PyTuple>() {
        return write_items(list.iter(), depth, out);
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return write_fields(dict, depth, out);
    }
    if let Ok(truth) = value.cast_exact::<PyBool>() {
        out.extend(if truth.is_true() { "true" } else { "false" }.bytes());
        return Some(());
    }
    if let Ok(number) = value.cast_exact::<PyInt>() {
        let number: i64 = number.extract().ok()?;
        if number.unsigned_abs() > MAX_SAFE_INTEGER {
            return None;
        }
        out.extend(number.to_string().bytes());
        return Some(());
    }
    value.is_none().then(|| out.extend(b"null"))
}

fn write_items<'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    out.push(b'[');
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(&item, depth + 1, out)?;
    }
    out.push(b']');
    Some(())
}

fn write_fields(dict: &Bound<'_, PyDict>, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut fields = Vec::with_capacity(dict.len());
    for (key, value) in dict.iter() {
        let name = key.cast_into_exact::<PyString>().ok()?;
        // RFC 8785 sorts by UTF-16 units, which is the order of bytes for ASCII keys only.
        if !name.to_str().ok()?.is_ascii() {
            return None;
        }
        fields.push((name, value));
    }
    let text = |name: &Bound<'_, PyString>| name.to_str().unwrap_or_default().to_owned();
    fields.sort_by_cached_key(|(name, _)| text(name));
    out.push(b'{');
    for (place, (name, value)) in fields.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_text(name, out)?;
        out.push(b':');
        write(value, depth + 1, out)?;
    }
    out.push(b'}');
    Some(())
}

/// RFC 8785 escapes like serde_json. A lone surrogate has no UTF-8 form.
fn write_text(text: &Bound<'_, PyString>, out: &mut Vec<u8>) -> Option<()> {
    serde_json::to_writer(out, text.to_str().ok()?).ok()
}

/// The value of a JSON text, or None if it contains other values or an object repeats a key. The caller then reads the text
/// step by step, and reports an error if there is one.
#[pyfunction]
pub fn plain_json<'py>(py: Python<'py>, data: &[u8]) -> Option<Bound<'py, PyAny>> {
    let mut reader = serde_json::Deserializer::from_slice(data);
    let value = Value { py, depth: 0 }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}

/// Creates Python values from the values that serde_json reads. A float and an integer beyond 64 bits are errors.
#[derive(Clone, Copy)]
struct Value<'py> {
    py: Python<'py>,
    depth: usize,
}

impl<'py> Value<'py> {
    fn inner(self) -> Self {
        let depth = self.depth + 1;
        Self { depth, ..self }
    }

    fn built<E: Error>(
        self,
        value: PyResult<impl IntoPyObject<'py>>,
    ) -> Result<Bound<'py, PyAny>, E> {
        let value = value.map_err(E::custom)?;
        value.into_bound_py_any(self.py).map_err(E::custom)
    }
}

impl<'de, 'py> DeserializeSeed<'de> for Value<'py> {
    type Value = Bound<'py, PyAny>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        if self.depth > MAX_DEPTH {
            return Err(D::Error::custom("the value is too deep"));
        }
        reader.deserialize_any(self)
    }
}

impl<'de, 'py> Visitor<'de> for Value<'py> {
    type Value = Bound<'py, PyAny>;

    fn expecting(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("a plain value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(self.py.None().into_bound(self.py))
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Self::Value, E> {
        self.built(Ok(truth))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        match number {
            0..=MAX_SAFE_INTEGER => self.built(Ok(number)),
            _ => Err(E::custom("the integer is too large")),
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        match number.unsigned_abs() {
            0..=MAX_SAFE_INTEGER => self.built(Ok(number)),
            _ => Err(E::custom("the integer is too large")),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        self.built(Ok(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.inner())? {
            list.push(item);
        }
        self.built(PyList::new(self.py, list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let dict = PyDict::new(self.py);
        while let Some(key) = fields.next_key_seed(Key(self.py))? {
            let value = fields.next_value_seed(self.inner())?;
            let before = dict.len();
            dict.set_item(key, value).map_err(A::Error::custom)?;
            if dict.len() == before {
                return Err(A::Error::custom("the object repeats a key"));
            }
        }
        self.built(Ok(dict))
    }
}

/// Creates one Python text for a key that many objects of a document have.
struct Key<'py>(Python<'py>);

impl<'de, 'py> DeserializeSeed<'de> for Key<'py> {
    type Value = Bound<'py, PyString>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'py> Visitor<'_> for Key<'py> {
    type Value = Bound<'py, PyString>;

    fn expecting(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("a key")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(PyString::intern(self.0, text))
    }
}

/// An upper bound on the values of a JSON text: each but the outermost follows a comma or an opening bracket outside texts.
#[pyfunction]
pub fn json_values(py: Python<'_>, data: &[u8]) -> usize {
    py.detach(|| {
        let (mut count, mut inside, mut escaped) = (1, false, false);
        for byte in data {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = inside,
                b'"' => inside = !inside,
                b',' | b'[' | b'{' if !inside => count += 1,
                _ => (),
            }
        }
        count
    })
}
