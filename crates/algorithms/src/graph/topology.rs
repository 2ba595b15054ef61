//! The edges that leave each node, and a topological order of the nodes.

use super::Edges;
use crate::error::AlgorithmError;

/// The edges grouped by source.
pub(super) struct Topology<'a> {
    edges: &'a Edges<'a>,
    /// The edges of node `i` are `leaving[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    leaving: Vec<u32>,
}

impl<'a> Topology<'a> {
    pub(super) fn new(edges: &'a Edges<'a>) -> Self {
        let mut first = vec![0_u32; edges.node_count + 1];
        for &source in edges.source {
            first[source as usize + 1] += 1;
        }
        for node in 0..edges.node_count {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut leaving = vec![0_u32; edges.source.len()];
        for (edge, &source) in edges.source.iter().enumerate() {
            let slot = &mut next[source as usize];
            leaving[*slot as usize] = edge as u32;
            *slot += 1;
        }
        Self { edges, first, leaving }
    }

    /// The edges that leave a node.
    pub(super) fn leaving(&self, node: u32) -> impl Iterator<Item = usize> + '_ {
        let (begin, end) = (self.first[node as usize] as usize, self.first[node as usize + 1] as usize);
        self.leaving[begin..end].iter().map(|&edge| edge as usize)
    }

    /// All nodes, each after its predecessors ([Kahn's algorithm](https://doi.org/10.1145/368996.369025)).
    pub(super) fn order(&self) -> Result<Vec<u32>, AlgorithmError> {
        let mut missing = vec![0_u32; self.edges.node_count];
        for &target in self.edges.target {
            missing[target as usize] += 1;
        }
        let mut order: Vec<u32> =
            (0..self.edges.node_count as u32).filter(|&node| missing[node as usize] == 0).collect();
        let mut done = 0;
        while done < order.len() {
            let node = order[done];
            done += 1;
            for edge in self.leaving(node) {
                let target = self.edges.target[edge];
                missing[target as usize] -= 1;
                if missing[target as usize] == 0 {
                    order.push(target);
                }
            }
        }
        if done == self.edges.node_count {
            Ok(order)
        } else {
            Err(AlgorithmError::GraphCycle)
        }
    }
}
