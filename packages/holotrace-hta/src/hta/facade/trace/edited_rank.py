"""A rank whose events come from a frame, so that changes to `analyzer.t.traces` affect every analysis.

The time, name, category, track, stream and correlation of an event come from the frame. Its args and flow arrows come
from the recorded event with the row's `index`; a row without a recorded event has neither. Events that frames do not
list, such as memory events, stay as recorded. But if a script shifts all listed events by the same time, the unlisted
events are shifted too.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from holotrace.enrich.job.job_time import RANGES
from holotrace.enrich.steps.step_of_event import step_of_event
from holotrace.errors import InvalidOptionError
from holotrace.execution.progress import SILENT
from holotrace.ingest.kineto import KinetoReader
from holotrace.store.header import Header
from holotrace.store.health import Health
from holotrace.store.tables.arrow_tables import MemoryTables, empty_table, known_columns, table_types
from holotrace.store.trace import RankFile, RankTrace
from holotrace.units import counted
from hta.facade.trace.symbols import TraceSymbolTable
from hta.facade.trace.trace_frame import STREAM_KINDS, partners

_NEEDED = ("cat", "name", "ts", "dur")
_NOTHING = -1
_NS_OF_A_MICROSECOND = 1_000
_MOST_EVENTS = 1 << 32
_DEVICE_KINDS = [kind.value for kind in STREAM_KINDS]
_COPIES = {"bytes": ("bytes", -1), "memory_bw_gbps": ("bandwidth_gb_per_s", 0)}
"""Maps each frame column to its column in the table `copies` and to the frame's value for a null in that column."""
_UNFINDABLE = (
    "the column {column} in the frame of rank {rank} was changed, but analyses cannot use this change: {way_out}"
)

_Numbers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


def edited_rank(
    rank: int, frame: pd.DataFrame, recorded: RankTrace | None, symbols: TraceSymbolTable, origin_ns: int
) -> RankTrace:
    """Return a rank with the events of a frame.

    Args:
        rank: the rank's number.
        frame: the events, with all or some columns of `trace_frame`, at least cat, name, ts and dur.
        recorded: the recorded rank; None for a rank without a file.
        symbols: maps the ids in `cat` and `name` to text; both columns may also contain text.
        origin_ns: the time at which `ts` is 0.

    Raises:
        InvalidOptionError: the frame lacks a column or contains an invalid time or id, or a script changed a column
            that analyses derive from other columns.
    """
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        message = f"the frame of rank {rank} has no column {missing[0]}; analyses need it"
        raise InvalidOptionError(message)
    return RankTrace(rank, _file_of(_Rows(rank, frame, recorded, symbols, origin_ns)))


def expect_steps_as_announced(rank_trace: RankTrace) -> None:
    """Check that a frame's column `iteration` agrees with its step events.

    Raises:
        InvalidOptionError: the column and the step events disagree.
    """
    file = rank_trace.file
    if not isinstance(file, EditedFile) or file.iterations is None:
        return
    steps = step_of_event(rank_trace).fill_null(_NOTHING).to_numpy()
    event_index = rank_trace.table("events", ["event_index"])["event_index"].to_numpy()
    shown = steps[np.searchsorted(event_index, file.iterations[0])]
    if (shown != file.iterations[1]).any():
        way_out = "change the ProfilerStep#N events instead, because they define the steps"
        raise InvalidOptionError(_UNFINDABLE.format(column="iteration", rank=rank_trace.rank, way_out=way_out))


def expect_events_of_file(rank_trace: RankTrace) -> None:
    """Check that a rank's file contains all events of its frame, before the file is copied.

    Raises:
        InvalidOptionError: the frame has events that are not in the file.
    """
    file = rank_trace.file
    if isinstance(file, EditedFile) and file.added_count:
        message = (
            f"the frame of rank {rank_trace.rank} has {counted(file.added_count, 'row')} without an event in the rank's file, "
            f"so a copy of the file cannot show all rows; drop such rows, or write a trace that contains them with write_raw_trace"
        )
        raise InvalidOptionError(message)


