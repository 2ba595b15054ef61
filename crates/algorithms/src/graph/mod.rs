//! Directed graphs: nodes are numbered from 0, and edge `i` leads from `source[i]` to `target[i]`.

mod chains;
mod contraction;
mod longest_path;
mod topology;

use crate::error::{check_lengths, check_row_count, AlgorithmError};
pub use chains::Chains;
pub use contraction::Contracted;
pub use longest_path::MeasuredBinding;
use topology::Topology;

/// In a column that gives one edge per node: the node has no such edge.
pub const NO_EDGE: i64 = -1;

/// The edges of a graph, each from its source to its target.
#[derive(Debug, Clone, Copy)]
pub struct Edges<'a> {
    node_count: usize,
    source: &'a [u32],
    target: &'a [u32],
}

impl<'a> Edges<'a> {
    /// Edges between `node_count` nodes.
    ///
    /// # Errors
    ///
    /// The columns differ in length or have too many rows, or an edge refers to a node that does not exist.
    pub fn new(node_count: usize, source: &'a [u32], target: &'a [u32]) -> Result<Self, AlgorithmError> {
        check_lengths([source.len(), target.len()])?;
        check_row_count(source.len())?;
        match source.iter().chain(target).copied().find(|&node| node as usize >= node_count) {
            Some(node) => Err(AlgorithmError::Node(node)),
            None => Ok(Self { node_count, source, target }),
        }
    }

    /// Whether the edges form a cycle.
    #[must_use]
    pub fn has_cycle(&self) -> bool {
        let leads_back = self.source.iter().zip(self.target).any(|(source, target)| source >= target);
        leads_back && Topology::new(self).order().is_err()
    }
}
