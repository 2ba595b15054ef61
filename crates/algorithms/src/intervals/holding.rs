//! Lookup of the interval that contains a time.

use crate::error::{check_lengths, AlgorithmError};
use crate::NO_ROW;

/// For each time, the row of the last interval `[start, end)` that begins at or before this time; [`NO_ROW`] if this
/// interval has already ended.
///
/// Starts must ascend. A lookup is faster if no interval begins between the previous time in `times` and the current
/// one.
///
/// # Errors
///
/// `start` and `end` differ in length.
pub fn holding(start: &[i64], end: &[i64], times: &[i64]) -> Result<Vec<i64>, AlgorithmError> {
    check_lengths([start.len(), end.len()])?;
    let mut begun = 0; // number of intervals that have begun
    let row_at = |&time: &i64| {
        let is_same =
            (begun == 0 || start[begun - 1] <= time) && start.get(begun).is_none_or(|&next| time < next);
        if !is_same {
            begun = start.partition_point(|&start| start <= time);
        }
        if begun > 0 && time < end[begun - 1] {
            begun as i64 - 1
        } else {
            NO_ROW
        }
    };
    Ok(times.iter().map(row_at).collect())
}
