//! Counts and sums, grouped by kind and name.

use crate::error::{check_lengths, check_row_count, AlgorithmError};
use crate::NO_ROW;

/// Marks the end of a list of groups that share a name.
const NO_GROUP: u32 = u32::MAX;

/// Counts and sums of each group, in the order in which the groups first appear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameSums {
    /// The kind of each group.
    pub kind: Vec<u8>,
    /// The name of each group, as a number.
    pub name: Vec<u32>,
    /// The number of rows of each group.
    pub count: Vec<i64>,
    /// The sum of the group's values.
    pub sum: Vec<i64>,
    /// The number of marked rows of each group.
    pub marked_count: Vec<i64>,
    /// The sum of the values in the group's marked rows.
    pub marked_sum: Vec<i64>,
}

#[derive(Clone, Copy)]
struct Group {
    kind: u8,
    name: u32,
    next_of_name: u32,
    all: Totals,
    marked: Totals,
}

#[derive(Clone, Copy, Default)]
struct Totals {
    count: i64,
    sum: i64,
}

impl Totals {
    fn add_if(&mut self, is_counted: bool, value: i64) {
        self.count += i64::from(is_counted);
        self.sum = self.sum.wrapping_add(value * i64::from(is_counted));
    }
}

/// Count rows and sum their values by kind and name, for all rows and for the marked rows alone.
///
/// `mark` is an index into `is_marked`, which says whether the row is marked. A row whose `mark` is [`NO_ROW`] is not
/// marked. Negative values are treated as 0.
///
/// Names are numbers. To avoid hashing, a table has a slot for every number up to the largest name, so memory grows
/// with the largest name.
///
/// # Errors
///
/// The columns differ in length or have too many rows, or a `mark` is outside `is_marked`.
pub fn sums_by_name(
    kind: &[u8],
    name: &[u32],
    value: &[i64],
    mark: &[i64],
    is_marked: &[bool],
) -> Result<NameSums, AlgorithmError> {
    check_lengths([kind.len(), name.len(), value.len(), mark.len()])?;
    check_row_count(kind.len())?;
    let mut groups: Vec<Group> = Vec::new();
    let mut first_of_name = vec![NO_GROUP; name.iter().max().map_or(0, |&largest| largest as usize + 1)];
    for (((&kind, &name), &value), &mark) in kind.iter().zip(name).zip(value).zip(mark) {
        let group = group_of(&mut groups, &mut first_of_name[name as usize], kind, name);
        let flag = usize::try_from(mark).ok().map(|mark| is_marked.get(mark).copied());
        let is_marked = match flag {
            Some(Some(is_marked)) => is_marked,
            None if mark == NO_ROW => false,
            _ => return Err(AlgorithmError::Row(mark)),
        };
        group.all.add_if(true, value.max(0));
        group.marked.add_if(is_marked, value.max(0));
    }
    Ok(NameSums::of(&groups))
}

/// Find or create the group of a kind and name. Nearly every name occurs with only one kind, so the list of groups that
/// share a name is short.
fn group_of<'a>(groups: &'a mut Vec<Group>, first: &mut u32, kind: u8, name: u32) -> &'a mut Group {
    let mut at = *first;
    while at != NO_GROUP && groups[at as usize].kind != kind {
        at = groups[at as usize].next_of_name;
    }
    if at == NO_GROUP {
        at = groups.len() as u32;
        let (all, marked) = (Totals::default(), Totals::default());
        groups.push(Group { kind, name, next_of_name: *first, all, marked });
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
