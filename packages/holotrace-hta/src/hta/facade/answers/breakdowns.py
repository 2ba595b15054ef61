"""Temporal, kernel and idle-time breakdowns and communication overlap, with HTA's columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

import holotrace
from holotrace import figures
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.store.trace import Trace
from hta.facade.imports.modules_later import pd
from hta.facade.results.cut_off import kept_count
from hta.facade.results.show import show
from hta.facade.results.times import microseconds
from hta.facade.results.without_gpu_work import no_idle_times, no_kernels, no_overlap, no_times

_STATE_KINDS = ("computation", "communication", "memory")
_OTHERS = "others"


def temporal_frame(trace: Trace, *, visualize: bool) -> pd.DataFrame:
    """Return each rank's idle, compute and other time, summed over its devices; see `TraceAnalysis`."""
    try:
        result = holotrace.temporal_breakdown(trace)
    except MissingDataError as error:
        return no_times(str(error))
    if visualize:
        show(figures.plot_temporal_breakdown(result))
    parts = {"idle": "idle", "compute": "computation", "non_compute": "non_computation"}
    sums = pl.col("idle_ns", "computation_ns", "non_computation_ns", "window_ns").sum()
    per_rank = result.per_device.group_by("rank", maintain_order=True).agg(sums)
    times = {f"{part}_time(us)": microseconds(per_rank[f"{ours}_ns"]) for part, ours in parts.items()}
    window = per_rank["window_ns"]
    percentages = {
        f"{part}_time_pctg": _percentage(per_rank[f"{ours}_ns"], window, decimals=2) for part, ours in parts.items()
    }
    return pd.DataFrame(
        {
            "rank": _whole_numbers(per_rank["rank"]),
            **times,
            "kernel_time(us)": microseconds(window),
            **percentages,
        }
    )


def overlap_frame(trace: Trace, *, visualize: bool) -> pd.DataFrame:
    """Return the share of each rank's communication that overlaps with computation; see `TraceAnalysis`."""
    try:
        result = holotrace.communication_overlap(trace)
    except MissingDataError as error:
        return no_overlap(trace.ranks, str(error))
    if visualize:
        show(figures.plot_communication_overlap(result))
    table = result.per_rank
    percentage = _percentage(table["overlap_ns"], table["communication_ns"], decimals=2)
    return pd.DataFrame({"rank": _whole_numbers(table["rank"]), "comp_comm_overlap_pctg": percentage})


