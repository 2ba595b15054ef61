//! Reads traces in the formats of old and new profilers, and traces with many kinds of damage.
#![allow(clippy::expect_used)]

use std::io::{self, Cursor, Read as _, Write};
use std::num::NonZeroUsize;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type, UInt8Type};
use arrow_array::RecordBatch;
use serde_json::Value;
use trace_reader::{read, schema_of, Input, MemorySink, Options, ReadError, Table};

/// A trace that was read.
struct Read {
    sink: std::cell::RefCell<MemorySink>,
    header: Value,
    health: Value,
}

impl Read {
    fn table(&self, table: Table) -> RecordBatch {
        let batches = self.sink.borrow_mut().take(table);
        arrow_select::concat::concat_batches(&schema_of(table), &batches).expect("batches share a schema")
    }

    fn findings(&self) -> Vec<(String, u64)> {
        let findings = self.health["findings"].as_array().expect("findings are a list");
        findings
            .iter()
            .map(|finding| {
                (
                    finding["kind"].as_str().expect("text").to_owned(),
                    finding["count"].as_u64().expect("number"),
                )
            })
            .collect()
    }

    fn strings(&self) -> Vec<String> {
        let table = self.table(Table::Strings);
        table.column(0).as_string::<i64>().iter().map(|text| text.expect("never null").to_owned()).collect()
    }
}

fn read_bytes(bytes: &[u8], chunk_bytes: usize) -> Result<Read, ReadError> {
    read_with(bytes, Options { chunk_bytes: NonZeroUsize::new(chunk_bytes), ..Options::default() })
}

fn read_with(bytes: &[u8], options: Options) -> Result<Read, ReadError> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for it");
    let mut sink = MemorySink::default();
    let trace = read(Input::open(file.path())?, &mut sink, options, &mut |_, _| true)?;
    Ok(Read {
        sink: sink.into(),
        header: serde_json::from_str(&trace.header).expect("the header is JSON"),
        health: serde_json::from_str(&trace.health).expect("the health is JSON"),
    })
}

fn read_text(text: &str) -> Read {
    read_bytes(text.as_bytes(), 1 << 20).expect("it is a trace")
}

/// Return the text of a trace file that contains these events.
fn trace_of(events: &str) -> String {
    format!(r#"{{"schemaVersion": 1, "traceEvents": [{events}], "traceName": "x"}}"#)
}

fn int64(batch: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    batch.column_by_name(column).expect(column).as_primitive::<Int64Type>().iter().collect()
}

fn uint32(batch: &RecordBatch, column: &str) -> Vec<Option<u32>> {
    batch.column_by_name(column).expect(column).as_primitive::<UInt32Type>().iter().collect()
}

fn kinds(batch: &RecordBatch) -> Vec<u8> {
    batch.column_by_name("kind").expect("kind").as_primitive::<UInt8Type>().values().to_vec()
}

fn names(read: &Read) -> Vec<String> {
    let strings = read.strings();
    let events = read.table(Table::Events);
    uint32(&events, "name").into_iter().map(|id| strings[id.expect("never null") as usize].clone()).collect()
}

const KERNEL: &str = r#"{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10.001, "dur": 2.5,
    "args": {"device": 0, "context": 1, "stream": 7, "correlation": 42, "External id": 9, "grid": [1, 2, 3],
    "block": [128, 1, 1], "blocks per SM": inf, "graph node id": 18446744073709551615, "novel": {"a": [1]}}}"#;

