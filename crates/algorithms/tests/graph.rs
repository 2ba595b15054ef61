//! Longest paths of small graphs, and of random graphs compared with a slow recursion over all paths.

use algorithms::graph::{Edges, MeasuredBinding, NO_EDGE};
use algorithms::AlgorithmError;
use proptest::prelude::*;

/// The graph 0 → 1 → 3 and 0 → 2 → 3.
const SOURCE: [u32; 4] = [0, 0, 1, 2];
const TARGET: [u32; 4] = [1, 2, 3, 3];

fn diamond() -> Result<Edges<'static>, AlgorithmError> {
    Edges::new(4, &SOURCE, &TARGET)
}

#[test]
fn the_longest_path_determines_the_time_of_a_node() {
    assert_eq!(diamond().unwrap().earliest(&[1, 5, 1, 2]).unwrap(), [0, 1, 5, 7]);
}

#[test]
fn negative_weights_give_negative_times() {
    assert_eq!(diamond().unwrap().earliest(&[-3, -5, 0, 0]).unwrap(), [0, -3, -5, -3]);
}

#[test]
fn the_shorter_path_has_slack() {
    assert_eq!(diamond().unwrap().slack(&[0, 0, 5, 0]).unwrap(), [0, 5, 0, 0]);
}

#[test]
fn the_first_of_the_latest_arrivals_binds() {
    assert_eq!(diamond().unwrap().binding(&[1, 1, 4, 4]).unwrap(), [NO_EDGE, 0, 1, 2]);
    assert_eq!(diamond().unwrap().binding(&[1, 1, 4, 5]).unwrap(), [NO_EDGE, 0, 1, 3]);
}

#[test]
fn edges_arrive_at_most_at_the_measured_time() {
    let measured = |time, weight| diamond().unwrap().measured_binding(time, weight).unwrap();
    assert_eq!(
        measured(&[0, 4, 6, 9], &[1, 6, 1, 2]),
        MeasuredBinding { binding: vec![NO_EDGE, 0, 1, 3], delay: vec![3, 0, 0, 1], contradicted_count: 0 }
    );
    assert_eq!(
        measured(&[0, 4, 6, 5], &[4, 9, 1, 2]),
        MeasuredBinding { binding: vec![NO_EDGE, 0, 1, 2], delay: vec![0; 4], contradicted_count: 2 }
    );
}

#[test]
fn the_path_follows_the_binding_edges() {
    assert_eq!(diamond().unwrap().path_to(3, &[NO_EDGE, 0, 1, 3]).unwrap(), [1, 3]);
    assert_eq!(diamond().unwrap().path_to(0, &[NO_EDGE, 0, 1, 3]).unwrap(), [0_u32; 0]);
}

#[test]
fn a_cycle_is_an_error() {
    let cyclic = Edges::new(3, &[0, 1, 2], &[1, 2, 1]).unwrap();
    assert!(cyclic.has_cycle());
    assert_eq!(cyclic.earliest(&[1, 1, 1]), Err(AlgorithmError::GraphCycle));
    assert_eq!(cyclic.slack(&[1, 1, 1]), Err(AlgorithmError::GraphCycle));
    assert_eq!(cyclic.path_to(1, &[NO_EDGE, 2, 1]), Err(AlgorithmError::GraphCycle));
    assert!(!diamond().unwrap().has_cycle());
}

#[test]
fn edges_that_do_not_fit_the_graph_are_errors() {
    assert_eq!(Edges::new(2, &[0], &[0, 1]).unwrap_err(), AlgorithmError::Lengths(1, 2));
    assert_eq!(Edges::new(2, &[0], &[2]).unwrap_err(), AlgorithmError::Node(2));
    assert_eq!(diamond().unwrap().earliest(&[1]), Err(AlgorithmError::Lengths(4, 1)));
    assert_eq!(diamond().unwrap().path_to(9, &[NO_EDGE]), Err(AlgorithmError::Node(9)));
    assert_eq!(diamond().unwrap().path_to(0, &[17]), Err(AlgorithmError::Edge(17)));
}

#[test]
fn a_graph_without_edges_has_times_and_no_path() {
    let unconnected = Edges::new(2, &[], &[]).unwrap();
    assert_eq!(unconnected.earliest(&[]).unwrap(), [0, 0]);
    assert_eq!(unconnected.slack(&[]).unwrap(), [0, 0]);
    assert_eq!(unconnected.binding(&[]).unwrap(), [NO_EDGE, NO_EDGE]);
}

const NODES: u32 = 12;

/// Random graphs without cycles, renumbered so that node numbers and topological order differ.
fn graphs() -> impl Strategy<Value = Vec<(u32, u32, i64)>> {
    let edges = prop::collection::vec((0..NODES, 0..NODES, -5_i64..50), 0..40);
    (edges, Just((0..NODES).collect::<Vec<_>>()).prop_shuffle()).prop_map(|(edges, names)| {
        let forward = edges.into_iter().filter(|&(a, b, _)| a != b);
        forward.map(|(a, b, w)| (names[a.min(b) as usize], names[a.max(b) as usize], w)).collect()
    })
}

fn longest_to(node: u32, edges: &[(u32, u32, i64)]) -> i64 {
    let paths = edges.iter().filter(|edge| edge.1 == node);
    paths.map(|&(source, _, weight)| longest_to(source, edges) + weight).max().unwrap_or(0)
}

fn least_from(node: u32, edges: &[(u32, u32, i64)]) -> i64 {
    let paths = edges.iter().filter(|edge| edge.0 == node);
    paths.map(|&(_, target, spare)| least_from(target, edges) + spare).min().unwrap_or(0)
}

