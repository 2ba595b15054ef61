//! Finds the first events of a file and reads the keys before them.

use std::fmt;

use super::header::{entry, Entry, Header, EVENTS};
use super::tail::MOST_METADATA_BYTES;
use crate::error::ReadError;
use crate::health::{Fault, Health, Lost};
use crate::input::{is_too_long, Source};
use crate::json::scan;
use crate::json::{Broken, Cursor};

/// The first search for the events covers this many bytes; each further search covers twice as many.
const FIRST_LOOK_BYTES: usize = 1 << 16;

/// The first part of a file, as `text`; the list of events begins at its byte `events_at`.
pub(crate) struct Begun {
    pub(crate) text: Vec<u8>,
    pub(crate) events_at: usize,
    pub(crate) in_object: bool,
    pub(crate) at_end: bool,
}

pub(crate) enum Failure {
    Io(std::io::Error),
    NotATrace(String),
}

impl Failure {
    /// The error for the file at `path`.
    pub(crate) fn of(self, path: String, most_bytes: u64) -> ReadError {
        match self {
            Self::Io(error) if is_too_long(&error) => ReadError::Expands { path, most_bytes },
            Self::Io(source) => ReadError::Io { path, source },
            Self::NotATrace(reason) => ReadError::NotATrace { path, reason },
        }
    }
}

/// Read the file until the beginning of its events.
pub(crate) fn begin(source: &mut Source, header: &mut Header, health: &mut Health) -> Result<Begun, Failure> {
    let mut text = Vec::new();
    let mut wanted = FIRST_LOOK_BYTES;
    loop {
        let count = source.append(&mut text, wanted).map_err(Failure::Io)?;
        let at_end = count < wanted;
        let is_all = at_end || text.len() > MOST_METADATA_BYTES;
        *header = Header::default();
        let mut findings = Health::default();
        let beginning = find_events(Head { text: &text, offset: 0, is_all }, header, &mut findings);
        if let Beginning::Events { at, in_object } = beginning {
            *health = findings;
            return Ok(Begun { text, events_at: at, in_object, at_end });
        }
        if let Some(reason) = refusal(&beginning, &text, header, at_end) {
            return Err(Failure::NotATrace(reason + source.damage()));
        }
        wanted = text.len();
    }
}

fn refusal(beginning: &Beginning, text: &[u8], header: &Header, at_end: bool) -> Option<String> {
    let keys = || header.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    match beginning {
        Beginning::SomethingElse(other) => Some(other.to_string()),
        Beginning::NoEvents(_) if header.get("traceEvents").is_some() => {
            Some("the value of traceEvents is not a list".to_owned())
        }
        Beginning::NoEvents(_) => {
            Some(format!("a JSON object without traceEvents; its keys are: {}", keys()))
        }
        Beginning::NeedMore if text.trim_ascii().is_empty() && at_end => Some("the file is empty".to_owned()),
        Beginning::NeedMore if at_end => {
            Some(format!("the file ends before traceEvents; the keys before its end are: {}", keys()))
        }
        Beginning::NeedMore if text.len() > MOST_METADATA_BYTES => {
            Some(format!("no traceEvents in the first {} MiB of its text", MOST_METADATA_BYTES >> 20))
        }
        Beginning::NeedMore | Beginning::Events { .. } => None,
    }
}

/// The beginning of a file.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// The events begin at position `at`, in a bare list or in a list inside an object.
    Events { at: usize, in_object: bool },
    /// The text is too short to decide.
    NeedMore,
    /// The top-level object has no events and ends at this position.
    NoEvents(usize),
    /// The file is not a trace.
    SomethingElse(Other),
}

/// The content of a file that is not a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    /// The first bytes of a file that is not JSON.
    NotJson(String),
    /// The first element of a list, if it is not an event.
    List(String),
    /// The offset at which the JSON is damaged.
    DamagedAt(u64),
}

impl fmt::Display for Other {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(first) => write!(formatter, "it begins with {first}"),
            Self::List(first) => write!(formatter, "a list whose first element is {first}"),
            Self::DamagedAt(at) => write!(formatter, "JSON that is damaged at byte {at}"),
        }
    }
}

/// Text to search for events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) text: &'a [u8],
    /// Offset of the first byte of `text`.
    pub(crate) offset: u64,
    /// Whether `text` will not grow, because the input has ended or `text` has reached the limit on its size.
    pub(crate) is_all: bool,
}

/// Find the first events of a file, skipping objects without events.
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

/// Read the keys that the file contains before its list of events.
///
/// If these keys are damaged, search after the damage: for the key `traceEvents` or, if that is damaged too, for the
/// first object that is almost certainly an event.
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
        _ => events_after_damage(head, begin, true, health)
            .unwrap_or_else(|| Beginning::SomethingElse(Other::NotJson(shown(&head.text[begin..])))),
    }
}

fn beginning_of_list(head: Head<'_>, mut cursor: Cursor<'_>, health: &mut Health) -> Beginning {
    cursor.at += 1;
    let start = cursor.at;
    cursor.skip_space();
    match cursor.peek() {
        _ if cursor.is_at_end() => Beginning::NeedMore,
        b'{' | b']' => Beginning::Events { at: start, in_object: false },
        _ => events_after_damage(head, cursor.at, true, health)
            .unwrap_or_else(|| Beginning::SomethingElse(Other::List(shown(&head.text[cursor.at..])))),
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
                return events_after_damage(read, 0, true, health).unwrap_or(nothing);
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
                return events_after_damage(head, from, by_phase, health).unwrap_or(
                    if is_cut_off || !head.is_all {
                        Beginning::NeedMore
                    } else {
                        Beginning::SomethingElse(Other::DamagedAt(head.offset + cursor.at as u64))
                    },
                );
            }
        }
        is_first = false;
    }
}

/// Find where the events begin after damage: at the next list with the key `traceEvents` or, with `by_phase`, at
/// an object before that list that is almost certainly an event.
fn events_after_damage(
    head: Head<'_>,
    from: usize,
    by_phase: bool,
    health: &mut Health,
) -> Option<Beginning> {
    let list = scan::next_list_of_events(head.text, from);
    let before = &head.text[..list.unwrap_or(head.text.len())];
    let at = if by_phase { scan::next_sure_event(before, from).or(list) } else { list }?;
    let lost = Lost { bytes: (at - from) as u64, ..Lost::text(&head.text[from..at]) };
    health.add_loss(Fault::LostMetadata, head.offset + from as u64, &head.text[from..], lost);
    Some(Beginning::Events { at, in_object: true })
}

/// The first 40 bytes of a text, quoted for an error message.
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

    /// The reader keeps the keys before the events, and finds where the events begin.
    #[test]
    fn keys_before_the_events() {
        let (beginning, header, _) = beginning(br#"{"schemaVersion": 1, "a": {"b":[1]}, "traceEvents": [ {"#);
        assert!(matches!(beginning, Beginning::Events { at: 53, in_object: true }));
        assert_eq!(header.to_json(), r#"{"a":{"b":[1]},"schemaVersion":1}"#);
    }

    /// Damaged metadata does not hide the events.
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

    /// A PDF file, a list of lists, blank text and an object without events are not traces.
    #[test]
    fn something_else() {
        assert!(matches!(beginning(b"%PDF-1.4").0, Beginning::SomethingElse(_)));
        assert!(matches!(beginning(b"[[1, 2]]").0, Beginning::SomethingElse(_)));
        assert!(matches!(beginning(br#"{"nodes": []}"#).0, Beginning::NoEvents(13)));
        assert!(matches!(beginning(b"  ").0, Beginning::NeedMore));
    }
}
