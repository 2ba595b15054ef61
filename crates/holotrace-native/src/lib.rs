//! The Python module `holotrace._native`.

mod ancestors;
mod arrays;
mod arrow;
mod checksum;
mod edit;
mod error;
mod graph;
mod grouping;
mod inspect;
mod intervals;
mod matching;
mod names;
mod read;
mod source;
mod supervised;

use pyo3::prelude::*;

/// The native part of holotrace; `_native.pyi` documents its functions.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::ancestors::{depths, furthest_above, nearest_above};
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
    use crate::grouping::{summaries, sums_by_name};
    #[pymodule_export]
    use crate::inspect::{content_hash, memory_events, peek};
    #[pymodule_export]
    use crate::intervals::{covered_by_group, holding, nest, nesting_order};
    #[pymodule_export]
    use crate::matching::{only_matches, rows_of};
    #[pymodule_export]
    use crate::names::demangled;
    #[pymodule_export]
    use crate::read::{read_trace, schema};
}
