//! The text around the events of a file: top-level keys, further lists and documents, and damage.

mod beginning;
mod header;
mod tail;

pub(crate) use beginning::{begin, find_events, Beginning, Begun, Failure, Head, Other};
pub(crate) use header::Header;
pub(crate) use tail::{GoesOn, Tail, MOST_METADATA_BYTES};
