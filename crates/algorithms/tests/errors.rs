//! Error messages, which Python shows unchanged.

use algorithms::AlgorithmError::{Edge, GraphCycle, Group, Lengths, Node, ParentCycle, Row, TooManyRows};

#[test]
fn errors_say_what_is_wrong() {
    assert_eq!(Lengths(2, 1).to_string(), "the arrays differ in length: 2 and 1");
    assert_eq!(
        TooManyRows(1 << 32).to_string(),
        "the arrays have 4294967296 rows; at most 4294967295 are possible"
    );
    assert_eq!(Row(-2).to_string(), "row -2 does not exist");
    assert_eq!(Group(2).to_string(), "group 2 does not exist");
    assert_eq!(Node(2).to_string(), "node 2 does not exist");
    assert_eq!(Edge(2).to_string(), "edge 2 does not exist");
    assert_eq!(ParentCycle.to_string(), "the parents form a cycle");
    assert_eq!(GraphCycle.to_string(), "the graph has a cycle");
}
