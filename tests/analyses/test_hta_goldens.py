"""Comparison of our results for real traces with HTA's (traceinsight 0.6.1), including deliberate differences.

HTA reports µs. For traces in whole µs, our nanoseconds are exactly a thousand times HTA's numbers. HTA rounds
the times of traces in nanoseconds to whole µs. The goldens that end in `__nsfull` were made without this rounding, so
they differ from our numbers only by the precision of doubles. HTA leaves out the last step, and `before_last_step` does
the same here; the goldens that end in `__last` include the last step.

Where HTA is known to be wrong, the test checks how the numbers differ, and its docstring says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from holotrace import open_trace
from holotrace.algorithms.intervals import covered_length, intervals_of
from holotrace.analyses.communication_overlap.compute import communication_overlap
from holotrace.analyses.idle_time.compute import idle_time
from holotrace.analyses.kernel_breakdown.compute import kernel_breakdown
from holotrace.analyses.temporal_breakdown.compute import temporal_breakdown
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.device.launches import launches
from holotrace.enrich.kernels.kernel_kind import add_rule, remove_added_rules
from holotrace.enrich.steps.steps import before_last_step
from holotrace.errors import MissingDataError
from hta_goldens import FILES

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from holotrace.store.trace import RankTrace, Trace

WHOLE_MICROSECONDS = (
    "param_dlrm",
    "trace_filter",
    "trace_filter__last",
    "trace_diff_control",
    "trace_diff_control__last",
    "trace_diff_test",
    "trace_diff_test__last",
    "trace_diff_pair",
    "df_index_resolver",
    "df_index_resolver__last",
    "execution_trace",
)
"""Traces in whole µs, for which all numbers equal HTA's."""

NANOSECONDS = ("ns_resolution_trace__nsfull", "amd_trace__nsfull")
"""Traces in nanoseconds that HTA read without rounding."""

WITH_SYNC_ROWS = ("critical_path_simple_add", "critical_path_alexnet", "critical_path_cuda_event_sync")
"""Traces with CUDA synchronisation events, which HTA counts as busy time."""


@dataclass(frozen=True)
class Case:
    """A folder of goldens and the trace they were made from."""

    folder: Path
    trace: Trace

    def table(self, call: str) -> pl.DataFrame:
        """Read the table that HTA returned for a call."""
        (path,) = (path for ending in ("csv", "csv.gz") if (path := self.folder / f"{call}.{ending}").is_file())
        table = pl.read_csv(path, infer_schema_length=None)
        return table.drop(name for name in table.columns if not name)


@pytest.fixture
def case(request: pytest.FixtureRequest, real_traces: Path, goldens: Path) -> Case:
    """Open the trace of the golden named by the test's parameter, without the events that HTA leaves out.

    If a trace has at least two steps, HTA drops kernels whose launch was not recorded; we keep them. Therefore, the
    comparison leaves out the 614 kernels of `trace_diff_test` that were launched before the recording.
    """
    golden, _, suffix = request.param.partition("__")
    trace = _opened(real_traces, golden)
    if suffix != "last":
        trace = trace.where(before_last_step)
    if golden in ("trace_diff_test", "trace_diff_pair"):
        trace = trace.where(launched)
    return Case(goldens / "hta" / request.param, trace)


@cache
def _opened(real_traces: Path, golden: str) -> Trace:
    paths = {rank: next(real_traces.glob(pattern)) for rank, pattern in FILES[golden].items()}
    return open_trace(paths, cache=False)


