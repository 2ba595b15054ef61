//! The error type of all algorithms.

/// An invalid input of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AlgorithmError {
    /// Columns of the same table differ in length.
    #[error("the arrays differ in length: {0} and {1}")]
    Lengths(usize, usize),
    /// A table has more rows than 32 bits can number.
    #[error("the arrays have {0} rows; at most 4294967295 are possible")]
    TooManyRows(usize),
    /// A column refers to a row outside its table.
    #[error("row {0} does not exist")]
    Row(i64),
    /// The group number of an interval is too large for the given number of groups.
    #[error("group {0} does not exist")]
    Group(u32),
    /// An edge refers to a node outside the graph.
    #[error("node {0} does not exist")]
    Node(u32),
    /// A node refers to an edge outside the graph.
    #[error("edge {0} does not exist")]
    Edge(i64),
    /// A row is its own ancestor.
    #[error("the parents form a cycle")]
    ParentCycle,
    /// A path leads from a node back to itself.
    #[error("the graph has a cycle")]
    GraphCycle,
}

/// Check that columns have the same length.
pub(crate) fn check_lengths<const N: usize>(lengths: [usize; N]) -> Result<(), AlgorithmError> {
    match lengths.iter().find(|&&length| length != lengths[0]) {
        Some(&other) => Err(AlgorithmError::Lengths(lengths[0], other)),
        None => Ok(()),
    }
}

/// Check that a `u32` can hold every row number.
pub(crate) fn check_row_count(count: usize) -> Result<(), AlgorithmError> {
    match u32::try_from(count) {
        Ok(_) => Ok(()),
        Err(_) => Err(AlgorithmError::TooManyRows(count)),
    }
}
