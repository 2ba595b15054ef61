"""A copy of a trace with the most frequent kernel sequences marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from holotrace.analyses.kernel_sequences.compute import sequence_calls, sequence_patterns, sequence_work
from holotrace.export.chrome_trace import KEPT, MARKED, NUMBERED, Edits, edited
from holotrace.export.event_json import event_text
from holotrace.locations import Location, expect_writable_folder, name_of
from holotrace.store.trace import RankTrace
from holotrace.units import counted

MARK = "Patterns"
"""Marked events have this arg, with the value `{pattern: count}`."""

_SPAN, _SPANS_PROCESS = "PyTorch Profiler", "Spans"
_SPAN_EVENT = {"ph": "X", "cat": "Trace", "name": _SPAN, "pid": _SPANS_PROCESS, "tid": _SPAN, "ts": 0, "dur": 0}
_ZSTD_ENDINGS = (".zst", ".zstd")

LONGEST_LABEL = 1_000
"""Maximum length of a pattern in characters. Without a limit, a pattern could add half a MiB to every marked event."""


def overlaid_name(source: str, copy: int = 1) -> str:
    """Return the name of a copy: `overlaid_<name>`, then `overlaid_2_<name>` and so on.

    When `open_trace` opens a folder, it skips files with such names. A copy of a zstd file is compressed with gzip.
    """
    name = name_of(source)
    stem = next((f"{name.removesuffix(ending)}.gz" for ending in _ZSTD_ENDINGS if name.endswith(ending)), name)
    return f"overlaid_{stem}" if copy == 1 else f"overlaid_{copy}_{stem}"


def free_overlaid_path(source: str, folder: Location) -> Location:
    """Return the first free path for a copy in the folder.

    Raises:
        InvalidOptionError: the folder is missing or cannot be written.
    """
    expect_writable_folder(folder)
    copy = 1
    while (path := folder / overlaid_name(source, copy)).exists():
        copy += 1
    return path


def write_overlaid_trace(  # noqa: PLR0913 -- what to mark, and where to write
    rank_trace: RankTrace,
    target: Location,
    *,
    operator_name: str | None = None,
    min_kernel_count: int = 3,
    top_count: int = 5,
    compress_others: bool = True,
    overwrite: bool = False,
) -> None:
    """Copy a rank's file and mark the calls, launches and kernels of its most frequent kernel sequences.

    A marked event has the arg `Patterns` with the value `{pattern: count}`; patterns longer than `LONGEST_LABEL` are shortened.
    Unless `compress_others` is set, all other events are copied byte by byte. Even large files need little memory.

    Args:
        rank_trace: the rank.
        target: where to write; compressed if the name ends in `.gz`.
        operator_name: see `holotrace.kernel_sequences`.
        min_kernel_count: the minimum number of kernels in a marked call; see `holotrace.kernel_sequences`.
        top_count: how many sequences to mark, the most frequent first.
        compress_others: drop the args of all unmarked events that have a duration, and replace the names of these
            events by numbers. The args of the event `PyTorch Profiler` then map the numbers to the names.
        overwrite: replace an existing file.

    Raises:
        InvalidOptionError: the target exists and may not be replaced, or its folder is missing or cannot be written.
        UnreadableTraceError: the file can no longer be read.
    """
    edits = _marks(rank_trace, operator_name, min_kernel_count, top_count)
    names = _names(rank_trace) if compress_others else None
    if names is None:
        edited(rank_trace, target, edits, overwrite=overwrite)
        return
    spans = _spans(rank_trace, names)
    missing = [] if len(spans) else [{**_SPAN_EVENT, "args": _by_number(names)}]
    edited(rank_trace, target, _shortened(rank_trace, edits, spans, names), missing, overwrite=overwrite)


def _marks(rank_trace: RankTrace, operator_name: str | None, min_kernel_count: int, top_count: int) -> Edits:
    """Mark the calls, launches and kernels of the most frequent sequences; keep all other events."""
    calls = sequence_calls(rank_trace, operator_name=operator_name, min_kernel_count=min_kernel_count)
    patterns = sequence_patterns(rank_trace, calls).head(top_count).with_row_index("place")
    chosen = calls.join(patterns.select("name", "sequence", "place"), on=["name", "sequence"])
    work = sequence_work(rank_trace, operator_name=operator_name)
    marked = work.join(chosen.select("operator_index", "place"), on="operator_index")
    indexes = pl.concat([chosen["operator_index"], marked["event_index"], marked["launch_index"]]).to_numpy()
    count = rank_trace.health.event_count
    fates, values = np.full(count, KEPT, np.uint8), np.zeros(count, np.uint32)
    fates[indexes] = MARKED
    values[indexes] = pl.concat([chosen["place"], marked["place"], marked["place"]]).to_numpy()
    labels = [{MARK: {_label(row): row["call_count"]}} for row in patterns.iter_rows(named=True)]
    return Edits(fates, values, [_inner(label) for label in labels])


def _shortened(rank_trace: RankTrace, edits: Edits, spans: pl.Series, names: pl.DataFrame) -> Edits:
    """Replace the names of unmarked events by numbers, and list these names in the args of the profiler's spans."""
    events = rank_trace.unselected.table("events", ["event_index", "name"])
    others = events.filter(pl.Series(edits.fates[events["event_index"].to_numpy()] == KEPT))
    indexes = others["event_index"].to_numpy()
    edits.fates[indexes], edits.values[indexes] = NUMBERED, others["name"].to_numpy()
    explaining = spans.filter(pl.Series(edits.fates[spans.to_numpy()] == NUMBERED)).to_numpy()
    edits.fates[explaining], edits.values[explaining] = MARKED, len(edits.texts)
    return edits._replace(texts=[*edits.texts, _inner(_by_number(names))])


def _label(row: dict[str, Any]) -> str:
    """Return the row's pattern, shortened if it is long, because every marked event repeats it."""
    pattern: str = row["pattern"]
    if len(pattern) <= LONGEST_LABEL:
        return pattern
    return f"{pattern[:LONGEST_LABEL]} ... (sequence {row['place'] + 1}, {counted(row['kernel_count_per_call'], 'kernel')})"


def _names(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the number and text of every event name."""
    ids = rank_trace.unselected.table("events", ["name"])["name"].unique().sort()
    return pl.DataFrame({"name": ids, "text": rank_trace.texts(ids)})


def _spans(rank_trace: RankTrace, names: pl.DataFrame) -> pl.Series:
    """Return the `event_index` of the spans that the profiler writes for the whole recording."""
    tracks = rank_trace.unselected.table("tracks", ["track_id", "process_text"])
    places = tracks.filter(pl.Series(rank_trace.texts(tracks["process_text"]) == _SPANS_PROCESS))["track_id"]
    called = names.filter(pl.col("text").str.starts_with(_SPAN))["name"]
    events = rank_trace.unselected.table("events", ["event_index", "name", "track_id"])
    is_span = pl.col("name").is_in(called.implode()) & pl.col("track_id").is_in(places.implode())
    return events.filter(is_span)["event_index"]


def _by_number(names: pl.DataFrame) -> dict[str, str]:
    return {str(number): text for number, text in names.iter_rows()}


def _inner(args: Mapping[str, Any]) -> str:
    """Return args as JSON, without the braces."""
    return event_text(args)[1:-1]
