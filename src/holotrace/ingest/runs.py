"""The runs in a log folder, with their recordings by worker and by span.

Every folder with traces is a run, named by its path below the log folder. The log folder may be local or at a URL.
Files directly in the log folder form a run with the folder's name. PyTorch names a file
`<worker>.<number>.pt.trace.json.gz`; the number, usually the time, distinguishes the recordings of a worker. For other
file names, the worker is the name without `.json` and similar suffixes. Compression is detected from the content.

A span is a period in which the run's workers recorded. Spans are numbered from 1, in the order of the numbers in the
file names: the n-th recordings of all workers form span n. If some workers have more recordings than others, and the
numbers in the file names are times, then recordings from about the same time form a span instead.
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
from holotrace.ingest.captures import CAPTURE_FOLDERS
from holotrace.ingest.discover import natural_order, nothing_there, rank_of_trace, skipped_file
from holotrace.ingest.open_trace import open_among
from holotrace.ingest.worker_names import worker_and_stamp
from holotrace.locations import Address, RemotePath, Status, address_text, is_url, located, name_of, scan, side_by_side
from holotrace.store.cache import CacheOption
from holotrace.store.store_files import STORE_MANIFEST
from holotrace.store.trace import SkippedFile, Trace

_CAPTURES = "captures of CUDA graphs; they are used when the traces beside this folder are opened"
_MOST_NAMED = 4
_DIGITS_OF_A_TIME = {10, 13, 16, 19}
"""How many digits a Unix time in s, ms, µs or ns has; a number of any other length is not a time."""

_State: TypeAlias = tuple[int, int, int | str]
"""Size, time of the last change, and inode or version of a file; if all are equal, the file has not changed."""

_Content: TypeAlias = tuple[Hashable, dict[str, "_State | None"]]
"""The identity of a folder, and its entries as {path: state of a file, or None for a subfolder}."""


class _Inspected(NamedTuple):
    """The result of inspecting a file: the rank of the trace (None if unknown), or the reason for skipping the file."""

    state: _State
    rank: int | None
    skipped: SkippedFile | None


@dataclass(frozen=True)
class Recording:
    """One trace file of a run.

    path         path of the file, beginning with the given folder
    worker       name of the process that recorded the file, taken from the file name
    span         number of the span in the run, from 1
    stamp        the number in the file name, else None
    rank         the rank at the beginning of the file or in its name; None if the whole file must be read to find it
    byte_count   size of the file
    modified_ns  time of the last change, ns since the Unix epoch
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

    unreadable  files that look like recordings but cannot be read; some runs contain only such files

    >>> import holotrace
    >>> import tempfile
    >>> from holotrace.testing import write_job
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_job(folder, ranks=2, steps=1)
    ...     (run,) = holotrace.find_runs(folder).runs
    >>> len(run.recordings), run.spans
    (2, (1,))
    """

    name: str
    recordings: tuple[Recording, ...]
    unreadable: tuple[SkippedFile, ...] = ()

    @property
    def workers(self) -> tuple[str, ...]:
        """The workers, in natural order."""
        return tuple(sorted({recording.worker for recording in self.recordings}, key=natural_order))

    @property
    def spans(self) -> tuple[int, ...]:
        """The numbers of the spans, in ascending order."""
        return tuple(sorted({recording.span for recording in self.recordings}))

    def of_span(self, span: int) -> tuple[Recording, ...]:
        """Return the recordings of a span.

        Raises:
            InvalidOptionError: there is no such span.
        """
        recordings = tuple(recording for recording in self.recordings if recording.span == span)
        if not recordings:
            message = f"run {self.name} has no span {span}; its spans are: {', '.join(map(str, self.spans))}"
            raise InvalidOptionError(message)
        return recordings

    def open(self, span: int | None = None, *, cache: CacheOption = True, progress: Progress | None = None) -> Trace:
        """Open the recordings of a span, by default the last one, as one job.

        If two jobs wrote into one folder, two recordings may have the same rank. The newer recording is opened, and
        the older one is listed in `skipped`.

        Raises:
            UnreadableTraceError: no file of the run can be read.
        """
        if not self.recordings:
            message = f"run {self.name} has no readable file: {_named_unreadable(self.unreadable)}"
            raise UnreadableTraceError(message)
        paths = [recording.path for recording in self.of_span(self.spans[-1] if span is None else span)]
        return open_among(f"run {self.name}", paths, cache=cache, progress=progress)


@dataclass(frozen=True)
class RunChanges:
    """The paths of traces that were added, changed or removed between two scans of a folder, each in natural order."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether anything changed."""
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True)
class Runs:
    """The runs in a folder, sorted by name, and the files that belong to no run, each with a reason.

    >>> import holotrace
    >>> import tempfile
    >>> from holotrace.testing import write_job
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_job(folder, ranks=2, steps=1)
    ...     found = holotrace.find_runs(folder)
    >>> [len(run.recordings) for run in found.runs], [file.reason for file in found.skipped]
    ([2], ['not a profiler trace: a JSON object without traceEvents'])
    """

    folder: str
    runs: tuple[Run, ...]
    skipped: tuple[SkippedFile, ...]
    _inspected: Mapping[str, _Inspected] = field(repr=False, compare=False)

    def refresh(self) -> Runs:
        """Scan the folder again; only new and changed files are opened."""
        return _scanned(self.folder, self._inspected)

    def changes_since(self, earlier: Runs) -> RunChanges:
        """Return which traces were added, changed or removed since an earlier scan."""
        before, now = earlier._traces(), self._traces()
        return RunChanges(
            added=_ordered(now.keys() - before.keys()),
            changed=_ordered({path for path in now.keys() & before.keys() if now[path] != before[path]}),
            removed=_ordered(before.keys() - now.keys()),
        )

    def run(self, name: str) -> Run:
        """Return the run with this name.

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
        return {
            recording.path: self._inspected[recording.path].state for run in self.runs for recording in run.recordings
        }


def find_runs(folder: Address) -> Runs:
    """Find the runs in a log folder and its subfolders; links are followed, hidden files and folders are skipped.

    Only the beginning of each file is read.

    Raises:
        TraceNotFoundError: the folder does not exist.
        UnreadableTraceError: the folder cannot be listed.

    >>> import holotrace
    >>> import tempfile
    >>> from holotrace.testing import write_job
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_job(folder, ranks=2, steps=1)
    ...     runs = holotrace.find_runs(folder)
    >>> len(runs.runs)
    1
    """
    path = address_text(folder)
    location = located(path)
    if not location.is_dir():
        is_file = location.exists()
        raise TraceNotFoundError(f"{path} is a file; name the folder of its run" if is_file else nothing_there(path))
    return _scanned(path, {})


def run_in(folder: str) -> Run | None:
    """Return the run in a folder, without its subfolders; None if the folder contains no trace.

    Raises:
        OSError: the folder cannot be listed.
    """
    _, entries = _listed(folder)
    files = {path: state for path, state in entries.items() if state is not None}
    inspected = dict(zip(files, side_by_side(partial(_inspect, files, {}), list(files)), strict=True))
    kept, _ = _without_doubles([_recording(path, file) for path, file in inspected.items() if file.skipped is None])
    return Run(_run_name(folder, folder), _with_spans(kept)) if kept else None


def _scanned(folder: str, known: Mapping[str, _Inspected]) -> Runs:
    skipped: list[SkippedFile] = []
    inspected: dict[str, _Inspected] = {}
    runs = []
    for below, files in _folders(folder, skipped):
        inspected |= dict(zip(files, side_by_side(partial(_inspect, files, known), list(files)), strict=True))
        recordings = [_recording(path, inspected[path]) for path in files if inspected[path].skipped is None]
        kept, doubles = _without_doubles(recordings)
        skipped += doubles
        skipped_here = [file for path in files if (file := inspected[path].skipped)]
        unreadable = tuple(file for file in skipped_here if file.is_unreadable)
        skipped += skipped_here
        if kept or unreadable:
            runs.append(Run(_run_name(folder, below), _with_spans(kept) if kept else (), unreadable))
    return Runs(
        folder,
        tuple(sorted(runs, key=lambda run: natural_order(run.name))),
        tuple(sorted(skipped, key=lambda file: natural_order(file.path))),
        inspected,
    )


def _folders(folder: str, skipped: list[SkippedFile]) -> Iterator[tuple[str, dict[str, _State]]]:
    """Yield each folder with the state of its files; a folder reachable by two paths is yielded once."""
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
        files = {path: state for path, state in entries.items() if state is not None}
        folders = [path for path, state in entries.items() if state is None]
        captures = [path for path in folders if files and name_of(path) in CAPTURE_FOLDERS]
        skipped += [SkippedFile(path, _CAPTURES) for path in captures]
        waiting += [path for path in folders if path not in captures]
        yield current, files


def _listed(folder: str) -> _Content:
    children = sorted(scan(folder), key=lambda child: natural_order(child.path))
    if is_url(folder):
        return folder, {child.path: None if child.is_dir else _remote_state(child.status) for child in children}
    status = Path(folder).stat()
    states = {child.path: None if child.is_dir else _state(child.path) for child in children}
    return (status.st_dev, status.st_ino), states


def _state(path: str) -> _State:
    """Return the state of a file; zeros for a broken link."""
    try:
        status = Path(path).stat()
    except OSError:
        return 0, 0, 0
    return status.st_size, status.st_mtime_ns, status.st_ino


def _remote_state(status: Status | None) -> _State:
    return (0, 0, 0) if status is None else (status.size or 0, status.mtime_ns, status.etag)


def _inspect(states: Mapping[str, _State], known: Mapping[str, _Inspected], path: str) -> _Inspected:
    """Inspect a file; it is opened only if it is new or has changed."""
    state = states[path]
    if path in known and known[path].state == state and any(state[1:]):
        return known[path]
    try:
        return _Inspected(state, rank_of_trace(path, _not_read), None)
    except (NotATraceError, UnreadableTraceError) as error:
        return _Inspected(state, None, skipped_file(path, error))


def _named_unreadable(files: Sequence[SkippedFile]) -> str:
    named = "; ".join(f"{name_of(file.path)} ({file.reason})" for file in files[:_MOST_NAMED])
    return f"{named}; {len(files) - _MOST_NAMED:,} more" if len(files) > _MOST_NAMED else named


def _not_read(_: str) -> None:
    """Leave the rank unknown instead of reading the whole file."""


def _recording(path: str, file: _Inspected) -> Recording:
    worker, stamp = worker_and_stamp(path)
    size, modified_ns, _ = file.state
    return Recording(path, worker, 0, stamp, file.rank, size, modified_ns)


def _without_doubles(recordings: list[Recording]) -> tuple[list[Recording], list[SkippedFile]]:
    """Keep the newest of the files with the same worker and number, such as a.json and a.json.gz."""
    by_name: dict[tuple[str, int | None], list[Recording]] = {}
    for recording in recordings:
        by_name.setdefault((recording.worker, recording.stamp), []).append(recording)
    newest = {name: max(files, key=lambda file: (file.modified_ns, file.path)) for name, files in by_name.items()}
    doubles = [
        SkippedFile(file.path, f"same worker and span as {name_of(newest[name].path)}, which is newer")
        for name, files in by_name.items()
        for file in files
        if file is not newest[name]
    ]
    return list(newest.values()), doubles


def _run_name(folder: str, below: str) -> str:
    root, here = located(folder), located(below)
    if isinstance(root, RemotePath) and isinstance(here, RemotePath):
        return here.below(root) or root.name or folder
    relative = Path(below).relative_to(folder).as_posix()
    return Path(folder).resolve().name if relative == "." else relative


def _with_spans(recordings: list[Recording]) -> tuple[Recording, ...]:
    """Number the spans as the module docstring describes."""
    by_worker: dict[str, list[Recording]] = {}
    for recording in sorted(recordings, key=lambda recording: -1 if recording.stamp is None else recording.stamp):
        by_worker.setdefault(recording.worker, []).append(recording)
    span_of = _spans_by_time(list(by_worker.values()))
    numbered = [
        _in_span(recording, number if span_of is None else span_of(recording))
        for files in by_worker.values()
        for number, recording in enumerate(files, start=1)
    ]
    return tuple(sorted(numbered, key=lambda recording: (recording.span, natural_order(recording.worker))))


def _in_span(recording: Recording, span: int) -> Recording:
    return Recording(**{**vars(recording), "span": span})


def _spans_by_time(workers: list[list[Recording]]) -> Callable[[Recording], int] | None:
    """Return a function that finds a recording's span from the time in its file name; None if times are not used.

    If times are not used, span n contains the n-th recording of each worker. If times are used, a span contains its
    first recording and all recordings that begin soon after it. "Soon" means less than half the shortest interval
    between two recordings of one worker, so no worker has two recordings in a span.
    """
    times = [[_time_ns(file) for file in files] for files in workers]
    shortest = min((later - earlier for worker in times for earlier, later in pairwise(worker)), default=0)
    if len({len(worker) for worker in times}) == 1 or min(map(min, times)) < 0 or shortest <= 0:
        return None
    begins: list[int] = []
    for time in sorted(time for worker in times for time in worker):
        if not begins or 2 * (time - begins[-1]) >= shortest:
            begins.append(time)
    return lambda recording: bisect_right(begins, _time_ns(recording))


def _time_ns(recording: Recording) -> int:
    """Return the time in the file name, or -1 if the number in the name is not a time."""
    digits = str(recording.stamp)
    return int(digits.ljust(19, "0")) if len(digits) in _DIGITS_OF_A_TIME else -1


def _ordered(paths: set[str]) -> tuple[str, ...]:
    return tuple(sorted(paths, key=natural_order))
