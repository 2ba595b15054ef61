//! Summaries and sums of small columns, and sums of random columns compared with a scan of every row.

use algorithms::name_sums::sums_by_name;
use algorithms::summaries::{summaries, Summaries};
use algorithms::AlgorithmError;
use proptest::prelude::*;

type Row = (u8, u32, i64, i64);

#[test]
fn a_name_with_two_kinds_forms_two_groups() {
    let sums = sums_by_name(&[1, 2, 1], &[4, 4, 4], &[10, 20, 30], &[-1, 1, 1], &[false, true]).unwrap();
    assert_eq!((sums.kind, sums.name), (vec![1, 2], vec![4, 4]));
    assert_eq!((sums.count, sums.sum), (vec![2, 1], vec![40, 20]));
    assert_eq!((sums.marked_count, sums.marked_sum), (vec![1, 1], vec![30, 20]));
}

#[test]
fn negative_values_count_as_zero() {
    let sums = sums_by_name(&[0, 0], &[0, 0], &[-5, 3], &[0, 0], &[true]).unwrap();
    assert_eq!((sums.count, sums.sum, sums.marked_sum), (vec![2], vec![3], vec![3]));
}

#[test]
fn summaries_hold_the_statistics_of_each_number() {
    let statistics = summaries(&[7, 2, 7, 7], &[2, 5, 4, -3]).unwrap();
    assert_eq!((statistics.number, statistics.count, statistics.sum), (vec![7, 2], vec![3, 1], vec![3, 5]));
    assert_eq!((statistics.min, statistics.max), (vec![-3, 5], vec![4, 5]));
    assert_eq!(statistics.std, [13_f64.sqrt(), 0.0]); // (1 + 9 + 16) / 2
    assert_eq!(summaries(&[], &[]).unwrap(), Summaries::default());
    assert_eq!(summaries(&[1], &[]).unwrap_err(), AlgorithmError::Lengths(1, 0));
}

#[test]
fn columns_of_different_lengths_and_missing_marks_are_errors() {
    assert_eq!(sums_by_name(&[0], &[], &[0], &[0], &[true]).unwrap_err(), AlgorithmError::Lengths(1, 0));
    assert_eq!(sums_by_name(&[0], &[0], &[0], &[1], &[true]).unwrap_err(), AlgorithmError::Row(1));
    assert_eq!(sums_by_name(&[0], &[0], &[0], &[-2], &[true]).unwrap_err(), AlgorithmError::Row(-2));
}

proptest! {
    #[test]
    fn sums_equal_sums_of_each_group_alone(rows in prop::collection::vec((0_u8..3, 0_u32..4, -9_i64..99, -1_i64..3), 0..30)) {
        let kind: Vec<u8> = rows.iter().map(|row| row.0).collect();
        let name: Vec<u32> = rows.iter().map(|row| row.1).collect();
        let value: Vec<i64> = rows.iter().map(|row| row.2).collect();
        let mark: Vec<i64> = rows.iter().map(|row| row.3).collect();
        let is_marked = [false, true, true];
        let sums = sums_by_name(&kind, &name, &value, &mark, &is_marked).unwrap();
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
