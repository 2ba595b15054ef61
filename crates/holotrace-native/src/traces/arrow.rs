//! Tables for Python, through the [Arrow PyCapsule interface](https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html).

use std::sync::{Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use trace_reader::{schema_of, Table};

/// A table that any library with Arrow support can import once.
#[pyclass(module = "holotrace._native", frozen)]
pub(crate) struct ArrowTable {
    table: Table,
    batches: Mutex<Option<Vec<RecordBatch>>>,
}

impl ArrowTable {
    pub(crate) fn new(table: Table, batches: Vec<RecordBatch>) -> Self {
        Self { table, batches: Mutex::new(Some(batches)) }
    }
}

#[pymethods]
impl ArrowTable {
    /// The table as an Arrow stream; a second call raises ValueError.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Arrow allows producers to ignore the requested schema.
        drop(requested_schema);
        let batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner).take();
        let batches = batches.ok_or_else(|| {
            PyValueError::new_err("this table was already imported; a table can be imported only once")
        })?;
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema_of(self.table));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
