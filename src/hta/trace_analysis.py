"""TraceAnalysis as scripts and notebooks written for Holistic Trace Analysis know it.

Names, arguments, defaults and columns are HTA's; results are pandas frames, times are in microseconds. Behind it are
the analyses of this package, so the numbers are exact where HTA rounds or guesses; what differs, and why, is listed in
docs/reference/from_hta.md. New code is better off with `hta.open_trace` and the functions of `hta`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl

from hta.analyses.communication_overlap import communication_overlap
from hta.analyses.idle_time import IdleTime, idle_time
from hta.analyses.kernel_breakdown import KernelBreakdown, kernel_breakdown
from hta.analyses.temporal_breakdown import temporal_breakdown
from hta.enrich.steps import before_last_step, steps
from hta.figures import (
    plot_communication_overlap,
    plot_idle_time,
    plot_kernel_breakdown,
    plot_temporal_breakdown,
)
from hta.ingest.discover import TraceSource
from hta.ingest.open_trace import open_trace
from hta.store.trace import RankTrace, Trace

if TYPE_CHECKING:
    import plotly.graph_objects as go

_STATE_KINDS = ("computation", "communication", "memory")
_OTHERS = "others"


class TraceAnalysis:
    """The analyses of a job, with the interface of HTA.

    Args:
        trace_files: `{rank: file}`, or a list of files whose ranks are found as `hta.open_trace` finds them. Relative
            names are looked for in `trace_dir` first, as HTA does, and then in the current folder.
        trace_dir: the folder of the traces; all of them are opened where `trace_files` is None.
        include_last_profiler_step: keep the last step, which HTA leaves out where there are at least two.

    Raises:
        TraceNotFoundError: there is no trace at these paths.
    """

    def __init__(
        self,
        trace_files: Mapping[int, str] | Sequence[str] | None = None,
        trace_dir: str = "/tmp/trace",  # noqa: S108 -- HTA's default
        include_last_profiler_step: bool | None = False,  # noqa: FBT001, FBT002 -- HTA's signature
    ) -> None:
        trace = open_trace(_source(trace_files, trace_dir))
        self._trace = trace if include_last_profiler_step else trace.where(before_last_step)
        self.t = TraceView(self._trace, trace_dir)

    def get_profiler_steps(self) -> list[int]:
        """Return the numbers of the profiler steps of all ranks, in rising order."""
        return sorted({step for rank in self.t.get_ranks() for step in self.t.get_iterations(rank)})

    def get_temporal_breakdown(self, visualize: bool = True) -> pd.DataFrame:  # noqa: FBT001, FBT002 -- HTA's
        """Return how each rank's time splits into idle, computing and other time; devices of a rank are added up.

        Returns:
            rank, idle_time(us), compute_time(us), non_compute_time(us), kernel_time(us), idle_time_pctg,
            compute_time_pctg, non_compute_time_pctg: percentages have two decimals.
        """
        result = temporal_breakdown(self._trace)
        if visualize:
            _show(plot_temporal_breakdown(result))
        sums = pl.col("idle_ns", "compute_ns", "non_compute_ns", "window_ns").sum()
        per_rank = result.per_device.group_by("rank", maintain_order=True).agg(sums)
        times = {
            f"{name}_time(us)": _microseconds(per_rank[f"{name}_ns"]) for name in ("idle", "compute", "non_compute")
        }
        return pd.DataFrame(
            {
                "rank": _whole_numbers(per_rank["rank"]),
                **times,
                "kernel_time(us)": _microseconds(per_rank["window_ns"]),
                **{
                    f"{name}_time_pctg": _percentage(per_rank[f"{name}_ns"], per_rank["window_ns"], decimals=2)
                    for name in ("idle", "compute", "non_compute")
                },
            }
        )

    def get_comm_comp_overlap(self, visualize: bool = True) -> pd.DataFrame:  # noqa: FBT001, FBT002 -- HTA's
        """Return which percentage of each rank's communication time was hidden behind computation.

        Returns:
            rank, comp_comm_overlap_pctg: two decimals, NaN for a rank that does not communicate.
        """
        result = communication_overlap(self._trace)
        if visualize:
            _show(plot_communication_overlap(result))
        table = result.per_rank
        percentage = _percentage(table["overlap_ns"], table["comm_ns"], decimals=2)
        return pd.DataFrame({"rank": _whole_numbers(table["rank"]), "comp_comm_overlap_pctg": percentage})

    def get_gpu_kernel_breakdown(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002
        duration_ratio: float = 0.8,
        num_kernels: int = 10,
        include_memory_kernels: bool = True,  # noqa: FBT001, FBT002
        image_renderer: str = "",
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the time of each kind of work over all ranks, and the statistics of each rank's kernels.

        A rank with more than `num_kernels` kernels of a kind keeps the longest of them: as many as it takes to cover
        `duration_ratio` of the kind's time, and at most `num_kernels`. The rest become one row called `others`.

        Returns:
            kernel_type, sum, percentage: disjoint combinations of kinds, the longest first, one decimal.
            name, sum (us), max (us), min (us), stddev, mean (us), kernel_type, rank, count: statistics of calls,
            also those of `others`; sorted by kernel_type, name, rank.
        """
        result = kernel_breakdown(self._trace)
        if visualize:
            _show(plot_kernel_breakdown(result), image_renderer)
        kinds = _STATE_KINDS if include_memory_kernels else _STATE_KINDS[:2]
        return _kernel_types(result, kinds), _kernel_statistics(result, kinds, duration_ratio, num_kernels)

    def get_idle_time_breakdown(  # noqa: PLR0913, PLR0917 -- HTA's signature
        self,
        ranks: Iterable[int] | None = None,
        streams: Iterable[int] | None = None,
        visualize: bool = True,  # noqa: FBT001, FBT002
        visualize_pctg: bool = True,  # noqa: FBT001, FBT002
        show_idle_interval_stats: bool = False,  # noqa: FBT001, FBT002
        consecutive_kernel_delay: float = 30,
    ) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """Return how long each stream was idle, by what it waited for.

        Args:
            ranks: only these; by default all there are.
            streams: only these; by default all there are.
            visualize: show the figure.
            visualize_pctg: let the figure show shares instead of times.
            show_idle_interval_stats: return statistics of the idle intervals as well.
            consecutive_kernel_delay: from this wait on, in microseconds, a kernel was held up by something else.

        Returns:
            rank, stream, idle_category, idle_time, idle_time_ratio, device: the categories host_wait, kernel_wait and
            other of each stream; time in microseconds, ratio in the stream's idle time with two decimals.
            None, or indexed by idle_category: rank, stream, count, mean, std, min, 25%, 50%, 75%, max, device.
        """
        threshold_ns = round(1_000 * consecutive_kernel_delay)
        found = idle_time(self._trace.select(_listed(ranks)), gap_threshold_ns=threshold_ns)
        result = found if streams is None else _of_streams(found, list(streams))
        if visualize:
            _show(plot_idle_time(result, by="stream", as_share=visualize_pctg))
        return _idle_times(result), _idle_statistics(result) if show_idle_interval_stats else None


