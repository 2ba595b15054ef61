//! The time that intervals cover.

use super::Intervals;
use crate::error::AlgorithmError;
use crate::sorting::merge_runs;

impl Intervals<'_> {
    /// The time that the intervals of each group (0, 1, …) cover; overlaps count once.
    ///
    /// Goes through the intervals in order of start. Each interval adds the part of its time that is after the latest
    /// end so far in its group.
    ///
    /// # Errors
    ///
    /// [`AlgorithmError::Group`] if a group number is not below `group_count`.
    pub fn covered(&self, group_count: usize) -> Result<Vec<i64>, AlgorithmError> {
        if let Some(&group) = self.group.iter().find(|&&group| group as usize >= group_count) {
            return Err(AlgorithmError::Group(group));
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
}
