"""Tests of the device idle time of each line, compared with a slow reference that checks every microsecond."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holotrace.analyses.source_lines.compute import source_lines
from holotrace.testing.builder import TraceBuilder

frames = st.lists(st.tuples(st.sampled_from((1, 2)), st.integers(0, 40), st.integers(1, 15)), max_size=6)
launches = st.lists(
    st.tuples(st.sampled_from((1, 2)), st.integers(0, 30), st.integers(1, 4), st.integers(0, 25), st.integers(1, 6)),
    min_size=1,
    max_size=6,
)


def disjoint(items: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return the functions, but drop each one that overlaps an earlier function on the same thread."""
    kept: list[tuple[int, int, int]] = []
    for thread, start, length in items:
        if all(other != thread or start + length <= begin or begin + size <= start for other, begin, size in kept):
            kept.append((thread, start, length))
    return kept


def is_nested(call: tuple[int, ...], functions: list[tuple[int, int, int]]) -> bool:
    """Return whether no function on the same thread overlaps the launch only partly."""
    thread, begin, duration, *_ = call
    end = begin + duration
    return all(
        other != thread
        or stop <= begin
        or end <= start
        or (start <= begin and end <= stop)
        or (begin <= start and stop <= end)
        for other, start, stop in ((other, start, start + length) for other, start, length in functions)
    )


@pytest.mark.slow
@settings(max_examples=30)
@given(frames, launches)
def test_idle_time_equals_a_slow_count(functions, calls) -> None:
    """`main` runs on thread 1 until 60 µs; other functions and launches are at random times on two threads."""
    functions = disjoint(functions)
    calls = [call for call in calls if is_nested(call, functions)]
    assume(calls)
    builder = TraceBuilder().python("main.py(1): main", start_us=0, duration_us=60)
    for number, (thread, start, length) in enumerate(functions):
        builder.python(f"f.py({number + 2}): f", start_us=start, duration_us=length, thread=thread)
    kernels = []
    for thread, launch, duration, delay, length in calls:
        start = launch + delay
        kernels.append((start, start + length, thread, launch + duration))
        builder.kernel(
            "k", start_us=start, duration_us=length, launch_us=launch, launch_duration_us=duration, thread=thread
        )
    result = source_lines(builder.build()).per_line
    measured = {
        row["line"]: row["device_idle_ns"] // 1_000 for row in result.iter_rows(named=True) if row["device_idle_ns"]
    }
    assert measured == dict(slow(functions, calls, kernels))


def slow(functions, calls, kernels) -> Counter[int | None]:
    """Return the idle time (µs) of each line."""

    def line_at(thread: int, moment: int) -> tuple[bool, int | None]:
        """Return whether the thread is active at this time, and which line it runs."""
        for number, (of_thread, start, length) in enumerate(functions):
            if of_thread == thread and start <= moment < start + length:
                return True, number + 2
        if thread == 1:
            return moment < 60, 1 if moment < 60 else None
        return any(t == 2 and a <= moment < a + n for t, a, n, _, _ in calls), None

    totals: Counter[int | None] = Counter()
    lengths = {1: 60, 2: sum(length for thread, _, length in functions if thread == 2)}
    main = max(lengths, key=lambda thread: (lengths[thread], -thread))
    first, last = min(start for start, *_ in kernels), max(end for _, end, *_ in kernels)
    for moment in range(first, last):
        if any(start <= moment < end for start, end, *_ in kernels):
            continue
        _, _, thread, launched = next(
            kernel for kernel in sorted(kernels, key=lambda one: one[0]) if kernel[0] > moment
        )
        if moment < launched:
            is_active, line = line_at(thread, moment)
            totals[line if is_active else line_at(main, moment)[1]] += 1
    return totals
