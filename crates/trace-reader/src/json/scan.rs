//! Finds the beginnings of events without reading the text before them.
//!
//! In valid JSON, an opening brace followed by a quoted word and a colon always begins an object: inside a string, the
//! quotes would have to be escaped. A file can therefore be cut wherever such an object follows the end of another
//! object. If a cut falls between two objects nested in the same event, the reader notices that the event does not end
//! before the cut, and joins the text before the cut with the text after it.

use memchr::{memchr_iter, memrchr_iter};

use crate::json::Cursor;

/// Number of bytes at the beginning of an object in which to search for its phase.
const MOST_BYTES_BEFORE_PHASE: usize = 1 << 10;

/// The keys that an event may begin with.
const FIRST_KEYS: [&[u8]; 11] =
    [b"ph", b"name", b"cat", b"pid", b"tid", b"ts", b"dur", b"args", b"id", b"bp", b"s"];

/// The position of the last brace that follows another object and seems to begin an event; the text can be cut there.
pub(crate) fn last_cut(text: &[u8]) -> Option<usize> {
    memrchr_iter(b'{', text).find(|&at| follows_object(text, at) && begins_event(text, at))
}

/// The beginning of the next event, at `from` or later.
pub(crate) fn next_event(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    memchr_iter(b'{', rest).map(|at| from + at).find(|&at| is_element(text, at) && begins_event(text, at))
}

/// Whether an event probably begins in the text.
pub(crate) fn holds_event(text: &[u8]) -> bool {
    memchr_iter(b'{', text).any(|at| begins_event(text, at))
}

/// Whether the brace at `at` begins an object whose first key is in [`FIRST_KEYS`].
pub(crate) fn begins_event(text: &[u8], at: usize) -> bool {
    let mut cursor = Cursor::new(text, at + 1);
    cursor.skip_space();
    let rest = &text[cursor.at.min(text.len())..];
    let Some(rest) = rest.strip_prefix(b"\"") else { return false };
    let Some(key) = FIRST_KEYS.iter().find(|key| rest.starts_with(key) && rest.get(key.len()) == Some(&b'"'))
    else {
        return false;
    };
    cursor.at += key.len() + 2;
    cursor.skip_space();
    cursor.peek() == b':'
}

/// Whether an object with a phase begins at `at`; such an object is almost certainly an event.
pub(crate) fn is_event(text: &[u8], at: usize) -> bool {
    if text.get(at) != Some(&b'{') || !begins_event(text, at) {
        return false;
    }
    let mut cursor = Cursor::new(&text[..text.len().min(at + MOST_BYTES_BEFORE_PHASE)], at + 1);
    loop {
        cursor.skip_space();
        let Ok(key) = cursor.key() else { return false };
        if matches!(cursor.peek(), b'{' | b'[') {
            return false;
        }
        let Ok(value) = cursor.value() else { return false };
        if key == b"ph" {
            return value.is_text() && value.bytes.len() == 1;
        }
        cursor.skip_space();
        if cursor.expect(b',').is_err() {
            return false;
        }
    }
}

/// The position of the opening brace of the next event that has a phase and begins at `from` or later.
pub(crate) fn next_sure_event(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    memchr_iter(b'{', rest).map(|at| from + at).find(|&at| is_element(text, at) && is_event(text, at))
}

/// The position after the opening bracket of the next `traceEvents` list whose key begins at `from` or later.
pub(crate) fn next_list_of_events(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    memchr::memmem::find_iter(rest, b"\"traceEvents\"").find_map(|at| {
        let mut cursor = Cursor::new(text, from + at);
        cursor.key().ok()?;
        cursor.expect(b'[').ok()?;
        Some(cursor.at)
    })
}

/// Whether the text contains a list of events, or an event with a phase.
pub(crate) fn holds_list_or_event(text: &[u8]) -> bool {
    next_list_of_events(text, 0).or_else(|| next_sure_event(text, 0)).is_some()
}

fn is_element(text: &[u8], at: usize) -> bool {
    matches!(text[..at].trim_ascii_end().last(), None | Some(b',' | b'[' | b'}' | b']'))
}

fn follows_object(text: &[u8], at: usize) -> bool {
    text[..at]
        .trim_ascii_end()
        .strip_suffix(b",")
        .is_some_and(|before| before.trim_ascii_end().last() == Some(&b'}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text is cut before the last event whose first key is complete; spaces around the key do not matter.
    #[test]
    fn cuts_before_events() {
        let text = br#"{"ph": "X", "args": {"a": 1}}, {"ph":"X","args":{"b": 2}} ,
          { "ph" : "X", "args": {"c""#;
        assert_eq!(last_cut(text), Some(70));
        assert_eq!(last_cut(br#"{"ph": "X", "args": {"a": 1}}"#), None);
    }

    /// Braces inside strings do not begin events.
    #[test]
    fn strings_do_not_cut() {
        assert_eq!(last_cut(br#"{"ph": "X", "name": "}, {\"ph\": 1}"}"#), None);
    }

    /// The search for the next event skips an object that is the value of `args`.
    #[test]
    fn next_event_is_an_element() {
        let text = br#"garbage "args": {"name": 1}, {"ph": "X"}"#;
        assert_eq!(next_event(text, 0), Some(29));
    }
}
