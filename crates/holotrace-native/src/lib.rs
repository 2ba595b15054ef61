//! The Python module `holotrace._native`.

mod arrow;
mod checksum;
mod edit;
mod error;
mod graph;
mod intervals;
mod keys;
mod names;
mod read;
mod source;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::arrow::ArrowTable;
    #[pymodule_export]
    use crate::checksum::{arrow_checksums, checksum, file_checksum};
    #[pymodule_export]
    use crate::edit::EditedCopy;
    #[pymodule_export]
    use crate::error::{ExpansionError, NotATraceError, SinkError};
    #[pymodule_export]
    use crate::graph::{binding_edges, earliest_times, has_cycle, slacks, way_to};
    #[pymodule_export]
    use crate::intervals::{
        covered_by_group, depths, furthest_above, holding, nearest_above, nest, nesting_order,
    };
    #[pymodule_export]
    use crate::keys::{only_matches, rows_of, summaries, sums_by_name};
    #[pymodule_export]
    use crate::names::demangled;
    #[pymodule_export]
    use crate::read::{content_hash, memory_events, peek, read_trace, schema};
}
