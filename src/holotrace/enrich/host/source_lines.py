"""The line of the user's code that each host thread runs at each time, and the line that launched each device activity.

The line of a thread is that of its innermost Python frame in the user's code. Built-in functions, calls of modules, and
frames of PyTorch, installed libraries or Python itself are not user code; see `is_user_frame`. PyTorch records a frame
once per call, so the line is the first line of a function or, for a generator, the line at which it continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import holding
from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above, nearest_above, nesting, nesting_order
from holotrace.algorithms.nested.segments import segments
from holotrace.enrich.collectives.collectives import HOST_COLLECTIVE
from holotrace.enrich.device.launches import launches
from holotrace.enrich.device.synchronisations import host_synchronisations
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import gathered, rows_of_events
from holotrace.enrich.host.call_stack import CALL_KINDS
from holotrace.enrich.host.frames import LOADING, WAITING, frame_parts, is_built_in, is_user_frame, shown_names
from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.enrich.host.modules import backward_passes
from holotrace.enrich.host.operator_stacks import FRAME_SEPARATOR, recorded_stacks
from holotrace.enrich.host.operators import launching_operator
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]

_COLUMNS = ["event_index", "track_id", "start_ns", "end_ns", "kind", "name"]
_OF_EVENT = {
    "source_line": pl.String,
    "file": pl.String,
    "line": pl.Int64,
    "function": pl.String,
    "callee": pl.String,
    "is_backward": pl.Boolean,
    "frame_index": pl.UInt32,
}
_OF_ENGINE = r"^autograd::engine::evaluate_function"
_RUNS_BACKWARD = r"^<built-in .*\brun_backward\b"
"""While this function waits, autograd's threads compute gradients; in jobs without a device, the function itself
computes them."""


class HostLines(NamedTuple):
    """The host ranges of a rank, each with the line of code that caused it; a range comes after all ranges around it.

    Each array has one entry for each range, and a last entry for row -1 (no range):

    ranges       event_index, track_id, start_ns, end_ns, kind, name (string id)
    line         row of `lines`; -1 if unknown
    frame        row of the Python frame with this line or, if the file contains only stacks, of the operator with the
                 stack; -1 if unknown
    callee       row of the operator or function that the line called: the range directly below the frame; -1 if
                 the range is the frame itself. In the backward pass, the callee is the outermost function of autograd. If the line
                 is unknown, the callee is the outermost range
    is_backward  whether autograd runs the range outside the user's frames. The line of such a range is the line of
                 the forward operator whose gradient the range computes. All other work on autograd's threads has the
                 line that called `backward`
    is_wait      whether the thread waits for a device, another rank or another thread while it runs this range itself,
                 not a range inside it. False if it waits for a data loader
    is_python    whether the range is a Python or built-in function, not an operator or a call of the runtime
    lines        source_line, file, line, function: one row per line
    by_event     event_index of each range, and its row in `ranges`, in the order of the file
    """

    ranges: pl.DataFrame
    line: _Rows
    frame: _Rows
    callee: _Rows
    is_backward: _Bools
    is_wait: _Bools
    is_python: _Bools
    lines: pl.DataFrame
    by_event: pl.DataFrame


class _Owners(NamedTuple):
    """The line of each range and the row of its frame.

    A range that inherits its line and frame from the range around it has -1 for both.
    """

    line: _Rows
    frame: _Rows
    is_backward: _Bools


def has_source_lines(rank_trace: RankTrace) -> bool:
    """Return whether the profiler recorded Python functions or call stacks of operators."""
    return records_python(rank_trace) or bool(len(recorded_stacks(rank_trace).stack_of))


def records_python(rank_trace: RankTrace) -> bool:
    """Return whether the profiler recorded Python functions."""
    return bool(rank_trace.event_counts().get(EventKind.PYTHON_FUNCTION))


def host_lines(rank_trace: RankTrace, libraries: tuple[str, ...] = ()) -> HostLines:
    """Return the user's line that caused each host range; files in `libraries` are not user code."""
    return _host_lines(rank_trace, libraries)


@derived
def _host_lines(rank_trace: RankTrace, libraries: tuple[str, ...]) -> HostLines:
    ranges, lines = _ranges(rank_trace), _lines(rank_trace, libraries)
    by_event = _in_file_order(ranges)
    parent = nesting(*(ranges[column].to_numpy() for column in ("track_id", "start_ns", "end_ns"))).parent
    owners = _owners(rank_trace, ranges, by_event, parent, lines["source_line"])
    rows = np.arange(len(ranges))
    owner = itself_or_above(parent, owners.line != NO_PARENT, rows)
    of_owner, of_named = (
        np.append(owner, NO_PARENT),
        np.append(itself_or_above(parent, _names_work(ranges), rows), NO_PARENT),
    )
    return HostLines(
        ranges,
        np.append(owners.line, NO_PARENT)[of_owner],
        np.append(owners.frame, NO_PARENT)[of_owner],
        np.append(_callees(ranges, parent, owners, owner), NO_PARENT),
        np.append(owners.is_backward, False)[of_owner],
        np.append(_waits(rank_trace, ranges, by_event, parent), False)[of_named],
        np.append(_is_python(ranges), False)[of_named],
        lines,
        by_event,
    )


