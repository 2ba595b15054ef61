"""Tests of call stacks: the host range that contains each host range."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from holotrace.enrich.host.call_stack import call_stacks, python_stacks
from holotrace.testing.builder import TraceBuilder
from oracles import nested

CALLS = st.lists(st.tuples(st.integers(1, 2), st.integers(0, 12), st.integers(0, 6)), min_size=1, max_size=10)


def stacks_of(builder):
    """Return the tested columns of the call stacks of rank 0."""
    return call_stacks(builder.build().ranks[0]).select("event_index", "parent_row", "depth", "is_overlapping")


def test_calls_are_inside_operators_inside_annotations():
    """A step contains aten::linear, which contains aten::mm, which contains a launch call."""
    builder = (
        TraceBuilder()
        .step(1, 0, 100)
        .operator("aten::linear", start_us=10, duration_us=40)
        .operator("aten::mm", start_us=20, duration_us=20)
        .kernel("gemm", start_us=60, duration_us=5, launch_us=25)
    )

    assert stacks_of(builder).rows() == [(0, -1, 0, False), (1, 0, 1, False), (2, 1, 2, False), (3, 2, 3, False)]


def test_threads_do_not_mix():
    """Overlapping ranges on different threads do not contain each other."""
    builder = (
        TraceBuilder()
        .operator("aten::mm", start_us=0, duration_us=40, thread=1)
        .operator("aten::add", start_us=10, duration_us=5, thread=2)
    )

    assert stacks_of(builder)["parent_row"].to_list() == [-1, -1]


def test_an_operator_that_outlives_the_one_it_began_in_is_flagged():
    """B begins in A and ends after it, so B is flagged and becomes A's sibling; C is inside B."""
    builder = (
        TraceBuilder()
        .operator("A", start_us=0, duration_us=10)
        .operator("B", start_us=5, duration_us=10)
        .operator("C", start_us=12, duration_us=2)
    )

    assert stacks_of(builder).rows() == [(0, -1, 0, False), (1, -1, 0, True), (2, 1, 1, False)]


def test_python_functions_have_stacks_of_their_own():
    """Python functions around an operator do not change the operator's depth."""
    place = {"ph": "X", "pid": 1000, "tid": 1, "cat": "python_function"}
    builder = (
        TraceBuilder()
        .event(name="train.py(1): main", ts=0, dur=100, **place)
        .event(name="train.py(9): step", ts=1, dur=90, **place)
        .operator("aten::mm", start_us=2, duration_us=5)
    )

    assert stacks_of(builder).rows() == [(2, -1, 0, False)]
    frames = python_stacks(builder.build().ranks[0])
    assert frames.select("event_index", "parent_row", "depth").rows() == [(0, -1, 0), (1, 0, 1)]


@given(CALLS)
def test_stacks_equal_those_of_an_oracle(calls):
    """For random operators on two threads, parents and depths equal those of an oracle that compares all pairs."""
    builder = TraceBuilder()
    for thread, start, length in calls:
        builder.operator("op", start_us=start, duration_us=length, thread=thread)

    assert stacks_of(builder).drop("event_index").rows() == nested(calls)


def test_a_trace_without_calls_has_empty_stacks():
    """For a trace with only a kernel, the table has all columns and no rows."""
    stacks = call_stacks(TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build().ranks[0])

    assert stacks.height == 0
    assert stacks.schema["parent_row"] == pl.Int64
