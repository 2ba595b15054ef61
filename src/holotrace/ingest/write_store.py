"""From the trace files of a job to a store that holds all of it."""

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
from holotrace.store.arrow_tables import DamagedTableError
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
from holotrace.store.trace import RankTrace, Trace
from holotrace.store.trace_file import TraceFile

logger = logging.getLogger("holotrace")

_UNWRITTEN = (OSError, pl.exceptions.PolarsError, DamagedTableError)
_NEW_LINE = "\n"


@dataclass(frozen=True)
class Ingested:
    """What became of a job.

    store      where it is
    written    ranks that were written
    unchanged  ranks that were there already, read from the same bytes
    contents   all that the store holds now
    """

    store: str
    written: tuple[StoredRank, ...]
    unchanged: tuple[StoredRank, ...]
    contents: Contents


def write_store(trace: Trace, store: Address, *, overwrite: bool = False, executor: Executor = IN_PROCESS) -> Ingested:
    """Write the traces of a job as one store: Parquet files, a folder for each rank, that `holotrace.open_trace` opens.

    A rank that is there and was read from a file that has not changed since is left as it is, so a run that was ended
    goes on where it ended. Ranks that the store holds beside those of `trace` stay, so that several runs may each write
    some of the ranks of a job.

    Args:
        trace: as `holotrace.open_trace` gives it.
        store: a folder, made where its parent exists, or a URL.
        overwrite: also replace ranks that were read from other files.
        executor: works on the ranks; its workers need to reach the traces and the store.

    Raises:
        InvalidOptionError: the store holds a rank of another file, a trace is a store already or a part of a trace, or
            the folder holds something else.
        NotATraceError, UnreadableTraceError: a file is no readable trace.
        OSError: something cannot be written.
    """
    location = _absolute(store)
    run = Writing(location, secrets.token_hex(8), overwrite)
    files = {rank: _trace_file(rank_trace) for rank, rank_trace in trace.ranks.items()}
    _expect_room(location)
    begin_store(location)
    found = {} if overwrite else trace.map(functools.partial(_unchanged, store=location), executor)
    unchanged = tuple(each for each in found.values() if each is not None)
    missing = [rank for rank in trace.ranks if found.get(rank) is None]
    chosen = trace.select(missing) if missing else trace
    written: tuple[StoredRank, ...] = ()
    if missing:
        await_ranks(run, {rank: files[rank].address for rank in missing})
        written = tuple(chosen.map(functools.partial(_write, run=run), executor).values())
    for rank in {*missing} - {each.rank for each in written}:
        remove_rank(location, rank)
    for each in unchanged:
        confirm_rank(location, each)
    leave_out(location, [replace(each, path=str(_absolute(each.path))) for each in chosen.skipped])
    take_in(location, [each.source for each in (*unchanged, *written)])
    mend_contents(location)
    return Ingested(str(location), written, unchanged, read_contents(location))


def _absolute(store: Address) -> Location:
    """Return the folder as a worker finds it, wherever it works."""
    location = located(store)
    return location.absolute() if isinstance(location, Path) else location


def _expect_room(store: Location) -> None:
    """See, before any work, that there is a store or room for one.

    Raises:
        InvalidOptionError: something else is there, or the folder around it is missing or cannot be written.
        UnreachableError: there is no such bucket, or no way to it.
    """
    if is_store(store):
        return
    if store.exists() and not (store.is_dir() and (is_begun(store) or is_store(store))):  # by now, of another run
        message = f"{store} is there already and is no store of holotrace; name a new folder"
        raise InvalidOptionError(message)
    expect_writable_folder(store if store.exists() else store.parent)
    store.mkdir(exist_ok=True)


def _trace_file(rank_trace: RankTrace) -> TraceFile:
    """Return the file of a rank, of which all has to be meant."""
    if not isinstance(rank_trace.file, TraceFile):
        message = f"rank {rank_trace.rank} is in a store already; copy its folder"
        raise InvalidOptionError(message)
    if rank_trace.has_selections:
        message = "a store holds whole traces; this one has a selection of events"
        raise InvalidOptionError(message)
    return rank_trace.file


def _unchanged(rank_trace: RankTrace, store: Location) -> StoredRank | None:
    """Return what the store holds of a rank, None where it has to be written.

    Raises:
        InvalidOptionError: it was read from another file.
    """
    known, file = stored_rank(store, rank_trace.rank), _trace_file(rank_trace)
    if known is None:
        return None
    expect_source(store, known, file.address)
    return known if file.is_still(known.stamp, known.content_hash) and is_whole(store, known.rank) else None


def _write(rank_trace: RankTrace, run: Writing) -> StoredRank:
    """Write a rank; where an entry of the cache turns out damaged, from the trace itself."""
    store = run.store
    if not is_store(store):  # it was begun before, where the caller is
        message = f"a worker on {node()} does not see {store}; name a folder that all machines share, or a URL"
        raise InvalidOptionError(message)
    file = _trace_file(rank_trace)
    write = functools.partial(write_rank, run, rank_trace.rank, file.address)
    with file.borrowed() as entry:
        try:
            return write(entry)
        except _UNWRITTEN as error:
            logger.log(
                logging.WARNING if isinstance(error, DamagedTableError) else logging.INFO, "read again: %s", error
            )
            entry.remove()
    with file.borrowed() as entry:
        try:
            return write(entry)
        except _UNWRITTEN as error:
            message = f"{store} cannot be written: {str(error).partition(_NEW_LINE)[0]}"
            raise InvalidOptionError(message) from error
