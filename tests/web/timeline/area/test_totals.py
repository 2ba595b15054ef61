"""Events in an area are summarised by name and kind, and by call path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.nested.nesting import NO_PARENT
from holotrace.errors import InvalidOptionError
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder
from holotrace.web.timeline.area import flames
from holotrace.web.timeline.area.area import Area, area_flames, area_totals, areas_of
from holotrace.web.timeline.area.events import area_events
from holotrace.web.timeline.area.flames import flames_answer
from holotrace.web.timeline.area.totals import totals_answer
from holotrace.web.timeline.index import timeline_index
from timelines import LANES, Event, index_of

ALL = 2**40


def job() -> Trace:
    """Return two ranks, each with two kernels and a step of 100 µs.

    The step contains two `linear` operators, each of which contains an `mm`. On rank 1, operators and kernels take
    twice as long.
    """
    builder = TraceBuilder(base_time_ns=1_000_000)
    for rank, times in ((0, 1), (1, 2)):
        builder.rank(rank).annotation("step", start_us=0, duration_us=100)
        for start in (10, 50):
            builder.operator("linear", start_us=start, duration_us=10 * times)
            builder.operator("mm", start_us=start + 2, duration_us=4 * times)
        builder.kernel("gemm", start_us=20, duration_us=10 * times, launch_us=13, launch_duration_us=1)
        builder.kernel("gemm", start_us=60, duration_us=14 * times, launch_us=53, launch_duration_us=1)
    return builder.build()


def areas(*ranks: int, start_us: int = 0, end_us: int = 1_000, rows: tuple[int, ...] | None = None) -> list[Area]:
    """Return the same area for several ranks."""
    return [Area(rank, start_us * 1_000, end_us * 1_000, rows) for rank in ranks]


def totals_of(trace: Trace, chosen: list[Area]) -> dict[tuple[str, str], list[int]]:
    """Return {(name, kind): [count, total, self, mean, min, max]}, with times in µs."""
    table = area_totals(lambda rank: timeline_index(trace.ranks[rank]), chosen)
    rows = totals_answer(table, "self_ns")["rows"]
    return {(name, kind): [numbers[0], *(ns // 1_000 for ns in numbers[1:6])] for name, kind, *numbers in rows}


def paths_of(trace: Trace, chosen: list[Area]) -> dict[str, list[int]]:
    """Return {path: [total, self, count]}, with times in µs."""
    answer = flames_answer(area_flames(lambda rank: timeline_index(trace.ranks[rank]), chosen))
    paths: list[str] = []
    for outer, name, *_ in answer["paths"]:
        paths.append(f"{paths[outer]}/{answer['names'][name][0]}" if outer >= 0 else answer["names"][name][0])
    numbers = ([total // 1_000, own // 1_000, count] for _, _, total, own, count, *_ in answer["paths"])
    return dict(zip(paths, numbers, strict=True))


def test_totals_of_a_rank() -> None:
    """Each name has count, total, self, mean, min and max; self time excludes directly nested events."""
    assert totals_of(job(), areas(0)) == {
        ("step", "user annotation"): [1, 100, 80, 100, 100, 100],
        ("gemm", "kernel"): [2, 24, 24, 12, 10, 14],
        ("linear", "cpu op"): [2, 20, 12, 10, 10, 10],
        ("mm", "cpu op"): [2, 8, 6, 4, 4, 4],
        ("cudaLaunchKernel", "runtime"): [2, 2, 2, 1, 1, 1],
    }


def test_totals_of_several_ranks_are_one_table() -> None:
    """Counts and times are summed over ranks; the longest kernel is the second one on rank 1."""
    trace = job()
    both = totals_of(trace, areas(0, 1))
    table = area_totals(lambda rank: timeline_index(trace.ranks[rank]), areas(0, 1))
    [longest] = table.filter(table["name"] == "gemm").select("rank", "event_index").rows()

    assert both["gemm", "kernel"] == [4, 72, 72, 18, 10, 28]
    assert both["step", "user annotation"] == [2, 200, 200 - 20 - 40, 100, 100, 100]
    events = trace.ranks[1].table("events", ["event_index", "duration_ns"])
    assert longest[0] == 1
    assert events.filter(events["event_index"] == longest[1])["duration_ns"].to_list() == [28_000]


def test_only_the_part_inside_counts() -> None:
    """An area from 15 to 55 µs contains 40 µs of the step, 5 µs of each `linear`, and all 10 µs of the first kernel."""
    inside = totals_of(job(), areas(0, start_us=15, end_us=55))

    assert inside["step", "user annotation"] == [1, 40, 30, 40, 40, 40]
    assert inside["linear", "cpu op"] == [2, 10, 6, 5, 5, 5]
    assert inside["mm", "cpu op"] == [2, 4, 3, 2, 1, 3]
    assert inside["gemm", "kernel"] == [1, 10, 10, 10, 10, 10]


def test_only_the_chosen_rows_count() -> None:
    """If only the row of the stream is selected, only kernels are counted."""
    assert list(totals_of(job(), areas(0, rows=(1, 99)))) == [("gemm", "kernel")]


def test_rows_are_sorted_by_a_column_and_sums_cover_all_names() -> None:
    """Rows are sorted by the chosen column, largest first; sums include names that are not listed."""
    trace = job()
    table = area_totals(lambda rank: timeline_index(trace.ranks[rank]), areas(0))

    assert totals_answer(table, "mean_ns")["rows"][0][0] == "step"
    assert totals_answer(table, "count")["rows"][0][0] != "step"
    answer = totals_answer(table, "self_ns")
    assert (answer["count"], answer["event_count"]) == (5, 9)
    assert (answer["total_ns"], answer["self_ns"]) == (154_000, 124_000)


def test_a_mean_is_rounded_to_whole_nanoseconds() -> None:
    """The mean of kernels of 1 and 2 ns is 2 ns, because halves are rounded up to whole nanoseconds."""
    builder = TraceBuilder().kernel("k", start_us=0, duration_us=0.001).kernel("k", start_us=1, duration_us=0.002)
    trace = builder.build()
    table = area_totals(lambda rank: timeline_index(trace.ranks[rank]), [Area(0, -ALL, ALL, None)])

    assert table.select("total_ns", "mean_ns").rows() == [(3, 2)]


def test_a_flame_graph_merges_events_by_path() -> None:
    """Operators with the same path form one block, over all ranks; a flame graph contains no kernels."""
    assert paths_of(job(), areas(0, 1)) == {
        "step": [200, 140, 2],
        "step/linear": [60, 36, 4],
        "step/linear/mm": [24, 20, 4],
        "step/linear/mm/cudaLaunchKernel": [4, 4, 4],
    }


def test_a_flame_graph_of_streams_is_empty() -> None:
    """A flame graph shows only events of the host, so it is empty if only rows of streams are selected."""
    assert flames_answer(area_flames(lambda _: timeline_index(job().ranks[0]), areas(0, rows=(1,)))) == {
        "total_ns": 0,
        "paths": [],
        "names": [],
        "left_out": 0,
    }


def test_narrow_paths_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there are too many paths to draw, the answer lists only the widest paths and counts the others."""
    monkeypatch.setattr(flames, "MOST_FLAMES", 1)
    builder = (
        TraceBuilder().operator("long", start_us=0, duration_us=10_000).operator("short", start_us=5, duration_us=1)
    )
    trace = builder.build()
    answer = flames_answer(area_flames(lambda rank: timeline_index(trace.ranks[rank]), [Area(0, 0, ALL, None)]))

    assert ([name for name, _ in answer["names"]], answer["left_out"]) == (["long"], 1)


