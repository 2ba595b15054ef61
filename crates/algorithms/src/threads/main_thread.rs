//! Dependencies along threads, and between the main thread and the threads that work for it.

use super::segments::{Lanes, Segments};
use super::{Points, Ranges, NONE};
use crate::error::AlgorithmError;

/// Edges between [`Points`]: the target comes at least `weight` after the source.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ThreadEdges {
    /// The point where each edge begins.
    pub source: Vec<u32>,
    /// The point where each edge ends.
    pub target: Vec<u32>,
    /// The minimum time from the source to the target of each edge.
    pub weight: Vec<i64>,
    /// The index of the range in which the time of each edge is spent; -1 if it is spent in no range.
    pub owner: Vec<i32>,
    /// The number of edges of each kind, in this order: from other lanes to the main thread; from the main thread to
    /// other lanes; from the start of a wait to the end of the awaited range; along lanes; at the ends of the window.
    pub counts: Vec<i64>,
}

impl ThreadEdges {
    fn with_capacity(count: usize) -> Self {
        Self {
            source: Vec::with_capacity(count),
            target: Vec::with_capacity(count),
            weight: Vec::with_capacity(count),
            owner: Vec::with_capacity(count),
            counts: Vec::new(),
        }
    }

    fn push(&mut self, source: u32, target: u32, weight: i64, owner: i64) {
        self.source.push(source);
        self.target.push(target);
        self.weight.push(weight);
        self.owner.push(owner as i32);
    }

    fn end_kind(&mut self) {
        let before: i64 = self.counts.iter().sum();
        self.counts.push(self.source.len() as i64 - before);
    }
}

/// The times at which the main thread waits for other threads that work for it.
///
/// The starts and ends of the main thread's ranges divide its time into segments. A pause of another lane is a gap
/// between its ranges during which a segment ends, or the time after its last range. A lane is assumed to work without
/// interruption between two pauses.
pub struct HandOvers<'a> {
    ranges: Ranges<'a>,
    points: Points<'a>,
    main_lane: i64,
    lanes: Lanes,
    segments: Segments,
    /// For each point, whether a pause of its lane begins there; always false on the main thread's lane.
    ends: Vec<bool>,
    /// For each segment, whether the main thread waits for other lanes during the segment.
    waits: Vec<bool>,
}

impl<'a> HandOvers<'a> {
    /// Find where other lanes work for the main thread.
    ///
    /// The main thread waits in a segment if a pause of another lane begins in the segment and the other lanes are busy
    /// for at least half of the segment. If the segment is in a waiting range of the main thread, any busy time is
    /// enough. What the main thread does in the segment determines which lanes' busy time is added up:
    ///
    /// - in a gap or a waiting range: all other lanes,
    /// - in a call into the runtime: no lane,
    /// - in any other range: the lanes in `works_inside`.
    ///
    /// A lane is busy during each of its ranges. A lane in `works_inside` is also busy between its ranges, except in
    /// pauses.
    ///
    /// # Errors
    ///
    /// Columns differ in length, or refer to rows that do not exist.
    pub fn new(
        ranges: Ranges<'a>,
        points: Points<'a>,
        main_lane: i64,
        works_inside: &[i64],
        host_end: i64,
    ) -> Result<Self, AlgorithmError> {
        ranges.check()?;
        points.check(ranges.lane.len())?;
        let lanes = Lanes::new(&points, &ranges);
        let segments = Segments::new(&points, &lanes, main_lane, host_end);
        let rests = |at: usize| {
            let continues = lanes.is_last[at] || segments.of_point[at + 1] != segments.of_point[at];
            lanes.owner[at] == NONE && continues
        };
        let ends = (0..lanes.len()).map(|at| lanes.lane[at] != main_lane && rests(at)).collect();
        let mut known = Self { ranges, points, main_lane, lanes, segments, ends, waits: Vec::new() };
        known.waits = known.waiting_segments(works_inside);
        Ok(known)
    }

    fn waiting_segments(&self, works_inside: &[i64]) -> Vec<bool> {
        let count = self.segments.count();
        let (mut busy, mut busy_inside) = (vec![0_i64; count], vec![0_i64; count]);
        let mut someone_ends = vec![false; count];
        let mut is_inside = false;
        for at in (0..self.lanes.len()).filter(|&at| self.lanes.lane[at] != self.main_lane) {
            if self.lanes.is_first(at) {
                is_inside = works_inside.contains(&self.lanes.lane[at]);
            }
            someone_ends[self.segments.of_point[at]] |= self.ends[at];
            let works = if is_inside { !self.ends[at] } else { self.lanes.owner[at] != NONE };
            if works && !self.lanes.is_last[at] {
                let segment = self.segments.of_point[at + 1];
                let begin = self.lanes.time[at].max(self.segments.time[segment]);
                let lasting = self.lanes.time[at + 1].saturating_sub(begin).max(0);
                busy[segment] += lasting;
                busy_inside[segment] += if is_inside { lasting } else { 0 };
            }
        }
        (0..count)
            .map(|segment| {
                let owner = usize::try_from(self.segments.owner[segment]).ok();
                let is_call = owner.is_some_and(|row| self.ranges.is_call[row]);
                let is_waiting = owner.is_some_and(|row| self.ranges.is_waiting[row]) && !is_call;
                let counted = match owner {
                    Some(_) if is_call => 0,
                    Some(_) if !is_waiting => busy_inside[segment],
                    _ => busy[segment],
                };
                let is_most = counted.saturating_mul(2) >= self.segments.length(segment);
                someone_ends[segment] && counted > 0 && (is_waiting || is_most)
            })
            .collect()
    }

