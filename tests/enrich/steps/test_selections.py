"""Tests of selecting the events of some steps or devices."""

from __future__ import annotations

from functools import partial

from holotrace.enrich.steps.selections import in_steps, on_devices
from holotrace.testing.builder import TraceBuilder


def names_where(selection) -> set[str]:
    """Return the names of the selected events."""
    trace = (
        TraceBuilder()
        .step(1, 0, 50)
        .operator("early", start_us=5, duration_us=2)
        .kernel("late", start_us=60, duration_us=20, launch_us=40)
        .step(2, 50, 50)
        .operator("inside", start_us=55, duration_us=2)
        .kernel("elsewhere", device=1, start_us=70, duration_us=5, launch_us=58)
        .operator("outside", start_us=200, duration_us=2)
        .build()
        .where(selection)
    )
    rank_trace = trace.ranks[0]
    names = set(rank_trace.texts(rank_trace.table("events", ["name"])["name"]))
    return names & {"early", "late", "inside", "elsewhere", "outside"}


def test_device_work_belongs_to_the_step_that_launched_it() -> None:
    """A kernel launched in step 1 belongs to step 1 although it runs in step 2; events outside steps have no step."""
    assert names_where(partial(in_steps, steps=[1])) == {"early", "late"}
    assert names_where(partial(in_steps, steps=[1, 2])) == {"early", "late", "inside", "elsewhere"}
    assert names_where(partial(in_steps, steps=[9])) == set()


def test_host_events_are_kept_for_every_device() -> None:
    """Device work is kept only for the requested devices; host events are always kept."""
    assert names_where(partial(on_devices, devices=[1])) == {"early", "inside", "outside", "elsewhere"}
