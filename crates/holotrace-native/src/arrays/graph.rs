//! Bindings of `algorithms::graph`; `_native.pyi` documents the functions.

use algorithms::graph::Edges;
use algorithms::propagation::Shares;
use algorithms::AlgorithmError;
use numpy::IntoPyArray;
use pyo3::prelude::*;

use super::{run, run_to_array, Input, Output};

type ContractedEdges<'py> = (Output<'py, u32>, Output<'py, u32>, Output<'py, i64>);

#[pyfunction]
pub(crate) fn has_cycle(
    py: Python<'_>,
    node_count: usize,
    source: Input<'_, u32>,
    target: Input<'_, u32>,
) -> PyResult<bool> {
    let (source, target) = (source.as_slice()?, target.as_slice()?);
    run(py, || Edges::new(node_count, source, target).map(|edges| edges.has_cycle()))
}

#[pyfunction]
pub(crate) fn binding_edges<'py>(
    py: Python<'py>,
    node_count: usize,
    source: Input<'py, u32>,
    target: Input<'py, u32>,
    arrival: Input<'py, i64>,
) -> PyResult<Output<'py, i64>> {
    run_on_edges(py, node_count, &source, &target, &arrival, |edges, values| edges.binding(values))
}

#[pyfunction]
pub(crate) fn measured_binding<'py>(
    py: Python<'py>,
    source: Input<'py, u32>,
    target: Input<'py, u32>,
    time: Input<'py, i64>,
    weight: Input<'py, i64>,
) -> PyResult<(Output<'py, i64>, Output<'py, i64>, usize)> {
    let (source, target) = (source.as_slice()?, target.as_slice()?);
    let (time, weight) = (time.as_slice()?, weight.as_slice()?);
    let found = run(py, || Edges::new(time.len(), source, target)?.measured_binding(time, weight))?;
    Ok((found.binding.into_pyarray(py), found.delay.into_pyarray(py), found.contradicted_count))
}

#[pyfunction]
pub(crate) fn earliest_times<'py>(
    py: Python<'py>,
    node_count: usize,
    source: Input<'py, u32>,
    target: Input<'py, u32>,
    weight: Input<'py, i64>,
) -> PyResult<Output<'py, i64>> {
    run_on_edges(py, node_count, &source, &target, &weight, |edges, values| edges.earliest(values))
}

#[pyfunction]
pub(crate) fn slacks<'py>(
    py: Python<'py>,
    node_count: usize,
    source: Input<'py, u32>,
    target: Input<'py, u32>,
    spare: Input<'py, i64>,
) -> PyResult<Output<'py, i64>> {
    run_on_edges(py, node_count, &source, &target, &spare, |edges, values| edges.slack(values))
}

#[pyfunction]
pub(crate) fn path_to<'py>(
    py: Python<'py>,
    last: u32,
    source: Input<'py, u32>,
    target: Input<'py, u32>,
    binding: Input<'py, i64>,
) -> PyResult<Output<'py, u32>> {
    let (source, target, binding) = (source.as_slice()?, target.as_slice()?, binding.as_slice()?);
    run_to_array(py, || Edges::new(binding.len(), source, target)?.path_to(last, binding))
}

#[pyfunction]
pub(crate) fn contract<'py>(
    py: Python<'py>,
    node_count: usize,
    source: Input<'py, u32>,
    target: Input<'py, u32>,
    weight: Input<'py, i64>,
    is_kept: Input<'py, bool>,
) -> PyResult<ContractedEdges<'py>> {
    let (source, target) = (source.as_slice()?, target.as_slice()?);
    let (weight, is_kept) = (weight.as_slice()?, is_kept.as_slice()?);
    let edges = run(py, || Edges::new(node_count, source, target)?.contract(weight, is_kept))?;
    Ok((edges.source.into_pyarray(py), edges.target.into_pyarray(py), edges.weight.into_pyarray(py)))
}

#[pyfunction]
#[allow(clippy::type_complexity)] // the fields of `Chains`
pub(crate) fn chains<'py>(
    py: Python<'py>,
    source: Input<'py, u32>,
    target: Input<'py, u32>,
    binding: Input<'py, i64>,
    ends: Input<'py, u32>,
) -> PyResult<(Output<'py, u32>, Output<'py, i64>, Output<'py, i64>, Output<'py, u32>, Output<'py, i64>)> {
    let (source, target, binding) = (source.as_slice()?, target.as_slice()?, binding.as_slice()?);
    let ends = ends.as_slice()?;
    let chains = run(py, || Edges::new(binding.len(), source, target)?.chains(binding, ends))?;
    Ok((
        chains.edges.into_pyarray(py),
        chains.first.into_pyarray(py),
        chains.parent.into_pyarray(py),
        chains.origin.into_pyarray(py),
        chains.chain_of_end.into_pyarray(py),
    ))
}

#[pyfunction]
#[allow(clippy::type_complexity)] // the fields of `Arrived`
pub(crate) fn pass_on<'py>(
    py: Python<'py>,
    first: Input<'py, i64>,
    target: Input<'py, i64>,
    weight: Input<'py, i64>,
    node: Input<'py, i64>,
    label: Input<'py, i64>,
    amount: Input<'py, i64>,
) -> PyResult<(Output<'py, i64>, Output<'py, i64>, Output<'py, i64>, Output<'py, i64>)> {
    let (first, target, weight) = (first.as_slice()?, target.as_slice()?, weight.as_slice()?);
    let (node, label, amount) = (node.as_slice()?, label.as_slice()?, amount.as_slice()?);
    let arrived = run(py, || Shares::new(first, target, weight)?.pass_on(node, label, amount))?;
    Ok((
        arrived.label.into_pyarray(py),
        arrived.target.into_pyarray(py),
        arrived.amount.into_pyarray(py),
        arrived.received.into_pyarray(py),
    ))
}

fn run_on_edges<'py>(
    py: Python<'py>,
    node_count: usize,
    source: &Input<'py, u32>,
    target: &Input<'py, u32>,
    values: &Input<'py, i64>,
    algorithm: impl FnOnce(Edges<'_>, &[i64]) -> Result<Vec<i64>, AlgorithmError> + Send,
) -> PyResult<Output<'py, i64>> {
    let (source, target, values) = (source.as_slice()?, target.as_slice()?, values.as_slice()?);
    run_to_array(py, || algorithm(Edges::new(node_count, source, target)?, values))
}
