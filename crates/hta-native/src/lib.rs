//! The Python module `hta._native`.

mod arrow;
mod error;
mod graph;
mod read;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::arrow::ArrowTable;
    #[pymodule_export]
    use crate::error::{ExpansionError, NotATraceError, SinkError};
    #[pymodule_export]
    use crate::graph::{binding_edges, earliest_times, has_cycle, slacks, way_to};
    #[pymodule_export]
    use crate::read::{content_hash, peek, read_trace, schema};
}