class TraceView:
    """What scripts read from `TraceAnalysis.t`; everything else is in `hta.open_trace`.

    trace_path   the folder, as given
    trace_files  {rank: file}
    meta_data    {rank: top-level keys of the file except traceEvents}
    is_parsed    True
    """

    is_parsed = True

    def __init__(self, trace: Trace, trace_path: str) -> None:
        self._trace = trace
        self.trace_path = trace_path
        self.trace_files: dict[int, str] = {rank: each.source for rank, each in trace.ranks.items()}

    @property
    def meta_data(self) -> dict[int, dict[str, Any]]:
        """The top-level keys of each rank's file."""
        return {rank: each.header.raw for rank, each in self._trace.ranks.items()}

    def get_ranks(self) -> list[int]:
        """Return the ranks in rising order."""
        return list(self._trace.ranks)

    def get_iterations(self, rank: int | None = None) -> list[int]:
        """Return the numbers of a rank's steps in rising order; by default of the first rank.

        Raises:
            UnknownRankError: there is no such rank.
        """
        chosen = self.get_ranks()[0] if rank is None else rank
        return [step for found in self._trace.select([chosen]).map(_step_numbers).values() for step in found]


def _source(trace_files: Mapping[int, str] | Sequence[str] | None, trace_dir: str) -> TraceSource:
    if trace_files is None:
        return trace_dir
    if isinstance(trace_files, Mapping):
        return {rank: _located(path, trace_dir) for rank, path in trace_files.items()}
    return [_located(path, trace_dir) for path in trace_files]