def launched(rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
    """Select all events except device work without a recorded launch."""
    table = launches(rank_trace)
    unknown = table.filter(pl.col("launch_index").is_null())["event_index"].to_numpy()
    return ~np.isin(rank_trace.table("events", ["event_index"])["event_index"].to_numpy(), unknown)


def golden_cases(*names: str) -> pytest.MarkDecorator:
    """Run a test for each of these goldens."""
    return pytest.mark.parametrize("case", names, indirect=True)


def microseconds(table: pl.DataFrame, **columns: str) -> list[tuple[object, ...]]:
    """Return the rank and our columns in µs under HTA's names; each argument is `htas_name="our_name"`."""
    return table.select("rank", *((pl.col(ours) / 1_000).alias(theirs) for theirs, ours in columns.items())).rows()


def temporal_rows(case: Case) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return our rows and HTA's: rank, and kernel, compute, non-compute and idle time in µs."""
    ours = temporal_breakdown(case.trace).per_device
    theirs = case.table("get_temporal_breakdown")
    names = {"window_ns": "kernel", "computation_ns": "compute", "non_computation_ns": "non_compute", "idle_ns": "idle"}
    our_rows = microseconds(ours, **{f"{name}_time": column for column, name in names.items()})
    return our_rows, theirs.select("rank", *(f"{name}_time(us)" for name in names.values())).rows()


def state_lengths(case: Case) -> tuple[dict[str, float], dict[str, int]]:
    """Return the µs of each state, summed over ranks: first ours, then HTA's without its states of 0 µs."""
    ours = kernel_breakdown(case.trace).per_state.group_by("state").agg(pl.col("total_ns").sum() / 1_000)
    theirs = case.table("get_gpu_kernel_breakdown.0").filter(pl.col("sum") > 0)
    names = theirs["kernel_type"].str.to_lowercase().str.replace_all(" overlapping ", " + ", literal=True)
    return dict(ours.rows()), dict(zip(names, theirs["sum"], strict=True))


def kernel_statistics(case: Case) -> pl.DataFrame:
    """Return each kernel's statistics, ours and HTA's, in µs; HTA's table `all` also lists very short kernels."""
    ours = kernel_breakdown(case.trace).per_kernel.rename({"kernel_kind": "kernel_type"})
    theirs = case.table("get_gpu_kernel_breakdown.all.1").with_columns(pl.col("kernel_type").str.to_lowercase())
    scaled = ours.with_columns(pl.col("^.*_ns$") / 1_000)
    return scaled.join(theirs, on=["rank", "kernel_type", "name"], how="full", coalesce=True)


def assert_same_statistics(table: pl.DataFrame) -> None:
    """Assert that the sum, extremes, mean and deviation of every kernel equal HTA's."""
    for ours, theirs in {
        "total": "sum (us)",
        "max": "max (us)",
        "min": "min (us)",
        "mean": "mean (us)",
        "std": "stddev",
    }.items():
        assert table[f"{ours}_ns"].to_list() == pytest.approx(table[theirs].to_list(), rel=1e-9, abs=1e-9)


@golden_cases(*WHOLE_MICROSECONDS)
def test_temporal_breakdown_is_equal(case: Case) -> None:
    """The kernel, compute, non-compute and idle time of every rank equal HTA's exactly."""
    ours, theirs = temporal_rows(case)

    assert ours == theirs


@golden_cases(*NANOSECONDS)
def test_temporal_breakdown_is_equal_to_the_noise_of_doubles(case: Case) -> None:
    """HTA stores µs since 1970 as doubles, which are 0.25 µs apart, so its times differ from ours by up to 0.5 µs."""
    ours, theirs = temporal_rows(case)

    assert [pytest.approx(row, abs=0.5) for row in theirs] == ours


@golden_cases(*WITH_SYNC_ROWS)
def test_waiting_is_not_busy(case: Case) -> None:
    """HTA counts synchronisation events as busy time and as part of the window; only its compute time equals ours."""
    (ours,), (theirs,) = temporal_rows(case)

    rank, window, compute, non_compute, idle = ours
    assert (rank, compute) == (theirs[0], theirs[2])
    assert window <= theirs[1]
    assert non_compute < theirs[3]
    assert window == compute + non_compute + idle


@golden_cases(*WHOLE_MICROSECONDS, *WITH_SYNC_ROWS)
def test_states_are_equal(case: Case) -> None:
    """The time of each state equals HTA's, because these traces have no work of kind "other", which HTA lacks."""
    ours, theirs = state_lengths(case)

    assert ours == theirs


@golden_cases(*NANOSECONDS)
def test_states_are_equal_but_for_cut_off_fractions(case: Case) -> None:
    """HTA rounds each interval of a state down to whole µs, so each is up to 1 µs shorter than ours."""
    ours, theirs = state_lengths(case)

    assert ours.keys() == theirs.keys()
    work_count = device_work(case.trace.ranks[0]).height
    assert all(theirs[state] <= ours[state] < theirs[state] + work_count for state in ours)


@golden_cases(*WHOLE_MICROSECONDS, *NANOSECONDS, *WITH_SYNC_ROWS)
def test_statistics_of_every_kernel_are_equal(case: Case) -> None:
    """The statistics of each kernel on each rank equal HTA's."""
    assert_same_statistics(kernel_statistics(case))


@golden_cases(*WHOLE_MICROSECONDS, *NANOSECONDS, *WITH_SYNC_ROWS)
def test_communication_overlap_is_equal(case: Case) -> None:
    """Percentages equal HTA's to two decimals; without communication, HTA divides 0 by 0, and we return null."""
    ours = communication_overlap(case.trace).per_rank

    percentages = (ours["overlap_fraction"] * 100).round(2)
    assert percentages.to_list() == case.table("get_comm_comp_overlap")["comp_comm_overlap_pctg"].to_list()


@golden_cases(*WHOLE_MICROSECONDS, *NANOSECONDS, *WITH_SYNC_ROWS)
def test_idle_time_of_every_stream_adds_up_to_the_same(case: Case) -> None:
    """Idle times equal HTA's, except that HTA subtracts overlaps on a stream twice (114 µs in trace_diff_test)."""
    ours = idle_time(case.trace).per_stream
    for rank in case.trace.ranks:
        theirs = case.table(f"get_idle_time_breakdown.rank{rank}.0")
        for stream in theirs["stream"].unique():
            total = ours.filter(rank=rank, stream=stream)["idle_ns"].sum() - _overlap_ns(case.trace.ranks[rank], stream)
            assert total / 1_000 == pytest.approx(theirs.filter(stream=stream)["idle_time"].sum(), abs=0.1)


def _overlap_ns(rank_trace: RankTrace, stream: int) -> int:
    """Return the sum of the durations of the work on a stream, minus the time in which the stream is busy."""
    starts, ends = intervals_of(device_work(rank_trace).filter(stream=stream))
    return int((ends - starts).sum()) - covered_length(starts, ends)


@golden_cases(*WHOLE_MICROSECONDS, *NANOSECONDS, *WITH_SYNC_ROWS)
def test_the_host_is_blamed_for_the_same_gaps_but_only_until_the_launch(case: Case) -> None:
    """If the work after an idle gap is launched during the gap, HTA counts the whole gap as host wait.

    We count only the part of the gap before the launch. Therefore, we report the same number of gaps with host wait as
    HTA, and the same or less time. The results may differ by 1 gap and 1 µs for each gap that HTA may misjudge:

    - If the launch is unknown, HTA uses the time of event 0 as the time of the launch.
    - If the launch is within 0.25 µs of the gap's start, HTA may get their order wrong, because it stores times as
      doubles (µs since 1970), which are too coarse.
    """
    result = idle_time(case.trace).per_stream.filter(category="host_wait")
    for rank, rank_trace in case.trace.ranks.items():
        totals, counts = (case.table(f"get_idle_time_breakdown.rank{rank}.{part}") for part in (0, 1))
        for stream in totals["stream"].unique():
            chosen = {"rank": rank, "stream": stream}
            ours = result.filter(**chosen).row(0, named=True)
            theirs = {"stream": stream, "idle_category": "host_wait"}
            unclear = _unclear_gaps(rank_trace, stream)
            assert abs(ours["gap_count"] - counts.filter(**theirs)["count"].sum()) <= unclear
            assert ours["idle_ns"] / 1_000 <= totals.filter(**theirs)["idle_time"].sum() + unclear


def _unclear_gaps(rank_trace: RankTrace, stream: int) -> int:
    """Count a stream's idle gaps that HTA may misjudge.

    HTA may misjudge a gap if the launch of the work after the gap is unknown. If times are not whole µs, it may also
    misjudge a gap if this launch is within 0.25 µs of the gap's start.
    """
    work = device_work(rank_trace).filter(stream=stream).join(launches(rank_trace), on="event_index")
    margin = pl.col("launch_start_ns") - pl.col("end_ns").cum_max().shift(1)
    is_whole = (pl.col("start_ns") % 1_000 == 0).all()
    return work.filter(pl.col("launch_start_ns").is_null() | (~is_whole & (margin.abs() <= 250))).height


@golden_cases("mtia_inference_trace__nsfull")
def test_mtia_waits_are_the_only_difference(case: Case) -> None:
    """HTA counts MTIA's event_wait and event_record as computation; if a rule does the same, our numbers equal HTA's.

    By default, we do not count these waits as work, so the device computes for 306 ms instead of 382 ms. The trace has
    no steps, so it does not matter that HTA keeps the last step of MTIA traces.
    """
    by_default = temporal_breakdown(case.trace).per_device["computation_ns"].item()
    add_rule("^event_(wait|record)$", "computation")
    try:
        ours, theirs = temporal_rows(case)
        statistics = kernel_statistics(case).drop_nulls("sum (us)")
        overlap = communication_overlap(case.trace).per_rank["overlap_fraction"].to_list()
    finally:
        remove_added_rules()

    assert [pytest.approx(row, abs=0.5) for row in theirs] == ours
    assert_same_statistics(statistics)
    assert statistics["name"].sort().to_list() == ["dma_request", "event_record", "event_wait", "merge", "remote"]
    assert overlap == case.table("get_comm_comp_overlap")["comp_comm_overlap_pctg"].to_list() == [None]
    assert (by_default, round(theirs[0][2])) == (306_399_395, 382_063)


@golden_cases("triton_example__nsfull")
def test_an_operator_with_a_stream_is_not_device_work(case: Case) -> None:
    """HTA mistakes a host operator with `stream: 0` in its args for a kernel and reports 95.8 µs instead of 1.76 µs."""
    ours, theirs = temporal_rows(case)

    assert ours == [(0, 1.76, 1.76, 0.0, 0.0)]
    assert theirs[0][1] > 95
    assert kernel_breakdown(case.trace).per_kernel["call_count"].to_list() == [1]


@golden_cases("ns_resolution_trace", "amd_trace", "mtia_inference_trace")
def test_rounding_loses_kernel_time(case: Case) -> None:
    """HTA rounds start times up and end times down to whole µs, so its times for many short copies are too small."""
    statistics = kernel_statistics(case).filter(pl.col("kernel_type") == "memory").drop_nulls("sum (us)")

    assert (statistics["total_ns"] > statistics["sum (us)"]).all()
    assert (statistics["total_ns"] - statistics["sum (us)"] < 2 * statistics["call_count"]).all()


@golden_cases("cpu_only", "cupti_profiler")
def test_no_device_work_is_a_clear_error(case: Case) -> None:
    """For traces without device work, HTA raises IndexError or divides 0 by 0; we raise MissingDataError."""
    for analysis in (temporal_breakdown, kernel_breakdown, communication_overlap, idle_time):
        with pytest.raises(MissingDataError, match=f"^{analysis.__name__}: rank .* has no GPU kernels to measure"):
            analysis(case.trace)
