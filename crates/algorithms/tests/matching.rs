//! Tests `only_matches` on small columns, and on random columns, for which a scan of every row must
//! give the same result.

use algorithms::distinct::distinct;
use algorithms::matching::{only_matches, SEVERAL_ROWS};
use algorithms::NO_ROW;
use proptest::prelude::*;

/// Find the row of `offered` that equals the key by comparing the key with every row.
fn scan(offered: &[i64], key: i64) -> i64 {
    let rows: Vec<usize> = (0..offered.len()).filter(|&row| offered[row] == key).collect();
    match rows[..] {
        [] => NO_ROW,
        [row] => row as i64,
        _ => SEVERAL_ROWS,
    }
}

#[test]
fn a_key_gives_its_row_or_a_marker_for_several_or_none() {
    assert_eq!(
        only_matches(&[7, 5, 7, 9], &[5, 7, 8, 9, 4, 10]).unwrap(),
        [1, SEVERAL_ROWS, NO_ROW, 3, NO_ROW, NO_ROW]
    );
    assert_eq!(only_matches::<i64>(&[], &[0, 1]).unwrap(), [NO_ROW, NO_ROW]);
}

#[test]
fn keys_may_be_far_apart() {
    let offered = [i64::MAX, i64::MIN, 0, i64::MAX];
    assert_eq!(only_matches(&offered, &[i64::MIN, i64::MAX, 0, 1]).unwrap(), [1, SEVERAL_ROWS, 2, NO_ROW]);
}

#[test]
fn wanted_keys_may_be_far_from_the_offered_ones() {
    assert_eq!(only_matches(&[i64::MIN], &[i64::MAX]).unwrap(), [NO_ROW]);
    assert_eq!(only_matches(&[i64::MAX], &[i64::MIN]).unwrap(), [NO_ROW]);
}

proptest! {
    #[test]
    fn matches_equal_a_scan(offered in prop::collection::vec(-9_i64..9, 0..20), spread in 1_i64..1_000) {
        let offered: Vec<i64> = offered.iter().map(|key| key * spread).collect();
        let wanted: Vec<i64> = (-10..10).map(|key| key * spread).collect();
        let expected: Vec<i64> = wanted.iter().map(|&key| scan(&offered, key)).collect();
        prop_assert_eq!(only_matches(&offered, &wanted).unwrap(), expected);
    }

    #[test]
    fn matches_among_rising_keys_equal_a_scan(offered in prop::collection::btree_set(0_i64..60, 0..20)) {
        let offered: Vec<i64> = offered.into_iter().collect();
        let wanted: Vec<i64> = (0..62).chain((0..62).rev()).chain([i64::MAX, 7, 40, 3]).collect();
        let expected: Vec<i64> = wanted.iter().map(|&key| scan(&offered, key)).collect();
        prop_assert_eq!(only_matches(&offered, &wanted).unwrap(), expected);
    }
}

#[test]
fn distinct_values_are_numbered_as_they_first_occur() {
    let found = distinct(&[7, -1, 7, 3, -1]);
    assert_eq!((found.first, found.number), (vec![0, 1, 3], vec![0, 1, 0, 2, 1]));
}
