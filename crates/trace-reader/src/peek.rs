//! Inspects the beginning of a file to find out whether the file is a trace and, if so, of which rank.

use std::sync::Arc;

use serde_json::Value;

use crate::document::MOST_METADATA_BYTES;
use crate::document::{find_events, Beginning, Head, Header, Other};
use crate::error::ReadError;
use crate::health::Health;
use crate::input::{Input, Source};

/// The kind of a file, judged by its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A profiler trace.
    Trace,
    /// A file without text.
    Empty,
    /// JSON without events in the inspected text; the rest of the file may contain some.
    CutOff,
    /// Not JSON.
    NotJson,
    /// JSON that is not a profiler trace.
    OtherJson,
}

impl FileKind {
    /// The stable name of the kind.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Empty => "empty",
            Self::CutOff => "cut_off",
            Self::NotJson => "not_json",
            Self::OtherJson => "other_json",
        }
    }
}

/// Facts about a file, read from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The compression: plain, gzip or zstd.
    pub format: &'static str,
    /// The top-level keys in the inspected text.
    pub keys: Vec<String>,
    /// The kind of the file.
    pub kind: FileKind,
    /// The value of `distributedInfo.rank`, if it precedes the events.
    pub rank: Option<i64>,
    /// The kind of the file, in words.
    pub what: String,
}

/// Inspect the first `limit` decompressed bytes of a file.
///
/// # Errors
///
/// [`ReadError::Io`]: the file cannot be read.
pub fn peek(input: Input, limit: usize) -> Result<Peek, ReadError> {
    let name = input.name.clone();
    let io = |source| ReadError::Io { path: name.clone(), source };
    let mut source = Source::new(input, Arc::default(), u64::MAX).map_err(io)?;
    let mut text = Vec::new();
    let is_end = source.append(&mut text, limit).map_err(io)? < limit;
    let mut header = Header::default();
    let head = Head { text: &text, offset: 0, is_all: is_end || limit > MOST_METADATA_BYTES };
    let beginning = find_events(head, &mut header, &mut Health::default());
    let (kind, what) = match beginning {
        Beginning::Events { .. } => (FileKind::Trace, "a profiler trace".to_owned()),
        Beginning::SomethingElse(other @ Other::NotJson(_)) => (FileKind::NotJson, other.to_string()),
        Beginning::SomethingElse(other) => (FileKind::OtherJson, other.to_string()),
        Beginning::NoEvents(_) => (FileKind::OtherJson, "a JSON object without traceEvents".to_owned()),
        Beginning::NeedMore if text.trim_ascii().is_empty() => (FileKind::Empty, "an empty file".to_owned()),
        Beginning::NeedMore => (FileKind::CutOff, "JSON without traceEvents at its beginning".to_owned()),
    };
    let rank =
        header.get("distributedInfo").as_ref().and_then(|info| info.get("rank")).and_then(Value::as_i64);
    Ok(Peek { format: source.format.name(), keys: header.keys().cloned().collect(), kind, rank, what })
}
