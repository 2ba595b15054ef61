"""Tests of the rules of trust, on synthetic recordings with known answers and on numbers from public issues."""

from __future__ import annotations

import pytest

from holotrace import gpu_summary, idle_time, summary, temporal_breakdown, trust
from holotrace.testing.builder import TraceBuilder
from jobs import gpu_job

ROWS = ("rank", "rule", "start_ns", "end_ns", "doubtful_ns", "case_count")


def doubts(builder: TraceBuilder) -> list[tuple[object, ...]]:
    """Return the rank, rule, start, end, doubtful time and number of cases of each doubt."""
    return trust(builder.build()).doubts.select(ROWS).rows()


def with_graphs(*row_counts: int) -> TraceBuilder:
    """Return a job that replays a graph every 100 µs; replay i has `row_counts[i]` kernels of 10 µs."""
    builder = TraceBuilder()
    for replay, rows in enumerate(row_counts):
        call_us = 100 * replay
        builder.runtime("cudaGraphLaunch", start_us=call_us, duration_us=5, correlation=replay + 1)
        for row in range(rows):
            place = {"start_us": call_us + 20 + 10 * row, "duration_us": 10, "correlation": replay + 1}
            builder.kernel(f"k{row}", **place)
    return builder


def test_a_sound_job_can_be_trusted() -> None:
    """If a job breaks no rule, there are no doubts, and 100 % of the time can be trusted."""
    result = trust(gpu_job().build())
    assert result.per_rank["trusted_fraction"].to_list() == [1.0, 1.0]
    assert result.doubts.is_empty()
    assert result.answer == "100.0 % of the recorded time can be trusted: the recording breaks no rule."


def test_idle_time_of_an_incomplete_replay_is_unknown() -> None:
    """The third of five replays has no kernels, so the 120 µs from its launch to the next kernel are unknown."""
    builder = with_graphs(3, 3, 0, 3, 3)
    assert doubts(builder) == [(0, "incomplete_graph_replays", 200_000, 320_000, 120_000, 1)]
    (row,) = trust(builder.build()).per_rank.rows(named=True)
    assert (row["recorded_ns"], row["doubtful_ns"], row["trusted_fraction"]) == (450_000, 120_000, 1 - 120 / 450)
    assert (row["device_busy_ns"], row["doubtful_busy_ns"]) == (120_000, 0)


def test_analyses_count_incomplete_replays_as_unknown() -> None:
    """The analyses count 120 of 430 µs as busy, 190 µs as idle and 120 µs as unknown."""
    trace = with_graphs(3, 3, 0, 3, 3).build()
    (times,) = temporal_breakdown(trace).per_device.rows(named=True)
    assert [times[f"{name}_ns"] for name in ("window", "computation", "idle", "unknown")] == [
        430_000, 120_000, 190_000, 120_000,
    ]  # fmt: skip
    idle = idle_time(trace)
    for table in (idle.per_device, idle.per_stream):
        assert dict(table.select("category", "idle_ns").rows()) == {
            "host_wait": 150_000,
            "kernel_wait": 40_000,
            "other": 0,
            "unknown": 120_000,
        }
    assert idle.per_device["fraction"].sum() == pytest.approx(1)
    assert "unknown" in idle.answer
    (use,) = gpu_summary(trace).per_device.rows(named=True)
    assert use["utilization_fraction"] == pytest.approx(120 / 450)
    assert use["unknown_fraction"] == pytest.approx(120 / 450)


def test_the_verdict_counts_unknown_time() -> None:
    """The recording takes 450 µs: the GPU is busy for 120 µs, and another 120 µs are unknown."""
    verdict = summary(with_graphs(3, 3, 0, 3, 3).build()).verdict
    said = "and the GPU is busy 26.7 % of it; 26.7 % is unknown, because the GPU may run work that was not recorded; "
    assert verdict.startswith(f"The recording takes 450 µs, {said}")


def test_complete_replays_leave_nothing_unknown() -> None:
    """Two graphs of different sizes alternate; all their replays are complete, so no doubt is reported."""
    trace = with_graphs(3, 2, 3, 2, 3, 2).build()
    assert trust(trace).doubts.is_empty()
    assert set(idle_time(trace).per_device["category"]) == {"host_wait", "kernel_wait", "other"}


