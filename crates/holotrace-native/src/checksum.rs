//! Bindings of the crate `checksums`; they release the GIL, and `_native.pyi` documents them.

use std::path::PathBuf;

use pyo3::prelude::*;

#[pyfunction]
pub(crate) fn checksum(py: Python<'_>, data: &[u8]) -> String {
    hexadecimal(py.detach(|| checksums::of_bytes(data)))
}

#[pyfunction]
pub(crate) fn file_checksum(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    Ok(hexadecimal(py.detach(|| checksums::of_file(&path))?))
}

#[pyfunction]
#[pyo3(signature = (path, columns=None))]
pub(crate) fn arrow_checksums(
    py: Python<'_>,
    path: PathBuf,
    columns: Option<Vec<usize>>,
) -> PyResult<(String, Vec<String>)> {
    let is_wanted = |column| columns.as_ref().is_none_or(|wanted| wanted.contains(&column));
    let sums = py.detach(|| checksums::of_arrow_file(&path, is_wanted))?;
    Ok((hexadecimal(sums.structure), sums.columns.into_iter().map(hexadecimal).collect()))
}

fn hexadecimal(sum: u64) -> String {
    format!("{sum:016x}")
}
