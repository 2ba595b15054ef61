"""Tests of distributed: how each rank spends its steps, and how much of its communication is waiting."""

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
from recordings import opened

TIMES = ("step_ns", "computation_only_ns", "overlap_ns", "exposed_ns", "neither_ns")
WAITING = ("collective_ns", "transfer_ns", "synchronising_ns", "unmatched_ns")


def two_ranks() -> TraceBuilder:
    """Return two ranks with a step of 100 µs, a gemm (10 to 50 µs) and an all-reduce that ends at 80 µs.

    The all-reduce starts at 30 µs on rank 0 and at 60 µs on rank 1, whose clock is 5 ms ahead.
    """
    builder = TraceBuilder()
    for rank, ahead, arrives in ((0, 0, 30), (1, 5_000, 60)):
        builder.rank(rank).step(3, ahead, 100).kernel("gemm", start_us=ahead + 10, duration_us=40, launch_us=ahead + 1)
        builder.collective(start_us=ahead + arrives, duration_us=80 - arrives, launch_us=ahead + 2, elements=1_000)
    return builder


def test_on_one_clock_data_moves_from_the_last_arrival() -> None:
    """Two ranks share a clock; rank 1 arrives at 40 µs, so rank 0 waits for 40 µs and transfers only after that."""
    builder = TraceBuilder()
    for rank, start, end in ((0, 0, 50), (1, 40, 60)):
        builder.rank(rank).header(host_name="node-a").collective(start_us=start, duration_us=end - start)

    table = distributed(builder.build()).per_step

    assert table.select("rank", "transfer_ns", "synchronising_ns").rows() == [(0, 10_000, 40_000), (1, 20_000, 0)]


def test_a_receive_waits_for_its_send() -> None:
    """Rank 1 receives from 0 to 50 µs, but rank 0 sends only from 30 µs on, so rank 1 waits for 30 µs."""
    builder = TraceBuilder()
    for rank, call, start, end in ((0, "send", 30, 48), (1, "recv", 0, 50)):
        args = {"Src Rank": 0, "Dst Rank": 1, "Seq": None}
        builder.rank(rank).header(host_name="node-a")
        builder.collective(call, start_us=start, duration_us=end - start, args=args, group_ranks=(0, 1))

    table = distributed(builder.build()).per_step

    assert table.select("rank", *WAITING[1:]).rows() == [(0, 18_000, 0, 0), (1, 20_000, 30_000, 0)]


def test_a_step_divides_and_so_does_its_time_in_collectives() -> None:
    """On rank 0, 20 of 50 µs of communication are hidden and 30 µs are waiting; the clock offset does not matter."""
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
    """An all-reduce of 1,000 float32 values has 4,000 bytes; it takes 50 µs on rank 0, including 20 µs of transfer."""
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
    """The tables' column names, order and types are part of the API."""
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
    """Means cover only the two steps; a collective outside the steps has its own row, in which the step is null."""
    builder = TraceBuilder().step(1, 0, 10).step(2, 10, 30).annotation("gloo:barrier", start_us=50, duration_us=4)
    result = distributed(builder.build())
    assert result.per_rank.select("step_count", "mean_step_ns", "mean_collective_ns").rows() == [(2, 20_000.0, 0.0)]
    assert result.per_step.select("step", "step_ns", "collective_ns").rows() == [
        (1, 10_000, 0),
        (2, 30_000, 0),
        (None, None, 4_000),
    ]


def test_groups_in_another_order_are_matched_by_group_and_sequence() -> None:
    """Rank 0 reduces with rank 1, then with rank 2.

    Both all-reduces are matched, although ranks 1 and 2 take part in only one each.
    """
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
    """An all-reduce on only one rank and a send to an unknown rank have no counterpart, so their time is unmatched."""
    builder = two_ranks().rank(0).collective(start_us=85, duration_us=5)
    builder.collective("send", start_us=92, duration_us=3)
    result = distributed(builder.build())
    waiting = result.per_step.filter(pl.col("rank") == 0).select("collective_count", *WAITING).rows()
    assert waiting == [(3, 58_000, 20_000, 30_000, 8_000)]
    assert result.per_operation.filter(pl.col("collective") == "send")["transfer_ns"].to_list() == [None]
    assert result.findings == (
        "1 of 4 calls (1 send) do not name the rank at the other end",
        "1 of 4 calls (1 all_reduce) have no clear counterpart on the other ranks of their group",
    )


