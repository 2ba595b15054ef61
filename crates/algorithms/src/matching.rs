//! Lookup of rows by key.

use std::ops::Range;

use crate::error::{check_row_count, AlgorithmError};
use crate::sorting::merge_runs;
use crate::NO_ROW;

/// Marks a key that several rows have.
pub const SEVERAL_ROWS: i64 = -2;

/// For each `wanted` key, the row of `offered` with that key; [`NO_ROW`] if there is none, [`SEVERAL_ROWS`] if there
/// are several.
///
/// The lookup is fast if the keys are columns of a trace. Such columns consist of a few ascending runs, which merge
/// quickly. Neighbouring keys have similar values, so each search starts where the previous one ended.
///
/// # Errors
///
/// [`AlgorithmError::TooManyRows`] if `offered` has too many rows.
pub fn only_matches<K: Copy + Ord>(offered: &[K], wanted: &[K]) -> Result<Vec<i64>, AlgorithmError> {
    check_row_count(offered.len())?;
    let mut index = Index::new(offered);
    Ok(wanted.iter().map(|&key| index.only_row(key)).collect())
}

/// Rows sorted by key, and the position in that order at which the previous search ended.
struct Index<'a, K> {
    keys: &'a [K],
    /// The rows sorted by key; `None` if the keys are sorted already.
    rows: Option<Vec<u32>>,
    rank: usize,
}

impl<'a, K: Copy + Ord> Index<'a, K> {
    fn new(keys: &'a [K]) -> Self {
        let rows = (!keys.is_sorted()).then(|| {
            let mut rows: Vec<u32> = (0..keys.len() as u32).collect();
            merge_runs(&mut rows, |row| keys[row as usize]);
            rows
        });
        Self { keys, rows, rank: 0 }
    }

    fn only_row(&mut self, key: K) -> i64 {
        self.rank = self.rank_of(key);
        let has_key = |rank: usize| rank < self.keys.len() && self.keys[self.row_at(rank)] == key;
        match (has_key(self.rank), has_key(self.rank + 1)) {
            (false, _) => NO_ROW,
            (true, true) => SEVERAL_ROWS,
            (true, false) => self.row_at(self.rank) as i64,
        }
    }

    /// The number of keys smaller than `key`. The search begins at the previous result and goes back by bisection, or
    /// forward in doubling steps.
    fn rank_of(&self, key: K) -> usize {
        let is_smaller = |rank: usize| self.keys[self.row_at(rank)] < key;
        if self.rank > 0 && !is_smaller(self.rank - 1) {
            return first_not(0..self.rank, is_smaller);
        }
        let mut reach = 1;
        while self.rank + reach <= self.keys.len() && is_smaller(self.rank + reach - 1) {
            reach *= 2;
        }
        first_not(self.rank..self.keys.len().min(self.rank + reach), is_smaller)
    }

    fn row_at(&self, rank: usize) -> usize {
        self.rows.as_ref().map_or(rank, |rows| rows[rank] as usize)
    }
}

/// The first index for which `is_true` is false, or the end of the range if there is none.
fn first_not(range: Range<usize>, is_true: impl Fn(usize) -> bool) -> usize {
    let (mut begin, mut end) = (range.start, range.end);
    while begin < end {
        let middle = begin.midpoint(end);
        if is_true(middle) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    begin
}