/// The args of a kernel go into their typed columns; args without a column stay as JSON.
#[test]
fn a_kernel_and_its_args() {
    let read = read_text(&trace_of(KERNEL));
    let events = read.table(Table::Events);
    assert_eq!(int64(&events, "start_ns"), [Some(10_001)]);
    assert_eq!(int64(&events, "duration_ns"), [Some(2_500)]);
    assert_eq!(int64(&events, "stream"), [Some(7)]);
    assert_eq!(int64(&events, "correlation"), [Some(42)]);
    assert_eq!(kinds(&events), [6]);
    let kernels = read.table(Table::Kernels);
    assert_eq!(int64(&kernels, "grid_z"), [Some(3)]);
    assert_eq!(int64(&kernels, "block_x"), [Some(128)]);
    let node =
        kernels.column_by_name("graph_node_id").expect("declared").as_primitive::<UInt64Type>().value(0);
    assert_eq!(node, u64::MAX);
    let extra = read.table(Table::ExtraArgs);
    assert_eq!(extra.column(1).as_string::<i64>().value(0), r#"{"novel":{"a": [1]}}"#);
    assert_eq!(read.findings(), [("bare_literal".to_owned(), 1)]);
}

/// The result does not depend on where the text is cut into chunks, even if a cut is between two objects nested in an
/// event.
#[test]
fn the_size_of_chunks_does_not_matter() {
    let nested = r#"{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 1, "dur": 1,
        "args": {"list": [{"name": "a"}, {"name": "b"}, {"ph": "X"}, {"ts": 4}]}}"#;
    let many: Vec<&str> = [nested, KERNEL].into_iter().cycle().take(60).collect();
    let text = trace_of(&many.join(",\n"));
    let whole = read_text(&text);
    let (events, extra) = (whole.table(Table::Events), whole.table(Table::ExtraArgs));
    assert_eq!(events.num_rows(), 60);
    for chunk_bytes in [1, 50, 333, 1_000, 5_000] {
        let read = read_bytes(text.as_bytes(), chunk_bytes).expect("it is a trace");
        assert_eq!(read.table(Table::Events), events, "{chunk_bytes}");
        assert_eq!(read.table(Table::ExtraArgs), extra, "{chunk_bytes}");
        assert_eq!(read.health["findings"], whole.health["findings"], "{chunk_bytes}");
    }
}

/// The order of keys does not matter, and if a key occurs twice, its last value wins.
#[test]
fn any_key_order() {
    let read = read_text(&trace_of(
        r#"{"args": {"stream": 3, "bytes": 1, "bytes": 2}, "dur": "1e1", "ts": "5", "tid": 3, "pid": 0,
            "name": "Memcpy HtoD", "cat": "gpu_memcpy", "ph": "X"}"#,
    ));
    assert_eq!(int64(&read.table(Table::Copies), "bytes"), [Some(2)]);
    let events = read.table(Table::Events);
    assert_eq!(
        (int64(&events, "start_ns"), int64(&events, "duration_ns")),
        (vec![Some(5_000)], vec![Some(10_000)])
    );
}

/// An event with an unescaped quote is kept, and so are the events around it.
#[test]
fn unescaped_quotes() {
    for name in [r#"my "q" name"#, r#"one " quote"#, r#"a", "b"#, r#"ends in ""#] {
        let broken = format!(
            r#"{{"ph": "X", "cat": "user_annotation", "name": "{name}", "pid": 1, "tid": 1, "ts": 1, "dur": 2}}"#
        );
        let read = read_text(&trace_of(&[KERNEL, &broken, KERNEL].join(",")));
        assert_eq!(names(&read), ["gemm", name, "gemm"]);
        assert!(read.findings().contains(&("unescaped_quote".to_owned(), 1)), "{name}");
    }
}

