"""Tests of the rows of the timeline and the lanes of their events."""

from __future__ import annotations

from holotrace.testing.builder import TraceBuilder
from holotrace.web.timeline.index import TimelineIndex, timeline_index
from holotrace.web.timeline.query import located


def lanes_of(index: TimelineIndex, row: int) -> list[list[str]]:
    """Return the names of the events in each lane of a row."""
    names: list[list[str]] = [[] for _ in range(index.rows[row].lane_count)]
    for place, name in enumerate(index.name):
        at, depth, *_ = located(index, place)
        if at == row:
            names[depth].append(index.text(int(name)))
    return names


def test_annotations_are_above_python_frames() -> None:
    """A step and a range inside Python frames are in the upper lanes, above the frames and operators."""
    builder = TraceBuilder().python("train.py(1): main", start_us=0, duration_us=100)
    builder.python("train.py(9): step", start_us=10, duration_us=80).step(1, 20, 60)
    builder.annotation("forward", start_us=30, duration_us=20).operator("aten::mm", start_us=35, duration_us=5)
    index = timeline_index(builder.build().ranks[0])

    assert lanes_of(index, 0) == [
        ["ProfilerStep#1"],
        ["forward"],
        ["train.py(1): main"],
        ["train.py(9): step"],
        ["aten::mm"],
    ]


def test_events_around_an_event_are_sorted_from_the_innermost() -> None:
    """The events around an operator are listed from innermost to outermost, whatever the order of their lanes."""
    builder = TraceBuilder().step(1, 0, 100).python("main", start_us=10, duration_us=80)
    builder.python("forward", start_us=20, duration_us=60).annotation("layer", start_us=30, duration_us=20)
    builder.operator("aten::mm", start_us=35, duration_us=5)
    index = timeline_index(builder.build().ranks[0])
    place = {index.text(int(name)): at for at, name in enumerate(index.name)}

    def around(name: str) -> list[str]:
        return [index.text(int(index.name[at])) for at in index.around(place[name])]

    assert around("aten::mm") == ["layer", "forward", "main", "ProfilerStep#1"]
    assert around("layer") == ["forward", "main", "ProfilerStep#1"]
    assert around("ProfilerStep#1") == []


def test_of_equal_events_the_upper_one_contains_the_other() -> None:
    """If an annotation and an operator have the same times, the annotation contains the operator."""
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=9)
    index = timeline_index(builder.annotation("layer", start_us=0, duration_us=9).build().ranks[0])
    operator, annotation = (index.place_of(event) for event in (0, 1))

    assert operator is not None
    assert annotation is not None
    assert index.around(operator) == [annotation]
    assert index.around(annotation) == []


def test_ranges_of_a_device_are_above_its_kernels() -> None:
    """A range that begins after the first kernel of its stream is still in the lane above the kernels."""
    builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=50)
    builder.gpu_annotation("layer", start_us=10, duration_us=60)
    index = timeline_index(builder.kernel("relu", start_us=52, duration_us=5).build().ranks[0])

    assert lanes_of(index, 0) == [["layer"], ["gemm", "relu"]]
