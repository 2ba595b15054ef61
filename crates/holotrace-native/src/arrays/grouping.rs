//! Bindings of `algorithms::summaries` and `algorithms::name_sums`; `_native.pyi` documents the functions.

use numpy::IntoPyArray;
use pyo3::prelude::*;

use super::{run, Input, Output};

/// Number, count, sum, minimum, maximum and standard deviation of each group.
type Summaries<'py> = (
    Output<'py, u32>,
    Output<'py, i64>,
    Output<'py, i64>,
    Output<'py, i64>,
    Output<'py, i64>,
    Output<'py, f64>,
);

/// Kind, name, count and sum of each group, then the count and sum of the group's marked rows.
type NameSums<'py> = (
    Output<'py, u8>,
    Output<'py, u32>,
    Output<'py, i64>,
    Output<'py, i64>,
    Output<'py, i64>,
    Output<'py, i64>,
);

#[pyfunction]
pub(crate) fn summaries<'py>(
    py: Python<'py>,
    number: Input<'py, u32>,
    value: Input<'py, i64>,
) -> PyResult<Summaries<'py>> {
    let (number, value) = (number.as_slice()?, value.as_slice()?);
    let summaries = run(py, || algorithms::summaries::summaries(number, value))?;
    Ok((
        summaries.number.into_pyarray(py),
        summaries.count.into_pyarray(py),
        summaries.sum.into_pyarray(py),
        summaries.min.into_pyarray(py),
        summaries.max.into_pyarray(py),
        summaries.std.into_pyarray(py),
    ))
}

#[pyfunction]
pub(crate) fn sums_by_name<'py>(
    py: Python<'py>,
    kind: Input<'py, u8>,
    name: Input<'py, u32>,
    value: Input<'py, i64>,
    mark: Input<'py, i64>,
    is_marked: Input<'py, bool>,
) -> PyResult<NameSums<'py>> {
    let (kind, name, value) = (kind.as_slice()?, name.as_slice()?, value.as_slice()?);
    let (mark, is_marked) = (mark.as_slice()?, is_marked.as_slice()?);
    let sums = run(py, || algorithms::name_sums::sums_by_name(kind, name, value, mark, is_marked))?;
    Ok((
        sums.kind.into_pyarray(py),
        sums.name.into_pyarray(py),
        sums.count.into_pyarray(py),
        sums.sum.into_pyarray(py),
        sums.marked_count.into_pyarray(py),
        sums.marked_sum.into_pyarray(py),
    ))
}
