//! The top-level keys of a file, before and after the events.

use serde_json::{Map, Value};

use crate::health::{Fault, Health};
use crate::json::{decoded, Broken, Cursor};

/// The key whose value is the array of events.
const EVENTS: &str = "traceEvents";
/// The key of the time to add to every event's.
const BASE: &str = "baseTimeNanoseconds";

/// Top-level keys and values, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Header {
    entries: Map<String, Value>,
}

impl Header {
    /// What to add to every time, where the file says so.
    pub(crate) fn base_ns(&self) -> Option<i64> {
        self.entries.get(BASE).and_then(Value::as_i64)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.entries.keys()
    }

    pub(crate) fn to_json(&self) -> String {
        Value::Object(self.entries.clone()).to_string()
    }

    /// Keep a value; one that is no JSON is kept as its text.
    fn add(&mut self, key: String, value: &[u8], offset: u64, health: &mut Health) {
        let value = serde_json::from_slice(value).unwrap_or_else(|_| {
            health.add(Fault::BrokenMetadata, offset, value);
            Value::from(String::from_utf8_lossy(value))
        });
        self.entries.insert(key, value);
    }
}

/// What the beginning of a file turned out to be.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// The events begin at this position.
    Events(usize),
    /// More of the file is needed to tell.
    NeedMore,
    /// The top-level object ended without events.
    NoEvents,
    /// It is something else.
    SomethingElse(String),
}

/// Read the keys before the events.
pub(crate) fn read_beginning(text: &[u8], header: &mut Header, health: &mut Health) -> Beginning {
    let start = if text.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let mut cursor = Cursor::new(text, start);
    cursor.skip_space();
    match cursor.peek() {
        _ if cursor.is_at_end() => Beginning::NeedMore,
        b'[' => beginning_of_list(cursor),
        b'{' => {
            cursor.at += 1;
            beginning_of_object(cursor, header, health)
        }
        _ => Beginning::SomethingElse(format!("it begins with {}", shown(&text[cursor.at..]))),
    }
}

fn beginning_of_list(mut cursor: Cursor<'_>) -> Beginning {
    cursor.at += 1;
    let start = cursor.at;
    cursor.skip_space();
    match cursor.peek() {
        _ if cursor.is_at_end() => Beginning::NeedMore,
        b'{' | b']' => Beginning::Events(start),
        _ => Beginning::SomethingElse(format!(
            "a list whose first element is {}",
            shown(&cursor.bytes[cursor.at..])
        )),
    }
}

fn beginning_of_object(mut cursor: Cursor<'_>, header: &mut Header, health: &mut Health) -> Beginning {
    let start = cursor.at;
    loop {
        match entry(&mut cursor) {
            Ok(Entry::Events) => return Beginning::Events(cursor.at),
            Ok(Entry::Value(key, at)) => header.add(key, &cursor.bytes[at..cursor.at], at as u64, health),
            Ok(Entry::End) => return Beginning::NoEvents,
            Err(Broken::EndOfInput) => return Beginning::NeedMore,
            Err(Broken::Syntax) => return after_broken_metadata(cursor.bytes, start.max(cursor.at), health),
        }
    }
}

/// A user's metadata is written into the file as it is, valid or not: go on at the events.
fn after_broken_metadata(text: &[u8], from: usize, health: &mut Health) -> Beginning {
    let quoted = format!("\"{EVENTS}\"");
    let found = memchr::memmem::find_iter(&text[from..], quoted.as_bytes()).find_map(|at| {
        let mut cursor = Cursor::new(text, from + at);
        cursor.key().ok()?;
        cursor.expect(b'[').ok()?;
        Some(cursor.at)
    });
    match found {
        Some(at) => {
            health.add(Fault::BrokenMetadata, from as u64, &text[from..]);
            Beginning::Events(at)
        }
        None => Beginning::NeedMore,
    }
}

