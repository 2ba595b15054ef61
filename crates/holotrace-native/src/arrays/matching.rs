//! Bindings of `algorithms::matching` and `algorithms::distinct`; `_native.pyi` documents the functions.

use algorithms::{distinct as numbering, matching};
use numpy::IntoPyArray;
use pyo3::prelude::*;

use super::{run, run_to_array, Input, Output};

#[pyfunction]
pub(crate) fn only_matches<'py>(
    py: Python<'py>,
    offered: Input<'py, i64>,
    wanted: Input<'py, i64>,
) -> PyResult<Output<'py, i64>> {
    let (offered, wanted) = (offered.as_slice()?, wanted.as_slice()?);
    run_to_array(py, || matching::only_matches(offered, wanted))
}

#[pyfunction]
pub(crate) fn rows_of<'py>(
    py: Python<'py>,
    numbers: Input<'py, u32>,
    wanted: Input<'py, u32>,
) -> PyResult<Output<'py, i64>> {
    let (numbers, wanted) = (numbers.as_slice()?, wanted.as_slice()?);
    run_to_array(py, || matching::only_matches(numbers, wanted))
}

#[pyfunction]
pub(crate) fn distinct<'py>(
    py: Python<'py>,
    values: Input<'py, i64>,
) -> PyResult<(Output<'py, i64>, Output<'py, i64>)> {
    let values = values.as_slice()?;
    let found = run(py, || Ok(numbering::distinct(values)))?;
    Ok((found.first.into_pyarray(py), found.number.into_pyarray(py)))
}
