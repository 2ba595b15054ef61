"""Tests that steps, step times, GPU metrics and kernels with `compat="torch_tb_profiler"` equal the plugin's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holotrace.algorithms.intervals import covered_length
from holotrace.analyses.gpu_summary.compute import gpu_summary
from holotrace.analyses.kernels.compute import kernels
from holotrace.analyses.step_time.compute import CATEGORIES, step_time
from holotrace.enrich.compat import attribution_of
from holotrace.enrich.steps.step_roles import ROLES
from holotrace.errors import MissingDataError
from tb_goldens import EACH_CASE, Case, case

COMPAT = "torch_tb_profiler"
THEIR_CATEGORIES = ("Kernel", "Memcpy", "Memset", "Communication", "Runtime", "DataLoader", "CpuOp", "Other")
NO_LENGTH = -(2**64) + 1
"""The step length (µs) that the plugin reports for a file that has neither steps nor operators."""

WITHOUT_OPERATORS = ("tb_edge/string_tids",)
"""Files in which the plugin assigns no operator to the kernels, because it ignores threads whose id is a string."""


@pytest.fixture(params=EACH_CASE, scope="module")
def opened(request: pytest.FixtureRequest, goldens: Path, real_traces: Path) -> Case:
    """Return a trace and the plugin's results for it."""
    return case(request.param, goldens, real_traces)


def test_roles_cover_as_much_time_as_in_the_plugin(opened: Case) -> None:
    """Over all threads and streams, the total of each category equals the plugin's total, except for rounding."""
    (rank_trace,) = opened.trace.ranks.values()
    theirs = opened.view("internals")["merged_role_ranges"]

    mine = {role: covered_length(*ranges) / 1_000 for role, ranges in attribution_of(COMPAT).roles(rank_trace).items()}

    expected = {mine: theirs[their]["sum"] for mine, their in zip(ROLES, THEIR_CATEGORIES, strict=False)}
    assert mine == pytest.approx(expected, rel=1e-6, abs=0.01)


def test_steps_and_their_times(opened: Case) -> None:
    """The name, length and categories of each step, and the mean of each category, equal the plugin's."""
    internals = opened.view("internals")
    if internals["steps_costs"][0]["Total"] == NO_LENGTH:
        with pytest.raises(MissingDataError, match="neither steps nor operators"):
            step_time(opened.trace, compat=COMPAT)
        return

    result = step_time(opened.trace, compat=COMPAT)

    assert result.per_step["step"].cast(pl.String).to_list() == internals["steps_names"]
    for row, theirs in zip(result.per_step.iter_rows(named=True), internals["steps_costs"], strict=True):
        mine = [row[f"{category}_part_ns"] / 1_000 for category in CATEGORIES]
        assert mine == pytest.approx([theirs[category] for category in THEIR_CATEGORIES], rel=1e-6, abs=0.02)
        assert row["duration_ns"] / 1_000 == pytest.approx(theirs["Total"], rel=1e-6)
    means = dict(result.mean.select("category", pl.col("mean_ns") / 1_000).rows())
    theirs = internals["avg_costs"]
    expected = dict(zip(CATEGORIES, (theirs[category] for category in THEIR_CATEGORIES), strict=True))
    assert means == pytest.approx(expected, rel=1e-6, abs=0.02)


def test_every_step_adds_up_by_default(opened: Case) -> None:
    """Without `compat`, the categories add up exactly to each step, in every trace with events."""
    try:
        result = step_time(opened.trace)
    except MissingDataError:
        assert opened.trace.ranks[min(opened.trace.ranks)].table("events").is_empty()
        return

    parts = pl.sum_horizontal(f"{category}_part_ns" for category in CATEGORIES)
    assert result.per_step.select((parts == pl.col("duration_ns")).all()).item()
    assert result.per_step.select(pl.col("^.*_ns$").min()).min_horizontal().item() >= 0


def test_the_metrics_of_each_gpu(opened: Case) -> None:
    """Utilization, SM efficiency, occupancy and tensor core fraction equal the plugin's, or are unknown in both."""
    theirs = opened.view("internals").get("gpus", {})
    if not theirs:
        return
    has_steps = opened.view("internals")["steps_costs"][0]["Total"] != NO_LENGTH

    per_device = gpu_summary(opened.trace, compat=COMPAT).per_device

    assert sorted(map(str, per_device["device"])) == sorted(theirs)
    for row in per_device.iter_rows(named=True):
        expected = theirs[str(row["device"])]
        mine = {
            "sm_efficiency": row["sm_efficiency_fraction"],
            "occupancy": None if row["occupancy_fraction"] is None else 100 * row["occupancy_fraction"],
            "tc_ratio": row["tensor_core_fraction"],
            "utilization": row["utilization_fraction"] if has_steps else expected["utilization"],
        }
        assert _known(mine) == pytest.approx(_known(expected), rel=1e-4, abs=1e-9)


