"""How the ranks share the work, and how much of their communication is waiting."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holotrace
from holotrace.analyses.distributed.compute import distributed
from holotrace.errors import MissingDataError
from holotrace.ingest.open_trace import open_trace
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job

TIMES = ("step_ns", "computation_only_ns", "overlap_ns", "exposed_ns", "neither_ns")
WAITING = ("collective_ns", "transfer_ns", "synchronising_ns", "unmatched_ns")


def two_ranks() -> TraceBuilder:
    """A step of 100 µs on each: both compute 10..50; rank 0 is in an all-reduce 30..80, rank 1, late, 60..80.

    The clock of rank 1 is 5 ms ahead.
    """
    builder = TraceBuilder()
    for rank, ahead, arrives in ((0, 0, 30), (1, 5_000, 60)):
        builder.rank(rank).step(3, ahead, 100).kernel("gemm", start_us=ahead + 10, duration_us=40, launch_us=ahead + 1)
        builder.collective(start_us=ahead + arrives, duration_us=80 - arrives, launch_us=ahead + 2, elements=1_000)
    return builder


def test_a_step_divides_and_so_does_its_time_in_collectives() -> None:
    """Rank 0 hides 20 of 50 µs, and waits 30 for rank 1; data moves for 20, whatever the clocks say."""
    result = distributed(two_ranks().build())

    assert result.per_step.to_dicts() == [
        {
            "rank": 0,
            "step": 3,
            "step_ns": 100_000,
            "computation_only_ns": 20_000,
            "overlap_ns": 20_000,
            "exposed_ns": 30_000,
            "neither_ns": 30_000,
            "collective_count": 1,
            "collective_ns": 50_000,
            "transfer_ns": 20_000,
            "synchronising_ns": 30_000,
            "unmatched_ns": 0,
        },
        {
            "rank": 1,
            "step": 3,
            "step_ns": 100_000,
            "computation_only_ns": 40_000,
            "overlap_ns": 0,
            "exposed_ns": 20_000,
            "neither_ns": 40_000,
            "collective_count": 1,
            "collective_ns": 20_000,
            "transfer_ns": 20_000,
            "synchronising_ns": 0,
            "unmatched_ns": 0,
        },
    ]
    assert result.findings == ()


def test_operations_have_their_sizes_and_times() -> None:
    """1,000 floats are 4,000 bytes."""
    assert distributed(two_ranks().build()).per_operation.row(0, named=True) == {
        "rank": 0,
        "collective": "all_reduce",
        "dtype": "float32",
        "call_count": 1,
        "bytes": 4_000,
        "mean_bytes": 4_000.0,
        "collective_ns": 50_000,
        "mean_collective_ns": 50_000.0,
        "matched_count": 1,
        "transfer_ns": 20_000,
        "mean_transfer_ns": 20_000.0,
    }


def test_the_columns_and_their_types() -> None:
    """The tables are a contract: names, order and types."""
    result = distributed(two_ranks().build())
    counts = {"collective_count": pl.Int64}
    assert result.per_device.schema == {
        "host": pl.String,
        "process_id": pl.Int64,
        "rank": pl.Int32,
        "device": pl.Int32,
        "device_name": pl.String,
        "memory_bytes": pl.Int64,
        "compute_capability": pl.String,
    }
    assert result.per_step.schema == {
        "rank": pl.Int32,
        "step": pl.Int64,
        **dict.fromkeys(TIMES, pl.Int64),
        **counts,
        **dict.fromkeys(WAITING, pl.Int64),
    }
    assert result.per_rank.schema == {
        "rank": pl.Int32,
        "step_count": pl.Int64,
        **{f"mean_{name}": pl.Float64 for name in (*TIMES, *counts, *WAITING)},
    }
    assert result.per_operation.schema == {
        "rank": pl.Int32,
        "collective": pl.String,
        "dtype": pl.String,
        "call_count": pl.Int64,
        "bytes": pl.Int64,
        "mean_bytes": pl.Float64,
        "collective_ns": pl.Int64,
        "mean_collective_ns": pl.Float64,
        "matched_count": pl.Int64,
        "transfer_ns": pl.Int64,
        "mean_transfer_ns": pl.Float64,
    }


def test_means_are_over_the_steps() -> None:
    """Steps of 10 and 30 µs that do nothing, and a collective outside of both: it is in a row of its own."""
    builder = TraceBuilder().step(1, 0, 10).step(2, 10, 30).annotation("gloo:barrier", start_us=50, duration_us=4)
    result = distributed(builder.build())
    assert result.per_rank.select("step_count", "mean_step_ns", "mean_collective_ns").rows() == [(2, 20_000.0, 0.0)]
    assert result.per_step.select("step", "step_ns", "collective_ns").rows() == [
        (1, 10_000, 0),
        (2, 30_000, 0),
        (None, None, 4_000),
    ]


def test_groups_in_another_order_are_matched_by_group_and_sequence() -> None:
    """Rank 0 first talks to rank 1, then to rank 2; rank 2 has only the second. The plugin shows nothing then."""
    builder = TraceBuilder()
    for rank, group, start, duration in (
        (0, (0, 1), 0, 10),
        (0, (0, 2), 20, 30),
        (1, (0, 1), 5, 4),
        (2, (0, 2), 9, 20),
    ):
        builder.rank(rank).collective(group_ranks=group, group=str(group), start_us=start, duration_us=duration)
    table = distributed(builder.build()).per_step
    assert table.select("rank", "transfer_ns", "synchronising_ns").rows() == [
        (0, 24_000, 16_000),
        (1, 4_000, 0),
        (2, 20_000, 0),
    ]


def test_collectives_of_one_rank_are_not_divided() -> None:
    """A second all-reduce of rank 0, and a send: neither transfer nor waiting."""
    builder = two_ranks().rank(0).collective(start_us=85, duration_us=5)
    builder.collective("send", start_us=92, duration_us=3)
    result = distributed(builder.build())
    waiting = result.per_step.filter(pl.col("rank") == 0).select("collective_count", *WAITING).rows()
    assert waiting == [(3, 58_000, 20_000, 30_000, 8_000)]
    assert result.per_operation.filter(pl.col("collective") == "send")["transfer_ns"].to_list() == [None]
    assert result.findings == (
        "1 of 3 collectives have no counterpart on another rank",
        "1 sends and receives between two ranks are not divided into transfer and waiting",
    )


def test_one_rank_alone_does_not_know_who_waited() -> None:
    """And a finding says so."""
    result = distributed(TraceBuilder().collective(start_us=0, duration_us=5).build())
    assert result.per_step.select(WAITING).rows() == [(5_000, 0, 0, 5_000)]
    assert result.findings == ("only rank 0 was recorded: open all ranks of the job to compare their waiting",)


def test_unknown_sizes_are_null_and_named() -> None:
    """Kernels without arguments, and no host call around them."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).kernel("ncclKernel_AllReduce(int)", start_us=0, duration_us=5)
    result = distributed(builder.build())
    assert result.per_operation.select("dtype", "bytes", "mean_bytes").rows() == [(None, None, None)] * 2
    assert result.findings == (
        "2 of 2 collectives were matched by kind and order: they have no sequence number",
        "2 calls have no size: record with record_shapes=True",
    )


