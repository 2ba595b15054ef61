//! Sets of times: the union, intersection and difference of intervals.

use crate::error::{check_lengths, AlgorithmError};

/// Disjoint intervals, sorted by time, that do not touch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TimeSet {
    /// When each interval starts.
    pub start: Vec<i64>,
    /// When each interval ends.
    pub end: Vec<i64>,
}

impl TimeSet {
    /// The times that at least one interval covers. Intervals without length cover nothing.
    ///
    /// # Errors
    ///
    /// `start` and `end` differ in length.
    pub fn union(start: &[i64], end: &[i64]) -> Result<Self, AlgorithmError> {
        check_lengths([start.len(), end.len()])?;
        let lasting = start.iter().copied().zip(end.iter().copied()).filter(|(start, end)| start < end);
        if start.is_sorted() {
            return Ok(lasting.collect());
        }
        let mut sorted: Vec<_> = lasting.collect();
        sorted.sort_by_key(|&(start, _)| start);
        Ok(sorted.into_iter().collect())
    }

    /// The times that both sets cover.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut mine, mut theirs) = (0, 0);
        let mut shared = Self::default();
        while mine < self.start.len() && theirs < other.start.len() {
            let start = self.start[mine].max(other.start[theirs]);
            let end = self.end[mine].min(other.end[theirs]);
            if start < end {
                shared.start.push(start);
                shared.end.push(end);
            }
            if self.end[mine] < other.end[theirs] {
                mine += 1;
            } else {
                theirs += 1;
            }
        }
        shared
    }

    /// The times that this set covers and the other set does not.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }

    /// The times that this set does not cover.
    fn complement(&self) -> Self {
        let mut start = vec![i64::MIN];
        start.extend(&self.end);
        let mut end = self.start.clone();
        end.push(i64::MAX);
        start.into_iter().zip(end).filter(|(start, end)| start < end).collect()
    }
}

impl FromIterator<(i64, i64)> for TimeSet {
    /// Merge intervals that are sorted by start.
    fn from_iter<T: IntoIterator<Item = (i64, i64)>>(in_order: T) -> Self {
        let mut merged = Self::default();
        for (start, end) in in_order {
            match merged.end.last_mut() {
                Some(last) if start <= *last => *last = end.max(*last),
                _ => {
                    merged.start.push(start);
                    merged.end.push(end);
                }
            }
        }
        merged
    }
}
