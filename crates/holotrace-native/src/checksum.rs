//! Checksums of what is kept, the GIL released while they are computed.

use std::path::PathBuf;

use pyo3::prelude::*;

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn checksum(py: Python<'_>, data: &[u8]) -> String {
    text(py.detach(|| checksums::of_bytes(data)))
}

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn file_checksum(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    Ok(text(py.detach(|| checksums::of_file(&path))?))
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (path, columns=None))]
pub(crate) fn arrow_checksums(
    py: Python<'_>,
    path: PathBuf,
    columns: Option<Vec<usize>>,
) -> PyResult<(String, Vec<String>)> {
    let is_wanted = |column| columns.as_ref().is_none_or(|wanted| wanted.contains(&column));
    let found = py.detach(|| checksums::of_arrow_file(&path, is_wanted))?;
    Ok((text(found.structure), found.columns.into_iter().map(text).collect()))
}

fn text(sum: u64) -> String {
    format!("{sum:016x}")
}
