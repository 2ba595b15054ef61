//! A cheap look at the beginning of a file: is it a trace, and of which rank?

use serde_json::Value;

use crate::error::ReadError;
use crate::header::{read_beginning, Beginning, Header};
use crate::health::Health;
use crate::source::{Input, Source};

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
    let mut source = Source::new(input).map_err(io)?;
    let mut text = Vec::new();
    let result = source.fill(&mut text, limit);
    if let Some(error) = source.tally.failure() {
        return Err(io(error));
    }
    if let (Err(error), true) = (result, text.is_empty()) {
        return Err(io(error));
    }
    let mut header = Header::default();
    let beginning = read_beginning(&text, &mut header, &mut Health::default());
    let (is_trace, what) = match beginning {
        Beginning::Events(_) => (true, "a profiler trace".to_owned()),
        Beginning::SomethingElse(found) => (false, found),
        Beginning::NoEvents => (false, "a JSON object without traceEvents".to_owned()),
        Beginning::NeedMore if text.trim_ascii().is_empty() => (false, "an empty file".to_owned()),
        Beginning::NeedMore => (false, "JSON without traceEvents at its beginning".to_owned()),
    };
    let rank = header.get("distributedInfo").and_then(|info| info.get("rank")).and_then(Value::as_i64);
    Ok(Peek { format: source.format.name(), keys: header.keys().cloned().collect(), is_trace, rank, what })
}
