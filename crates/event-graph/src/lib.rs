//! Longest paths through a graph of events.
//!
//! Nodes are numbered from 0; edge `i` leads from `source[i]` to `target[i]`. Node 0 comes before everything.

mod topology;

use std::fmt;

use topology::Topology;

/// Stands for "no edge" where the number of an edge is expected.
pub const NO_EDGE: i64 = -1;

/// Why a graph has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphError {
    /// Some nodes come before themselves.
    Cycle,
    /// The arrays that describe edges are not equally long.
    Lengths,
    /// An edge names a node that is not there.
    Node(u32),
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle => write!(f, "the graph has a cycle"),
            Self::Lengths => write!(f, "the arrays of the edges are not equally long"),
            Self::Node(node) => write!(f, "an edge names node {node}, which is not there"),
        }
    }
}

impl std::error::Error for GraphError {}

/// The graph itself: who comes before whom.
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
    /// The arrays differ in length, or name a node that is not there.
    pub fn new(node_count: usize, source: &'a [u32], target: &'a [u32]) -> Result<Self, GraphError> {
        if source.len() != target.len() {
            return Err(GraphError::Lengths);
        }
        match source.iter().chain(target).copied().find(|&node| node as usize >= node_count) {
            Some(node) => Err(GraphError::Node(node)),
            None => Ok(Self { node_count, source, target }),
        }
    }

    /// Whether some node comes before itself.
    #[must_use]
    pub fn has_cycle(&self) -> bool {
        Topology::new(self).order().is_err()
    }

    /// The edge into each node with the greatest `arrival`, of equal ones the first; `NO_EDGE` where none leads in.
    ///
    /// # Errors
    ///
    /// `arrival` is not as long as the edges.
    pub fn binding(&self, arrival: &[i64]) -> Result<Vec<i64>, GraphError> {
        self.checked(arrival)?;
        let mut best = vec![NO_EDGE; self.node_count];
        for (edge, (&target, &moment)) in self.target.iter().zip(arrival).enumerate() {
            let held = &mut best[target as usize];
            if *held == NO_EDGE || moment > arrival[*held as usize] {
                *held = edge as i64;
            }
        }
        Ok(best)
    }

    /// When each node is reached at the earliest: the longest way from any node without a predecessor, which is at 0.
    ///
    /// # Errors
    ///
    /// There is a cycle, or `weight` is not as long as the edges.
    pub fn earliest(&self, weight: &[i64]) -> Result<Vec<i64>, GraphError> {
        self.checked(weight)?;
        let topology = Topology::new(self);
        let mut times: Vec<Option<i64>> = vec![None; self.node_count];
        for node in topology.order()? {
            let reached = *times[node as usize].get_or_insert(0);
            for edge in topology.leaving(node) {
                let arrival = reached.saturating_add(weight[edge]);
                let held = &mut times[self.target[edge] as usize];
                *held = Some(held.map_or(arrival, |known| known.max(arrival)));
            }
        }
        Ok(times.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// How much later each node could be without a node being later that nothing follows.
    ///
    /// `spare` is by how much later the source of each edge could be without its target being later.
    ///
    /// # Errors
    ///
    /// There is a cycle, or `spare` is not as long as the edges.
    pub fn slack(&self, spare: &[i64]) -> Result<Vec<i64>, GraphError> {
        self.checked(spare)?;
        let topology = Topology::new(self);
        let mut slack = vec![0_i64; self.node_count];
        for &node in topology.order()?.iter().rev() {
            let least = topology
                .leaving(node)
                .map(|edge| slack[self.target[edge] as usize].saturating_add(spare[edge]))
                .min();
            slack[node as usize] = least.unwrap_or(0);
        }
        Ok(slack)
    }

    /// The edges on the way back from `last` along the edge given for each node, in order from the first on.
    ///
    /// # Errors
    ///
    /// The way runs in a circle, or leads to a node or an edge that is not there.
    pub fn way_to(&self, last: u32, binding: &[i64]) -> Result<Vec<u32>, GraphError> {
        let mut way = Vec::new();
        let mut node = last;
        loop {
            let edge = *binding.get(node as usize).ok_or(GraphError::Node(node))?;
            let Ok(edge) = usize::try_from(edge) else { break };
            node = *self.source.get(edge).ok_or(GraphError::Lengths)?;
            way.push(edge as u32);
            if way.len() > self.node_count {
                return Err(GraphError::Cycle);
            }
        }
        way.reverse();
        Ok(way)
    }

    fn checked(&self, values: &[i64]) -> Result<(), GraphError> {
        if values.len() == self.source.len() {
            Ok(())
        } else {
            Err(GraphError::Lengths)
        }
    }
}
