//! Bindings of `algorithms::threads`; `_native.pyi` documents the functions.

use algorithms::threads::{self, HandOvers, Points, Ranges};
use numpy::IntoPyArray;
use pyo3::prelude::*;

use super::{run, Input, Output};

#[pyfunction]
#[allow(clippy::type_complexity)] // the fields of `SortedPoints`
pub(crate) fn sorted_points<'py>(
    py: Python<'py>,
    start: Input<'py, i64>,
    end: Input<'py, i64>,
    first: i64,
    last: i64,
) -> PyResult<(Output<'py, i64>, Output<'py, i64>, Output<'py, i64>, Output<'py, i64>, Output<'py, bool>)> {
    let (start, end) = (start.as_slice()?, end.as_slice()?);
    let points = run(py, || threads::sorted_points(start, end, (first, last)))?;
    Ok((
        points.start.into_pyarray(py),
        points.end.into_pyarray(py),
        points.time.into_pyarray(py),
        points.activity.into_pyarray(py),
        points.is_start.into_pyarray(py),
    ))
}

#[pyfunction]
#[allow(clippy::type_complexity, clippy::too_many_arguments)] // the columns of `Ranges`, `Points` and `ThreadEdges`
pub(crate) fn thread_edges<'py>(
    py: Python<'py>,
    ranges: (
        Input<'py, i64>,
        Input<'py, i64>,
        Input<'py, i64>,
        Input<'py, i64>,
        Input<'py, bool>,
        Input<'py, bool>,
        Input<'py, bool>,
    ),
    points: (Input<'py, i64>, Input<'py, bool>, Input<'py, i64>),
    main_lane: i64,
    works_inside: Vec<i64>,
    host_end: i64,
) -> PyResult<(Output<'py, u32>, Output<'py, u32>, Output<'py, i64>, Output<'py, i32>, Output<'py, i64>)> {
    let ranges = Ranges {
        lane: ranges.0.as_slice()?,
        thread: ranges.1.as_slice()?,
        parent: ranges.2.as_slice()?,
        start: ranges.3.as_slice()?,
        is_waiting: ranges.4.as_slice()?,
        is_call: ranges.5.as_slice()?,
        ends_on_thread: ranges.6.as_slice()?,
    };
    let points =
        Points { activity: points.0.as_slice()?, is_start: points.1.as_slice()?, time: points.2.as_slice()? };
    let edges = run(py, || {
        HandOvers::new(ranges, points, main_lane, &works_inside, host_end).map(|known| known.edges())
    })?;
    Ok((
        edges.source.into_pyarray(py),
        edges.target.into_pyarray(py),
        edges.weight.into_pyarray(py),
        edges.owner.into_pyarray(py),
        edges.counts.into_pyarray(py),
    ))
}
