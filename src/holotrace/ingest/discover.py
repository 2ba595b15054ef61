"""Which files belong to a job, and which rank each is.

A source is a file, a folder, a glob pattern, a list of files, or a `{rank: file}` dict; each a path or a URL. The rank
of a file comes from the first of these that says one:

    1. `distributedInfo.rank` in the file
    2. the name of the file: `rank-3.json`, `worker2_step_12.pt.trace.json.gz`, `trace_rank_0.json`
    3. the collectives in the file, whose rows name the rank that recorded them; the file is read for that
    4. the next number no other file has, in the natural order of the names (a2 before a10)

Two files never share a rank silently. In a folder or a pattern, several files of one rank are several recordings of
it, such as the spans that a profiler schedule writes one after the other: the newest is taken, the others are skipped,
and the reason says how to open them. Files listed one by one were each meant, so there a shared rank is an error.
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
from holotrace.store.header import HIGHEST_RANK
from holotrace.store.trace import SkippedFile

logger = logging.getLogger("holotrace")

TraceSource: TypeAlias = Address | Iterable[Address] | Mapping[int, Address]
"""What `holotrace.open_trace` accepts."""

ReadRank: TypeAlias = Callable[[str], int | None]
"""Reads a whole file to learn its rank; None where it says none."""

_OTHER_FORMATS = {
    ".html": "a web page",
    ".htm": "a web page",
    ".pickle": "a pickle, such as a memory snapshot",
    ".pkl": "a pickle, such as a memory snapshot",
    ".pt": "a PyTorch checkpoint",
    ".tmp": "an unfinished recording; name the file itself to read what is there",
    ".arrow": "a table",
    ".parquet": "a table",
    ".csv": "a table",
    ".pb": "a protobuf file, such as a JAX profile",
    ".pftrace": "a Perfetto trace",
    ".sqlite": "a database",
    ".db": "a database",
    ".nsys-rep": "an Nsight Systems report",
    ".txt": "a text",
    ".log": "a text",
    ".md": "a text",
    ".py": "a program",
    ".sh": "a program",
    ".png": "an image",
    ".svg": "an image",
}
_DERIVED_FILES = {
    re.compile(r"_with_counters\.json"): "a copy of a trace with counters added by an analysis",
    re.compile(r"^overlaid_"): "a copy of a trace with a critical path drawn by an analysis",
}
_RANK_IN_NAME = re.compile(r"(?<![a-z0-9])(?P<of>[a-z]+[-_.])?rank[-_.=]?(?P<rank>\d{1,7})(?!\d)", re.IGNORECASE)
_WORKER_IN_NAME = re.compile(r"(?<![a-z0-9])worker[-_.=]?(?P<rank>\d{1,7})(?!\d)", re.IGNORECASE)
_PARALLEL_AXES = {"local", "node", "tp", "pp", "dp", "ep", "cp", "sp", "dcp"}
_TIME_IN_NAME = re.compile(r"(?<!\d)(\d{10}|\d{13}|\d{16}|\d{19})(?!\d)")  # Unix time in s, ms, µs or ns
_CALLED_LIKE_A_TRACE = ".pt.trace.json"
_SIGNS_OF_DAMAGE = ("an empty file", "JSON without traceEvents at its beginning", "it begins with")
"""What is said of a file that may have been a trace; one of another kind is called by its kind."""

_MOST_NAMES_SHOWN = 10
_NO_FILES = "an empty list of files was given; there is no trace to open"


@dataclass(frozen=True)
class Found:
    """The files of a job, sorted by rank, and what was left out."""

    files: dict[int, str]
    skipped: tuple[SkippedFile, ...] = ()


def discover(source: TraceSource, read_rank: ReadRank) -> Found:
    """Find the files of a job and the rank of each.

    Args:
        source: a file, a folder (its files, not its subfolders), a glob pattern, a list, or `{rank: file}`.
        read_rank: asked for the rank of files whose beginning and name say none.

    Raises:
        TraceNotFoundError: there is no such path, or no trace among its files; the message lists what is there.
        NotATraceError: a file named by itself, in a list or in a dict is no trace.
        UnreadableTraceError: likewise, it cannot be read.
        DuplicateRankError: two files of a list have the same rank.
    """
    if isinstance(source, Mapping):
        return _from_mapping(source)
    if not isinstance(source, (str, os.PathLike, RemotePath)):
        return _from_list([address_text(path) for path in source], read_rank)
    path = address_text(source)
    location = located(path)
    if path and _is_there(
        location
    ):  # asked first: a folder that another process is just making never passes for a file
        return _from_folder(path, read_rank) if location.is_dir() else _from_list([path], read_rank)
    if glob.has_magic(path):
        return _from_pattern(path, read_rank)
    raise TraceNotFoundError(nothing_there(path))


def rank_in_name(path: str) -> int | None:
    """Return the rank that a file's name says, or None.

    `rank` counts before `worker`; a rank along one axis (`local_rank3`, `tp_rank1`) is not the rank of the process.
    """
    name = name_of(path)
    for match in reversed(list(_RANK_IN_NAME.finditer(name))):
        if (match["of"] or "").rstrip("-_.").lower() not in _PARALLEL_AXES:
            return int(match["rank"])
    worker = _WORKER_IN_NAME.search(name)
    return int(worker["rank"]) if worker else None


def natural_order(path: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key under which `rank2` comes before `rank10`."""
    parts = re.split(r"(\d+)", path)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part)


