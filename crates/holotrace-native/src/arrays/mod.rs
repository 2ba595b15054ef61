//! Bindings of the algorithms for Python, on NumPy arrays.

pub(crate) mod ancestors;
pub(crate) mod graph;
pub(crate) mod grouping;
pub(crate) mod intervals;
pub(crate) mod matching;
pub(crate) mod threads;

use algorithms::AlgorithmError;
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::error::algorithm_error;

pub(crate) type Input<'py, T> = PyReadonlyArray1<'py, T>;
pub(crate) type Output<'py, T> = Bound<'py, PyArray1<T>>;

/// Run an algorithm with the GIL released.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    algorithm: impl FnOnce() -> Result<T, AlgorithmError> + Send,
) -> PyResult<T> {
    py.detach(algorithm).map_err(algorithm_error)
}

/// Run an algorithm with the GIL released; Python takes over the returned column without a copy.
pub(crate) fn run_to_array<'py, T: Element>(
    py: Python<'py>,
    algorithm: impl FnOnce() -> Result<Vec<T>, AlgorithmError> + Send,
) -> PyResult<Output<'py, T>> {
    Ok(run(py, algorithm)?.into_pyarray(py))
}
