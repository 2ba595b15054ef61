"""Write the ranks of a store, while other processes may write other ranks."""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from holotrace.errors import InvalidOptionError, NotATraceError, UnreadableTraceError
from holotrace.locations import (
    Location,
    drafted,
    located,
    remove_left_behind,
    remove_tree,
    scan,
    side_by_side,
    sync_file,
    sync_folder,
    temporary_name,
)
from holotrace.schema import TABLES
from holotrace.store.access import narrowed
from holotrace.store.cache import Entry
from holotrace.store.health import Health
from holotrace.store.job_store import StoredRank, is_store, rank_folders, read_left_out, read_state, stored_rank
from holotrace.store.store_files import (
    LEFT_OUT,
    LEFT_OUT_FOLDER,
    RANK,
    RANK_FOLDER,
    RANK_MANIFEST,
    RANKS_FOLDER,
    STATE,
    STORE,
    STORE_MANIFEST,
    left_out_file,
    rank_folder,
    read_sealed,
    sealed_file,
    state_file,
    write_sealed,
)
from holotrace.store.tables.arrow_tables import Tables
from holotrace.store.tables.checksums import file_checksum
from holotrace.store.tables.parquet_tables import ALWAYS_WRITTEN, StoredTable, write_parquet
from holotrace.store.trace import SkippedFile

_TRIES = 100
_TRIES_TO_BEGIN = 5
_PAUSE_S = 0.05
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


@dataclass(frozen=True)
class Writing:
    """A run that writes ranks into a store.

    store      folder of the store
    writer     unique name of the run
    overwrite  also replace stored ranks that were read from other files
    """

    store: Location
    writer: str
    overwrite: bool


def begin_store(store: Location) -> None:
    """Turn a folder into a store of this version, and remove files left in it by processes that were killed.

    Raises:
        OSError: the folder cannot be written.
    """
    if isinstance(store, Path):
        remove_left_behind(list(store.glob(".*")))
    for _ in range(_TRIES_TO_BEGIN - 1):
        if _is_of_this_version(store):
            return
        with suppress(OSError):  # another process may have removed the folder
            write_sealed(store / STORE_MANIFEST, STORE, {}, replace=is_store(store))
            return
        time.sleep(_PAUSE_S)
    write_sealed(store / STORE_MANIFEST, STORE, {})


def _is_of_this_version(store: Location) -> bool:
    try:
        read_sealed(store / STORE_MANIFEST, STORE)
    except (NotATraceError, UnreadableTraceError):
        return False
    return True


def is_begun(folder: Location) -> bool:
    """Return whether the folder is empty, or a process has only begun to create a store in it.

    Such a folder contains at most the manifest of a store, and temporary files for writing the manifest.
    """
    return all(path.name.startswith(f".{STORE_MANIFEST}.") or path.name == STORE_MANIFEST for path in folder.iterdir())


def await_ranks(run: Writing, sources: Mapping[int, str]) -> None:
    """Record which ranks a run will write, and from which files.

    The store is unfinished until all these ranks are written.

    Raises:
        OSError: the store cannot be written.
    """
    (run.store / RANKS_FOLDER).mkdir(exist_ok=True)

    def announce(address: str) -> None:
        rank = int(located(address).stem)
        state = {"rank": rank, "source": sources[rank], "is_there": False, "writer": run.writer}
        write_sealed(state_file(run.store, rank), STATE, state, source=sources[rank])

    side_by_side(announce, [str(state_file(run.store, rank)) for rank in sources])


def confirm_rank(store: Location, stored: StoredRank) -> None:
    """Record that a rank is complete, if this is not yet recorded.

    Raises:
        OSError: the store cannot be written.
    """
    with suppress(NotATraceError, UnreadableTraceError):
        if read_state(state_file(store, stored.rank)) == stored:
            return
    (store / RANKS_FOLDER).mkdir(exist_ok=True)
    state = {**asdict(stored), "is_there": True}
    write_sealed(state_file(store, stored.rank), STATE, state, source=stored.source)