def test_an_empty_area_has_no_totals() -> None:
    """If nothing ran in an area, the table is empty."""
    answer = totals_answer(
        area_totals(lambda _: timeline_index(job().ranks[0]), areas(0, start_us=500, end_us=600)), "count"
    )

    assert answer == {"rows": [], "count": 0, "event_count": 0, "total_ns": 0, "self_ns": 0}


@given(LANES, st.integers(-50, 900), st.integers(1, 1_500))
def test_events_of_an_area_equal_those_of_a_loop(lanes: list[list[Event]], start: int, length: int) -> None:
    """Only an event's time inside the area is counted; its self time excludes its children."""
    index = index_of(lanes)
    events = area_events(index, [0], start, start + length)
    inside = list(_inside(lanes, start, start + length))
    children: Counter[int] = Counter()
    for parent, total in zip(events.parent.tolist(), events.total_ns.tolist(), strict=True):
        children[parent] += total

    assert events.total_ns.tolist() == inside
    assert events.self_ns.tolist() == [total - children[at] for at, total in enumerate(inside)]
    assert all(parent == NO_PARENT or parent < len(inside) for parent in events.parent.tolist())


def _inside(lanes: list[list[Event]], start: int, end: int) -> Iterator[int]:
    for first, last in (event for lane in lanes for event in lane):
        if first < end and (last > start or first == last == start):
            yield min(last, end) - max(first, start)


def test_areas_are_read_from_the_address() -> None:
    """Ranks are separated by semicolons, an empty list of rows means all rows, and times may precede the origin."""
    assert areas_of("0:-5:20:0-2,7;12:0:9:") == (Area(0, -5, 20, (0, 1, 2, 7)), Area(12, 0, 9, None))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "`areas` must be RANK:START:END:ROWS"),
        ("0:1:2", "`areas` must be RANK:START:END:ROWS"),
        ("0:1:2:3:4", "`areas` must be RANK:START:END:ROWS"),
        ("0:1:2:<b>", "`areas` must be RANK:START:END:ROWS"),
        ("x:1:2:", "`areas` must be RANK:START:END:ROWS"),
        ("0:2:2:", "an area must end after its start"),
        (f"0:0:{10**30}:", "an area must end after its start"),
        (";".join(["0:1:2:"] * 129), "at most 128 ranks"),
    ],
)
def test_other_areas_are_refused(text: str, reason: str) -> None:
    """If an area in the address is invalid, the error states the reason."""
    with pytest.raises(InvalidOptionError, match=reason):
        areas_of(text)
