//! The chains of binding edges that lead to chosen nodes. Edges that several chains share are stored once.

use super::{Edges, NO_EDGE};
use crate::error::{check_lengths, AlgorithmError};
use crate::NO_ROW;

/// Chains that share no edges. If a chain starts with edges of an earlier chain, only the earlier chain stores these
/// edges, and the later chain begins where it branches off.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chains {
    /// The edges of all chains, one chain after the other; the edges of each chain are listed backwards, from its end.
    pub edges: Vec<u32>,
    /// The edges of chain `i` are `edges[first[i]..first[i + 1]]`.
    pub first: Vec<i64>,
    /// For each chain, the earlier chain from which it branches off; [`NO_ROW`] for a chain that does not branch off.
    pub parent: Vec<i64>,
    /// The node where each chain begins.
    pub origin: Vec<u32>,
    /// For each chosen node, the chain that contains it.
    pub chain_of_end: Vec<i64>,
}

impl Edges<'_> {
    /// From each of `ends` in turn, follow the `binding` edges back to a node that belongs to an earlier chain or has
    /// no binding edge.
    ///
    /// # Errors
    ///
    /// `binding` does not have one value per node, `binding` refers to an edge that does not exist, or `ends` refers to
    /// a node that does not exist.
    pub fn chains(&self, binding: &[i64], ends: &[u32]) -> Result<Chains, AlgorithmError> {
        check_lengths([self.node_count, binding.len()])?;
        let mut chain_of_node = vec![NO_ROW; self.node_count];
        let mut chains = Chains { first: vec![0], ..Chains::default() };
        for &end in ends {
            let known = *chain_of_node.get(end as usize).ok_or(AlgorithmError::Node(end))?;
            if known != NO_ROW {
                chains.chain_of_end.push(known);
                continue;
            }
            let chain = chains.parent.len() as i64;
            let mut node = end;
            while chain_of_node[node as usize] == NO_ROW {
                chain_of_node[node as usize] = chain;
                let edge = binding[node as usize];
                if edge == NO_EDGE {
                    break;
                }
                let row = usize::try_from(edge).map_err(|_| AlgorithmError::Edge(edge))?;
                node = *self.source.get(row).ok_or(AlgorithmError::Edge(edge))?;
                chains.edges.push(row as u32);
            }
            let met = chain_of_node[node as usize];
            chains.parent.push(if met == chain { NO_ROW } else { met });
            chains.origin.push(node);
            chains.first.push(chains.edges.len() as i64);
            chains.chain_of_end.push(chain);
        }
        Ok(chains)
    }
}
