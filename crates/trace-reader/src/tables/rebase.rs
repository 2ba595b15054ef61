//! Adds the base time (`baseTimeNanoseconds`) to times that the reader stored before it reached the base time in the
//! file.
//!
//! Files from May 2024 to March 2025 state the base time after the events.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;

/// Add `base_ns` to the column `start_ns` of a batch; a sum that overflows becomes the largest time.
pub(crate) fn rebased(batch: &RecordBatch, base_ns: i64) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let at = schema.index_of("start_ns")?;
    let shifted =
        batch.column(at).as_primitive::<Int64Type>().unary::<_, Int64Type>(|ns| ns.saturating_add(base_ns));
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    columns[at] = Arc::new(shifted);
    RecordBatch::try_new(schema, columns)
}
