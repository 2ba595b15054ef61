"""Tests of critical_path(across_ranks=True) on jobs with a known critical path, and on simulated and recorded jobs."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holotrace.analyses.critical_path.across_ranks import JobCriticalPath
from holotrace.analyses.critical_path.compute import critical_path
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.ingest.open_trace import open_trace
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from recordings import opened

Segment = tuple[int, str, str, float, float]
HOST = {"hostname": "one"}


def across(trace: Trace, **options) -> JobCriticalPath:
    """Return the path through all ranks, after checking that it covers the whole step."""
    result = critical_path(trace, across_ranks=True, **options)
    step = result.steps.row(0, named=True)
    assert step["duration_ns"] == step["end_ns"] - step["start_ns"]
    for table in (result.per_rank, result.per_class, result.per_name, result.path.rename({"duration_ns": "total_ns"})):
        assert table["total_ns"].sum() == step["duration_ns"]
    assert result.path["start_ns"].to_list()[1:] == result.path["end_ns"].to_list()[:-1], "no gaps"
    assert result.per_rank["slack_ns"].min() == 0, "the rank that ends the step last has no slack"
    assert not result.per_rank.filter((pl.col("total_ns") > 0) & (pl.col("slack_ns") > 0)).height
    return result


def segments_us(result: JobCriticalPath) -> list[Segment]:
    """Return the rank, class, name, start and end (µs from the start of the step) of each segment."""
    microseconds = (pl.col("start_ns", "end_ns") - result.steps["start_ns"][0]) / 1_000
    return result.path.select("rank", "path_class", "name", microseconds).rows()


def on_one_host(*ranks: int) -> TraceBuilder:
    """Return a trace builder for ranks that run on one host and therefore share a clock."""
    builder = TraceBuilder()
    for rank in ranks:
        builder.rank(rank).header(host_name="one", distributedInfo={"rank": rank, "world_size": len(ranks)})
    return builder


def python_function(builder: TraceBuilder, name: str, *, start_us: float, duration_us: float) -> None:
    """Add a Python function to the main thread of rank 1."""
    thread = {"pid": 1001, "tid": 1}
    builder.event(ph="X", cat="python_function", name=name, ts=start_us, dur=duration_us, rank=1, **thread)


def late_rank_1() -> TraceBuilder:
    """Return a job: rank 1 computes until 60 µs, an all-reduce runs until 70 µs, then rank 0 computes until 90 µs."""
    builder = on_one_host(0, 1)
    for rank, busy_us, end_us in ((0, 20, 90), (1, 55, 72)):
        builder.rank(rank).step(1, 0, end_us, rank=rank)
        builder.kernel("gemm", start_us=5, duration_us=busy_us, launch_us=1, rank=rank)
        start_us = 5 + busy_us
        builder.collective(
            group_ranks=(0, 1), start_us=start_us, duration_us=70 - start_us, launch_us=3, stream=7, rank=rank
        )
    builder.runtime("cudaDeviceSynchronize", start_us=6, duration_us=65, rank=0)
    return builder.operator("aten::mm", start_us=71, duration_us=19, rank=0)


def test_the_path_leads_from_the_last_rank_to_the_others() -> None:
    """Rank 0 waits for rank 1 until 60 µs, so the path is on rank 1 until 60 µs, then on rank 0."""
    result = across(late_rank_1().build())
    assert segments_us(result)[-4:] == [
        (1, "computation", "gemm", 5, 60),
        (0, "communication", "all_reduce", 60, 70),
        (0, "synchronisation_wait", "cudaDeviceSynchronize", 70, 71),
        (0, "cpu_operator", "aten::mm", 71, 90),
    ]
    assert result.hops.select("from_rank", "to_rank", "collective", "transfer_ns", "clock_half_width_ns").rows() == [
        (1, 0, "all_reduce", 10_000, 0)
    ]
    assert result.per_rank.select("rank", "total_ns", "slack_ns").rows() == [(0, 30_000, 0), (1, 60_000, 0)]


def test_the_answer_names_the_rank_and_what_binds_it() -> None:
    """The path spends 60 of its 90 µs on rank 1, 55 of them in `gemm`."""
    assert across(late_rank_1().build()).answer == (
        "66.7 % of the job's critical path (ProfilerStep#1, 90 µs) is on rank 1, where the largest part is gemm, "
        "55 µs in 1 segment."
    )


def test_the_answer_adds_up_the_modules_of_a_function() -> None:
    """`sleep` takes 20 µs in each of three modules. The total, 60 µs, is more than the 30 µs of `aten::mm`."""
    builder = on_one_host(0, 1)
    for rank in (0, 1):
        builder.rank(rank).step(1, 0, 60 + 40 * rank, rank=rank)
        builder.operator("aten::mm", start_us=0, duration_us=30, rank=rank)
    for number, start_us in enumerate((30, 54, 78)):
        for name in (f"nn.Module: Block_{number}", f"<built-in method sleep of Clock object at 0x7f{number}>"):
            python_function(builder, name, start_us=start_us, duration_us=20)
        builder.operator("aten::add", start_us=start_us + 20, duration_us=4, rank=1)
    result = across(builder.build())
    assert result.per_name.filter(name="<built-in method sleep>")["total_ns"].to_list() == [20_000] * 3
    assert result.answer.endswith(
        "where the largest part is <built-in method sleep> in 3 modules, 60 µs in 3 segments."
    )


def test_a_function_before_the_first_operator_is_named() -> None:
    """Rank 1 sleeps before its first operator, from 0 to 60 µs; the segment is named after the sleep function."""
    builder = on_one_host(0, 1)
    builder.rank(0).step(1, 0, 70, rank=0).operator("aten::mm", start_us=0, duration_us=10, rank=0)
    python_function(builder.rank(1), "<built-in function sleep>", start_us=0, duration_us=60)
    builder.step(1, 0, 80, rank=1).operator("aten::mm", start_us=60, duration_us=20, rank=1)
    assert segments_us(across(builder.build())) == [
        (1, "host_gap", "<built-in function sleep>", 0, 60),
        (1, "cpu_operator", "aten::mm", 60, 80),
    ]


def test_each_function_in_a_gap_has_its_own_time() -> None:
    """In a 60 µs gap, `save` runs for 50 µs and calls `write` twice; every change of function starts a segment."""
    builder = on_one_host(0, 1)
    builder.rank(0).step(1, 0, 70, rank=0).operator("aten::mm", start_us=0, duration_us=10, rank=0)
    builder.rank(1).step(1, 0, 80, rank=1).operator("aten::mm", start_us=60, duration_us=20, rank=1)
    for name, start_us, duration_us in (("save", 5, 50), ("write", 10, 20), ("write", 40, 10)):
        python_function(builder, name, start_us=start_us, duration_us=duration_us)
    assert segments_us(across(builder.build())) == [
        (1, "host_gap", "host gap", 0, 5),
        (1, "host_gap", "save", 5, 10),
        (1, "host_gap", "write", 10, 30),
        (1, "host_gap", "save", 30, 40),
        (1, "host_gap", "write", 40, 50),
        (1, "host_gap", "save", 50, 55),
        (1, "host_gap", "host gap", 55, 60),
        (1, "cpu_operator", "aten::mm", 60, 80),
    ]


def test_a_notebook_shows_the_answer_and_the_ranks() -> None:
    """The main table of the path through all ranks has a row per rank."""
    shown = across(late_rank_1().build())._repr_html_()
    assert "66.7 % of the job" in shown
    assert "its time on the path through all ranks, and its slack" in shown


def test_slack_is_what_a_rank_could_be_later() -> None:
    """Rank 0 ends the step at 90 µs; ranks 1 and 2 end at 86 and 50 µs, so their slack is 4 and 40 µs."""
    builder = on_one_host(0, 1, 2)
    for rank, busy_us, end_us in ((0, 20, 90), (1, 55, 86), (2, 20, 50)):
        builder.rank(rank).step(1, 0, end_us, rank=rank)
        builder.operator("aten::mm", start_us=0, duration_us=busy_us, rank=rank)
    result = across(builder.build())
    assert result.per_rank.select("rank", "slack_ns").rows() == [(0, 0), (1, 4_000), (2, 40_000)]


def test_a_receive_leads_to_the_sender() -> None:
    """Rank 1 waits in `gloo:recv` until rank 0 sends at 50 µs, so the path hops from rank 0 to rank 1."""
    builder = on_one_host(0, 1)
    groups = {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Group size": 2}
    builder.rank(0).step(1, 0, 60, rank=0).operator("aten::mm", start_us=1, duration_us=48, rank=0)
    send = {"Concrete Inputs": ["", "", "1", "0"], "Input Dims": [[[8]]], "Input type": ["TensorList"]}
    recv = {**send, "Concrete Inputs": ["", "", "0", "0"]}
    builder.operator("c10d::send", start_us=50, duration_us=4, rank=0, args=send)
    builder.annotation("gloo:send", start_us=52, duration_us=5, rank=0, args={**groups, "Input Dims": [[8]]})
    builder.rank(1).step(1, 0, 90, rank=1).operator("c10d::recv_", start_us=2, duration_us=4, rank=1, args=recv)
    builder.annotation("gloo:recv", start_us=4, duration_us=56, rank=1, args={**groups, "Input Dims": [[8]]})
    builder.operator("aten::add", start_us=61, duration_us=28, rank=1)
    result = across(builder.build())
    assert result.hops.select("from_rank", "to_rank", "collective").rows() == [(0, 1, "recv")]
    assert segments_us(result)[1] == (0, "cpu_operator", "aten::mm", 1, 49)


def test_a_thread_that_waits_late_for_a_message_was_not_delayed_by_it() -> None:
    """Rank 0 sends at 10 µs, but rank 1 needs the message only at 60 µs, so the path stays on rank 1."""
    builder = on_one_host(0, 1)
    groups = {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Group size": 2, "Input Dims": [[8]]}
    send = {"Concrete Inputs": ["", "", "1", "0"], "Input Dims": [[[8]]], "Input type": ["TensorList"]}
    recv = {**send, "Concrete Inputs": ["", "", "0", "0"]}
    builder.rank(0).step(1, 0, 20, rank=0).operator("c10d::send", start_us=10, duration_us=4, rank=0, args=send)
    builder.annotation("gloo:send", start_us=12, duration_us=3, rank=0, args=groups)
    builder.rank(1).step(1, 0, 90, rank=1).operator("c10d::recv_", start_us=2, duration_us=4, rank=1, args=recv)
    builder.annotation("gloo:recv", start_us=4, duration_us=58, rank=1, args=groups)
    builder.operator("aten::mm", start_us=7, duration_us=53, rank=1)
    builder.operator("aten::add", start_us=63, duration_us=26, rank=1)
    result = across(builder.build())
    assert result.hops.is_empty()
    assert (1, "cpu_operator", "aten::mm", 7, 60) in segments_us(result)


def test_one_rank_alone_is_a_job_of_one() -> None:
    """For a single rank, the path is the same with and without `across_ranks`."""
    trace = TraceBuilder().step(1, 0, 40).operator("aten::mm", start_us=5, duration_us=30).build()
    alone = critical_path(trace).path.select("name", "path_class", "start_ns", "end_ns")
    assert across(trace).path.select("name", "path_class", "start_ns", "end_ns").equals(alone)


def test_a_rank_that_was_not_recorded_is_unknown_in_time() -> None:
    """Rank 1 was not recorded, so the 45 µs of the all-reduce on rank 0 may include waiting; the findings say so."""
    trace = late_rank_1().build().select([0])
    result = across(trace)
    assert result.steps["incomplete_ns"].to_list() == [45_000]
    assert any(
        "45 µs of the path is communication that some ranks did not record" in finding for finding in result.findings
    )
    assert any(finding.startswith("rank 1: not recorded") for finding in result.findings)


def test_time_before_a_rank_recorded_is_unknown() -> None:
    """The path follows rank 1, whose recording starts at 30 µs, so the first 30 µs of the path are unknown."""
    builder = on_one_host(0, 1)
    builder.rank(0).step(1, 0, 50, rank=0).operator("aten::mm", start_us=0, duration_us=20, rank=0)
    builder.rank(1).step(1, 30, 60, rank=1).operator("aten::mm", start_us=30, duration_us=60, rank=1)
    result = across(builder.build())
    assert segments_us(result) == [(1, "unknown", "unknown", 0, 30), (1, "cpu_operator", "aten::mm", 30, 90)]
    assert result.steps["unknown_ns"].to_list() == [30_000]


def test_the_job_takes_the_last_step_but_one_that_all_ranks_recorded() -> None:
    """Rank 1 recorded only steps 1 and 2. The second-to-last step that all ranks recorded is therefore step 1."""
    builder = on_one_host(0, 1)
    for rank, last in ((0, 3), (1, 2)):
        builder.rank(rank)
        for step in range(1, last + 1):
            builder.step(step, 100 * step, 90, rank=rank)
            builder.operator("aten::mm", start_us=100 * step, duration_us=50, rank=rank)
    assert across(builder.build()).steps["window"].to_list() == ["ProfilerStep#1"]


def test_a_rank_without_steps_joins_with_the_window_of_the_others() -> None:
    """Rank 1 has no steps, so only its events during rank 0's step are used; a finding says so."""
    builder = on_one_host(0, 1)
    builder.rank(0).step(1, 100, 90, rank=0).operator("aten::mm", start_us=100, duration_us=50, rank=0)
    builder.rank(1).operator("aten::mm", start_us=0, duration_us=400, rank=1)
    result = across(builder.build())
    assert result.steps["duration_ns"].to_list() == [90_000]
    assert any("rank 1: no steps were recorded" in finding for finding in result.findings)


