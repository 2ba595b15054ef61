//! Trees given by the parent of each row, with [`NO_ROW`] for a root.

use crate::error::{check_lengths, AlgorithmError};
use crate::NO_ROW;

/// The number of ancestors of each row.
///
/// # Errors
///
/// [`AlgorithmError::Row`] if a parent does not exist, or [`AlgorithmError::ParentCycle`] if a row is its own ancestor.
pub fn depths(parent: &[i64]) -> Result<Vec<i32>, AlgorithmError> {
    const UNKNOWN: i32 = -1;
    let mut depth = vec![UNKNOWN; parent.len()];
    let mut climbed = Vec::new();
    for row in 0..parent.len() {
        let mut at = Some(row);
        while let Some(unknown) = at.filter(|&at| depth[at] == UNKNOWN) {
            if climbed.len() == parent.len() {
                return Err(AlgorithmError::ParentCycle);
            }
            climbed.push(unknown);
            at = index(parent[unknown], parent.len())?;
        }
        let mut reached = at.map_or(UNKNOWN, |known| depth[known]);
        while let Some(below) = climbed.pop() {
            reached += 1;
            depth[below] = reached;
        }
    }
    Ok(depth)
}

/// For each of `rows`, the nearest wanted ancestor; [`NO_ROW`] if a row has no wanted ancestor. `rows` may contain
/// [`NO_ROW`], which stays [`NO_ROW`].
///
/// # Errors
///
/// [`AlgorithmError::Row`] if a parent or one of `rows` does not exist, [`AlgorithmError::ParentCycle`] if a row is its
/// own ancestor, or [`AlgorithmError::Lengths`] if `wanted` and `parent` differ in length.
pub fn nearest_above(parent: &[i64], wanted: &[bool], rows: &[i64]) -> Result<Vec<i64>, AlgorithmError> {
    let tree = Tree::new(parent, wanted)?;
    rows.iter().map(|&row| tree.nearest_above(row)).collect()
}

/// For each of `rows`, the wanted ancestor closest to the root; [`NO_ROW`] if a row has no wanted ancestor. `rows` may
/// contain [`NO_ROW`], which stays [`NO_ROW`].
///
/// # Errors
///
/// Fails in the same cases as [`nearest_above`].
pub fn furthest_above(parent: &[i64], wanted: &[bool], rows: &[i64]) -> Result<Vec<i64>, AlgorithmError> {
    let tree = Tree::new(parent, wanted)?;
    rows.iter().map(|&row| tree.furthest_above(row)).collect()
}

struct Tree<'a> {
    parent: &'a [i64],
    wanted: &'a [bool],
}

impl<'a> Tree<'a> {
    fn new(parent: &'a [i64], wanted: &'a [bool]) -> Result<Self, AlgorithmError> {
        check_lengths([parent.len(), wanted.len()])?;
        Ok(Self { parent, wanted })
    }

    fn nearest_above(&self, row: i64) -> Result<i64, AlgorithmError> {
        let mut at = row;
        for _ in 0..=self.parent.len() {
            let Some(below) = index(at, self.parent.len())? else { return Ok(NO_ROW) };
            at = self.parent[below];
            if index(at, self.parent.len())?.is_some_and(|above| self.wanted[above]) {
                return Ok(at);
            }
        }
        Err(AlgorithmError::ParentCycle)
    }

    fn furthest_above(&self, row: i64) -> Result<i64, AlgorithmError> {
        let mut furthest = NO_ROW;
        let mut at = row;
        for _ in 0..=self.parent.len() {
            at = self.nearest_above(at)?;
            if at == NO_ROW {
                return Ok(furthest);
            }
            furthest = at;
        }
        Err(AlgorithmError::ParentCycle)
    }
}

/// Convert a row number to an index less than `count`; `None` for [`NO_ROW`].
fn index(row: i64, count: usize) -> Result<Option<usize>, AlgorithmError> {
    match usize::try_from(row) {
        Ok(index) if index < count => Ok(Some(index)),
        Err(_) if row == NO_ROW => Ok(None),
        _ => Err(AlgorithmError::Row(row)),
    }
}
