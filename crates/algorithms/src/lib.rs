//! Algorithms on columns of numbers. They depend on neither Python nor traces.
//!
//! A table is a few slices of equal length; a row is an index into them. Columns that refer to rows use `i64`, with
//! [`NO_ROW`] for a missing row.

pub mod ancestors;
pub mod distinct;
mod error;
pub mod graph;
pub mod intervals;
pub mod matching;
pub mod name_sums;
pub mod propagation;
mod sorting;
pub mod summaries;
pub mod threads;

pub use error::AlgorithmError;

/// Marks a missing row in a column of row numbers.
pub const NO_ROW: i64 = -1;