def test_numbers_of_graphs_tell_graphs_apart() -> None:
    """Graph ids show that one of three replays of the same graph has fewer kernels than the other two."""
    builder = TraceBuilder()
    for replay, (graph, rows) in enumerate([(1, 3), (2, 2), (1, 3), (2, 2), (1, 2), (2, 2)]):
        call = {"start_us": 100 * replay, "duration_us": 5, "correlation": replay + 1}
        builder.runtime("hipGraphLaunch", **call)
        for row in range(rows):
            args = {"graph id": graph, "graph node id": row + 1}
            start_us = 100 * replay + 20 + 10 * row
            builder.kernel(f"k{row}", start_us=start_us, duration_us=10, correlation=replay + 1, args=args)
    assert [row[:2] for row in doubts(builder)] == [(0, "incomplete_graph_replays")]


def test_a_chain_of_graphs_may_end_differently() -> None:
    """The first and last replays have fewer kernels, but may be replays of other graphs, so they raise no doubt."""
    assert doubts(with_graphs(1, 3, 3, 3, 3, 2)) == []


def test_overlapping_work_is_counted_twice() -> None:
    """On one stream, kernels overlap by 3, 2 and 6 µs; an overlap of 2 µs is tolerated, so 9 µs are counted twice."""
    builder = TraceBuilder()
    for start_us in (0, 7, 30, 38, 50, 54):
        builder.kernel("k", start_us=start_us, duration_us=10, launch_us=0)
    (row,) = trust(builder.build()).doubts.rows(named=True)
    assert (row["doubtful_ns"], row["case_count"], row["device"], row["stream"]) == (9_000, 2, 0, 7)
    assert "9 µs twice (15.0 % of the stream's work)" in row["sentence"]


@pytest.mark.parametrize("launch", ["cudaLaunchKernelExC", "cuLaunchKernelEx"])
def test_dependent_launches_may_overlap(launch) -> None:
    """With programmatic dependent launch, a kernel may overlap the previous kernel, so the overlap is not reported."""
    builder = TraceBuilder().kernel("a", start_us=10, duration_us=10, launch_us=0)
    builder.kernel("b", start_us=15, duration_us=10, launch_us=5, launch_name=launch)
    assert doubts(builder) == []


def test_work_before_its_launch() -> None:
    """Two kernels begin 2 and 4 µs before their launches, so host and device clocks differ by a median of 3 µs."""
    builder = TraceBuilder().kernel("a", start_us=8, duration_us=1, launch_us=10)
    builder.kernel("b", start_us=16, duration_us=1, launch_us=20).kernel("c", start_us=40, duration_us=1, launch_us=30)
    (row,) = trust(builder.build()).doubts.rows(named=True)
    assert (row["rule"], row["doubtful_ns"], row["case_count"]) == ("starts_before_launch", 6_000, 2)
    assert "by a median of 3 µs and at most 4 µs" in row["sentence"]


def test_captured_launches_run_nothing() -> None:
    """During a capture, launches normally start no kernel, so only the launch after the capture is reported."""
    builder = TraceBuilder().kernel("a", start_us=10, duration_us=1, launch_us=0)
    builder.runtime("cudaStreamBeginCapture", start_us=20, duration_us=1)
    builder.runtime("cudaLaunchKernel", start_us=25, duration_us=1, correlation=7)
    builder.runtime("cudaStreamEndCapture", start_us=30, duration_us=1)
    builder.runtime("cudaLaunchKernel", start_us=40, duration_us=1, correlation=8)
    builder.kernel("b", start_us=60, duration_us=1, launch_us=50)
    assert doubts(builder) == [(0, "launches_without_work", 40_000, 60_000, 20_000, 1)]


def test_launches_at_the_edges_may_lack_work() -> None:
    """Launches whose work was not recorded are normal before the first kernel and after the last one."""
    builder = TraceBuilder().runtime("cudaLaunchKernel", start_us=0, duration_us=1, correlation=7)
    builder.kernel("a", start_us=20, duration_us=1, launch_us=10)
    builder.runtime("cudaLaunchKernel", start_us=30, duration_us=1, correlation=8)
    assert doubts(builder) == []


def test_a_stream_wait_ends_before_its_work() -> None:
    """The host waits for stream 7 until 50 µs, but a kernel on stream 7 runs until 100 µs; stream 8 is ignored."""
    builder = TraceBuilder().kernel("a", start_us=10, duration_us=90, launch_us=0)
    builder.kernel("b", start_us=10, duration_us=200, launch_us=2, stream=8)
    builder.sync("Stream Sync", start_us=30, duration_us=20)
    assert doubts(builder) == [(0, "waits_end_early", 50_000, 100_000, 50_000, 1)]


