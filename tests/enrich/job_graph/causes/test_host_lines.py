"""A thread counts as waiting for communication only while its innermost function is one that waits."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.job_graph.causes.cause_names import host_ranges
from holotrace.enrich.job_graph.causes.host_lines import NO_CALL, thread_runs
from holotrace.testing.builder import TraceBuilder


def runs_of(*functions):
    """Return the runs of a thread that executes these Python functions, as (name, start_us, end_us, call)."""
    builder = TraceBuilder()
    for name, start_us, end_us in functions:
        builder.event(ph="X", cat="python_function", name=name, ts=start_us, dur=end_us - start_us, pid=1, tid=1)
    rank_trace = builder.operator("aten::add", start_us=900, duration_us=1).build().ranks[0]
    known = host_ranges(rank_trace)
    calls = pl.DataFrame({"start_ns": [15_000, 90_000], "end_ns": [58_000, 138_000]})
    track = known.ranges.filter(pl.col("start_ns") < 900_000)["track_id"][0]
    found = thread_runs(known, track, calls)
    names = known.causes["name"].to_list()
    columns = (found.cause, found.start_ns // 1_000, found.end_ns // 1_000, found.call)
    return [(names[cause], *rest) for cause, *rest in zip(*(column.tolist() for column in columns), strict=True)]


def test_a_function_that_sleeps_does_not_wait_for_communication():
    """The thread sleeps from 10 to 60 µs; a call runs from 15 to 58 µs, but the thread does not wait for it."""
    sleep = "<built-in function sleep>"
    assert runs_of((sleep, 10, 60)) == [(sleep, 10, 60, NO_CALL)]


def test_a_function_that_waits_is_inside_the_call():
    """The thread waits for the call from 100 µs until the call ends at 138 µs, but no longer from 138 to 140 µs."""
    wait = "<built-in method wait>"
    assert runs_of((wait, 100, 140)) == [(wait, 100, 138, 1), (wait, 138, 140, NO_CALL)]


def test_python_code_is_the_cause_only_outside_of_functions_written_in_c():
    """The thread runs `train` until 20 µs, sleeps until 60 µs and runs `train` again until 80 µs."""
    train, sleep = "train.py(3): train", "<built-in function sleep>"
    assert runs_of((train, 10, 80), (sleep, 20, 60)) == [
        (train, 10, 20, NO_CALL),
        (sleep, 20, 60, NO_CALL),
        (train, 60, 80, NO_CALL),
    ]


def test_a_thread_waits_for_one_call_after_another():
    """During one `wait`, the thread waits for call 0 until it ends at 58 µs, and for call 1 from 90 to 138 µs."""
    wait = "<built-in method wait>"
    assert runs_of((wait, 20, 140)) == [
        (wait, 20, 58, 0),
        (wait, 58, 90, NO_CALL),
        (wait, 90, 138, 1),
        (wait, 138, 140, NO_CALL),
    ]
