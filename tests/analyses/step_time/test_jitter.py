"""Tests of `step_time(...).jitter`: which steps take longer than the typical step, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.analyses.step_time.compute import step_time
from holotrace.testing.builder import TraceBuilder


def job(gemm_us=(50, 50, 50, 50, 50), sleep_us=(0, 0, 0, 0, 0), name="<built-in function sleep>"):
    """Return the result for one rank; each step takes 50 µs plus the given times of its gemm and its sleep."""
    builder, now = TraceBuilder(), 0
    for number, (gemm, sleep) in enumerate(zip(gemm_us, sleep_us, strict=True)):
        length = 50 + gemm + sleep
        builder.step(number, now, length)
        builder.kernel("gemm", start_us=now + 10, duration_us=gemm, launch_us=now + 5)
        builder.kernel("relu", start_us=now + 10 + gemm, duration_us=10, launch_us=now + 7)
        if sleep:
            place = {"pid": 1000, "tid": 1, "ts": now + 20 + gemm, "dur": sleep}
            builder.event(ph="X", cat="python_function", name="train.py(3): epoch", **{**place, "dur": sleep + 5})
            builder.event(ph="X", cat="python_function", name=name.format(number), **place)
        now += length
    return step_time(builder.build())


def test_long_steps_are_warm_up_at_the_beginning_and_outliers_later():
    """Two long steps at the beginning are warm-up; a later long step is an outlier, and its row names the kernel."""
    jitter = job((900, 500, 50, 50, 400, 50, 50, 50, 50), [0] * 9).jitter
    assert jitter["step_kind"].to_list() == ["warm-up", "warm-up", *["steady"] * 2, "outlier", *["steady"] * 4]
    assert jitter.row(4, named=True) == {
        "rank": 0,
        "step": 4,
        "step_kind": "outlier",
        "duration_ns": 450_000,
        "typical_ns": 100_000,
        "excess_ns": 350_000,
        "category": "kernel",
        "category_excess_ns": 350_000,
        "event": "gemm",
        "event_excess_ns": 350_000,
    }


def test_time_outside_all_categories_is_named_after_the_innermost_python_function():
    """A step that sleeps has more `other` time; the row names the sleep function, not its caller."""
    jitter = job(sleep_us=(0, 0, 300, 0, 0)).jitter
    apart = jitter.filter(step_kind="outlier").select(
        "step", "category", "category_excess_ns", "event", "event_excess_ns"
    )
    assert apart.rows() == [(2, "other", 300_000, "<built-in function sleep>", 300_000)]


def test_a_function_is_compared_over_steps_whatever_its_object():
    """Each step waits for a different queue object, but addresses are ignored, so all waits count as one function."""
    jitter = job(sleep_us=(20, 20, 320, 20, 20), name="<built-in method get of Queue object at 0x7f0{}>").jitter
    apart = jitter.filter(step_kind="outlier").select("step", "event", "event_excess_ns")
    assert apart.rows() == [(2, "<built-in method get>", 300_000)]


def test_without_python_functions_the_event_is_unknown():
    """Without recorded Python functions, only the category that took longer is known, so the column `event` is null."""
    builder = TraceBuilder()
    for number, start_us in enumerate((0, 100, 200, 300, 400)):
        builder.step(number, start_us, 100 if number < 4 else 900)
        builder.kernel("gemm", start_us=start_us + 10, duration_us=50, launch_us=start_us + 5)
    (row,) = step_time(builder.build()).jitter.filter(step_kind="outlier").to_dicts()
    assert (row["category"], row["category_excess_ns"], row["event"]) == ("other", 800_000, None)


@pytest.mark.parametrize("gemm_us", [(50, 50, 400), (50, 51, 52, 53, 54), (50,)])
def test_few_steps_and_small_differences_are_steady(gemm_us):
    """There are no outliers if steps differ little or if there are fewer than four steps."""
    jitter = job(gemm_us, [0] * len(gemm_us)).jitter
    assert set(jitter["step_kind"]) == {"steady"}
    assert jitter["event"].null_count() == len(jitter)


@given(st.lists(st.integers(20, 2_000), min_size=1, max_size=9))
def test_excess_is_the_distance_to_the_median_of_the_steady_steps(gemm_us):
    """However long the steps are, the excess is the duration minus the typical time, and warm-up steps come first.

    At least half of the steady steps take no longer than the typical time.
    """
    jitter = job(gemm_us, [0] * len(gemm_us)).jitter
    steady = jitter.filter(step_kind="steady")
    assert 2 * (steady["excess_ns"] <= 0).sum() >= len(steady) > 0
    assert (jitter["duration_ns"] - jitter["typical_ns"] == jitter["excess_ns"]).all()
    kinds = jitter["step_kind"].to_list()
    assert kinds == sorted(kinds, key=lambda kind: kind != "warm-up")