def test_ranks_without_events_are_left_out() -> None:
    """If no rank has host ranges or device work, MissingDataError is raised."""
    empty = TraceBuilder().rank(0).header(distributedInfo={"rank": 0, "world_size": 2}).build()
    with pytest.raises(MissingDataError):
        critical_path(empty, across_ranks=True)


def test_an_instance_that_a_rank_lacks_is_an_error() -> None:
    """An unknown step raises InvalidOptionError."""
    with pytest.raises(InvalidOptionError, match="no step 9"):
        critical_path(late_rank_1().build(), across_ranks=True, instance=9)


@pytest.fixture(scope="module")
def straggling(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return a simulated job of four ranks on two hosts; rank 3 computes 1.5 ms longer per step than the others."""
    folder = tmp_path_factory.mktemp("job")
    write_job(folder, ranks=4, steps=3, layers=2, ranks_per_host=2)
    return open_trace(folder, cache=False)


def test_a_simulated_straggler_is_on_the_path(straggling: Trace) -> None:
    """More than half of the path is on the slow rank."""
    per_rank = across(straggling, segment_limit=10**9).per_rank
    assert per_rank.sort("total_ns")["rank"].to_list()[-1] == 3
    assert per_rank.filter(rank=3)["fraction"][0] > 0.5


def test_windows_may_be_annotations_steps_and_times(straggling: Trace) -> None:
    """The window can be one step, two steps or the whole recording; a larger window never has a shorter path."""
    lengths = [
        across(straggling, segment_limit=10**9, **options).steps["duration_ns"][0]
        for options in ({}, {"instance": (10, 11)}, {"annotation": ""})
    ]
    assert lengths == sorted(lengths)


SLOW_RANKS = {"pipeline_gloo_4rank": 2, "ddp_gloo_4rank": 3}


@pytest.mark.parametrize("name", SLOW_RANKS)
def test_the_rank_that_sleeps_is_on_the_path_of_recorded_jobs(real_traces: Path, name: str) -> None:
    """In both recordings, one rank sleeps: the path spends most of its time on this rank and contains its `sleep`."""
    result = across(opened(real_traces / name), segment_limit=10**9)
    most = result.per_rank.sort("total_ns").row(-1, named=True)
    assert most["rank"] == SLOW_RANKS[name]
    asleep = result.per_name.filter(pl.col("name") == "<built-in function sleep>")
    assert asleep["rank"].unique().to_list() == [SLOW_RANKS[name]]
    assert asleep["total_ns"].sum() > {"pipeline_gloo_4rank": 48_000_000, "ddp_gloo_4rank": 20_000_000}[name]


@st.composite
def jobs(draw: st.DrawFn) -> TraceBuilder:
    """Return up to three ranks that compute for random times between collectives; the hosts' clocks may differ."""
    count = draw(st.integers(1, 3))
    builder = TraceBuilder()
    collective_count = draw(st.integers(0, 3))
    begins = [draw(st.integers(0, 30)) for _ in range(count)]
    now = list(begins)
    plans: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for _ in range(collective_count):
        for rank in range(count):
            now[rank] += draw(st.integers(1, 40))
        end = max(now) + draw(st.integers(1, 20))
        for rank in range(count):
            leaves = end + draw(st.integers(0, 3))
            plans[rank].append((now[rank], leaves))
            now[rank] = leaves
    for rank in range(count):
        host = draw(st.sampled_from(["one", "two"]))
        builder.rank(rank).header(host_name=host, distributedInfo={"rank": rank, "world_size": count})
        shift = draw(st.integers(0, 20)) if host == "two" else 0
        last = now[rank] + draw(st.integers(1, 20))
        builder.step(1, begins[rank] + shift, last - begins[rank], rank=rank)
        builder.operator("aten::mm", start_us=begins[rank] + shift, duration_us=last - begins[rank], rank=rank)
        for start, end in plans[rank]:
            builder.collective(
                group_ranks=range(count),
                start_us=start + shift,
                duration_us=end - start,
                launch_us=begins[rank] + shift,
                launch_duration_us=0.5,
                rank=rank,
            )
    return builder


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(jobs())
def test_every_path_is_as_long_as_the_step(builder: TraceBuilder) -> None:
    """Even if the hosts' clocks differ, the segments fill the step without gaps, and no slack is negative."""
    result = critical_path(builder.build(), across_ranks=True, segment_limit=10**9)
    assert result.path["duration_ns"].sum() == result.steps["duration_ns"][0]
    assert result.path["start_ns"].to_list()[1:] == result.path["end_ns"].to_list()[:-1]
    assert (result.per_rank["slack_ns"] >= 0).all()