def line_times(rank_trace: RankTrace, libraries: tuple[str, ...] = ()) -> pl.DataFrame:
    """Divide the time of every host thread among the lines that it runs.

    Returns:
        Time intervals that do not overlap, sorted by track and time; together they cover all ranges of each thread:

        track_id  uint32
        start_ns  int64
        end_ns    int64
        row       int64   row of the range in `HostLines` whose line, callee and flags apply in the interval
    """
    return _line_times(rank_trace, libraries)


@derived
def _line_times(rank_trace: RankTrace, libraries: tuple[str, ...]) -> pl.DataFrame:
    known = host_lines(rank_trace, libraries)
    extents = [known.ranges[column].to_numpy() for column in ("track_id", "start_ns", "end_ns")]
    begins = _begins_anew(known, nesting(extents[0], extents[1], extents[2]).parent)
    rows = np.flatnonzero(begins)
    track, start, end, owner = segments(*(extent[rows] for extent in extents))
    return pl.DataFrame({"track_id": track, "start_ns": start, "end_ns": end, "row": rows[owner]})


def lines_of_work(rank_trace: RankTrace, libraries: tuple[str, ...] = ()) -> pl.DataFrame:
    """Return, for each device activity, the host range whose line of code launched it.

    The range is the call that launched the activity. If that call is unknown, the range is the operator that has the
    same external id as the activity.

    Returns:
        One row for each row of `launches`, in the same order:

        event_index  uint32
        row          int64   row of this call or operator in `HostLines.ranges`; -1 if unknown
    """
    return _lines_of_work(rank_trace, libraries)


@derived
def _lines_of_work(rank_trace: RankTrace, libraries: tuple[str, ...]) -> pl.DataFrame:
    by_event, launched = host_lines(rank_trace, libraries).by_event, launches(rank_trace)
    row = _rows_in(by_event, launched["launch_index"])
    unknown = np.flatnonzero(row == NO_PARENT)
    if len(unknown):
        row[unknown] = _rows_in(by_event, launching_operator(rank_trace)["operator_index"].gather(unknown))
    return launched.select("event_index", pl.Series("row", row))


def lines_of_events(rank_trace: RankTrace, event_index: pl.Series) -> pl.DataFrame:
    """Return the line of each of these events on the host or on a device; null if unknown.

    Returns:
        source_line  str   as recorded: `training.py(51): step`
        file         str
        line         int64
        function     str
        callee       str     name of the operator or function that the line called, as in `HostLines`; memory addresses
                             in it are left out
        is_backward  bool    whether autograd, not the user's code, runs the event, as in `HostLines`
        frame_index  uint32  event_index of the Python frame with this line or, if the file contains only stacks, of the
                             operator with the stack
    """
    if not has_source_lines(rank_trace):
        return pl.DataFrame(schema=_OF_EVENT).clear(len(event_index))
    known, work = host_lines(rank_trace), lines_of_work(rank_trace)
    row = _rows_in(known.by_event, event_index)
    of_work = np.append(work["row"].to_numpy(), NO_PARENT)[rows_of_events(work, event_index)]
    row = np.where(row == NO_PARENT, of_work, row)
    line, callee = known.line[row], gathered(known.ranges["name"], known.callee[row])
    names = pl.DataFrame({"name": callee.unique().drop_nulls()})
    shown = names.with_columns(callee=shown_names(rank_trace.texts(names["name"])))
    return pl.DataFrame([gathered(column, line) for column in known.lines]).with_columns(
        callee.to_frame("name").join(shown, on="name", how="left", maintain_order="left")["callee"],
        pl.when(pl.Series(line != NO_PARENT)).then(pl.Series(known.is_backward[row])).alias("is_backward"),
        gathered(known.ranges["event_index"], known.frame[row]).alias("frame_index"),
    )


def _ranges(rank_trace: RankTrace) -> pl.DataFrame:
    """Return all ranges of host threads, except collectives that the host itself performs, for example with Gloo.

    Such a collective is recorded on one thread but runs on another.
    """
    ranges = event_ranges(rank_trace, (*CALL_KINDS, EventKind.PYTHON_FUNCTION), _COLUMNS)
    beside = _is_named(rank_trace, ranges, HOST_COLLECTIVE) & ~np.isin(ranges["kind"].to_numpy(), LAUNCH_KINDS)
    own = ranges.filter(pl.Series(~beside)) if beside.any() else ranges
    return own[nesting_order(*(own[column].to_numpy() for column in ("track_id", "start_ns", "end_ns")))]


