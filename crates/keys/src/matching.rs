//! Which row has the same key.

use std::ops::Range;

use crate::{merge_runs, KeysError};

/// Stands for "no row" where a row is expected.
pub const NO_MATCH: i64 = -1;

/// Stands for "several rows" where a row is expected.
pub const SEVERAL: i64 = -2;

/// The only row of `offered` that has each `wanted` key; `NO_MATCH` or `SEVERAL` where there is no such one.
///
/// Columns of traces consist of few rising runs, so that sorting is little more than joining them, and the next key is
/// found near the last one.
///
/// # Errors
///
/// More rows are offered than fit 32 bits.
pub fn only_matches<K: Copy + Ord>(offered: &[K], wanted: &[K]) -> Result<Vec<i64>, KeysError> {
    if u32::try_from(offered.len()).is_err() {
        return Err(KeysError::Lengths);
    }
    let mut sorted = Sorted::new(offered);
    Ok(wanted.iter().map(|&key| sorted.only_row(key)).collect())
}

/// Rows in the order of their keys, and where the last search ended.
struct Sorted<'a, K> {
    keys: &'a [K],
    /// None where the keys are in order already.
    rows: Option<Vec<u32>>,
    place: usize,
}

impl<'a, K: Copy + Ord> Sorted<'a, K> {
    fn new(keys: &'a [K]) -> Self {
        let rows = (!keys.is_sorted()).then(|| {
            let mut rows: Vec<u32> = (0..keys.len() as u32).collect();
            merge_runs(&mut rows, |row| keys[row as usize]);
            rows
        });
        Self { keys, rows, place: 0 }
    }

    fn only_row(&mut self, key: K) -> i64 {
        self.place = self.place_of(key);
        let has_key = |place: usize| place < self.keys.len() && self.keys[self.row_at(place)] == key;
        match (has_key(self.place), has_key(self.place + 1)) {
            (false, _) => NO_MATCH,
            (true, true) => SEVERAL,
            (true, false) => self.row_at(self.place) as i64,
        }
    }

    /// How many keys are smaller: from the last place back by halving, or forth by steps that double.
    fn place_of(&self, key: K) -> usize {
        let is_smaller = |place: usize| self.keys[self.row_at(place)] < key;
        if self.place > 0 && !is_smaller(self.place - 1) {
            return first_not(0..self.place, is_smaller);
        }
        let mut reach = 1;
        while self.place + reach <= self.keys.len() && is_smaller(self.place + reach - 1) {
            reach *= 2;
        }
        first_not(self.place..self.keys.len().min(self.place + reach), is_smaller)
    }

    fn row_at(&self, place: usize) -> usize {
        self.rows.as_ref().map_or(place, |rows| rows[place] as usize)
    }
}

/// The first of the places of which that is no longer true; their end where it is true of all.
fn first_not(places: Range<usize>, is_true: impl Fn(usize) -> bool) -> usize {
    let (mut begin, mut end) = (places.start, places.end);
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
