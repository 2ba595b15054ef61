//! Which row has the same key.

use crate::KeysError;

/// Stands for "no row" where a row is expected.
pub const NO_MATCH: i64 = -1;

/// Stands for "several rows" where a row is expected.
pub const SEVERAL: i64 = -2;

/// Keys lie close together if their range is at most so many times their number: a place for each key is then cheaper
/// than sorting them.
const CLOSE: u64 = 16;

/// The only row of `offered` that has each `wanted` key; `NO_MATCH` or `SEVERAL` where there is no such one.
///
/// # Errors
///
/// More rows are offered than fit 32 bits.
pub fn only_matches(offered: &[i64], wanted: &[i64]) -> Result<Vec<i64>, KeysError> {
    if offered.len() > u32::MAX as usize - 2 {
        return Err(KeysError::Lengths);
    }
    let least = offered.iter().copied().min().unwrap_or_default();
    let range = offered.iter().copied().max().unwrap_or_default().abs_diff(least);
    Ok(if range <= CLOSE * offered.len() as u64 {
        by_place(offered, wanted, least, range as usize + 1)
    } else {
        by_order(offered, wanted)
    })
}

fn by_place(offered: &[i64], wanted: &[i64], least: i64, places: usize) -> Vec<i64> {
    const NONE: u32 = 0; // so that the places need not be written; a row is kept as one more than it is
    const MANY: u32 = u32::MAX;
    let place = |key: i64| key.checked_sub(least).and_then(|place| usize::try_from(place).ok());
    let mut row_at = vec![NONE; places];
    for (row, &key) in offered.iter().enumerate() {
        if let Some(at) = place(key).and_then(|place| row_at.get_mut(place)) {
            *at = if *at == NONE { row as u32 + 1 } else { MANY };
        }
    }
    let row_of = |&key: &i64| match place(key).and_then(|place| row_at.get(place)) {
        None | Some(&NONE) => NO_MATCH,
        Some(&MANY) => SEVERAL,
        Some(&row) => i64::from(row) - 1,
    };
    wanted.iter().map(row_of).collect()
}

fn by_order(offered: &[i64], wanted: &[i64]) -> Vec<i64> {
    let mut order: Vec<u32> = (0..offered.len() as u32).collect();
    order.sort_by_key(|&row| offered[row as usize]); // stable, because it joins the sorted runs of most files
    let key_at = |place: usize| order.get(place).map(|&row| offered[row as usize]);
    let row_of = |&key: &i64| {
        let first = order.partition_point(|&row| offered[row as usize] < key);
        match (key_at(first) == Some(key), key_at(first + 1) == Some(key)) {
            (false, _) => NO_MATCH,
            (true, false) => i64::from(order[first]),
            (true, true) => SEVERAL,
        }
    };
    wanted.iter().map(row_of).collect()
}

/// The row that has each wanted number, `NO_MATCH` where none has it; no two rows have the same.
///
/// Where the numbers rise, those near the one before are found sooner.
#[must_use]
pub fn rows_of(numbers: &[u32], wanted: &[u32]) -> Vec<i64> {
    if !numbers.is_sorted() {
        return rows_by_place(numbers, wanted);
    }
    let mut place = 0; // how many are smaller
    let row_of = |&number: &u32| {
        let is_behind = place > 0 && numbers[place - 1] >= number;
        let from = if is_behind { 0 } else { place };
        let until = if is_behind { place } else { from + reach(&numbers[from..], number) };
        place = from + numbers[from..until].partition_point(|&each| each < number);
        if numbers.get(place) == Some(&number) {
            place as i64
        } else {
            NO_MATCH
        }
    };
    wanted.iter().map(row_of).collect()
}

/// Return an end behind all that is smaller, at most twice as far away as need be.
fn reach(rising: &[u32], number: u32) -> usize {
    let mut end = 1;
    while rising.get(end - 1).is_some_and(|&each| each < number) {
        end *= 2;
    }
    end.min(rising.len())
}

fn rows_by_place(numbers: &[u32], wanted: &[u32]) -> Vec<i64> {
    let mut row_at = vec![NO_MATCH; numbers.iter().max().map_or(0, |&greatest| greatest as usize + 1)];
    for (row, &number) in numbers.iter().enumerate() {
        row_at[number as usize] = row as i64;
    }
    wanted.iter().map(|&number| row_at.get(number as usize).copied().unwrap_or(NO_MATCH)).collect()
}
