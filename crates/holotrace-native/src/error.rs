//! Rust errors as Python exceptions.

use algorithms::AlgorithmError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::{create_exception, PyErr};
use trace_reader::ReadError;

create_exception!(holotrace._native, NotATraceError, PyValueError, "The file is not a profiler trace.");
create_exception!(
    holotrace._native,
    ExpansionError,
    PyOSError,
    "The file decompresses to more text than allowed."
);
create_exception!(holotrace._native, SinkError, PyOSError, "Writing the tables failed.");

/// The Python exception for an error of the trace reader.
pub(crate) fn read_error(error: ReadError) -> PyErr {
    let message = error.to_string();
    match error {
        ReadError::Io { path, source } => match source.raw_os_error() {
            Some(code) => PyOSError::new_err((code, source.to_string(), path)),
            None => PyOSError::new_err(message),
        },
        ReadError::Failed { .. } => PyOSError::new_err(message),
        ReadError::NotATrace { .. } => NotATraceError::new_err(message),
        ReadError::Expands { .. } => ExpansionError::new_err(message),
        ReadError::Sink(_) => SinkError::new_err(message),
        ReadError::Stopped => PyKeyboardInterrupt::new_err(message),
    }
}

/// The Python exception for an error of an algorithm.
pub(crate) fn algorithm_error(error: AlgorithmError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
