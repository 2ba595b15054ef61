//! Which interval lies inside which, and what intervals cover.
//!
//! Interval `i` belongs to `group[i]` and lasts from `start[i]` to `end[i]`. One contains another of its group if it
//! begins no later and ends no earlier; of two equal ones the one in the earlier row is outside.

mod climbing;
mod holding;

use std::cmp::Reverse;
use std::fmt;

use keys::merge_runs;

pub use climbing::{depths, furthest_above, nearest_above};
pub use holding::holding;

/// Stands for "no interval" where a row is expected.
pub const NO_PARENT: i64 = -1;

/// Why arrays have no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalsError {
    /// The arrays are not equally long, or have more rows than fit 32 bits.
    Lengths,
    /// A row is named that is not there.
    Row(i64),
    /// Some rows lie above themselves.
    Cycle,
}

impl fmt::Display for IntervalsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lengths => write!(f, "the arrays are not equally long, or longer than 32 bits count"),
            Self::Row(row) => write!(f, "row {row} is named, which is not there"),
            Self::Cycle => write!(f, "a row lies above itself"),
        }
    }
}

impl std::error::Error for IntervalsError {}

/// Intervals in groups.
#[derive(Debug, Clone, Copy)]
pub struct Intervals<'a> {
    group: &'a [u32],
    start: &'a [i64],
    end: &'a [i64],
}

/// The place of every interval among the others of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nesting {
    /// The innermost interval that contains it, `NO_PARENT` where there is none.
    pub parent: Vec<i64>,
    /// How many intervals lie around it, one in the other.
    pub depth: Vec<i32>,
    /// Whether it begins inside a sibling, which ends before it does.
    pub is_overlapping: Vec<bool>,
}

impl<'a> Intervals<'a> {
    /// Intervals from three columns.
    ///
    /// # Errors
    ///
    /// The columns differ in length.
    pub fn new(group: &'a [u32], start: &'a [i64], end: &'a [i64]) -> Result<Self, IntervalsError> {
        let is_equal = group.len() == start.len() && group.len() == end.len();
        if is_equal && u32::try_from(group.len()).is_ok() {
            Ok(Self { group, start, end })
        } else {
            Err(IntervalsError::Lengths)
        }
    }

    /// The rows so that each comes after all that contain it: by group, start, the longest first, and row.
    #[must_use]
    pub fn order(&self) -> Vec<u32> {
        if (0..self.group.len()).is_sorted_by_key(|row| self.key(row)) {
            return (0..self.group.len() as u32).collect();
        }
        // A thread's events lie in the file in few sorted runs, which those of other threads cut up.
        let mut order = by_group(self.group);
        for of_group in
            order.chunk_by_mut(|&one, &other| self.group[one as usize] == self.group[other as usize])
        {
            merge_runs(of_group, |row| self.key(row as usize));
        }
        order
    }

    /// The parent of each interval, its depth, and whether it overlaps a sibling.
    ///
    /// One pass in `order`, with those open around the last interval at hand, the outermost first. Who ends before a
    /// later one does can be around nothing that follows: the later one is nearer, or does not reach so far.
    #[must_use]
    pub fn nest(&self) -> Nesting {
        let count = self.group.len();
        let mut nesting = Nesting {
            parent: vec![NO_PARENT; count],
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
            nesting.parent[row] = open.last().map_or(NO_PARENT, |&last| last as i64);
            nesting.depth[row] = open.len() as i32;
            open.push(row);
        }
        nesting
    }

    /// How much time the intervals of each of the groups 0, 1, … cover.
    ///
    /// In order of their starts each interval adds what lies behind all ends so far.
    ///
    /// # Errors
    ///
    /// There is a group that is not among so many.
    pub fn covered(&self, group_count: usize) -> Result<Vec<i64>, IntervalsError> {
        if let Some(&group) = self.group.iter().find(|&&group| group as usize >= group_count) {
            return Err(IntervalsError::Row(i64::from(group)));
        }
        let mut rows: Vec<u32> = (0..self.group.len() as u32).collect();
        merge_runs(&mut rows, |row| self.start[row as usize]);
        let mut covered = vec![0; group_count];
        let mut reached = vec![i64::MIN; group_count];
        for row in rows.into_iter().map(|row| row as usize) {
            let (group, end) = (self.group[row] as usize, self.end[row]);
            let begin = self.start[row].max(reached[group]);
            if begin < end {
                covered[group] += end - begin;
                reached[group] = end;
            }
        }
        Ok(covered)
    }

    fn key(&self, row: usize) -> (u32, i64, Reverse<i64>) {
        (self.group[row], self.start[row], Reverse(self.end[row]))
    }
}

/// The rows by group, in each as they were: counted where the numbers of the groups are small, as those of tracks are.
fn by_group(group: &[u32]) -> Vec<u32> {
    let groups = group.iter().max().map_or(0, |&greatest| greatest as usize + 1);
    let mut order: Vec<u32> = (0..group.len() as u32).collect();
    if groups > group.len() {
        order.sort_by_key(|&row| group[row as usize]);
        return order;
    }
    let mut next = vec![0_usize; groups + 1];
    for &of in group {
        next[of as usize + 1] += 1;
    }
    for of in 0..groups {
        next[of + 1] += next[of];
    }
    for (row, &of) in group.iter().enumerate() {
        order[next[of as usize]] = row as u32;
        next[of as usize] += 1;
    }
    order
}
