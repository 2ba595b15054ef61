//! Copies of traces with some events changed.
#![allow(clippy::expect_used)]

use std::io::Write;

use trace_reader::{ClockLine, EditedCopy, Fate, Input, Pid, Placing, ReadError};

/// Return an edited copy of a text, and the number of events in the text.
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

/// If no event changes, the copy equals the text byte for byte, whether it is made in one piece or in many.
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

/// `LeftOut`, `Marked` and `Numbered` change events as documented; the commas of omitted events are omitted, too.
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

/// Copying a text without a complete list of events is an error.
#[test]
fn damage_is_an_error() {
    for text in ["", "[{\"ph\":\"X\"}", "[{\"ph\":\"X\"", "[{\"ph\" 1}]", "[{\"ph\":\"X\"}, 5]", "{\"a\":[]}"]
    {
        assert!(edited(text.as_bytes(), |_| Fate::Kept).is_err(), "{text}");
    }
}

/// A copy for a timeline contains only events, each after a comma; the number of chunks makes no difference.
#[test]
fn placed_events_are_those_of_the_list_alone() {
    let line = ClockLine { at_ns: 0, offset_ns: -2_000, drift_ppb: 0.0, last_ns: i64::MAX };
    let placing = Placing::new(2, 5_000, 1_000, vec![line], [(Pid::Number(7), 2_001)].into());
    let names = r#"{"ph":"M","name":"process_name","pid":7}"#;
    let event = r#"{ "ph":"X", "ts": 1.001, "pid":7, "dur":2, "args": {"ts": 1} }"#;
    for count in [0, 1, 100_000] {
        let text = format!(
            "{{\"a\": [{{}}], \"traceEvents\": [{names}{}], \"b\": 1}}",
            format!(", {event}").repeat(count)
        );
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("room for it");
        let mut copy =
            EditedCopy::new(Input::open(file.path()).expect("it opens")).expect("it is a trace").of_events();
        let mut out = Vec::new();
        while let Some(piece) = copy.events(&|_| Fate::Placed(&placing)).expect("it is valid") {
            out.extend(piece);
        }
        let placed = r#"{ "ph":"X", "ts": 3.001, "pid":2001, "dur":2, "args": {"ts": 1} }"#;
        assert!(out == format!(",\n{placed}").repeat(count).into_bytes());
        assert_eq!(copy.event_count(), count + 1);
    }
}
