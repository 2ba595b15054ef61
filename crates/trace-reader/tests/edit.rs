//! Copies of traces with some events changed.
#![allow(clippy::expect_used)]

use std::io::Write;

use trace_reader::{EditedCopy, Fate, Input, ReadError};

/// Return the copy of a text, and the number of events in the text.
fn edited(text: &[u8], fate: impl Fn(usize) -> Fate<'static>) -> Result<(String, usize), ReadError> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text).expect("room for it");
    let mut copy = EditedCopy::new(Input::open(file.path())?)?;
    let mut out = Vec::new();
    while let Some(piece) = copy.events(&fate)? {
        out.extend(piece);
    }
    while let Some(piece) = copy.rest()? {
        out.extend(piece);
    }
    Ok((String::from_utf8(out).expect("the copy is text"), copy.event_count()))
}

/// Without changes the copy equals the text, byte for byte, in any number of pieces.
#[test]
fn kept_events_are_copied_byte_for_byte() {
    let event = r#"{ "ph":"X",  "name":"é \"}{\\", "args": {"a": [1, {"b":"]"}]} }"#;
    for count in [0, 1, 3, 100_000] {
        let events = vec![event; count].join(" ,\n");
        let text = format!("{{\"a\": [{{}}], \"traceEvents\": [\n{events}], \"b\": \"]\"}}\n");
        let (copy, event_count) = edited(text.as_bytes(), |_| Fate::Kept).expect("it is a trace");
        assert!(copy == if count == 0 { text.replace("[\n]", "[]") } else { text });
        assert_eq!(event_count, count);
    }
}

/// Each fate changes the events as documented, and commas only separate copied events.
#[test]
fn events_are_left_out_marked_and_numbered() {
    let text = br#"[{"ph":"X","name":"a","args":{"x":1}}, {"name":"b" }, {"ph":"X", "name":"c", "args":[]}]"#;
    let all = |fate: Fate<'static>| edited(text, move |_| fate).expect("it is a trace").0;
    assert_eq!(all(Fate::LeftOut), "[]");
    assert_eq!(
        all(Fate::Marked(b"\"m\":1")),
        "[\n{\"ph\":\"X\",\"name\":\"a\",\"args\":{\"x\":1,\"m\":1}},\n{\"name\":\"b\",\"args\":{\"m\":1}},\n\
         {\"ph\":\"X\", \"name\":\"c\", \"args\":{\"m\":1}}]"
    );
    assert_eq!(
        all(Fate::Numbered(7)),
        "[\n{\"ph\":\"X\",\"name\":\"7\",\"args\":{}},\n{\"name\":\"b\" },\n\
         {\"ph\":\"X\",\"name\":\"7\",\"args\":{}}]"
    );
}

/// A text without a complete list of events is an error.
#[test]
fn damage_is_an_error() {
    for text in ["", "[{\"ph\":\"X\"}", "[{\"ph\":\"X\"", "[{\"ph\" 1}]", "[{\"ph\":\"X\"}, 5]", "{\"a\":[]}"]
    {
        assert!(edited(text.as_bytes(), |_| Fate::Kept).is_err(), "{text}");
    }
}
