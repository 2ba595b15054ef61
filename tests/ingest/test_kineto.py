"""The reader returns the exact content of valid files, and as much as possible of damaged files."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.errors import HolotraceError, NotATraceError, UnreadableTraceError
from holotrace.execution.worker import THREADS_VARIABLE
from holotrace.ingest.kineto import KinetoReader, Peek, peek
from holotrace.ingest.open_trace import open_trace
from holotrace.schema import TABLES, EventKind
from holotrace.store.tables.arrow_tables import table_types
from holotrace.store.trace import RankTrace

KERNEL: dict[str, Any] = {
    "ph": "X",
    "cat": "kernel",
    "name": "gemm",
    "pid": 0,
    "tid": 7,
    "ts": 1,
    "dur": 1,
    "args": {"stream": 7},
}
Open = Callable[[bytes], RankTrace]


def read(path: Path) -> RankTrace:
    """Open a file as rank 0 and read it."""
    rank_trace = open_trace({0: path}, cache=False).ranks[0]
    rank_trace.table("events")
    return rank_trace


@pytest.fixture
def open_bytes(tmp_path: Path) -> Open:
    """Return a function that writes bytes to a file and opens the file as rank 0."""

    def open_(content: bytes) -> RankTrace:
        path = tmp_path / "trace.json"
        path.write_bytes(content)
        return read(path)

    return open_


def document(*events: Any, **header: Any) -> bytes:
    """Return the bytes of a trace with these events and header keys."""
    return json.dumps(header | {"traceEvents": events}).encode()


def findings(rank_trace: RankTrace) -> dict[str, tuple[str, int]]:
    """Return {kind: (severity, count)}."""
    return {finding.kind: (finding.severity, finding.count) for finding in rank_trace.health.findings}


def event_indices(rank_trace: RankTrace) -> list[int]:
    """Return the positions of the kept events in the file."""
    return rank_trace.table("events", ["event_index"])["event_index"].to_list()


@pytest.mark.parametrize(
    ("content", "description"),
    [
        (b"", "an empty file"),
        (b" \n\t", "an empty file"),
        (b"hello", 'it begins with "hello"'),
        (b"7", 'it begins with "7"'),
        (b"{}", "a JSON object without traceEvents"),
        (b'{"traceEvents": null}', "a JSON object without traceEvents"),
        (b"[[1, 2]]", "a list whose first element is"),
        (b"\x00" * 100, "it begins with"),
        (b"[" * 300_000, "a list whose first element is"),
        (b'{"a":' * 300_000, "JSON without traceEvents"),
        (gzip.compress(b"", mtime=0), "an empty file"),
        (gzip.compress(b"hello", mtime=0), 'it begins with "hello"'),
    ],
)
def test_other_files_are_errors_that_say_what_they_are(open_bytes: Open, content: bytes, description: str) -> None:
    """A file that is not a trace raises NotATraceError, which quotes its first bytes or names what is missing."""
    with pytest.raises(NotATraceError) as caught:
        open_bytes(content)
    assert "trace.json is not a profiler trace: " in str(caught.value)
    assert description in str(caught.value)


@pytest.mark.parametrize("content", [b'{"traceEvents": []}', b"[]", b'{"traceEvents": [ ], "traceName": "a"}'])
def test_a_trace_may_be_without_events(open_bytes: Open, content: bytes) -> None:
    """For a recording without events, all tables are empty and there is no finding."""
    rank_trace = open_bytes(content)
    assert all(rank_trace.table(name).is_empty() for name in TABLES)
    assert rank_trace.health.findings == ()
    assert rank_trace.event_counts() == {}


def test_a_trace_may_have_metadata_events_only(open_bytes: Open) -> None:
    """A file with only process names has no events and keeps the names."""
    name = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}}
    rank_trace = open_bytes(document(name))
    assert rank_trace.table("events").is_empty()
    assert rank_trace.texts(rank_trace.table("metadata")["value"]).to_list() == ["python"]


def test_a_truncated_gzip_keeps_what_came_before(open_bytes: Open) -> None:
    """A gzip file cut in half keeps its first events and gets the finding `truncated_compression`."""
    events = [KERNEL | {"name": os.urandom(8).hex()} for _ in range(1_000)]
    packed = gzip.compress(document(*events))
    rank_trace = open_bytes(packed[: len(packed) // 2])
    kept = rank_trace.texts(rank_trace.table("events")["name"]).to_list()
    assert 100 < len(kept) < 1_000
    assert kept == [event["name"] for event in events[: len(kept)]]
    assert findings(rank_trace)["truncated_compression"] == ("dropped", 1)


def test_a_gzip_cut_before_any_content_cannot_be_read(open_bytes: Open) -> None:
    """A gzip file cut after 10 bytes has no content and raises an UnreadableTraceError."""
    with pytest.raises(UnreadableTraceError, match=r"trace\.json cannot be read: "):
        open_bytes(gzip.compress(document(KERNEL))[:10])


def test_a_truncated_file_keeps_its_complete_events(open_bytes: Open) -> None:
    """If the last 40 bytes of a file with ten events are cut off, only the tenth event is lost."""
    rank_trace = open_bytes(document(*[KERNEL] * 10)[:-40])
    assert event_indices(rank_trace) == list(range(9))
    assert findings(rank_trace)["truncated_json"] == ("dropped", 1)


def test_an_unreadable_file_is_a_clear_error() -> None:
    """The error for a file that cannot be read contains the path and the operating system's message."""
    unreadable = "/proc/self/mem"
    if not Path(unreadable).exists():
        pytest.skip("needs a file that exists and cannot be read")
    with pytest.raises(UnreadableTraceError, match="/proc/self/mem cannot be read: Input/output error"):
        peek(unreadable)
    with pytest.raises(UnreadableTraceError, match="cannot be read"):
        KinetoReader().content_hash("/no/such/file")


