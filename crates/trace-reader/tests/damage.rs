//! Damaged and hostile files: every readable event is read, everything skipped is counted, and time and memory stay
//! bounded.
#![allow(clippy::expect_used)]

use std::io::Write;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_select::concat::concat_batches;
use flate2::write::GzEncoder;
use flate2::Compression;
use serde_json::Value;
use trace_reader::{read, schema_of, Input, MemorySink, Options, ReadError, Table};

struct Read {
    names: Vec<String>,
    health: Value,
    extra: Vec<String>,
}

impl Read {
    /// The kind, severity, count, lost events and lost bytes of each finding.
    fn findings(&self) -> Vec<(&str, &str, u64, u64, u64)> {
        let number = |finding: &Value, key: &str| finding[key].as_u64().expect("a number");
        let findings = self.health["findings"].as_array().expect("a list").iter();
        findings
            .map(|finding| {
                (
                    finding["kind"].as_str().expect("text"),
                    finding["severity"].as_str().expect("text"),
                    number(finding, "count"),
                    number(finding, "events_lost"),
                    number(finding, "bytes_lost"),
                )
            })
            .collect()
    }

    fn kinds(&self) -> Vec<&str> {
        self.findings().into_iter().map(|(kind, ..)| kind).collect()
    }

    fn lost(&self) -> (u64, u64) {
        let lost = |events: u64, bytes: u64, finding: &(&str, &str, u64, u64, u64)| {
            (events + finding.3, bytes + finding.4)
        };
        self.findings().iter().fold((0, 0), |(events, bytes), finding| lost(events, bytes, finding))
    }
}

fn read_with(bytes: &[u8], options: Options) -> Result<Read, ReadError> {
    let mut sink = MemorySink::default();
    let input = Input::new("a.json".to_owned(), Box::new(std::io::Cursor::new(bytes.to_vec())), 0);
    let trace = read(input, &mut sink, options, &mut |_, _| true)?;
    let batches = |sink: &mut MemorySink, table| {
        concat_batches(&schema_of(table), &sink.take(table)).expect("batches share a schema")
    };
    let strings = batches(&mut sink, Table::Strings);
    let events = batches(&mut sink, Table::Events);
    let extra = batches(&mut sink, Table::ExtraArgs);
    let text = |id: u32| strings.column(0).as_string::<i64>().value(id as usize).to_owned();
    Ok(Read {
        names: events.column(5).as_primitive::<UInt32Type>().values().iter().copied().map(text).collect(),
        health: serde_json::from_str(&trace.health).expect("the health is JSON"),
        extra: extra.column(1).as_string::<i64>().iter().flatten().map(str::to_owned).collect(),
    })
}

/// Read in chunks of several sizes, check that the size does not change the events, and return the result for large
/// chunks.
fn read_any(text: &[u8]) -> Read {
    let sized = |chunk_bytes| {
        let chunk_bytes = NonZeroUsize::new(chunk_bytes);
        read_with(text, Options { chunk_bytes, ..Options::default() }).expect("it is a trace")
    };
    let whole = sized(1 << 20);
    for chunk_bytes in [1, 7, 60, 500] {
        assert_eq!(sized(chunk_bytes).names, whole.names, "{chunk_bytes}: {}", String::from_utf8_lossy(text));
    }
    whole
}