def test_the_first_all_reduce_of_a_decode_window() -> None:
    """As in Hyperloom#1292, the first of 64 all-reduces takes 15,747 ms of 16,805 ms, and the others 14.3 µs each."""
    builder = TraceBuilder().kernel("cross_device_reduce_2stage", start_us=0, duration_us=15_747_000)
    for call in range(1, 64):
        start_us = 15_747_000 + 16_000 * call
        builder.kernel("cross_device_reduce_2stage", start_us=start_us, duration_us=14.3)
    builder.kernel("gemm", start_us=16_804_000, duration_us=1_000)
    result = trust(builder.build())
    assert result.doubts.select(ROWS).rows() == [(0, "slow_first_collectives", 0, 15_747_000_000, 15_747_000_000, 1)]
    assert result.per_rank["trusted_fraction"].to_list() == [1 - 15_747 / 16_805]
    assert result.answer.startswith(
        "6.3 % of the recorded time can be trusted; rank 0: The first collective takes 15.7 s"
    )


def test_collectives_of_different_sizes_are_no_transient() -> None:
    """The first collective is slow, but a later one is equally slow, so this is not a start-up effect."""
    builder = TraceBuilder()
    for call, duration_us in enumerate([900, 10, 10, 10, 10, 10, 900, 10, 10, 10]):
        builder.kernel("ncclDevKernel_AllReduce", start_us=1_000 * call, duration_us=duration_us)
    assert doubts(builder) == []


def test_profilers_that_start_one_after_the_other() -> None:
    """An all-gather takes 30.418, 4.137, 0.036 and 3.842 ms on four ranks, because rank 2 starts recording last.

    The durations are those of vllm#57001.
    """
    builder = TraceBuilder()
    for rank, duration_us in enumerate([30_418, 4_137, 36, 3_842]):
        begin_us = 40_000 - duration_us
        builder.rank(rank).operator("aten::mm", start_us=begin_us - 70, duration_us=64)
        group = {"group_ranks": range(4), "start_us": begin_us, "duration_us": duration_us}
        builder.collective("_allgather_base", **group)
    late_ns = (40_000 - 36 - 70) * 1_000  # rank 2 starts recording
    starts = {0: 9_582_000, 1: 35_863_000, 3: 36_158_000}
    assert doubts(builder) == [
        (rank, "profiler_start_skew", start, late_ns, late_ns - start, 1) for rank, start in starts.items()
    ]


def test_a_rank_enters_after_another_left() -> None:
    """Rank 1 enters an all-reduce 3 ms after rank 0 has left it, so the clocks differ."""
    builder = TraceBuilder().collective(start_us=0, duration_us=100).kernel("gemm", start_us=200, duration_us=9_000)
    builder.rank(1).kernel("gemm", start_us=0, duration_us=10).collective(start_us=3_100, duration_us=100)
    assert [row[:2] for row in doubts(builder)] == [(1, "clocks_differ")]


def test_the_first_step_takes_long() -> None:
    """The first of nine steps takes 1 ms, 100 times as long as the others, so this 1 ms is in doubt."""
    builder = TraceBuilder().step(0, 0, 1_000)
    for step in range(1, 9):
        builder.step(step, 1_000 + 10 * step, 10)
    assert doubts(builder) == [(0, "slow_first_steps", 0, 1_000_000, 1_000_000, 1)]


def test_shares_count_overlapping_doubts_once() -> None:
    """One doubt covers a step of 1 ms, and another covers 100 µs of it, so 1 ms is in doubt, not 1.1 ms."""
    builder = TraceBuilder().step(0, 0, 1_000).operator("aten::mm", start_us=2_000, duration_us=2_000)
    builder.event(ph="X", cat="overhead", name="Buffer Flush", ts=100, dur=100, pid=-1, tid=0)
    builder.event(ph="i", name="Record Window End", ts=500, pid="", tid="", s="g")
    result = trust(builder.build())
    assert sorted(result.doubts["rule"]) == ["profiler_overhead", "steps_with_profiler_start"]
    assert result.per_rank.select("doubtful_ns", "trusted_fraction", "doubt_count").rows() == [(1_000_000, 0.75, 2)]


def test_the_tables_equal_their_golden_copies(golden) -> None:
    """Both tables of a job with an incomplete replay and overlapping kernels equal their golden copies."""
    builder = with_graphs(3, 3, 0, 3, 3)
    builder.rank(1).kernel("a", start_us=0, duration_us=10).kernel("a", start_us=5, duration_us=10)
    result = trust(builder.build())
    golden.check(result.per_rank, "trust/incomplete_replay")
    golden.check(result.doubts, "trust/incomplete_replay.doubts")
