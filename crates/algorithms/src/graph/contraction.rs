//! A smaller graph with the same longest paths between some of its nodes.

use std::collections::{HashMap, VecDeque};

use super::topology::Topology;
use super::Edges;
use crate::error::{check_lengths, AlgorithmError};

const NONE: u32 = u32::MAX;
/// If more edges than this leave the source of an edge, and more edges than this enter its target, the edge is looked
/// up in a hash table instead of a list.
const LONG: u32 = 32;

/// The edges of the smaller graph, whose nodes keep the numbers from the original graph.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Contracted {
    /// Where each edge begins.
    pub source: Vec<u32>,
    /// Where each edge ends.
    pub target: Vec<u32>,
    /// The length of the longest path that each edge replaces.
    pub weight: Vec<i64>,
}

impl Edges<'_> {
    /// Remove each node that need not be kept if its removal does not increase the number of edges. The longest path
    /// between any two kept nodes stays as long as it was.
    ///
    /// A node with i incoming and o outgoing edges is removed only if i·o ≤ i + o, because up to i·o edges replace its
    /// edges. Of parallel edges, only the longest is kept. The remaining edges are sorted by source and target.
    ///
    /// # Errors
    ///
    /// Fails if the graph has a cycle, if `weight` does not have one value per edge, or if `is_kept` does not have one
    /// value per node.
    pub fn contract(&self, weight: &[i64], is_kept: &[bool]) -> Result<Contracted, AlgorithmError> {
        check_lengths([self.source.len(), weight.len()])?;
        check_lengths([self.node_count, is_kept.len()])?;
        let mut waiting = VecDeque::from(Topology::new(self).order()?);
        let mut graph = Linked::new(self, weight);
        let mut is_waiting = vec![true; self.node_count];
        while let Some(node) = waiting.pop_front() {
            is_waiting[node as usize] = false;
            if is_kept[node as usize] || !graph.may_go(node) {
                continue;
            }
            for neighbour in graph.eliminate(node) {
                if !is_kept[neighbour as usize]
                    && !std::mem::replace(&mut is_waiting[neighbour as usize], true)
                {
                    waiting.push_front(neighbour);
                }
            }
        }
        Ok(graph.edges())
    }
}

/// At this index, [`Linked::ends`] contains the sources; the other pairs of arrays list the outgoing edges.
const OUT: usize = 0;
/// At this index, [`Linked::ends`] contains the targets; the other pairs of arrays list the incoming edges.
const IN: usize = 1;

/// Edges in doubly linked lists. Each node has two lists: the edges that leave it, and the edges that enter it.
struct Linked {
    /// Source and target of each edge.
    ends: [Vec<u32>; 2],
    weight: Vec<i64>,
    next: [Vec<u32>; 2],
    previous: [Vec<u32>; 2],
    first: [Vec<u32>; 2],
    count: [Vec<u32>; 2],
    is_used: Vec<bool>,
    free: Vec<u32>,
    between_long: HashMap<(u32, u32), u32>,
}

impl Linked {
    fn new(edges: &Edges<'_>, weight: &[i64]) -> Self {
        let (node_count, edge_count) = (edges.node_count, edges.source.len());
        let of_nodes = |value| [vec![value; node_count], vec![value; node_count]];
        let of_edges = || [vec![NONE; edge_count], vec![NONE; edge_count]];
        let mut graph = Self {
            ends: of_edges(),
            weight: vec![0; edge_count],
            next: of_edges(),
            previous: of_edges(),
            first: of_nodes(NONE),
            count: of_nodes(0),
            is_used: vec![false; edge_count],
            free: (0..edge_count as u32).rev().collect(),
            between_long: HashMap::new(),
        };
        for ((&source, &target), &length) in edges.source.iter().zip(edges.target).zip(weight) {
            graph.add(source, target, length);
        }
        graph
    }

    fn may_go(&self, node: u32) -> bool {
        let (into, out) =
            (u64::from(self.count[IN][node as usize]), u64::from(self.count[OUT][node as usize]));
        into * out <= into + out
    }

