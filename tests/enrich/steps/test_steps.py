"""Tests of steps and of dropping the last step."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.steps.steps import before_last_step, device_extended_windows, steps, window_of, windows
from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.store.trace import RankTrace
from holotrace.testing.builder import TraceBuilder


def kept(builder: TraceBuilder) -> list[str]:
    """Return the names of the events before the last step, in file order.

    Also assert that `device_rows` returns exactly the device work among these events.
    """
    (rank_trace,) = builder.build().where(before_last_step).ranks.values()
    events = rank_trace.table("events")
    is_work = events["kind"].is_in(list(DEVICE_WORK_KINDS))
    assert sorted(device_rows(rank_trace)["event_index"]) == sorted(events["event_index"].filter(is_work))
    return rank_trace.texts(events["name"]).to_list()


def test_steps_are_the_profiler_step_ranges_with_their_numbers() -> None:
    """In the file, the later of two steps comes first; the table is sorted by start."""
    (rank_trace,) = TraceBuilder().step(12, 30, 20).step(11, 10, 15).build().ranks.values()

    assert steps(rank_trace).drop("track_id").rows() == [(11, 10_000, 25_000), (12, 30_000, 50_000)]


def test_step_ranges_on_the_device_do_not_count() -> None:
    """GPU annotations that repeat a step of the host are ignored; old files record steps as operators."""
    builder = (
        TraceBuilder()
        .gpu_annotation("ProfilerStep#7", start_us=40, duration_us=10)
        .operator("ProfilerStep#8", start_us=20, duration_us=5)
        .operator("ProfilerStepper", start_us=21, duration_us=1)
    )
    (rank_trace,) = builder.build().ranks.values()

    assert steps(rank_trace)["step"].to_list() == [8]


def test_a_trace_without_steps_has_an_empty_table() -> None:
    """Without steps, the table has the usual columns but no rows."""
    (rank_trace,) = TraceBuilder().operator("aten::mm", start_us=0, duration_us=1).build().ranks.values()

    table = steps(rank_trace)

    assert table.columns == ["step", "start_ns", "end_ns", "track_id"]
    assert table.height == 0


@pytest.mark.parametrize("numbers", [[], [5]])
def test_with_fewer_than_two_steps_everything_stays(numbers: list[int]) -> None:
    """If the trace has one step or none, all events are kept; dropping the last step would leave no step."""
    builder = TraceBuilder().operator("aten::mm", start_us=50, duration_us=1)
    for number in numbers:
        builder.step(number, 10, 100)

    assert kept(builder) == ["aten::mm", *(f"ProfilerStep#{number}" for number in numbers)]


def test_host_events_from_the_last_step_on_are_dropped() -> None:
    """Events that begin before the last step are kept, and later events are dropped."""
    builder = (
        TraceBuilder()
        .operator("before", start_us=0, duration_us=1)
        .step(1, 10, 10)
        .operator("between", start_us=25, duration_us=40)
        .step(2, 30, 10)
        .operator("at_start", start_us=30, duration_us=1)
        .operator("after", start_us=99, duration_us=1)
    )

    assert kept(builder) == ["before", "ProfilerStep#1", "between"]


def test_device_work_follows_its_launch() -> None:
    """Work launched in step 1 is kept and work launched in step 2 is dropped, no matter when the work runs."""
    builder = (
        TraceBuilder()
        .step(1, 10, 10)
        .step(2, 30, 10)
        .kernel("late_of_step_1", start_us=35, duration_us=9, launch_us=15, launch_name="launch_1")
        .kernel("of_step_2", start_us=29, duration_us=1, launch_us=31, launch_name="launch_2")
    )

    assert kept(builder) == ["ProfilerStep#1", "launch_1", "late_of_step_1"]


def test_device_work_without_a_launch_is_kept_when_it_begins_before_the_last_step() -> None:
    """Kernels, waits and GPU annotations without a launch are kept if they start before the last step."""
    builder = (
        TraceBuilder()
        .step(1, 10, 10)
        .step(2, 30, 10)
        .kernel("early", start_us=29, duration_us=9)
        .kernel("late", start_us=30, duration_us=1)
        .gpu_annotation("ProfilerStep#1", start_us=12, duration_us=9)
        .gpu_annotation("ProfilerStep#2", start_us=33, duration_us=9)
        .sync("Stream Sync", start_us=28, duration_us=9)
    )

    assert kept(builder) == ["ProfilerStep#1", "early", "ProfilerStep#1", "Stream Sync"]


def test_gpu_annotations_of_steps_do_not_move_the_boundary() -> None:
    """The last step begins when its host range begins (30 µs), not when its GPU annotation begins (80 µs)."""
    builder = (
        TraceBuilder()
        .step(1, 10, 10)
        .step(2, 30, 10)
        .gpu_annotation("ProfilerStep#2", start_us=80, duration_us=9)
        .operator("in_step_2", start_us=35, duration_us=1)
    )

    assert kept(builder) == ["ProfilerStep#1"]


def test_a_step_on_several_threads_begins_with_the_first_of_them() -> None:
    """Two threads record step 2, starting at 30 and 34 µs; both ranges and all events from 30 µs on are dropped."""
    builder = (
        TraceBuilder()
        .step(1, 10, 10)
        .step(1, 12, 10, thread=2)
        .step(2, 30, 10)
        .step(2, 34, 10, thread=2)
        .operator("between", start_us=32, duration_us=1)
    )

    assert kept(builder) == ["ProfilerStep#1", "ProfilerStep#1"]


def test_each_rank_has_its_own_boundary() -> None:
    """The clocks of two ranks differ by 1 ms; on each rank, the selection ends before the rank's own last step."""
    builder = TraceBuilder()
    for rank, offset in ((0, 0), (1, 1000)):
        builder.rank(rank).step(1, offset + 10, 10).step(2, offset + 30, 10)
        builder.operator("x", start_us=offset + 15, duration_us=1)
    trace = builder.build().where(before_last_step)

    assert [rank_trace.table("events").height for rank_trace in trace.ranks.values()] == [2, 2]