    /// Return all edges, sorted by kind in the order of [`ThreadEdges::counts`].
    #[must_use]
    pub fn edges(&self) -> ThreadEdges {
        let awaited = self.awaited_later();
        let mut edges = ThreadEdges::with_capacity(self.lanes.len() + 2);
        self.add_hand_overs(&mut edges);
        self.add_waiting(&mut edges, &awaited);
        self.add_along(&mut edges, &awaited);
        self.add_window(&mut edges);
        edges
    }

    /// For each point, whether it is the end of an asynchronous range for which the main thread waited. The main thread
    /// started such a range in an earlier segment; the range has a separate lane.
    fn awaited_later(&self) -> Vec<bool> {
        let mut awaited = vec![false; self.lanes.len()];
        for at in (0..self.lanes.len()).filter(|&at| self.ends[at]) {
            let range = self.points.activity[self.lanes.node[at] as usize] as usize;
            let recorded_by_main = self.ranges.thread[range] == self.main_lane;
            let began = self.ranges.start[range] < self.segments.time[self.segments.of_point[at]];
            let is_apart = self.ranges.lane[range] != self.ranges.thread[range];
            let is_decided = self.is_awaited(at) || self.ranges.ends_on_thread[range];
            awaited[at] = recorded_by_main && is_apart && began && is_decided;
        }
        awaited
    }

    fn is_awaited(&self, at: usize) -> bool {
        self.ends[at] && self.waits[self.segments.of_point[at]]
    }

    fn add_hand_overs(&self, edges: &mut ThreadEdges) {
        for at in (0..self.lanes.len()).filter(|&at| self.is_awaited(at)) {
            let next = self.segments.node[self.segments.of_point[at] + 1];
            edges.push(self.lanes.node[at], next, 0, NONE);
        }
        edges.end_kind();
        for at in 0..self.lanes.len() {
            let begins = self.lanes.is_first(at) || self.ends[at - 1];
            if begins && self.lanes.lane[at] != self.main_lane {
                let source = self.segments.node[self.segments.of_point[at]];
                edges.push(source, self.lanes.node[at], 0, NONE);
            }
        }
        edges.end_kind();
    }

    fn add_waiting(&self, edges: &mut ThreadEdges, awaited: &[bool]) {
        for at in (1..self.lanes.len()).filter(|&at| awaited[at]) {
            let segment = self.segments.of_point[at];
            let weight = self.lanes.time[at] - self.segments.time[segment];
            edges.push(self.segments.node[segment], self.lanes.node[at], weight, self.lanes.owner[at - 1]);
        }
        edges.end_kind();
    }

    fn add_along(&self, edges: &mut ThreadEdges, awaited: &[bool]) {
        let mut segment = 0;
        for at in 0..self.lanes.len() {
            let is_main = self.lanes.lane[at] == self.main_lane;
            segment += usize::from(is_main);
            if self.lanes.is_last[at] {
                continue;
            }
            let owner = self.lanes.owner[at];
            let rests = if is_main { self.waits[segment] } else { self.ends[at] } || awaited[at + 1];
            let waits = usize::try_from(owner).is_ok_and(|row| self.ranges.is_waiting[row]);
            let length = self.lanes.time[at + 1] - self.lanes.time[at];
            let weight = if rests || waits { 0 } else { length };
            edges.push(self.lanes.node[at], self.lanes.node[at + 1], weight, owner);
        }
        edges.end_kind();
    }

    /// Add edges from the last point of each lane to the end of the window, and from the window's
    /// start to the main thread.
    fn add_window(&self, edges: &mut ThreadEdges) {
        let nodes = &self.segments.node;
        let (first, last) = (0, self.segments.count() - 1);
        for at in (0..self.lanes.len()).filter(|&at| self.lanes.is_last[at]) {
            if self.lanes.lane[at] != self.main_lane {
                edges.push(self.lanes.node[at], nodes[last + 1], 0, NONE);
            }
        }
        for segment in [first, last] {
            let weight = if self.waits[segment] { 0 } else { self.segments.length(segment) };
            edges.push(nodes[segment], nodes[segment + 1], weight, NONE);
        }
        edges.end_kind();
    }
}