proptest! {
    #[test]
    fn earliest_and_slack_equal_a_recursion_over_all_paths(edges in graphs()) {
        let source: Vec<u32> = edges.iter().map(|edge| edge.0).collect();
        let target: Vec<u32> = edges.iter().map(|edge| edge.1).collect();
        let weight: Vec<i64> = edges.iter().map(|edge| edge.2).collect();
        let graph = Edges::new(NODES as usize, &source, &target).unwrap();
        let earliest: Vec<i64> = (0..NODES).map(|node| longest_to(node, &edges)).collect();
        let slack: Vec<i64> = (0..NODES).map(|node| least_from(node, &edges)).collect();
        prop_assert_eq!(graph.earliest(&weight).unwrap(), earliest);
        prop_assert_eq!(graph.slack(&weight).unwrap(), slack);
    }
}

#[test]
fn contraction_keeps_the_longest_of_parallel_paths() {
    let contracted = diamond().unwrap().contract(&[1, 5, 1, 2], &[true, false, false, true]).unwrap();
    assert_eq!((contracted.source, contracted.target, contracted.weight), (vec![0], vec![3], vec![7]));
}

#[test]
fn contraction_leaves_nodes_whose_removal_would_add_edges() {
    let source = [0, 1, 2, 3, 3, 3];
    let target = [3, 3, 3, 4, 5, 6];
    let graph = Edges::new(7, &source, &target).unwrap();
    let is_kept = [true, true, true, false, true, true, true];
    assert_eq!(graph.contract(&[1; 6], &is_kept).unwrap().source.len(), 6);
}

#[test]
fn contraction_rejects_cycles_and_wrong_lengths() {
    let cyclic = Edges::new(3, &[0, 1, 2], &[1, 2, 1]).unwrap();
    assert_eq!(cyclic.contract(&[1, 1, 1], &[false; 3]), Err(AlgorithmError::GraphCycle));
    assert_eq!(diamond().unwrap().contract(&[1], &[true; 4]), Err(AlgorithmError::Lengths(4, 1)));
    assert_eq!(diamond().unwrap().contract(&[1; 4], &[true]), Err(AlgorithmError::Lengths(4, 1)));
}

#[test]
fn contraction_of_a_node_with_many_neighbours_is_quick() {
    let count = 200_000_u32;
    let source: Vec<u32> = (0..count).flat_map(|_| [0]).chain(1..=count).collect();
    let target: Vec<u32> = (1..=count).chain((0..count).map(|_| count + 1)).collect();
    let mut is_kept = vec![false; count as usize + 2];
    is_kept[0] = true;
    is_kept[count as usize + 1] = true;
    let graph = Edges::new(is_kept.len(), &source, &target).unwrap();
    assert_eq!(graph.contract(&vec![1; source.len()], &is_kept).unwrap().weight, [2]);
}

proptest! {
    #[test]
    fn contraction_keeps_the_longest_paths_between_kept_nodes(
        edges in proptest::collection::vec((0_u32..12, 1_u32..12, 0_i64..20), 0..50),
        is_kept in proptest::collection::vec(any::<bool>(), 24),
    ) {
        let source: Vec<u32> = edges.iter().map(|&(from, _, _)| from).collect();
        let target: Vec<u32> = edges.iter().map(|&(from, by, _)| from + by).collect();
        let weight: Vec<i64> = edges.iter().map(|&(_, _, length)| length).collect();
        let contracted = Edges::new(24, &source, &target).unwrap().contract(&weight, &is_kept).unwrap();
        let before = all_longest(&source, &target, &weight);
        let after = all_longest(&contracted.source, &contracted.target, &contracted.weight);
        for from in 0..24 {
            for to in 0..24 {
                if is_kept[from] && is_kept[to] {
                    prop_assert_eq!(before[from][to], after[from][to]);
                }
            }
        }
        prop_assert!(contracted.weight.len() <= weight.len());
    }
}

/// The length of the longest path from each of 24 nodes to each other node. Every edge leads to a node with a higher
/// number, so each search visits the nodes in the order of their numbers.
fn all_longest(source: &[u32], target: &[u32], weight: &[i64]) -> Vec<Vec<Option<i64>>> {
    (0..24_usize).map(|from| longest_from(from, source, target, weight)).collect()
}

fn longest_from(from: usize, source: &[u32], target: &[u32], weight: &[i64]) -> Vec<Option<i64>> {
    let mut longest = vec![None; 24];
    longest[from] = Some(0);
    for middle in 0..24 {
        let Some(reached) = longest[middle] else { continue };
        for edge in (0..source.len()).filter(|&edge| source[edge] as usize == middle) {
            let to = &mut longest[target[edge] as usize];
            *to = (*to).max(Some(reached + weight[edge]));
        }
    }
    longest
}

#[test]
fn chains_share_their_beginning() -> Result<(), AlgorithmError> {
    let (source, target) = (vec![0, 1, 2, 1], vec![1, 2, 3, 4]);
    let chains = Edges::new(5, &source, &target)?.chains(&[-1, 0, 1, 2, 3], &[3, 4, 2])?;
    assert_eq!(chains.edges, [2, 1, 0, 3]);
    assert_eq!(chains.first, [0, 3, 4]);
    assert_eq!(chains.parent, [-1, 0]);
    assert_eq!(chains.origin, [0, 1]);
    assert_eq!(chains.chain_of_end, [0, 1, 0]);
    Ok(())
}
