//! Half-open intervals `[start, end)` as columns, with the group of each row.

mod coverage;
mod holding;
mod nesting;
mod sets;

pub use holding::holding;
pub use nesting::Nesting;
pub use sets::TimeSet;

use crate::error::{check_lengths, check_row_count, AlgorithmError};

/// Intervals in groups, such as the events of each thread.
#[derive(Debug, Clone, Copy)]
pub struct Intervals<'a> {
    group: &'a [u32],
    start: &'a [i64],
    end: &'a [i64],
}

impl<'a> Intervals<'a> {
    /// Row `i` lasts from `start[i]` to `end[i]` and belongs to `group[i]`.
    ///
    /// # Errors
    ///
    /// The columns differ in length or have too many rows.
    pub fn new(group: &'a [u32], start: &'a [i64], end: &'a [i64]) -> Result<Self, AlgorithmError> {
        check_lengths([group.len(), start.len(), end.len()])?;
        check_row_count(group.len())?;
        Ok(Self { group, start, end })
    }
}
