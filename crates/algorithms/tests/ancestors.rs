//! Depths and ancestors of small trees.

use algorithms::ancestors::{depths, furthest_above, nearest_above};
use algorithms::{AlgorithmError, NO_ROW};

#[test]
fn the_nearest_and_furthest_wanted_ancestors_differ() {
    let (parent, wanted) = ([NO_ROW, 0, 1, 2], [true, false, true, false]);
    assert_eq!(nearest_above(&parent, &wanted, &[3, 2, 1, 0, NO_ROW]).unwrap(), [2, 0, 0, -1, -1]);
    assert_eq!(furthest_above(&parent, &wanted, &[3, 2, 1, 0, NO_ROW]).unwrap(), [0, 0, 0, -1, -1]);
    assert_eq!(depths(&[1, 2, NO_ROW, 1]).unwrap(), [2, 1, 0, 2]);
}

#[test]
fn missing_rows_are_errors() {
    assert_eq!(nearest_above(&[NO_ROW], &[true], &[1]), Err(AlgorithmError::Row(1)));
    assert_eq!(nearest_above(&[5], &[true], &[0]), Err(AlgorithmError::Row(5)));
    assert_eq!(depths(&[-2]), Err(AlgorithmError::Row(-2)));
    assert_eq!(nearest_above(&[NO_ROW], &[], &[]), Err(AlgorithmError::Lengths(1, 0)));
}

#[test]
fn a_cycle_is_an_error() {
    assert_eq!(depths(&[1, 0, 0]), Err(AlgorithmError::ParentCycle));
    assert_eq!(nearest_above(&[1, 0], &[false, false], &[0]), Err(AlgorithmError::ParentCycle));
    assert_eq!(furthest_above(&[1, 0], &[true, true], &[0]), Err(AlgorithmError::ParentCycle));
}