def test_one_rank_alone_does_not_know_who_waited() -> None:
    """If only one rank was recorded, its collective is unmatched, and a finding asks for the traces of all ranks."""
    result = distributed(TraceBuilder().collective(start_us=0, duration_us=5).build())
    assert result.per_step.select(WAITING).rows() == [(5_000, 0, 0, 5_000)]
    assert result.findings == ("only rank 0 was recorded; open all ranks of the job to compare their waiting",)


def test_unknown_sizes_are_null_and_named() -> None:
    """Without recorded args and launch, a collective has null dtype and size, and a finding says what to record."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).kernel("ncclKernel_AllReduce(int)", start_us=rank, duration_us=5)
    result = distributed(builder.build())
    assert result.per_operation.select("dtype", "bytes", "mean_bytes").rows() == [(None, None, None)] * 2
    assert result.findings == (
        "2 of 2 collectives were matched by kind and order: no number in the trace identifies them",
        "2 calls have no size: record with record_shapes=True",
    )


def test_without_kernels_a_rank_computes_in_its_operators() -> None:
    """Without kernels, operators count as computation; here, an operator overlaps 5 of 10 µs of a gloo all-reduce."""
    builder = TraceBuilder().step(1, 0, 20).operator("aten::mm", start_us=0, duration_us=10)
    builder.annotation("gloo:all_reduce", start_us=5, duration_us=10, thread=2)
    assert distributed(builder.build()).per_step.select(TIMES).rows() == [(20_000, 5_000, 5_000, 5_000, 5_000)]


def test_the_tree_of_devices() -> None:
    """Each device has a row with its host, process and properties; rank 1 has a row, too, although it has no device.

    The host of rank 2 is unknown.
    """
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
    """The host is taken from a file name `<host>_<pid>` only if the events have this pid.

    With `compat`, any number after the last underscore of `<host>_<pid>` is accepted as the pid.
    """
    text = TraceBuilder().operator("aten::mm", start_us=0, duration_us=1).json()
    for name in ("node_a_1000.1694128201545.pt.trace.json", "worker0_step_12.pt.trace.json"):
        (tmp_path / name).write_bytes(text)
        trace = open_trace({0: tmp_path / name}, cache=False)
        places = [distributed(trace, compat=mode).per_device.row(0)[:2] for mode in (None, "torch_tb_profiler")]
        expected = ("node_a", 1_000) if name.startswith("node") else (None, 1_000)
        assert places == [expected, ("node_a", 1_000) if name.startswith("node") else ("worker0_step", 12)]


def test_a_job_without_anything_to_measure_is_an_error() -> None:
    """If the trace has no events, MissingDataError is raised."""
    with pytest.raises(MissingDataError, match=r"^distributed: no rank has any operator, kernel or step"):
        distributed(TraceBuilder().build())


def test_a_job_without_communication_says_so() -> None:
    """Without collectives, `per_step` is still filled, `per_operation` is empty, and a finding says so."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).kernel("gemm", start_us=0, duration_us=10)
    result = distributed(builder.build())
    assert result.per_step.select(TIMES).rows() == [(10_000, 10_000, 0, 0, 0)] * 2
    assert result.per_operation.is_empty()
    assert result.findings == ("no rank communicates, so there are no collectives to compare",)


times = st.tuples(st.integers(0, 60), st.integers(0, 30))


