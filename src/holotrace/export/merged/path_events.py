"""The critical path of a job as a separate process in a merged trace."""

from __future__ import annotations

import json
from collections.abc import Iterator

import polars as pl

from holotrace.export.json_columns import decimal_text, joined

PROCESS_NAME = "critical path of the job"
CATEGORY = "critical_path"

_ROWS_AT_ONCE = 50_000


def path_events(path: pl.DataFrame, hops: pl.DataFrame, pid: int, base_ns: int) -> Iterator[str]:
    """Yield the path as JSON text: a track for each rank on the path, the segments, and an arrow for each hop.

    Args:
        path: rank, name, module, path_class, start_ns and end_ns of the segments, on the reference clock.
        hops: time_ns, from_rank, to_rank and collective.
        pid: the process's pid in the merged trace.
        base_ns: the merged trace's `baseTimeNanoseconds`.
    """
    yield _metadata("process_name", pid, 0, {"name": PROCESS_NAME})
    yield _metadata("process_sort_index", pid, 0, {"sort_index": -1})
    for rank in path["rank"].unique().sort():
        yield _metadata("thread_name", pid, rank, {"name": f"rank {rank}"})
        yield _metadata("thread_sort_index", pid, rank, {"sort_index": rank})
    for rows in path.iter_slices(_ROWS_AT_ONCE):
        yield from rows.select(_segment_text(rows, pid, base_ns)).to_series()
    arrows = hops.with_row_index("arrow")
    # Begin each arrow a nanosecond before its hop, because a timeline attaches arrows only to events still running.
    for phase, rank, early_ns in (("s", "from_rank", 1), ("f", "to_rank", 0)):
        yield from arrows.select(_arrow_text(arrows, phase, rank, pid, base_ns + early_ns)).to_series()


def _metadata(name: str, pid: int, tid: int, args: dict[str, object]) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args})


def _segment_text(rows: pl.DataFrame, pid: int, base_ns: int) -> pl.Expr:
    args = [
        json.dumps({"path_class": path_class, "module": module})
        for path_class, module in rows.select("path_class", "module").iter_rows()
    ]
    return joined(
        f'{{"ph":"X","cat":"{CATEGORY}","pid":{pid},"tid":',
        pl.col("rank"),
        ',"name":',
        pl.lit(pl.Series([json.dumps(name) for name in rows["name"]], dtype=pl.String)),
        ',"ts":',
        decimal_text(pl.col("start_ns") - base_ns, 3),
        ',"dur":',
        decimal_text(pl.col("end_ns") - pl.col("start_ns"), 3),
        ',"args":',
        pl.lit(pl.Series(args, dtype=pl.String)),
        "}",
    )


def _arrow_text(arrows: pl.DataFrame, phase: str, rank: str, pid: int, base_ns: int) -> pl.Expr:
    """Return, for each arrow, the JSON text of the event that starts it (phase `s`) or ends it (phase `f`)."""
    binding = ',"bp":"e"' if phase == "f" else ""
    names = pl.Series([json.dumps(name) for name in arrows["collective"]], dtype=pl.String)
    return joined(
        f'{{"ph":"{phase}"{binding},"cat":"{CATEGORY}","pid":{pid},"tid":',
        pl.col(rank),
        ',"id":',
        pl.col("arrow"),
        ',"name":',
        pl.lit(names),
        ',"ts":',
        decimal_text(pl.col("time_ns") - base_ns, 3),
        "}",
    )
