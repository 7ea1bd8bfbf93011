//! Canonical JSON (RFC 8785) of the plain values that nearly every document consists of.
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

const MAX_DEPTH: usize = 64;
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// The RFC 8785 bytes of a value, or None where it is not one of plain texts, integers below 2^53, booleans and null, in
/// lists and dicts with ASCII keys: the caller then looks at it place by place.
#[pyfunction]
fn canonical_json<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyBytes>> {
    let mut out = Vec::with_capacity(1024);
    write(value, 0, &mut out)?;
    Some(PyBytes::new(value.py(), &out))
}

/// Types are exact: a subclass may print in its own way.
fn write(value: &Bound<'_, PyAny>, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Ok(text) = value.cast_exact::<PyString>() {
        return write_text(text.to_str().ok()?, out); // a lone surrogate has no UTF-8
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
        if !(-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(&number) {
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
        // Of ASCII keys alone is the order of bytes that of UTF-16 units.
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
        write_text(name.to_str().ok()?, out)?;
        out.push(b':');
        write(value, depth + 1, out)?;
    }
    out.push(b'}');
    Some(())
}

/// A text between quotes; what RFC 8785 escapes are quotes, backslashes and control characters.
fn write_text(text: &str, out: &mut Vec<u8>) -> Option<()> {
    out.push(b'"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            8 => b'b',
            9 => b't',
            10 => b'n',
            12 => b'f',
            13 => b'r',
            0..32 => 0,
            _ => continue,
        };
        out.extend(&text.as_bytes()[plain..at]);
        plain = at + 1;
        if short == 0 {
            out.extend(format!("\\u{byte:04x}").bytes());
        } else {
            out.extend([b'\\', short]);
        }
    }
    out.extend(&text.as_bytes()[plain..]);
    out.push(b'"');
    Some(())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(canonical_json, m)?)
}
