//! Bindings of `algorithms::ancestors`; `_native.pyi` documents the functions.

use algorithms::ancestors;
use pyo3::prelude::*;

use super::{run_to_array, Input, Output};

#[pyfunction]
pub(crate) fn depths<'py>(py: Python<'py>, parent: Input<'py, i64>) -> PyResult<Output<'py, i32>> {
    let parent = parent.as_slice()?;
    run_to_array(py, || ancestors::depths(parent))
}

#[pyfunction]
pub(crate) fn nearest_above<'py>(
    py: Python<'py>,
    parent: Input<'py, i64>,
    wanted: Input<'py, bool>,
    rows: Input<'py, i64>,
) -> PyResult<Output<'py, i64>> {
    let (parent, wanted, rows) = (parent.as_slice()?, wanted.as_slice()?, rows.as_slice()?);
    run_to_array(py, || ancestors::nearest_above(parent, wanted, rows))
}

#[pyfunction]
pub(crate) fn furthest_above<'py>(
    py: Python<'py>,
    parent: Input<'py, i64>,
    wanted: Input<'py, bool>,
    rows: Input<'py, i64>,
) -> PyResult<Output<'py, i64>> {
    let (parent, wanted, rows) = (parent.as_slice()?, wanted.as_slice()?, rows.as_slice()?);
    run_to_array(py, || ancestors::furthest_above(parent, wanted, rows))
}
