//! The starts and ends of activities in time order.

use super::NONE;
use crate::error::{check_lengths, check_row_count, AlgorithmError};
use crate::sorting::merge_runs;

/// The starts and ends of activities in time order, between the ends of a window.
#[derive(Debug, PartialEq, Eq)]
pub struct SortedPoints {
    /// The point at which each activity starts.
    pub start: Vec<i64>,
    /// The point at which each activity ends.
    pub end: Vec<i64>,
    /// The time of each point.
    pub time: Vec<i64>,
    /// The activity of each point; -1 for the first and the last.
    pub activity: Vec<i64>,
    /// Whether each point is the start of its activity, not its end; true for the first point, false for the last.
    pub is_start: Vec<bool>,
}

/// Sort the starts and ends of activities, and put them between the window's first and last time.
///
/// At equal times, the ends of earlier activities come first, then starts, then both points of each activity whose
/// duration is 0.
///
/// # Errors
///
/// The columns differ in length, or have too many rows.
pub fn sorted_points(start: &[i64], end: &[i64], window: (i64, i64)) -> Result<SortedPoints, AlgorithmError> {
    let count = start.len();
    check_lengths([count, end.len()])?;
    check_row_count(2 * count + 2)?;
    let order = ordered(start, end);
    let mut points = SortedPoints {
        start: vec![0; count],
        end: vec![0; count],
        time: Vec::with_capacity(2 * count + 2),
        activity: Vec::with_capacity(2 * count + 2),
        is_start: Vec::with_capacity(2 * count + 2),
    };
    points.push(window.0, NONE, true);
    for code in order {
        let (row, is_start) = decoded(code, count);
        let of_rows = if is_start { &mut points.start } else { &mut points.end };
        of_rows[row] = points.time.len() as i64;
        points.push(if is_start { start[row] } else { end[row] }, row as i64, is_start);
    }
    points.push(window.1, NONE, false);
    Ok(points)
}

impl SortedPoints {
    fn push(&mut self, time: i64, activity: i64, is_start: bool) {
        self.time.push(time);
        self.activity.push(activity);
        self.is_start.push(is_start);
    }
}

/// Codes of all starts and ends, in time order.
///
/// The code of an activity's end is the row of the activity; the code of its start is this row plus the number of rows.
fn ordered(start: &[i64], end: &[i64]) -> Vec<u32> {
    let count = start.len();
    let time = |code: u32| {
        let (row, is_start) = decoded(code, count);
        if is_start {
            start[row]
        } else {
            end[row]
        }
    };
    let (lasting, instant): (Vec<u32>, Vec<u32>) =
        (0..count as u32).partition(|&row| start[row as usize] != end[row as usize]);
    let begin = |&row: &u32| row + count as u32;
    let mut order = lasting.clone();
    merge_runs(&mut order, time);
    order.extend(lasting.iter().map(begin));
    order.extend(instant.iter().map(begin));
    order.extend(&instant);
    merge_runs(&mut order, time);
    order
}

fn decoded(code: u32, count: usize) -> (usize, bool) {
    let code = code as usize;
    if code < count {
        (code, false)
    } else {
        (code - count, true)
    }
}
