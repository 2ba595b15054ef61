//! The answers on small columns, and against a twin that compares each pair.

use intervals::{
    depths, furthest_above, holding, nearest_above, Intervals, IntervalsError, Nesting, NO_PARENT,
};
use proptest::prelude::*;

fn nest(intervals: &[(u32, i64, i64)]) -> Result<Nesting, IntervalsError> {
    let group: Vec<u32> = intervals.iter().map(|each| each.0).collect();
    let start: Vec<i64> = intervals.iter().map(|each| each.1).collect();
    let end: Vec<i64> = intervals.iter().map(|each| each.2).collect();
    Intervals::new(&group, &start, &end).map(|intervals| intervals.nest())
}

#[test]
fn an_interval_that_outlives_the_one_it_began_in_is_its_sibling() {
    let nesting = nest(&[(0, 0, 20), (0, 2, 10), (0, 8, 15), (0, 9, 12)]).unwrap();
    assert_eq!(nesting.parent, [NO_PARENT, 0, 0, 2]);
    assert_eq!(nesting.depth, [0, 1, 1, 2]);
    assert_eq!(nesting.is_overlapping, [false, false, true, false]);
}

#[test]
fn of_equal_intervals_the_earlier_row_is_outside() {
    assert_eq!(nest(&[(0, 3, 3), (0, 3, 3), (0, 0, 5)]).unwrap().parent, [2, 0, NO_PARENT]);
}

#[test]
fn intervals_of_other_groups_do_not_contain() {
    assert_eq!(nest(&[(7, 0, 9), (u32::MAX, 1, 2), (7, 1, 2)]).unwrap().parent, [NO_PARENT, NO_PARENT, 0]);
}

#[test]
fn the_greatest_times_do_not_overflow() {
    assert_eq!(nest(&[(0, i64::MIN, i64::MAX), (0, i64::MAX, i64::MAX)]).unwrap().parent, [NO_PARENT, 0]);
}

#[test]
fn no_intervals_have_no_nesting() {
    assert_eq!(nest(&[]).unwrap(), Nesting { parent: vec![], depth: vec![], is_overlapping: vec![] });
}

#[test]
fn columns_of_different_lengths_are_errors() {
    assert_eq!(Intervals::new(&[0], &[0], &[]).unwrap_err(), IntervalsError::Lengths);
    assert_eq!(nearest_above(&[NO_PARENT], &[], &[]), Err(IntervalsError::Lengths));
}

#[test]
fn climbing_stops_at_wanted_rows() {
    let (parent, wanted) = ([NO_PARENT, 0, 1, 2], [true, false, true, false]);
    assert_eq!(nearest_above(&parent, &wanted, &[3, 2, 1, 0, NO_PARENT]).unwrap(), [2, 0, 0, -1, -1]);
    assert_eq!(furthest_above(&parent, &wanted, &[3, 2, 1, 0, NO_PARENT]).unwrap(), [0, 0, 0, -1, -1]);
    assert_eq!(depths(&[1, 2, NO_PARENT, 1]).unwrap(), [2, 1, 0, 2]);
}

#[test]
fn a_moment_lies_in_the_interval_that_began_last_until_that_ends() {
    let (start, end) = ([0, 10, 12, 30], [20, 15, 14, 30]);
    let moments = [14, 16, -1, 0, 9, 10, 12, 13, 11, 30, i64::MIN, i64::MAX];
    let expected = [-1, -1, -1, 0, 0, 1, 2, 2, 1, -1, -1, -1];
    assert_eq!(holding(&start, &end, &moments).unwrap(), expected);
    assert_eq!(holding(&[], &[], &[1]).unwrap(), [NO_PARENT]);
    assert_eq!(holding(&[1], &[], &[]), Err(IntervalsError::Lengths));
}

#[test]
fn rows_that_are_not_there_are_errors() {
    assert_eq!(nearest_above(&[NO_PARENT], &[true], &[1]), Err(IntervalsError::Row(1)));
    assert_eq!(nearest_above(&[5], &[true], &[0]), Err(IntervalsError::Row(5)));
    assert_eq!(depths(&[-2]), Err(IntervalsError::Row(-2)));
}

