//! Places the events of a rank in a timeline of several ranks, with the GIL released.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use trace_reader::{ClockLine, EditedCopy, Fate, Pid};

use super::source::Source;
use super::supervised::Raised;
use crate::error::read_error;

#[derive(FromPyObject)]
enum RecordedPid {
    #[pyo3(transparent)]
    Number(i64),
    #[pyo3(transparent)]
    Text(String),
}

#[pyclass(module = "holotrace._native", frozen)]
pub(crate) struct Placing(trace_reader::Placing);

#[pymethods]
impl Placing {
    #[new]
    fn new(
        rank: u32,
        base_ns: i64,
        new_base_ns: i64,
        clock: Vec<(i64, i64, f64, i64)>,
        pids: Vec<(RecordedPid, i64)>,
    ) -> Self {
        let lines = clock.into_iter().map(|(at_ns, offset_ns, drift_ppb, last_ns)| ClockLine {
            at_ns,
            offset_ns,
            drift_ppb,
            last_ns,
        });
        let pids: HashMap<_, _> = pids
            .into_iter()
            .map(|(recorded, new)| match recorded {
                RecordedPid::Number(number) => (Pid::Number(number), new),
                RecordedPid::Text(text) => (Pid::Text(text), new),
            })
            .collect();
        Self(trace_reader::Placing::new(rank, base_ns, new_base_ns, lines.collect(), pids))
    }

    fn placed<'py>(&self, py: Python<'py>, events: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let placed = py.detach(|| self.0.placed(events)).map_err(read_error)?;
        Ok(PyBytes::new(py, &placed))
    }
}

#[pyclass(module = "holotrace._native", frozen)]
pub(crate) struct PlacedEvents {
    copy: Mutex<EditedCopy>,
    raised: Raised,
    placing: Py<Placing>,
}

#[pymethods]
impl PlacedEvents {
    #[new]
    fn new(py: Python<'_>, source: Source, placing: Py<Placing>) -> PyResult<Self> {
        let raised = Raised::default();
        let input = source.input(py, &raised)?;
        let copy = py.detach(|| EditedCopy::new(input)).map_err(|error| raised.or(error))?;
        Ok(Self { copy: Mutex::new(copy.of_events()), raised, placing })
    }

    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let placing = &self.placing.get().0;
        let piece = py.detach(|| self.locked().events(&|_| Fate::Placed(placing)));
        let piece = piece.map_err(|error| self.raised.or(error))?;
        Ok(piece.map(|bytes| PyBytes::new(py, &bytes)))
    }

    #[getter]
    fn event_count(&self) -> usize {
        self.locked().event_count()
    }

    #[getter]
    fn events_end(&self) -> Option<u64> {
        self.locked().events_end()
    }
}

impl PlacedEvents {
    fn locked(&self) -> MutexGuard<'_, EditedCopy> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
