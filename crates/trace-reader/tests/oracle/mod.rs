//! Compares the reader with serde_json; also used by the fuzz target.

use std::io::Cursor;
use std::num::NonZeroUsize;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use serde_json::Value;
use trace_reader::{nanoseconds_from_microseconds, read, Input, MemorySink, Options, Table};

/// A complete event: position, name, category, start, duration.
pub type Complete = (u32, String, Option<String>, i64, i64);

/// Read any bytes with the reader; if serde_json accepts them, compare the events.
///
/// # Panics
///
/// Panics if the events differ.
pub fn check(bytes: &[u8], chunk_bytes: usize) {
    let actual = complete_events(bytes, chunk_bytes);
    if let Some(expected) = expected_events(bytes) {
        assert_eq!(actual, Some(expected), "{}", String::from_utf8_lossy(bytes));
    }
}

/// The events according to the reader; `None` if it rejects the file.
pub fn complete_events(bytes: &[u8], chunk_bytes: usize) -> Option<Vec<Complete>> {
    let input = Input::new("trace.json".to_owned(), Box::new(Cursor::new(bytes.to_vec())), 0);
    let mut sink = MemorySink::default();
    let options = Options {
        threads: NonZeroUsize::new(2),
        chunk_bytes: NonZeroUsize::new(chunk_bytes),
        ..Options::default()
    };
    read(input, &mut sink, options, &mut |_, _| true).ok()?;
    let strings: Vec<String> = sink
        .take(Table::Strings)
        .iter()
        .flat_map(|batch| {
            batch.column(0).as_string::<i64>().iter().map(|text| text.unwrap_or_default().to_owned())
        })
        .collect();
    let mut events = Vec::new();
    for batch in sink.take(Table::Events) {
        let ids = |column: usize| batch.column(column).as_primitive::<UInt32Type>();
        let times = |column: usize| batch.column(column).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let category = ids(4).iter().nth(row).flatten().map(|id| strings[id as usize].clone());
            let name = strings[ids(5).value(row) as usize].clone();
            events.push((ids(0).value(row), name, category, times(1).value(row), times(2).value(row)));
        }
    }
    Some(events)
}

/// The events according to serde_json; `None` if it rejects the text, or if our reader may read the text differently.
fn expected_events(bytes: &[u8]) -> Option<Vec<Complete>> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let text = std::str::from_utf8(bytes).ok()?;
    if text.matches("traceEvents").count() != 1 || text.contains("baseTime") {
        return None;
    }
    let elements = value.as_object()?.get("traceEvents")?.as_array()?;
    elements.iter().enumerate().map(|(position, element)| expected_event(position as u32, element)).collect()
}

fn expected_event(position: u32, element: &Value) -> Option<Complete> {
    let event = element.as_object()?;
    if event.get("ph")? != "X" {
        return None;
    }
    let microseconds = |key: &str| match event.get(key)? {
        Value::Number(number) => nanoseconds_from_microseconds(number.to_string().as_bytes()),
        _ => None,
    };
    let (start, duration) = (microseconds("ts")?, microseconds("dur")?);
    start.checked_add(duration).filter(|_| duration >= 0)?;
    let name = event.get("name")?.as_str()?.to_owned();
    let category = match event.get("cat") {
        None | Some(Value::Null) => None,
        Some(category) => Some(category.as_str()?.to_owned()),
    };
    Some((position, name, category, start, duration))
}
