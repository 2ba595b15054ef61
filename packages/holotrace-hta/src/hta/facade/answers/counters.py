"""Writes copies of traces with added counters; takes the options of `TraceAnalysis.generate_trace_with_counters`."""

from __future__ import annotations

from collections.abc import Iterable

from holotrace.export.counters import ALL_COUNTERS, TimeSeriesTypes
from holotrace.export.trace_with_counters import write_traces_with_counters
from holotrace.locations import located
from holotrace.store.trace import Trace
from hta.facade.trace.edited_rank import expect_events_of_file

__all__ = ["TimeSeriesTypes", "traces_with_counters"]


def traces_with_counters(  # noqa: PLR0913 -- one argument per option
    trace: Trace,
    time_series: TimeSeriesTypes | None,
    ranks: Iterable[int] | None,
    output_suffix: str,
    output_dir: str | None,
    *,
    overwrite: bool,
) -> dict[int, str]:
    """Write one copy per rank; return {rank: path of the copy}."""
    chosen = trace.select(None if ranks is None else list(ranks))
    for rank_trace in chosen.ranks.values():
        expect_events_of_file(rank_trace)
    written = write_traces_with_counters(
        chosen,
        None if output_dir is None else located(output_dir),
        kinds=ALL_COUNTERS if time_series is None else time_series,
        suffix=output_suffix,
        overwrite=overwrite,
    )
    return {rank: str(path) for rank, path in written.items()}
