//! The answers on small columns, and against twins that look at each row.

use keys::{only_matches, summaries, sums_by_name, KeysError, NO_MATCH, SEVERAL};
use proptest::prelude::*;

type Row = (u8, u32, i64, i64);

fn twin(offered: &[i64], key: i64) -> i64 {
    let rows: Vec<usize> = (0..offered.len()).filter(|&row| offered[row] == key).collect();
    match rows[..] {
        [] => NO_MATCH,
        [row] => row as i64,
        _ => SEVERAL,
    }
}

#[test]
fn keys_are_found_once_or_several_times_or_not() {
    assert_eq!(
        only_matches(&[7, 5, 7, 9], &[5, 7, 8, 9, 4, 10]).unwrap(),
        [1, SEVERAL, NO_MATCH, 3, NO_MATCH, NO_MATCH]
    );
    assert_eq!(only_matches::<i64>(&[], &[0, 1]).unwrap(), [NO_MATCH, NO_MATCH]);
}

#[test]
fn keys_far_apart_are_found_as_well() {
    let offered = [i64::MAX, i64::MIN, 0, i64::MAX];
    assert_eq!(only_matches(&offered, &[i64::MIN, i64::MAX, 0, 1]).unwrap(), [1, SEVERAL, 2, NO_MATCH]);
}

#[test]
fn wanted_keys_far_from_those_offered_are_not_there() {
    assert_eq!(only_matches(&[i64::MIN], &[i64::MAX]).unwrap(), [NO_MATCH]);
    assert_eq!(only_matches(&[i64::MAX], &[i64::MIN]).unwrap(), [NO_MATCH]);
}

#[test]
fn a_name_of_two_kinds_is_two_groups() {
    let sums = sums_by_name(&[1, 2, 1], &[4, 4, 4], &[10, 20, 30], &[-1, 1, 1], &[false, true]).unwrap();
    assert_eq!((sums.kind, sums.name), (vec![1, 2], vec![4, 4]));
    assert_eq!((sums.count, sums.sum), (vec![2, 1], vec![40, 20]));
    assert_eq!((sums.marked_count, sums.marked_sum), (vec![1, 1], vec![30, 20]));
}

#[test]
fn values_below_zero_count_as_zero() {
    let sums = sums_by_name(&[0, 0], &[0, 0], &[-5, 3], &[0, 0], &[true]).unwrap();
    assert_eq!((sums.count, sums.sum, sums.marked_sum), (vec![2], vec![3], vec![3]));
}

#[test]
fn values_of_a_number_are_summarised() {
    let found = summaries(&[7, 2, 7, 7], &[2, 5, 4, -3]).unwrap();
    assert_eq!((found.number, found.count, found.sum), (vec![7, 2], vec![3, 1], vec![3, 5]));
    assert_eq!((found.min, found.max), (vec![-3, 5], vec![4, 5]));
    assert_eq!(found.std, [13_f64.sqrt(), 0.0]); // (1 + 9 + 16) / 2
    assert_eq!(summaries(&[], &[]).unwrap(), keys::Summaries::default());
    assert_eq!(summaries(&[1], &[]).unwrap_err(), KeysError::Lengths);
}

#[test]
fn columns_of_different_lengths_are_errors() {
    assert_eq!(sums_by_name(&[0], &[], &[0], &[0], &[true]).unwrap_err(), KeysError::Lengths);
    assert_eq!(sums_by_name(&[0], &[0], &[0], &[1], &[true]).unwrap_err(), KeysError::Place(1));
    assert_eq!(sums_by_name(&[0], &[0], &[0], &[-2], &[true]).unwrap_err(), KeysError::Place(-2));
}

proptest! {
    #[test]
    fn matches_are_those_of_the_twin(offered in prop::collection::vec(-9_i64..9, 0..20), spread in 1_i64..1_000) {
        let offered: Vec<i64> = offered.iter().map(|key| key * spread).collect();
        let wanted: Vec<i64> = (-10..10).map(|key| key * spread).collect();
        let expected: Vec<i64> = wanted.iter().map(|&key| twin(&offered, key)).collect();
        prop_assert_eq!(only_matches(&offered, &wanted).unwrap(), expected);
    }

    #[test]
    fn matches_among_rising_keys_are_those_of_the_twin(offered in prop::collection::btree_set(0_i64..60, 0..20)) {
        let offered: Vec<i64> = offered.into_iter().collect();
        let wanted: Vec<i64> = (0..62).chain((0..62).rev()).chain([i64::MAX, 7, 40, 3]).collect();
        let expected: Vec<i64> = wanted.iter().map(|&key| twin(&offered, key)).collect();
        prop_assert_eq!(only_matches(&offered, &wanted).unwrap(), expected);
    }

    #[test]
    fn sums_are_those_of_the_twin(rows in prop::collection::vec((0_u8..3, 0_u32..4, -9_i64..99, -1_i64..3), 0..30)) {
        let kind: Vec<u8> = rows.iter().map(|row| row.0).collect();
        let name: Vec<u32> = rows.iter().map(|row| row.1).collect();
        let value: Vec<i64> = rows.iter().map(|row| row.2).collect();
        let place: Vec<i64> = rows.iter().map(|row| row.3).collect();
        let is_marked = [false, true, true];
        let sums = sums_by_name(&kind, &name, &value, &place, &is_marked).unwrap();
        prop_assert_eq!(sums.count.iter().sum::<i64>(), rows.len() as i64);
        for (at, (&kind, &name)) in sums.kind.iter().zip(&sums.name).enumerate() {
            let of_group = |row: &&Row| (row.0, row.1) == (kind, name);
            let group: Vec<&Row> = rows.iter().filter(of_group).collect();
            let marked: Vec<&&Row> = group.iter().filter(|row| row.3 > 0).collect();
            prop_assert_eq!(sums.count[at], group.len() as i64);
            prop_assert_eq!(sums.sum[at], group.iter().map(|row| row.2.max(0)).sum::<i64>());
            prop_assert_eq!(sums.marked_count[at], marked.len() as i64);
            prop_assert_eq!(sums.marked_sum[at], marked.iter().map(|row| row.2.max(0)).sum::<i64>());
        }
    }
}
