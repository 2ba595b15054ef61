//! A cheap look at the beginning of a file: is it a trace, and of which rank?

use std::sync::Arc;

use serde_json::Value;

use crate::document::MOST_METADATA_BYTES;
use crate::document::{find_events, Beginning, Head, Header};
use crate::error::ReadError;
use crate::health::Health;
use crate::input::{Input, Source};

/// What the beginning of a file shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// How it is compressed: plain, gzip or zstd.
    pub format: &'static str,
    /// Top-level keys seen.
    pub keys: Vec<String>,
    /// Whether events begin here.
    pub is_trace: bool,
    /// `distributedInfo.rank`, where it stands before the events.
    pub rank: Option<i64>,
    /// What it is, in words.
    pub what: String,
}

/// Look at the first `limit` uncompressed bytes of a file.
///
/// # Errors
///
/// [`ReadError::Io`] when the file cannot be read.
pub fn peek(input: Input, limit: usize) -> Result<Peek, ReadError> {
    let name = input.name.clone();
    let io = |source| ReadError::Io { path: name.clone(), source };
    let mut source = Source::new(input, Arc::default(), u64::MAX).map_err(io)?;
    let mut text = Vec::new();
    let is_end = source.append(&mut text, limit).map_err(io)? < limit;
    let mut header = Header::default();
    let head = Head { text: &text, offset: 0, is_all: is_end || limit > MOST_METADATA_BYTES };
    let beginning = find_events(head, &mut header, &mut Health::default());
    let (is_trace, what) = match beginning {
        Beginning::Events { .. } => (true, "a profiler trace".to_owned()),
        Beginning::SomethingElse(found) => (false, found),
        Beginning::NoEvents(_) => (false, "a JSON object without traceEvents".to_owned()),
        Beginning::NeedMore if text.trim_ascii().is_empty() => (false, "an empty file".to_owned()),
        Beginning::NeedMore => (false, "JSON without traceEvents at its beginning".to_owned()),
    };
    let rank =
        header.get("distributedInfo").as_ref().and_then(|info| info.get("rank")).and_then(Value::as_i64);
    Ok(Peek { format: source.format.name(), keys: header.keys().cloned().collect(), is_trace, rank, what })
}
