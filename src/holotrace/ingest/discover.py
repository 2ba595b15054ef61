"""Find the files of a job and their ranks.

A source is a file, a folder, a glob pattern, a list of files, or a `{rank: file}` dict; paths may be URLs. The rank of
a file comes from the first of these that contains a rank:

    1. `distributedInfo.rank` in the file
    2. the file name: `rank-3.json`, `worker2_step_12.pt.trace.json.gz`, `trace_rank_0.json`
    3. the collectives in the file, which name the rank that recorded them; this requires reading the whole file
    4. the next free number, in the natural order of the names (a2 before a10)

A folder or a pattern may contain several files of the same rank, for example if the profiler's schedule has several
cycles. In this case, only the newest file is opened; the others are skipped with a message that says how to open them.
If a list contains two files of the same rank, an error is raised.
"""

from __future__ import annotations

import difflib
import glob
import logging
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import SupportsIndex, TypeAlias

from holotrace.errors import (
    DuplicateRankError,
    HolotraceError,
    InvalidOptionError,
    NotATraceError,
    TraceNotFoundError,
    UnreadableTraceError,
)
from holotrace.ingest.kineto import Peek, peek
from holotrace.ingest.rank_names import is_capture_name, rank_in_name
from holotrace.locations import (
    Address,
    Child,
    Location,
    RemotePath,
    address_text,
    located,
    name_of,
    scan,
    side_by_side,
    status_of,
)
from holotrace.locations.scan import readable_children
from holotrace.store.header import HIGHEST_RANK
from holotrace.store.trace import SkippedFile

logger = logging.getLogger("holotrace")

TraceSource: TypeAlias = Address | Iterable[Address] | Mapping[int, Address]
"""The type of `source` in `holotrace.open_trace`."""

ReadRank: TypeAlias = Callable[[str], int | None]
"""A function that reads a whole file and returns its rank; None if the file contains no rank."""

_OTHER_FORMATS = {
    ".html": "a web page",
    ".htm": "a web page",
    ".pickle": "a pickle, such as a memory snapshot",
    ".pkl": "a pickle, such as a memory snapshot",
    ".pt": "a PyTorch checkpoint",
    ".tmp": "an unfinished recording; name the file itself to read the events recorded so far",
    ".arrow": "a table",
    ".parquet": "a table",
    ".csv": "a table",
    ".pb": "a protobuf file, such as a JAX profile",
    ".pftrace": "a Perfetto trace",
    ".sqlite": "a database",
    ".db": "a database",
    ".nsys-rep": "an Nsight Systems report",
    ".txt": "a text file",
    ".log": "a text file",
    ".md": "a text file",
    ".py": "a script",
    ".sh": "a script",
    ".png": "an image",
    ".svg": "an image",
}
_DERIVED_FILES = {
    re.compile(r"_with_counters\.json"): "a copy of a trace with counters added by an analysis",
    re.compile(r"^merged_ranks\.json"): "several ranks merged into one timeline",
    re.compile(r"^overlaid_"): "a copy of a trace in which an analysis marked a critical path or kernel sequences",
}
_MEMORY_TIMELINE = re.compile(r'first element is "\[(-?\d+, [0-3], -?\d+, \d\]|\d{13,}, \d{13,})')
"""Recognises a file that `export_memory_timeline` wrote by the beginning of the file, which the reader's error quotes:
a raw event, or the times of a chart."""

_A_MEMORY_TIMELINE = (
    "a memory timeline (export_memory_timeline); open the trace of the same recording (export_chrome_trace), which also "
    "contains the memory events"
)
_TIME_IN_NAME = re.compile(r"(?<!\d)(\d{10}|\d{13}|\d{16}|\d{19})(?!\d)")  # Unix time in s, ms, µs or ns
_TRACE_NAME_PART = ".pt.trace.json"

_MOST_NAMES_SHOWN = 10
_NO_FILES = "no trace to open: the list of files is empty"


@dataclass(frozen=True)
class JobFiles:
    """The files of a job, sorted by rank, and the skipped files."""

    files: dict[int, str]
    skipped: tuple[SkippedFile, ...] = ()


