//! Nesting, coverage and lookup on small columns, and on random columns compared with oracles that check every pair.

use algorithms::ancestors::depths;
use algorithms::intervals::{holding, Intervals, Nesting, TimeSet};
use algorithms::{AlgorithmError, NO_ROW};
use proptest::prelude::*;

fn nest(intervals: &[(u32, i64, i64)]) -> Result<Nesting, AlgorithmError> {
    let group: Vec<u32> = intervals.iter().map(|interval| interval.0).collect();
    let start: Vec<i64> = intervals.iter().map(|interval| interval.1).collect();
    let end: Vec<i64> = intervals.iter().map(|interval| interval.2).collect();
    Intervals::new(&group, &start, &end).map(|intervals| intervals.nest())
}

#[test]
fn an_interval_that_ends_after_the_one_around_its_start_is_a_sibling() {
    let nesting = nest(&[(0, 0, 20), (0, 2, 10), (0, 8, 15), (0, 9, 12)]).unwrap();
    assert_eq!(nesting.parent, [NO_ROW, 0, 0, 2]);
    assert_eq!(nesting.depth, [0, 1, 1, 2]);
    assert_eq!(nesting.is_overlapping, [false, false, true, false]);
}

#[test]
fn of_equal_intervals_the_earlier_row_contains_the_other() {
    assert_eq!(nest(&[(0, 3, 3), (0, 3, 3), (0, 0, 5)]).unwrap().parent, [2, 0, NO_ROW]);
}

#[test]
fn intervals_of_different_groups_do_not_nest() {
    assert_eq!(nest(&[(7, 0, 9), (u32::MAX, 1, 2), (7, 1, 2)]).unwrap().parent, [NO_ROW, NO_ROW, 0]);
}

#[test]
fn extreme_times_do_not_overflow() {
    assert_eq!(nest(&[(0, i64::MIN, i64::MAX), (0, i64::MAX, i64::MAX)]).unwrap().parent, [NO_ROW, 0]);
}

#[test]
fn empty_columns_give_empty_results() {
    assert_eq!(nest(&[]).unwrap(), Nesting { parent: vec![], depth: vec![], is_overlapping: vec![] });
}

#[test]
fn columns_of_different_lengths_are_errors() {
    assert_eq!(Intervals::new(&[0], &[0], &[]).unwrap_err(), AlgorithmError::Lengths(1, 0));
}

#[test]
fn the_interval_that_began_last_holds_the_time_until_it_ends() {
    let (start, end) = ([0, 10, 12, 30], [20, 15, 14, 30]);
    let times = [14, 16, -1, 0, 9, 10, 12, 13, 11, 30, i64::MIN, i64::MAX];
    let expected = [-1, -1, -1, 0, 0, 1, 2, 2, 1, -1, -1, -1];
    assert_eq!(holding(&start, &end, &times).unwrap(), expected);
    assert_eq!(holding(&[], &[], &[1]).unwrap(), [NO_ROW]);
    assert_eq!(holding(&[1], &[], &[]), Err(AlgorithmError::Lengths(1, 0)));
}

#[test]
fn covered_time_counts_once_in_each_group() {
    let (group, start, end) = ([1, 0, 1, 1, 1], [20, 0, 0, 5, 9], [30, 4, 10, 12, 9]);
    let intervals = Intervals::new(&group, &start, &end).unwrap();
    assert_eq!(intervals.covered(3).unwrap(), [4, 22, 0]);
    assert_eq!(intervals.covered(1), Err(AlgorithmError::Group(1)));
}

/// The innermost interval around `row`: the one that begins last. Among intervals with the same start, the shortest one
/// wins; among equal intervals, the one in the last row.
fn parent_of(row: usize, intervals: &[(u32, i64, i64)]) -> i64 {
    let (group, start, end) = intervals[row];
    let contains = |&other: &usize| {
        let (of, from, to) = intervals[other];
        of == group && from <= start && end <= to && ((from, to) != (start, end) || other < row)
    };
    let ancestors = (0..intervals.len()).filter(contains);
    ancestors
        .max_by_key(|&other| (intervals[other].1, -intervals[other].2, other))
        .map_or(NO_ROW, |row| row as i64)
}

