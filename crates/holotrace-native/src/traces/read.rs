//! Reading a trace into tables.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use trace_reader::{columns_of, FolderSink, MemorySink, Options, Sink, Table, Trace};

use super::arrow::ArrowTable;
use super::source::Source;
use crate::error::read_error;

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
            let mut sink = FolderSink::new(folder).map_err(|error| read_error(error.into()))?;
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
    source.supervised(py, progress, |input, watch| {
        trace_reader::read(input, sink, options, &mut |done, total| watch.reached(done, total))
    })
}

#[pyfunction]
pub(crate) fn schema() -> BTreeMap<&'static str, Vec<(&'static str, &'static str)>> {
    Table::ALL
        .iter()
        .map(|&table| {
            (table.name(), columns_of(table).iter().map(|&(name, kind)| (name, kind.name())).collect())
        })
        .collect()
}
