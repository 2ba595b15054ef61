//! Sorting of rows by group, and of rows whose keys form a few ascending runs.

use std::mem;

/// Below this average length of runs, the standard sort is faster.
const SHORTEST_RUN: usize = 16;

/// Sort rows by a key; rows with equal keys keep their order.
///
/// If runs are long, this is faster than the standard sort. Both sorts merge runs, but the standard sort also
/// copies the parts of runs that are already in their final place.
pub(crate) fn merge_runs<K: Ord>(rows: &mut [u32], key: impl Fn(u32) -> K + Copy) {
    let mut ends = ends_of_runs(rows, key);
    if ends.len() > rows.len() / SHORTEST_RUN {
        rows.sort_by_key(|&row| key(row));
        return;
    }
    ends.push(rows.len());
    let mut scratch = Vec::with_capacity(rows.len());
    while ends.len() > 1 {
        let mut begin = 0;
        for pair in mem::take(&mut ends).chunks(2) {
            let end = pair[pair.len() - 1];
            merge(&mut rows[begin..end], pair[0] - begin, &mut scratch, key);
            ends.push(end);
            begin = end;
        }
    }
}

/// The positions at which the key decreases: one ascending run ends there and the next begins.
fn ends_of_runs<K: Ord>(rows: &[u32], key: impl Fn(u32) -> K) -> Vec<usize> {
    let mut ends = Vec::new();
    let Some((&first, others)) = rows.split_first() else { return ends };
    let mut previous = key(first);
    for (at, &row) in (1..).zip(others) {
        let current = key(row);
        if current < previous {
            ends.push(at);
        }
        previous = current;
    }
    ends
}

/// Merge the two sorted parts of `rows`; the first part has `first` rows.
fn merge<K: Ord>(rows: &mut [u32], first: usize, scratch: &mut Vec<u32>, key: impl Fn(u32) -> K) {
    let Some(&next) = rows.get(first) else { return };
    // Most runs overlap the previous run only a little, so most rows are already in place and are not copied.
    let in_order = rows[..first].partition_point(|&row| key(row) <= key(next));
    let rows = &mut rows[in_order..];
    scratch.clear();
    scratch.extend_from_slice(&rows[..first - in_order]);
    let (mut later, mut earlier, mut to) = (first - in_order, 0, 0);
    while earlier < scratch.len() {
        let takes_later = later < rows.len() && key(rows[later]) < key(scratch[earlier]);
        let source = if takes_later { &mut later } else { &mut earlier };
        rows[to] = if takes_later { rows[*source] } else { scratch[*source] };
        *source += 1;
        to += 1;
    }
}

/// The rows sorted by group, in ascending order within each group. Uses a counting sort if the group numbers are small.
pub(crate) fn by_group(group: &[u32]) -> Vec<u32> {
    let group_count = group.iter().max().map_or(0, |&largest| largest as usize + 1);
    let mut order: Vec<u32> = (0..group.len() as u32).collect();
    if group_count > group.len() {
        order.sort_by_key(|&row| group[row as usize]);
        return order;
    }
    let mut next = vec![0_usize; group_count + 1];
    for &group in group {
        next[group as usize + 1] += 1;
    }
    for group in 0..group_count {
        next[group + 1] += next[group];
    }
    for (row, &group) in group.iter().enumerate() {
        order[next[group as usize]] = row as u32;
        next[group as usize] += 1;
    }
    order
}
