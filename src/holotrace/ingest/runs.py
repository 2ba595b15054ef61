"""The runs in a log folder: which recordings belong together, by worker and by span.

Every folder that holds traces is a run, named by its path below the log folder; files in the log folder itself make a
run of its name. The log folder is a path or a URL. A file is named `<worker>.<number>.pt.trace.json.gz` by PyTorch; the number, the last one between dots,
tells the recordings of a worker apart and is usually the time. Any other trace counts as well: its worker is the name
without `.json` and so on. Compression is told by the content.

The spans of a run are the times at which its workers recorded, counted from 1 in numeric order. Where workers have
different numbers of recordings, those that were made at about the same time are one span; where the numbers are no
times, the first of each worker are the first span, and so on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

from holotrace.errors import InvalidOptionError, NotATraceError, TraceNotFoundError, UnreadableTraceError
from holotrace.execution.progress import Progress
from holotrace.ingest.discover import natural_order, nothing_there, rank_of_trace, skipped_file
from holotrace.ingest.open_trace import open_among
from holotrace.ingest.worker_names import worker_and_stamp
from holotrace.locations import Address, RemotePath, Status, address_text, is_url, located, name_of, scan, side_by_side
from holotrace.store.cache import CacheOption
from holotrace.store.store_files import STORE_MANIFEST
from holotrace.store.trace import SkippedFile, Trace

_MOST_NAMED = 4
_DIGITS_OF_A_TIME = {10, 13, 16, 19}
"""Unix time in s, ms, µs or ns."""

_State: TypeAlias = tuple[int, int, int | str]
"""Size, time of the last change and number or version of a file: when they are the same, so is the file."""

_Content: TypeAlias = tuple[Hashable, dict[str, "_State | None"]]
"""What identifies a folder, and the state of the files in it; None for a folder."""


class _Seen(NamedTuple):
    """What a file was when it was last looked at: a trace of a rank (None: not said), or why it is left out."""

    state: _State
    rank: int | None
    left_out: SkippedFile | None


@dataclass(frozen=True)
class Recording:
    """One trace file of a run.

    path         below the folder that was given
    worker       who recorded it, from the name of the file
    span         which of the run's recordings it is, from 1
    stamp        the number in the name of the file, None where there is none
    rank         as the beginning or the name of the file says; None where they do not, and the file has to be read
    byte_count   size of the file
    modified_ns  when it was last changed, ns since the Unix epoch
    """

    path: str
    worker: str
    span: int
    stamp: int | None
    rank: int | None
    byte_count: int
    modified_ns: int


@dataclass(frozen=True)
class Run:
    """The recordings in one folder, sorted by span and worker.

    unreadable  files that would be recordings, could they be read; a run may have no others
    """

    name: str
    recordings: tuple[Recording, ...]
    unreadable: tuple[SkippedFile, ...] = ()

    @property
    def workers(self) -> tuple[str, ...]:
        """Who recorded, in natural order."""
        return tuple(sorted({each.worker for each in self.recordings}, key=natural_order))

    @property
    def spans(self) -> tuple[int, ...]:
        """The spans, in numeric order."""
        return tuple(sorted({each.span for each in self.recordings}))

    def of_span(self, span: int) -> tuple[Recording, ...]:
        """Return the recordings of a span.

        Raises:
            InvalidOptionError: there is no such span.
        """
        found = tuple(each for each in self.recordings if each.span == span)
        if not found:
            message = f"run {self.name} has no span {span}; its spans are: {', '.join(map(str, self.spans))}"
            raise InvalidOptionError(message)
        return found

    def open(self, span: int | None = None, *, cache: CacheOption = True, progress: Progress | None = None) -> Trace:
        """Open the workers of a span, by default of the last one, as one job.

        Where two of them have the same rank, because two jobs wrote into one folder, the newest is taken and the
        other is among `skipped`.

        Raises:
            UnreadableTraceError: none of its files can be read.
        """
        if not self.recordings:
            message = f"run {self.name} has no file that can be read: {_named_unreadable(self.unreadable)}"
            raise UnreadableTraceError(message)
        paths = [each.path for each in self.of_span(self.spans[-1] if span is None else span)]
        return open_among(f"run {self.name}", paths, cache=cache, progress=progress)


@dataclass(frozen=True)
class RunChanges:
    """What changed between two looks at a folder: paths of traces, each in natural order."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether anything changed."""
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True)
class Runs:
    """The runs in a folder, sorted by name, and every file in it that cannot be opened with one, with the reason."""

    folder: str
    runs: tuple[Run, ...]
    skipped: tuple[SkippedFile, ...]
    _seen: Mapping[str, _Seen] = field(repr=False, compare=False)

    def refresh(self) -> Runs:
        """Look at the folder again. Only new and changed files are opened; of the others only the state is asked."""
        return _look(self.folder, self._seen)

    def changes_since(self, earlier: Runs) -> RunChanges:
        """Say which traces were added, changed or removed since an earlier look."""
        before, now = earlier._traces(), self._traces()
        return RunChanges(
            added=_ordered(now.keys() - before.keys()),
            changed=_ordered({path for path in now.keys() & before.keys() if now[path] != before[path]}),
            removed=_ordered(before.keys() - now.keys()),
        )

    def run(self, name: str) -> Run:
        """Return the run of that name.

        Raises:
            InvalidOptionError: there is no such run.
        """
        for run in self.runs:
            if run.name == name:
                return run
        listed = ", ".join(run.name for run in self.runs) or "none"
        message = f"{self.folder} has no run {name!r}; its runs are: {listed}"
        raise InvalidOptionError(message)

    def _traces(self) -> dict[str, _State]:
        return {each.path: self._seen[each.path].state for run in self.runs for each in run.recordings}


