"""`TraceBuilder` writes exactly the requested events, and the reader returns them unchanged."""

from __future__ import annotations

import json
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holotrace.errors import InvalidOptionError, UnknownRankError
from holotrace.schema import EventKind
from holotrace.testing.builder import FIRST_AUTOMATIC_CORRELATION, TraceBuilder


def written(builder: TraceBuilder, rank: int = 0) -> list[dict]:
    """Parse the events of a rank; times are exact decimal numbers."""
    return json.loads(builder.json(rank), parse_float=Decimal)["traceEvents"]


def test_a_kernel_is_written_with_its_stream_and_times():
    """A kernel's process is its device, and its thread is its stream; times are exact decimals."""
    (kernel,) = written(TraceBuilder().kernel("gemm", stream=9, device=2, start_us=1.5, duration_us=Decimal("0.001")))

    assert kernel == {
        "ph": "X",
        "cat": "kernel",
        "name": "gemm",
        "pid": 2,
        "tid": 9,
        "ts": Decimal("1.500"),
        "dur": Decimal("0.001"),
        "args": {"device": 2, "context": 1, "stream": 9},
    }


def test_a_launch_adds_the_call_and_a_flow_to_the_kernel():
    """`launch_us` adds a runtime call with the kernel's correlation, and a flow arrow from the call to the kernel."""
    launch, kernel, leaves, arrives = written(TraceBuilder().kernel("gemm", start_us=10, duration_us=5, launch_us=2))

    assert (launch["cat"], launch["name"], launch["ts"]) == ("cuda_runtime", "cudaLaunchKernel", 2)
    assert launch["args"] == {"correlation": FIRST_AUTOMATIC_CORRELATION}
    assert kernel["args"]["correlation"] == FIRST_AUTOMATIC_CORRELATION
    assert (leaves["ph"], leaves["id"], leaves["ts"]) == ("s", FIRST_AUTOMATIC_CORRELATION, 2)
    assert (arrives["ph"], arrives["id"], arrives["ts"]) == ("f", FIRST_AUTOMATIC_CORRELATION, 10)


def test_each_launch_has_its_own_correlation_unless_given():
    """Launches get the correlations 100,001, 100,002 and so on, unless the caller gives one."""
    builder = (
        TraceBuilder()
        .kernel("a", start_us=1, duration_us=1, launch_us=0)
        .copy(start_us=2, duration_us=1, launch_us=0)
        .memset(start_us=3, duration_us=1, launch_us=0, correlation=5)
    )

    device_rows = [event for event in written(builder) if event["ph"] == "X" and "stream" in event["args"]]
    assert [row["args"]["correlation"] for row in device_rows] == [100_001, 100_002, 5]


def test_copies_and_memsets_carry_bytes_and_their_own_launches():
    """A copy has a byte count and a cudaMemcpyAsync call; a memset has a byte count and a cudaMemsetAsync call."""
    builder = (
        TraceBuilder()
        .copy(start_us=2, duration_us=1, launch_us=0, byte_count=64)
        .memset(start_us=3, duration_us=1, launch_us=1, byte_count=8)
    )

    rows = [event for event in written(builder) if event["ph"] == "X"]
    assert [(row["cat"], row["name"], row["args"].get("bytes")) for row in rows] == [
        ("cuda_runtime", "cudaMemcpyAsync", None),
        ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 64),
        ("cuda_runtime", "cudaMemsetAsync", None),
        ("gpu_memset", "Memset (Device)", 8),
    ]


def test_a_collective_is_an_nccl_kernel_with_args():
    """A collective has a name, a type, sizes, a group, and a sequence number within the group."""
    builder = (
        TraceBuilder()
        .collective("allreduce", start_us=0, duration_us=5, elements=7, group_ranks=(0, 3))
        .collective("allreduce", start_us=6, duration_us=5)
        .collective("_allgather_base", start_us=12, duration_us=5, group="1")
    )

    rows = written(builder)
    assert rows[0]["name"] == "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    assert rows[0]["args"] == {
        "device": 0,
        "context": 1,
        "stream": 20,
        "Collective name": "allreduce",
        "In msg nelems": 7,
        "Out msg nelems": 7,
        "Group size": 2,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": "[0, 3]",
        "Seq": 1,
    }
    assert [row["args"]["Seq"] for row in rows] == [1, 2, 1]


def test_args_replace_those_of_the_builder_and_none_removes_one():
    """The caller's `args` override the args that the builder generates, and an arg set to None is removed."""
    (kernel,) = written(
        TraceBuilder().kernel("k", start_us=0, duration_us=1, args={"device": None, "stream": "0x0", "grid": [1, 1, 1]})
    )

    assert kernel["args"] == {"context": 1, "stream": "0x0", "grid": [1, 1, 1]}


def test_host_rows_belong_to_the_process_of_their_rank():
    """Operators, annotations, steps and runtime calls of rank 1 have `pid` 1001; their `tid` is the thread's number."""
    builder = (
        TraceBuilder()
        .rank(1)
        .operator("aten::mm", start_us=0, duration_us=1, thread=4)
        .annotation("forward", start_us=0, duration_us=1)
        .step(7, 0, 1)
        .runtime("cuLaunchKernelEx", start_us=0, duration_us=1, correlation=3)
    )

    assert [(row["cat"], row["name"], row["pid"], row["tid"]) for row in written(builder, 1)] == [
        ("cpu_op", "aten::mm", 1001, 4),
        ("user_annotation", "forward", 1001, 1),
        ("user_annotation", "ProfilerStep#7", 1001, 1),
        ("cuda_driver", "cuLaunchKernelEx", 1001, 1),
    ]


