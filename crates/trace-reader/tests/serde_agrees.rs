//! The reader agrees with serde_json on valid text, and no input makes it panic.
#![allow(clippy::expect_used)]

mod oracle;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{json, Map, Value};

/// Values of an arg, including nested ones.
fn arg() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let key = prop_oneof![Just("ph".to_owned()), Just("name".to_owned()), ".{0,6}"];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((key, inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn event() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("stream".to_owned()),
        Just("correlation".to_owned()),
        Just("External id".to_owned()),
        Just("Input Dims".to_owned()),
        Just("grid".to_owned()),
        Just("Addr".to_owned()),
        ".{0,8}",
    ];
    let category = prop_oneof![Just("kernel"), Just("cpu_op"), Just("cuda_runtime"), Just("é")];
    let time = 0_u64..4_000_000_000_000_000;
    (".{0,20}", category, time, 0_u64..1_000_000, vec((key, arg()), 0..5), any::<bool>()).prop_map(
        |(name, category, time, duration, args, decimal)| {
            let args: Map<String, Value> = args.into_iter().collect();
            let duration = if decimal { json!(f64::from(duration as u32) / 8.0) } else { json!(duration) };
            json!({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": "t", "ts": time, "dur": duration, "args": args})
        },
    )
}

fn trace() -> impl Strategy<Value = Vec<u8>> {
    (vec(event(), 0..30), any::<bool>(), arg()).prop_map(|(events, pretty, extra)| {
        let trace = json!({"a": extra, "traceEvents": events, "z": 1});
        let text = if pretty { serde_json::to_string_pretty(&trace) } else { serde_json::to_string(&trace) };
        text.expect("it is JSON").into_bytes()
    })
}

/// Random damage: a position, a number of bytes to remove, and bytes to insert.
fn damage() -> impl Strategy<Value = (prop::sample::Index, prop::sample::Index, Vec<u8>)> {
    let inserted = prop_oneof![
        Just(b"\"".to_vec()),
        Just(b"\\".to_vec()),
        Just(b"}".to_vec()),
        Just(b"]".to_vec()),
        Just(b"{\"ph\":".to_vec()),
        vec(any::<u8>(), 0..4),
    ];
    (any::<prop::sample::Index>(), any::<prop::sample::Index>(), inserted)
}

/// The text of an event whose keys come in any order, may be missing or repeated, and have values of any type.
fn odd_event() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "s", "bp", "args", "args", "ph", "new",
    ]);
    let phase = prop::sample::select(vec![
        "X", "s", "t", "f", "C", "M", "B", "E", "b", "e", "i", "I", "R", "n", "N", "",
    ]);
    let category =
        prop::sample::select(vec!["kernel", "cpu_op", "ac2g", "cuda_profiler_range", "gpu_memcpy"]);
    let of_args = prop::sample::select(vec![
        "stream",
        "device",
        "correlation",
        "External id",
        "grid",
        "name",
        "labels",
        "sort_index",
        "bytes",
        "Addr",
        "",
    ]);
    let args = vec((of_args, arg()), 0..4).prop_map(|entries| {
        let entries: Vec<String> =
            entries.iter().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
        format!("{{{}}}", entries.join(","))
    });
    let value = prop_oneof![
        3 => phase.prop_map(|text| json!(text).to_string()),
        3 => category.prop_map(|text| json!(text).to_string()),
        3 => (0..2_000_000_000_000_000_i64).prop_map(|number| number.to_string()),
        3 => args,
        2 => arg().prop_map(|value| value.to_string()),
    ];
    vec((key, value), 0..12).prop_map(|entries| {
        let entries: Vec<String> =
            entries.iter().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
        format!("{{{}}}", entries.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The reader agrees with serde_json on valid text, wherever the text is cut into chunks.
    #[test]
    fn valid_text_reads_alike(text in trace(), chunk_bytes in 1_usize..2_000) {
        oracle::check(&text, chunk_bytes);
    }

    /// Whatever keys an event has, and however often they are repeated, the reader still reads the other events.
    #[test]
    fn no_event_loses_others(odd in vec(odd_event(), 1..8), chunk_bytes in 1_usize..2_000) {
        let good = r#"{"ph":"X","cat":"cpu_op","name":"good","pid":1,"tid":1,"ts":1,"dur":1}"#;
        let text = format!(r#"{{"traceEvents":[{good},{},{good}]}}"#, odd.join(","));
        oracle::check(text.as_bytes(), chunk_bytes);
        let events = oracle::complete_events(text.as_bytes(), chunk_bytes).expect("the tables can be written");
        let last = odd.len() as u32 + 1;
        let good: Vec<u32> = events.iter().filter(|event| event.1 == "good").map(|event| event.0).collect();
        prop_assert_eq!((good.first(), good.last()), (Some(&0), Some(&last)));
    }

    /// Random damage never makes the reader panic.
    #[test]
    fn broken_bytes_never_panic(text in trace(), damages in vec(damage(), 1..6), chunk_bytes in 1_usize..2_000) {
        let mut bytes = text;
        for (from, length, inserted) in damages {
            let from = from.index(bytes.len() + 1);
            let to = from + length.index(bytes.len() - from + 1).min(8);
            bytes.splice(from..to, inserted);
        }
        oracle::check(&bytes, chunk_bytes);
    }
}