    /// Replace the edges of a node by edges between its neighbours, and return the neighbours.
    fn eliminate(&mut self, node: u32) -> Vec<u32> {
        let [out, into] = [OUT, IN].map(|side| self.list(side, node));
        let before: Vec<_> =
            into.iter().map(|&edge| (self.ends[OUT][edge as usize], self.weight[edge as usize])).collect();
        let after: Vec<_> =
            out.iter().map(|&edge| (self.ends[IN][edge as usize], self.weight[edge as usize])).collect();
        for &edge in out.iter().chain(&into) {
            self.remove(edge);
        }
        for &(source, first) in &before {
            for &(target, second) in &after {
                self.add(source, target, first.saturating_add(second));
            }
        }
        before.into_iter().chain(after).map(|(neighbour, _)| neighbour).collect()
    }

    /// The edges that leave a node if `side` is [`OUT`], or that enter it if `side` is [`IN`].
    fn list(&self, side: usize, node: u32) -> Vec<u32> {
        let mut edges = Vec::with_capacity(self.count[side][node as usize] as usize);
        let mut edge = self.first[side][node as usize];
        while edge != NONE {
            edges.push(edge);
            edge = self.next[side][edge as usize];
        }
        edges
    }

    /// Add an edge; if there is already an edge between the two nodes, keep the longer one.
    fn add(&mut self, source: u32, target: u32, weight: i64) {
        if let Some(edge) = self.known(source, target) {
            let longest = &mut self.weight[edge as usize];
            *longest = weight.max(*longest);
            return;
        }
        let Some(edge) = self.free.pop() else { return };
        self.is_used[edge as usize] = true;
        self.weight[edge as usize] = weight;
        for (side, node) in [(OUT, source), (IN, target)] {
            self.ends[side][edge as usize] = node;
            let head = std::mem::replace(&mut self.first[side][node as usize], edge);
            self.next[side][edge as usize] = head;
            self.previous[side][edge as usize] = NONE;
            if head != NONE {
                self.previous[side][head as usize] = edge;
            }
            self.count[side][node as usize] += 1;
        }
        if self.are_long(source, target) {
            self.between_long.insert((source, target), edge);
        }
    }

    fn remove(&mut self, edge: u32) {
        for side in [OUT, IN] {
            let node = self.ends[side][edge as usize] as usize;
            let (before, after) = (self.previous[side][edge as usize], self.next[side][edge as usize]);
            match before {
                NONE => self.first[side][node] = after,
                _ => self.next[side][before as usize] = after,
            }
            if after != NONE {
                self.previous[side][after as usize] = before;
            }
            self.count[side][node] -= 1;
        }
        self.is_used[edge as usize] = false;
        self.free.push(edge);
    }

    /// Look up the edge between two nodes. If both nodes have many edges, an existing edge may not be found; the caller
    /// then adds a parallel edge, which does no harm.
    fn known(&self, source: u32, target: u32) -> Option<u32> {
        if self.are_long(source, target) {
            let edge = *self.between_long.get(&(source, target))?;
            let is_same = self.is_used[edge as usize]
                && self.ends[OUT][edge as usize] == source
                && self.ends[IN][edge as usize] == target;
            return is_same.then_some(edge);
        }
        let shorter_out = self.count[OUT][source as usize] <= self.count[IN][target as usize];
        let (side, node, other) = if shorter_out { (OUT, source, target) } else { (IN, target, source) };
        let mut edge = self.first[side][node as usize];
        while edge != NONE && self.ends[1 - side][edge as usize] != other {
            edge = self.next[side][edge as usize];
        }
        (edge != NONE).then_some(edge)
    }

    fn are_long(&self, source: u32, target: u32) -> bool {
        self.count[OUT][source as usize] > LONG && self.count[IN][target as usize] > LONG
    }

    fn edges(&self) -> Contracted {
        let mut used: Vec<_> = (0..self.weight.len())
            .filter(|&edge| self.is_used[edge])
            .map(|edge| (self.ends[OUT][edge], self.ends[IN][edge], self.weight[edge]))
            .collect();
        used.sort_unstable_by_key(|&(source, target, weight)| (source, target, std::cmp::Reverse(weight)));
        used.dedup_by_key(|&mut (source, target, _)| (source, target));
        let mut contracted = Contracted::default();
        for (source, target, weight) in used {
            contracted.source.push(source);
            contracted.target.push(target);
            contracted.weight.push(weight);
        }
        contracted
    }
}