def mend_contents(store: Location) -> None:
    """Restore missing or damaged state files from the manifests of the ranks.

    Raises:
        OSError: the store cannot be written.
    """
    for rank in rank_folders(store):
        stored = None if _has_state(store, rank) else stored_rank(store, rank)
        if stored is not None:
            confirm_rank(store, stored)


def _has_state(store: Location, rank: int) -> bool:
    try:
        read_state(state_file(store, rank))
    except (NotATraceError, UnreadableTraceError):
        return False
    return True


def leave_out(store: Location, skipped: Iterable[SkippedFile]) -> None:
    """Record which files were skipped, and why.

    Raises:
        OSError: the store cannot be written.
    """
    known = {file.path: file for file in read_left_out(store)}
    for file in skipped:
        if known.get(file.path) != file:
            (store / LEFT_OUT_FOLDER).mkdir(exist_ok=True)
            write_sealed(left_out_file(store, file.path), LEFT_OUT, asdict(file))


def take_in(store: Location, sources: Iterable[str]) -> None:
    """Remove these files from the record of skipped files.

    Raises:
        OSError: the store cannot be written.
    """
    included = {*sources}
    for file in read_left_out(store):
        if file.path in included:
            left_out_file(store, file.path).unlink(missing_ok=True)


def write_rank(run: Writing, rank: int, source: str, entry: Entry) -> StoredRank:
    """Write the tables of a rank, replacing earlier tables of this rank.

    Args:
        run: the run that was passed to `await_ranks`.
        rank: the rank.
        source: the trace file.
        entry: the content of the trace file.

    Raises:
        InvalidOptionError: on a local disk, the store already has this rank from another file, and `run.overwrite` is
            false; on an object store, another process is writing this rank.
        OSError: a file cannot be written.
    """
    store = run.store
    if isinstance(store, Path):
        stored = _write_folder(store, rank, source, entry, overwrite=run.overwrite)
    else:
        stored = _write_objects(run, rank, source, entry)
    confirm_rank(store, stored)
    # Another process may have stored the rank anew in the meantime. What it stored is also complete; confirm that.
    while (now := stored_rank(store, rank)) not in (stored, None):
        stored = now or stored
        confirm_rank(store, stored)
    return stored


def remove_rank(store: Location, rank: int) -> None:
    """Remove a rank; the files that mark it as stored are removed first."""
    state_file(store, rank).unlink(missing_ok=True)
    folder = rank_folder(store, rank)
    if (folder / RANK_MANIFEST).exists():
        (folder / RANK_MANIFEST).unlink(missing_ok=True)
    remove_tree(folder)


def expect_source(store: Location, known: StoredRank, source: str) -> None:
    """Check that a stored rank was read from this file.

    Raises:
        InvalidOptionError: the rank was read from a file other than `source`.
    """
    if known.source != source:
        message = (
            f"{store} already has rank {known.rank} from {known.source}, not from {source}; choose another store, or "
            "overwrite the rank (--force, overwrite=True)"
        )
        raise InvalidOptionError(message)


def _write_folder(store: Path, rank: int, source: str, entry: Entry, *, overwrite: bool) -> StoredRank:
    """Write a rank on a local disk: create its folder under a temporary name, then rename it."""
    draft = store / temporary_name()
    try:  # also creates the folder, so that it is removed if Ctrl-C interrupts its creation
        draft.mkdir()
        with narrowed(draft, source):
            tables = dict(_write_tables(draft, entry, lambda path: path.open("xb")))
            stored = _stored(rank, source, entry, tables)
            (draft / RANK_MANIFEST).write_bytes(_rank_manifest(stored, entry, tables))
            for path in draft.iterdir():
                sync_file(path)
            sync_folder(draft)
        _publish(store, draft, stored, overwrite=overwrite)
    finally:
        remove_tree(draft)
    return stored


