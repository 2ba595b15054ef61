"""Tests of the step of each event."""

from __future__ import annotations

from holotrace.enrich.steps.step_of_event import step_of_event
from holotrace.testing.builder import TraceBuilder


def numbers(builder: TraceBuilder) -> dict[str, int | None]:
    """Return {event name: number of its step}."""
    (rank_trace,) = builder.build().ranks.values()
    names = rank_trace.texts(rank_trace.table("events", ["name"])["name"]).to_list()
    return dict(zip(names, step_of_event(rank_trace).to_list(), strict=True))


def test_a_host_event_belongs_to_the_step_it_begins_in() -> None:
    """Events that begin before, between or after the steps, or exactly at the end of one, have no step."""
    builder = TraceBuilder().step(4, 10, 10).step(5, 30, 10)
    for name, start in (("before", 9), ("first", 10), ("between", 20), ("last", 39), ("after", 40)):
        builder.operator(name, start_us=start, duration_us=1)

    step_of = numbers(builder)

    assert {name: step_of[name] for name in ("before", "first", "between", "last", "after")} == {
        "before": None,
        "first": 4,
        "between": None,
        "last": 5,
        "after": None,
    }


def test_device_work_belongs_to_the_step_that_launched_it() -> None:
    """A kernel belongs to the step in which it was launched or, if its launch is unknown, in which it starts."""
    builder = (
        TraceBuilder()
        .step(4, 0, 10)
        .step(5, 10, 10)
        .kernel("launched", start_us=12, duration_us=1, launch_us=3, stream=0)
        .kernel("unknown", start_us=15, duration_us=1, stream=0)
    )

    step_of = numbers(builder)

    assert (step_of["launched"], step_of["unknown"]) == (4, 5)


def test_work_launched_before_the_recording_belongs_to_no_step() -> None:
    """A kernel belongs to no step if it starts before the first kernel of its stream whose launch was recorded.

    Such a kernel was launched before the recording began, so it belongs to no step even if it runs during one.
    """
    builder = TraceBuilder().step(4, 0, 50).kernel("left", start_us=5, duration_us=20, stream=20)
    builder.kernel("launched", start_us=30, duration_us=1, launch_us=3, stream=20)

    step_of = numbers(builder)

    assert (step_of["left"], step_of["launched"]) == (None, 4)


def test_without_steps_nothing_belongs_to_one() -> None:
    """Without steps, the step of every event is null."""
    assert numbers(TraceBuilder().operator("aten::mm", start_us=0, duration_us=1)) == {"aten::mm": None}
