//! The Python module `holotrace._native`.

mod arrays;
mod checksum;
mod error;
mod names;
mod traces;

use pyo3::prelude::*;

/// The native part of holotrace; `_native.pyi` documents its functions.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::arrays::ancestors::{depths, furthest_above, nearest_above};
    #[pymodule_export]
    use crate::arrays::graph::{
        binding_edges, chains, contract, earliest_times, has_cycle, measured_binding, pass_on, path_to,
        slacks,
    };
    #[pymodule_export]
    use crate::arrays::grouping::{summaries, sums_by_name};
    #[pymodule_export]
    use crate::arrays::intervals::{
        covered_by_group, difference, holding, intersection, nest, nesting_order, union,
    };
    #[pymodule_export]
    use crate::arrays::matching::{distinct, only_matches, rows_of};
    #[pymodule_export]
    use crate::arrays::threads::{sorted_points, thread_edges};
    #[pymodule_export]
    use crate::checksum::{arrow_checksums, checksum, file_checksum};
    #[pymodule_export]
    use crate::error::{ExpansionError, NotATraceError, SinkError};
    #[pymodule_export]
    use crate::names::demangled;
    #[pymodule_export]
    use crate::traces::arrow::ArrowTable;
    #[pymodule_export]
    use crate::traces::edit::EditedCopy;
    #[pymodule_export]
    use crate::traces::gzip_writer::GzipWriter;
    #[pymodule_export]
    use crate::traces::inspect::{content_hash, memory_events, peek};
    #[pymodule_export]
    use crate::traces::place::{PlacedEvents, Placing};
    #[pymodule_export]
    use crate::traces::read::{read_trace, schema};
}
