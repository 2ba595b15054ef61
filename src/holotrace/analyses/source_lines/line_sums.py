"""Sum the times of a rank's lines, on the host and on its devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.clipping import clipped
from holotrace.algorithms.covered_by_group import covered_by_number
from holotrace.algorithms.intervals import covered_length, intervals_of
from holotrace.algorithms.nested.nesting import NO_PARENT, nesting, subtree_sums
from holotrace.analyses.source_lines.excess import KEYS, RankTimes
from holotrace.analyses.source_lines.idle import idle_by_line
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.device.launches import of_work
from holotrace.enrich.events.event_rows import gathered
from holotrace.enrich.host.frames import shown_names
from holotrace.enrich.host.source_lines import HostLines, host_lines, line_times, lines_of_work
from holotrace.enrich.steps.steps import windows
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

LINE_SUMS = dict.fromkeys(
    (
        *("call_count", "host_self_ns", "host_python_ns", "host_blocked_ns", "backward_host_self_ns", "host_total_ns"),
        *("device_self_ns", "device_self_busy_ns", "backward_device_self_ns", "device_total_ns", "device_idle_ns"),
    ),
    pl.Int64,
)
CALLEE_SUMS = dict.fromkeys(("call_count", "host_self_ns", "host_blocked_ns", "device_self_ns"), pl.Int64)
_DEVICE = ("device_self_ns", "device_self_busy_ns", "backward_device_self_ns", "device_total_ns", "device_idle_ns")
_OF_FRAMES = ("call_count", "host_total_ns", "device_total_ns")
_CALLEES_NAMED = 3
_LENGTH = (pl.col("end_ns") - pl.col("start_ns")).alias("ns")


class LineSums(NamedTuple):
    """The tables of a rank, without the column `rank`, and the times of the lines in the rank's steps."""

    per_line: pl.DataFrame
    per_callee: pl.DataFrame
    times: RankTimes


def line_sums(rank_trace: RankTrace, libraries: tuple[str, ...]) -> LineSums:
    """Return the line times of a rank that recorded stacks."""
    known, times = host_lines(rank_trace, libraries), line_times(rank_trace, libraries)
    host = times.hstack(_described(known, times["row"])).with_columns(_LENGTH)
    work = _described_work(known, device_work(rank_trace), lines_of_work(rank_trace, libraries))
    in_steps = _in_steps(rank_trace, host)
    per_callee = _named_callees(rank_trace, known, _per_callee(known, host, work))
    sums = (
        _host_sums(host),
        _frame_sums(known, work),
        _device_sums(work),
        idle_by_line(rank_trace, host),
        _callees(per_callee),
        _step_fractions(rank_trace, in_steps),
    )
    per_line, per_callee = _sorted(_joined(sums), per_callee, has_work=not work.is_empty())
    own = _named_callees(rank_trace, known, in_steps.filter(~pl.col("is_wait")).select("line", "callee", own_ns="ns"))
    return LineSums(
        _with_texts(known, per_line),
        _with_texts(known, per_callee),
        RankTimes(
            _with_texts(known, own).select(*KEYS, "own_ns"), windows(rank_trace).height, _length_of_steps(rank_trace)
        ),
    )


