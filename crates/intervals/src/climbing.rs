//! Ways up from row to parent.

use crate::{IntervalsError, NO_PARENT};

/// How many rows lie above each row.
///
/// # Errors
///
/// A parent is not there, or a row lies above itself.
pub fn depths(parent: &[i64]) -> Result<Vec<i32>, IntervalsError> {
    const UNKNOWN: i32 = -1;
    let mut depth = vec![UNKNOWN; parent.len()];
    let mut way = Vec::new();
    for row in 0..parent.len() {
        let mut at = Some(row);
        while let Some(unknown) = at.filter(|&at| depth[at] == UNKNOWN) {
            if way.len() == parent.len() {
                return Err(IntervalsError::Cycle);
            }
            way.push(unknown);
            at = place(parent[unknown], parent.len())?;
        }
        let mut reached = at.map_or(UNKNOWN, |known| depth[known]);
        while let Some(below) = way.pop() {
            reached += 1;
            depth[below] = reached;
        }
    }
    Ok(depth)
}

/// The nearest wanted row above each of these rows; `NO_PARENT` where there is none, and for that itself.
///
/// # Errors
///
/// A row is not there, a row lies above itself, or `wanted` is not as long as `parent`.
pub fn nearest_above(parent: &[i64], wanted: &[bool], rows: &[i64]) -> Result<Vec<i64>, IntervalsError> {
    let tree = Tree::new(parent, wanted)?;
    rows.iter().map(|&row| tree.nearest_above(row)).collect()
}

/// The last wanted row on the way up from each of these rows; `NO_PARENT` where there is none, and for that itself.
///
/// # Errors
///
/// Those of `nearest_above`.
pub fn furthest_above(parent: &[i64], wanted: &[bool], rows: &[i64]) -> Result<Vec<i64>, IntervalsError> {
    let tree = Tree::new(parent, wanted)?;
    rows.iter().map(|&row| tree.furthest_above(row)).collect()
}

struct Tree<'a> {
    parent: &'a [i64],
    wanted: &'a [bool],
}

impl<'a> Tree<'a> {
    fn new(parent: &'a [i64], wanted: &'a [bool]) -> Result<Self, IntervalsError> {
        if parent.len() == wanted.len() {
            Ok(Self { parent, wanted })
        } else {
            Err(IntervalsError::Lengths)
        }
    }

    fn nearest_above(&self, row: i64) -> Result<i64, IntervalsError> {
        let mut at = row;
        for _ in 0..=self.parent.len() {
            let Some(below) = place(at, self.parent.len())? else { return Ok(NO_PARENT) };
            at = self.parent[below];
            if place(at, self.parent.len())?.is_some_and(|above| self.wanted[above]) {
                return Ok(at);
            }
        }
        Err(IntervalsError::Cycle)
    }

    fn furthest_above(&self, row: i64) -> Result<i64, IntervalsError> {
        let mut found = NO_PARENT;
        let mut at = row;
        for _ in 0..=self.parent.len() {
            at = self.nearest_above(at)?;
            if at == NO_PARENT {
                return Ok(found);
            }
            found = at;
        }
        Err(IntervalsError::Cycle)
    }
}

/// The row as a place in an array of so many; none for `NO_PARENT`.
fn place(row: i64, count: usize) -> Result<Option<usize>, IntervalsError> {
    match usize::try_from(row) {
        Ok(place) if place < count => Ok(Some(place)),
        Err(_) if row == NO_PARENT => Ok(None),
        _ => Err(IntervalsError::Row(row)),
    }
}