def test_the_selection_fits_events_written_as_begin_and_end() -> None:
    """A selection of steps keeps the right events even if the table orders B/E pairs differently from the file."""
    builder = (
        TraceBuilder()
        .event(ph="B", cat="cpu_op", name="outer", pid=1000, tid=1, ts=5)
        .step(1, 10, 10)
        .step(2, 30, 10)
        .kernel("of_step_1", start_us=40, duration_us=1, launch_us=15, launch_name="launch_1")
        .event(ph="E", cat="cpu_op", name="outer", pid=1000, tid=1, ts=90)
        .kernel("of_step_2", start_us=50, duration_us=1, launch_us=45, launch_name="launch_2")
    )

    assert sorted(kept(builder)) == ["ProfilerStep#1", "launch_1", "of_step_1", "outer"]


def windows_of(builder: TraceBuilder, annotation: str | None = None) -> list[tuple[int, int, int]]:
    """Return the windows of rank 0 in µs."""
    table = windows(builder.build().ranks[0], annotation)
    return [(number, start // 1_000, end // 1_000) for number, start, end in table.iter_rows()]


def test_windows_are_the_steps_over_all_threads() -> None:
    """Two threads record step 2: its window extends from the first start to the last end."""
    builder = TraceBuilder().step(1, 10, 10).step(2, 30, 10).step(2, 34, 10, thread=2)
    assert windows_of(builder) == [(1, 10, 20), (2, 30, 44)]


def test_an_annotation_replaces_steps() -> None:
    """Ranges of the annotation are numbered from 0 by start; an unknown annotation has no windows."""
    builder = TraceBuilder().step(1, 0, 90).annotation("part", start_us=40, duration_us=5)
    builder.annotation("part", start_us=10, duration_us=5).annotation("part 2", start_us=20, duration_us=5)
    assert windows_of(builder, "part") == [(0, 10, 15), (1, 40, 45)]
    assert windows_of(builder, "nothing") == []


def test_without_steps_the_whole_trace_is_the_window() -> None:
    """Without steps, the window extends from the first start to the last end; without events, there is no window."""
    builder = TraceBuilder().operator("a", start_us=5, duration_us=1).kernel("b", start_us=20, duration_us=7)
    assert windows_of(builder) == [(0, 5, 27)]
    assert windows_of(TraceBuilder()) == []


def test_a_time_belongs_to_the_window_that_began_last() -> None:
    """Windows are half-open; a time that is null or outside all windows belongs to no window."""
    table = pl.DataFrame({"window": [3, 4], "start_ns": [0, 10], "end_ns": [12, 20]})
    times = pl.Series([0, 9, 10, 11, 19, 20, -1, None], dtype=pl.Int64)
    assert window_of(table, times).to_list() == [3, 3, 4, 4, 4, None, None, None]
    assert window_of(table.clear(), times).to_list() == [None] * 8


def extended(builder: TraceBuilder, annotation: str | None = None) -> list[tuple[int, int, int]]:
    """Return the number, start and end (µs) of each window, extended to the end of its device work."""
    (rank_trace,) = builder.build().ranks.values()
    table = device_extended_windows(rank_trace, annotation)
    return [(window, start // 1_000, end // 1_000) for window, start, end in table.rows()]


def test_a_step_lasts_until_its_device_work_ends_and_the_next_begins_then() -> None:
    """Step 1 lasts from 8 µs, when earlier work ends, until its kernel ends at 130 µs; then step 2 begins."""
    builder = (
        TraceBuilder()
        .kernel("earlier", start_us=2, duration_us=6, launch_us=-3)
        .step(1, 5, 45)
        .kernel("a", start_us=60, duration_us=70, launch_us=10)
        .step(2, 50, 50)
        .kernel("b", start_us=130, duration_us=10, launch_us=60)
        .step(3, 150, 10)
        .kernel("c", start_us=155, duration_us=1, launch_us=151)
    )

    assert extended(builder) == [(1, 8, 130), (2, 130, 140), (3, 150, 160)]


def test_a_call_of_the_driver_launches_too_and_may_outlast_its_step() -> None:
    """A driver call that begins in a step and ends after it extends the step to the end of its kernel."""
    builder = TraceBuilder().step(1, 0, 10)
    builder.kernel("t", start_us=20, duration_us=5, launch_us=9, launch_duration_us=4, launch_name="cuLaunchKernelEx")

    assert extended(builder) == [(1, 0, 25)]


@pytest.mark.parametrize(("last_count", "kept"), [(8, [1, 2]), (7, [1])])
def test_a_last_step_that_launched_less_than_80_percent_is_left_out(last_count: int, kept: list[int]) -> None:
    """The three steps launch ten, eight and no kernels, so only the third is dropped.

    If the second step launches only seven kernels, it is dropped too.
    """
    builder = TraceBuilder().step(1, 0, 100).step(2, 100, 100).step(3, 200, 100)
    for step, count in ((0, 10), (1, last_count)):
        for place in range(count):
            at = 100 * step + place
            builder.kernel("k", start_us=at + 1, duration_us=1, launch_us=at, launch_duration_us=0)

    assert [window for window, _, _ in extended(builder)] == kept


def test_steps_without_any_device_work_stay_as_they_are() -> None:
    """Without device work, no step is extended or dropped."""
    assert extended(TraceBuilder().step(1, 0, 10).step(2, 12, 10)) == [(1, 0, 10), (2, 12, 22)]


def test_annotations_are_extended_too_and_so_is_the_whole_recording() -> None:
    """The window of an annotation or of the whole recording extends to the end of the work launched within it."""
    builder = TraceBuilder().annotation("part", start_us=3, duration_us=4)
    builder.kernel("k", start_us=8, duration_us=20, launch_us=5)

    assert extended(builder, "part") == [(0, 3, 28)]
    assert extended(builder) == [(0, 3, 28)]
    assert extended(builder, "nothing") == []


def test_selecting_device_work_does_not_read_all_events(monkeypatch) -> None:
    """Reading the selected device work does not evaluate the selection for all events."""
    builder = (
        TraceBuilder()
        .step(1, 10, 10)
        .step(2, 30, 10)
        .kernel("of_step_1", start_us=40, duration_us=1, launch_us=15)
        .kernel("of_step_2", start_us=50, duration_us=1, launch_us=45)
    )
    (rank_trace,) = builder.build().where(before_last_step).ranks.values()
    monkeypatch.delattr(RankTrace, "_mask")

    assert rank_trace.texts(device_rows(rank_trace)["name"]).to_list() == ["of_step_1"]