def test_without_kernels_a_rank_computes_in_its_operators() -> None:
    """Gloo on another thread hides behind 5 of 10 µs of an operator."""
    builder = TraceBuilder().step(1, 0, 20).operator("aten::mm", start_us=0, duration_us=10)
    builder.annotation("gloo:all_reduce", start_us=5, duration_us=10, thread=2)
    assert distributed(builder.build()).per_step.select(TIMES).rows() == [(20_000, 5_000, 5_000, 5_000, 5_000)]


def test_the_tree_of_devices() -> None:
    """The host from the file, the process from its events; rank 1 used no device, and rank 2 says no host."""
    gpu = {"id": 0, "name": "GPU-A", "totalGlobalMem": 1_000, "computeMajor": 8, "computeMinor": 6}
    builder = TraceBuilder().header(host_name="node-a", deviceProperties=[gpu]).kernel("k", start_us=0, duration_us=1)
    builder.operator("aten::mm", start_us=0, duration_us=1)
    builder.rank(1).header(host_name="node-a").operator("aten::mm", start_us=0, duration_us=1)
    builder.rank(2).kernel("k", start_us=0, duration_us=1, device=5)
    assert distributed(builder.build()).per_device.rows() == [
        (None, None, 2, 5, None, None, None),
        ("node-a", 1_000, 0, 0, "GPU-A", 1_000, "8.6"),
        ("node-a", 1_001, 1, None, None, None, None),
    ]


def test_a_file_name_gives_the_host_only_with_the_right_process(tmp_path) -> None:
    """PyTorch writes <host>_<pid>; `worker0_step_12` is not process 12, except to the plugin."""
    text = TraceBuilder().operator("aten::mm", start_us=0, duration_us=1).json()
    for name in ("node_a_1000.1694128201545.pt.trace.json", "worker0_step_12.pt.trace.json"):
        (tmp_path / name).write_bytes(text)
        trace = open_trace({0: tmp_path / name}, cache=False)
        places = [distributed(trace, compat=mode).per_device.row(0)[:2] for mode in (None, "torch_tb_profiler")]
        expected = ("node_a", 1_000) if name.startswith("node") else (None, 1_000)
        assert places == [expected, ("node_a", 1_000) if name.startswith("node") else ("worker0_step", 12)]


def test_a_job_without_anything_to_measure_is_an_error() -> None:
    """No steps, and nothing to replace them."""
    with pytest.raises(MissingDataError, match=r"^distributed: no rank has any operator, kernel or step"):
        distributed(TraceBuilder().build())