def _is_named(rank_trace: RankTrace, ranges: pl.DataFrame, pattern: str) -> _Bools:
    said = rank_trace.strings.str.contains(pattern).fill_null(value=False).to_numpy()
    named: _Bools = said[ranges["name"].to_numpy()]
    return named


def _is_python(ranges: pl.DataFrame) -> _Bools:
    return (ranges["kind"] == EventKind.PYTHON_FUNCTION).to_numpy()


def _names_work(ranges: pl.DataFrame) -> _Bools:
    """Return which ranges represent work of the thread: all ranges except annotations."""
    return (ranges["kind"] != EventKind.USER_ANNOTATION).to_numpy()


def _lines(rank_trace: RankTrace, libraries: Sequence[str]) -> pl.DataFrame:
    """Return the user's distinct lines: those of the Python functions or, if none were recorded, of the call stacks."""
    ids = rank_trace.events_of([EventKind.PYTHON_FUNCTION], ["name"])["name"].unique().sort()
    names = rank_trace.texts(ids) if len(ids) else _frames_of_stacks(rank_trace)["frame"].drop_nulls().unique().sort()
    lines = names.filter(is_user_frame(names, libraries)).rename("source_line")
    return lines.to_frame().hstack(frame_parts(lines))


def _frames_of_stacks(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the frames of each recorded stack, the innermost first, with the stack's number as `stack`."""
    texts = recorded_stacks(rank_trace).texts.rename("frame")
    return texts.str.split(FRAME_SEPARATOR).to_frame().with_row_index("stack").explode("frame")


def _innermost_of_stacks(rank_trace: RankTrace, lines: pl.Series) -> pl.Series:
    """Return the innermost user frame (one of `lines`) of each recorded stack; null if the stack has none."""
    users = _frames_of_stacks(rank_trace).filter(pl.col("frame").is_in(lines.implode()))
    first = users.unique("stack", keep="first", maintain_order=True)
    return gathered(first["frame"], _positions(first["stack"].to_numpy(), len(recorded_stacks(rank_trace).texts)))


def _positions(numbers: npt.NDArray[np.integer], count: int) -> _Rows:
    """Return, for each number from 0 to count - 1, its position in `numbers`; -1 if `numbers` does not contain it."""
    positions = np.full(count, NO_PARENT, np.int64)
    positions[numbers] = np.arange(len(numbers))
    return positions


def _owners(
    rank_trace: RankTrace, ranges: pl.DataFrame, by_event: pl.DataFrame, parent: _Rows, lines: pl.Series
) -> _Owners:
    line = _own_lines(rank_trace, ranges, lines)
    frame = np.where(line != NO_PARENT, np.arange(len(line)), NO_PARENT)
    owners = _Owners(line, frame, np.zeros(len(line), np.bool_))
    of_forward = _with_backward(owners, parent, *_backward_parts(rank_trace, by_event))
    return _with_backward(of_forward, parent, *_rest_of_backward(rank_trace, ranges, parent))


def _with_backward(owners: _Owners, parent: _Rows, part: _Rows, caller: _Rows) -> _Owners:
    """Set the line of each range in `part` (ranges of the backward pass) that has no line yet.

    The range gets the line of its `caller`. If the caller has no line, the range gets the line of the innermost range
    around the caller that has one.
    """
    around = itself_or_above(parent, owners.line != NO_PARENT, caller)
    known = (around != NO_PARENT) & (owners.line[part] == NO_PARENT)
    part, around = part[known], around[known]
    line, frame, is_backward = owners.line.copy(), owners.frame.copy(), owners.is_backward.copy()
    line[part], frame[part], is_backward[part] = line[around], frame[around], True
    return _Owners(line, frame, is_backward)


def _rest_of_backward(rank_trace: RankTrace, ranges: pl.DataFrame, parent: _Rows) -> tuple[_Rows, _Rows]:
    """Return the outermost ranges on autograd's threads, and for each the call of `run_backward` in which it begins."""
    track, start, end = (ranges[name].to_numpy() for name in ("track_id", "start_ns", "end_ns"))
    calls = np.flatnonzero(_is_named(rank_trace, ranges, _RUNS_BACKWARD))
    calls = calls[np.argsort(start[calls], kind="stable")]
    of_engine = np.unique(track[_is_named(rank_trace, ranges, _OF_ENGINE)])
    engine = np.setdiff1d(of_engine, track[calls])
    parts = np.flatnonzero((parent == NO_PARENT) & np.isin(track, engine))
    call = np.append(calls, NO_PARENT)[holding((start[calls], end[calls]), start[parts])]
    return parts[call != NO_PARENT], call[call != NO_PARENT]


def _own_lines(rank_trace: RankTrace, ranges: pl.DataFrame, lines: pl.Series) -> _Rows:
    """Return the line of each user frame or, if no Python functions were recorded, of each operator with a stack."""
    if _is_python(ranges).any():
        by_id = _rows_of_texts(lines, rank_trace.strings)
        return np.where(_is_python(ranges), by_id[ranges["name"].to_numpy()], NO_PARENT)
    stack_of = recorded_stacks(rank_trace).stack_of
    by_stack = _rows_of_texts(lines, _innermost_of_stacks(rank_trace, lines))
    of_row = np.append(by_stack[stack_of["stack"].to_numpy()], NO_PARENT)
    line: _Rows = of_row[rows_of_events(stack_of, ranges["event_index"])]
    return line


def _rows_of_texts(lines: pl.Series, texts: pl.Series) -> _Rows:
    """Return the row in `lines` of each text; -1 if the text is not a line."""
    table = pl.DataFrame({"text": lines}).with_row_index("row")
    joined = texts.rename("text").to_frame().join(table, on="text", how="left", maintain_order="left")
    return joined["row"].cast(pl.Int64).fill_null(NO_PARENT).to_numpy().copy()


def _backward_parts(rank_trace: RankTrace, by_event: pl.DataFrame) -> tuple[_Rows, _Rows]:
    """Return, for each range in `backward_passes`, its row and the row of its forward operator.

    A range is left out if its own row or its forward operator's row is unknown.
    """
    events, parts = host_nodes(rank_trace)["event_index"], backward_passes(rank_trace)
    part, forward = (_rows_in(by_event, events.gather(parts[column])) for column in ("node", "forward"))
    known = (part != NO_PARENT) & (forward != NO_PARENT)
    return part[known], forward[known]


def _in_file_order(ranges: pl.DataFrame) -> pl.DataFrame:
    """Return each range's event_index and row in `ranges`, in the order in which the file lists the ranges."""
    return ranges.select("event_index", row=pl.int_range(pl.len())).sort("event_index")


def _rows_in(by_event: pl.DataFrame, event_index: pl.Series) -> _Rows:
    """Return the row of each event's range; -1 if unknown. `by_event` is the result of `_in_file_order`."""
    found: _Rows = np.append(by_event["row"].to_numpy(), NO_PARENT)[rows_of_events(by_event, event_index)]
    return found


def _callees(ranges: pl.DataFrame, parent: _Rows, owners: _Owners, owner: _Rows) -> _Rows:
    """Return the callee of each range, as described in `HostLines`; annotations are ignored."""
    names_work, rows = _names_work(ranges), np.arange(len(ranges))
    is_frame = (owners.frame == rows) & _is_python(ranges)
    around = nearest_above(parent, names_work, rows)
    is_below_frame = (around == NO_PARENT) | np.append(is_frame, False)[around]
    begins = names_work & ~is_frame & (is_below_frame | owners.is_backward | _changes_line(owners.line, around))
    callee = itself_or_above(parent, begins, rows)
    return np.where(callee >= owner, callee, NO_PARENT)


def _changes_line(line: _Rows, around: _Rows) -> _Bools:
    """Return whether each range has a line that differs from the line of the range around it."""
    changes: _Bools = (line != NO_PARENT) & (line != np.append(line, NO_PARENT)[around])
    return changes


def _waits(rank_trace: RankTrace, ranges: pl.DataFrame, by_event: pl.DataFrame, parent: _Rows) -> _Bools:
    is_operator = (ranges["kind"] == EventKind.CPU_OP).to_numpy()
    waits_by_name = is_built_in(rank_trace.strings).to_numpy()[ranges["name"].to_numpy()] | is_operator
    waits: _Bools = _is_named(rank_trace, ranges, WAITING) & waits_by_name | _is_named(
        rank_trace, ranges, _RUNS_BACKWARD
    )
    calls = _rows_in(by_event, host_synchronisations(rank_trace)["event_index"].unique())
    waits[calls[calls != NO_PARENT]] = True
    loading = itself_or_above(parent, _is_named(rank_trace, ranges, LOADING), np.arange(len(ranges)))
    return np.asarray(waits & (loading == NO_PARENT), np.bool_)


def _begins_anew(known: HostLines, parent: _Rows) -> _Bools:
    """Return whether each range is outermost, or its line, callee or flags differ from those of the range around it."""
    begins: _Bools = parent == NO_PARENT
    for values in (known.line, known.callee, known.is_backward, known.is_wait, known.is_python):
        begins = begins | (values[:-1] != values[parent])
    return begins
