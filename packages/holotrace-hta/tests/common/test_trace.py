"""`hta.common.trace.Trace`, opened without a TraceAnalysis."""

from __future__ import annotations

import gzip
import json

import pytest

from holotrace.errors import InvalidOptionError, TraceNotFoundError, UnknownRankError
from holotrace.testing.builder import TraceBuilder
from hta.common.trace import (
    PHASE_COUNTER,
    Trace,
    get_cpu_gpu_correlation,
    parse_trace_file,
    trace_event_timestamp_to_unixtime_ns,
)
from hta.common.trace_filter import TimeRangeFilter
from hta.configs.parser_config import ParserConfig


@pytest.fixture
def folder(tmp_path) -> str:
    """Write ranks 0 and 2 with two steps, each with an operator and a kernel on stream 0."""
    builder = TraceBuilder(base_time_ns=5_000_000)
    for rank in (0, 2):
        builder.rank(rank)
        for step, start in ((1, 100), (2, 200)):
            builder.step(step, start, 50).operator("aten::mm", start_us=start + 1, duration_us=5)
            builder.kernel("gemm", start_us=start + 20, duration_us=5.5, launch_us=start + 2, stream=0)
    builder.write(tmp_path)
    return str(tmp_path)


def steps_of(trace: Trace, rank: int) -> list[int]:
    """Return the numbers of the steps in a rank's frame."""
    return sorted(set(trace.get_trace(rank)["iteration"]))


def test_a_loaded_trace_is_without_the_last_step(folder, caplog) -> None:
    """`load_traces` drops the last step unless it is requested; a second call does nothing."""
    trace = Trace(trace_dir=folder)
    assert not trace.is_parsed
    trace.load_traces()
    assert trace.is_parsed
    assert (trace.get_ranks(), steps_of(trace, 2)) == ([0, 2], [1])
    trace.load_traces(include_last_profiler_step=True)
    assert steps_of(trace, 2) == [1]
    assert "does nothing" in caplog.text
    whole = Trace(trace_dir=folder)
    whole.load_traces(include_last_profiler_step=True)
    assert steps_of(whole, 0) == [1, 2]


def test_a_parsed_trace_is_whole_until_it_is_filtered(folder) -> None:
    """`parse_traces` and `parse_single_rank` keep all steps; `align_and_filter_trace` drops the last step."""
    trace = Trace(trace_dir=folder)
    trace.parse_traces(max_ranks=1, use_multiprocessing=False)
    assert (trace.get_ranks(), steps_of(trace, 0)) == ([0], [1, 2])
    trace.align_and_filter_trace()
    assert steps_of(trace, 0) == [1]
    trace.parse_single_rank(2)
    assert (list(trace.trace_files), steps_of(trace, 2)) == ([2], [1, 2])
    with pytest.raises(UnknownRankError):
        trace.parse_multiple_ranks([7])
    with pytest.raises(TraceNotFoundError):
        Trace(trace_dir=f"{folder}/nothing")


def test_one_file_alone(folder) -> None:
    """`parse_trace_file` returns a file's metadata, events and symbol table."""
    path = Trace(trace_dir=folder).trace_files[2]
    about, frame, symbols = parse_trace_file(path, ParserConfig(ParserConfig.get_minimum_args()))
    assert about["distributedInfo"]["rank"] == 2
    assert len(frame) == 8
    assert "bytes" not in frame.columns
    assert symbols.get_sym_table()[frame["name"].iloc[1]] == "aten::mm"


def test_calls_and_their_kernels_are_paired(folder) -> None:
    """`get_cpu_gpu_correlation` pairs each kernel, including those on stream 0, with its launch."""
    frame = Trace(trace_dir=folder).get_trace(0)
    assert get_cpu_gpu_correlation(frame).to_numpy().tolist() == [[3, 2], [7, 6]]


def test_counters_can_be_added_to_a_file(folder, tmp_path) -> None:
    """Counter events use the clock of the file; `write_raw_trace` writes gzip and replaces an existing file."""
    trace = Trace(trace_dir=folder)
    frame = trace.get_trace(0).iloc[[3]].assign(length=7)
    raw = trace.get_raw_trace_for_one_rank(0)
    events = trace.convert_time_series_to_events(frame, "Queue", "length")
    assert events == [{"ph": PHASE_COUNTER, "name": "Queue", "pid": 0, "ts": 120.0, "args": {"Queue": 7}}]
    raw["traceEvents"] += events
    written = tmp_path / "out.json"
    trace.write_raw_trace(str(written), raw)
    assert json.loads(gzip.decompress(written.read_bytes()))["traceEvents"][-1] == events[0]
    trace.write_raw_trace(str(written), {})
    assert json.loads(gzip.decompress(written.read_bytes())) == {}


def test_an_arrow_has_two_ends() -> None:
    """The end of a flow arrow is attached to the event that encloses it (`bp: e`)."""
    start, end = (Trace.flow_event(1, 2, 3, 4.5, is_start, "name", "cat", {"a": 1}) for is_start in (True, False))
    common = {"id": 1, "pid": 2, "tid": 3, "ts": 4.5, "cat": "cat", "name": "name", "args": {"a": 1}}
    assert start == {"ph": "s", **common}
    assert end == {"ph": "f", "bp": "e", **common}


@pytest.mark.parametrize(
    ("call", "vendor"),
    [
        ("cudaLaunchKernelExC", "NVIDIA GPU"),
        ("cuLaunchKernelEx", "NVIDIA GPU"),
        ("hipExtModuleLaunchKernel", "AMD GPU"),
        ("runFunction - job_prep_and_submit_for_execution", "MTIA"),
        ("urEnqueueKernelLaunch", "UNKNOWN GPU"),
    ],
)
def test_the_vendor_follows_from_the_calls(tmp_path, call, vendor) -> None:
    """The names of launch calls determine the vendor; HTA recognizes only two of these names."""
    TraceBuilder().runtime(call, start_us=0, duration_us=1, correlation=5).write(tmp_path)
    assert Trace(trace_dir=str(tmp_path)).get_device_type() == vendor


def test_times_of_a_file_as_unix_times() -> None:
    """Conversion to Unix time needs `baseTimeNanoseconds`, which files from before 2024 lack."""
    assert trace_event_timestamp_to_unixtime_ns(1.5, {"baseTimeNanoseconds": 1_000}) == 2_500
    with pytest.raises(KeyError, match="baseTimeNanoseconds"):
        trace_event_timestamp_to_unixtime_ns(1.5, {})


def test_times_keep_the_clock_of_the_file_until_alignment(folder) -> None:
    """After parsing, `ts` keeps the file's clock; after alignment it counts from `min_ts`."""
    trace = Trace(trace_dir=folder)
    trace.parse_traces()
    chosen = TimeRangeFilter((100, 110))(trace.get_trace(0))
    assert (chosen["ts"].tolist(), trace.min_ts) == ([101, 102], 0)
    trace.align_and_filter_trace(include_last_profiler_step=True)
    assert (trace.get_trace(0)["ts"].tolist()[:2], trace.min_ts) == ([0, 1], 100)
    _, frame, _ = parse_trace_file(trace.trace_files[0])
    assert frame["ts"].min() == 100


def test_ranks_may_be_texts(folder) -> None:
    """Ranks may be text like `"0"`, as in JSON; other keys raise an error."""
    files = {str(rank): path for rank, path in Trace(trace_dir=folder).trace_files.items()}
    assert Trace(trace_files=files).get_ranks() == [0, 2]
    with pytest.raises(InvalidOptionError, match="keys are ranks"):
        Trace(trace_files={"rank 0": files["0"]})
