"""Tests of the window of a critical path."""

from __future__ import annotations

import re

import pytest

from holotrace.enrich.critical_path.path_window import PathWindow, path_window
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.testing.builder import TraceBuilder


def window_of(builder: TraceBuilder, **options) -> PathWindow:
    """Build the trace and return the window of its only rank."""
    (rank_trace,) = builder.build().ranks.values()
    return path_window(rank_trace, **options)


def steps() -> TraceBuilder:
    """Return a kernel that ends at 400 µs, and steps 7 to 9 at 0, 100 and 200 µs, each with a forward pass."""
    builder = TraceBuilder().kernel("gemm", start_us=350, duration_us=50)
    for number in (7, 8, 9):
        start = 100 * (number - 7)
        builder.step(number, start, 90).annotation("forward", start_us=start + 10, duration_us=20)
    return builder


@pytest.mark.parametrize(
    ("options", "name", "start_us", "end_us"),
    [
        ({}, "ProfilerStep#8", 100, 190),
        ({"instance": 7}, "ProfilerStep#7", 0, 90),
        ({"instance": (7, 8)}, "ProfilerStep#7 to #8", 0, 190),
        ({"annotation": "forward"}, "forward, instance 0", 10, 30),
        ({"annotation": "forward", "instance": 2}, "forward, instance 2", 210, 230),
        ({"annotation": "forward", "instance": (0, 1)}, "forward, instances 0 to 1", 10, 130),
        ({"annotation": "ProfilerStep", "instance": 1}, "ProfilerStep, instance 1", 100, 190),
        ({"annotation": ""}, "whole recording", 0, 400),
        ({"time_range_ns": (5_000, 45_000)}, "time range", 5, 45),
    ],
)
def test_a_window_is_a_step_an_annotation_a_range_or_everything(
    options: dict[str, object], name: str, start_us: int, end_us: int
) -> None:
    """The default window is the last step that is followed by another step."""
    window = window_of(steps(), **options)

    assert (window.name, window.start_ns, window.end_ns) == (name, start_us * 1_000, end_us * 1_000)


def test_the_only_step_is_the_window() -> None:
    """The only step of a trace is the default window, although no step follows it."""
    assert window_of(TraceBuilder().step(3, 10, 5)).name == "ProfilerStep#3"


def test_without_steps_the_window_is_the_whole_recording() -> None:
    """The window extends from the start of the first event to the end of the last one."""
    builder = TraceBuilder().operator("aten::mm", start_us=3, duration_us=2).kernel("gemm", start_us=9, duration_us=4)

    assert window_of(builder) == PathWindow("whole recording", 3_000, 13_000)


def test_an_exact_name_has_priority_over_a_part_of_a_name() -> None:
    """`forward` selects the annotation `forward`, although `forward_hook` begins earlier."""
    builder = (
        TraceBuilder()
        .annotation("forward_hook", start_us=0, duration_us=1)
        .annotation("forward", start_us=5, duration_us=1)
    )

    assert window_of(builder, annotation="forward").start_ns == 5_000
    assert window_of(builder, annotation="ward_h").start_ns == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"annotation": "forwrad"}, "no annotation or operator 'forwrad'; the nearest names: 'forward'"),
        ({"annotation": "qqqq"}, "no annotation or operator 'qqqq'; no name is similar"),
        ({"annotation": "forward", "instance": 3}, "has 3 instances of 'forward', numbered from 0"),
        ({"annotation": "forward", "instance": -1}, "has 3 instances of 'forward'"),
        ({"annotation": "forward", "instance": (2, 1)}, "the first instance must not come after the last"),
        ({"instance": 6}, "has no step 6; its 3 steps are: 7, 8, 9"),
        ({"instance": (7, 10)}, "has no step 10; its 3 steps are: 7, 8, 9"),
        ({"annotation": "", "instance": 0}, "no steps to choose from"),
        ({"time_range_ns": (500_000, 600_000)}, "covers 0 to 400000 ns"),
        ({"time_range_ns": (10, 10)}, "is outside the recording"),
        ({"time_range_ns": (0, 10), "annotation": "forward"}, "cannot be combined with annotation or instance"),
    ],
)
def test_an_unknown_window_is_an_error_that_lists_what_exists(options: dict[str, object], message: str) -> None:
    """The error lists similar names, the number of instances, the steps, or the times of the recording."""
    with pytest.raises(InvalidOptionError, match=re.escape(message)):
        window_of(steps(), **options)


def test_only_some_of_many_steps_are_listed() -> None:
    """For 30 steps, the error lists the first nine and the last one."""
    builder = TraceBuilder()
    for number in range(30):
        builder.step(number, number * 10, 5)

    with pytest.raises(InvalidOptionError, match=re.escape("its 30 steps are: 0, 1, 2, 3, 4, 5, 6, 7, 8, … 29")):
        window_of(builder, instance=99)


def test_a_rank_without_anything_has_no_window() -> None:
    """For a trace without events, the error says what to record."""
    with pytest.raises(MissingDataError, match=re.escape("Record with ProfilerActivity.CPU")):
        window_of(TraceBuilder())