#[test]
fn a_circle_is_an_error_and_no_endless_loop() {
    assert_eq!(depths(&[1, 0, 0]), Err(IntervalsError::Cycle));
    assert_eq!(nearest_above(&[1, 0], &[false, false], &[0]), Err(IntervalsError::Cycle));
    assert_eq!(furthest_above(&[1, 0], &[true, true], &[0]), Err(IntervalsError::Cycle));
}

#[test]
fn covered_time_counts_once_in_each_group() {
    let (group, start, end) = ([1, 0, 1, 1, 1], [20, 0, 0, 5, 9], [30, 4, 10, 12, 9]);
    let intervals = Intervals::new(&group, &start, &end).unwrap();
    assert_eq!(intervals.covered(3).unwrap(), [4, 22, 0]);
    assert_eq!(intervals.covered(1), Err(IntervalsError::Row(1)));
}

#[test]
fn errors_say_what_is_wrong() {
    assert_eq!(IntervalsError::Row(2).to_string(), "row 2 is named, which is not there");
    assert_eq!(IntervalsError::Cycle.to_string(), "a row lies above itself");
    assert_eq!(
        IntervalsError::Lengths.to_string(),
        "the arrays are not equally long, or longer than 32 bits count"
    );
}

/// The innermost of those that contain this one: it begins last, of equal starts it is the shortest, then the last.
fn parent_of(row: usize, intervals: &[(u32, i64, i64)]) -> i64 {
    let (group, start, end) = intervals[row];
    let contains = |&other: &usize| {
        let (of, from, to) = intervals[other];
        of == group && from <= start && end <= to && ((from, to) != (start, end) || other < row)
    };
    let around = (0..intervals.len()).filter(contains);
    around
        .max_by_key(|&other| (intervals[other].1, -intervals[other].2, other))
        .map_or(NO_PARENT, |row| row as i64)
}

/// Intervals of groups with small numbers, and of some with great ones.
fn interval_columns() -> impl Strategy<Value = Vec<(u32, i64, i64)>> {
    let intervals = prop::collection::vec((0_u32..3, 0_i64..20, 0_i64..9), 0..40);
    (intervals, prop::sample::select(vec![1, u32::MAX / 2])).prop_map(|(intervals, scale)| {
        intervals.into_iter().map(|(group, start, length)| (group * scale, start, start + length)).collect()
    })
}

proptest! {
    #[test]
    fn the_parent_is_the_innermost_that_contains(intervals in interval_columns()) {
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
    fn the_order_is_that_of_a_plain_sort(runs in prop::collection::vec((0_i64..400, 1_i64..60), 0..5)) {
        let start: Vec<i64> = runs.iter().flat_map(|&(first, length)| first..first + length).collect();
        let end: Vec<i64> = start.iter().map(|start| start + start % 7).collect();
        let group = vec![0; start.len()];
        let mut sorted: Vec<u32> = (0..start.len() as u32).collect();
        sorted.sort_by_key(|&row| (start[row as usize], -end[row as usize]));
        prop_assert_eq!(Intervals::new(&group, &start, &end).unwrap().order(), sorted);
    }

    #[test]
    fn covered_time_is_that_of_each_moment(intervals in interval_columns()) {
        let small: Vec<_> = intervals.iter().map(|&(group, start, end)| (u32::from(group > 0), start, end)).collect();
        let (group, start): (Vec<u32>, Vec<i64>) = small.iter().map(|each| (each.0, each.1)).unzip();
        let end: Vec<i64> = small.iter().map(|each| each.2).collect();
        let is_covered = |wanted, moment| {
            small.iter().any(|&(group, start, end)| group == wanted && start <= moment && moment < end)
        };
        let expected = [0, 1].map(|group| (0..40).filter(|&moment| is_covered(group, moment)).count() as i64);
        prop_assert_eq!(Intervals::new(&group, &start, &end).unwrap().covered(2).unwrap(), expected);
    }
}
