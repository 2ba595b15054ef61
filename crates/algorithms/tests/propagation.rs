//! Tests of `Shares::pass_on`, which distributes amounts over a graph.

use algorithms::propagation::Shares;
use algorithms::AlgorithmError;

#[test]
fn amounts_add_up() -> Result<(), AlgorithmError> {
    let arrived = Shares::new(&[0, 1, 4], &[-1, 0, -2, -3], &[1, 1, 1, 1])?.pass_on(&[1], &[7], &[100])?;
    assert_eq!(arrived.target, [-3, -2, -1]);
    assert_eq!(arrived.amount.iter().sum::<i64>(), 100);
    assert_eq!(arrived.received, [33, 0]);
    Ok(())
}

#[test]
fn a_node_without_shares_keeps_what_it_receives() -> Result<(), AlgorithmError> {
    let arrived = Shares::new(&[0, 0], &[], &[])?.pass_on(&[0], &[1], &[5])?;
    assert_eq!((arrived.target, arrived.amount), (vec![0], vec![5]));
    Ok(())
}

#[test]
fn invalid_shares_are_errors() {
    assert_eq!(Shares::new(&[0, 1], &[0], &[1]).err(), Some(AlgorithmError::GraphCycle));
    assert_eq!(Shares::new(&[0, 2], &[-1], &[1]).err(), Some(AlgorithmError::Row(2)));
    assert_eq!(Shares::new(&[0], &[-1], &[]).err(), Some(AlgorithmError::Lengths(1, 0)));
}
