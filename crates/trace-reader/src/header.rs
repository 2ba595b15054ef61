//! The top-level keys of a file, before and after the events.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::health::{Fault, Health, Lost};
use crate::json::{decoded, expect_json, Broken, Cursor, Unfit};
use crate::scan;
use crate::time::is_in_range;

/// The key whose value is the array of events.
const EVENTS: &str = "traceEvents";
/// The key of the time to add to every event's.
const BASE: &str = "baseTimeNanoseconds";

/// Top-level keys, and the JSON text of their values.
#[derive(Debug, Default)]
pub(crate) struct Header {
    entries: BTreeMap<String, String>,
}

impl Header {
    /// What to add to every time, where the file says so.
    pub(crate) fn base_ns(&self) -> Option<i64> {
        self.entries.get(BASE).and_then(|text| serde_json::from_str(text).ok())
    }

    /// What to add to every time, 0 where the file does not say so, or where nothing could be added to it.
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

    /// Keep a value; one that is no JSON is kept as its text.
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

    /// Add the keys of a later document; of those that both have, the first counts.
    pub(crate) fn join(&mut self, later: Self) {
        for (key, value) in later.entries {
            self.entries.entry(key).or_insert(value);
        }
    }
}

/// What the beginning of a file turned out to be.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// The events begin at this position, in a list that is a value of an object, or bare.
    Events { at: usize, in_object: bool },
    /// More of the file is needed to tell.
    NeedMore,
    /// The top-level object ended without events; this position is behind it.
    NoEvents(usize),
    /// It is something else.
    SomethingElse(String),
}

/// A text in which the events are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) text: &'a [u8],
    /// Offset of its first byte.
    pub(crate) offset: u64,
    /// Whether the input has ended.
    pub(crate) is_all: bool,
}

/// Find the first events of a file: in its first document, or behind objects that hold none.
pub(crate) fn find_events(head: Head<'_>, header: &mut Header, health: &mut Health) -> Beginning {
    let mut first_end = None;
    let mut from = 0;
    loop {
        let rest = Head { text: &head.text[from..], offset: head.offset + from as u64, ..head };
        let beginning = read_beginning(rest, header, health);
        match (beginning, first_end) {
            (Beginning::NoEvents(at), _) => {
                from += at;
                first_end.get_or_insert(from);
            }
            (Beginning::Events { at, in_object }, Some(_)) => {
                health.add(Fault::AnotherDocument, rest.offset, rest.text);
                return Beginning::Events { at: from + at, in_object };
            }
            (Beginning::NeedMore | Beginning::SomethingElse(_), Some(end))
                if head.is_all || rest.text.trim_ascii().is_empty() =>
            {
                return Beginning::NoEvents(end);
            }
            (Beginning::SomethingElse(_), Some(_)) => return Beginning::NeedMore,
            (beginning, _) => return beginning,
        }
    }
}

/// Read the keys before the events.
///
/// Where they are damaged, the events are looked for behind the damage: by their key, and where that is damaged, too, by
/// the first object that can hardly be anything but an event.
pub(crate) fn read_beginning(head: Head<'_>, header: &mut Header, health: &mut Health) -> Beginning {
    let start = if head.text.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let mut cursor = Cursor::new(head.text, start);
    cursor.skip_space();
    let begin = cursor.at;
    match cursor.peek() {
        _ if cursor.is_at_end() => Beginning::NeedMore,
        b'[' => beginning_of_list(head, cursor, health),
        b'{' => {
            cursor.at += 1;
            beginning_of_object(head, cursor, header, health)
        }
        _ => found_anyway(head, begin, true, health).unwrap_or_else(|| {
            Beginning::SomethingElse(format!("it begins with {}", shown(&head.text[begin..])))
        }),
    }
}

fn beginning_of_list(head: Head<'_>, mut cursor: Cursor<'_>, health: &mut Health) -> Beginning {
    cursor.at += 1;
    let start = cursor.at;
    cursor.skip_space();
    match cursor.peek() {
        _ if cursor.is_at_end() => Beginning::NeedMore,
        b'{' | b']' => Beginning::Events { at: start, in_object: false },
        _ => found_anyway(head, cursor.at, true, health).unwrap_or_else(|| {
            let first = shown(&head.text[cursor.at..]);
            Beginning::SomethingElse(format!("a list whose first element is {first}"))
        }),
    }
}