def test_one_line_of_ten_megabytes(open_bytes: Open) -> None:
    """An argument of 10 MB is read completely, as is the next event."""
    long = "x" * 10_000_000
    rank_trace = open_bytes(document(KERNEL | {"args": {"stream": 7, "note": long}}, KERNEL))
    assert event_indices(rank_trace) == [0, 1]
    assert json.loads(rank_trace.table("extra_args")["json"][0]) == {"note": long}
    assert rank_trace.health.findings == ()


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting(open_bytes: Open, opening: str, closing: str) -> None:
    """No event is lost if a value in an event or in the header is nested 100,000 levels deep."""
    deep = opening * 100_000 + "1" + closing * 100_000
    in_event = f'{{"traceEvents": [{json.dumps(KERNEL)[:-1]}, "deep": {deep}}}, {json.dumps(KERNEL)}]}}'
    in_header = f'{{"deep": {deep}, "traceEvents": [{json.dumps(KERNEL)}, {json.dumps(KERNEL)}]}}'
    for content in (in_event, in_header):
        rank_trace = open_bytes(content.encode())
        assert event_indices(rank_trace) == [0, 1]
        assert set(rank_trace.header.raw) <= {"deep"}


def test_numbers_beyond_64_bits(open_bytes: Open) -> None:
    """An event whose time exceeds int64 is dropped, and other numbers beyond int64 become null; findings count both."""
    rank_trace = open_bytes(
        document(
            KERNEL,
            KERNEL | {"ts": 10**30},
            KERNEL | {"dur": 10**30},
            KERNEL | {"ts": -(10**30)},
            KERNEL | {"args": {"stream": 7, "correlation": 2**70}},
            KERNEL | {"args": {"stream": 7, "correlation": 2**63 - 1}},
        )
    )
    assert rank_trace.table("events", ["event_index", "correlation"]).rows() == [(0, None), (4, None), (5, 2**63 - 1)]
    assert findings(rank_trace) == {"time_overflow": ("dropped", 3), "unexpected_value": ("note", 1)}


def test_a_damaged_event_loses_no_other(open_bytes: Open) -> None:
    """Unescaped quotes, bare NaN and trailing commas damage only their own event; each is reported as a finding."""
    good = json.dumps(KERNEL)
    odd_ones = [
        good.replace("gemm", 'my "q" op'),
        good.replace('"stream": 7', '"stream": NaN'),
        good.replace('"stream": 7', '"stream": 7, '),
        good.replace("gemm", "a\\qb"),
        good.replace("gemm", "a\x01b"),
    ]
    for odd in odd_ones:
        rank_trace = open_bytes(f'{{"traceEvents": [{good}, {odd}, {good}]}}'.encode())
        assert {0, 2} <= set(event_indices(rank_trace)), odd
        assert rank_trace.health.findings, odd


