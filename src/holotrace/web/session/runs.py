"""The runs below the paths that a server serves.

As in TensorBoard, a folder with at least one trace is a run, even if the trace cannot be read; the search continues in
its subfolders. A store is also a run, but the search skips its subfolders. The server shows nothing outside the served
folder: it ignores links to folders, links to files outside it and, if the folder is a URL, entries in its listing that
point outside.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path

from holotrace.errors import TraceNotFoundError, UnreadableTraceError
from holotrace.ingest.captures import CAPTURE_FOLDERS, CaptureFiles
from holotrace.ingest.discover import is_or_was_a_trace, natural_order
from holotrace.ingest.kineto import KinetoReader
from holotrace.ingest.runs import run_in
from holotrace.locations import Child, RemotePath, Status, is_url, located, name_of, status_of
from holotrace.locations.scan import readable_children
from holotrace.store.captures import CaptureSource
from holotrace.store.job_store import StoredFile
from holotrace.store.store_files import RANKS_FOLDER, STORE_MANIFEST
from holotrace.store.trace import RankFile, RankTrace, SkippedFile, Trace
from holotrace.store.trace_file import TraceFile
from holotrace.web.session.bound_files import BoundFile, BoundReader

MOST_FOLDERS = 20_000
"""Maximum number of folders to search below one path; a log folder of TensorBoard may contain more folders."""

SPAN_MARK = "~"
"""The character between the id of a run and the number of a span."""

_ENDINGS = (".json", ".json.gz", ".json.zst", ".gz", ".zst")
_Listing = tuple[tuple[str, int, int | str], ...]
"""Name, size, and version or modification time of each file that may be a trace."""


@dataclass(frozen=True)
class RunInfo:
    """One recorded job.

    id      an id that does not change when the server restarts; the id of a span (one of several recordings in the
            run's folder) ends with the span's number: `31fc1308cf59~2`
    name    the run's folder, relative to the served folder, or the name of the file
    source  the argument for `holotrace.open_trace`
    root    the folder that must contain the run's files; None if the user named the files
    stamp   a text that changes when the files change

    file_bytes  total size of the files that may be traces
    written_ns  time at which the newest file was written, ns since 1970; None if unknown
    """

    id: str
    name: str
    source: str | tuple[str, ...]
    root: str | None
    stamp: str
    file_bytes: int = 0
    written_ns: int | None = None


def runs_under(paths: Sequence[str]) -> Iterator[RunInfo]:
    """Find the runs: one run for all paths that are not folders, and one for each folder with a trace."""
    files = tuple(path for path in paths if not located(path).is_dir())
    if files:
        yield _run_of_files(files)
    for path in paths:
        if path not in files:
            yield from _runs_below(path)


def of_span(info: RunInfo, span: str) -> RunInfo | None:
    """Return one span of a run (see `spans_of`); None if the run has no such span."""
    files = {str(number): files for number, files in spans_of(info).items()}.get(span)
    return replace(info, id=f"{info.id}{SPAN_MARK}{span}", source=files) if files else None


def spans_of(info: RunInfo) -> dict[int, tuple[str, ...]]:
    """Return the files of each span (one recording of all workers); empty if the user named the files."""
    return {} if isinstance(info.source, tuple) or info.root is None else _spans_in(info.source, info.stamp)


def contained(trace: Trace, root: str | None) -> Trace:
    """Leave out files that are outside `root`; links inside `root` may point to such files.

    They become skipped files. If such a file was already skipped, a new reason replaces the old one, because the old
    reason may quote the file's content. If one of the remaining files is later replaced by a link, reading it fails.

    Raises:
        TraceNotFoundError: all files are outside the served folder.
    """
    bound = {rank: _bound(rank_trace, root) for rank, rank_trace in trace.ranks.items()}
    inside = {rank: rank_trace for rank, rank_trace in bound.items() if rank_trace is not None}
    if bound and not inside:
        message = (
            f"all {len(bound)} trace files of this run are outside the served folder, and pages do not follow links "
            "to them; serve the folder with the files, or name the files: holotrace serve FILE…"
        )
        raise TraceNotFoundError(message)
    skipped = [file for file in trace.skipped if root is None or _is_inside(file.path, root)]
    paths = (
        *(file.path for file in trace.skipped if file not in skipped),
        *(rank_trace.source for rank, rank_trace in trace.ranks.items() if rank not in inside),
    )
    outside = [SkippedFile(path, "a link to a file outside the served folder") for path in paths]
    return Trace(inside, (*skipped, *outside))


def real_paths(paths: Iterable[str]) -> dict[str, Path]:
    """Return the resolved paths of local files; leave out links, because their targets may change."""
    named = {path: Path(path) for path in paths if not is_url(path)}
    return {path: file.resolve() for path, file in named.items() if file.is_file() and not file.is_symlink()}


def expect_still_there(real: Mapping[str, Path]) -> None:
    """Check that paths still point to the same files as when the server started.

    Raises:
        UnreadableTraceError: a path now points to a different file.
    """
    for path, file in real.items():
        if Path(path).resolve() != file:
            message = f"{path} became a link after holotrace serve started; restart holotrace serve to follow it"
            raise UnreadableTraceError(message)


def _bound(rank_trace: RankTrace, root: str | None) -> RankTrace | None:
    """Return the rank; None if its file is outside `root`.

    If the path of a local trace later points to another file, reading the rank fails.
    """
    file = rank_trace.file
    if isinstance(file, TraceFile) and not is_url(file.path):
        bound = BoundFile.of(file.path, root)
        reader = None if bound is None else BoundReader(file.reader, bound)
        captures = _bound_captures(rank_trace.capture_source, root)
        return None if reader is None else RankTrace(rank_trace.rank, file.read_by(reader), capture_source=captures)
    is_inside = root is None or all(_is_inside(path, root) for path in _files_of(file))
    return rank_trace if is_inside else None


def _bound_captures(source: CaptureSource | None, root: str | None) -> CaptureSource | None:
    """Return `source`, restricted to captures inside `root`; if the user named the captures, return it unchanged."""
    if not isinstance(source, CaptureFiles) or source.named:
        return source
    return replace(source, reader_of=partial(_bound_reader, root=root))


def _bound_reader(path: str, root: str | None) -> BoundReader | None:
    bound = None if Path(path).is_symlink() else BoundFile.of(path, root)
    return None if bound is None else BoundReader(KinetoReader(), bound)


@lru_cache(maxsize=256)
def _spans_in(folder: str, stamp: str) -> dict[int, tuple[str, ...]]:
    """Return the files of each span in a folder; cached until the files, and with them `stamp`, change."""
    del stamp
    try:
        run = run_in(folder)
    except OSError:
        return {}
    return {span: tuple(file.path for file in run.of_span(span)) for span in run.spans} if run else {}


def _files_of(file: RankFile) -> list[str]:
    """Return the paths of a rank: its trace, or its folder in a store and the files in it."""
    if isinstance(file, StoredFile):
        return [str(file.folder), *(child.path for child in readable_children(str(file.folder)))]
    return [file.path]


def _run_of_files(files: tuple[str, ...]) -> RunInfo:
    name = name_of(files[0]) if len(files) == 1 else f"{name_of(files[0])} and {len(files) - 1} more"
    source = files[0] if len(files) == 1 else files
    listing = tuple((path, *_size_and_time(path)) for path in files)
    return RunInfo(_short_hash(files), name, source, None, _short_hash(listing), *_extent(listing))


def _runs_below(path: str) -> Iterator[RunInfo]:
    for folder, listing in islice(_folders(path), MOST_FOLDERS):
        if _is_store(name for name, _, _ in listing) or _holds_a_trace(folder, listing):
            yield RunInfo(
                _short_hash(folder), _name(folder, path), folder, path, _short_hash(listing), *_extent(listing)
            )


def _extent(listing: _Listing) -> tuple[int, int | None]:
    """Return the total size of the listed files, and the time at which the newest was written."""
    times = [time for _, _, time in listing if isinstance(time, int) and time]
    return sum(max(0, size) for _, size, _ in listing), max(times, default=None)


def _folders(root: str) -> Iterator[tuple[str, _Listing]]:
    """Yield a folder and its subfolders, each with the files that may be traces; unreadable folders count as empty."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        children = sorted(readable_children(folder), key=lambda child: natural_order(child.name), reverse=True)
        if not _is_store(child.name for child in children):
            waiting += [
                child.path
                for child in children
                if child.is_dir and not _is_link(child.path) and not _is_capture(child, children)
            ]
        else:
            children += readable_children(str(located(folder) / RANKS_FOLDER))
        may_be = sorted((child for child in children if child.name.endswith(_ENDINGS)), key=lambda child: child.name)
        yield folder, tuple((child.name, *_size_and_time(child.path, child.status)) for child in may_be)


def _is_capture(folder: Child, beside: Iterable[Child]) -> bool:
    """Return whether a folder contains captures for the traces next to it; such a folder is not a run."""
    return folder.name in CAPTURE_FOLDERS and any(child.name.endswith(_ENDINGS) for child in beside)


def _is_store(names: Iterable[str]) -> bool:
    return STORE_MANIFEST in names


def _is_link(path: str) -> bool:
    return located(path).is_symlink()


def _name(folder: str, root: str) -> str:
    here, above = located(folder), located(root)
    if isinstance(here, RemotePath) and isinstance(above, RemotePath):
        return here.below(above) or above.name or root
    relative = os.path.relpath(folder, root)
    return (Path(root).resolve().name or root) if relative == "." else relative


def _size_and_time(path: str, known: Status | None = None) -> tuple[int, int | str]:
    """Return a file's size, and its version or, if it has none, its modification time; zeros for a broken link."""
    try:
        status = known or status_of(located(path))
    except OSError:
        return 0, 0
    return -1 if status.size is None else status.size, status.etag or status.mtime_ns


@lru_cache(maxsize=4_096)
def _holds_a_trace(folder: str, listing: _Listing) -> bool:
    """Return whether any file in the folder begins like a trace; cached for each folder and listing."""
    return any(is_or_was_a_trace(_inside(folder, name)) for name, _, _ in listing)


def _inside(folder: str, name: str) -> str:
    return str(located(folder) / name) if is_url(folder) else os.path.join(folder, name)  # noqa: PTH118 -- the result must begin with the given text


def _is_inside(path: str, root: str) -> bool:
    inside, outside = located(path), located(root)
    if isinstance(inside, RemotePath) or isinstance(outside, RemotePath):
        return isinstance(inside, RemotePath) and isinstance(outside, RemotePath) and inside.is_inside(outside)
    return Path(path).resolve().is_relative_to(Path(root).resolve())


def _short_hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode(errors="surrogatepass")).hexdigest()[:12]