def discover(source: TraceSource, read_rank: ReadRank) -> JobFiles:
    """Find the files of a job and their ranks.

    Args:
        source: a file, a folder (without subfolders), a glob pattern, a list, or `{rank: file}`.
        read_rank: called for files without a rank at their beginning or in their name.

    Raises:
        TraceNotFoundError: the path does not exist, or none of its files is a trace; the message lists the folder's
        content.
        NotATraceError: a file that was named explicitly (alone, in a list or in a dict) is not a trace.
        UnreadableTraceError: a file that was named explicitly cannot be read.
        DuplicateRankError: two files of a list have the same rank.
    """
    if isinstance(source, Mapping):
        return _from_mapping(source)
    if not isinstance(source, (str, os.PathLike, RemotePath)):
        return _from_list([address_text(path) for path in source], read_rank)
    path = address_text(source)
    location = located(path)
    # First check whether the path exists, then whether it is a folder. In the other order, another process could create
    # the folder between the two checks, and the folder would be opened as a file.
    if path and _path_exists(location):
        return _from_folder(path, read_rank) if location.is_dir() else _from_list([path], read_rank)
    if glob.has_magic(path):
        return _from_pattern(path, read_rank)
    raise TraceNotFoundError(nothing_there(path))


def natural_order(path: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that puts `rank2` before `rank10`."""
    parts = re.split(r"(\d+)", path)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part)


def _from_mapping(source: Mapping[int, Address]) -> JobFiles:
    if not source:
        raise TraceNotFoundError(_NO_FILES)
    files = {_given_rank(rank, path): address_text(path) for rank, path in source.items()}
    _expect_traces(list(files.values()))
    return JobFiles(dict(sorted(files.items())))


def _given_rank(rank: object, path: Address) -> int:
    """Return a dict key as a rank; the key may be a NumPy integer."""
    if isinstance(rank, SupportsIndex) and not isinstance(rank, bool) and 0 <= operator.index(rank) <= HIGHEST_RANK:
        return operator.index(rank)
    message = f"{{{rank!r}: {address_text(path)!r}}}: a rank is a whole number from 0 to {HIGHEST_RANK:,}"
    raise InvalidOptionError(message)


def _from_list(paths: list[str], read_rank: ReadRank) -> JobFiles:
    if not paths:
        raise TraceNotFoundError(_NO_FILES)
    known = {path: _read_if_unknown(path, rank, read_rank) for path, rank in _expect_traces(paths).items()}
    taken: dict[int, str] = {}
    for path, rank in known.items():
        if rank is not None and rank in taken:
            raise DuplicateRankError(_shared_rank(rank, taken[rank], path))
        if rank is not None:
            taken[rank] = path
    return JobFiles(_fill_up(taken, known))


def _from_folder(folder: str, read_rank: ReadRank) -> JobFiles:
    try:
        paths = [child.path for child in scan(folder) if not child.is_dir]
    except HolotraceError:
        raise
    except OSError as error:
        message = f"{folder} cannot be listed: {error.strerror}"
        raise UnreadableTraceError(message) from error
    return traces_among(folder, paths, read_rank)


def _from_pattern(pattern: str, read_rank: ReadRank) -> JobFiles:
    paths = _matching(pattern)
    if not paths:
        raise TraceNotFoundError(nothing_there(pattern))
    return traces_among(pattern, paths, read_rank)


def _matching(pattern: str) -> list[str]:
    location = located(pattern)
    if isinstance(location, RemotePath):
        return [str(match) for match in location.glob()]
    return [path for path in glob.glob(pattern, recursive=True) if not os.path.isdir(path)]  # noqa: PTH112, PTH207 -- paths must begin like the pattern


def traces_among(source: str, paths: list[str], read_rank: ReadRank) -> JobFiles:
    """Find the traces among these files, and keep the newest of each rank; `source` appears in error messages.

    Raises:
        TraceNotFoundError: none of the files is a trace.
    """
    ranks: dict[str, int | None] = {}
    ordered, skipped = _without_captures(sorted(paths, key=natural_order))
    for path, rank_or_error in zip(ordered, side_by_side(_peek_rank, ordered), strict=True):
        try:
            ranks[path] = _read_if_unknown(path, _value_or_raise(rank_or_error), read_rank)
        except (NotATraceError, UnreadableTraceError) as error:  # noqa: PERF203 -- one file must not hide the others
            skipped.append(skipped_file(path, error))
    if not ranks:
        raise TraceNotFoundError(_no_trace_in(source, skipped))
    taken, older = _newest_of_each_rank(ranks)
    return JobFiles(_fill_up(taken, ranks), (*skipped, *older))


def _without_captures(paths: list[str]) -> tuple[list[str], list[SkippedFile]]:
    """Skip captures of CUDA graphs if there are also other traces; if there are only captures, keep them as traces."""
    captures = [path for path in paths if is_capture_name(path)]
    traces = [path for path in paths if path not in set(captures)]
    if not captures or not any(map(is_or_was_a_trace, traces)):
        return paths, []
    return traces, [SkippedFile(path, "a capture of CUDA graphs, used to attribute their kernels") for path in captures]


def rank_of_trace(path: str, read_rank: ReadRank) -> int | None:
    """Return the rank of a file in a folder, or None.

    Raises:
        NotATraceError: the file is not a trace; the message is only the reason, without the path.
        UnreadableTraceError: the file cannot be read.
    """
    return _read_if_unknown(path, _value_or_raise(_peek_rank(path)), read_rank)


def _peek_rank(path: str) -> int | HolotraceError | None:
    """Return the rank at the beginning of a file or in its name, or else the reason why the file is skipped.

    The reason is returned, not raised, so the remaining files are still checked.
    """
    what = _no_file(path) or _other_format(path)
    try:
        beginning = Peek(is_trace=False, rank=None, what=what) if what else peek(path)
    except UnreadableTraceError as error:
        return error
    if not beginning.is_trace:
        message = f"not a profiler trace: {_recognised(beginning.what)}"
        return NotATraceError.maybe_damaged(message) if beginning.may_be_damaged else NotATraceError(message)
    return _stated_rank(path, beginning.rank)


def _value_or_raise(rank_or_error: int | HolotraceError | None) -> int | None:
    if isinstance(rank_or_error, HolotraceError):
        raise rank_or_error
    return rank_or_error


def skipped_file(path: str, error: Exception) -> SkippedFile:
    """Return a skipped file with the reason; log a warning if the file cannot be read."""
    if isinstance(error, UnreadableTraceError):
        logger.warning("skipped: %s", error)
    reason = str(error).removeprefix(f"{path} ")
    return SkippedFile(path, reason, is_unreadable=_is_unreadable(path, error))


def is_or_was_a_trace(path: str) -> bool:
    """Return whether a file is a trace, or looks like a damaged trace."""
    rank_or_error = _peek_rank(path)
    return not isinstance(rank_or_error, HolotraceError) or _is_unreadable(path, rank_or_error)


def _is_unreadable(path: str, error: Exception) -> bool:
    """Return whether a skipped file is named like a trace but has no readable content."""
    name = name_of(path).lower()
    if isinstance(error, UnreadableTraceError):
        return ".json" in name or rank_in_name(path) is not None
    is_named_like_a_trace = _TRACE_NAME_PART in name or rank_in_name(path) is not None
    return is_named_like_a_trace and isinstance(error, NotATraceError) and error.may_be_damaged


def _expect_traces(paths: list[str]) -> dict[str, int | None]:
    """Return the rank that each file states at its beginning or in its name; raise an error if one is not a trace."""
    return dict(zip(paths, side_by_side(_expect_trace, paths), strict=True))


def _expect_trace(path: str) -> int | None:
    location = located(path)
    if not _path_exists(location):
        raise TraceNotFoundError(nothing_there(path))
    if location.is_dir():
        message = f"{path} is a folder; in a list or a dict, name the files"
        raise NotATraceError(message)
    what = _no_file(path)
    beginning = Peek(is_trace=False, rank=None, what=what) if what else peek(path)
    if not beginning.is_trace:
        message = f"{path} is not a profiler trace: {_recognised(beginning.what)}"
        raise NotATraceError(message)
    return _stated_rank(path, beginning.rank)


def _no_file(path: str) -> str:
    """Return why a path cannot be opened as a file: it is a broken link, a pipe or a device. Empty if it can."""
    location = located(path)
    if isinstance(location, RemotePath):
        return ""
    if not location.exists():
        return "a link to a file that does not exist"
    if location.is_file():
        return ""
    return "a pipe or a device; write its output to a file first"


def _recognised(what: str) -> str:
    """Return a clearer description if the file is a memory timeline; otherwise return `what`."""
    return _A_MEMORY_TIMELINE if _MEMORY_TIMELINE.search(what) else what


def _other_format(path: str) -> str:
    """Return what kind of file the name indicates; an empty text if the name may belong to a trace."""
    derived = [what for pattern, what in _DERIVED_FILES.items() if pattern.search(name_of(path))]
    return derived[0] if derived else _OTHER_FORMATS.get(located(path).suffix.lower(), "")


def _path_exists(location: Location) -> bool:
    """Return whether a path exists; a broken link counts as existing."""
    return location.is_symlink() or location.exists()


def _stated_rank(path: str, in_header: int | None) -> int | None:
    return rank_in_name(path) if in_header is None else in_header


def _read_if_unknown(path: str, rank: int | None, read_rank: ReadRank) -> int | None:
    return read_rank(path) if rank is None else rank


def _newest_of_each_rank(ranks: Mapping[str, int | None]) -> tuple[dict[int, str], list[SkippedFile]]:
    recordings: dict[int, list[str]] = {}
    for path, rank in ranks.items():
        if rank is not None:
            recordings.setdefault(rank, []).append(path)
    newest = {rank: max(paths, key=_recorded_at) for rank, paths in recordings.items()}
    pairs = [(path, rank) for rank, paths in recordings.items() for path in paths if path != newest[rank]]
    return newest, [_older(path, rank, newest[rank]) for path, rank in pairs]


def _older(path: str, rank: int, newest: str) -> SkippedFile:
    return SkippedFile(
        path,
        f"another recording of rank {rank}; the newest, {name_of(newest)}, was opened. "
        f"To open this one instead: holotrace.open_trace({{{rank}: {path!r}}})",
        rank=rank,
    )


def _recorded_at(path: str) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    """Return a sort key: the time in the file name (if it has none, the time of the last change), then the name."""
    times = [int(digits.ljust(19, "0")) for digits in _TIME_IN_NAME.findall(name_of(path))]
    return times[-1] if times else status_of(located(path)).mtime_ns, natural_order(path)


def _fill_up(taken: Mapping[int, str], ranks: Mapping[str, int | None]) -> dict[int, str]:
    """Assign free numbers to files without a rank."""
    files = dict(taken)
    free = (number for number in range(len(files) + len(ranks) + 1) if number not in taken)
    for path, rank in ranks.items():
        if rank is None:
            files[next(free)] = path
    return dict(sorted(files.items()))


def _shared_rank(rank: int, first: str, second: str) -> str:
    return (
        f"{first} and {second} are both rank {rank}. Leave one out, or assign the ranks yourself: "
        f"holotrace.open_trace({{{rank}: {first!r}, {rank + 1}: {second!r}}})"
    )


def nothing_there(path: str) -> str:
    """Return the message for a path that does not exist; it suggests a similar name or lists the parent folder."""
    if not path.strip():
        return f"{path!r} is not a path; name a trace file or a folder of trace files"
    if glob.has_magic(path):
        return f"no file matches {path}"
    if (parent := _nearest_folder(located(path))) is None:
        return f"{path} does not exist"
    children = readable_children(parent)
    close = difflib.get_close_matches(name_of(path), [child.name for child in children])
    return f"{path} does not exist; " + (
        f"did you mean {close[0]}?" if close else f"{parent} contains: {_listing(children)}"
    )


def _no_trace_in(source: str, skipped: list[SkippedFile]) -> str:
    if not skipped:
        return _nothing_in(source)
    shown = [f"{name_of(file.path)} ({file.reason})" for file in skipped[:_MOST_NAMES_SHOWN]]
    more = [f"{len(skipped) - len(shown)} more"] if len(skipped) > len(shown) else []
    return f"{source} contains no trace, only: {'; '.join(shown + more)}{_subfolders(source)}"


def _nothing_in(source: str) -> str:
    location = located(source)
    if not location.is_dir():
        return f"{source} contains no files"
    if children := readable_children(location):
        return f"{source} contains no trace, only: {_listing(children)}"
    return f"{source} is an empty folder; name the folder into which the profiler wrote its .json or .json.gz files"


def _nearest_folder(location: Location) -> Location | None:
    """Return the nearest existing parent folder; None for a web address, since web servers have no folders."""
    if isinstance(location, RemotePath):
        above = location.parent
        while not above.is_page and above != above.parent and not above.is_dir():
            above = above.parent
        return above if not above.is_page and above.is_dir() else None
    return next(parent for parent in location.absolute().parents if parent.is_dir())


def _listing(children: list[Child]) -> str:
    names = sorted((child.name + os.sep * child.is_dir for child in children), key=natural_order)
    more = [f"{len(names) - _MOST_NAMES_SHOWN} more"] if len(names) > _MOST_NAMES_SHOWN else []
    return ", ".join(names[:_MOST_NAMES_SHOWN] + more) or "nothing"


def _subfolders(source: str) -> str:
    names = [child.name for child in readable_children(located(source)) if child.is_dir]
    listed = ", ".join(sorted(names)[:_MOST_NAMES_SHOWN])
    return (
        f". Subfolders are not searched: {listed}; to list their traces, run: holotrace runs {source}" if names else ""
    )
