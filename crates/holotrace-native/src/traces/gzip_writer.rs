//! Compression of copied traces, with the GIL released.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

#[pyclass(module = "holotrace._native", frozen)]
pub(crate) struct GzipWriter(Mutex<trace_reader::GzipWriter>);

#[pymethods]
impl GzipWriter {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    fn compressed<'py>(&self, py: Python<'py>, piece: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).compressed(piece))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn end<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.lock().unwrap_or_else(PoisonError::into_inner).end()?))
    }
}