class EditedFile:
    """A `RankFile` with the tables of a rank, including the changes that a script made to the rank's frame."""

    def __init__(self, rows: _Rows, events: pl.DataFrame, event_numbers: _Numbers) -> None:
        """Build the tables; `event_numbers` is the event_index of each row of the frame."""
        recorded = rows.recorded
        self.path = f"the frame of rank {rows.rank}" if recorded is None else recorded.source
        self.iterations = None if rows.iteration is None else (event_numbers, rows.iteration)
        self._recorded: RankFile | None = None if recorded is None else recorded.file
        self._made = {"events": events, "tracks": rows.tracks.table(), "strings": rows.texts.table()}
        self.added_count = int((rows.source_index != event_numbers).sum())
        self._copies = _copied(event_numbers, rows.source_index)
        self._shift_ns = rows.shift_ns
        self._changed_copies = rows.changed_copies(event_numbers)

    @property
    def header(self) -> Header:
        """The header of the recording."""
        return Header.from_keys({}) if self._recorded is None else self._recorded.header

    @property
    def health(self) -> Health:
        """The health record of the recording."""
        if self._recorded is not None:
            return self._recorded.health
        return Health("plain", 0, 0, self._made["events"].height, {}, (), "")

    def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return columns of a table."""
        wanted = known_columns(name, columns)
        if name in self._made:
            return self._made[name].select(wanted)
        if name not in self._sides:
            self._sides[name] = self._side_table(name)
        return self._sides[name].select(wanted)

    def events_of(self, kinds: Sequence[int], columns: Sequence[str], names: pl.Series | None = None) -> pl.DataFrame:
        """Return some columns of the events that have these kinds and names."""
        wanted = known_columns("events", columns)
        return MemoryTables(self._made).read_events(wanted, [int(kind) for kind in kinds], names)

    def forget(self) -> None:
        """Free the recorded tables, but keep the changes that were made to the frame."""
        self._sides.clear()
        if self._recorded is not None:
            self._recorded.forget()

    @cached_property
    def _sides(self) -> dict[str, pl.DataFrame]:
        return {}

    def _side_table(self, name: str) -> pl.DataFrame:
        table = empty_table(name) if self._recorded is None else self._recorded.table(name)
        if self._shift_ns and "start_ns" in table.columns:
            table = table.with_columns(pl.col("start_ns") + self._shift_ns)
        if len(self._copies):
            copied = table.join(self._copies, left_on="event_index", right_on="source", how="inner")
            numbered = copied.with_columns(pl.col("copy").alias("event_index")).select(table.columns)
            table = pl.concat([table, numbered]).sort("event_index", maintain_order=True)
        return _with_changed(table, self._changed_copies) if name == "copies" else table


@dataclass
class _Texts:
    """The table `strings`: the recorded strings, and the new strings of an edited frame."""

    known: list[str]
    _numbers: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._numbers = {text: number for number, text in reversed(list(enumerate(self.known)))}

    def number(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.known)
            self.known.append(text)
        return self._numbers[text]

    def table(self) -> pl.DataFrame:
        return pl.DataFrame({"text": self.known}, schema=table_types("strings"))


class _Tracks:
    """The table `tracks`: the recorded tracks, and the tracks that a frame adds."""

    def __init__(self, recorded: pl.DataFrame, texts: _Texts) -> None:
        self._texts = texts
        self._rows = [row[1:] for row in recorded.iter_rows()]
        self._numbers = {row: number for number, row in enumerate(self._rows)}

    def numbers(self, process: _Codes, thread: _Codes) -> _Numbers:
        """Return the track of each row."""
        pairs, rows = np.unique(process.codes * len(thread.distinct) + thread.codes, return_inverse=True)
        distinct_rows = [divmod(pair, len(thread.distinct)) for pair in pairs.tolist()]
        tracks = [
            self._number(process.distinct[process_row], thread.distinct[thread_row])
            for process_row, thread_row in distinct_rows
        ]
        return np.array(tracks, np.int64)[rows]

    def table(self) -> pl.DataFrame:
        rows = [(number, *row) for number, row in enumerate(self._rows)]
        return pl.DataFrame(rows, schema=table_types("tracks"), orient="row")

    def _number(self, process: object, thread: object) -> int:
        row = (*self._half(process), *self._half(thread))
        if row not in self._numbers:
            self._numbers[row] = len(self._rows)
            self._rows.append(row)
        return self._numbers[row]

    def _half(self, value: object) -> tuple[int | None, int | None]:
        """Return a `pid` or `tid` as an integer, or as a string id if it is text."""
        if isinstance(value, (int, float, np.integer, np.floating)) and float(value).is_integer():
            return int(value), None
        return None, self._texts.number(str(value))


@dataclass(frozen=True)
class _Codes:
    """A column, stored as indices into its distinct values."""

    codes: _Numbers
    distinct: list[Any]

    @classmethod
    def of(cls, column: pd.Series) -> _Codes:
        codes, values = pd.factorize(column, use_na_sentinel=False)
        return cls(codes.astype(np.int64), list(values))

    def mapped(self, number: Callable[[Any], int]) -> _Numbers:
        """Apply a function to each value, calling it once per distinct value."""
        return np.array([number(value) for value in self.distinct] or [0], np.int64)[self.codes]


class _Rows:
    """The rows of a frame, matched with recorded events."""

    def __init__(
        self,
        rank: int,
        frame: pd.DataFrame,
        recorded: RankTrace | None,
        symbols: TraceSymbolTable,
        origin_ns: int,
    ) -> None:
        self.rank, self.recorded = rank, recorded
        self._frame, self._symbols, self._origin_ns = frame, symbols.get_sym_table(), origin_ns
        self._events = empty_table("events") if recorded is None else recorded.unselected.table("events")
        self.texts = _Texts([] if recorded is None else recorded.unselected.strings.to_list())
        self.tracks = _Tracks(empty_table("tracks") if recorded is None else recorded.table("tracks"), self.texts)
        self._category, self._name = (self._texts_of(column) for column in ("cat", "name"))
        self._source = self._sources()
        self._refuse_changed_derived_columns()

    @property
    def given_index(self) -> _Numbers:
        """The column `index`, or -1 for each row if the frame has no such column."""
        has_any = "index" in self._frame.columns
        return self._whole_numbers("index") if has_any else np.full(len(self._frame), _NOTHING)

    @property
    def source_index(self) -> _Numbers:
        """The event_index of each row's recorded event, or -1 if there is none."""
        return self._recorded_values("event_index", _NOTHING)

    @property
    def iteration(self) -> _Numbers | None:
        """The column `iteration`, or None if the frame lacks it."""
        return self._whole_numbers("iteration") if "iteration" in self._frame.columns else None

    @cached_property
    def shift_ns(self) -> int:
        """The time by which all recorded events were shifted; 0 if they were shifted by different times."""
        is_known = self._is_known
        moved = np.unique((self._start_ns - self._recorded_values("start_ns", 0))[is_known])
        return int(moved[0]) if len(moved) == 1 else 0

    def table(self) -> pl.DataFrame:
        """Return the frame's rows, in the frame's order, with the columns of `events` except event_index."""
        process, thread = (self._track_part(column) for column in ("pid", "tid"))
        track = self._track_numbers(process, thread)
        kind = self._kinds()
        columns = {
            "start_ns": pl.Series(self._start_ns),
            "duration_ns": pl.Series(self._duration_ns),
            "kind": pl.Series(kind),
            "category": pl.Series(self._category),
            "name": pl.Series(self._name),
            "track_id": pl.Series(track),
            "device": self._device(kind, process),
            "stream": self._link("stream", self._shown_streams),
            "correlation": self._link("correlation"),
            "external_id": self._link("external_id"),
        }
        types = table_types("events")
        return pl.DataFrame({name: column.cast(types[name]) for name, column in columns.items()})

    def changed_copies(self, event_numbers: _Numbers) -> pl.DataFrame:
        """Return event_index, size and bandwidth of the copies whose size or bandwidth was changed.

        Unchanged values are null; a column that the frame lacks is left out.
        """
        recorded = empty_table("copies") if self.recorded is None else self.recorded.table("copies")
        row_of_event = {number: row for row, number in enumerate(recorded["event_index"].to_list())}
        rows = np.array([row_of_event.get(number, _NOTHING) for number in self.source_index.tolist()], np.int64)
        columns: dict[str, pl.Series] = {"event_index": pl.Series(event_numbers).cast(pl.UInt32)}
        for shown, (stored, missing) in _COPIES.items():
            if shown in self._frame.columns:
                known = np.append(recorded[stored].fill_null(missing).to_numpy(), missing)[rows]
                given = self._numbers(shown)
                columns[stored] = pl.Series(given).set(pl.Series(given == known), None)
        changed = pl.DataFrame(columns)
        return changed.filter(~pl.all_horizontal(pl.exclude("event_index").is_null()))

    @cached_property
    def _is_known(self) -> _Flags:
        return self._source >= 0

    @cached_property
    def _start_ns(self) -> _Numbers:
        """Return starts in ns; if the frame's start is unedited, use the recorded start, which has all digits."""
        given = self._numbers("ts")
        recorded = self._recorded_values("start_ns", 0)
        is_same = self._is_known & (given == (recorded - self._origin_ns) / _NS_OF_A_MICROSECOND)
        return np.where(is_same, recorded, self._origin_ns + _nanoseconds(given))

    @cached_property
    def _duration_ns(self) -> _Numbers:
        given = self._numbers("dur")
        if (given < 0).any():
            message = (
                f"the frame of rank {self.rank} has negative durations in {counted(int((given < 0).sum()), 'row')}"
            )
            raise InvalidOptionError(message)
        recorded = self._recorded_values("duration_ns", 0)
        is_same = self._is_known & (given == recorded / _NS_OF_A_MICROSECOND)
        return np.where(is_same, recorded, _nanoseconds(given))

    @cached_property
    def _shown_streams(self) -> pl.Series:
        """The recorded stream of each event, as a frame shows it: null for host events."""
        return self._events.select(pl.when(pl.col("kind").is_in(_DEVICE_KINDS)).then("stream"))["stream"]

    def _sources(self) -> _Numbers:
        """Return, for each row of the frame, the row number of its recorded event, or -1 if there is none.

        A row matches the recorded event with its `index` if they have the same category and either the same name or the
        same start.
        """
        numbers = self.given_index
        known = self._events["event_index"].to_numpy()
        if not len(known):
            return np.full(len(numbers), _NOTHING)
        rows = np.searchsorted(known, np.clip(numbers, 0, _MOST_EVENTS - 1))
        rows = np.minimum(rows, len(known) - 1)
        category, name, start_ns = (
            self._events[column].cast(pl.Int64).fill_null(_NOTHING).to_numpy()[rows]
            for column in ("category", "name", "start_ns")
        )
        shown = (start_ns - self._origin_ns) / _NS_OF_A_MICROSECOND
        is_like = (name == self._name) | (shown == self._numbers("ts"))
        is_same = (known[rows] == numbers) & (category == self._category) & is_like
        return np.where(is_same, rows, _NOTHING)

    def _recorded_values(self, column: str, missing: int) -> _Numbers:
        values = self._events[column].cast(pl.Int64).fill_null(_NOTHING).to_numpy()
        return np.append(values, missing)[self._source]  # rows without a recorded event get `missing`

    def _texts_of(self, column: str) -> _Numbers:
        """Return the string id of each value in a column of texts or symbol ids."""
        return _Codes.of(self._frame[column]).mapped(lambda value: self.texts.number(self._text(column, value)))

    def _text(self, column: str, value: object) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, (int, np.integer)) and 0 <= value < len(self._symbols):
            return self._symbols[int(value)]
        message = f"the column {column} of rank {self.rank} contains {value!r}, which is neither text nor an id of symbol_table"
        raise InvalidOptionError(message)

    def _kinds(self) -> npt.NDArray[np.uint8]:
        """Return the kind of each event, derived from its category."""
        distinct, rows = np.unique(self._category, return_inverse=True)
        return _kinds_of([self.texts.known[number] for number in distinct.tolist()])[rows]

    def _track_part(self, column: str) -> _Codes | None:
        return _Codes.of(self._frame[column]) if column in self._frame.columns else None

    def _track_numbers(self, process: _Codes | None, thread: _Codes | None) -> _Numbers:
        if process is None or thread is None:
            return self._recorded_values("track_id", self.tracks.numbers(_zeros(1), _zeros(1))[0])
        return self.tracks.numbers(process, thread)

    def _device(self, kind: npt.NDArray[np.uint8], process: _Codes | None) -> pl.Series:
        """Return the recorded device of each row or, for device work that a script added, the row's `pid`."""
        recorded = self._gathered(self._events["device"])
        if process is None:
            return recorded
        is_new = ~self._is_known & np.isin(kind, _DEVICE_KINDS)
        numbers = pl.Series(process.mapped(_device_number), dtype=pl.Int64).cast(pl.Int32, strict=False)
        devices = pl.select(pl.when(pl.Series(is_new)).then(numbers).otherwise(recorded)).to_series()
        return devices.replace(_NOTHING, None)

    def _link(self, column: str, shown: pl.Series | None = None) -> pl.Series:
        """Return an integer column: recorded values in unchanged rows, frame values (-1 as null) in others."""
        recorded = self._gathered(self._events[column])
        if column not in self._frame.columns:
            return recorded
        as_shown = recorded if shown is None else self._gathered(shown)
        given = pl.Series(self._whole_numbers(column))
        is_same = pl.Series(self._is_known) & (given == as_shown.fill_null(_NOTHING))
        changed = given.set(given == _NOTHING, None)
        return pl.select(pl.when(is_same).then(recorded.cast(pl.Int64)).otherwise(changed)).to_series()

    def _gathered(self, column: pl.Series) -> pl.Series:
        """Return the value of each row's recorded event, or null for rows without a recorded event."""
        return column.gather(pl.Series(self._source).cast(pl.UInt32, strict=False))

    def _numbers(self, column: str) -> npt.NDArray[np.float64]:
        values: npt.NDArray[np.float64] = pd.to_numeric(self._frame[column], errors="coerce").to_numpy(np.float64)
        if not np.isfinite(values).all():
            invalid = counted(int((~np.isfinite(values)).sum()), "value")
            message = f"the column {column} of rank {self.rank} contains {invalid} other than finite numbers"
            raise InvalidOptionError(message)
        return values

    def _whole_numbers(self, column: str) -> _Numbers:
        return self._numbers(column).astype(np.int64)

    def _refuse_changed_derived_columns(self) -> None:
        """Raise an error if a script changed a derived column."""
        for column, way_out in (
            ("end", "change ts and dur instead, because end is computed from them"),
            ("index_correlation", "change correlation instead, for both the launch call and its device work"),
        ):
            if column in self._frame.columns and self._is_changed_alone(column):
                raise InvalidOptionError(_UNFINDABLE.format(column=column, rank=self.rank, way_out=way_out))

    def _is_changed_alone(self, column: str) -> bool:
        """Return whether a derived column has changed although the columns from which it is derived have not."""
        given = self._numbers(column)
        start, duration, correlation = (
            self._recorded_values(name, 0) for name in ("start_ns", "duration_ns", "correlation")
        )
        if column == "end":
            follows = (start + duration - self._origin_ns) / _NS_OF_A_MICROSECOND
            is_as_recorded = (self._start_ns == start) & (self._duration_ns == duration)
        else:
            follows = self._partners().astype(np.float64)
            is_as_recorded = self._whole_numbers("correlation") == correlation
        return bool((self._is_known & is_as_recorded & (given != follows)).any())

    def _partners(self) -> _Numbers:
        """Return the values of `index_correlation` in the recording, for comparison with those in the frame.

        A script may have loaded all steps or only the selected ones. If only some steps are selected, a launch call may
        be selected without its kernel, so that its `index_correlation` is -1. If a row of the frame contains the
        value computed from the selected events, this value is returned for the row. Otherwise, the value computed from
        all events of the file is returned.
        """
        given = self._whole_numbers("index_correlation")
        if self.recorded is None:
            return given
        numbers = self._events["event_index"].to_numpy()
        selected, whole = (
            np.append(partners(view, numbers), _NOTHING)[self._source]
            for view in (self.recorded, self.recorded.unselected)
        )
        return np.where(given == selected, selected, whole)


