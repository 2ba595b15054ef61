"""Comparison of our launches, operators and sequences for real traces with HTA's, including deliberate differences.

The docstring of test_hta_goldens.py describes HTA's results (the goldens) and what they leave out.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl
import pytest

from analyses.test_hta_goldens import (
    NANOSECONDS,
    WHOLE_MICROSECONDS,
    WITH_SYNC_ROWS,
    Case,
    _opened,
    golden_cases,
    launched,
)
from holotrace.analyses.kernel_sequences.compute import kernel_sequences
from holotrace.analyses.launch_statistics.compute import launch_statistics
from holotrace.analyses.operator_kernels.compute import operator_kernels
from holotrace.enrich.steps.steps import before_last_step
from holotrace.errors import InvalidOptionError

if TYPE_CHECKING:
    from pathlib import Path

WITH_GRAPHS = ("trace_diff_test", "trace_diff_test__last", "trace_diff_pair")
"""Traces with CUDA graph launches, which HTA omits."""

NOISE_US = 0.5
"""HTA stores µs since 1970 as doubles, which are 0.25 µs apart."""


@pytest.fixture
def case(request: pytest.FixtureRequest, real_traces: Path, goldens: Path) -> Case:
    """Open the trace of a golden without the events that HTA leaves out."""
    golden, _, suffix = request.param.partition("__")
    trace = _opened(real_traces, golden)
    trace = trace if suffix == "last" else trace.where(before_last_step)
    return Case(goldens / "hta" / request.param, trace.where(launched) if golden in WITH_GRAPHS else trace)


def launches(case: Case, rank: int, *, include_graphs: bool = True) -> pl.DataFrame:
    """Return our launches on one rank in µs, with HTA's column names."""
    table = launch_statistics(case.trace.select([rank]), include_launches=True).per_launch
    known = table if include_graphs else table.filter(pl.col("call") != "cudaGraphLaunch")
    return known.select(
        "correlation",
        "kernel_kind",
        (pl.col("call_ns") / 1_000).alias("cpu_duration"),
        (pl.col("kernel_ns") / 1_000).alias("gpu_duration"),
        (pl.col("launch_delay_ns").clip(lower_bound=0) / 1_000).alias("launch_delay"),
    )


@golden_cases(*WHOLE_MICROSECONDS, *WITH_SYNC_ROWS)
def test_launches_are_equal(case: Case) -> None:
    """The durations and delays of all launches equal HTA's, with and without copies; HTA omits graph launches."""
    for rank in case.trace.ranks:
        ours = launches(case, rank, include_graphs=False)
        for call, table in (("", ours), ("nomem.", ours.filter(pl.col("kernel_kind") != "memory"))):
            theirs = case.table(f"get_cuda_kernel_launch_stats.{call}rank{rank}")
            assert Counter(table.drop("kernel_kind").rows()) == Counter(theirs.rows())


@golden_cases("ns_resolution_trace__nsfull")
def test_launches_are_equal_to_the_noise_of_doubles(case: Case) -> None:
    """Durations equal HTA's, and delays differ by less than 0.5 µs, the precision of HTA's times."""
    ours = launches(case, 0).sort("correlation")
    theirs = case.table("get_cuda_kernel_launch_stats.rank0").sort("correlation")

    for column in ("correlation", "cpu_duration", "gpu_duration"):
        assert ours[column].to_list() == pytest.approx(theirs[column].to_list(), abs=1e-6)
    assert (ours["launch_delay"] - theirs["launch_delay"]).abs().max() < NOISE_US


@golden_cases("amd_trace__nsfull", "triton_example__nsfull")
def test_launches_that_hta_does_not_know_are_there(case: Case) -> None:
    """`launch_statistics` lists launches on AMD GPUs and launches through the CUDA driver; HTA lists neither."""
    assert case.table("get_cuda_kernel_launch_stats.rank0").is_empty()
    assert launch_statistics(case.trace).per_rank["kernel_count"].item() > 0


@golden_cases("mtia_inference_trace__nsfull")
def test_launches_of_mtia_kernels_are_equal(case: Case) -> None:
    """On MTIA, HTA lists the same launches of kernels as holotrace, but no launches of copies."""
    ours = launches(case, 0).filter(pl.col("kernel_kind") != "memory").sort("correlation")
    theirs = case.table("get_cuda_kernel_launch_stats.rank0").sort("correlation")

    assert ours["correlation"].to_list() == theirs["correlation"].to_list()
    assert (ours["launch_delay"] - theirs["launch_delay"]).abs().max() < NOISE_US


