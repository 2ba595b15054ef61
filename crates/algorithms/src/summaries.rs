//! Statistics of values in groups; all rows of a group have the same number.

use crate::error::{check_lengths, check_row_count, AlgorithmError};

/// Marks a number for which no group exists yet.
const NO_GROUP: u32 = u32::MAX;

/// Statistics of each group, in the order in which the groups first appear.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summaries {
    /// The number that the group's rows share.
    pub number: Vec<u32>,
    /// The number of values of each group.
    pub count: Vec<i64>,
    /// The sum of the group's values.
    pub sum: Vec<i64>,
    /// The group's smallest value.
    pub min: Vec<i64>,
    /// The group's largest value.
    pub max: Vec<i64>,
    /// The sample standard deviation of the group's values; 0 for a single value.
    pub std: Vec<f64>,
}

/// Summarise the values of each group; rows with the same number form a group.
///
/// Memory grows with the largest number: every number up to it gets a slot in a table, which avoids hashing.
///
/// # Errors
///
/// The columns differ in length or have too many rows.
pub fn summaries(number: &[u32], value: &[i64]) -> Result<Summaries, AlgorithmError> {
    check_lengths([number.len(), value.len()])?;
    check_row_count(number.len())?;
    let mut group_of = vec![NO_GROUP; number.iter().max().map_or(0, |&largest| largest as usize + 1)];
    let mut summaries = Summaries::default();
    for (&number, &value) in number.iter().zip(value) {
        let group = &mut group_of[number as usize];
        if *group == NO_GROUP {
            *group = summaries.number.len() as u32;
            summaries.begin(number, value);
        }
        summaries.add(*group as usize, value);
    }
    let groups = number.iter().map(|&number| group_of[number as usize] as usize);
    summaries.std = summaries.deviations(groups.zip(value));
    Ok(summaries)
}

impl Summaries {
    fn begin(&mut self, number: u32, value: i64) {
        self.number.push(number);
        self.count.push(0);
        self.sum.push(0);
        self.min.push(value);
        self.max.push(value);
    }

    fn add(&mut self, group: usize, value: i64) {
        self.count[group] += 1;
        self.sum[group] = self.sum[group].wrapping_add(value);
        self.min[group] = self.min[group].min(value);
        self.max[group] = self.max[group].max(value);
    }

    /// Makes a second pass over the values. The formula for a single pass subtracts the squared sum from the sum of
    /// squares, and this difference loses digits if the values are large.
    fn deviations<'a>(&self, rows: impl Iterator<Item = (usize, &'a i64)>) -> Vec<f64> {
        let means: Vec<f64> =
            self.sum.iter().zip(&self.count).map(|(&sum, &count)| sum as f64 / count as f64).collect();
        let mut squares = vec![0.0; means.len()];
        for (group, &value) in rows {
            squares[group] += (value as f64 - means[group]).powi(2);
        }
        squares
            .iter()
            .zip(&self.count)
            .map(|(square, &count)| (square / (count - 1).max(1) as f64).sqrt())
            .collect()
    }
}
