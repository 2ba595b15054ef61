//! Errors of the reader as Python exceptions: one place maps them.

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::{create_exception, PyErr};
use trace_reader::ReadError;

create_exception!(holotrace._native, NotATraceError, PyValueError, "The file holds no profiler trace.");
create_exception!(holotrace._native, ExpansionError, PyOSError, "The file yields more text than it may.");
create_exception!(holotrace._native, SinkError, PyOSError, "The tables could not be written.");

/// The Python exception for an error of the reader.
pub(crate) fn to_python(error: ReadError) -> PyErr {
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