fn event(name: &str) -> String {
    format!(r#"{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,"ts":1,"dur":1}}"#)
}

fn events(names: &str) -> String {
    names.chars().map(|name| event(&name.to_string())).collect::<Vec<_>>().join(",")
}

fn object(names: &str) -> String {
    format!(r#"{{"schemaVersion":1,"traceEvents":[{}],"traceName":"x"}}"#, events(names))
}

/// Flows, counters, metadata and begin or end events do not affect the events around them, even if their args are odd.
#[test]
fn args_of_any_phase() {
    for phase in ["s", "t", "f", "C", "M", "B", "E", "b", "e", "i", "R", "X", "Q", ""] {
        let odd = format!(
            r#"{{"ph":"{phase}","id":1,"cat":"kernel","name":"o","pid":1,"tid":1,"ts":1,
                "args":{{"correlation":1,"device":"0","stream":{{}},"External id":[2],"name":7,"grid":[1,2,3]}}}}"#
        );
        let read = read_any(format!(r#"{{"traceEvents":[{},{odd},{}]}}"#, event("a"), event("b")).as_bytes());
        let names: Vec<&str> = read.names.iter().map(String::as_str).filter(|&name| name != "o").collect();
        assert_eq!(names, ["a", "b"], "{phase}");
    }
}

/// If an arg of a flow has no column, it is kept as JSON.
#[test]
fn args_of_flows_are_kept() {
    let flow = r#"{"ph":"s","id":1,"pid":1,"tid":1,"ts":1,"cat":"ac2g","name":"f","args":{"correlation":1}}"#;
    let read = read_any(format!(r#"{{"traceEvents":[{flow}]}}"#).as_bytes());
    assert_eq!(read.extra, [r#"{"correlation":1}"#]);
    assert_eq!(read.findings(), []);
}

/// If a key of an event occurs twice, its last value wins, even if the reader has already read args based on the first.
#[test]
fn repeated_keys() {
    let flow = r#"{"ph":"X","args":{"stream":7,"x":1},"ph":"s","id":3,"pid":1,"tid":1,"ts":1,"cat":"kernel","args":{"y":2}}"#;
    let kernel = r#"{"ph":"s","cat":"c","args":{"stream":7},"cat":"kernel","ph":"X","name":"k","pid":1,"tid":1,"ts":1,"dur":1}"#;
    let read = read_any(format!(r#"{{"traceEvents":[{flow},{kernel}]}}"#).as_bytes());
    assert_eq!(read.extra, [r#"{"y":2}"#]);
    assert_eq!(read.names, ["k"]);
    assert_eq!(read.findings(), []);
}

/// A stray closing bracket between two events, with or without a comma, does not end the list of events, whether the
/// list is bare or in an object.
#[test]
fn brackets_among_the_events() {
    for between in ["]", "],", ",]", "] , ", "]]", "}"] {
        for (head, tail) in [("[", "]"), (r#"{"traceEvents":["#, r#"],"traceName":"x"}"#)] {
            let text = format!("{head}{}{between}{}{tail}", events("ab"), events("cd"));
            let read = read_any(text.as_bytes());
            assert_eq!(read.names, ["a", "b", "c", "d"], "{text}");
            assert!(!read.findings().is_empty(), "{text}");
        }
    }
}

/// If a file contains several lists of events or several JSON documents, all are read, and a finding reports this.
#[test]
fn further_documents_and_lists() {
    let (first, second) = (object("ab"), object("cd"));
    let list = |names: &str| format!("[{}]", events(names));
    let twice = format!(r#"{{"traceEvents":[{}],"a":[1],"traceEvents":[{}]}}"#, events("ab"), events("cd"));
    for (text, kind) in [
        (format!("{first}{second}"), "another_document"),
        (format!("{first}\n\n{second}\n"), "another_document"),
        (format!("{}{}", list("ab"), list("cd")), "another_document"),
        (format!("{first}{}", list("cd")), "another_document"),
        (twice, "repeated_trace_events"),
    ] {
        let read = read_any(text.as_bytes());
        assert_eq!(read.names, ["a", "b", "c", "d"], "{text}");
        assert_eq!(read.findings(), [(kind, "repaired", 1, 0, 0)], "{text}");
    }
    let read = read_any(format!("{first} garbage {second}").as_bytes());
    assert_eq!(read.names, ["a", "b", "c", "d"]);
    assert!(read.kinds().contains(&"trailing_garbage"));
}

/// Each document may state its own base time, before or after its events.
#[test]
fn base_times_of_documents() {
    let document = |key: &str, base: u64| match key {
        "before" => format!(r#"{{"baseTimeNanoseconds":{base},"traceEvents":[{}]}}"#, event("a")),
        _ => format!(r#"{{"traceEvents":[{}],"baseTimeNanoseconds":{base}}}"#, event("a")),
    };
    for (first, second, kinds) in [
        (document("before", 5), document("before", 9), vec!["another_document"]),
        (document("after", 5), document("before", 9), vec!["another_document"]),
        (document("after", 5), document("after", 5), vec!["another_document"]),
        (document("after", 5), document("after", 6), vec!["another_document", "unusable_base_time"]),
    ] {
        assert_eq!(read_any(format!("{first}{second}").as_bytes()).kinds(), kinds, "{first}{second}");
    }
}

/// Bytes that are not part of an event are counted, and the events around them are kept.
#[test]
fn losses_are_counted() {
    for (odd, finding) in [
        ("null", ("not_an_event", "dropped", 1, 1, 4)),
        (r#"[1,{"a":2}]"#, ("not_an_event", "dropped", 1, 1, 11)),
        ("nonsense:1", ("not_an_event", "dropped", 1, 1, 10)),
        ("non sense", ("garbage_between_events", "dropped", 1, 0, 10)),
        ("\0\0\0", ("zero_bytes", "dropped", 1, 0, 3)),
        (r#"{"ph":"X","ts":1"#, ("broken_event", "dropped", 1, 1, 17)),
    ] {
        let text = format!(r#"{{"traceEvents":[{},{odd},{}]}}"#, event("a"), event("b"));
        let read = read_any(text.as_bytes());
        assert_eq!(read.names, ["a", "b"], "{odd}");
        assert!(read.findings().contains(&finding), "{odd}: {:?}", read.findings());
    }
    let long = format!(r#"{{"traceEvents":[{}],"a":"#, events("ab"));
    assert_eq!(read_any(long.as_bytes()).findings(), [("truncated_json", "dropped", 1, 0, 5)]);
}

/// If the text before the list of events is damaged, no event is lost.
#[test]
fn damaged_heads() {
    for head in [
        r#"{"schemaVersion: 1,"traceEvents":["#,
        r#"{"deviceProperties":[{"id":0,"name":"x"],"traceEvents":["#,
        r#"{"deviceProperties":[{"id":0,"name":"x"},"traceEvents":["#,
        r#"{"schemaVersion":1 "traceEvents":["#,
        r#"x"schemaVersion":1,"traceEvents":["#,
        r#"{"schemaVersion":1,"traceEvent":["#,
        r#"{"schemaVersion":1,"traceEvents":[["#,
        r#"{"a":"never closed,"traceEvents":["#,
        r#"{"id":1},{"id":2}],"traceEvents":["#,
        r#"{"id":1}]],"trace":["#,
        r#"{"nodes":[]}{"schemaVersion":1,"traceEvents":["#,
    ] {
        let text = format!("{head}{}]}}", events("abc"));
        let read = read_any(text.as_bytes());
        assert_eq!(read.names, ["a", "b", "c"], "{head}");
        assert!(!read.findings().is_empty(), "{head}");
    }
}

/// A damaged value before or after the events hides no event, even if the list of events seems to be inside the value.
#[test]
fn metadata_reaches_over_no_events() {
    for (head, tail) in [
        (r#"{"a":[{"x":1,"y: 2,"z":3}],"traceEvents":["#, "]}"),
        (r#"{"a":{"x":1,"y":"2,"z":3},"traceEvents":["#, "]}"),
        (r#"{"a":{"x":1,"traceEvents":["#, "]}"),
        (r#"{"a":{"x":1,"traceEvents":["#, r#"],"b":1}"#),
        (r#"{"traceEvents":["#, r#"],"a":{"x":1,"y: 2,"z":3}}"#),
        (r#"{"traceEvents":["#, r#"],"a":{"x":1}"#),
        (r#"{"traceEvents":["#, r#"],"a":[{"x":1}"#),
    ] {
        for times in 1..4 {
            let text = format!("{head}{}{tail}", events("abc")).repeat(times);
            let read = read_any(text.as_bytes());
            assert_eq!(read.names.concat(), "abc".repeat(times), "{text}: {:?}", read.findings());
            assert_eq!(read.lost().0, 0, "{text}: {:?}", read.findings());
            assert!(!read.findings().is_empty(), "{text}");
        }
    }
}

/// Every text that serde_json rejects causes a finding.
#[test]
fn no_fault_is_silent() {
    let good = r#"{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":1,"tid":1,"ts":1,"dur":1,"args":{"stream":7,"grid":[1,2,3],"Input Dims":[[1,2],[3]],"new":1}}],"a":1}"#;
    for (from, to) in [
        (r#""pid":1"#, r#""pid":1z"#),
        (r#""ts":1"#, r#""ts":01"#),
        (r#""ts":1"#, r#""ts":1."#),
        (r#""stream":7"#, r#""stream":7x"#),
        ("[1,2,3]", "[01,2,3]"),
        ("[[1,2],[3]]", "[[1,2],[3,]]"),
        ("[[1,2],[3]]", "[[1 2],[3]]"),
        (r#""new":1"#, r#""new":[1,]"#),
        (r#""new":1"#, r#""n\ew":1"#),
        ("}}],", "}},],"),
        (r#""k""#, r#""\k""#),
        (r#"],"a""#, r#"],,"a""#),
        (r#""a":1"#, r#""a":1z"#),
        (r#""a":1"#, r#""\a":1"#),
        ("[{", "[,{"),
        ("}}]", "}}{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"a\"}]"),
        (r#""a":1}"#, r#""a":1"#),
        (r#""a":1}"#, r#""a":1}}"#),
        (r#"{"traceEvents""#, r#"{,"traceEvents""#),
    ] {
        assert!(good.contains(from));
        let text = good.replacen(from, to, 1);
        assert!(serde_json::from_str::<Value>(&text).is_err(), "{text}");
        let read = read_any(text.as_bytes());
        assert!(read.findings().iter().any(|finding| finding.1 != "note"), "{text}");
    }
    assert_eq!(read_any(good.as_bytes()).findings(), []);
}

/// Sizes of the short and the long text whose reading times are compared.
const SHORT_BYTES: usize = 1 << 13;
const LONG_BYTES: usize = 1 << 17;

/// Upper limit for the reading time of the long text divided by that of the short text. The ratio is about 16 if
/// reading takes linear time, and about 256 if reading takes quadratic time.
const MOST_TIMES_LONGER: u32 = 64;

fn hostile_text(piece: &str, bytes: usize) -> String {
    format!(r#"{{"traceEvents":[{},{}"#, event("a"), piece.repeat(bytes / piece.len()))
}

fn time_to_read(text: &str) -> Duration {
    let options = Options { threads: NonZeroUsize::new(1), ..Options::default() };
    let begin = Instant::now();
    let read = read_with(text.as_bytes(), options).expect("it is a trace");
    let time = begin.elapsed();
    assert_eq!(read.names[0], "a");
    assert!(!read.findings().is_empty());
    time
}

/// Reading takes linear time even if the text is deeply nested, repetitive, or full of events without an end.
#[test]
fn time_is_linear() {
    for piece in [
        r#"{"ph":"X","args":[1,"#,
        r#"{"ph":[1,"#,
        r#"{"ph":"X","args":{"l":["#,
        r#"{"a":"#,
        "[",
        "[1,",
        r#",{"name":"a"#,
        r#"{"ph":"X","name":"\","#,
        r#"{"ph":"X","ts":1,"dur":1,"name":"a"},[1,"#,
        r#"]["#,
        r#"{"traceEvents":[]}"#,
        "]}{\"traceEvents\":[",
        "\0 ",
        "\" \" ",
    ] {
        let (short, long) = (hostile_text(piece, SHORT_BYTES), hostile_text(piece, LONG_BYTES));
        // Other processes may slow down one attempt, but are unlikely to slow down all five.
        let is_linear = (0..5).any(|_| time_to_read(&long) < MOST_TIMES_LONGER * time_to_read(&short));
        assert!(is_linear, "{piece}");
    }
}

/// An event with values nested 100,000 deep is read like any other, in linear time.
#[test]
fn deeply_nested_events() {
    let deep = format!("{}1{}", "{\"args\":[1,".repeat(100_000), "]}".repeat(100_000));
    let text = format!(r#"{{"traceEvents":[{},{deep},{}]}}"#, event("a"), event("b"));
    assert_eq!(read_with(text.as_bytes(), Options::default()).expect("it is a trace").names, ["a", "b"]);
}

/// An event longer than the limit is skipped and counted; its neighbours are kept.
#[test]
fn oversized_events() {
    let options = Options {
        chunk_bytes: NonZeroUsize::new(1 << 10),
        most_bytes_of_event: NonZeroUsize::new(1 << 14),
        ..Options::default()
    };
    for odd in ["x".repeat(200_000), "\0".repeat(200_000), " ".repeat(200_000)] {
        let text = format!(r#"{{"traceEvents":[{},{},{}]}}"#, event("a"), event(&odd), event("b"));
        let read = read_with(text.as_bytes(), options).expect("it is a trace");
        assert_eq!(read.names, ["a", "b"]);
        let (events, bytes) = read.lost();
        // Skipped spaces are not counted as lost: the reader cannot distinguish them from spaces between events.
        let least = if odd.starts_with(' ') { 1 } else { 200_000 };
        assert!(events >= 1 && (least..201_000).contains(&bytes), "{events} {bytes}");
    }
    let spaced = format!(r#"{{"traceEvents":[{},{}{}]}}"#, event("a"), " ".repeat(200_000), event("b"));
    let read = read_with(spaced.as_bytes(), options).expect("it is a trace");
    assert_eq!((read.names.len(), read.findings()), (2, vec![]));
}

type Pack = fn(&[u8]) -> Vec<u8>;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// If a checksum is wrong, this is reported, and all decoded events are kept.
#[test]
fn checksums() {
    let text = object("abc");
    let (mut packed, mut framed) = (gzip(text.as_bytes()), zstd(text.as_bytes()));
    let (of_gzip, of_zstd) = (packed.len() - 5, framed.len() - 1);
    packed[of_gzip] ^= 1;
    framed[of_zstd] ^= 1;
    for bytes in [packed, framed] {
        let read = read_any(&bytes);
        assert_eq!(read.names, ["a", "b", "c"]);
        assert_eq!(read.findings(), [("checksum_mismatch", "dropped", 1, 0, 0)]);
    }
}

/// A zstd frame shorter than the size it states is reported, even if it has no checksum.
#[test]
fn stated_sizes() {
    let text = format!("[{}]", event("a"));
    let frame = |size: usize| {
        // One raw block in a single segment without a checksum: https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1
        let block = (text.len() << 3 | 1).to_le_bytes();
        [&[0x28, 0xB5, 0x2F, 0xFD, 0x20, u8::try_from(size).expect("short")], &block[..3], text.as_bytes()]
            .concat()
    };
    assert_eq!(read_any(&frame(text.len())).findings(), []);
    let read = read_any(&frame(text.len() + 1));
    assert_eq!(read.names, ["a"]);
    assert_eq!(read.findings(), [("checksum_mismatch", "dropped", 1, 0, 0)]);
}

/// A damaged gzip member or zstd frame does not hide the members or frames after it.
#[test]
fn damaged_streams() {
    let many = |name: &str| vec![event(name); 3_000].join(",");
    for pack in [gzip as Pack, zstd] {
        let first = pack(format!("[{},", many("a")).as_bytes());
        let second = pack(format!("{}]", many("b")).as_bytes());
        let cut_off = first[..first.len() * 3 / 4].to_vec();
        let mut flipped = first.clone();
        flipped[first.len() / 2] ^= 0xFF;
        for damaged in [cut_off, flipped] {
            let read =
                read_with(&[damaged, second.clone()].concat(), Options::default()).expect("it is a trace");
            assert!(read.names.iter().filter(|name| *name == "b").count() >= 2_999);
            assert!(!read.findings().is_empty());
        }
    }
}

/// All events before the damage in a gzip file are read.
#[test]
fn damaged_gzip() {
    let names: Vec<String> = (0..3_000).map(|number| event(&format!("{number:x}"))).collect();
    let text = format!("[{}]", names.join(","));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(text.as_bytes()).expect("memory");
    let mut packed = encoder.finish().expect("memory");
    // The header is followed by uncompressed blocks. Each block consists of a byte, the length, the complement of the
    // length, and the bytes themselves (<https://www.rfc-editor.org/rfc/rfc1951#page-11>).
    let first_bytes = usize::from(u16::from_le_bytes([packed[11], packed[12]]));
    packed[10 + 5 + first_bytes + 3] ^= 1;
    let whole_events = text[..first_bytes].matches("},").count();
    assert!(whole_events > 100 && first_bytes + 100 < text.len());
    let read = read_any(&packed);
    assert_eq!(read.names.len(), whole_events);
    assert!(read.kinds().contains(&"truncated_compression"));
}

/// The reader returns all complete blocks of a cut-off zstd file, including those that the decoder withholds at first.
#[test]
fn truncated_zstd() {
    let names: Vec<String> = (0..8_000).map(|number| event(&format!("{number:x}"))).collect();
    let whole = zstd(format!("[{}]", names.join(",")).as_bytes());
    let read = read_with(&whole[..whole.len() - 100], Options::default()).expect("it is a trace");
    assert!((1_000..8_000).contains(&read.names.len()), "{}", read.names.len());
    assert!(read.kinds().contains(&"truncated_compression"));
}