def test_a_job_without_communication_says_so() -> None:
    """Its steps divide all the same."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).kernel("gemm", start_us=0, duration_us=10)
    result = distributed(builder.build())
    assert result.per_step.select(TIMES).rows() == [(10_000, 10_000, 0, 0, 0)] * 2
    assert result.per_operation.is_empty()
    assert result.findings == ("no rank communicates: there are no collectives to compare",)


times = st.tuples(st.integers(0, 60), st.integers(0, 30))


@given(st.lists(times, max_size=5), st.lists(st.lists(times, min_size=3, max_size=3), min_size=2, max_size=2))
def test_the_parts_add_up(kernels: list[tuple[int, int]], collectives: list[list[tuple[int, int]]]) -> None:
    """Of a step, and of the time in collectives; all ranks transfer as long in each collective of its own."""
    builder = TraceBuilder()
    for rank, placed in enumerate(collectives):
        builder.rank(rank).step(1, 0, 100)
        for start, duration in kernels:
            builder.kernel("gemm", start_us=start, duration_us=duration, launch_us=1)
        for stream, (start, duration) in enumerate(placed, start=20):
            builder.collective(start_us=start, duration_us=duration, launch_us=1, stream=stream)
    table = distributed(builder.build()).per_step
    assert (table["step_ns"] == table.select(TIMES[1:]).sum_horizontal()).all()
    assert (table["collective_ns"] == table.select(WAITING[1:]).sum_horizontal()).all()
    assert table.select((pl.col(*TIMES, *WAITING) >= 0).all()).row(0) == (True,) * 9


def test_workers_give_the_same_answer(tmp_path) -> None:
    """Partial results travel between processes."""
    write_job(tmp_path, ranks=3, steps=1, layers=1)
    trace = open_trace(tmp_path, cache=False)
    with holotrace.processes(2) as executor:
        assert distributed(trace, executor=executor).per_step.equals(distributed(trace).per_step)


def before_the_recording(**options: object) -> TraceBuilder:
    """A step of 100 µs that calls an all-reduce 60..90, which waits for two earlier ones: 0..30 and 30..60."""
    builder = TraceBuilder().header(**options).step(3, 0, 100).kernel("gemm", start_us=5, duration_us=9, launch_us=2)
    for start in (0, 30):
        builder.kernel("ncclKernel_AllReduce_RING_LL", start_us=start, duration_us=30, stream=20)
    builder.operator("nccl:all_reduce", start_us=3, duration_us=5, args=INPUTS)
    return builder.kernel("ncclKernel_AllReduce_RING_LL", start_us=60, duration_us=30, stream=20, launch_us=4)


INPUTS = {"Input Dims": [[64]], "Input type": ["float"]}


def test_collectives_launched_before_the_recording_belong_to_no_step() -> None:
    """They ran in the step but were called before it; a step cannot communicate for longer than it lasts."""
    result = distributed(before_the_recording(record_shapes=1).build())

    columns = ("step", "step_ns", "collective_count", "collective_ns")
    assert result.per_step.select(columns).rows() == [(3, 100_000, 1, 30_000), (None, None, 2, 60_000)]
    assert result.per_rank.select("step_count", "mean_collective_count", "mean_collective_ns").rows() == [
        (1, 1.0, 30_000.0)
    ]


def test_shapes_are_asked_for_only_where_they_were_not_recorded() -> None:
    """Two of three collectives have no size, because their calls were not recorded."""
    assert distributed(before_the_recording().build()).findings[1:] == (
        "2 of 3 collectives were launched before the recording: they belong to no step, and their sizes may be unknown",
    )
    builder = TraceBuilder().step(3, 0, 100).kernel("ncclKernel_AllReduce", start_us=5, duration_us=9, launch_us=2)
    assert distributed(builder.build()).findings[1:] == ("1 calls have no size: record with record_shapes=True",)
    told = ("1 calls have no size: no event around their launches has input shapes",)
    assert (
        distributed(builder.operator("aten::mm", start_us=0, duration_us=1, args=INPUTS).build()).findings[1:] == told
    )
    assert distributed(builder.header(record_shapes=1).build()).findings[1:] == told


def test_the_first_step_of_a_real_job_has_as_many_collectives_as_the_others(real_traces) -> None:
    """Four were launched before the recording, in which shapes were recorded."""
    result = distributed(open_trace(real_traces / "diff/test", cache=False))

    counts = result.per_step.select("step", "collective_count").rows()
    assert counts == [*((step, 10) for step in range(1009, 1015)), (None, 4)]
    assert not any("record_shapes" in finding for finding in result.findings)


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """All tables equal their golden copies."""
    write_job(tmp_path, ranks=3, steps=2, layers=2, seed=1)
    result = distributed(open_trace(tmp_path, cache=False))
    golden.check(result.per_device, "distributed/synthetic_job.per_device")
    golden.check(result.per_step, "distributed/synthetic_job.per_step")
    golden.check(result.per_rank, "distributed/synthetic_job.per_rank")
    golden.check(result.per_operation, "distributed/synthetic_job.per_operation")
