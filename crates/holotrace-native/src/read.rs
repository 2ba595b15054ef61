//! The functions of the module: arguments in, the reader's answer out, the GIL released in between.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use trace_reader::{columns_of, FolderSink, MemorySink, Options, Sink, Table, Trace};

use crate::arrow::ArrowTable;
use crate::error::to_python;
use crate::source::Source;

/// Read a trace; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (source, folder=None, threads=None, progress=None, most_bytes=None))]
pub(crate) fn read_trace<'py>(
    py: Python<'py>,
    source: Source,
    folder: Option<PathBuf>,
    threads: Option<NonZeroUsize>,
    progress: Option<Py<PyAny>>,
    most_bytes: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = Options { threads, most_bytes, ..Options::default() };
    let answer = PyDict::new(py);
    let tables = PyDict::new(py);
    let trace = match folder {
        Some(folder) => {
            let mut sink = FolderSink::new(folder).map_err(|error| to_python(error.into()))?;
            read_into(py, &source, &mut sink, options, progress.as_ref())?
        }
        None => {
            let mut sink = MemorySink::default();
            let trace = read_into(py, &source, &mut sink, options, progress.as_ref())?;
            for &table in Table::ALL {
                tables.set_item(table.name(), ArrowTable::new(table, sink.take(table)))?;
            }
            trace
        }
    };
    answer.set_item("header", trace.header)?;
    answer.set_item("health", trace.health)?;
    answer.set_item("tables", tables)?;
    Ok(answer)
}

fn read_into<S: Sink + Send>(
    py: Python<'_>,
    source: &Source,
    sink: &mut S,
    options: Options,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Trace> {
    source.read_while_python_looks(py, progress, |input, watch| {
        trace_reader::read(input, sink, options, &mut |done, total| watch.reached(done, total))
    })
}

/// The columns of every table: name and type.
#[pyfunction]
pub(crate) fn schema() -> BTreeMap<&'static str, Vec<(&'static str, &'static str)>> {
    Table::ALL
        .iter()
        .map(|&table| {
            (table.name(), columns_of(table).iter().map(|&(name, kind)| (name, kind.name())).collect())
        })
        .collect()
}

/// A cheap look at the beginning of a file; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (source, limit=1 << 20))]
pub(crate) fn peek(py: Python<'_>, source: Source, limit: usize) -> PyResult<Bound<'_, PyDict>> {
    let peek = source.read_while_python_looks(py, None, |input, _| trace_reader::peek(input, limit))?;
    let answer = PyDict::new(py);
    answer.set_item("format", peek.format)?;
    answer.set_item("keys", peek.keys)?;
    answer.set_item("is_trace", peek.is_trace)?;
    answer.set_item("rank", peek.rank)?;
    answer.set_item("what", peek.what)?;
    Ok(answer)
}

/// Hash of a file's bytes, as the health of a trace read from it holds.
#[pyfunction]
pub(crate) fn content_hash(py: Python<'_>, source: Source) -> PyResult<String> {
    source.read_while_python_looks(py, None, |input, watch| {
        trace_reader::content_hash(input, &mut || watch.goes_on())
    })
}

type Numbers<'py> = Bound<'py, PyArray1<i64>>;

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn memory_events(
    py: Python<'_>,
    source: Source,
) -> PyResult<(Numbers<'_>, Numbers<'_>, Numbers<'_>)> {
    let events = source.read_while_python_looks(py, None, |input, _| trace_reader::memory_events(input))?;
    Ok((events.times.into_pyarray(py), events.sizes.into_pyarray(py), events.categories.into_pyarray(py)))
}