/// Read the keys after the events, from behind the closing bracket of their array.
pub(crate) fn read_end(text: &[u8], offset: u64, in_object: bool, header: &mut Header, health: &mut Health) {
    let mut cursor = Cursor::new(text, 0);
    if in_object {
        loop {
            match entry(&mut cursor) {
                Ok(Entry::Value(key, at)) => {
                    header.add(key, &text[at..cursor.at], offset + at as u64, health)
                }
                Ok(Entry::End) => break,
                Ok(Entry::Events) => {
                    health.add(Fault::TrailingGarbage, offset + cursor.at as u64, &text[cursor.at..]);
                    return;
                }
                Err(broken) => {
                    let fault =
                        if broken == Broken::EndOfInput { Fault::MissingEnd } else { Fault::BrokenMetadata };
                    health.add(fault, offset + cursor.at as u64, &text[cursor.at.min(text.len())..]);
                    return;
                }
            }
        }
    }
    cursor.skip_space();
    let rest = text[cursor.at..].trim_ascii();
    if !rest.iter().all(|&byte| byte == 0) {
        health.add(Fault::TrailingGarbage, offset + cursor.at as u64, rest);
    }
}

enum Entry {
    /// A key, and where its value begins; the cursor is behind it.
    Value(String, usize),
    /// The cursor is at the first event.
    Events,
    /// The object is closed.
    End,
}

fn entry(cursor: &mut Cursor<'_>) -> Result<Entry, Broken> {
    loop {
        cursor.skip_space();
        match cursor.peek() {
            b',' => cursor.at += 1,
            b'}' => {
                cursor.at += 1;
                return Ok(Entry::End);
            }
            b'"' => break,
            _ => return Err(cursor.unexpected()),
        }
    }
    let key = cursor.key()?;
    let key = decoded(key).0;
    if key == EVENTS && cursor.peek() == b'[' {
        cursor.at += 1;
        return Ok(Entry::Events);
    }
    let at = cursor.at;
    let value = cursor.value()?;
    let followed = value.is_composite() || {
        let mut ahead = Cursor::new(cursor.bytes, cursor.at);
        ahead.skip_space();
        matches!(ahead.peek(), b',' | b'}') || ahead.is_at_end()
    };
    if followed {
        Ok(Entry::Value(key.into_owned(), at))
    } else {
        Err(Broken::Syntax)
    }
}

/// The first bytes, for an error message.
pub(crate) fn shown(text: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(&text[..text.len().min(40)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning(text: &[u8]) -> (Beginning, Header, Health) {
        let (mut header, mut health) = (Header::default(), Health::default());
        let beginning = read_beginning(text, &mut header, &mut health);
        (beginning, header, health)
    }

    /// Keys before the events are kept, and the events are found behind them.
    #[test]
    fn keys_before_the_events() {
        let (beginning, header, _) =
            beginning(br#"{"schemaVersion": 1, "a": {"b": [1]}, "traceEvents": [ {"#);
        assert!(matches!(beginning, Beginning::Events(54)));
        assert_eq!(header.to_json(), r#"{"a":{"b":[1]},"schemaVersion":1}"#);
    }

    /// Metadata that is no JSON does not hide the events.
    #[test]
    fn broken_metadata_is_passed_over() {
        let (beginning, _, health) = beginning(br#"{"a": "x"y", "b": 1, "traceEvents": [{"ph"#);
        assert!(matches!(beginning, Beginning::Events(37)));
        assert_eq!(health.findings()[0].fault, Fault::BrokenMetadata);
    }

    /// Keys after the events are kept; what follows the object is reported.
    #[test]
    fn keys_after_the_events() {
        let (mut header, mut health) = (Header::default(), Health::default());
        read_end(br#", "baseTimeNanoseconds": 7 } garbage"#, 100, true, &mut header, &mut health);
        assert_eq!(header.base_ns(), Some(7));
        assert_eq!(health.findings()[0].fault, Fault::TrailingGarbage);
        assert_eq!(health.findings()[0].offsets, [129]);
    }

    /// What is no trace says what it is.
    #[test]
    fn something_else() {
        assert!(matches!(beginning(b"%PDF-1.4").0, Beginning::SomethingElse(_)));
        assert!(matches!(beginning(b"[[1, 2]]").0, Beginning::SomethingElse(_)));
        assert!(matches!(beginning(br#"{"nodes": []}"#).0, Beginning::NoEvents));
        assert!(matches!(beginning(b"  ").0, Beginning::NeedMore));
    }
}
