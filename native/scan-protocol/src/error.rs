//! The errors of the argument.

/// Why a proof could not be made, parsed or accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A parameter or private value outside its range.
    #[error("{field}: expected {expected}, found {actual}")]
    Invalid {
        field: String,
        expected: String,
        actual: String,
    },
    /// Bytes that are no proof at all: truncated, extended, a point off the curve, a scalar not below r.
    #[error("the encoding is malformed at byte {at}: {reason}")]
    Malformed { at: usize, reason: &'static str },
    /// The proof is well-formed, and its equations do not hold.
    #[error("the proof is false: its group equations do not hold")]
    Rejected,
    /// The private values do not satisfy the statement, so an honest prover sends no proof.
    #[error("the private values do not satisfy the statement: {0}")]
    Unsatisfied(String),
    /// A text whose values leave a range of the integer encoder, so no proof about it exists.
    #[error("the text leaves a range of the encoder: {0}")]
    OutOfRange(String),
    /// The operating system gave no randomness: without it no nonce may be made.
    #[error("the operating system gave no randomness: {0}")]
    Randomness(String),
    #[error(transparent)]
    Core(#[from] ragaudit_relation::Error),
}

impl Error {
    pub fn invalid(
        field: impl Into<String>,
        expected: impl Into<String>,
        actual: impl ToString,
    ) -> Self {
        Self::Invalid {
            field: field.into(),
            expected: expected.into(),
            actual: actual.to_string(),
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;
