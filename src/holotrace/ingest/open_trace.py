"""From a path to a Trace."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable

from holotrace.execution.progress import SILENT, Progress
from holotrace.ingest.discover import Found, ReadRank, TraceSource, discover, found_among
from holotrace.ingest.kineto import KinetoReader
from holotrace.locations import RemotePath, located
from holotrace.store.cache import CacheOption
from holotrace.store.header import rank_or_none
from holotrace.store.job_store import is_store, open_store
from holotrace.store.trace import OnError, RankTrace, Trace
from holotrace.store.trace_file import TraceFile

_ENDINGS_OF_FILES = {".json", ".gz", ".zst"}
"""What ends so is no store, which behind a URL is not worth a question to the server."""


def open_trace(
    source: TraceSource,
    *,
    ranks: Iterable[int] | None = None,
    cache: CacheOption = True,
    progress: Progress | None = None,
    on_error: OnError = "fail",
) -> Trace:
    """Open the profiler traces of a job.

    Files are read when an analysis first needs them, and what was read is kept in a cache, so that opening them again
    takes milliseconds. How files are found and get their ranks is described at `holotrace.ingest.discover`.

    Args:
        source: a trace file, a folder of them, a glob pattern, a list of files, `{rank: file}`, or a store that
            `holotrace.write_store` wrote; each as a path, or as a URL such as `s3://bucket/job`.
        ranks: open only these ranks.
        cache: True keeps tables in the user's cache folder (or the one HOLOTRACE_CACHE_DIR names), "beside" in `.holotrace_cache`
            beside the trace, a `pathlib.Path` in that folder, the URL of a folder there as well, for others to use, and
            False nowhere: they stay in memory.
        progress: is told how far the reading of each file is; silent by default.
        on_error: what becomes of a rank whose file turns out unreadable, or on which work fails: "fail" raises its
            error, "skip" reports it in the log, moves it to `skipped` and answers for the others.

    Raises:
        TraceNotFoundError: no trace is there; the message lists what is.
        NotATraceError: a file named by itself is no profiler trace.
        UnreadableTraceError: a file cannot be read; UnreachableError, a kind of it, where it is behind a URL.
        DuplicateRankError: two files of a list have the same rank.
        UnknownRankError: a rank asked for is not there.
    """
    stored = _stored(source)
    found = (_opened(functools.partial(discover, source), cache, progress) if stored is None else stored).select(ranks)
    return Trace(found.ranks, found.skipped, on_error)


def open_among(source: str, paths: list[str], *, cache: CacheOption, progress: Progress | None) -> Trace:
    """Open the traces among these files as one job, the newest of each rank; `source` names them in errors.

    Raises:
        TraceNotFoundError: none of them is a trace.
    """
    return _opened(functools.partial(found_among, source, paths), cache, progress)


def _stored(source: TraceSource) -> Trace | None:
    """Open a source that is a store; None where it is none."""
    if not isinstance(source, (str, os.PathLike, RemotePath)):
        return None
    location = located(source)
    if location.suffix in _ENDINGS_OF_FILES:
        return None
    return open_store(location) if is_store(location) else None


def _opened(find: Callable[[ReadRank], Found], cache: CacheOption, progress: Progress | None) -> Trace:
    progress = SILENT if progress is None else progress
    open_file = functools.cache(functools.partial(TraceFile, reader=KinetoReader(), cache=cache, progress=progress))
    found = find(lambda path: _rank_after_reading(open_file(path)))
    opened = {rank: RankTrace(rank, open_file(path)) for rank, path in found.files.items()}
    return Trace(opened, found.skipped)


def _rank_after_reading(file: TraceFile) -> int | None:
    """Return the rank that the end of the header says, else the one that most collectives name, else None."""
    if file.header.rank is not None:
        return file.header.rank
    named = Counter(file.table("collectives", ["rank"])["rank"].drop_nulls())
    known = [(count, -rank) for rank, count in named.items() if rank_or_none(rank) is not None]
    return -max(known)[1] if known else None