/// Windows paths, control characters and invalid UTF-8 stay readable.
#[test]
fn damaged_strings() {
    let event = |name: &[u8]| {
        [&br#"{"ph":"X","cat":"cpu_op","name":""#[..], name, br#"","pid":1,"tid":1,"ts":1,"dur":2}"#].concat()
    };
    let events =
        [event(br"C:\users\x"), event(b"tab\there"), event(b"caf\xE9"), event(br"C:\dir\")].join(&b","[..]);
    let text = [&br#"{"traceEvents":["#[..], &events, b"]}"].concat();
    let read = read_bytes(&text, 1 << 20).expect("it is a trace");
    assert_eq!(names(&read), [r"C:\users\x", "tab\there", "caf\u{fffd}", r"C:\dir\"]);
    let kinds: Vec<String> = read.findings().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["unescaped_quote", "bad_escape", "invalid_utf8", "control_character"]);
}

/// A broken event is dropped and counted; the events around it are kept.
#[test]
fn broken_events() {
    for broken in [
        r#"{"ph": "X", "name": "a" "pid"}"#,
        r#"{"ph": "X", "name": "never closed", "args": {"a": [1, 2}, "ts": 1}"#,
        r#"{"ph": "X", 5}"#,
        r"{",
    ] {
        let text = trace_of(&[KERNEL, broken, KERNEL].join(",\n"));
        let read = read_text(&text);
        assert_eq!(names(&read), ["gemm", "gemm"], "{broken}");
        assert!(read.findings().contains(&("broken_event".to_owned(), 1)), "{broken}: {:?}", read.findings());
    }
}

/// A missing name, duration or phase gets a default value; an event without a time is dropped.
#[test]
fn missing_fields() {
    let read = read_text(&trace_of(
        r#"{"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1, "pid": 1, "tid": 1},
           {"ph": "X", "name": "no dur", "cat": "cpu_op", "ts": 2, "pid": 1, "tid": 1},
           {"name": "no phase", "cat": "cpu_op", "ts": 3, "dur": 1, "pid": 1, "tid": 1},
           {"ph": "X", "name": "negative", "ts": 4, "dur": -5},
           {"ph": "X", "name": "no time", "dur": 5},
           {"ph": "X", "name": "NaN time", "ts": NaN, "dur": 5},
           {"ph": "X", "name": "overflow", "ts": 99999999999999999999, "dur": 5},
           {"ph": "X", "name": "end overflows", "ts": 9223372036854775, "dur": 9223372036854775}"#,
    ));
    assert_eq!(names(&read), ["", "no dur", "no phase", "negative"]);
    let expected = [
        ("bare_literal", 1),
        ("missing_name", 1),
        ("missing_duration", 1),
        ("missing_phase", 1),
        ("negative_duration", 1),
        ("missing_time", 2),
        ("time_overflow", 2),
    ];
    assert_eq!(read.findings(), expected.map(|(kind, count)| (kind.to_owned(), count)));
}

/// Stray commas and bare words are tolerated.
#[test]
fn stray_commas() {
    let read = read_text(&trace_of(
        r#"{"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": {"x": N/A, }},, {"ph": "X", "name": "b", "ts": 1, "dur": 1,},"#,
    ));
    assert_eq!(names(&read), ["a", "b"]);
    assert_eq!(read.findings(), [("bare_literal".to_owned(), 1), ("stray_comma".to_owned(), 4)]);
}

/// If a file ends in the middle of an event, all events before that event are kept.
#[test]
fn truncated_text() {
    let text = trace_of(&[KERNEL, KERNEL, KERNEL].join(",\n"));
    let end = text.find(r#"], "traceName"#).expect("it is there");
    for (cut, rows, finding) in
        [(end, 3, "missing_end"), (end - 20, 2, "truncated_json"), (text.len() - 1, 3, "missing_end")]
    {
        let read = read_text(&text[..cut]);
        assert_eq!(read.table(Table::Events).num_rows(), rows, "{cut}");
        assert!(read.findings().iter().any(|(kind, _)| kind == finding), "{cut}: {:?}", read.findings());
    }
}

/// `health["events_end"]` is the offset at which the events end, so that other code can add events to the file.
#[test]
fn the_end_of_the_events_is_known() {
    let text = trace_of(KERNEL);
    let end = text.find(r#"], "traceName"#).expect("it is there") + 1;
    assert_eq!(read_text(&text).health["events_end"], end);
    assert_eq!(read_text(&text[..end - 1]).health["events_end"], Value::Null);
}

/// Keys after the events, including the base time, have the same effect as keys before them.
#[test]
fn base_time_before_and_after() {
    let event = r#"{"ph": "X", "name": "a", "ts": 1.5, "dur": 1}"#;
    let base = 1_700_000_000_000_000_000_i64;
    for text in [
        format!(r#"{{"baseTimeNanoseconds": {base}, "traceEvents": [{event}]}}"#),
        format!(r#"{{"traceEvents": [{event}], "baseTimeNanoseconds": {base}}}"#),
    ] {
        let read = read_text(&text);
        assert_eq!(int64(&read.table(Table::Events), "start_ns"), [Some(base + 1_500)]);
        assert_eq!(read.header["baseTimeNanoseconds"], base);
    }
}

/// A list of events without an enclosing object is read; if its events have no categories, the process name determines
/// the kind of each event.
#[test]
fn bare_lists() {
    let read = read_text(
        r#"[{"name": "add", "ph": "X", "ts": 1, "dur": 2, "tid": 1, "pid": "CPU functions", "args": {}},
            {"name": "k", "ph": "X", "ts": 2, "dur": 2, "tid": 0, "pid": "CUDA functions", "args": {}}]"#,
    );
    assert_eq!(kinds(&read.table(Table::Events)), [1, 6]);
}

/// Begin and end events are paired by track, or by id if they are asynchronous.
#[test]
fn begin_and_end() {
    let read = read_text(&trace_of(
        r#"{"ph": "B", "name": "outer", "ts": 1, "pid": 1, "tid": 1}, {"ph": "B", "name": "inner", "ts": 2, "pid": 1, "tid": 1},
           {"ph": "b", "name": "async", "cat": "c", "id": 5, "ts": 3, "pid": 1, "tid": 1},
           {"ph": "E", "ts": 4, "pid": 1, "tid": 1}, {"ph": "E", "ts": 9, "pid": 1, "tid": 1},
           {"ph": "e", "name": "async", "cat": "c", "id": 5, "ts": 10, "pid": 2, "tid": 2},
           {"ph": "E", "ts": 11, "pid": 1, "tid": 1}, {"ph": "B", "name": "open", "ts": 12, "pid": 1, "tid": 1}"#,
    ));
    let events = read.table(Table::Events);
    assert_eq!(int64(&events, "duration_ns"), [Some(2_000), Some(8_000), Some(7_000), Some(0)]);
    assert_eq!(uint32(&events, "event_index"), [Some(1), Some(0), Some(2), Some(7)]);
    assert_eq!(read.findings(), [("unmatched_end".to_owned(), 1), ("unmatched_begin".to_owned(), 1)]);
}

/// Counters and profiler ranges become samples, one row per number.
#[test]
fn samples() {
    let read = read_text(&trace_of(
        r#"{"ph": "C", "name": "util", "pid": "GPU 0 Counters", "tid": 0, "ts": 1, "args": {"": 0.5, "b": 2}},
           {"ph": "X", "cat": "cuda_profiler_range", "name": "gemm", "pid": 0, "tid": 0, "ts": 2, "dur": 1,
            "args": {"smsp__inst.sum": 131072}}"#,
    ));
    let counters = read.table(Table::Counters);
    let values = counters.column_by_name("value").expect("declared");
    assert_eq!(values.as_primitive::<arrow_array::types::Float64Type>().values(), &[0.5, 2.0, 131_072.0]);
    assert_eq!(uint32(&counters, "event_index"), [Some(0), Some(0), Some(1)]);
}

/// Streams may be numbers, including −1 written as an unsigned number, or hexadecimal strings; if the arg is missing,
/// the tid is the stream.
#[test]
fn streams() {
    let event = |args: &str| {
        format!(
            r#"{{"ph": "X", "cat": "kernel", "name": "k", "pid": 3, "tid": 11, "ts": 1, "dur": 1, "args": {{{args}}}}}"#
        )
    };
    let args = [r#""stream": 7"#, r#""stream": "0x1f""#, r#""stream": 4294967295"#, r#""stream": -1"#, ""];
    let read = read_text(&trace_of(&args.map(event).join(",")));
    let events = read.table(Table::Events);
    assert_eq!(int64(&events, "stream"), [Some(7), Some(31), Some(-1), Some(-1), Some(11)]);
}

/// The args of work on an Intel GPU contain hexadecimal handles, and times that are text in microseconds or, in older
/// traces, numbers in nanoseconds.
#[test]
fn work_on_xpu() {
    let event = |times: &str| {
        format!(
            r#"{{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 0, "ts": 1, "dur": 1, "args": {{{times},
            "device": 0, "context": "0x000055d0c8b1a2f0", "sycl queue": 0, "l0 queue": "0xf00055d0c8b1a2f0",
            "kernel_id": 7, "correlation": 5}}}}"#
        )
    };
    let times = [
        r#""appended": "12.345", "appended_rel_to_start": "-1.500""#,
        r#""appended": 1725000000000000001, "submitted": 1725000000000000002"#,
    ];
    let read = read_text(&trace_of(&times.map(event).join(",")));
    let xpu = read.table(Table::Xpu);
    assert_eq!(int64(&xpu, "appended_ns"), [Some(12_345), Some(1_725_000_000_000_000_001)]);
    assert_eq!(int64(&xpu, "appended_after_ns"), [Some(-1_500), None]);
    assert_eq!(int64(&xpu, "submitted_ns"), [None, Some(1_725_000_000_000_000_002)]);
    assert_eq!(read.findings(), []);
}

/// All members of a gzip file and all frames of a zstd file are read, whatever the name of the file.
#[test]
fn compression() {
    let text = trace_of(&[KERNEL, KERNEL].join(","));
    let (first, second) = text.as_bytes().split_at(200);
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    };
    let zstd =
        |bytes: &[u8]| ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
    for (bytes, format) in [
        ([gzip(first), gzip(second)].concat(), "gzip"),
        ([zstd(first), zstd(second)].concat(), "zstd"),
        ([&b"\x50\x2A\x4D\x18\x03\0\0\0abc"[..], &zstd(first), &zstd(second)].concat(), "zstd"),
        (text.clone().into_bytes(), "plain"),
    ] {
        let read = read_bytes(&bytes, 1 << 20).expect(format);
        assert_eq!(read.health["format"], format);
        assert_eq!(read.table(Table::Events).num_rows(), 2, "{format}");
    }
}

/// A file that decompresses to more than the limit is rejected; a file that reaches exactly the limit is read.
#[test]
fn too_long() {
    let text = trace_of(&vec![KERNEL; 200].join(","));
    let long_header = format!(r#"{{"a": "{}", "traceEvents": []}}"#, "a".repeat(text.len()));
    let zstd =
        ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    let most = |most_bytes: usize| Options {
        chunk_bytes: NonZeroUsize::new(1 << 12),
        most_bytes: Some(most_bytes as u64),
        ..Options::default()
    };
    for bytes in [text.as_bytes(), &zstd, long_header.as_bytes()] {
        for most_bytes in [0, 100, text.len() / 2, text.len() - 1] {
            let error = read_with(bytes, most(most_bytes)).err().expect("it is longer");
            assert!(matches!(error, ReadError::Expands { .. }), "{error}");
        }
    }
    assert_eq!(read_with(&zstd, most(text.len())).expect("it fits").table(Table::Events).num_rows(), 200);
}

/// If a compressed file is cut off, the events that can be decoded are kept.
#[test]
fn truncated_compression() {
    let events: Vec<String> = (0..2_000).map(|at| KERNEL.replace("10.001", &format!("{at}.001"))).collect();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(trace_of(&events.join(",")).as_bytes()).expect("memory");
    let whole = encoder.finish().expect("memory");
    let read = read_bytes(&whole[..whole.len() / 2], 1 << 16).expect("half of the file can be read");
    let rows = read.table(Table::Events).num_rows();
    assert!((500..1_900).contains(&rows), "{rows}");
    assert!(read.findings().iter().any(|(kind, _)| kind == "truncated_compression"));
}

/// A file that is not a trace is rejected with a description of its content.
#[test]
fn no_trace() {
    for (bytes, reason) in [
        (&b""[..], "the file is empty"),
        (b" \n", "the file is empty"),
        (b"%PDF-1.4", "it begins with \"%PDF-1.4\""),
        (b"[1, 2]", "a list whose first element is"),
        (br#"[{"a": 1}]"#, "none of its elements is an event"),
        (br#"{"schema": 1, "nodes": []}"#, "a JSON object without traceEvents; its keys are: nodes, schema"),
        (br#"{"traceEvents": null}"#, "the value of traceEvents is not a list"),
        (br#"{"schemaVersion": 1, "a"#, "the file ends before traceEvents"),
    ] {
        let error = read_bytes(bytes, 1 << 20).err().expect("it is rejected").to_string();
        assert!(error.contains(reason), "{error}");
    }
}

/// A file with an empty list of events is a trace without events.
#[test]
fn no_events() {
    for text in [r#"{"traceEvents": []}"#, "[]", r#"{"traceEvents": [ ], "a": 1}"#] {
        assert_eq!(read_text(text).table(Table::Events).num_rows(), 0);
    }
}

/// An event of 10 MiB on one line and an event nested a million levels deep are read like any other event.
#[test]
fn huge_and_deep_events() {
    let long = "x".repeat(10 << 20);
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let text = trace_of(&format!(
        r#"{{"ph": "X", "name": "{long}", "ts": 1, "dur": 1}}, {{"ph": "X", "name": "deep", "ts": 1, "dur": 1, "args": {{"a": {deep}}}}}, {KERNEL}"#
    ));
    let read = read_bytes(text.as_bytes(), 1 << 16).expect("it is a trace");
    assert_eq!(read.table(Table::Events).num_rows(), 3);
}

/// The caller can stop the reading.
#[test]
fn stopping() {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(trace_of(KERNEL).as_bytes()).expect("room for it");
    let result = read(
        Input::open(file.path()).expect("it is there"),
        &mut MemorySink::default(),
        Options::default(),
        &mut |_, _| false,
    );
    assert!(matches!(result, Err(ReadError::Stopped)));
}

/// A byte source whose every read fails.
struct Broken;

impl io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the line was cut"))
    }
}

fn input_of(bytes: impl io::Read + Send + 'static) -> Input {
    Input::new("store://a.json".to_owned(), Box::new(bytes), 0)
}

/// The reader accepts bytes from any `io::Read`.
#[test]
fn bytes_from_anywhere() {
    let input = input_of(Cursor::new(trace_of(KERNEL)));
    let trace = read(input, &mut MemorySink::default(), Options::default(), &mut |_, _| true);
    assert!(trace.expect("it is a trace").health.contains(r#""event_count":1"#));
}

/// If the byte source fails at the start or later, `read` returns the source's error. It must not treat the file as
/// damaged only because some of its bytes could not be fetched.
#[test]
fn failing_source() {
    let text = trace_of(&[KERNEL; 2_000].join(","));
    for length in [0, 100, text.len() / 2, text.len() - 1] {
        let beginning = text.as_bytes()[..length].to_vec();
        let input = input_of(Cursor::new(beginning).chain(Broken));
        let result = read(input, &mut MemorySink::default(), Options::default(), &mut |_, _| true);
        assert!(
            matches!(&result, Err(ReadError::Io { path, source })
                if path == "store://a.json" && source.to_string() == "the line was cut"),
            "after {length} bytes: {result:?}"
        );
    }
}
