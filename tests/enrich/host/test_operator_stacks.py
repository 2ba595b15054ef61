"""Tests of the Python call stack of each operator."""

from __future__ import annotations

from holotrace.enrich.host.operator_stacks import operator_stacks, recorded_stacks
from holotrace.testing.builder import TraceBuilder


def frame(builder: TraceBuilder, name: str, start: int, duration: int) -> TraceBuilder:
    """Add a Python function on thread 1."""
    return builder.event(ph="X", cat="python_function", name=name, pid=1000, tid=1, ts=start, dur=duration)


def stacks_of(builder: TraceBuilder) -> dict[int, str]:
    """Return the call stack of each operator of rank 0 that has one."""
    stacks = operator_stacks(builder.build().ranks[0])
    return {event: stacks.texts[stack] for event, stack in stacks.stack_of.iter_rows()}


def test_recorded_stacks_are_used_unchanged():
    """Recorded stacks stay unchanged; operators whose stack is missing or empty are omitted."""
    builder = TraceBuilder()
    for place, stack in enumerate(["f.py(1): g;h.py(2): main", "f.py(1): g;h.py(2): main", None, ""]):
        builder.operator("aten::a", start_us=10 * place, duration_us=5, args={"Call stack": stack})

    assert stacks_of(builder) == {0: "f.py(1): g;h.py(2): main", 1: "f.py(1): g;h.py(2): main"}


def test_stacks_are_rebuilt_from_the_functions_around_the_operator():
    """One operator runs in g, one in main and one in h; main calls g and h. Thread 2 has no Python functions."""
    builder = frame(frame(frame(TraceBuilder(), "main", 0, 100), "g", 10, 20), "h", 40, 20)
    builder.operator("aten::in_g", start_us=12, duration_us=5).operator("aten::in_main", start_us=32, duration_us=5)
    builder.operator("aten::in_h", start_us=40, duration_us=20).operator(
        "aten::on_2", start_us=12, duration_us=5, thread=2
    )

    assert stacks_of(builder) == {3: "g;main", 4: "main", 5: "h;main"}


def test_depth_orders_functions_with_equal_starts():
    """The functions main and g begin together with the operator; g is shorter, so it is the inner one."""
    builder = frame(frame(TraceBuilder(), "g", 0, 20), "main", 0, 100)
    builder.operator("aten::a", start_us=0, duration_us=5)

    assert stacks_of(builder) == {2: "g;main"}


def test_an_operator_that_outlives_a_function_was_not_called_from_it():
    """The function g ends at 12 µs and the operator at 20 µs, so only main called the operator."""
    builder = frame(frame(TraceBuilder(), "main", 0, 100), "g", 10, 2)
    builder.operator("aten::a", start_us=11, duration_us=9)

    assert stacks_of(builder) == {2: "main"}


def test_equal_stacks_are_stored_once():
    """Three calls of g, two of them from main and one from h, have two distinct stacks."""
    builder = frame(frame(frame(TraceBuilder(), "main", 0, 50), "g", 5, 5), "g", 15, 5)
    frame(frame(builder, "h", 60, 20), "g", 65, 5)
    for start in (6, 16, 66):
        builder.operator("aten::a", start_us=start, duration_us=1)

    stacks = operator_stacks(builder.build().ranks[0])
    assert sorted(stacks.texts.to_list()) == ["g;h", "g;main"]
    assert list(stacks_of(builder).values()) == ["g;main", "g;main", "g;h"]


def test_recorded_stacks_exclude_rebuilt_ones():
    """Like the plugin, `recorded_stacks` omits stacks rebuilt from Python functions."""
    builder = frame(TraceBuilder(), "main", 0, 100).operator("aten::a", start_us=5, duration_us=5)

    assert recorded_stacks(builder.build().ranks[0]).stack_of.is_empty()