def sequence_calls_of(case: Case) -> list[tuple[str, str, int]]:
    """Return the file name, operator and rank of each golden of kernel sequences."""
    prefix = "get_frequent_cuda_kernel_sequences."
    calls = sorted({path.name.split(".csv")[0] for path in case.folder.glob(f"{prefix}*")})
    parts = [(call, *call.removeprefix(prefix).rsplit(".rank", 1)) for call in calls]
    return [(call, operator.replace("aten_", "aten::", 1), int(rank)) for call, operator, rank in parts]


def their_sequences(case: Case, call: str) -> list[tuple[object, ...]]:
    """Read HTA's sequences; if there are none, the golden file is empty."""
    try:
        return case.table(call).rows()
    except pl.exceptions.NoDataError:
        return []


def our_sequences(case: Case, operator: str, rank: int) -> list[tuple[object, ...]]:
    """Return our patterns, counts and durations in µs, or an empty list if the operator does not exist."""
    try:
        table = kernel_sequences(case.trace.select([rank]), operator_name=operator).per_pattern
    except InvalidOptionError:
        return []
    return table.select("pattern", "call_count", pl.col("kernel_ns", "operator_ns") / 1_000).rows()


@golden_cases(*WHOLE_MICROSECONDS, *NANOSECONDS, *WITH_SYNC_ROWS)
def test_sequences_are_equal(case: Case) -> None:
    """Patterns, counts and durations equal HTA's, except where HTA counts waits as kernels."""
    for call, operator, rank in sequence_calls_of(case):
        theirs = their_sequences(case, call)
        with_waits = [row for row in theirs if "Stream Wait Event" in str(row[0])]
        ours = our_sequences(case, operator, rank)
        assert [row for row in theirs if row not in with_waits] == [row for row in ours if row in theirs]
        assert len([row for row in ours if row not in theirs]) <= len(with_waits)


def delays(case: Case, rank: int) -> dict[tuple[str, str], tuple[int, float, float]]:
    """Return count and mean delays (µs) of each aten operator and kernel sequence; HTA lists only aten operators."""
    table = operator_kernels(case.trace.select([rank])).per_sequence
    means = pl.col("mean_operator_to_launch_ns", "mean_launch_to_kernel_ns") / 1_000
    rows = (
        table.filter(pl.col("operator").str.starts_with("aten::"))
        .select("operator", "kernels", "call_count", means)
        .rows()
    )
    return {(operator, kernels): (count, launch, start) for operator, kernels, count, launch, start in rows}


@golden_cases(
    "param_dlrm",
    "trace_diff_control",
    "trace_diff_control__last",
    "trace_diff_test__last",
    "df_index_resolver__last",
    "execution_trace",
    "ns_resolution_trace__nsfull",
    *WITH_SYNC_ROWS,
)
def test_operators_and_their_kernels_are_equal(case: Case) -> None:
    """Sequences, counts and delays of the first rank equal HTA's.

    Later ranks are not compared, because HTA's table of a later rank also contains the calls of all earlier ranks.
    """
    rank = next(iter(case.trace.ranks))
    theirs = {row[:2]: row[2:] for row in case.table(f"get_aten_op_kernels_and_delay.rank{rank}").rows()}
    ours = delays(case, rank)

    assert ours.keys() == theirs.keys()
    tolerance = NOISE_US if case.folder.name.endswith("nsfull") else 0.001
    assert all(ours[key] == pytest.approx(theirs[key], abs=tolerance) for key in ours)


@golden_cases("trace_filter")
def test_of_operators_that_begin_together_the_inner_one_launched(case: Case) -> None:
    """aten::mm and its parent aten::matmul start in the same µs, so HTA assigns some kernels of aten::mm to the parent."""
    theirs = {row[:2]: row[2] for row in case.table("get_aten_op_kernels_and_delay.rank0").rows()}
    ours = {key: count for key, (count, *_) in delays(case, 0).items()}

    assert {operator for operator, _ in theirs.keys() - ours.keys()} == {"aten::matmul", "aten::linalg_norm"}
    assert sum(ours.values()) == sum(theirs.values())
