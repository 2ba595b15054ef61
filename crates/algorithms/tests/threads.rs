//! Tests that sort the points of threads by time, and find edges between a main thread and a thread that works for it.

use algorithms::threads::{sorted_points, HandOvers, Points, Ranges, SortedPoints, ThreadEdges};
use algorithms::AlgorithmError;
use proptest::prelude::*;

#[test]
fn ends_come_before_starts_and_instants_last() {
    let points = sorted_points(&[0, 5, 5], &[5, 5, 9], (0, 9)).unwrap();
    assert_eq!(
        points,
        SortedPoints {
            start: vec![1, 4, 3],
            end: vec![2, 5, 6],
            time: vec![0, 0, 5, 5, 5, 5, 9, 9],
            activity: vec![-1, 0, 0, 2, 1, 1, 2, -1],
            is_start: vec![true, true, false, true, true, false, false, false],
        }
    );
}

proptest! {
    #[test]
    fn points_are_sorted_by_time_and_kind(ranges in prop::collection::vec((0..9_i64, 0..4_i64), 0..40)) {
        let start: Vec<i64> = ranges.iter().map(|&(start, _)| start).collect();
        let end: Vec<i64> = ranges.iter().map(|&(start, length)| start + length).collect();
        let points = sorted_points(&start, &end, (0, 20)).unwrap();
        let last = points.time.len() - 1;
        let keys: Vec<_> = (1..last)
            .map(|point| {
                let row = points.activity[point];
                let kind = match (start[row as usize] == end[row as usize], points.is_start[point]) {
                    (false, is_start) => u8::from(is_start),
                    (true, is_start) => 3 - u8::from(is_start),
                };
                (points.time[point], kind, row)
            })
            .collect();
        prop_assert!(keys.is_sorted());
        for row in 0..start.len() {
            prop_assert_eq!(points.time[points.start[row] as usize], start[row]);
            prop_assert_eq!(points.time[points.end[row] as usize], end[row]);
        }
    }
}

/// Thread 0 has ranges at 0..10 and 50..60; thread 1 has a range at 12..45, in which it works for thread 0.
fn edges_of(is_waiting: bool, works_inside: &[i64]) -> Result<ThreadEdges, AlgorithmError> {
    let points = sorted_points(&[0, 12, 50], &[10, 45, 60], (0, 70))?;
    let ranges = Ranges {
        lane: &[0, 1, 0],
        thread: &[0, 1, 0],
        parent: &[-1, -1, -1],
        start: &[0, 12, 50],
        is_waiting: &[is_waiting, false, false],
        is_call: &[false; 3],
        ends_on_thread: &[false; 3],
    };
    let points = Points { activity: &points.activity, is_start: &points.is_start, time: &points.time };
    Ok(HandOvers::new(ranges, points, 0, works_inside, 65)?.edges())
}

#[test]
fn the_main_thread_waits_in_a_gap_in_which_another_works() {
    // Points 1 and 2 are the start and end of the first range, points 3 and 4 those of the other thread's work, and
    // points 5 and 6 those of the second range.
    assert_eq!(
        edges_of(false, &[]).unwrap(),
        ThreadEdges {
            source: vec![4, 2, 1, 2, 5, 3, 4, 0, 6],
            target: vec![5, 3, 2, 5, 6, 4, 7, 1, 7],
            weight: vec![0, 0, 10, 0, 10, 33, 0, 0, 5],
            owner: vec![-1, -1, 0, -1, 2, 1, -1, -1, -1],
            counts: vec![1, 1, 0, 4, 3],
        }
    );
}

#[test]
fn time_in_a_range_that_waits_has_no_weight() {
    assert_eq!(edges_of(true, &[1]).unwrap().weight, [0, 0, 0, 0, 10, 33, 0, 0, 5]);
}

#[test]
fn a_range_that_ends_on_its_thread_depends_on_the_thread() {
    // Thread 0 starts a send at 5, works at 10..20 and waits until 22 for the send, although the message was sent long
    // before; then it works at 40..50.
    let points = sorted_points(&[5, 10, 40], &[22, 20, 50], (0, 60)).unwrap();
    let ranges = |ends_on_thread| Ranges {
        lane: &[1, 0, 0],
        thread: &[0, 0, 0],
        parent: &[-1, -1, -1],
        start: &[5, 10, 40],
        is_waiting: &[false; 3],
        is_call: &[false; 3],
        ends_on_thread,
    };
    let points = Points { activity: &points.activity, is_start: &points.is_start, time: &points.time };
    let edges = |ends_on_thread| HandOvers::new(ranges(ends_on_thread), points, 0, &[], 60).unwrap().edges();
    let (alone, decided) = (edges(&[false; 3]), edges(&[true, false, false]));
    assert_eq!((alone.counts[2], decided.counts[2]), (0, 1));
    let row = (decided.counts[0] + decided.counts[1]) as usize;
    assert_eq!((decided.source[row], decided.target[row], decided.weight[row]), (3, 4, 2));
}

#[test]
fn rows_that_do_not_exist_are_errors() {
    let ranges = Ranges {
        lane: &[0],
        thread: &[0],
        parent: &[1],
        start: &[0],
        is_waiting: &[false],
        is_call: &[false],
        ends_on_thread: &[false],
    };
    let points = Points { activity: &[-1, 0], is_start: &[true, true], time: &[0, 0] };
    assert_eq!(HandOvers::new(ranges, points, 0, &[], 0).err(), Some(AlgorithmError::Row(1)));
    let known = Ranges { parent: &[-1], ..ranges };
    let beyond = Points { activity: &[-1, 1], ..points };
    assert_eq!(HandOvers::new(known, beyond, 0, &[], 0).err(), Some(AlgorithmError::Row(1)));
    let shorter = Points { time: &[0], ..points };
    assert_eq!(HandOvers::new(known, shorter, 0, &[], 0).err(), Some(AlgorithmError::Lengths(1, 2)));
}
