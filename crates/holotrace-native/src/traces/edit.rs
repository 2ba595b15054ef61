//! Copies of traces with some events changed, produced piece by piece with the GIL released.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use trace_reader::{Fate, ReadError};

use super::source::Source;
use super::supervised::Raised;

#[pyclass(module = "holotrace._native", frozen)]
pub(crate) struct EditedCopy {
    copy: Mutex<trace_reader::EditedCopy>,
    raised: Raised,
    edits: Edits,
}

/// What to do with each event; `_native.pyi` documents the numbers.
struct Edits {
    fates: Vec<u8>,
    values: Vec<u32>,
    texts: Vec<Vec<u8>>,
}

impl Edits {
    fn of(&self, event: usize) -> Fate<'_> {
        let value = self.values.get(event).copied().unwrap_or(0);
        match self.fates.get(event) {
            Some(1) => Fate::LeftOut,
            Some(2) => self.texts.get(value as usize).map_or(Fate::Kept, |text| Fate::Marked(text)),
            Some(3) => Fate::Numbered(value),
            _ => Fate::Kept,
        }
    }
}

#[pymethods]
impl EditedCopy {
    #[new]
    fn new(
        py: Python<'_>,
        source: Source,
        fates: PyReadonlyArray1<'_, u8>,
        values: PyReadonlyArray1<'_, u32>,
        texts: Vec<String>,
    ) -> PyResult<Self> {
        let raised = Raised::default();
        let input = source.input(py, &raised)?;
        let copy = py.detach(|| trace_reader::EditedCopy::new(input)).map_err(|error| raised.or(error))?;
        let texts = texts.into_iter().map(String::into_bytes).collect();
        let edits = Edits { fates: fates.as_slice()?.to_vec(), values: values.as_slice()?.to_vec(), texts };
        Ok(Self { copy: Mutex::new(copy), raised, edits })
    }

    fn events<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.to_bytes(py, py.detach(|| self.locked().events(&|event| self.edits.of(event))))
    }

    fn rest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.to_bytes(py, py.detach(|| self.locked().rest()))
    }

    #[getter]
    fn event_count(&self) -> usize {
        self.locked().event_count()
    }

    #[getter]
    fn events_end(&self) -> Option<u64> {
        self.locked().events_end()
    }

    #[getter]
    fn holds_event(&self) -> bool {
        self.locked().holds_event()
    }
}

impl EditedCopy {
    fn locked(&self) -> MutexGuard<'_, trace_reader::EditedCopy> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        piece: Result<Option<Vec<u8>>, ReadError>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let piece = piece.map_err(|error| self.raised.or(error))?;
        Ok(piece.map(|bytes| PyBytes::new(py, &bytes)))
    }
}