def find_runs(folder: Address) -> Runs:
    """Find the runs in a log folder and its subfolders; links are followed, hidden files and folders left out.

    Of each file only the beginning is read.

    Raises:
        TraceNotFoundError: there is no such folder.
        UnreadableTraceError: it cannot be listed.
    """
    path = address_text(folder)
    location = located(path)
    if not location.is_dir():
        is_file = location.exists()
        raise TraceNotFoundError(f"{path} is a file; name the folder of its run" if is_file else nothing_there(path))
    return _look(path, {})


def run_in(folder: str) -> Run | None:
    """Return the run of a folder, without those below it; None where it holds no trace.

    Raises:
        OSError: it cannot be listed.
    """
    _, entries = _listed(folder)
    files = {path: state for path, state in entries.items() if state is not None}
    seen = dict(zip(files, side_by_side(partial(_look_at, files, {}), list(files)), strict=True))
    kept, _ = _without_doubles([_named(path, each) for path, each in seen.items() if each.left_out is None])
    return Run(_run_name(folder, folder), _with_spans(kept)) if kept else None


def _look(folder: str, known: Mapping[str, _Seen]) -> Runs:
    skipped: list[SkippedFile] = []
    seen: dict[str, _Seen] = {}
    runs = []
    for below, files in _folders(folder, skipped):
        seen |= dict(zip(files, side_by_side(partial(_look_at, files, known), list(files)), strict=True))
        found = [_named(path, seen[path]) for path in files if seen[path].left_out is None]
        kept, doubles = _without_doubles(found)
        skipped += doubles
        left_out = [each for path in files if (each := seen[path].left_out)]
        unreadable = tuple(each for each in left_out if each.is_unreadable)
        skipped += left_out
        if kept or unreadable:
            runs.append(Run(_run_name(folder, below), _with_spans(kept) if kept else (), unreadable))
    return Runs(
        folder,
        tuple(sorted(runs, key=lambda run: natural_order(run.name))),
        tuple(sorted(skipped, key=lambda file: natural_order(file.path))),
        seen,
    )


def _folders(folder: str, skipped: list[SkippedFile]) -> Iterator[tuple[str, dict[str, _State]]]:
    """Yield each folder with the state of its files; a folder that two paths lead to comes once."""
    waiting, visited = [folder], set[Hashable]()
    while waiting:
        current = waiting.pop()
        try:
            identity, entries = _listed(current)
        except OSError as error:
            reason = f"cannot be listed: {error.strerror or error}"
            if current == folder:
                message = f"{folder} {reason}"
                raise UnreadableTraceError(message) from error
            skipped.append(SkippedFile(current, reason))
            continue
        if identity in visited:
            continue
        visited.add(identity)
        if any(name_of(path) == STORE_MANIFEST for path in entries):
            skipped.append(SkippedFile(current, "a store of a whole job; open it by its path"))
            continue
        waiting += [path for path, state in entries.items() if state is None]
        yield current, {path: state for path, state in entries.items() if state is not None}


def _listed(folder: str) -> _Content:
    children = sorted(scan(folder), key=lambda child: natural_order(child.path))
    if is_url(folder):
        return folder, {each.path: None if each.is_dir else _state_behind(each.status) for each in children}
    status = Path(folder).stat()
    return (status.st_dev, status.st_ino), {each.path: None if each.is_dir else _state(each.path) for each in children}


