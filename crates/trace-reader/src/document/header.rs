//! The top-level keys of a document.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::event::time::is_in_range;
use crate::health::{Fault, Health};
use crate::json::scan;
use crate::json::{decoded, expect_json, Broken, Cursor, Unfit};

/// The key of the list of events.
pub(super) const EVENTS: &str = "traceEvents";

/// The key of the base time, which is added to the time of every event.
const BASE: &str = "baseTimeNanoseconds";

/// Top-level keys, and the JSON text of their values.
#[derive(Debug, Default)]
pub(crate) struct Header {
    entries: BTreeMap<String, String>,
}

impl Header {
    /// The base time to add to the time of every event, if the file states one.
    pub(crate) fn base_ns(&self) -> Option<i64> {
        self.entries.get(BASE).and_then(|text| serde_json::from_str(text).ok())
    }

    /// The base time; 0 if the file states no base time, or one so large that sums would overflow.
    pub(crate) fn usable_base_ns(&self, health: &mut Health) -> i64 {
        let base_ns = self.base_ns().unwrap_or(0);
        if is_in_range(base_ns) {
            return base_ns;
        }
        health.add(Fault::UnusableBaseTime, 0, base_ns.to_string().as_bytes());
        0
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        self.entries.get(key).and_then(|text| serde_json::from_str(text).ok())
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.entries.keys()
    }

    pub(crate) fn to_json(&self) -> String {
        let mut json = "{".to_owned();
        for (key, value) in &self.entries {
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&Value::from(key.as_str()).to_string());
            json.push(':');
            json.push_str(value);
        }
        json.push('}');
        json
    }

    /// Keep a value; if it is not valid JSON, keep its text as a string.
    pub(crate) fn add(&mut self, key: String, value: &[u8], offset: u64, health: &mut Health) {
        let text = String::from_utf8_lossy(value);
        let unfit = expect_json(text.as_bytes()).err();
        let is_valid = unfit.is_none();
        if let Some(unfit) = unfit {
            let fault = if unfit == Unfit::Deep { Fault::DeepValue } else { Fault::BrokenMetadata };
            health.add(fault, offset, value);
        } else if matches!(text, std::borrow::Cow::Owned(_)) {
            health.add(Fault::InvalidUtf8, offset, value);
        }
        let json = if is_valid { text.into_owned() } else { Value::from(text).to_string() };
        self.entries.insert(key, json);
    }

    /// Add the keys of a later document; values of the first document take precedence.
    pub(crate) fn join(&mut self, later: Self) {
        for (key, value) in later.entries {
            self.entries.entry(key).or_insert(value);
        }
    }
}

pub(crate) enum Entry {
    /// A key and the position of its value; the cursor is after the value.
    Value(String, usize),
    /// The cursor is at the first event.
    Events,
    /// The object is closed.
    End,
}

/// Read the next entry of an object; expects a comma before the entry unless `is_first`.
pub(crate) fn entry(
    cursor: &mut Cursor<'_>,
    offset: u64,
    is_first: bool,
    health: &mut Health,
) -> Result<Entry, Broken> {
    let begin = cursor.at;
    let mut comma_count = 0;
    loop {
        cursor.skip_space();
        match cursor.peek() {
            b',' => {
                comma_count += 1;
                cursor.at += 1;
            }
            b'}' => {
                cursor.at += 1;
                if comma_count > 0 {
                    health.add(Fault::StrayComma, offset + begin as u64, &cursor.bytes[begin..]);
                }
                return Ok(Entry::End);
            }
            b'"' => break,
            _ => return Err(cursor.unexpected()),
        }
    }
    let expected = usize::from(!is_first);
    let key = cursor.key()?;
    let (key, blemishes) = decoded(key);
    if key == EVENTS && cursor.peek() == b'[' {
        cursor.at += 1;
        count_commas(comma_count, expected, cursor, offset, begin, health);
        return Ok(Entry::Events);
    }
    let at = cursor.at;
    let value = cursor.value()?;
    if value.is_composite() && reaches_over_events(value.bytes) {
        return Err(Broken::Syntax);
    }
    let followed = value.is_composite() || {
        let mut ahead = Cursor::new(cursor.bytes, cursor.at);
        ahead.skip_space();
        matches!(ahead.peek(), b',' | b'}') || ahead.is_at_end()
    };
    if !followed {
        return Err(Broken::Syntax);
    }
    count_commas(comma_count, expected, cursor, offset, begin, health);
    if blemishes.any() {
        health.add(Fault::BrokenMetadata, offset + begin as u64, &cursor.bytes[begin..]);
    }
    Ok(Entry::Value(key.into_owned(), at))
}

/// Whether a value is not valid JSON and contains events. If so, the end of the value is damaged, and its text was read
/// on into the events behind it.
fn reaches_over_events(value: &[u8]) -> bool {
    scan::holds_list_or_event(value) && expect_json(value) == Err(Unfit::Broken)
}

fn count_commas(
    count: usize,
    expected: usize,
    cursor: &Cursor<'_>,
    offset: u64,
    begin: usize,
    health: &mut Health,
) {
    if count != expected {
        let fault = if count < expected { Fault::MissingComma } else { Fault::StrayComma };
        health.add(fault, offset + begin as u64, &cursor.bytes[begin..]);
    }
}