def _located(path: str, trace_dir: str) -> str:
    """Return a relative path as one from `trace_dir` where it leads to a file there."""
    inside = Path(trace_dir, Path(path).expanduser())
    return str(inside) if not path.startswith(f".{os.sep}") and inside.exists() else path


def _show(figure: go.Figure, renderer: str = "") -> None:
    """Show a figure as plotly does by default: inline in a notebook, in a browser, or not at all without either."""
    figure.show(renderer=renderer or None)


def _listed(values: Iterable[int] | None) -> list[int] | None:
    return None if values is None else list(values)


def _step_numbers(rank_trace: RankTrace) -> list[int]:
    return sorted(set(rank_trace.derive(steps)["step"].to_list()))


def _microseconds(values_ns: pl.Series) -> np.ndarray[Any, Any]:
    """Return whole numbers where all values are whole microseconds, else exact thousandths."""
    nanoseconds = values_ns.to_numpy().astype(np.int64)
    return nanoseconds / 1_000 if (nanoseconds % 1_000).any() else nanoseconds // 1_000


def _whole_numbers(values: pl.Series) -> np.ndarray[Any, Any]:
    return values.to_numpy().astype(np.int64)


def _rounded_microseconds(values_ns: pl.Series) -> np.ndarray[Any, Any]:
    """Return microseconds with two decimals, NaN for null."""
    nanoseconds = values_ns.cast(pl.Float64).fill_null(np.nan).to_numpy().astype(np.float64)
    return np.round(nanoseconds / 1_000, 2)


def _percentage(part: pl.Series, whole: pl.Series, *, decimals: int) -> np.ndarray[Any, Any]:
    """Return rounded percentages, NaN where the whole is 0."""
    parts, wholes = part.to_numpy().astype(np.float64), whole.to_numpy().astype(np.float64)
    shares = np.full(len(parts), np.nan)
    np.divide(parts, wholes, out=shares, where=wholes != 0)
    return np.round(100 * shares, decimals)


def _kernel_types(result: KernelBreakdown, kinds: Sequence[str]) -> pd.DataFrame:
    """Return the states of these kinds under HTA's names; what runs beside them does not count."""
    names = {state: _hta_state(state, kinds) for state in result.per_state["state"].unique()}
    named = result.per_state.with_columns(pl.col("state").replace_strict(names, return_dtype=pl.String))
    table = (
        named.filter(pl.col("state") != "")
        .group_by("state")
        .agg(pl.col("duration_ns").sum())
        .sort(["duration_ns", "state"], descending=[True, False])
    )
    total = pl.Series([table["duration_ns"].sum()] * len(table), dtype=pl.Int64)
    return pd.DataFrame(
        {
            "kernel_type": table["state"].to_list(),
            "sum": _microseconds(table["duration_ns"]),
            "percentage": _percentage(table["duration_ns"], total, decimals=1),
        }
    )


def _hta_state(state: str, kinds: Sequence[str]) -> str:
    return " overlapping ".join(kind.upper() for kind in state.split(" + ") if kind in kinds)


def _kernel_statistics(
    result: KernelBreakdown, kinds: Sequence[str], duration_ratio: float, num_kernels: int
) -> pd.DataFrame:
    kernels = result.per_kernel.filter(pl.col("kernel_kind").is_in(kinds))
    groups = kernels.partition_by("rank", "kernel_kind", maintain_order=True)
    rows = [row for group in groups for row in _with_others(group, duration_ratio, num_kernels)]
    schema = ["name", "sum", "max", "min", "std", "mean", "kind", "rank", "count"]
    table = pl.DataFrame(rows, schema=schema, orient="row", infer_schema_length=None).sort("kind", "name", "rank")
    return pd.DataFrame(
        {
            "name": table["name"].to_list(),
            "sum (us)": _microseconds(table["sum"]),
            "max (us)": _microseconds(table["max"]),
            "min (us)": _microseconds(table["min"]),
            "stddev": table["std"].to_numpy() / 1_000,
            "mean (us)": table["mean"].to_numpy() / 1_000,
            "kernel_type": table["kind"].to_list(),
            "rank": _whole_numbers(table["rank"]),
            "count": _whole_numbers(table["count"]),
        }
    )