def _file_of(rows: _Rows) -> EditedFile:
    table = rows.table()
    numbers = _event_numbers(rows.source_index, rows.given_index, _first_free(rows.recorded))
    listed = table.with_columns(pl.Series("event_index", numbers).cast(pl.UInt32)).select(table_types("events").names())
    events = pl.concat([listed, _unlisted(rows)]).sort("event_index").rechunk()
    return EditedFile(rows, events, numbers)


def _unlisted(rows: _Rows) -> pl.DataFrame:
    """Return the recorded events that frames never list, such as instants; their starts are shifted by `shift_ns`."""
    if rows.recorded is None:
        return empty_table("events")
    is_listed = pl.col("kind").is_in([kind.value for kind in RANGES]) & pl.col("category").is_not_null()
    unlisted = rows.recorded.table("events").filter(~is_listed)
    return unlisted.with_columns(pl.col("start_ns") + rows.shift_ns)


def _first_free(recorded: RankTrace | None) -> int:
    return 0 if recorded is None else recorded.health.event_count


def _event_numbers(source_index: _Numbers, given: _Numbers, first_free: int) -> _Numbers:
    """Return the event_index of each row: the number of the row's recorded event, if there is one.

    A row without a recorded event keeps its `index`, unless a recorded event already has that number. If several
    rows would get the same number, only the first of them gets it. All other rows get new numbers.
    """
    wanted = np.where(source_index >= 0, source_index, given)
    _, first = np.unique(wanted, return_index=True)
    is_own = np.zeros(len(wanted), np.bool_)
    is_own[first] = True
    is_own &= (source_index >= 0) | (given >= first_free)
    fresh = max(first_free, 1 + int(wanted[is_own].max(initial=-1))) + np.cumsum(~is_own) - 1
    return np.where(is_own, wanted, fresh)