def _sorted(per_line: pl.DataFrame, per_callee: pl.DataFrame, *, has_work: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sort lines by time, and callees by line and time; without device work, set the device columns to null."""
    longest = ["host_self_ns", "device_self_ns"]
    lines = per_line.sort(*longest, "line", descending=[True, True, False])
    places = lines.select("line", place=pl.int_range(pl.len()))
    placed = per_callee.join(places, on="line").sort("place", *longest, "callee", descending=[False, True, True, False])
    if has_work:
        return lines, placed
    nothing = {name: pl.lit(None, pl.Int64) for name in _DEVICE}
    return lines.with_columns(**nothing), placed.with_columns(device_self_ns=nothing["device_self_ns"])


def _described(known: HostLines, row: pl.Series) -> pl.DataFrame:
    """Return the line and the callee of each row, and whether it is backward work, waits or runs Python."""
    at = row.to_numpy()
    return pl.DataFrame(
        {
            "line": known.line[at],
            "callee": known.callee[at],
            "is_backward": known.is_backward[at],
            "is_wait": known.is_wait[at],
            "is_python": known.is_python[at],
        }
    )


def _described_work(known: HostLines, work: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the device work with the line that launched it, the frame of this line, and what this line called."""
    work = work.select("event_index", "start_ns", "end_ns", "device")
    row = of_work(rows, work)["row"]
    frame = pl.Series("frame", known.frame[row.to_numpy()])
    return work.hstack(_described(known, row)).with_columns(frame, _LENGTH)


def _host_sums(host: pl.DataFrame) -> pl.DataFrame:
    ns = pl.col("ns")
    return host.group_by("line").agg(
        ns.sum().alias("host_self_ns"),
        ns.filter(pl.col("is_python") & ~pl.col("is_wait")).sum().alias("host_python_ns"),
        ns.filter("is_wait").sum().alias("host_blocked_ns"),
        ns.filter("is_backward").sum().alias("backward_host_self_ns"),
    )


def _device_sums(work: pl.DataFrame) -> pl.DataFrame:
    sums = work.group_by("line").agg(
        pl.col("ns").sum().alias("device_self_ns"),
        pl.col("ns").filter("is_backward").sum().alias("backward_device_self_ns"),
    )
    devices, device = np.unique(work["device"].to_numpy(), return_inverse=True)
    lines, line = np.unique(work["line"].to_numpy(), return_inverse=True)
    extents = work["start_ns"].to_numpy(), work["end_ns"].to_numpy()
    busy = covered_by_number(line * len(devices) + device, *extents, len(lines) * len(devices))
    per_line = pl.DataFrame({"line": lines, "device_self_busy_ns": busy.reshape(len(lines), len(devices)).sum(axis=1)})
    return sums.join(per_line.cast(pl.Int64), on="line")


def _frame_sums(known: HostLines, work: pl.DataFrame) -> pl.DataFrame:
    """Return the number of calls of each line, and its times from call to return.

    The times of recursive calls are part of the outermost call, and are not added again.
    """
    is_python = (known.ranges["kind"] == EventKind.PYTHON_FUNCTION).to_numpy()
    rows = np.flatnonzero(is_python & (known.frame[:-1] == np.arange(len(known.ranges))))
    track, start, end = (known.ranges[name].to_numpy()[rows] for name in ("track_id", "start_ns", "end_ns"))
    launched = np.zeros(len(known.ranges), np.int64)
    of_frame = work["frame"].to_numpy()
    np.add.at(launched, of_frame[of_frame != NO_PARENT], work["ns"].to_numpy()[of_frame != NO_PARENT])
    frames = pl.DataFrame(
        {
            "line": known.line[rows],
            "host_total_ns": end - start,
            "device_total_ns": subtree_sums(nesting(track, start, end).parent, launched[rows]),
            "is_outermost": _is_outermost(known.line[rows], track, start, end),
        },
        schema_overrides={"line": pl.Int64},
    )
    return frames.group_by("line").agg(
        pl.len().cast(pl.Int64).alias("call_count"),
        *(pl.col(name).filter("is_outermost").sum() for name in ("host_total_ns", "device_total_ns")),
    )


def _is_outermost(line: _Rows, track: npt.NDArray[np.integer], start: _Rows, end: _Rows) -> npt.NDArray[np.bool_]:
    """Return, for each call, whether it is the outermost one: not inside another call of the same line."""
    group = np.unique(np.stack([line, track.astype(np.int64)]), axis=1, return_inverse=True)[1].reshape(-1)
    outermost: npt.NDArray[np.bool_] = nesting(group, start, end).parent == NO_PARENT
    return outermost


def _per_callee(known: HostLines, host: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Return the times of each pair of a line and a callee; a callee is a row number in `known.ranges`."""
    rows = np.arange(len(known.ranges))
    begun = rows[known.callee[:-1] == rows]
    parts = (
        host.select("line", "callee", host_self_ns="ns", host_blocked_ns=pl.when("is_wait").then("ns").otherwise(0)),
        work.select("line", "callee", device_self_ns="ns"),
        pl.DataFrame({"line": known.line[begun], "callee": begun}).with_columns(call_count=pl.lit(1, pl.Int64)),
    )
    return pl.concat(parts, how="diagonal").group_by("line", "callee").agg(pl.col(*CALLEE_SUMS).sum())


def _named_callees(rank_trace: RankTrace, known: HostLines, table: pl.DataFrame) -> pl.DataFrame:
    """Replace the row number in `callee` by the callee's name, and add up rows with the same line and name.

    Names are shown without addresses and module numbers.
    """
    names = gathered(known.ranges["name"], table["callee"].to_numpy())
    distinct = names.unique().drop_nulls()
    texts = pl.DataFrame({"name": distinct, "text": shown_names(rank_trace.texts(distinct))})
    named = table.with_columns(names.alias("name")).join(texts, on="name", how="left", maintain_order="left")
    sums = [column for column in table.columns if column not in ("line", "callee")]
    totals = named.group_by("line", pl.col("text").alias("callee")).agg(pl.col(sums).sum())
    if "call_count" in sums:
        totals = totals.with_columns(pl.when(pl.col("callee").is_not_null()).then("call_count").alias("call_count"))
    return totals


def _callees(per_callee: pl.DataFrame) -> pl.DataFrame:
    longest = per_callee.drop_nulls("callee").sort("host_self_ns", "callee", descending=[True, False])
    named = longest.filter(pl.col("host_self_ns") > 0).group_by("line", maintain_order=True)
    return named.agg(pl.col("callee").head(_CALLEES_NAMED).str.join("; ").alias("callees"))


def _in_steps(rank_trace: RankTrace, host: pl.DataFrame) -> pl.DataFrame:
    """Return the parts of the host times that are inside steps."""
    steps = windows(rank_trace)
    begin, finish = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    parts = [host.clear()]
    for of_track in host.partition_by("track_id", maintain_order=True):
        cut = clipped(of_track["start_ns"].to_numpy(), of_track["end_ns"].to_numpy(), begin, finish)
        inside = of_track[cut.interval]
        parts.append(inside.with_columns(pl.Series("start_ns", cut.start), pl.Series("end_ns", cut.end)))
    return pl.concat(parts).with_columns(_LENGTH)


def _length_of_steps(rank_trace: RankTrace) -> int:
    steps = windows(rank_trace)
    return covered_length(steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy())


def _step_fractions(rank_trace: RankTrace, in_steps: pl.DataFrame) -> pl.DataFrame:
    lines, line = np.unique(in_steps["line"].to_numpy(), return_inverse=True)
    covered = covered_by_number(line, *intervals_of(in_steps), len(lines))
    fraction = covered / max(1, _length_of_steps(rank_trace))
    return pl.DataFrame({"line": lines, "step_fraction": fraction}, schema_overrides={"line": pl.Int64})


def _joined(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Join sums by line, and drop lines whose sums are all 0.

    Missing sums become 0, except in columns that need recorded Python functions.
    """
    joined = tables[0]
    for table in tables[1:]:
        joined = joined.join(table, on="line", how="full", coalesce=True)
    of_all = [name for name in LINE_SUMS if name not in _OF_FRAMES]
    known = joined.with_columns(pl.col(*of_all).fill_null(0), pl.col("step_fraction").fill_null(0.0))
    return known.filter(pl.any_horizontal(pl.col(*LINE_SUMS) > 0))


def _with_texts(known: HostLines, table: pl.DataFrame) -> pl.DataFrame:
    """Replace the row number in `line` by the line's file, line number and function."""
    rows = table["line"].to_numpy()
    return table.with_columns(gathered(known.lines[name], rows) for name in ("file", "line", "function"))
