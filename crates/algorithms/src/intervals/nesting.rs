//! Nesting of intervals: the parent and the depth of each.
//!
//! An interval contains another interval of its group if it begins no later and ends no earlier than the other. Of two
//! equal intervals, the one in the earlier row contains the other.

use std::cmp::Reverse;

use super::Intervals;
use crate::sorting::{by_group, merge_runs};
use crate::NO_ROW;

/// How the intervals of each group are nested; every field has one entry per interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nesting {
    /// The innermost interval that contains each interval, or [`NO_ROW`].
    pub parent: Vec<i64>,
    /// The number of ancestors of each interval.
    pub depth: Vec<i32>,
    /// Whether each interval begins inside a sibling and ends after that sibling.
    pub is_overlapping: Vec<bool>,
}

impl Intervals<'_> {
    /// The rows sorted by group, then by start, then longest first, so each row follows the rows that contain it.
    #[must_use]
    pub fn order(&self) -> Vec<u32> {
        if (0..self.group.len()).is_sorted_by_key(|row| self.key(row)) {
            return (0..self.group.len() as u32).collect();
        }
        // In a trace file, the events of a thread form a few sorted runs, with events of other threads in between.
        let mut order = by_group(self.group);
        for of_group in
            order.chunk_by_mut(|&one, &other| self.group[one as usize] == self.group[other as usize])
        {
            merge_runs(of_group, |row| self.key(row as usize));
        }
        order
    }

    /// The parent and depth of each interval, and whether it overlaps a sibling.
    ///
    /// Goes through the rows once, in [`order`](Self::order), with a stack of open intervals, the outermost first.
    /// Before a row is put on the stack, all intervals that end before the row ends are removed. They are no longer
    /// needed: a later interval inside one of them is also inside the current row's interval.
    #[must_use]
    pub fn nest(&self) -> Nesting {
        let count = self.group.len();
        let mut nesting = Nesting {
            parent: vec![NO_ROW; count],
            depth: vec![0; count],
            is_overlapping: vec![false; count],
        };
        let mut open: Vec<usize> = Vec::new();
        for row in self.order().into_iter().map(|row| row as usize) {
            if open.last().is_some_and(|&last| self.group[last] != self.group[row]) {
                open.clear();
            }
            while let Some(last) = open.pop_if(|last| self.end[*last] < self.end[row]) {
                nesting.is_overlapping[row] |= self.end[last] > self.start[row];
            }
            nesting.parent[row] = open.last().map_or(NO_ROW, |&last| last as i64);
            nesting.depth[row] = open.len() as i32;
            open.push(row);
        }
        nesting
    }

    fn key(&self, row: usize) -> (u32, i64, Reverse<i64>) {
        (self.group[row], self.start[row], Reverse(self.end[row]))
    }
}