def _copied(event_numbers: _Numbers, source_index: _Numbers) -> pl.DataFrame:
    """Return the event_index of each row that duplicates a recorded event (`copy`), and of that event (`source`)."""
    is_copy = (source_index >= 0) & (event_numbers != source_index)
    pairs = {"source": source_index[is_copy], "copy": event_numbers[is_copy]}
    return pl.DataFrame(pairs).cast(pl.UInt32)


def _with_changed(copies: pl.DataFrame, changed: pl.DataFrame) -> pl.DataFrame:
    """Return the table `copies` after applying the sizes and bandwidths that were changed in a frame."""
    named = [name for name in changed.columns if name != "event_index"]
    if changed.is_empty() or not named:
        return copies
    both = copies.join(changed, on="event_index", how="full", coalesce=True, suffix="_given")
    filled = [pl.coalesce(f"{name}_given", name).cast(copies.schema[name]).alias(name) for name in named]
    return both.with_columns(filled).select(copies.columns).sort("event_index")


def _kinds_of(categories: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Return the event kind that the reader assigns to each category."""
    events = [
        {"ph": "X", "cat": category, "name": "", "ts": 0, "dur": 0, "pid": 0, "tid": 0} for category in categories
    ]
    with tempfile.TemporaryDirectory(prefix="holotrace-") as folder:
        path = Path(folder, "categories.json")
        path.write_text(json.dumps({"traceEvents": events}))
        ingested = KinetoReader().read(path, None, SILENT)
    kinds: npt.NDArray[np.uint8] = ingested.tables.read("events", ["kind"])["kind"].to_numpy()
    return kinds


def _nanoseconds(times: npt.NDArray[np.float64]) -> _Numbers:
    return np.round(times * _NS_OF_A_MICROSECOND).astype(np.int64)


def _zeros(count: int) -> _Codes:
    return _Codes(np.zeros(count, np.int64), [0])


def _device_number(process: object) -> int:
    is_number = isinstance(process, (int, float, np.integer, np.floating)) and float(process).is_integer()
    return int(process) if is_number else _NOTHING  # type: ignore[call-overload]
