//! Strict JSON of the plain kind that nearly every document is, straight to Python's values.
use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString};

const MAX_DEPTH: usize = 64;
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// The value of a JSON text, or None where it is not wholly of texts, integers below 2^53, booleans and null, in lists and
/// objects without repeated keys: the caller then reads it step by step and says what is wrong, if anything is.
#[pyfunction]
fn plain_json<'py>(py: Python<'py>, data: &[u8]) -> Option<Bound<'py, PyAny>> {
    let mut reader = Reader {
        py,
        text: std::str::from_utf8(data).ok()?,
        at: 0,
        keys: HashMap::new(),
    };
    reader.space();
    let value = reader.value(0)?;
    reader.space();
    (reader.at == data.len()).then_some(value)
}

/// An upper bound on the values of a JSON text: each but the outermost follows a comma or an opening bracket outside texts.
#[pyfunction]
fn json_values(py: Python<'_>, data: &[u8]) -> usize {
    py.detach(|| {
        let (mut count, mut inside, mut escaped) = (1, false, false);
        for byte in data {
            if inside {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => inside = false,
                    _ => (),
                }
            } else {
                match byte {
                    b'"' => inside = true,
                    b',' | b'[' | b'{' => count += 1,
                    _ => (),
                }
            }
        }
        count
    })
}

struct Reader<'py, 'a> {
    py: Python<'py>,
    text: &'a str,
    at: usize,
    /// Keys that occurred, of which a document repeats a few many times.
    keys: HashMap<&'a str, Bound<'py, PyString>>,
}

impl<'py, 'a> Reader<'py, 'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn take(&mut self, expected: &str) -> Option<()> {
        let found = self.text.as_bytes().get(self.at..)?;
        found
            .starts_with(expected.as_bytes())
            .then(|| self.at += expected.len())
    }

    fn value(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        if depth > MAX_DEPTH {
            return None;
        }
        let py = self.py;
        Some(match self.peek()? {
            b'"' => match self.string()? {
                Text::Plain(text) => PyString::new(py, text).into_any(),
                Text::Escaped(text) => PyString::new(py, &text).into_any(),
            },
            b'{' => self.fields(depth)?.into_any(),
            b'[' => self.items(depth)?.into_any(),
            b't' => self
                .take("true")
                .map(|()| PyBool::new(py, true).to_owned().into_any())?,
            b'f' => self
                .take("false")
                .map(|()| PyBool::new(py, false).to_owned().into_any())?,
            b'n' => self.take("null").map(|()| py.None().into_bound(py))?,
            _ => self.integer()?.into_any(),
        })
    }

    fn items(&mut self, depth: usize) -> Option<Bound<'py, PyList>> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        if self.take("]").is_some() {
            return PyList::new(self.py, items).ok();
        }
        loop {
            self.space();
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take("]").is_some() {
                return PyList::new(self.py, items).ok();
            }
            self.take(",")?;
        }
    }

    fn fields(&mut self, depth: usize) -> Option<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        self.at += 1;
        self.space();
        if self.take("}").is_some() {
            return Some(dict);
        }
        for count in 1.. {
            self.space();
            let key = match self.string()? {
                Text::Plain(text) => {
                    let made = || PyString::new(self.py, text);
                    self.keys.entry(text).or_insert_with(made).clone()
                }
                Text::Escaped(text) => PyString::new(self.py, &text),
            };
            self.space();
            self.take(":")?;
            self.space();
            let value = self.value(depth + 1)?;
            dict.set_item(key, value).ok()?;
            if dict.len() != count {
                return None; // a repeated key
            }
            self.space();
            if self.take("}").is_some() {
                break;
            }
            self.take(",")?;
        }
        Some(dict)
    }

    fn integer(&mut self) -> Option<Bound<'py, PyInt>> {
        let start = self.at;
        let negative = self.take("-").is_some();
        let digits = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        let length = self.at - digits;
        let zero = self.text.as_bytes().get(digits) == Some(&b'0');
        if length == 0 || length > 16 || (zero && (length > 1 || negative)) {
            return None;
        }
        if let Some(b'.' | b'e' | b'E') = self.peek() {
            return None;
        }
        let number: i64 = self.text[start..self.at].parse().ok()?;
        (number.abs() <= MAX_SAFE_INTEGER).then_some(number)?;
        number.into_pyobject(self.py).ok()
    }

    /// A text, whose opening quote comes next.
    fn string(&mut self) -> Option<Text<'a>> {
        self.take("\"")?;
        let bytes = self.text.as_bytes();
        let start = self.at;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => return self.escaped(start).map(Text::Escaped),
                0..32 => return None,
                _ => self.at += 1,
            }
        }
        let end = self.at;
        self.at += 1;
        debug_assert_eq!(bytes[end], b'"');
        Some(Text::Plain(&self.text[start..end]))
    }

    /// The rest of a text from its first escape on, after what stands plainly from `start` on.
    fn escaped(&mut self, start: usize) -> Option<String> {
        let mut out = String::new();
        let mut plain = start;
        loop {
            match self.peek()? {
                b'"' => {
                    out.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    return Some(out);
                }
                b'\\' => {
                    out.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    let escape = self.peek()?;
                    self.at += 1;
                    out.push(match escape {
                        b'"' | b'\\' | b'/' => char::from(escape),
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => self.unit()?,
                        _ => return None,
                    });
                    plain = self.at;
                }
                0..32 => return None,
                _ => self.at += 1,
            }
        }
    }

    /// The character of a `\u` escape, or of two that are a surrogate pair; a surrogate alone is none.
    fn unit(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.take("\\u")?;
        let second = self.hex()?;
        if !(0xdc00..0xe000).contains(&second) {
            return None;
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }
}

enum Text<'a> {
    Plain(&'a str),
    Escaped(String),
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(plain_json, m)?)?;
    m.add_function(wrap_pyfunction!(json_values, m)?)
}
