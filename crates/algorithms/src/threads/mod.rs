//! Threads: the points at which their ranges start and end, and how threads hand work to each other.

mod main_thread;
mod points;
mod segments;

use crate::error::{check_lengths, check_row_count, AlgorithmError};
pub use main_thread::{HandOvers, ThreadEdges};
pub use points::{sorted_points, SortedPoints};

/// Marks an activity without a lane, a gap without a range, and a range without a parent.
const NONE: i64 = -1;

/// Time ranges on threads, and activities that are not on a thread.
#[derive(Debug, Clone, Copy)]
pub struct Ranges<'a> {
    /// The lane of each range: its thread, or a separate lane; -1 for activities that are not on a thread.
    pub lane: &'a [i64],
    /// The thread that recorded each range.
    pub thread: &'a [i64],
    /// The innermost range of the same lane that contains each range, or -1.
    pub parent: &'a [i64],
    /// When each range starts.
    pub start: &'a [i64],
    /// Whether the thread waits during the range.
    pub is_waiting: &'a [bool],
    /// Whether the range is a call into the runtime of a device. In such a call, a thread never waits for the work of
    /// another thread.
    pub is_call: &'a [bool],
    /// For a range on a separate lane: whether its end is the time at which its thread stopped waiting for it. Such a
    /// wait can have a duration of 0.
    pub ends_on_thread: &'a [bool],
}

/// The starts and ends of all activities in time order. The first and the last point are the ends of the window.
#[derive(Debug, Clone, Copy)]
pub struct Points<'a> {
    /// The activity that starts or ends at each point; -1 for the first and the last point.
    pub activity: &'a [i64],
    /// Whether each point is the start of its activity.
    pub is_start: &'a [bool],
    /// The time of each point.
    pub time: &'a [i64],
}

impl Ranges<'_> {
    fn check(&self) -> Result<(), AlgorithmError> {
        let count = self.lane.len();
        check_row_count(count)?;
        check_lengths([count, self.thread.len(), self.parent.len(), self.start.len()])?;
        check_lengths([count, self.is_waiting.len(), self.is_call.len(), self.ends_on_thread.len()])?;
        check_rows(self.parent, count)
    }
}

impl Points<'_> {
    fn check(&self, range_count: usize) -> Result<(), AlgorithmError> {
        check_row_count(self.time.len())?;
        check_lengths([self.time.len(), self.activity.len(), self.is_start.len()])?;
        check_rows(self.activity, range_count)
    }
}

fn check_rows(rows: &[i64], count: usize) -> Result<(), AlgorithmError> {
    match rows.iter().find(|&&row| row < NONE || row >= count as i64) {
        Some(&row) => Err(AlgorithmError::Row(row)),
        None => Ok(()),
    }
}