def test_compressed_files_read_the_same(open_bytes: Open) -> None:
    """A plain file, a gzip file, and a gzip file with two members give the same tables."""
    plain = document(*[KERNEL] * 100)
    contents = [plain, gzip.compress(plain), gzip.compress(plain[:1_000]) + gzip.compress(plain[1_000:])]
    opened = [open_bytes(content) for content in contents]
    assert [rank_trace.health.format for rank_trace in opened] == ["plain", "gzip", "gzip"]
    assert all(rank_trace.table(name).equals(opened[0].table(name)) for rank_trace in opened for name in TABLES)


def test_tables_in_memory_and_in_a_folder_are_the_same(tmp_path: Path) -> None:
    """Cached tables have the same values and types as tables read into memory."""
    path = tmp_path / "trace.json"
    path.write_bytes(document(*[KERNEL | {"name": f"kernel {number}"} for number in range(10_000)]))
    in_memory, in_folder = (open_trace({0: path}, cache=cache).ranks[0] for cache in (False, True))
    for name in TABLES:
        assert in_memory.table(name).equals(in_folder.table(name))
        assert in_memory.table(name).schema == table_types(name)


def test_the_number_of_threads_does_not_change_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading with a single thread and reading with one thread per core give the same tables."""
    path = tmp_path / "trace.json"
    path.write_bytes(document(*[KERNEL | {"name": f"kernel {number % 1_000}"} for number in range(50_000)]))
    on_all_cores = read(path)
    monkeypatch.setenv(THREADS_VARIABLE, "1")
    on_one = read(path)
    assert all(on_one.table(name).equals(on_all_cores.table(name)) for name in TABLES)


@pytest.mark.parametrize(
    ("categories", "kind"),
    [
        (("cpu_op", "Operator", "operator"), EventKind.CPU_OP),
        (("cuda_runtime", "Runtime", "runtime", "mtia_runtime", "xpu_runtime"), EventKind.RUNTIME),
        (("gpu_memcpy", "Memcpy", "memcpy"), EventKind.GPU_MEMCPY),
        (("gpu_memset", "Memset", "memset"), EventKind.GPU_MEMSET),
        (("kernel", "Kernel"), EventKind.KERNEL),
        (("Operators", ""), EventKind.OTHER),
    ],
)
def test_a_kind_has_several_categories(open_bytes: Open, categories: tuple[str, ...], kind: EventKind) -> None:
    """All spellings of a category, from any PyTorch version or vendor, map to the same event kind."""
    events = [{**KERNEL, "cat": category} for category in categories]
    rank_trace = open_bytes(json.dumps({"traceEvents": events}).encode())
    assert rank_trace.event_counts() == {kind: len(categories)}


def test_a_peek_recognises_traces(tmp_path: Path) -> None:
    """`peek` returns the rank of a trace; if the file is not a trace, it says what the file is."""
    path = tmp_path / "trace.json"
    path.write_bytes(document(KERNEL, distributedInfo={"rank": 3}))
    assert peek(str(path)) == Peek(is_trace=True, rank=3, what="a profiler trace")
    path.write_bytes(json.dumps({"schema": "1.1", "pid": 1, "nodes": []}).encode())
    assert peek(str(path)) == Peek(is_trace=False, rank=None, what="a PyTorch execution trace")


def test_a_damaged_trace_is_distinguished_from_another_format(tmp_path: Path) -> None:
    """An empty, binary or truncated file may be a damaged trace; complete JSON without events is another format."""
    may_be_damaged = {
        b"": True,
        b"\0\0": True,
        b'{"schemaVersion": 1, "a': True,
        b'{"nodes": []}': False,
        b"[[1]]": False,
    }
    path = tmp_path / "trace.json"
    for content, expected in may_be_damaged.items():
        path.write_bytes(content)
        beginning = peek(str(path))
        assert (beginning.is_trace, beginning.may_be_damaged) == (False, expected), content


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def microseconds(most: int) -> st.SearchStrategy[int | float]:
    """Return a strategy for times in µs, either whole or with three decimals."""
    return st.integers(0, most) | st.decimals(0, most, places=3).map(lambda time: json.loads(str(time)))


unknown_keys = st.text(min_size=1).map(lambda text: f"user {text}")
events = st.builds(
    lambda name, start, duration, ids, unknown: {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 10,
        "tid": 20,
        "ts": start,
        "dur": duration,
        "args": unknown | {"External id": ids[0], "correlation": ids[1]},
    },
    st.text(),
    microseconds(2**50),
    microseconds(2**42),  # longer events are dropped: sums of them might not fit into 64 bits
    st.tuples(st.integers(1, 2**63 - 1), st.integers(0, 2**63 - 1)),
    st.dictionaries(unknown_keys, json_values, max_size=3),
)
headers = st.dictionaries(unknown_keys, json_values, max_size=3)
layouts = st.fixed_dictionaries(
    {"ensure_ascii": st.booleans(), "indent": st.sampled_from([None, 0, 2, "\t"])}
    | {"separators": st.sampled_from([None, (",", ":"), (" , ", " : ")])}
)


def opened(content: bytes) -> RankTrace:
    """Write bytes to a file; open and read it as rank 0."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(content)
        file.flush()
        return read(Path(file.name))


