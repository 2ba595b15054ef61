//! Sorting, matching, counting and summing by integer keys.

mod matching;
mod runs;
mod summaries;
mod sums;

use std::fmt;

pub use matching::{only_matches, NO_MATCH, SEVERAL};
pub use runs::merge_runs;
pub use summaries::{summaries, Summaries};
pub use sums::{sums_by_name, NameSums};

/// Why columns have no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeysError {
    /// They are not equally long, or have more rows than fit 32 bits.
    Lengths,
    /// A place is named that is not there.
    Place(i64),
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lengths => write!(f, "the arrays are not equally long, or longer than 32 bits count"),
            Self::Place(place) => write!(f, "place {place} is named, which is not there"),
        }
    }
}

impl std::error::Error for KeysError {}
