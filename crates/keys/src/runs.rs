//! Sorting what consists of few sorted runs.

use std::mem;

/// A run is worth joining to the next if it is at least so long; shorter ones are sorted as any others.
const SHORTEST_RUN: usize = 16;

/// Sort rows by a key; equal ones stay in their order.
///
/// The sort of the standard library joins runs as well, but copies a whole run where it only follows the one before.
pub fn merge_runs<K: Ord>(rows: &mut [u32], key: impl Fn(u32) -> K + Copy) {
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

/// Where a row comes that belongs before the last one.
fn ends_of_runs<K: Ord>(rows: &[u32], key: impl Fn(u32) -> K) -> Vec<usize> {
    let mut ends = Vec::new();
    let Some((&first, others)) = rows.split_first() else { return ends };
    let mut last = key(first);
    for (at, &row) in (1..).zip(others) {
        let this = key(row);
        if this < last {
            ends.push(at);
        }
        last = this;
    }
    ends
}

/// Join two sorted parts, of which the first has this length.
fn merge<K: Ord>(rows: &mut [u32], first: usize, scratch: &mut Vec<u32>, key: impl Fn(u32) -> K) {
    let Some(&next) = rows.get(first) else { return };
    let in_place = rows[..first].partition_point(|&row| key(row) <= key(next)); // later parts mostly follow earlier ones
    let rows = &mut rows[in_place..];
    scratch.clear();
    scratch.extend_from_slice(&rows[..first - in_place]);
    let (mut from, mut at, mut to) = (first - in_place, 0, 0);
    while at < scratch.len() {
        let takes_later = from < rows.len() && key(rows[from]) < key(scratch[at]);
        let source = if takes_later { &mut from } else { &mut at };
        rows[to] = if takes_later { rows[*source] } else { scratch[*source] };
        *source += 1;
        to += 1;
    }
}
