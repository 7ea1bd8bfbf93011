//! Errors of the core: each names the field, the expected and the actual value.

/// A malformed input. Never a bug of the core itself: those panic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{field}: expected {expected}, found {actual}")]
    Invalid {
        field: String,
        expected: String,
        actual: String,
    },
    #[error("the operating system gave no threads: {0}")]
    Threads(String),
}

impl Error {
    pub fn invalid(
        field: impl Into<String>,
        expected: impl Into<String>,
        actual: impl Into<String>,
    ) -> Self {
        Self::Invalid {
            field: field.into(),
            expected: expected.into(),
            actual: actual.into(),
        }
    }
}
