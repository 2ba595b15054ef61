//! The answers on small graphs, and against slow and obvious twins.

use event_graph::{Edges, GraphError, NO_EDGE};
use proptest::prelude::*;

/// 0 → 1 → 3 and 0 → 2 → 3.
const SOURCE: [u32; 4] = [0, 0, 1, 2];
const TARGET: [u32; 4] = [1, 2, 3, 3];

fn diamond() -> Result<Edges<'static>, GraphError> {
    Edges::new(4, &SOURCE, &TARGET)
}

#[test]
fn the_longest_way_decides_when_a_node_is_reached() {
    assert_eq!(diamond().unwrap().earliest(&[1, 5, 1, 2]).unwrap(), [0, 1, 5, 7]);
}

#[test]
fn a_weight_below_zero_may_reach_back() {
    assert_eq!(diamond().unwrap().earliest(&[-3, -5, 0, 0]).unwrap(), [0, -3, -5, -3]);
}

#[test]
fn slack_is_what_the_shorter_way_has_left() {
    assert_eq!(diamond().unwrap().slack(&[0, 0, 5, 0]).unwrap(), [0, 5, 0, 0]);
}

#[test]
fn the_latest_arrival_binds_and_of_equal_ones_the_first() {
    assert_eq!(diamond().unwrap().binding(&[1, 1, 4, 4]).unwrap(), [NO_EDGE, 0, 1, 2]);
    assert_eq!(diamond().unwrap().binding(&[1, 1, 4, 5]).unwrap(), [NO_EDGE, 0, 1, 3]);
}

#[test]
fn the_way_follows_the_binding_edges() {
    assert_eq!(diamond().unwrap().way_to(3, &[NO_EDGE, 0, 1, 3]).unwrap(), [1, 3]);
    assert_eq!(diamond().unwrap().way_to(0, &[NO_EDGE, 0, 1, 3]).unwrap(), [0_u32; 0]);
}

#[test]
fn a_cycle_is_an_error_and_no_endless_loop() {
    let circle = Edges::new(3, &[0, 1, 2], &[1, 2, 1]).unwrap();
    assert!(circle.has_cycle());
    assert_eq!(circle.earliest(&[1, 1, 1]), Err(GraphError::Cycle));
    assert_eq!(circle.slack(&[1, 1, 1]), Err(GraphError::Cycle));
    assert_eq!(circle.way_to(1, &[NO_EDGE, 2, 1]), Err(GraphError::Cycle));
    assert!(!diamond().unwrap().has_cycle());
}

#[test]
fn edges_that_do_not_fit_are_errors() {
    assert_eq!(Edges::new(2, &[0], &[0, 1]).unwrap_err(), GraphError::Lengths);
    assert_eq!(Edges::new(2, &[0], &[2]).unwrap_err(), GraphError::Node(2));
    assert_eq!(diamond().unwrap().earliest(&[1]), Err(GraphError::Lengths));
    assert_eq!(diamond().unwrap().way_to(9, &[NO_EDGE]), Err(GraphError::Node(9)));
    assert_eq!(diamond().unwrap().way_to(0, &[17]), Err(GraphError::Lengths));
}

#[test]
fn errors_say_what_is_wrong() {
    assert_eq!(GraphError::Node(2).to_string(), "an edge names node 2, which is not there");
    assert_eq!(GraphError::Cycle.to_string(), "the graph has a cycle");
    assert_eq!(GraphError::Lengths.to_string(), "the arrays of the edges are not equally long");
}

#[test]
fn a_graph_without_edges_has_answers() {
    let lonely = Edges::new(2, &[], &[]).unwrap();
    assert_eq!(lonely.earliest(&[]).unwrap(), [0, 0]);
    assert_eq!(lonely.slack(&[]).unwrap(), [0, 0]);
    assert_eq!(lonely.binding(&[]).unwrap(), [NO_EDGE, NO_EDGE]);
}

const NODES: u32 = 12;

/// Edges from smaller to greater numbers, renumbered, so that the order of the numbers tells nothing.
fn graphs() -> impl Strategy<Value = Vec<(u32, u32, i64)>> {
    let edges = prop::collection::vec((0..NODES, 0..NODES, -5_i64..50), 0..40);
    (edges, Just((0..NODES).collect::<Vec<_>>()).prop_shuffle()).prop_map(|(edges, names)| {
        let forward = edges.into_iter().filter(|&(a, b, _)| a != b);
        forward.map(|(a, b, w)| (names[a.min(b) as usize], names[a.max(b) as usize], w)).collect()
    })
}

fn longest_to(node: u32, edges: &[(u32, u32, i64)]) -> i64 {
    let ways = edges.iter().filter(|edge| edge.1 == node);
    ways.map(|&(source, _, weight)| longest_to(source, edges) + weight).max().unwrap_or(0)
}

fn least_from(node: u32, edges: &[(u32, u32, i64)]) -> i64 {
    let ways = edges.iter().filter(|edge| edge.0 == node);
    ways.map(|&(_, target, spare)| least_from(target, edges) + spare).min().unwrap_or(0)
}

proptest! {
    #[test]
    fn earliest_and_slack_are_those_of_all_ways_tried(edges in graphs()) {
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
