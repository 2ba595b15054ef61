"""User annotations and the kernels under them, with HTA's columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from holotrace.analyses.user_annotations.compute import Side, annotation_durations, user_annotations
from holotrace.analyses.user_annotations.figure import plot_user_annotations
from holotrace.enrich.host.annotations import annotation_of_work
from holotrace.errors import InvalidOptionError
from holotrace.schema import DEVICE_WORK_KINDS
from hta.facade.results.cut_off import kept_count
from hta.facade.results.reasons import explained
from hta.facade.results.show import show
from hta.facade.trace.names import shorten_name
from hta.facade.trace.trace_frame import trace_frame
from hta.facade.trace.trace_view import TraceView

_OTHERS = "others"
_NO_TEXT = -1
_STATISTICS = {
    "name": pl.String,
    "total_ns": pl.Int64,
    "max_ns": pl.Int64,
    "min_ns": pl.Int64,
    "std_ns": pl.Float64,
    "mean_ns": pl.Float64,
}
_MICROSECONDS = {
    "sum (us)": "total_ns",
    "max (us)": "max_ns",
    "min (us)": "min_ns",
    "stddev": "std_ns",
    "mean (us)": "mean_ns",
}


def kernels_with_annotations(view: TraceView, rank: int, *, expand_names: bool, shorten_names: bool) -> pd.DataFrame:
    """Return a rank's device work and the annotation that each row belongs to; see `TraceAnalysis`."""
    rank_trace = view.trace.select([rank]).ranks[rank]
    frame = trace_frame(rank_trace, view.symbol_table, view.frame_origin_ns(rank), kinds=DEVICE_WORK_KINDS)
    annotations = annotation_of_work(rank_trace)
    ids = np.full(1 + int(frame["index"].max() if len(frame) else 0), _NO_TEXT, np.int64)
    ids[annotations["event_index"].to_numpy()] = annotations["annotation"].cast(pl.Int64).fill_null(_NO_TEXT).to_numpy()
    distinct, rows = np.unique(ids[frame["index"].to_numpy()], return_inverse=True)
    texts = ["" if string_id == _NO_TEXT else rank_trace.strings[string_id] for string_id in distinct.tolist()]
    numbers = view.symbol_table.get_sym_index()
    frame["user_annotation"] = np.array([numbers.get(text, -1) if text else -1 for text in texts], np.int64)[rows]
    if expand_names:
        _expand(view, frame, np.array(texts, dtype=object)[rows], shorten_names=shorten_names)
    return explained(frame.reset_index(drop=True), f"rank {rank} has no GPU work; record with ProfilerActivity.CUDA")


def annotation_breakdown(  # noqa: PLR0913 -- HTA's arguments
    view: TraceView,
    *,
    use_gpu_annotation: bool,
    visualize: bool,
    duration_ratio: float,
    num_kernels: int,
    allowlist_patterns: Sequence[str] | None,
    image_renderer: str | None,
) -> pd.DataFrame:
    """Return statistics of each rank's annotations; see `TraceAnalysis`."""
    side: Side = "gpu" if use_gpu_annotation else "cpu"
    if visualize:
        show(plot_user_annotations(user_annotations(view.trace), side=side), image_renderer or "")
    durations = annotation_durations(view.trace, side)
    always = _matching(durations.values(), allowlist_patterns)
    shown = {rank: _with_others(table, always, duration_ratio, num_kernels) for rank, table in durations.items()}
    return explained(_statistics(shown), f"no rank has user annotations on the {side.upper()}")


def _expand(view: TraceView, frame: pd.DataFrame, annotations: npt.NDArray[Any], *, shorten_names: bool) -> None:
    """Add columns with names, categories and annotations as text, looking up each distinct name and category once."""
    texts = view.symbol_table.get_sym_table()
    for column, shown in (("name", shorten_name if shorten_names else str), ("cat", str)):
        numbers, rows = np.unique(frame[column].to_numpy(), return_inverse=True)
        distinct = np.array([shown(texts[number]) for number in numbers.tolist()], dtype=object)
        frame[f"s_{column}"] = pd.Series(distinct[rows], index=frame.index, dtype=object)
    frame["s_user_annotation"] = pd.Series(annotations, index=frame.index, dtype=object)


def _matching(durations: Iterable[pl.DataFrame], patterns: Sequence[str] | None) -> list[str]:
    try:
        compiled = [re.compile(pattern) for pattern in patterns or ()]
    except re.error as error:
        message = f"allowlist_patterns={list(patterns or ())}: {error}"
        raise InvalidOptionError(message) from error
    names = {name for table in durations for name in table["name"]} if compiled else ()
    return [name for name in names if any(pattern.search(name) for pattern in compiled)]


def _with_others(group: pl.DataFrame, always: list[str], duration_ratio: float, num_kernels: int) -> pl.DataFrame:
    """Return the longest annotations of a rank and those named in `always`, and combine all others into one row."""
    if len(group) <= num_kernels:
        return group[list(_STATISTICS)]
    ordered = group.sort(["total_ns", "name"], descending=[True, False])
    count = kept_count(ordered["total_ns"], duration_ratio, num_kernels)
    is_kept = (pl.int_range(pl.len()) < count) | pl.col("name").is_in(always)
    kept, rest = (ordered.filter(chosen) for chosen in (is_kept, ~is_kept))
    return pl.concat([kept[list(_STATISTICS)], *([_joined(rest)] if len(rest) else [])])


def _joined(rest: pl.DataFrame) -> pl.DataFrame:
    """Combine the statistics of several annotations into one row of statistics over all their calls."""
    counts, means, spreads = (rest[name].to_numpy() for name in ("call_count", "mean_ns", "std_ns"))
    count, total = int(counts.sum()), int(rest["total_ns"].sum())
    squares = ((counts - 1) * spreads**2 + counts * (means - total / count) ** 2).sum()
    spread = float(np.sqrt(squares / (count - 1))) if count > 1 else 0.0
    row = (_OTHERS, total, rest["max_ns"].max(), rest["min_ns"].min(), spread, total / count)
    return pl.DataFrame([row], schema=_STATISTICS, orient="row")


def _statistics(shown: Mapping[int, pl.DataFrame]) -> pd.DataFrame:
    """Return one frame for all ranks, sorted by name within each rank."""
    table = pl.concat([table_of_rank.sort("name") for table_of_rank in shown.values()])
    return pd.DataFrame(
        {
            "name": table["name"].to_list(),
            **{name: table[column].to_numpy() / 1_000 for name, column in _MICROSECONDS.items()},
            "rank": np.repeat(
                np.array(list(shown), np.int64), [len(table_of_rank) for table_of_rank in shown.values()]
            ),
        }
    )