def test_utilization_over_time(opened: Case) -> None:
    """The series equals the plugin's, without the values that the plugin adds at both ends."""
    counters = opened.view("trace_counters")
    if not counters:
        return

    series = gpu_summary(opened.trace, compat=COMPAT).series

    for device in series["device"].unique():
        name = f"GPU {device} Utilization"
        theirs = [counter["args"]["GPU Utilization"] for counter in counters if counter["name"] == name][2:-1]
        mine = series.filter(device=device)["utilization_fraction"].to_list()
        assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-5)


def test_sm_efficiency_over_time_has_the_plugins_integral(opened: Case) -> None:
    """The plugin lists SM efficiency with a start and an end; its integral over time equals ours."""
    counters = [counter for counter in opened.view("trace_counters") or [] if "SM Efficiency" in counter["name"]]
    if not counters:
        return
    series = gpu_summary(opened.trace, compat=COMPAT).series
    mine = series.select(pl.col("sm_efficiency_fraction") * (pl.col("end_ns") - pl.col("start_ns")))

    starts, ends = counters[2::2], counters[3::2]
    theirs = sum(
        start["args"]["Est. SM Efficiency"] * (end["ts"] - start["ts"]) for start, end in zip(starts, ends, strict=True)
    )

    assert mine.sum().item() / 1_000 == pytest.approx(theirs, rel=1e-3)


def test_kernels_by_name(opened: Case) -> None:
    """The calls, times, blocks per SM and occupancy of every kernel equal the plugin's."""
    theirs = opened.view("internals").get("kernel_stat") or []
    if not theirs:
        return
    rows = kernels(opened.trace, compat=COMPAT).per_kernel.iter_rows(named=True)

    mine = {row["name"]: row for row in rows}

    assert sorted(mine) == sorted(row["name"] for row in theirs)
    for expected in theirs:
        assert _by_name(mine[expected["name"]]) == pytest.approx(_their_by_name(expected), rel=1e-5, abs=1e-3)


def test_kernels_by_operator_and_launch(opened: Case, request: pytest.FixtureRequest) -> None:
    """The kernel table by operator and launch shape equals the plugin's, which rounds sums to µs."""
    if not opened.view("internals").get("kernel_stat"):
        return
    per_launch_shape = kernels(opened.trace, compat=COMPAT).per_launch_shape
    if request.node.callspec.params["opened"] in WITHOUT_OPERATORS:
        assert opened.rows("kernel_op_table") == []
        return

    mine = {_key(row): row for row in map(_launch, per_launch_shape.iter_rows(named=True))}
    theirs = {_key(row): row for row in map(_their_launch, opened.rows("kernel_op_table"))}

    assert sorted(mine) == sorted(theirs)
    for key, expected in theirs.items():
        assert mine[key][8] == expected[8]
        assert mine[key][9:] == pytest.approx(expected[9:], abs=0.51)


def _known(metrics: dict[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if value is not None}


def _by_name(row: dict[str, Any]) -> list[float]:
    times = [row[column] / 1_000 for column in ("total_ns", "mean_ns", "max_ns", "min_ns")]
    means = [row["mean_blocks_per_sm"], 100 * row["mean_occupancy_fraction"]]
    return [row["uses_tensor_cores"], row["call_count"], *times, *means]


def _their_by_name(row: dict[str, Any]) -> list[float]:
    return [row[key] for key in ("tc_used", "count", "sum", "mean", "max", "min", "blocks_per_sm", "occupancy")]


def _launch(row: dict[str, Any]) -> list[Any]:
    shape = [row["grid"] or "None", row["block"] or "None", row["registers_per_thread"] or 0]
    flags = ["Yes" if row[column] else "No" for column in ("uses_tensor_cores", "is_operator_eligible")]
    times = [row[column] / 1_000 for column in ("total_ns", "max_ns", "min_ns")]
    resources = [*shape, row["shared_memory_bytes"] or 0]
    return [row["name"], row["operator"], *resources, *flags, row["call_count"], *times]


def _their_launch(row: list[Any]) -> list[Any]:
    name, operator, grid, block, registers, shared, used, eligible, calls, total, _, longest, shortest, *_ = row
    resources = [str(grid), str(block), int(registers), int(shared)]
    return [name, operator, *resources, used, eligible, calls, total, longest, shortest]


def _key(row: list[Any]) -> tuple[Any, ...]:
    return tuple(row[:8])
