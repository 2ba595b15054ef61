"""Open the traces at a path as a Trace."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from holotrace.execution.notebook_progress import default_progress
from holotrace.execution.progress import Progress
from holotrace.ingest.captures import CaptureFiles, CaptureOption, captures_beside, captures_named
from holotrace.ingest.discover import JobFiles, ReadRank, TraceSource, discover, traces_among
from holotrace.ingest.kineto import KinetoReader
from holotrace.ingest.recorded import Profiler, export, keep_while_used
from holotrace.locations import RemotePath, located
from holotrace.store.cache import CacheOption
from holotrace.store.header import rank_or_none
from holotrace.store.job_store import is_store, open_store
from holotrace.store.trace import OnError, RankTrace, Trace
from holotrace.store.trace_file import TraceFile

_FILE_SUFFIXES = {".json", ".gz", ".zst"}
"""Files with these suffixes are never stores; skip the remote lookup."""


def open_trace(  # noqa: PLR0913 -- one argument per option
    source: TraceSource | Profiler,
    *,
    ranks: Iterable[int] | None = None,
    capture: CaptureOption = None,
    cache: CacheOption = True,
    progress: Progress | None = None,
    on_error: OnError = "fail",
) -> Trace:
    """Open the profiler traces of a job.

    Files are read when an analysis first needs them. Their tables are kept in a cache, so opening them again takes
    milliseconds. `holotrace.ingest.discover` describes how files are found and how they get their ranks.

    Args:
        source: a trace file, a folder of traces, a glob pattern, a list of files, `{rank: file}`, or a store written by
            `holotrace.write_store`; paths may be URLs such as `s3://bucket/job`. For a finished
            `torch.profiler.profile`, its last recording is opened.
        ranks: open only these ranks.
        capture: files or folders that show which operators launched the kernels of CUDA and HIP graphs. Each file
            contains the trace of a graph's capture, the trace of the same step without graphs, or annotations by graph
            node id. By default, the recordings that vLLM and SGLang write next to a local trace are used; with an
            empty list, none are used.
        cache: where to keep the tables. True: in the user's cache folder, or in HOLOTRACE_CACHE_DIR if set; "beside":
            in `.holotrace_cache` beside the trace; a `pathlib.Path`: in this folder; the URL of a folder: in this
            folder, which several machines can share, and also in the user's cache folder; False: only in memory.
        progress: receives progress updates; by default a bar in a notebook, and nothing elsewhere.
        on_error: what to do if a rank cannot be read, or processing it fails: "fail" raises the error; "skip" logs the
            error, adds it to the findings and continues with the other ranks.

    Raises:
        TraceNotFoundError: there is no trace; the message lists the files that exist.
        NotATraceError: a file that was named explicitly (alone, in a list or in a dict) is not a profiler trace.
        UnreadableTraceError: a file cannot be read; if a URL cannot be reached, the subclass UnreachableError.
        DuplicateRankError: two files of a list have the same rank.
        UnknownRankError: a rank in `ranks` does not exist.
        InvalidOptionError: the profiler is still running, has recorded nothing, or was already exported.

    >>> import holotrace
    >>> import tempfile
    >>> from holotrace.testing import write_job
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_job(folder, ranks=2, steps=1)
    ...     trace = holotrace.open_trace(folder, cache=False)
    ...     len(holotrace.temporal_breakdown(trace).per_device)
    2
    """
    if isinstance(source, Profiler):
        return _of_profiler(source, capture, cache, progress, on_error).select(ranks)
    named = None if capture is None else captures_named(capture, cache, _shown(progress))
    stored = _stored(source)
    opened = _opened(functools.partial(discover, source), cache, progress) if stored is None else stored
    return _with_captures(opened.select(ranks), named, on_error, cache, _shown(progress))


def _of_profiler(
    profiler: Profiler, capture: CaptureOption, cache: CacheOption, progress: Progress | None, on_error: OnError
) -> Trace:
    path = export(profiler)
    trace = open_trace(path, capture=capture, cache=cache, progress=progress, on_error=on_error)
    for rank_trace in trace.ranks.values():
        keep_while_used(path, rank_trace.file)
    return trace


def open_among(source: str, paths: list[str], *, cache: CacheOption, progress: Progress | None) -> Trace:
    """Open the traces among these files as one job, with only the newest file of each rank.

    `source` appears in error messages.

    Raises:
        TraceNotFoundError: none of the files is a trace.
    """
    return _opened(functools.partial(traces_among, source, paths), cache, progress)


def _stored(source: TraceSource) -> Trace | None:
    """Open the source if it is a store; return None for any other source."""
    if not isinstance(source, (str, os.PathLike, RemotePath)):
        return None
    location = located(source)
    if location.suffix in _FILE_SUFFIXES:
        return None
    return open_store(location) if is_store(location) else None


def _with_captures(
    trace: Trace, named: CaptureFiles | None, on_error: OnError, cache: CacheOption, progress: Progress
) -> Trace:
    """Return the trace with the captures that the user named, or else with the captures beside its files."""
    beside = functools.cache(functools.partial(captures_beside, cache=cache, progress=progress))
    ranks = {
        rank: rank_trace.with_captures(beside(Path(rank_trace.source).parent) if named is None else named)
        for rank, rank_trace in trace.ranks.items()
    }
    return Trace(ranks, trace.skipped, on_error, trace.left_out)


def _shown(progress: Progress | None) -> Progress:
    return default_progress() if progress is None else progress


def _opened(find: Callable[[ReadRank], JobFiles], cache: CacheOption, progress: Progress | None) -> Trace:
    progress = _shown(progress)
    open_file = functools.cache(functools.partial(TraceFile, reader=KinetoReader(), cache=cache, progress=progress))
    job = find(lambda path: _rank_after_reading(open_file(path)))
    rank_traces = {rank: RankTrace(rank, open_file(path)) for rank, path in job.files.items()}
    return Trace(rank_traces, job.skipped)


def _rank_after_reading(file: TraceFile) -> int | None:
    """Return the rank in the header, else the rank that most collectives name, else None."""
    if file.header.rank is not None:
        return file.header.rank
    named = Counter(file.table("collectives", ["rank"])["rank"].drop_nulls())
    known = [(count, -rank) for rank, count in named.items() if rank_or_none(rank) is not None]
    return -max(known)[1] if known else None
