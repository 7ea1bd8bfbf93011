#[cfg(feature = "prover")]
use std::path::Path;

/// An error of a file or a value that another party made. No function of this crate panics on input.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused: a missing file, a full disk.
    #[error("{place}: {source}")]
    Io {
        place: String,
        source: std::io::Error,
    },
    /// The format or the curve does not allow the bytes.
    #[error("{place}: {reason}")]
    Malformed { place: String, reason: String },
    /// The inputs are well-formed, and they contradict one another.
    #[error("{0}")]
    Mismatch(String),
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness: {0}")]
    Randomness(String),
    /// The operating system gave no threads.
    #[error("the operating system gave no threads: {0}")]
    Threads(String),
}

pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn malformed<T>(place: impl Into<String>, reason: impl Into<String>) -> Result<T> {
    Err(Error::Malformed {
        place: place.into(),
        reason: reason.into(),
    })
}

#[cfg(feature = "prover")]
pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |source| Error::Io {
        place: path.display().to_string(),
        source,
    }
}