def _with_others(group: pl.DataFrame, duration_ratio: float, num_kernels: int) -> list[tuple[Any, ...]]:
    """Return the rows of one rank and kind, those after the cut-off joined to one."""
    ordered = group.sort(["sum_ns", "name"], descending=[True, False])
    kept = len(ordered) if len(ordered) <= num_kernels else _kept_count(ordered["sum_ns"], duration_ratio, num_kernels)
    rows = [_kernel_row(row) for row in ordered.head(kept).iter_rows(named=True)]
    return [*rows, _others_row(ordered.slice(kept))] if kept < len(ordered) else rows


def _kept_count(sums: pl.Series, duration_ratio: float, num_kernels: int) -> int:
    """Return how many of the longest kernels cover that share of the time, at most `num_kernels`."""
    covered = np.cumsum(sums.to_numpy())
    return min(num_kernels, int(np.searchsorted(covered, duration_ratio * covered[-1])) + 1)


def _kernel_row(row: dict[str, Any]) -> tuple[Any, ...]:
    spread = row["std_ns"] or 0.0
    columns = ("name", "sum_ns", "max_ns", "min_ns")
    return (
        *(row[name] for name in columns),
        spread,
        row["mean_ns"],
        row["kernel_kind"].upper(),
        row["rank"],
        row["call_count"],
    )


def _others_row(rest: pl.DataFrame) -> tuple[Any, ...]:
    """Return the statistics over all calls of the kernels left out, from those of each kernel."""
    counts, means, spreads = (rest[name].to_numpy() for name in ("call_count", "mean_ns", "std_ns"))
    count, total = int(counts.sum()), int(rest["sum_ns"].sum())
    within = (np.maximum(counts - 1, 0) * np.nan_to_num(spreads) ** 2).sum()
    between = (counts * (means - total / count) ** 2).sum()
    spread = float(np.sqrt((within + between) / (count - 1))) if count > 1 else 0.0
    kind, rank = rest["kernel_kind"][0].upper(), rest["rank"][0]
    return _OTHERS, total, rest["max_ns"].max(), rest["min_ns"].min(), spread, total / count, kind, rank, count


def _of_streams(result: IdleTime, streams: list[int]) -> IdleTime:
    def chosen(table: pl.DataFrame) -> pl.DataFrame:
        return table.filter(pl.col("stream").is_in(streams))

    return IdleTime(chosen(result.per_stream), result.per_device, chosen(result.statistics), result.findings)


def _idle_times(result: IdleTime) -> pd.DataFrame:
    table = result.per_stream
    return pd.DataFrame(
        {
            "rank": _whole_numbers(table["rank"]),
            "stream": _whole_numbers(table["stream"]),
            "idle_category": table["category"].to_list(),
            "idle_time": _microseconds(table["idle_ns"]),
            "idle_time_ratio": np.round(table["fraction"].cast(pl.Float64).fill_null(np.nan).to_numpy(), 2),
            "device": _whole_numbers(table["device"]),
        }
    )


def _idle_statistics(result: IdleTime) -> pd.DataFrame:
    table = result.statistics
    columns = {"mean": "mean", "std": "std", "min": "min", "25%": "p25", "50%": "median", "75%": "p75", "max": "max"}
    return pd.DataFrame(
        {
            "rank": _whole_numbers(table["rank"]),
            "stream": _whole_numbers(table["stream"]),
            "count": _whole_numbers(table["count"]),
            **{name: _rounded_microseconds(table[f"{ours}_ns"]) for name, ours in columns.items()},
            "device": _whole_numbers(table["device"]),
        },
        index=pd.Index(table["category"].to_list(), name="idle_category"),
    )
