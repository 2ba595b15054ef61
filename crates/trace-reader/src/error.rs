//! The reader's error type.

use std::io;

/// Why a file could not be read as a trace.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("{path}: {source}")]
    Io {
        /// The name of the file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file was read, but it is not a profiler trace.
    #[error("{path} is not a profiler trace: {reason}")]
    NotATrace {
        /// The name of the file.
        path: String,
        /// What the file contains instead of a trace, and where.
        reason: String,
    },
    /// The file decompresses to more text than allowed.
    #[error("{path} decompresses to more than {most_bytes} bytes")]
    Expands {
        /// The name of the file.
        path: String,
        /// The maximum decompressed size of a file.
        most_bytes: u64,
    },
    /// The tables could not be written.
    #[error("could not write the tables: {0}")]
    Sink(#[from] arrow_schema::ArrowError),
    /// A thread of the reader panicked.
    #[error("{path}: a thread of the reader failed; please report this with the file")]
    Failed {
        /// The name of the file.
        path: String,
    },
    /// The caller asked to stop.
    #[error("reading was stopped")]
    Stopped,
}
