"""The map of a recording shows when it is busy."""

from __future__ import annotations

from holotrace.testing.builder import TraceBuilder
from holotrace.web.timeline.index import timeline_index
from holotrace.web.timeline.navigation.busy import PARTS, busy_answer


def answered(builder: TraceBuilder) -> tuple[str, list[int]]:
    """Return which rows are counted (`device` or `host`), and the busy percentage of each part of the recording."""
    answer = busy_answer(timeline_index(builder.build().ranks[0]))
    assert len(answer["percent"]) == PARTS
    return answer["of"], answer["percent"]


def test_streams_that_work_at_once_count_once() -> None:
    """If two kernels overlap for the whole first half, this half is 100 % busy, not 200 %; operators are ignored."""
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=1_024)
    for stream in (7, 8):
        builder.kernel("gemm", stream=stream, start_us=0, duration_us=512)
    for part in range(PARTS // 2, PARTS):
        builder.kernel("relu", stream=7, start_us=2 * part, duration_us=0.5)

    assert answered(builder) == ("device", [100] * (PARTS // 2) + [25] * (PARTS // 2))


def test_without_a_device_operators_count() -> None:
    """Nested operators make the first quarter 100 % busy; Python functions are ignored, so the rest is 0 % busy."""
    builder = TraceBuilder().python("main", start_us=0, duration_us=1_024)
    builder.operator("aten::linear", start_us=0, duration_us=256).operator("aten::mm", start_us=10, duration_us=100)

    assert answered(builder) == ("host", [100] * (PARTS // 4) + [0] * (PARTS * 3 // 4))


def test_a_recording_of_one_instant_is_idle() -> None:
    """If all events have zero duration, the recording is idle."""
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=0)

    assert answered(builder) == ("host", [0] * PARTS)
