//! The reader predicts an event's layout from earlier events; a wrong prediction never changes how the event is read.
#![allow(clippy::expect_used)]

mod oracle;

use std::num::NonZeroUsize;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, Index};
use serde_json::Value;
use trace_reader::{read, Input, MemorySink, Options, Table};

const KEYS: [&str; 20] = [
    "ph",
    "cat",
    "name",
    "pid",
    "tid",
    "ts",
    "dur",
    "args",
    "id",
    "bp",
    "ph",
    "ts",
    "dur",
    "name",
    "args",
    "new",
    r"p\u0068",
    r"\u0061rgs",
    r"c\u0061t",
    "a key that is longer than most keys in a real trace",
];
const COLONS: [&str; 5] = [": ", ": ", ":", " : ", ":\n\t  "];
const COMMAS: [&str; 6] = [", ", ", ", ",", " ,\n    ", ",\r\n", ",                                   "];
const ENDS: [&str; 3] = ["}", "\n  }", " } "];
const VALUES: [&str; 39] = [
    r#""X""#,
    r#""X""#,
    r#""X""#,
    r#""s""#,
    r#""M""#,
    r#""C""#,
    r#""i""#,
    r#""B""#,
    r#""E""#,
    r#""\u0058""#,
    r#""kernel""#,
    r#""cpu_op""#,
    r#""c\u0070u_op""#,
    r#""cuda_profiler_range""#,
    r#""a \"name\" with quotes, and \\""#,
    r#""void some::kernel<float>(int, int)""#,
    r#""a name that is longer than the part that is read byte by byte {\"}""#,
    "0",
    "7",
    "12345678",
    "123456789",
    "1725000000000",
    "1725000000000.123",
    "45.5",
    "45.6789012",
    "0.001",
    "-5",
    "1e3",
    "1.5E-3",
    "18446744073709551615",
    "null",
    "true",
    "[]",
    "[1, 2, 3]",
    r#"{"a": [1, {"ph": "X"}]}"#,
    r#"{"stream": 7, "correlation": 1, "grid": [1, 2, 3], "new": 1}"#,
    r#"{"stream": 8, "correlation": 2}"#,
    r#"{ "str\u0065am" : 9,"name":"n", "correlation": 1, "correlation": 2 }"#,
    "{}",
];

/// A key, the colon after it, and the comma before it, each with its spaces.
type Member = (&'static str, &'static str, &'static str);

fn member() -> impl Strategy<Value = Member> {
    (select(KEYS.to_vec()), select(COLONS.to_vec()), select(COMMAS.to_vec()))
}

/// The layout of an event: all of its text except the values.
type Layout = (Vec<Member>, &'static str);

fn layout() -> impl Strategy<Value = Layout> {
    (vec(member(), 0..10), select(ENDS.to_vec()))
}

/// A change to the layout of one event.
#[derive(Clone, Debug)]
enum Change {
    Nothing,
    Key(&'static str),
    Colon(&'static str),
    Comma(&'static str),
    Missing,
    Further(Member),
    End(&'static str),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => Just(Change::Nothing),
        1 => select(KEYS.to_vec()).prop_map(Change::Key),
        1 => select(COLONS.to_vec()).prop_map(Change::Colon),
        1 => select(COMMAS.to_vec()).prop_map(Change::Comma),
        1 => Just(Change::Missing),
        1 => member().prop_map(Change::Further),
        1 => select(ENDS.to_vec()).prop_map(Change::End),
    ]
}

fn changed((members, end): &Layout, change: &Change, at: Index) -> Layout {
    let (mut members, mut end) = (members.clone(), *end);
    if members.is_empty() {
        return (members, end);
    }
    let at = at.index(members.len());
    match *change {
        Change::Nothing => {}
        Change::Key(key) => members[at].0 = key,
        Change::Colon(colon) => members[at].1 = colon,
        Change::Comma(comma) => members[at].2 = comma,
        Change::Missing => drop(members.remove(at)),
        Change::Further(member) => members.insert(at, member),
        Change::End(other) => end = other,
    }
    (members, end)
}

/// Return a value: if `number` is a multiple of 8, any of `VALUES`, otherwise one that suits the key.
fn value(key: &str, number: usize) -> &'static str {
    let suitable = match key {
        "ph" => &VALUES[..9],
        "cat" => &VALUES[10..14],
        "name" => &VALUES[14..17],
        "pid" | "tid" | "ts" | "dur" => &VALUES[17..26],
        "args" => &VALUES[34..39],
        _ => &VALUES[..],
    };
    if number.is_multiple_of(8) {
        VALUES[number / 8 % VALUES.len()]
    } else {
        suitable[number % suitable.len()]
    }
}

fn event((members, end): &Layout, numbers: &[usize]) -> String {
    let mut text = "{".to_owned();
    for (at, ((key, colon, comma), &number)) in members.iter().zip(numbers).enumerate() {
        let comma = if at == 0 { "" } else { comma };
        text += &format!("{comma}\"{key}\"{colon}{}", value(key, number));
    }
    text + end
}

/// Events of a few layouts in any order, between two valid events.
fn events() -> impl Strategy<Value = String> {
    let changes = (any::<Index>(), change(), any::<Index>());
    let of_events = vec((changes, vec(0..1000_usize, 11)), 0..30);
    (vec(layout(), 1..3), of_events).prop_map(|(layouts, events)| {
        let good = r#"{"ph": "X", "cat": "cpu_op", "name": "good", "pid": 1, "tid": 1, "ts": 1, "dur": 1}"#;
        let mut texts = vec![good.to_owned()];
        texts.extend(events.iter().map(|((layout, change, at), numbers)| {
            event(&changed(layout.get(&layouts), change, *at), numbers)
        }));
        texts.push(good.to_owned());
        format!(r#"{{"traceEvents": [{}]}}"#, texts.join(",\n  "))
    })
}

/// Read the whole trace in `text`, and return its tables and its health.
fn read_whole(text: &[u8], chunk_bytes: usize) -> (Vec<RecordBatch>, Value) {
    let mut sink = MemorySink::default();
    let options = Options { chunk_bytes: NonZeroUsize::new(chunk_bytes), ..Options::default() };
    let bytes = std::io::Cursor::new(text.to_vec());
    let input = Input::new("text".to_owned(), Box::new(bytes), text.len() as u64);
    let trace = read(input, &mut sink, options, &mut |_, _| true).expect("it is a trace");
    let tables = Table::ALL.iter().map(|&table| sink.take(table)).filter(|batches| !batches.is_empty());
    let tables = tables.map(|batches| concat_batches(&batches[0].schema(), &batches).expect("one schema"));
    (tables.collect(), serde_json::from_str(&trace.health).expect("it is JSON"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Events that are read together become the same rows as if each event were read in a chunk of its own.
    #[test]
    fn neighbours_do_not_matter(text in events()) {
        oracle::check(text.as_bytes(), 1 << 20);
        prop_assert_eq!(read_whole(text.as_bytes(), 1 << 20), read_whole(text.as_bytes(), 1), "{}", text);
    }

    /// If a text is still valid after one byte is replaced, the reader and serde_json find the same events in it.
    #[test]
    fn replaced_bytes(text in events(), at in any::<Index>(), byte in select(b"\"\\{}[]:, 1x".to_vec())) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        oracle::check(&bytes, 1 << 20);
    }
}
