//! Bindings of `algorithms::intervals`; `_native.pyi` documents the functions.

use algorithms::intervals::{self, Intervals, TimeSet};
use algorithms::AlgorithmError;
use numpy::IntoPyArray;
use pyo3::prelude::*;

use super::{run, run_to_array, Input, Output};

/// The parent and depth of each interval, and whether the interval overlaps a sibling.
type Nesting<'py> = (Output<'py, i64>, Output<'py, i32>, Output<'py, bool>);

/// The starts and ends of disjoint intervals.
type Times<'py> = (Output<'py, i64>, Output<'py, i64>);

#[pyfunction]
pub(crate) fn union<'py>(
    py: Python<'py>,
    start: Input<'py, i64>,
    end: Input<'py, i64>,
) -> PyResult<Times<'py>> {
    let (start, end) = (start.as_slice()?, end.as_slice()?);
    as_arrays(py, || TimeSet::union(start, end))
}

#[pyfunction]
pub(crate) fn intersection<'py>(
    py: Python<'py>,
    first: (Input<'py, i64>, Input<'py, i64>),
    second: (Input<'py, i64>, Input<'py, i64>),
) -> PyResult<Times<'py>> {
    let (first, second) =
        ((first.0.as_slice()?, first.1.as_slice()?), (second.0.as_slice()?, second.1.as_slice()?));
    as_arrays(py, || Ok(TimeSet::union(first.0, first.1)?.intersection(&TimeSet::union(second.0, second.1)?)))
}

#[pyfunction]
pub(crate) fn difference<'py>(
    py: Python<'py>,
    first: (Input<'py, i64>, Input<'py, i64>),
    second: (Input<'py, i64>, Input<'py, i64>),
) -> PyResult<Times<'py>> {
    let (first, second) =
        ((first.0.as_slice()?, first.1.as_slice()?), (second.0.as_slice()?, second.1.as_slice()?));
    as_arrays(py, || Ok(TimeSet::union(first.0, first.1)?.difference(&TimeSet::union(second.0, second.1)?)))
}

fn as_arrays<'py>(
    py: Python<'py>,
    times: impl FnOnce() -> Result<TimeSet, AlgorithmError> + Send,
) -> PyResult<Times<'py>> {
    let times = run(py, times)?;
    Ok((times.start.into_pyarray(py), times.end.into_pyarray(py)))
}

#[pyfunction]
pub(crate) fn nesting_order<'py>(
    py: Python<'py>,
    group: Input<'py, u32>,
    start: Input<'py, i64>,
    end: Input<'py, i64>,
) -> PyResult<Output<'py, u32>> {
    let (group, start, end) = (group.as_slice()?, start.as_slice()?, end.as_slice()?);
    run_to_array(py, || Intervals::new(group, start, end).map(|intervals| intervals.order()))
}

#[pyfunction]
pub(crate) fn nest<'py>(
    py: Python<'py>,
    group: Input<'py, u32>,
    start: Input<'py, i64>,
    end: Input<'py, i64>,
) -> PyResult<Nesting<'py>> {
    let (group, start, end) = (group.as_slice()?, start.as_slice()?, end.as_slice()?);
    let nesting = run(py, || Intervals::new(group, start, end).map(|intervals| intervals.nest()))?;
    Ok((
        nesting.parent.into_pyarray(py),
        nesting.depth.into_pyarray(py),
        nesting.is_overlapping.into_pyarray(py),
    ))
}

#[pyfunction]
pub(crate) fn covered_by_group<'py>(
    py: Python<'py>,
    group: Input<'py, u32>,
    start: Input<'py, i64>,
    end: Input<'py, i64>,
    group_count: usize,
) -> PyResult<Output<'py, i64>> {
    let (group, start, end) = (group.as_slice()?, start.as_slice()?, end.as_slice()?);
    run_to_array(py, || Intervals::new(group, start, end)?.covered(group_count))
}

#[pyfunction]
pub(crate) fn holding<'py>(
    py: Python<'py>,
    start: Input<'py, i64>,
    end: Input<'py, i64>,
    times: Input<'py, i64>,
) -> PyResult<Output<'py, i64>> {
    let (start, end, times) = (start.as_slice()?, end.as_slice()?, times.as_slice()?);
    run_to_array(py, || intervals::holding(start, end, times))
}