def _from_mapping(source: Mapping[int, Address]) -> Found:
    if not source:
        raise TraceNotFoundError(_NO_FILES)
    files = {_given_rank(rank, path): address_text(path) for rank, path in source.items()}
    _expect_traces(list(files.values()))
    return Found(dict(sorted(files.items())))


def _given_rank(rank: object, path: Address) -> int:
    """Return the key of a dict as a rank; numpy's whole numbers are as good as Python's."""
    if isinstance(rank, SupportsIndex) and not isinstance(rank, bool) and 0 <= operator.index(rank) <= HIGHEST_RANK:
        return operator.index(rank)
    message = f"{{{rank!r}: {address_text(path)!r}}}: a rank is a whole number from 0 to {HIGHEST_RANK:,}"
    raise InvalidOptionError(message)


def _from_list(paths: list[str], read_rank: ReadRank) -> Found:
    if not paths:
        raise TraceNotFoundError(_NO_FILES)
    known = {path: _read_if_unknown(path, rank, read_rank) for path, rank in _expect_traces(paths).items()}
    taken: dict[int, str] = {}
    for path, rank in known.items():
        if rank is not None and rank in taken:
            raise DuplicateRankError(_shared_rank(rank, taken[rank], path))
        if rank is not None:
            taken[rank] = path
    return Found(_fill_up(taken, known))


def _from_folder(folder: str, read_rank: ReadRank) -> Found:
    try:
        found = [child.path for child in scan(folder) if not child.is_dir]
    except HolotraceError:
        raise
    except OSError as error:
        message = f"{folder} cannot be listed: {error.strerror}"
        raise UnreadableTraceError(message) from error
    return found_among(folder, found, read_rank)


def _from_pattern(pattern: str, read_rank: ReadRank) -> Found:
    found = _matching(pattern)
    if not found:
        raise TraceNotFoundError(nothing_there(pattern))
    return found_among(pattern, found, read_rank)


def _matching(pattern: str) -> list[str]:
    location = located(pattern)
    if isinstance(location, RemotePath):
        return [str(each) for each in location.glob()]
    return [path for path in glob.glob(pattern, recursive=True) if not os.path.isdir(path)]  # noqa: PTH112, PTH207 -- the paths begin as the pattern does


def found_among(source: str, paths: list[str], read_rank: ReadRank) -> Found:
    """Find the traces among these files; of several recordings of a rank the newest. `source` names them in errors.

    Raises:
        TraceNotFoundError: none of them is a trace.
    """
    ranks: dict[str, int | None] = {}
    skipped: list[SkippedFile] = []
    ordered = sorted(paths, key=natural_order)
    for path, seen in zip(ordered, side_by_side(_seen_trace, ordered), strict=True):
        try:
            ranks[path] = _read_if_unknown(path, _stated(seen), read_rank)
        except (NotATraceError, UnreadableTraceError) as error:  # noqa: PERF203 -- one file must not hide the others
            skipped.append(skipped_file(path, error))
    if not ranks:
        raise TraceNotFoundError(_no_trace_in(source, skipped))
    taken, older = _newest_of_each_rank(ranks)
    return Found(_fill_up(taken, ranks), (*skipped, *older))


def rank_of_trace(path: str, read_rank: ReadRank) -> int | None:
    """Return the rank of a file found in a folder, or None.

    Raises:
        NotATraceError: it is no trace; the message is the reason alone, without the path.
        UnreadableTraceError: it cannot be read.
    """
    return _read_if_unknown(path, _stated(_seen_trace(path)), read_rank)


def _seen_trace(path: str) -> int | HolotraceError | None:
    """Return the rank that the beginning or the name of a file says, or why it is no trace; other files are looked at."""
    what = _no_file(path) or _other_format(path)
    try:
        seen = Peek(is_trace=False, rank=None, what=what) if what else peek(path)
    except UnreadableTraceError as error:
        return error
    return _stated_rank(path, seen.rank) if seen.is_trace else NotATraceError(f"no profiler trace: {seen.what}")


def _stated(seen: int | HolotraceError | None) -> int | None:
    if isinstance(seen, HolotraceError):
        raise seen
    return seen


def skipped_file(path: str, error: Exception) -> SkippedFile:
    """Return the file with the reason why it is left out; one that cannot be read is also logged."""
    if isinstance(error, UnreadableTraceError):
        logger.warning("left out: %s", error)
    reason = str(error).removeprefix(f"{path} ")
    return SkippedFile(path, reason, is_unreadable=_is_unreadable(path, error))


def is_or_was_a_trace(path: str) -> bool:
    """Whether a file is a trace, or would be one could it be read."""
    seen = _seen_trace(path)
    return not isinstance(seen, HolotraceError) or _is_unreadable(path, seen)


