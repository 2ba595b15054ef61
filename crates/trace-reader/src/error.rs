//! The one error type of the reader.

use std::io;

/// Why a file could not be read as a trace.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file was read, but it is not a profiler trace.
    #[error("{path} is not a profiler trace: {found}")]
    NotATrace {
        /// The file.
        path: String,
        /// What was found instead, and where.
        found: String,
    },
    /// The file yields more text than it may.
    #[error("{path}: its text is longer than {most_bytes} bytes")]
    Expands {
        /// The file.
        path: String,
        /// How much text it may yield.
        most_bytes: u64,
    },
    /// The tables could not be written.
    #[error("could not write the tables: {0}")]
    Sink(#[from] arrow_schema::ArrowError),
    /// A thread of the reader ended with a fault of its own.
    #[error("{path}: the reader failed; please report this with the file")]
    Failed {
        /// The file.
        path: String,
    },
    /// The caller asked to stop.
    #[error("reading was stopped")]
    Stopped,
}
