//! The distinct values of a column.

use std::collections::HashMap;

/// The distinct values of a column, in the order in which they first occur.
#[derive(Debug, PartialEq, Eq)]
pub struct Distinct {
    /// For each distinct value, the row in which it first occurs.
    pub first: Vec<i64>,
    /// For each row, the number assigned to its value.
    pub number: Vec<i64>,
}

/// Assign numbers to the distinct values of a column, in the order in which they first occur.
#[must_use]
pub fn distinct(values: &[i64]) -> Distinct {
    let mut numbers = HashMap::new();
    let mut first = Vec::new();
    let mut number = Vec::with_capacity(values.len());
    for (row, &value) in values.iter().enumerate() {
        number.push(*numbers.entry(value).or_insert_with(|| {
            first.push(row as i64);
            first.len() as i64 - 1
        }));
    }
    Distinct { first, number }
}