def _is_unreadable(path: str, error: Exception) -> bool:
    """Whether a file that is left out is called like a trace, and holds nothing that is whole."""
    name = name_of(path).lower()
    if isinstance(error, UnreadableTraceError):
        return ".json" in name or rank_in_name(path) is not None
    is_called_so = _CALLED_LIKE_A_TRACE in name or rank_in_name(path) is not None
    return is_called_so and any(sign in str(error) for sign in _SIGNS_OF_DAMAGE)


def _expect_traces(paths: list[str]) -> dict[str, int | None]:
    """Return {path: rank its beginning or its name says} for files that were named one by one."""
    return dict(zip(paths, side_by_side(_expect_trace, paths), strict=True))


def _expect_trace(path: str) -> int | None:
    location = located(path)
    if not _is_there(location):
        raise TraceNotFoundError(nothing_there(path))
    if location.is_dir():
        message = f"{path} is a folder; in a list or a dict, name the files"
        raise NotATraceError(message)
    what = _no_file(path)
    seen = Peek(is_trace=False, rank=None, what=what) if what else peek(path)
    if not seen.is_trace:
        message = f"{path} is no profiler trace: found {seen.what}"
        raise NotATraceError(message)
    return _stated_rank(path, seen.rank)


def _no_file(path: str) -> str:
    """Return what lies at a path that opening would wait for or not find, empty for a file."""
    location = located(path)
    if isinstance(location, RemotePath):
        return ""
    if not location.exists():
        return "a link to a file that is not there"
    if location.is_file():
        return ""
    return "a pipe or a device; write what comes out of it to a file first"


def _other_format(path: str) -> str:
    """Return what a file is by its name alone, empty where it may be a trace."""
    derived = [what for pattern, what in _DERIVED_FILES.items() if pattern.search(name_of(path))]
    return derived[0] if derived else _OTHER_FORMATS.get(located(path).suffix.lower(), "")


def _is_there(location: Location) -> bool:
    """Whether a path leads to something, be it a link that leads nowhere."""
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
        f"another recording of rank {rank}; the newest, {name_of(newest)}, was taken. "
        f"To open this one instead: holotrace.open_trace({{{rank}: {path!r}}})",
        rank=rank,
    )


def _recorded_at(path: str) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    """Return when a file was recorded, from the time in its name or from the file system, then its name."""
    times = [int(digits.ljust(19, "0")) for digits in _TIME_IN_NAME.findall(name_of(path))]
    return times[-1] if times else status_of(located(path)).mtime_ns, natural_order(path)


def _fill_up(taken: Mapping[int, str], ranks: Mapping[str, int | None]) -> dict[int, str]:
    """Give files without a rank the numbers nobody has."""
    files = dict(taken)
    free = (number for number in range(len(files) + len(ranks) + 1) if number not in taken)
    for path, rank in ranks.items():
        if rank is None:
            files[next(free)] = path
    return dict(sorted(files.items()))


def _shared_rank(rank: int, first: str, second: str) -> str:
    return (
        f"{first} and {second} are both rank {rank}. Leave one out, or say which is which: "
        f"holotrace.open_trace({{{rank}: {first!r}, {rank + 1}: {second!r}}})"
    )


def nothing_there(path: str) -> str:
    """Say that a path leads nowhere, and what lies near it."""
    if not path.strip():
        return f"{path!r} is no path; name a trace file or a folder of them"
    if glob.has_magic(path):
        return f"no file matches {path}"
    if (parent := _nearest_folder(located(path))) is None:
        return f"{path} does not exist"
    children = _children(parent)
    close = difflib.get_close_matches(name_of(path), [child.name for child in children])
    return f"{path} does not exist; " + (
        f"did you mean {close[0]}?" if close else f"{parent} holds {_listing(children)}"
    )


def _no_trace_in(source: str, skipped: list[SkippedFile]) -> str:
    if not skipped:
        return _nothing_in(source)
    shown = [f"{name_of(each.path)} ({each.reason})" for each in skipped[:_MOST_NAMES_SHOWN]]
    more = [f"{len(skipped) - len(shown)} more"] if len(skipped) > len(shown) else []
    return f"{source} holds no trace, only: {'; '.join(shown + more)}{_subfolders(source)}"


def _nothing_in(source: str) -> str:
    location = located(source)
    if not location.is_dir():
        return f"{source} holds no trace: no file"
    if children := _children(location):
        return f"{source} holds no trace, only: {_listing(children)}"
    return f"{source} is an empty folder; name the one that the profiler wrote its .json or .json.gz files to"


def _nearest_folder(location: Location) -> Location | None:
    """Return the nearest folder around a path that is there, of the web none: nobody can tell."""
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
    names = [child.name for child in _children(located(source)) if child.is_dir]
    listed = ", ".join(sorted(names)[:_MOST_NAMES_SHOWN])
    return f". Its folders are not searched: {listed}; holotrace runs {source} says what they hold" if names else ""


def _children(folder: Location) -> list[Child]:
    try:
        return scan(folder)
    except OSError:
        return []
