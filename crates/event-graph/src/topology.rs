//! The edges of each node, and an order in which every node comes after those before it.

use crate::{Edges, GraphError};

/// The edges sorted by source.
pub(crate) struct Topology<'a> {
    edges: &'a Edges<'a>,
    /// Where in `leaving` the edges of each node begin; one more entry than nodes.
    first: Vec<u32>,
    leaving: Vec<u32>,
}

impl<'a> Topology<'a> {
    pub(crate) fn new(edges: &'a Edges<'a>) -> Self {
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
            let place = &mut next[source as usize];
            leaving[*place as usize] = edge as u32;
            *place += 1;
        }
        Self { edges, first, leaving }
    }

    /// The edges that leave a node.
    pub(crate) fn leaving(&self, node: u32) -> impl Iterator<Item = usize> + '_ {
        let (begin, end) = (self.first[node as usize] as usize, self.first[node as usize + 1] as usize);
        self.leaving[begin..end].iter().map(|&edge| edge as usize)
    }

    /// All nodes, each after all from which an edge leads to it (Kahn's algorithm).
    pub(crate) fn order(&self) -> Result<Vec<u32>, GraphError> {
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
            Err(GraphError::Cycle)
        }
    }
}
