//! The passes over a graph of events: arrays in and out, the GIL released in between.

use event_graph::{Edges, GraphError};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Nodes<'py> = PyReadonlyArray1<'py, u32>;
type Numbers<'py> = PyReadonlyArray1<'py, i64>;
type Answer<'py, T> = PyResult<Bound<'py, PyArray1<T>>>;

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn has_cycle(
    py: Python<'_>,
    node_count: usize,
    source: Nodes<'_>,
    target: Nodes<'_>,
) -> PyResult<bool> {
    let (source, target) = (source.as_slice()?, target.as_slice()?);
    py.detach(|| Edges::new(node_count, source, target).map(|edges| edges.has_cycle())).map_err(to_python)
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn binding_edges<'py>(
    py: Python<'py>,
    node_count: usize,
    source: Nodes<'py>,
    target: Nodes<'py>,
    arrival: Numbers<'py>,
) -> Answer<'py, i64> {
    over_edges(py, node_count, &source, &target, &arrival, |edges, values| edges.binding(values))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn earliest_times<'py>(
    py: Python<'py>,
    node_count: usize,
    source: Nodes<'py>,
    target: Nodes<'py>,
    weight: Numbers<'py>,
) -> Answer<'py, i64> {
    over_edges(py, node_count, &source, &target, &weight, |edges, values| edges.earliest(values))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn slacks<'py>(
    py: Python<'py>,
    node_count: usize,
    source: Nodes<'py>,
    target: Nodes<'py>,
    spare: Numbers<'py>,
) -> Answer<'py, i64> {
    over_edges(py, node_count, &source, &target, &spare, |edges, values| edges.slack(values))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn way_to<'py>(
    py: Python<'py>,
    last: u32,
    source: Nodes<'py>,
    target: Nodes<'py>,
    binding: Numbers<'py>,
) -> Answer<'py, u32> {
    let (source, target, binding) = (source.as_slice()?, target.as_slice()?, binding.as_slice()?);
    let way = py.detach(|| Edges::new(binding.len(), source, target)?.way_to(last, binding));
    Ok(way.map_err(to_python)?.into_pyarray(py))
}

fn over_edges<'py>(
    py: Python<'py>,
    node_count: usize,
    source: &Nodes<'py>,
    target: &Nodes<'py>,
    values: &Numbers<'py>,
    pass: impl FnOnce(Edges<'_>, &[i64]) -> Result<Vec<i64>, GraphError> + Send,
) -> Answer<'py, i64> {
    let (source, target, values) = (source.as_slice()?, target.as_slice()?, values.as_slice()?);
    let answer = py.detach(|| pass(Edges::new(node_count, source, target)?, values));
    Ok(answer.map_err(to_python)?.into_pyarray(py))
}

fn to_python(error: GraphError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
