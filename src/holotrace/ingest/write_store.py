"""Write the traces of a job into one store."""

from __future__ import annotations

import functools
import logging
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from platform import node

import polars as pl

from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.locations import Address, Location, expect_writable_folder, located
from holotrace.store.job_store import Contents, StoredRank, is_store, is_whole, read_contents, stored_rank
from holotrace.store.rank_writing import (
    Writing,
    await_ranks,
    begin_store,
    confirm_rank,
    expect_source,
    is_begun,
    leave_out,
    mend_contents,
    remove_rank,
    take_in,
    write_rank,
)
from holotrace.store.tables.arrow_tables import DamagedTableError
from holotrace.store.trace import RankTrace, Trace
from holotrace.store.trace_file import TraceFile

logger = logging.getLogger("holotrace")

_UNWRITTEN = (OSError, pl.exceptions.PolarsError, DamagedTableError)
_NEW_LINE = "\n"


@dataclass(frozen=True)
class Ingested:
    """The result of writing a job into a store.

    store      address of the store
    written    ranks that were written
    unchanged  ranks that were not written, because their files have not changed since the store was written
    contents   everything that the store contains now

    >>> import holotrace
    >>> import tempfile
    >>> from holotrace.testing import small_job
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = holotrace.write_store(small_job(), f"{folder}/job.store")
    >>> [rank.rank for rank in result.written], result.unchanged
    ([0, 1], ())
    """

    store: str
    written: tuple[StoredRank, ...]
    unchanged: tuple[StoredRank, ...]
    contents: Contents


def write_store(trace: Trace, store: Address, *, overwrite: bool = False, executor: Executor = IN_PROCESS) -> Ingested:
    """Write the traces of a job as one store of Parquet files, which `holotrace.open_trace` can open.

    Each rank has its own folder in the store. Ranks whose files have not changed are not written again, so a second run
    continues where an interrupted run stopped. Other ranks in the store are kept, so several runs may write different
    ranks of a job.

    Args:
        trace: as returned by `holotrace.open_trace`.
        store: a folder, created if its parent exists, or a URL.
        overwrite: also replace stored ranks that were read from other files.
        executor: processes the ranks; its workers must be able to reach the traces and the store.

    Raises:
        InvalidOptionError: the store contains a rank that was read from another file, `trace` is itself a store or has a
            selection of events, or the folder exists but is not a store.
        NotATraceError, UnreadableTraceError: a file is not a trace, or cannot be read.
        OSError: a file cannot be written.

    >>> import holotrace
    >>> import tempfile
    >>> from holotrace.testing import small_job
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = holotrace.write_store(small_job(), f"{folder}/job.store").written
    >>> [rank.rank for rank in written]
    [0, 1]
    """
    location = _absolute(store)
    run = Writing(location, secrets.token_hex(8), overwrite)
    files = {rank: _trace_file(rank_trace) for rank, rank_trace in trace.ranks.items()}
    _expect_room(location)
    begin_store(location)
    present: dict[int, StoredRank | None] = {}
    if not overwrite:
        looked = trace.visit(functools.partial(_unchanged, store=location), executor)
        present, trace = looked.results, looked.trace
    unchanged = tuple(rank for rank in present.values() if rank is not None)
    missing = [rank for rank in trace.ranks if present.get(rank) is None]
    chosen = trace.select(missing) if missing else trace
    written: tuple[StoredRank, ...] = ()
    if missing:
        await_ranks(run, {rank: files[rank].address for rank in missing})
        writing = chosen.visit(functools.partial(_write, run=run), executor)
        written, chosen = tuple(writing.results.values()), writing.trace
    for rank in {*missing} - {stored.rank for stored in written}:
        remove_rank(location, rank)
    for stored in unchanged:
        confirm_rank(location, stored)
    leave_out(location, [replace(file, path=str(_absolute(file.path))) for file in chosen.skipped])
    take_in(location, [stored.source for stored in (*unchanged, *written)])
    mend_contents(location)
    return Ingested(str(location), written, unchanged, read_contents(location))


def _absolute(store: Address) -> Location:
    """Return the folder as an absolute path, because workers may have other working directories."""
    location = located(store)
    return location.absolute() if isinstance(location, Path) else location


def _expect_room(store: Location) -> None:
    """Check, before any work, that the store exists or can be created.

    Raises:
        InvalidOptionError: the path exists but is not a store, or its parent is missing or cannot be written.
        UnreachableError: the bucket does not exist or cannot be reached.
    """
    if is_store(store):
        return
    # Check again, because another process may have created the store in the meantime.
    if store.exists() and not (store.is_dir() and (is_begun(store) or is_store(store))):
        message = f"{store} already exists and is not a holotrace store; name a new folder"
        raise InvalidOptionError(message)
    expect_writable_folder(store if store.exists() else store.parent)
    store.mkdir(exist_ok=True)


def _trace_file(rank_trace: RankTrace) -> TraceFile:
    """Return the trace file of a rank; raise an error if the rank is from a store or has a selection of events."""
    if not isinstance(rank_trace.file, TraceFile):
        message = f"rank {rank_trace.rank} comes from a store; to copy the store, copy its folder"
        raise InvalidOptionError(message)
    if rank_trace.has_selections:
        message = "a store needs complete traces, but this trace has a selection of events; write the complete trace"
        raise InvalidOptionError(message)
    return rank_trace.file


def _unchanged(rank_trace: RankTrace, store: Location) -> StoredRank | None:
    """Return the stored rank if it is complete and up to date; None if the rank must be written.

    Raises:
        InvalidOptionError: the stored rank was read from another file.
    """
    known, file = stored_rank(store, rank_trace.rank), _trace_file(rank_trace)
    if known is None:
        return None
    expect_source(store, known, file.address)
    return known if file.is_still(known.stamp, known.content_hash) and is_whole(store, known.rank) else None


def _write(rank_trace: RankTrace, run: Writing) -> StoredRank:
    """Write a rank; if its cache entry is damaged, read the trace itself again."""
    store = run.store
    # The caller has already created the store. A worker that cannot find the store does not share a file system with
    # the caller.
    if not is_store(store):
        message = f"a worker on {node()} does not see {store}; name a folder that all machines share, or a URL"
        raise InvalidOptionError(message)
    file = _trace_file(rank_trace)
    write = functools.partial(write_rank, run, rank_trace.rank, file.address)
    with file.borrowed() as entry:
        try:
            return write(entry)
        except _UNWRITTEN as error:
            logger.log(
                logging.WARNING if isinstance(error, DamagedTableError) else logging.INFO, "reading again: %s", error
            )
            entry.remove()
    with file.borrowed() as entry:
        try:
            return write(entry)
        except _UNWRITTEN as error:
            message = f"{store} cannot be written: {str(error).partition(_NEW_LINE)[0]}"
            raise InvalidOptionError(message) from error
