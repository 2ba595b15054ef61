"""Writing the ranks of a store, while any number of other processes may write others."""

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
from holotrace.store.arrow_tables import Tables
from holotrace.store.cache import Entry
from holotrace.store.checksums import file_checksum
from holotrace.store.health import Health
from holotrace.store.job_store import StoredRank, is_store, rank_folders, read_left_out, read_state, stored_rank
from holotrace.store.parquet_tables import ALWAYS_WRITTEN, StoredTable, write_parquet
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
from holotrace.store.trace import SkippedFile

_TRIES = 100
_TRIES_TO_BEGIN = 5
_PAUSE_S = 0.05
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


@dataclass(frozen=True)
class Writing:
    """A run that writes ranks of a store.

    store      its folder
    writer     names the run, among all that there are
    overwrite  also write in place of ranks that were read from other files
    """

    store: Location
    writer: str
    overwrite: bool


def begin_store(store: Location) -> None:
    """Make a folder a store of this version, and remove what killed processes left in it.

    Raises:
        OSError: it cannot be written.
    """
    if isinstance(store, Path):
        remove_left_behind(list(store.glob(".*")))
    for _ in range(_TRIES_TO_BEGIN - 1):
        if _is_of_this_version(store):
            return
        with suppress(OSError):  # perhaps another process was faster
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
    """Say whether a folder holds nothing but what `begin_store` writes at first: another process is just beginning."""
    return all(each.name.startswith(f".{STORE_MANIFEST}.") or each.name == STORE_MANIFEST for each in folder.iterdir())


def await_ranks(run: Writing, sources: Mapping[int, str]) -> None:
    """Say that a run is going to write these ranks, and of which files: until it has, the store is unfinished.

    Raises:
        OSError: it cannot be written.
    """
    (run.store / RANKS_FOLDER).mkdir(exist_ok=True)

    def say(address: str) -> None:
        rank = int(located(address).stem)
        state = {"rank": rank, "source": sources[rank], "is_there": False, "writer": run.writer}
        write_sealed(state_file(run.store, rank), STATE, state, source=sources[rank])

    side_by_side(say, [str(state_file(run.store, rank)) for rank in sources])


def confirm_rank(store: Location, stored: StoredRank) -> None:
    """Say that a rank is there, where the store says something else.

    Raises:
        OSError: it cannot be written.
    """
    with suppress(NotATraceError, UnreadableTraceError):
        if read_state(state_file(store, stored.rank)) == stored:
            return
    (store / RANKS_FOLDER).mkdir(exist_ok=True)
    state = {**asdict(stored), "is_there": True}
    write_sealed(state_file(store, stored.rank), STATE, state, source=stored.source)


def mend_contents(store: Location) -> None:
    """Say again which ranks are there, where that was lost or damaged, from what each rank says of itself.

    Raises:
        OSError: it cannot be written.
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
    """Say which files were left out, and why.

    Raises:
        OSError: it cannot be written.
    """
    known = {each.path: each for each in read_left_out(store)}
    for each in skipped:
        if known.get(each.path) != each:
            (store / LEFT_OUT_FOLDER).mkdir(exist_ok=True)
            write_sealed(left_out_file(store, each.path), LEFT_OUT, asdict(each))


def take_in(store: Location, sources: Iterable[str]) -> None:
    """Forget that these files were left out once.

    Raises:
        OSError: it cannot be written.
    """
    taken = {*sources}
    for each in read_left_out(store):
        if each.path in taken:
            left_out_file(store, each.path).unlink(missing_ok=True)


def write_rank(run: Writing, rank: int, source: str, entry: Entry) -> StoredRank:
    """Write the tables of a rank; they are there once all of them are, in place of those that were.

    Args:
        run: the one that `await_ranks` was given.
        rank: the rank.
        source: the file that it was read from.
        entry: what was read.

    Raises:
        InvalidOptionError: another process writes this rank at the same time, from another file or where that cannot be
            kept apart.
        OSError: something cannot be written.
    """
    store = run.store
    if isinstance(store, Path):
        stored = _write_folder(store, rank, source, entry, overwrite=run.overwrite)
    else:
        stored = _write_objects(run, rank, source, entry)
    confirm_rank(store, stored)
    while (now := stored_rank(store, rank)) not in (stored, None):  # another process was faster, and both are whole
        stored = now or stored
        confirm_rank(store, stored)
    return stored


def remove_rank(store: Location, rank: int) -> None:
    """Remove what is there of a rank, first what makes it count."""
    state_file(store, rank).unlink(missing_ok=True)
    folder = rank_folder(store, rank)
    if (folder / RANK_MANIFEST).exists():
        (folder / RANK_MANIFEST).unlink(missing_ok=True)
    remove_tree(folder)


def expect_source(store: Location, known: StoredRank, source: str) -> None:
    """See that a rank that is there was read from this file.

    Raises:
        InvalidOptionError: it was read from another one.
    """
    if known.source != source:
        message = (
            f"{store} holds rank {known.rank} of {known.source}, which is not {source}; choose another store, or ask for "
            "it to be overwritten"
        )
        raise InvalidOptionError(message)


def _write_folder(store: Path, rank: int, source: str, entry: Entry, *, overwrite: bool) -> StoredRank:
    """Write a rank on this machine: make its folder beside the one that is there, and rename it."""
    draft = store / temporary_name()
    draft.mkdir()
    try:
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
    """Give the folder of a rank its name; one that has it goes.

    Raises:
        InvalidOptionError: it is of another file.
        OSError: it cannot be renamed.
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
    """Rename a folder unless there is one of that name that holds something."""
    try:
        draft.rename(folder)
    except OSError as error:
        if error.errno in _TAKEN or folder.exists():
            return False
        raise
    return True


def _take_away(store: Path, folder: Path) -> None:
    away = store / temporary_name()
    with suppress(FileNotFoundError):  # another process was faster
        folder.rename(away)
    remove_tree(away)


def _write_objects(run: Writing, rank: int, source: str, entry: Entry) -> StoredRank:
    """Write a rank where nothing can be renamed: first what makes it count goes, and that comes last."""
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
    """See that nobody else has begun to write a rank.

    Raises:
        InvalidOptionError: somebody has.
    """
    state = read_sealed(state_file(run.store, rank), STATE)
    if state.get("writer") != run.writer:
        message = f"another holotrace ingest writes rank {rank} of {run.store} at the same time; when it has ended, run this again"
        raise InvalidOptionError(message)


def _write_tables(folder: Location, entry: Entry, opened: Callable[[Any], Any]) -> Iterator[tuple[str, StoredTable]]:
    """Write the tables that have rows; yield the name of each, and what there is to say of its file."""
    health = Health.from_json(entry.health)
    strings = entry.tables.read("strings", ["text"])["text"].rechunk()
    for name in TABLES:
        count = health.row_counts.get(name, 0)
        if count or name in ALWAYS_WRITTEN:
            with opened(folder / f"{name}.parquet") as file:
                yield name, _write_table(name, count, strings, entry.tables, file)


def _write_table(name: str, row_count: int, strings: pl.Series, tables: Tables, file: Any) -> StoredTable:  # noqa: ANN401 -- a file with a name
    write_parquet(tables.scan(name), row_count, name, strings, file)
    file.flush()
    return StoredTable(row_count, file.tell(), file_checksum(Path(file.name)))


def _stored(rank: int, source: str, entry: Entry, tables: Mapping[str, StoredTable]) -> StoredRank:
    if entry.stamp is None:
        message = "what is read into memory has no stamp"
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
