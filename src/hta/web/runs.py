"""Which runs lie under the paths that a server was given.

A folder that holds at least one trace is a run, as in TensorBoard; folders below it are searched too. Nothing outside
the folder is served: links to folders are not followed, and traces behind links that lead out of it are left out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from hta.errors import UnreadableTraceError
from hta.ingest.discover import natural_order
from hta.ingest.kineto import peek
from hta.ingest.runs import run_in
from hta.store.trace import SkippedFile, Trace

MOST_FOLDERS = 20_000
"""Folders searched below one path; TensorBoard's log folders may hold anything."""

SPAN_MARK = "~"
"""Stands in an id between that of a run and the number of one of its spans."""

_ENDINGS = (".json", ".json.gz", ".json.zst", ".gz", ".zst")
_Listing = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class RunInfo:
    """One job that can be looked at.

    id      opaque, and the same each time the server starts; of a span, the run's with its number: `31fc1308cf59~2`
    name    its folder below the one served, or the name of the file
    source  what `hta.open_trace` is given
    root    the folder that its files may not lie outside of; None where they were named one by one
    stamp   changes whenever its files do
    """

    id: str
    name: str
    source: str | tuple[str, ...]
    root: str | None
    stamp: str


def runs_under(paths: Sequence[str]) -> Iterator[RunInfo]:
    """Find the runs: one of all the files among the paths, and one of each folder that holds a trace."""
    files = tuple(path for path in paths if not os.path.isdir(path))  # noqa: PTH112 -- the path stays the text given
    if files:
        yield _run_of_files(files)
    for path in paths:
        if path not in files:
            yield from _runs_below(path)


def of_span(info: RunInfo, span: str) -> RunInfo | None:
    """Return the recordings of one span of a run; None where it has no such span."""
    files = {str(number): files for number, files in spans_of(info).items()}.get(span)
    return replace(info, id=f"{info.id}{SPAN_MARK}{span}", source=files) if files else None


def spans_of(info: RunInfo) -> dict[int, tuple[str, ...]]:
    """Return the files of each span of a run, the times at which its workers recorded; none of files named one by one."""
    return {} if isinstance(info.source, tuple) or info.root is None else _spans_in(info.source, info.stamp)


def contained(trace: Trace, root: str) -> Trace:
    """Leave out files that lie outside of `root` behind a link, and what was read of them to tell what they are."""
    inside = {rank: each for rank, each in trace.ranks.items() if _lies_in(each.source, root)}
    skipped = [each for each in trace.skipped if _lies_in(each.path, root)]
    paths = (*(each.path for each in trace.skipped), *(each.source for each in trace.ranks.values()))
    outside = [SkippedFile(path, "a link out of the folder served") for path in paths if not _lies_in(path, root)]
    return Trace(inside, (*skipped, *outside))


@lru_cache(maxsize=256)
def _spans_in(folder: str, stamp: str) -> dict[int, tuple[str, ...]]:
    """Look at a folder again when its stamp has changed."""
    del stamp
    try:
        run = run_in(folder)
    except OSError:
        return {}
    return {span: tuple(each.path for each in run.of_span(span)) for span in run.spans} if run else {}


def _run_of_files(files: tuple[str, ...]) -> RunInfo:
    name = Path(files[0]).name if len(files) == 1 else f"{Path(files[0]).name} and {len(files) - 1} more"
    source = files[0] if len(files) == 1 else files
    listing = tuple((path, *_size_and_time(path)) for path in files)
    return RunInfo(_short_hash(files), name, source, None, _short_hash(listing))


def _runs_below(path: str) -> Iterator[RunInfo]:
    for count, (folder, subfolders, _) in enumerate(os.walk(path)):
        subfolders[:] = sorted((each for each in subfolders if not each.startswith(".")), key=natural_order)
        if count == MOST_FOLDERS:
            return
        listing = _listing(folder)
        if _holds_a_trace(folder, listing):
            yield RunInfo(_short_hash(folder), _name(folder, path), folder, path, _short_hash(listing))


def _name(folder: str, root: str) -> str:
    relative = os.path.relpath(folder, root)
    return (Path(root).resolve().name or root) if relative == "." else relative


def _listing(folder: str) -> _Listing:
    """Return name, size and time of what may be a trace."""
    try:
        with os.scandir(folder) as entries:
            named = sorted(entry.name for entry in entries if entry.name.endswith(_ENDINGS) and entry.name[0] != ".")
    except OSError:
        return ()
    return tuple((name, *_size_and_time(os.path.join(folder, name))) for name in named)  # noqa: PTH118


def _size_and_time(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=4_096)
def _holds_a_trace(folder: str, listing: _Listing) -> bool:
    """Look at the beginnings of files, those of a folder that has not changed only once."""
    return any(_is_trace(str(Path(folder, name))) for name, size, _ in listing if size)


def _is_trace(path: str) -> bool:
    try:
        return os.path.isfile(path) and peek(path).is_trace  # noqa: PTH113
    except UnreadableTraceError:
        return False


def _lies_in(path: str, root: str) -> bool:
    return Path(path).resolve().is_relative_to(Path(root).resolve())


def _short_hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode(errors="surrogatepass")).hexdigest()[:12]