def kernel_frames(  # noqa: PLR0913 -- HTA's arguments
    trace: Trace,
    *,
    visualize: bool,
    duration_ratio: float,
    num_kernels: int,
    include_memory_kernels: bool,
    image_renderer: str,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the time of each kind of kernel, and statistics of each rank's kernels; see `TraceAnalysis`."""
    try:
        result = holotrace.kernel_breakdown(trace)
    except MissingDataError as error:
        return no_kernels(str(error))
    if visualize:
        show(figures.plot_kernel_breakdown(result), image_renderer)
    kinds = _STATE_KINDS if include_memory_kernels else _STATE_KINDS[:2]
    return _kernel_types(result, kinds), _kernel_statistics(result, kinds, duration_ratio, num_kernels)


def idle_frames(  # noqa: PLR0913 -- HTA's arguments
    trace: Trace,
    ranks: Iterable[int] | None,
    streams: Iterable[int] | None,
    *,
    visualize: bool,
    visualize_pctg: bool,
    show_idle_interval_stats: bool,
    consecutive_kernel_delay: float,
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return each stream's idle time by cause and, if requested, statistics of idle intervals; see `TraceAnalysis`."""
    chosen = trace.select(None if ranks is None else list(ranks))
    try:
        every_stream = holotrace.idle_time(chosen, gap_threshold_ns=round(1_000 * consecutive_kernel_delay))
    except MissingDataError as error:
        times, statistics = no_idle_times(str(error))
        return times, statistics if show_idle_interval_stats else None
    result = every_stream if streams is None else _of_streams(every_stream, list(streams))
    if visualize:
        show(figures.plot_idle_time(result, by="stream", as_share=visualize_pctg))
    return _idle_times(result), _idle_statistics(result) if show_idle_interval_stats else None


def _whole_numbers(values: pl.Series) -> np.ndarray[Any, Any]:
    return values.to_numpy().astype(np.int64)


def _rounded_microseconds(values_ns: pl.Series) -> np.ndarray[Any, Any]:
    """Return microseconds rounded to two decimals, with NaN for null."""
    nanoseconds = values_ns.cast(pl.Float64).fill_null(np.nan).to_numpy().astype(np.float64)
    return np.round(nanoseconds / 1_000, 2)


def _percentage(part: pl.Series, whole: pl.Series, *, decimals: int) -> np.ndarray[Any, Any]:
    """Return `part` as rounded percentages of `whole`, with NaN where `whole` is 0."""
    parts, wholes = part.to_numpy().astype(np.float64), whole.to_numpy().astype(np.float64)
    shares = np.full(len(parts), np.nan)
    np.divide(parts, wholes, out=shares, where=wholes != 0)
    return np.round(100 * shares, decimals)


def _kernel_types(result: holotrace.KernelBreakdown, kinds: Sequence[str]) -> pd.DataFrame:
    """Return how long each kind of kernel runs alone, and how long several kinds overlap.

    There is one row per kind and one row per combination of kinds, such as `COMPUTATION overlapping COMMUNICATION`.
    """
    names = {state: _hta_state(state, kinds) for state in result.per_state["state"].unique()}
    named = result.per_state.with_columns(pl.col("state").replace_strict(names, return_dtype=pl.String))
    table = (
        named.filter(pl.col("state") != "")
        .group_by("state")
        .agg(pl.col("total_ns").sum())
        .sort(["total_ns", "state"], descending=[True, False])
    )
    total = pl.Series([table["total_ns"].sum()] * len(table), dtype=pl.Int64)
    return pd.DataFrame(
        {
            "kernel_type": table["state"].to_list(),
            "sum": microseconds(table["total_ns"]),
            "percentage": _percentage(table["total_ns"], total, decimals=1),
        }
    )


def _hta_state(state: str, kinds: Sequence[str]) -> str:
    return " overlapping ".join(kind.upper() for kind in state.split(" + ") if kind in kinds)


def _kernel_statistics(
    result: holotrace.KernelBreakdown, kinds: Sequence[str], duration_ratio: float, num_kernels: int
) -> pd.DataFrame:
    kernels = result.per_kernel.filter(pl.col("kernel_kind").is_in(kinds))
    groups = kernels.partition_by("rank", "kernel_kind", maintain_order=True)
    rows = [row for group in groups for row in _with_others(group, duration_ratio, num_kernels)]
    schema = ["name", "sum", "max", "min", "std", "mean", "kind", "rank", "count"]
    table = pl.DataFrame(rows, schema=schema, orient="row", infer_schema_length=None).sort("kind", "name", "rank")
    return pd.DataFrame(
        {
            "name": table["name"].to_list(),
            "sum (us)": microseconds(table["sum"]),
            "max (us)": microseconds(table["max"]),
            "min (us)": microseconds(table["min"]),
            "stddev": table["std"].to_numpy() / 1_000,
            "mean (us)": table["mean"].to_numpy() / 1_000,
            "kernel_type": table["kind"].to_list(),
            "rank": _whole_numbers(table["rank"]),
            "count": _whole_numbers(table["count"]),
        }
    )


def _with_others(group: pl.DataFrame, duration_ratio: float, num_kernels: int) -> list[tuple[Any, ...]]:
    """Return the longest kernels of one rank and kind; a last row, `others`, combines any remaining kernels."""
    ordered = group.sort(["total_ns", "name"], descending=[True, False])
    kept = len(ordered) if len(ordered) <= num_kernels else kept_count(ordered["total_ns"], duration_ratio, num_kernels)
    rows = [_kernel_row(row) for row in ordered.head(kept).iter_rows(named=True)]
    return [*rows, _others_row(ordered.slice(kept))] if kept < len(ordered) else rows


def _kernel_row(row: dict[str, Any]) -> tuple[Any, ...]:
    spread = row["std_ns"] or 0.0
    columns = ("name", "total_ns", "max_ns", "min_ns")
    return (
        *(row[name] for name in columns),
        spread,
        row["mean_ns"],
        row["kernel_kind"].upper(),
        row["rank"],
        row["call_count"],
    )


def _others_row(rest: pl.DataFrame) -> tuple[Any, ...]:
    """Combine the statistics of several kernels into one row of statistics over all their calls."""
    counts, means, spreads = (rest[name].to_numpy() for name in ("call_count", "mean_ns", "std_ns"))
    count, total = int(counts.sum()), int(rest["total_ns"].sum())
    within = (np.maximum(counts - 1, 0) * np.nan_to_num(spreads) ** 2).sum()
    between = (counts * (means - total / count) ** 2).sum()
    spread = float(np.sqrt((within + between) / (count - 1))) if count > 1 else 0.0
    kind, rank = rest["kernel_kind"][0].upper(), rest["rank"][0]
    return _OTHERS, total, rest["max_ns"].max(), rest["min_ns"].min(), spread, total / count, kind, rank, count


def _of_streams(result: holotrace.IdleTime, streams: list[int]) -> holotrace.IdleTime:
    existing = set(result.per_stream["stream"])
    if unknown := [stream for stream in streams if stream not in existing]:
        raise InvalidOptionError.unknown(unknown, existing, what="stream")

    def chosen(table: pl.DataFrame) -> pl.DataFrame:
        return table.filter(pl.col("stream").is_in(streams))

    return replace(result, per_stream=chosen(result.per_stream), statistics=chosen(result.statistics))


def _idle_times(result: holotrace.IdleTime) -> pd.DataFrame:
    table = result.per_stream
    return pd.DataFrame(
        {
            "rank": _whole_numbers(table["rank"]),
            "stream": _whole_numbers(table["stream"]),
            "idle_category": table["category"].to_list(),
            "idle_time": microseconds(table["idle_ns"]),
            "idle_time_ratio": np.round(table["fraction"].cast(pl.Float64).fill_null(np.nan).to_numpy(), 2),
            "device": _whole_numbers(table["device"]),
        }
    )


def _idle_statistics(result: holotrace.IdleTime) -> pd.DataFrame:
    table = result.statistics
    columns = {"mean": "mean", "std": "std", "min": "min", "25%": "p25", "50%": "median", "75%": "p75", "max": "max"}
    return pd.DataFrame(
        {
            "rank": _whole_numbers(table["rank"]),
            "stream": _whole_numbers(table["stream"]),
            "count": _whole_numbers(table["gap_count"]),
            **{name: _rounded_microseconds(table[f"{ours}_ns"]) for name, ours in columns.items()},
            "device": _whole_numbers(table["device"]),
        },
        index=pd.Index(table["category"].to_list(), name="idle_category"),
    )