def without_nulls(args: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Return the args that are not null and have no column."""
    return {key: value for key, value in args.items() if key not in known and value is not None}


@given(st.lists(events, max_size=5), headers, headers, layouts)
def test_valid_json_is_read_like_pythons_parser(
    written: list[dict[str, Any]], before: dict[str, Any], after: dict[str, Any], layout: dict[str, Any]
) -> None:
    """Names, times in nanoseconds, ids, unknown args and header keys are the same as with Python's JSON parser."""
    keys = before | {"baseTimeNanoseconds": 7, "traceEvents": written} | after
    text = json.dumps(keys, **layout)
    expected = json.loads(text, parse_float=Decimal)["traceEvents"]
    rank_trace = opened(text.encode("utf-8", "surrogatepass"))
    table = rank_trace.table("events")
    assert rank_trace.texts(table["name"]).to_list() == [event["name"] for event in expected]
    assert table.select("start_ns", "duration_ns", "external_id", "correlation").rows() == [
        (
            int(event["ts"] * 1_000) + 7,
            int(event["dur"] * 1_000),
            event["args"]["External id"],
            event["args"]["correlation"],
        )
        for event in expected
    ]
    extra = rank_trace.table("extra_args")
    known = {"External id", "correlation"}
    unknown = [without_nulls(event["args"], known) for event in expected]
    assert dict(zip(extra["event_index"], map(json.loads, extra["json"]), strict=True)) == {
        index: args for index, args in enumerate(unknown) if args
    }
    assert rank_trace.header.raw == {key: value for key, value in keys.items() if key != "traceEvents"}
    assert rank_trace.health.is_clean


@given(st.lists(events, min_size=1, max_size=3), st.data())
def test_broken_bytes_raise_only_holotrace_errors(written: list[dict[str, Any]], data: st.DataObject) -> None:
    """Reading a trace with changed bytes raises a HolotraceError or gives tables of the usual types."""
    content = document(*written, distributedInfo={"rank": 0})
    if data.draw(st.booleans(), label="compressed"):
        content = gzip.compress(content, mtime=0)
    for _ in range(data.draw(st.integers(1, 4), label="damages")):
        at = data.draw(st.integers(0, len(content)), label="at")
        removed = data.draw(st.integers(0, 20), label="removed")
        content = content[:at] + data.draw(st.binary(max_size=5), label="added") + content[at + removed :]
    try:
        rank_trace = opened(content)
    except HolotraceError:
        return
    for name in TABLES:
        assert rank_trace.table(name).schema == table_types(name)
        assert rank_trace.table(name).height == rank_trace.health.row_counts[name]
    rank_trace.event_counts()
    rank_trace.texts(rank_trace.table("events")["name"])


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_holotrace_errors(content: bytes) -> None:
    """Arbitrary bytes, alone or after `[{`, open as a trace or raise a HolotraceError."""
    try:
        opened(b"[{" + content)
        opened(content)
    except HolotraceError:
        return
