//! In which interval a moment lies.

use crate::{IntervalsError, NO_PARENT};

/// The row of the interval `[start, end)` in which each moment lies, `NO_PARENT` where it lies in none.
///
/// Starts rise; of several that hold a moment, or have begun before it, only the last counts. Moments near the one
/// before are found sooner.
///
/// # Errors
///
/// The columns of the intervals differ in length.
pub fn holding(start: &[i64], end: &[i64], moments: &[i64]) -> Result<Vec<i64>, IntervalsError> {
    if start.len() != end.len() {
        return Err(IntervalsError::Lengths);
    }
    let mut begun = 0; // how many begin no later than the moment
    let row_of = |&moment: &i64| {
        let is_same =
            (begun == 0 || start[begun - 1] <= moment) && start.get(begun).is_none_or(|&next| moment < next);
        if !is_same {
            begun = start.partition_point(|&start| start <= moment);
        }
        if begun > 0 && moment < end[begun - 1] {
            begun as i64 - 1
        } else {
            NO_PARENT
        }
    };
    Ok(moments.iter().map(row_of).collect())
}
