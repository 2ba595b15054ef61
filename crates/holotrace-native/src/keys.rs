//! Matching and summing by keys: arrays in and out, the GIL released in between.

use keys::KeysError;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Numbers<'py> = Bound<'py, PyArray1<i64>>;
type Sums<'py> = (
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray1<u32>>,
    Numbers<'py>,
    Numbers<'py>,
    Numbers<'py>,
    Numbers<'py>,
);
type Summaries<'py> = (
    Bound<'py, PyArray1<u32>>,
    Numbers<'py>,
    Numbers<'py>,
    Numbers<'py>,
    Numbers<'py>,
    Bound<'py, PyArray1<f64>>,
);

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn only_matches<'py>(
    py: Python<'py>,
    offered: PyReadonlyArray1<'py, i64>,
    wanted: PyReadonlyArray1<'py, i64>,
) -> PyResult<Numbers<'py>> {
    let (offered, wanted) = (offered.as_slice()?, wanted.as_slice()?);
    Ok(py.detach(|| keys::only_matches(offered, wanted)).map_err(to_python)?.into_pyarray(py))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn rows_of<'py>(
    py: Python<'py>,
    numbers: PyReadonlyArray1<'py, u32>,
    wanted: PyReadonlyArray1<'py, u32>,
) -> PyResult<Numbers<'py>> {
    let (numbers, wanted) = (numbers.as_slice()?, wanted.as_slice()?);
    Ok(py.detach(|| keys::only_matches(numbers, wanted)).map_err(to_python)?.into_pyarray(py))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn summaries<'py>(
    py: Python<'py>,
    number: PyReadonlyArray1<'py, u32>,
    value: PyReadonlyArray1<'py, i64>,
) -> PyResult<Summaries<'py>> {
    let (number, value) = (number.as_slice()?, value.as_slice()?);
    let found = py.detach(|| keys::summaries(number, value)).map_err(to_python)?;
    Ok((
        found.number.into_pyarray(py),
        found.count.into_pyarray(py),
        found.sum.into_pyarray(py),
        found.min.into_pyarray(py),
        found.max.into_pyarray(py),
        found.std.into_pyarray(py),
    ))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn sums_by_name<'py>(
    py: Python<'py>,
    kind: PyReadonlyArray1<'py, u8>,
    name: PyReadonlyArray1<'py, u32>,
    value: PyReadonlyArray1<'py, i64>,
    place: PyReadonlyArray1<'py, i64>,
    is_marked: PyReadonlyArray1<'py, bool>,
) -> PyResult<Sums<'py>> {
    let (kind, name, value) = (kind.as_slice()?, name.as_slice()?, value.as_slice()?);
    let (place, is_marked) = (place.as_slice()?, is_marked.as_slice()?);
    let sums = py.detach(|| keys::sums_by_name(kind, name, value, place, is_marked)).map_err(to_python)?;
    Ok((
        sums.kind.into_pyarray(py),
        sums.name.into_pyarray(py),
        sums.count.into_pyarray(py),
        sums.sum.into_pyarray(py),
        sums.marked_count.into_pyarray(py),
        sums.marked_sum.into_pyarray(py),
    ))
}

fn to_python(error: KeysError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
