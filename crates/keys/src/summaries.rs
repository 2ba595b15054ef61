//! Statistics of what has the same number.

use crate::KeysError;

/// Stands for "no group" where the place of one is expected.
const NONE: u32 = u32::MAX;

/// Statistics of the values of each number, in the order of their first rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summaries {
    /// The number.
    pub number: Vec<u32>,
    /// How many values there are.
    pub count: Vec<i64>,
    /// Their sum.
    pub sum: Vec<i64>,
    /// The smallest.
    pub min: Vec<i64>,
    /// The greatest.
    pub max: Vec<i64>,
    /// Their standard deviation, as that of a sample; 0 for one value.
    pub std: Vec<f64>,
}

/// Summarise the values of each number. A place is made for each number up to the greatest.
///
/// # Errors
///
/// The columns differ in length.
pub fn summaries(number: &[u32], value: &[i64]) -> Result<Summaries, KeysError> {
    if number.len() != value.len() || u32::try_from(number.len()).is_err() {
        return Err(KeysError::Lengths);
    }
    let mut group_at = vec![NONE; number.iter().max().map_or(0, |&greatest| greatest as usize + 1)];
    let mut found = Summaries::default();
    for (&number, &value) in number.iter().zip(value) {
        let group = &mut group_at[number as usize];
        if *group == NONE {
            *group = found.number.len() as u32;
            found.begin(number, value);
        }
        found.add(*group as usize, value);
    }
    found.std = found.deviations(number.iter().map(|&number| group_at[number as usize] as usize).zip(value));
    Ok(found)
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

    /// A pass of its own: the sum of squares less the square of the sum would lose the digits of long times.
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
