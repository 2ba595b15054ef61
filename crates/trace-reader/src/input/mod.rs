//! Reads and decompresses the bytes of a file.

mod ahead;
mod gzip;
mod source;
mod streams;
mod tally;
mod zstd;

pub use source::{content_hash, Input};
pub(crate) use source::{is_too_long, Source};
pub(crate) use tally::Tally;
