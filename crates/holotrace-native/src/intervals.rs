//! Which interval lies inside which, and what they cover: arrays in and out, the GIL released in between.

use intervals::{Intervals, IntervalsError};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Groups<'py> = PyReadonlyArray1<'py, u32>;
type Rows<'py> = PyReadonlyArray1<'py, i64>;
type Answer<'py, T> = PyResult<Bound<'py, PyArray1<T>>>;
type Nested<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<bool>>);

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn nesting_order<'py>(
    py: Python<'py>,
    group: Groups<'py>,
    start: Rows<'py>,
    end: Rows<'py>,
) -> Answer<'py, u32> {
    let (group, start, end) = (group.as_slice()?, start.as_slice()?, end.as_slice()?);
    let order = py.detach(|| Intervals::new(group, start, end).map(|intervals| intervals.order()));
    Ok(order.map_err(to_python)?.into_pyarray(py))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn nest<'py>(
    py: Python<'py>,
    group: Groups<'py>,
    start: Rows<'py>,
    end: Rows<'py>,
) -> PyResult<Nested<'py>> {
    let (group, start, end) = (group.as_slice()?, start.as_slice()?, end.as_slice()?);
    let nesting = py.detach(|| Intervals::new(group, start, end).map(|intervals| intervals.nest()));
    let nesting = nesting.map_err(to_python)?;
    let parent = nesting.parent.into_pyarray(py);
    Ok((parent, nesting.depth.into_pyarray(py), nesting.is_overlapping.into_pyarray(py)))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn covered_by_group<'py>(
    py: Python<'py>,
    group: Groups<'py>,
    start: Rows<'py>,
    end: Rows<'py>,
    group_count: usize,
) -> Answer<'py, i64> {
    let (group, start, end) = (group.as_slice()?, start.as_slice()?, end.as_slice()?);
    let covered = py.detach(|| Intervals::new(group, start, end)?.covered(group_count));
    Ok(covered.map_err(to_python)?.into_pyarray(py))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn holding<'py>(
    py: Python<'py>,
    start: Rows<'py>,
    end: Rows<'py>,
    moments: Rows<'py>,
) -> Answer<'py, i64> {
    let (start, end, moments) = (start.as_slice()?, end.as_slice()?, moments.as_slice()?);
    let rows = py.detach(|| intervals::holding(start, end, moments));
    Ok(rows.map_err(to_python)?.into_pyarray(py))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn depths<'py>(py: Python<'py>, parent: Rows<'py>) -> Answer<'py, i32> {
    let parent = parent.as_slice()?;
    Ok(py.detach(|| intervals::depths(parent)).map_err(to_python)?.into_pyarray(py))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn nearest_above<'py>(
    py: Python<'py>,
    parent: Rows<'py>,
    wanted: PyReadonlyArray1<'py, bool>,
    rows: Rows<'py>,
) -> Answer<'py, i64> {
    let (parent, wanted, rows) = (parent.as_slice()?, wanted.as_slice()?, rows.as_slice()?);
    let above = py.detach(|| intervals::nearest_above(parent, wanted, rows));
    Ok(above.map_err(to_python)?.into_pyarray(py))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn furthest_above<'py>(
    py: Python<'py>,
    parent: Rows<'py>,
    wanted: PyReadonlyArray1<'py, bool>,
    rows: Rows<'py>,
) -> Answer<'py, i64> {
    let (parent, wanted, rows) = (parent.as_slice()?, wanted.as_slice()?, rows.as_slice()?);
    let above = py.detach(|| intervals::furthest_above(parent, wanted, rows));
    Ok(above.map_err(to_python)?.into_pyarray(py))
}

fn to_python(error: IntervalsError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
