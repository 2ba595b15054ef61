"""A copy of a trace in which the most frequent kernel sequences are marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from hta.analyses.kernel_sequences import sequence_calls, sequence_patterns, sequence_work
from hta.export.chrome_trace import rewritten
from hta.export.new_file import expect_writable_folder
from hta.locations import Location, name_of

if TYPE_CHECKING:
    from hta.store.trace import RankTrace

MARK = "Patterns"
"""The arg of marked events: `{pattern: count}`."""

_SPAN = "PyTorch Profiler"
_ZSTD_ENDINGS = (".zst", ".zstd")

LONGEST_LABEL = 1_000
"""Characters of a pattern that are written into each event; a sequence of thousands of kernels is half a MiB long."""

_UNMARKED = -1


class _Marks(NamedTuple):
    """What to write into the args of which event: the row in `labels` of each event, `_UNMARKED` for most."""

    places: list[int]
    labels: list[dict[str, int]]

    def of(self, event_index: int) -> dict[str, int] | None:
        """Return what to write into this event."""
        place = self.places[event_index] if event_index < len(self.places) else _UNMARKED
        return None if place == _UNMARKED else self.labels[place]


def overlaid_name(source: str, copy: int = 1) -> str:
    """Return the name of the copy of a file: `overlaid_<name>`, of further copies `overlaid_2_<name>` and so on.

    A later `open_trace` of the folder leaves these names out. A copy of a zstd file is compressed with gzip.
    """
    name = name_of(source)
    stem = next((f"{name.removesuffix(ending)}.gz" for ending in _ZSTD_ENDINGS if name.endswith(ending)), name)
    return f"overlaid_{stem}" if copy == 1 else f"overlaid_{copy}_{stem}"


def free_overlaid_path(source: str, folder: Location) -> Location:
    """Return the first path for a copy in the folder that is not taken.

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
    """Copy a rank's file and mark the calls of its most frequent kernel sequences, their launches and their kernels.

    A marked event has the arg `Patterns`, `{pattern: count}`; of a pattern longer than `LONGEST_LABEL` the beginning.
    The file is read event by event, so that one of any size takes little memory.

    Args:
        rank_trace: whose file.
        target: where to write; compressed where the name ends in `.gz`.
        operator_name: see `hta.kernel_sequences`, as for `min_kernel_count`.
        min_kernel_count: calls with fewer kernels are not marked.
        top_count: how many sequences to mark, the most frequent first.
        compress_others: leave out the args of all other events with a duration and replace their names by numbers,
            which the args of the event `PyTorch Profiler` explain; what is marked stays as it is.
        overwrite: replace what is there.

    Raises:
        InvalidOptionError: the target exists and may not be replaced, or its folder is missing or cannot be written.
        UnreadableTraceError: the file can no longer be read.
    """
    marks = _marks(rank_trace, operator_name, min_kernel_count, top_count)
    overlay = _Overlay(marks, _numbers_of_names(rank_trace) if compress_others else None)
    rewritten(rank_trace.source, target, overlay.changed, overlay.missing_span(), overwrite=overwrite)


def _marks(rank_trace: RankTrace, operator_name: str | None, min_kernel_count: int, top_count: int) -> _Marks:
    calls = sequence_calls(rank_trace, operator_name=operator_name, min_kernel_count=min_kernel_count)
    patterns = sequence_patterns(rank_trace, calls).head(top_count).with_row_index("place")
    chosen = calls.join(patterns.select("name", "sequence", "place"), on=["name", "sequence"])
    work = sequence_work(rank_trace, operator_name=operator_name)
    marked = work.join(chosen.select("operator_index", "place"), on="operator_index")
    indexes = pl.concat([chosen["operator_index"], marked["event_index"], marked["launch_index"]]).to_numpy()
    places = np.full(int(indexes.max(initial=0)) + 1, _UNMARKED, np.int32)
    places[indexes] = pl.concat([chosen["place"], marked["place"], marked["place"]]).to_numpy()
    return _Marks(places.tolist(), [{_label(row): row["count"]} for row in patterns.iter_rows(named=True)])


def _label(row: dict[str, Any]) -> str:
    """Return a pattern, of a long one the beginning: it stands in every event that is marked."""
    pattern: str = row["pattern"]
    if len(pattern) <= LONGEST_LABEL:
        return pattern
    return f"{pattern[:LONGEST_LABEL]} ... (sequence {row['place'] + 1}, {row['kernel_count']:,} kernels)"


def _numbers_of_names(rank_trace: RankTrace) -> dict[str, str]:
    """Return the string id of every name of an event, as text."""
    ids = rank_trace.unselected.table("events", ["name"])["name"].unique().sort()
    return dict(zip(rank_trace.texts(ids).to_list(), ids.cast(pl.String).to_list(), strict=True))


class _Overlay:
    """Marks some events, and shortens others."""

    def __init__(self, marks: _Marks, numbers: Mapping[str, str] | None) -> None:
        self._marks = marks
        self._numbers = numbers
        self._index = -1
        self._has_span = False

    def changed(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the next event of the file as it is to be written."""
        self._index += 1
        if (mark := self._marks.of(self._index)) is not None:
            return {**event, "args": {**_args_of(event), MARK: mark}}
        if self._numbers is None or event.get("ph") != "X":
            return event
        if event.get("pid") == "Spans" and str(event.get("name", "")).startswith(_SPAN):
            self._has_span = True
            return {**event, "args": {**_args_of(event), **self._names()}}
        return self._shortened(event)

    def missing_span(self) -> Iterator[dict[str, Any]]:
        """Yield the event that explains the numbers, where the file has none that could."""
        if self._numbers is not None and not self._has_span:
            place = {"ph": "X", "cat": "Trace", "name": _SPAN, "pid": "Spans", "tid": _SPAN, "ts": 0, "dur": 0}
            yield {**place, "args": self._names()}

    def _shortened(self, event: dict[str, Any]) -> dict[str, Any]:
        name = event.get("name")
        number = (self._numbers or {}).get(name, name) if isinstance(name, str) else name
        return {**event, "name": number, "args": {}}

    def _names(self) -> dict[str, str]:
        return {number: name for name, number in (self._numbers or {}).items()}


def _args_of(event: dict[str, Any]) -> dict[str, Any]:
    args = event.get("args")
    return args if isinstance(args, dict) else {}
