//! Cuts the window into segments wherever a range of the main thread starts or ends, and finds the segment that
//! contains each point of the other threads.

use super::{Points, Ranges, NONE};
use crate::sorting::by_group;

/// The points of all lanes, sorted by lane and then by time.
pub(super) struct Lanes {
    /// The point, a row of [`Points`].
    pub(super) node: Vec<u32>,
    pub(super) lane: Vec<i64>,
    pub(super) time: Vec<i64>,
    /// The innermost range between each point and the next point of its lane; -1 in gaps and for the last point.
    pub(super) owner: Vec<i64>,
    /// Whether each point is the last of its lane.
    pub(super) is_last: Vec<bool>,
}

impl Lanes {
    pub(super) fn new(points: &Points<'_>, ranges: &Ranges<'_>) -> Self {
        let node = by_lane(points, ranges);
        let activity = |at: usize| points.activity[node[at] as usize];
        let lane: Vec<i64> = (0..node.len()).map(|at| ranges.lane[activity(at) as usize]).collect();
        let is_last: Vec<bool> = (0..node.len()).map(|at| lane.get(at + 1) != Some(&lane[at])).collect();
        let owner = (0..node.len())
            .map(|at| match (is_last[at], points.is_start[node[at] as usize]) {
                (true, _) => NONE,
                (_, true) => activity(at),
                _ if points.is_start[node[at + 1] as usize] => ranges.parent[activity(at + 1) as usize],
                _ => activity(at + 1),
            })
            .collect();
        let time = node.iter().map(|&node| points.time[node as usize]).collect();
        Self { node, lane, time, owner, is_last }
    }

    pub(super) fn len(&self) -> usize {
        self.node.len()
    }

    /// Whether a point is the first of its lane.
    pub(super) fn is_first(&self, at: usize) -> bool {
        at == 0 || self.is_last[at - 1]
    }
}

/// The points at which a range starts or ends, sorted by the lane of the range.
fn by_lane(points: &Points<'_>, ranges: &Ranges<'_>) -> Vec<u32> {
    let (mut nodes, mut lanes) = (Vec::new(), Vec::new());
    for (node, &activity) in points.activity.iter().enumerate() {
        if let Some(&lane) = usize::try_from(activity).ok().and_then(|row| ranges.lane.get(row)) {
            if let Ok(lane) = u32::try_from(lane) {
                nodes.push(node as u32);
                lanes.push(lane);
            }
        }
    }
    by_group(&lanes).into_iter().map(|row| nodes[row as usize]).collect()
}

/// The window, cut into segments wherever a range of the main thread starts or ends.
pub(super) struct Segments {
    /// The first point of the window, the points that separate segments, and the last point of the window.
    pub(super) node: Vec<u32>,
    /// The times of the points in `node`, except that the last time is the end of the window on the host.
    pub(super) time: Vec<i64>,
    /// The innermost range of the main thread in each segment; -1 in gaps.
    pub(super) owner: Vec<i64>,
    /// The segment of each point of [`Lanes`]; a point between two segments belongs to the earlier one.
    pub(super) of_point: Vec<usize>,
}

impl Segments {
    pub(super) fn new(points: &Points<'_>, lanes: &Lanes, main_lane: i64, host_end: i64) -> Self {
        let main = || (0..lanes.len()).filter(|&at| lanes.lane[at] == main_lane);
        let last = points.time.len().saturating_sub(1) as u32;
        let mut time = vec![points.time.first().copied().unwrap_or(host_end)];
        time.extend(main().map(|at| lanes.time[at]));
        time.push(host_end);
        Self {
            node: [0].into_iter().chain(main().map(|at| lanes.node[at])).chain([last]).collect(),
            owner: [NONE].into_iter().chain(main().map(|at| lanes.owner[at])).collect(),
            of_point: located(lanes, &time),
            time,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.owner.len()
    }

    pub(super) fn length(&self, segment: usize) -> i64 {
        self.time[segment + 1].saturating_sub(self.time[segment])
    }
}

/// For each point, the index of the last of the `times` that are earlier than the point; 0 if none is earlier.
fn located(lanes: &Lanes, times: &[i64]) -> Vec<usize> {
    let mut earlier = 0;
    (0..lanes.len())
        .map(|at| {
            earlier = if lanes.is_first(at) { 0 } else { earlier };
            earlier += count_below(&times[earlier..], lanes.time[at]);
            earlier.saturating_sub(1)
        })
        .collect()
}

/// The number of sorted `times` below a bound; fast if the result is small.
fn count_below(times: &[i64], bound: i64) -> usize {
    let mut reach = 1;
    while reach < times.len() && times[reach] < bound {
        reach *= 2;
    }
    let reach = times.len().min(reach + 1);
    times[..reach].partition_point(|&time| time < bound)
}