def _publish(store: Path, draft: Path, stored: StoredRank, *, overwrite: bool) -> None:
    """Give the folder of a rank its final name, replacing any older folder of this name.

    Raises:
        InvalidOptionError: the store already has this rank from another file, and `overwrite` is false.
        OSError: the folder cannot be renamed.
    """
    folder = store / f"{RANK_FOLDER}{stored.rank}"
    for _ in range(_TRIES):
        if _renamed(draft, folder):
            break
        known = stored_rank(store, stored.rank)
        if known is not None and not overwrite:
            expect_source(store, known, stored.source)
        _take_away(store, folder)
    else:
        draft.rename(folder)
    sync_folder(store)


def _renamed(draft: Path, folder: Path) -> bool:
    """Rename a folder, unless a non-empty folder with the new name exists."""
    try:
        draft.rename(folder)
    except OSError as error:
        if error.errno in _TAKEN or folder.exists():
            return False
        raise
    return True


def _take_away(store: Path, folder: Path) -> None:
    away = store / temporary_name()
    with suppress(FileNotFoundError):  # another process has removed it
        folder.rename(away)
    remove_tree(away)


def _write_objects(run: Writing, rank: int, source: str, entry: Entry) -> StoredRank:
    """Write a rank on an object store, which cannot rename: remove the old manifest first, write the new one last."""
    folder = rank_folder(run.store, rank)

    @contextmanager
    def opened(path: Location) -> Iterator[Any]:
        _expect_writer(run, rank)
        with drafted(path) as file:
            yield file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / RANK_MANIFEST).unlink(missing_ok=True)
    tables = dict(_write_tables(folder, entry, opened))
    stored = _stored(rank, source, entry, tables)
    for child in scan(folder):
        if child.name.removesuffix(".parquet") in TABLES.keys() - tables.keys():
            (folder / child.name).unlink(missing_ok=True)
    with opened(folder / RANK_MANIFEST) as file:
        file.write(_rank_manifest(stored, entry, tables))
    _expect_writer(run, rank)
    return stored


def _expect_writer(run: Writing, rank: int) -> None:
    """Check that no other run has since begun to write this rank.

    Raises:
        InvalidOptionError: another run has begun to write this rank.
    """
    state = read_sealed(state_file(run.store, rank), STATE)
    if state.get("writer") != run.writer:
        message = f"another holotrace ingest is writing rank {rank} of {run.store}; run this again when it has finished"
        raise InvalidOptionError(message)


def _write_tables(folder: Location, entry: Entry, opened: Callable[[Any], Any]) -> Iterator[tuple[str, StoredTable]]:
    """Write tables that have rows or are in `ALWAYS_WRITTEN`; yield each table's name and the record of its file."""
    health = Health.from_json(entry.health)
    strings = entry.tables.read("strings", ["text"])["text"].rechunk()
    for name in TABLES:
        count = health.row_counts.get(name, 0)
        if count or name in ALWAYS_WRITTEN:
            with opened(folder / f"{name}.parquet") as file:
                yield name, _write_table(name, count, strings, entry.tables, file)


def _write_table(name: str, row_count: int, strings: pl.Series, tables: Tables, file: Any) -> StoredTable:  # noqa: ANN401 -- a file object with `name`
    write_parquet(tables.scan(name), row_count, name, strings, file)
    file.flush()
    return StoredTable(row_count, file.tell(), file_checksum(Path(file.name)))


def _stored(rank: int, source: str, entry: Entry, tables: Mapping[str, StoredTable]) -> StoredRank:
    if entry.stamp is None:
        message = "cannot store an entry without a stamp; entries that were read into memory have none"
        raise ValueError(message)
    byte_count = sum(table.byte_count for table in tables.values())
    event_count = Health.from_json(entry.health).event_count
    return StoredRank(rank, source, entry.stamp, entry.content_hash, byte_count, event_count)


def _rank_manifest(stored: StoredRank, entry: Entry, tables: Mapping[str, StoredTable]) -> bytes:
    content = {
        **asdict(stored),
        "header": json.loads(entry.header),
        "health": json.loads(entry.health),
        "tables": {name: vars(table) for name, table in tables.items()},
    }
    return sealed_file(RANK, content)