def test_a_rank_option_applies_to_one_event():
    """`rank=2` applies only to one event; the next event goes to the current rank, which is 0."""
    builder = TraceBuilder().kernel("a", start_us=0, duration_us=1, rank=2).kernel("b", start_us=0, duration_us=1)

    assert [row["name"] for row in written(builder, 2)] == ["a"]
    assert [row["name"] for row in written(builder, 0)] == ["b"]


def test_raw_events_are_written_as_given():
    """`event` writes an unusual event unchanged, except that floats become decimals."""
    (event,) = written(TraceBuilder().event(ph="X", name="n", ts="12.5", dur=1e-3, args=["no object"]))

    assert event == {"ph": "X", "name": "n", "ts": "12.5", "dur": Decimal("0.001"), "args": ["no object"]}


def test_header_keys_are_set_and_removed():
    """`header` sets keys of the current rank only; None removes a key."""
    builder = TraceBuilder(base_time_ns=5).header(distributedInfo=None, with_stack=1).rank(1)

    keys = json.loads(builder.json(0))
    assert "distributedInfo" not in keys
    assert (keys["with_stack"], keys["baseTimeNanoseconds"]) == (1, 5)
    assert json.loads(builder.json(1))["distributedInfo"] == {"backend": "nccl", "rank": 1, "world_size": 2}


def test_times_finer_than_a_nanosecond_are_rejected():
    """A time of 0.0001 µs raises an error, because the builder never rounds times."""
    with pytest.raises(InvalidOptionError, match="at most three decimals"):
        TraceBuilder().kernel("k", start_us=0.0001, duration_us=1)


def test_an_unknown_rank_is_rejected():
    """Requesting rank 3, which does not exist, raises an error that lists the existing ranks, 0 and 1."""
    with pytest.raises(UnknownRankError, match="no rank 3 in this trace; its ranks are: 0, 1"):
        TraceBuilder().rank(0).rank(1).json(3)


def test_a_builder_without_events_is_an_empty_trace():
    """A builder without events builds a trace of rank 0 with an empty table of events."""
    trace = TraceBuilder().build()

    assert list(trace.ranks) == [0]
    assert trace.ranks[0].table("events").is_empty()


def test_write_creates_the_folder_and_one_file_per_rank(tmp_path):
    """`write` creates the folder and one file per rank, and returns the paths in rank order."""
    paths = TraceBuilder().rank(10).rank(2).write(tmp_path / "new")

    assert [path.name for path in paths] == ["rank2.pt.trace.json", "rank10.pt.trace.json"]
    assert all(json.loads(path.read_bytes())["traceEvents"] == [] for path in paths)


def test_the_whole_trace_reads_back():
    """The reader returns events of each kind with their kind and time, in the order of the builder's calls."""
    rank_trace = (
        TraceBuilder(base_time_ns=1_000_000)
        .step(1, 0, 100)
        .operator("aten::mm", start_us=1, duration_us=5)
        .kernel("gemm", start_us=10, duration_us=20.125, launch_us=2)
        .collective(start_us=11, duration_us=3)
        .copy(start_us=50, duration_us=2)
        .memset(start_us=60, duration_us=1)
        .sync(start_us=61, duration_us=2)
        .gpu_annotation("forward", start_us=10, duration_us=21)
        .build()
        .ranks[0]
    )

    events = rank_trace.table("events", ["start_ns", "duration_ns", "kind"])
    assert events.rows() == [
        (1_000_000, 100_000, EventKind.USER_ANNOTATION),
        (1_001_000, 5_000, EventKind.CPU_OP),
        (1_002_000, 1_000, EventKind.RUNTIME),
        (1_010_000, 20_125, EventKind.KERNEL),
        (1_011_000, 3_000, EventKind.KERNEL),
        (1_050_000, 2_000, EventKind.GPU_MEMCPY),
        (1_060_000, 1_000, EventKind.GPU_MEMSET),
        (1_061_000, 2_000, EventKind.SYNCHRONISATION),
        (1_010_000, 21_000, EventKind.GPU_USER_ANNOTATION),
    ]
    assert rank_trace.health.findings == ()


# The reader drops events with larger times, because their differences and sums might not fit into 64 bits.
starts_ns, durations_ns = st.integers(0, 2**61), st.integers(0, 2**52)


@settings(deadline=None)
@given(starts_ns, durations_ns)
def test_every_nanosecond_survives(start_ns, duration_ns):
    """The reader returns the exact start and duration, up to the largest times that it accepts."""
    start_us, duration_us = Decimal(start_ns).scaleb(-3), Decimal(duration_ns).scaleb(-3)
    trace = TraceBuilder().kernel("k", start_us=start_us, duration_us=duration_us).build()

    events = trace.ranks[0].table("events", ["start_ns", "duration_ns"])
    assert events.rows() == [(start_ns, duration_ns)]


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_name_survives(name):
    """The reader returns any name unchanged, even a name with quotes, backslashes or control characters."""
    rank_trace = TraceBuilder().kernel(name, start_us=0, duration_us=1).build().ranks[0]

    ids = rank_trace.table("events", ["name"])["name"]
    assert rank_trace.texts(ids).equals(pl.Series("name", [name]))
