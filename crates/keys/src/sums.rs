//! Counts and sums of what has the same kind and name.

use crate::KeysError;

/// Stands for "no group" where the place of one is expected.
const NONE: u32 = u32::MAX;

/// Counts and sums of each kind and name, in the order of their first rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameSums {
    /// The kind.
    pub kind: Vec<u8>,
    /// The number of the name.
    pub name: Vec<u32>,
    /// How many rows there are.
    pub count: Vec<i64>,
    /// Their summed values.
    pub sum: Vec<i64>,
    /// How many of the rows are marked.
    pub marked_count: Vec<i64>,
    /// The summed values of those.
    pub marked_sum: Vec<i64>,
}

#[derive(Clone, Copy)]
struct Group {
    kind: u8,
    name: u32,
    next: u32,
    all: Totals,
    marked: Totals,
}

#[derive(Clone, Copy, Default)]
struct Totals {
    count: i64,
    sum: i64,
}

impl Totals {
    fn add(&mut self, value: i64, is_meant: bool) {
        self.count += i64::from(is_meant);
        self.sum = self.sum.wrapping_add(value * i64::from(is_meant));
    }
}

/// Stands for "at no place" where one is expected.
pub const NOWHERE: i64 = -1;

/// Count and sum `value` by kind and name, over all rows and over those at a marked place. Values below 0 count as 0.
///
/// Names are numbers of a dictionary: room is made for each up to the greatest.
///
/// # Errors
///
/// The columns differ in length, or a place is named that is not there.
pub fn sums_by_name(
    kind: &[u8],
    name: &[u32],
    value: &[i64],
    place: &[i64],
    is_marked: &[bool],
) -> Result<NameSums, KeysError> {
    let is_equal = [name.len(), value.len(), place.len()].iter().all(|&length| length == kind.len());
    if !is_equal || u32::try_from(kind.len()).is_err() {
        return Err(KeysError::Lengths);
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut first_of_name = vec![NONE; name.iter().max().map_or(0, |&greatest| greatest as usize + 1)];
    for (((&kind, &name), &value), &place) in kind.iter().zip(name).zip(value).zip(place) {
        let group = group_of(&mut groups, &mut first_of_name[name as usize], kind, name);
        let marked = usize::try_from(place).ok().map(|place| is_marked.get(place).copied());
        let is_meant = match marked {
            Some(Some(is_marked)) => is_marked,
            None if place == NOWHERE => false,
            _ => return Err(KeysError::Place(place)),
        };
        group.all.add(value.max(0), true);
        group.marked.add(value.max(0), is_meant);
    }
    Ok(NameSums::of(&groups))
}

/// Find the group among those of the name, which are few: nearly every name has one kind.
fn group_of<'a>(groups: &'a mut Vec<Group>, first: &mut u32, kind: u8, name: u32) -> &'a mut Group {
    let mut at = *first;
    while at != NONE && groups[at as usize].kind != kind {
        at = groups[at as usize].next;
    }
    if at == NONE {
        at = groups.len() as u32;
        groups.push(Group { kind, name, next: *first, all: Totals::default(), marked: Totals::default() });
        *first = at;
    }
    &mut groups[at as usize]
}

impl NameSums {
    fn of(groups: &[Group]) -> Self {
        Self {
            kind: groups.iter().map(|group| group.kind).collect(),
            name: groups.iter().map(|group| group.name).collect(),
            count: groups.iter().map(|group| group.all.count).collect(),
            sum: groups.iter().map(|group| group.all.sum).collect(),
            marked_count: groups.iter().map(|group| group.marked.count).collect(),
            marked_sum: groups.iter().map(|group| group.marked.sum).collect(),
        }
    }
}
