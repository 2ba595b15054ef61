//! Longest paths: the time of each node, the edge that determines it, and the node's slack.

use super::topology::Topology;
use super::{Edges, NO_EDGE};
use crate::error::{check_lengths, AlgorithmError};

/// The edge that determines each node's measured time, and the delay after it; see [`Edges::measured_binding`].
#[derive(Debug, PartialEq, Eq)]
pub struct MeasuredBinding {
    /// For each node, the edge that determines its time (the first, if several do); [`NO_EDGE`] if no edge leads to the
    /// node.
    pub binding: Vec<i64>,
    /// For each edge in `binding`, the time between the arrival of the edge and the measured time of its target; 0 for
    /// all other edges.
    pub delay: Vec<i64>,
    /// The number of edges whose `arrival` is later than the measured time of their target.
    pub contradicted_count: usize,
}

impl Edges<'_> {
    /// For each node, the incoming edge with the latest `arrival` (the first, if there are several); [`NO_EDGE`] if no
    /// edge leads to the node.
    ///
    /// # Errors
    ///
    /// `arrival` does not have one value per edge.
    pub fn binding(&self, arrival: &[i64]) -> Result<Vec<i64>, AlgorithmError> {
        self.check_values(arrival)?;
        let mut binding = vec![NO_EDGE; self.node_count];
        for (edge, (&target, &time)) in self.target.iter().zip(arrival).enumerate() {
            let latest = &mut binding[target as usize];
            if *latest == NO_EDGE || time > arrival[*latest as usize] {
                *latest = edge as i64;
            }
        }
        Ok(binding)
    }

    /// For each node, the edge that determines its measured time: the incoming edge that arrives last. If an edge
    /// arrives later than the measured time of its target, its arrival is set to this time.
    ///
    /// # Errors
    ///
    /// `time` does not have one value per node, or `weight` does not have one value per edge.
    pub fn measured_binding(&self, time: &[i64], weight: &[i64]) -> Result<MeasuredBinding, AlgorithmError> {
        check_lengths([self.node_count, time.len()])?;
        self.check_values(weight)?;
        let mut latest = vec![0; self.node_count];
        let mut found = MeasuredBinding {
            binding: vec![NO_EDGE; self.node_count],
            delay: vec![0; weight.len()],
            contradicted_count: 0,
        };
        for (edge, (&source, &target)) in self.source.iter().zip(self.target).enumerate() {
            let target = target as usize;
            let arrival = time[source as usize].saturating_add(weight[edge]);
            found.contradicted_count += usize::from(arrival > time[target]);
            let arrival = arrival.min(time[target]);
            if found.binding[target] == NO_EDGE || arrival > latest[target] {
                found.binding[target] = edge as i64;
                latest[target] = arrival;
            }
        }
        for ((&edge, &time), arrival) in found.binding.iter().zip(time).zip(latest) {
            if edge != NO_EDGE {
                found.delay[edge as usize] = time.saturating_sub(arrival);
            }
        }
        Ok(found)
    }

    /// The earliest time of each node: the length of the longest path to it from a node without predecessors.
    ///
    /// # Errors
    ///
    /// Fails if the graph has a cycle, or if `weight` does not have one value per edge.
    pub fn earliest(&self, weight: &[i64]) -> Result<Vec<i64>, AlgorithmError> {
        self.check_values(weight)?;
        let topology = Topology::new(self);
        let mut times: Vec<Option<i64>> = vec![None; self.node_count];
        for node in topology.order()? {
            let reached = *times[node as usize].get_or_insert(0);
            for edge in topology.leaving(node) {
                let arrival = reached.saturating_add(weight[edge]);
                let latest = &mut times[self.target[edge] as usize];
                *latest = Some(latest.map_or(arrival, |known| known.max(arrival)));
            }
        }
        Ok(times.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// The slack of each node: the time by which it can be delayed without delaying a final node (a node without
    /// successors).
    ///
    /// `spare` is the time by which the source of each edge can be delayed without delaying the target of the edge.
    ///
    /// # Errors
    ///
    /// Fails if the graph has a cycle, or if `spare` does not have one value per edge.
    pub fn slack(&self, spare: &[i64]) -> Result<Vec<i64>, AlgorithmError> {
        self.check_values(spare)?;
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

    /// The edges of the path to `last`, in order: the `binding` edge of each node on the path.
    ///
    /// # Errors
    ///
    /// Fails if the graph has a cycle, or if the path refers to a node or edge that does not exist.
    pub fn path_to(&self, last: u32, binding: &[i64]) -> Result<Vec<u32>, AlgorithmError> {
        let mut path = Vec::new();
        let mut node = last;
        loop {
            let edge = *binding.get(node as usize).ok_or(AlgorithmError::Node(node))?;
            let Ok(row) = usize::try_from(edge) else { break };
            node = *self.source.get(row).ok_or(AlgorithmError::Edge(edge))?;
            path.push(row as u32);
            if path.len() > self.node_count {
                return Err(AlgorithmError::GraphCycle);
            }
        }
        path.reverse();
        Ok(path)
    }

    fn check_values(&self, values: &[i64]) -> Result<(), AlgorithmError> {
        check_lengths([self.source.len(), values.len()])
    }
}