@pytest.mark.slow
@given(st.lists(times, max_size=5), st.lists(st.lists(times, min_size=3, max_size=3), min_size=2, max_size=2))
def test_the_parts_add_up(kernels: list[tuple[int, int]], collectives: list[list[tuple[int, int]]]) -> None:
    """The parts of a step add up to its length, and the parts of its collective time add up to the collective time.

    No part is negative.
    """
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


@pytest.mark.slow
def test_workers_give_the_same_answer(tmp_path) -> None:
    """Two worker processes give the same table as a single process."""
    write_job(tmp_path, ranks=3, steps=1, layers=1)
    trace = open_trace(tmp_path, cache=False)
    with holotrace.processes(2) as executor:
        assert distributed(trace, executor=executor).per_step.equals(distributed(trace).per_step)


def before_the_recording(**options: object) -> TraceBuilder:
    """Return a step of 100 µs with three all-reduces of 30 µs; only the last was launched in the step."""
    builder = TraceBuilder().header(**options).step(3, 0, 100).kernel("gemm", start_us=5, duration_us=9, launch_us=2)
    for start in (0, 30):
        builder.kernel("ncclKernel_AllReduce_RING_LL", start_us=start, duration_us=30, stream=20)
    builder.operator("nccl:all_reduce", start_us=3, duration_us=5, args=INPUTS)
    return builder.kernel("ncclKernel_AllReduce_RING_LL", start_us=60, duration_us=30, stream=20, launch_us=4)


INPUTS = {"Input Dims": [[64]], "Input type": ["float"]}


def test_collectives_launched_before_the_recording_belong_to_no_step() -> None:
    """Two all-reduces run in the step but were launched before the recording, so their step is null."""
    result = distributed(before_the_recording(record_shapes=1).build())

    columns = ("step", "step_ns", "collective_count", "collective_ns")
    assert result.per_step.select(columns).rows() == [(3, 100_000, 1, 30_000), (None, None, 2, 60_000)]
    assert result.per_rank.select("step_count", "mean_collective_count", "mean_collective_ns").rows() == [
        (1, 1.0, 30_000.0)
    ]


def test_shapes_are_asked_for_only_where_they_were_not_recorded() -> None:
    """A finding advises `record_shapes=True` only if the trace has no shapes and the call's launch was recorded."""
    assert distributed(before_the_recording().build()).findings[1:] == (
        (
            "2 of 3 collectives were launched before the recording, so they belong to no step, "
            "and their sizes may be unknown"
        ),
    )
    builder = TraceBuilder().step(3, 0, 100).kernel("ncclKernel_AllReduce", start_us=5, duration_us=9, launch_us=2)
    assert distributed(builder.build()).findings[1:] == ("1 call has no size: record with record_shapes=True",)
    missing_shapes = ("1 call has no size: no event around the launch has input shapes",)
    assert (
        distributed(builder.operator("aten::mm", start_us=0, duration_us=1, args=INPUTS).build()).findings[1:]
        == missing_shapes
    )
    assert distributed(builder.header(record_shapes=1).build()).findings[1:] == missing_shapes


def test_the_first_step_of_a_real_job_has_as_many_collectives_as_the_others(real_traces) -> None:
    """Each of six steps has 10 collectives; four collectives launched before the recording have no step."""
    result = distributed(opened(real_traces / "diff/test"))

    counts = result.per_step.select("step", "collective_count").rows()
    assert counts == [*((step, 10) for step in range(1009, 1015)), (None, 4)]
    assert not any("record_shapes" in finding for finding in result.findings)


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """All four tables of a synthetic job equal their golden copies."""
    write_job(tmp_path, ranks=3, steps=2, layers=2, seed=1)
    result = distributed(open_trace(tmp_path, cache=False))
    golden.check(result.per_device, "distributed/synthetic_job.per_device")
    golden.check(result.per_step, "distributed/synthetic_job.per_step")
    golden.check(result.per_rank, "distributed/synthetic_job.per_rank")
    golden.check(result.per_operation, "distributed/synthetic_job.per_operation")