fn beginning_of_object(
    head: Head<'_>,
    mut cursor: Cursor<'_>,
    header: &mut Header,
    health: &mut Health,
) -> Beginning {
    let mut is_first = true;
    loop {
        let begin = cursor.at;
        match entry(&mut cursor, head.offset, is_first, health) {
            Ok(Entry::Events) => return Beginning::Events { at: cursor.at, in_object: true },
            Ok(Entry::Value(key, at)) => {
                header.add(key, &head.text[at..cursor.at], head.offset + at as u64, health)
            }
            Ok(Entry::End) => {
                let read = Head { text: &head.text[..cursor.at], is_all: true, ..head };
                let nothing = Beginning::NoEvents(cursor.at);
                if header.get(EVENTS).is_some() {
                    return nothing;
                }
                return found_anyway(read, 0, true, health).unwrap_or(nothing);
            }
            Err(Broken::EndOfInput) if !head.is_all => return Beginning::NeedMore,
            Err(broken) => {
                let by_phase = head.is_all;
                let is_cut_off = broken == Broken::EndOfInput;
                let from = if scan::next_list_of_events(&head.text[..begin], 0).is_some() {
                    *header = Header::default();
                    0
                } else {
                    begin
                };
                return found_anyway(head, from, by_phase, health).unwrap_or(if is_cut_off || !head.is_all {
                    Beginning::NeedMore
                } else {
                    Beginning::SomethingElse(format!(
                        "JSON that is damaged at byte {}",
                        head.offset + cursor.at as u64
                    ))
                });
            }
        }
        is_first = false;
    }
}

/// Find the events behind damage: the list that their key names or, if `by_phase`, what shows its phase before that.
fn found_anyway(head: Head<'_>, from: usize, by_phase: bool, health: &mut Health) -> Option<Beginning> {
    let list = scan::next_list_of_events(head.text, from);
    let before = &head.text[..list.unwrap_or(head.text.len())];
    let at = if by_phase { scan::next_sure_event(before, from).or(list) } else { list }?;
    let lost = Lost { bytes: (at - from) as u64, ..Lost::text(&head.text[from..at]) };
    health.add_loss(Fault::LostMetadata, head.offset + from as u64, &head.text[from..], lost);
    Some(Beginning::Events { at, in_object: true })
}

pub(crate) enum Entry {
    /// A key, and where its value begins; the cursor is behind it.
    Value(String, usize),
    /// The cursor is at the first event.
    Events,
    /// The object is closed.
    End,
}

/// Read the next entry of an object; `is_first` says that no comma has to come before it.
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

/// Whether a value is no JSON and holds events: it begins before damage, and has taken the end of another value for its own.
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

/// The first bytes, for an error message.
pub(crate) fn shown(text: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(&text[..text.len().min(40)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning(text: &[u8]) -> (Beginning, Header, Health) {
        let (mut header, mut health) = (Header::default(), Health::default());
        let beginning = read_beginning(Head { text, offset: 0, is_all: true }, &mut header, &mut health);
        (beginning, header, health)
    }

    /// Keys before the events are kept, and the events are found behind them.
    #[test]
    fn keys_before_the_events() {
        let (beginning, header, _) = beginning(br#"{"schemaVersion": 1, "a": {"b":[1]}, "traceEvents": [ {"#);
        assert!(matches!(beginning, Beginning::Events { at: 53, in_object: true }));
        assert_eq!(header.to_json(), r#"{"a":{"b":[1]},"schemaVersion":1}"#);
    }

    /// Metadata that is no JSON does not hide the events.
    #[test]
    fn broken_metadata_is_passed_over() {
        for text in [
            &br#"{"a": "x"y", "b": 1, "traceEvents": [{"ph":"X""#[..],
            br#"{"a: 1,"traceEvents":[{"ph":"X","#,
            br#"{"a":[{"id":0,"name":"x"],"traceEvents":[{"ph":"X","#,
            br#"{"a":[{"id":0,"name":"x"},"traceEvents":[{"ph":"X","#,
            br#"z"a":1,"traceEvents":[{"ph":"X","#,
            br#"{"a":1,"traceEvens":[{"ph":"X","#,
            br#"{"a":1,"traceEvens":[{"ph":"X"}]}"#,
            br#"{"a":1,"traceEvents"=[{"ph":"X"}]}"#,
            br#"z[{"name":"a","ph":"X","#,
        ] {
            let (beginning, _, health) = beginning(text);
            let Beginning::Events { at, .. } = beginning else { panic!("{}", String::from_utf8_lossy(text)) };
            assert!(text[at..].starts_with(b"{\"ph\"") || text[at..].starts_with(b"{\"name\""));
            assert_eq!(health.findings()[0].fault, Fault::LostMetadata);
            assert!(health.findings()[0].lost.bytes > 0);
        }
    }

    /// What is no trace says what it is.
    #[test]
    fn something_else() {
        assert!(matches!(beginning(b"%PDF-1.4").0, Beginning::SomethingElse(_)));
        assert!(matches!(beginning(b"[[1, 2]]").0, Beginning::SomethingElse(_)));
        assert!(matches!(beginning(br#"{"nodes": []}"#).0, Beginning::NoEvents(13)));
        assert!(matches!(beginning(b"  ").0, Beginning::NeedMore));
    }
}