/// Random intervals in up to three groups, whose numbers are consecutive or far apart.
fn interval_columns() -> impl Strategy<Value = Vec<(u32, i64, i64)>> {
    let intervals = prop::collection::vec((0_u32..3, 0_i64..20, 0_i64..9), 0..40);
    (intervals, prop::sample::select(vec![1, u32::MAX / 2])).prop_map(|(intervals, scale)| {
        intervals.into_iter().map(|(group, start, length)| (group * scale, start, start + length)).collect()
    })
}

proptest! {
    #[test]
    fn the_parent_is_the_innermost_interval_around(intervals in interval_columns()) {
        let nesting = nest(&intervals).unwrap();
        let parent: Vec<i64> = (0..intervals.len()).map(|row| parent_of(row, &intervals)).collect();
        prop_assert_eq!(&nesting.parent, &parent);
        prop_assert_eq!(&nesting.depth, &depths(&parent).unwrap());
        for (row, &(group, start, end)) in intervals.iter().enumerate() {
            let begins_inside = intervals.iter().enumerate().any(|(other, &(of, from, to))| {
                of == group && parent[other] == parent[row] && from <= start && start < to && to < end
            });
            prop_assert_eq!(nesting.is_overlapping[row], begins_inside);
        }
    }

    #[test]
    fn the_order_equals_a_plain_sort(runs in prop::collection::vec((0_i64..400, 1_i64..60), 0..5)) {
        let start: Vec<i64> = runs.iter().flat_map(|&(first, length)| first..first + length).collect();
        let end: Vec<i64> = start.iter().map(|start| start + start % 7).collect();
        let group = vec![0; start.len()];
        let mut sorted: Vec<u32> = (0..start.len() as u32).collect();
        sorted.sort_by_key(|&row| (start[row as usize], -end[row as usize]));
        prop_assert_eq!(Intervals::new(&group, &start, &end).unwrap().order(), sorted);
    }

    #[test]
    fn covered_time_equals_a_count_of_covered_times(intervals in interval_columns()) {
        let small: Vec<_> = intervals.iter().map(|&(group, start, end)| (u32::from(group > 0), start, end)).collect();
        let (group, start): (Vec<u32>, Vec<i64>) = small.iter().map(|interval| (interval.0, interval.1)).unzip();
        let end: Vec<i64> = small.iter().map(|interval| interval.2).collect();
        let is_covered = |wanted, time| {
            small.iter().any(|&(group, start, end)| group == wanted && start <= time && time < end)
        };
        let expected = [0, 1].map(|group| (0..40).filter(|&time| is_covered(group, time)).count() as i64);
        prop_assert_eq!(Intervals::new(&group, &start, &end).unwrap().covered(2).unwrap(), expected);
    }
}

fn times(intervals: &[(i64, i64)]) -> Result<TimeSet, AlgorithmError> {
    let (start, end): (Vec<i64>, Vec<i64>) = intervals.iter().copied().unzip();
    TimeSet::union(&start, &end)
}

#[test]
fn a_union_merges_intervals_that_overlap_or_touch_in_any_order() {
    let union = times(&[(5, 8), (20, 30), (0, 6), (8, 9), (22, 25), (12, 12), (40, 35)]).unwrap();
    assert_eq!(union, TimeSet { start: vec![0, 20], end: vec![9, 30] });
}

#[test]
fn intersection_and_difference_divide_a_set() {
    let (first, second) =
        (times(&[(0, 10), (12, 20)]).unwrap(), times(&[(3, 4), (8, 14), (20, 25)]).unwrap());
    assert_eq!(first.intersection(&second), times(&[(3, 4), (8, 10), (12, 14)]).unwrap());
    assert_eq!(first.difference(&second), times(&[(0, 3), (4, 8), (14, 20)]).unwrap());
}

#[test]
fn a_set_without_times_takes_nothing_away() {
    let all = times(&[(i64::MIN, i64::MAX)]).unwrap();
    assert_eq!(all.difference(&times(&[]).unwrap()), all);
    assert_eq!(times(&[]).unwrap().difference(&all), times(&[]).unwrap());
    assert_eq!(all.difference(&all), times(&[]).unwrap());
}

#[test]
fn columns_of_different_lengths_are_no_times() {
    assert_eq!(TimeSet::union(&[1], &[]), Err(AlgorithmError::Lengths(1, 0)));
}