def _state(path: str) -> _State:
    """Return the state of a file; of a link that leads nowhere, zeros."""
    try:
        status = Path(path).stat()
    except OSError:
        return 0, 0, 0
    return status.st_size, status.st_mtime_ns, status.st_ino


def _state_behind(status: Status | None) -> _State:
    return (0, 0, 0) if status is None else (status.size or 0, status.mtime_ns, status.etag)


def _look_at(states: Mapping[str, _State], known: Mapping[str, _Seen], path: str) -> _Seen:
    """Return what a file is, without opening it where it is as it was."""
    state = states[path]
    if path in known and known[path].state == state and any(state[1:]):
        return known[path]
    try:
        return _Seen(state, rank_of_trace(path, _not_read), None)
    except (NotATraceError, UnreadableTraceError) as error:
        return _Seen(state, None, skipped_file(path, error))


def _named_unreadable(files: Sequence[SkippedFile]) -> str:
    named = "; ".join(f"{name_of(each.path)} ({each.reason})" for each in files[:_MOST_NAMED])
    return f"{named}; {len(files) - _MOST_NAMED:,} more" if len(files) > _MOST_NAMED else named


def _not_read(_: str) -> None:
    """Leave the rank open where only reading the whole file would tell it."""


def _named(path: str, seen: _Seen) -> Recording:
    worker, stamp = worker_and_stamp(path)
    size, modified_ns, _ = seen.state
    return Recording(path, worker, 0, stamp, seen.rank, size, modified_ns)


def _without_doubles(found: list[Recording]) -> tuple[list[Recording], list[SkippedFile]]:
    """Keep the newest of the files that are of one worker and have one number, such as a.json and a.json.gz."""
    by_name: dict[tuple[str, int | None], list[Recording]] = {}
    for each in found:
        by_name.setdefault((each.worker, each.stamp), []).append(each)
    newest = {name: max(files, key=lambda each: (each.modified_ns, each.path)) for name, files in by_name.items()}
    doubles = [
        SkippedFile(each.path, f"of the same worker and span as {name_of(newest[name].path)}, which is newer")
        for name, files in by_name.items()
        for each in files
        if each is not newest[name]
    ]
    return list(newest.values()), doubles


def _run_name(folder: str, below: str) -> str:
    root, here = located(folder), located(below)
    if isinstance(root, RemotePath) and isinstance(here, RemotePath):
        return here.below(root) or root.name or folder
    relative = Path(below).relative_to(folder).as_posix()
    return Path(folder).resolve().name if relative == "." else relative


def _with_spans(recordings: list[Recording]) -> tuple[Recording, ...]:
    """Number the spans; see the head of this file."""
    by_worker: dict[str, list[Recording]] = {}
    for each in sorted(recordings, key=lambda each: -1 if each.stamp is None else each.stamp):
        by_worker.setdefault(each.worker, []).append(each)
    span_of = _spans_by_time(list(by_worker.values()))
    numbered = [
        _in_span(each, place if span_of is None else span_of(each))
        for files in by_worker.values()
        for place, each in enumerate(files, start=1)
    ]
    return tuple(sorted(numbered, key=lambda each: (each.span, natural_order(each.worker))))


def _in_span(recording: Recording, span: int) -> Recording:
    return Recording(**{**vars(recording), "span": span})


def _spans_by_time(workers: list[list[Recording]]) -> Callable[[Recording], int] | None:
    """Return the span of a recording by its time; None where counting is enough, or the numbers are no times.

    Recordings are one span while they are nearer to its first one than half of the shortest time between two
    recordings of one worker, so no worker is in a span twice.
    """
    times = [[_time_ns(each) for each in files] for files in workers]
    shortest = min((later - earlier for each in times for earlier, later in pairwise(each)), default=0)
    if len({len(each) for each in times}) == 1 or min(map(min, times)) < 0 or shortest <= 0:
        return None
    begins: list[int] = []
    for time in sorted(time for each in times for time in each):
        if not begins or 2 * (time - begins[-1]) >= shortest:
            begins.append(time)
    return lambda recording: bisect_right(begins, _time_ns(recording))


def _time_ns(recording: Recording) -> int:
    """Return the time in the name of a file, -1 where the number is no time."""
    digits = str(recording.stamp)
    return int(digits.ljust(19, "0")) if len(digits) in _DIGITS_OF_A_TIME else -1


def _ordered(paths: set[str]) -> tuple[str, ...]:
    return tuple(sorted(paths, key=natural_order))
