//! Inspection of files without reading them into tables.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::source::Source;
use crate::arrays::Output;

#[pyfunction]
#[pyo3(signature = (source, limit=1 << 20))]
pub(crate) fn peek(py: Python<'_>, source: Source, limit: usize) -> PyResult<Bound<'_, PyDict>> {
    let peek = source.supervised(py, None, |input, _| trace_reader::peek(input, limit))?;
    let answer = PyDict::new(py);
    answer.set_item("format", peek.format)?;
    answer.set_item("keys", peek.keys)?;
    answer.set_item("kind", peek.kind.name())?;
    answer.set_item("rank", peek.rank)?;
    answer.set_item("what", peek.what)?;
    Ok(answer)
}

#[pyfunction]
pub(crate) fn content_hash(py: Python<'_>, source: Source) -> PyResult<String> {
    source.supervised(py, None, |input, watch| trace_reader::content_hash(input, &mut || watch.goes_on()))
}

/// Times, sizes and categories of memory events.
type MemoryEvents<'py> = (Output<'py, i64>, Output<'py, i64>, Output<'py, i64>);

#[pyfunction]
pub(crate) fn memory_events(py: Python<'_>, source: Source) -> PyResult<MemoryEvents<'_>> {
    let events = source.supervised(py, None, |input, _| trace_reader::memory_events(input))?;
    Ok((events.times.into_pyarray(py), events.sizes.into_pyarray(py), events.categories.into_pyarray(py)))
}
