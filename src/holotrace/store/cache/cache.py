"""The cache: the tables of trace files, kept as Arrow files so that opening a trace again takes only milliseconds.

    <cache folder>/<hash of the trace's path>/<content hash>-r<reader version>/
        manifest.json     header, health record, content hash and status of the trace file; checksums of all files
        <table>.arrow     one file for each table of the schema

An entry is written into a temporary sibling folder and then renamed, so entries are always complete. If two processes
read the same trace at once, the slower process uses the entry of the faster one. Only the user who wrote an entry can
read it. If an entry does not match its checksums, the trace is read again.

Several machines can share a cache at a URL: its entries are copied into the user's cache folder, and new entries
are copied to the URL. The folder of an entry has the same name in both caches. In the user's cache, the hash of the
trace's path also includes the user's id.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import platformdirs

from holotrace.errors import HolotraceError, InvalidOptionError
from holotrace.locations import Location, RemotePath, is_url, remove_left_behind, temporary_name
from holotrace.schema import READER_VERSION, TABLES
from holotrace.store.cache.entry import (
    MANIFEST,
    DamagedEntryError,
    Entry,
    OtherVersionError,
    Reading,
    Stamp,
    write_manifest,
)
from holotrace.store.cache.room import make_room
from holotrace.store.cache.shared import fetch_entry, share_entry, shared_folder, shared_manifests
from holotrace.store.tables.arrow_tables import DamagedTableError, FolderTables, MemoryTables, arrow_file
from holotrace.store.tables.checksums import TableSums

logger = logging.getLogger("holotrace")

CacheOption: TypeAlias = bool | str | Path | RemotePath
"""Where the cache is.

- True: the user's cache folder
- "beside": the folder `.holotrace_cache` beside the trace
- a path: this folder
- a URL: the shared folder at this URL, and the user's cache folder for local copies of its entries
- False: no cache
"""

FOLDER_VARIABLE = "HOLOTRACE_CACHE_DIR"
"""Environment variable: the path or URL of the folder to use instead of the user's cache folder."""

LIMIT_VARIABLE = "HOLOTRACE_CACHE_LIMIT_BYTES"
"""Environment variable: maximum size of the user's cache in bytes; if the cache grows larger, the least recently used
entries are removed."""

DEFAULT_LIMIT_BYTES = 20 << 30
BESIDE_NAME = ".holotrace_cache"

_TRIES = 100


class CacheWriteError(HolotraceError):
    """Tables could not be written because the disk is full or the folder is read-only; they stay in memory instead."""


@dataclass(frozen=True)
class Cache:
    """A cache in a local folder, optionally with a shared cache at a URL.

    folder       the local folder
    limit_bytes  maximum total size of the entries in the local folder; None for no limit
    shared       the folder at the URL, which several machines use; None if there is no shared cache
    """

    folder: Path
    limit_bytes: int | None = None
    shared: RemotePath | None = None

    @classmethod
    def from_option(cls, option: CacheOption, source: Location) -> Cache | None:
        """Return the cache for `option`, or None if `option` is False.

        Raises:
            InvalidOptionError: `option` is not one of the values described at `CacheOption`.
        """
        if option is True:
            return cls(user_cache_folder(), _limit_bytes(), shared_folder(os.environ.get(FOLDER_VARIABLE)))
        if option is False:
            return None
        if option == "beside":
            option = source.parent / BESIDE_NAME
        if shared := shared_folder(option):
            return cls(user_cache_folder(), _limit_bytes(), shared)
        if isinstance(option, os.PathLike):
            return cls(Path(option))
        message = f'cache={option!r} is not valid; give True, False, "beside", a pathlib.Path or the URL of a folder'
        raise InvalidOptionError(message)

    def find(self, source: Location, content_hash: Callable[[Location], str]) -> Entry | None:
        """Return the entry that matches the current content of `source`, or None."""
        return self._find_here(source, content_hash) or self._find_shared(source, content_hash)

    def _find_here(self, source: Location, content_hash: Callable[[Location], str]) -> Entry | None:
        for folder in self._entry_folders(source):
            try:
                entry = Entry.load(folder)
            except OtherVersionError as error:
                logger.info("rebuilding a cache entry: %s", error)
                continue
            except DamagedEntryError as error:
                logger.warning("rebuilding a cache entry from %s: %s", source, error)
                continue
            if entry.is_of(source, content_hash):
                _touch(folder)
                return entry
        return None

    def _find_shared(self, source: Location, content_hash: Callable[[Location], str]) -> Entry | None:
        if self.shared is None:
            return None
        for folder, manifest in shared_manifests(self.shared / _home_name(source)):
            with suppress(KeyError, TypeError, DamagedEntryError, OSError):
                stamp = Stamp(**manifest["stamp"])
                if isinstance(source, Path):
                    # the stamp may describe another machine's copy of the file, so let is_of compare the content
                    stamp = replace(stamp, taken_ns=0)
                kept = Entry("", "", manifest["content_hash"], MemoryTables({}), stamp=stamp)
                if kept.is_of(source, content_hash):
                    return self._copied(folder, self._home(source))
        return None

    def _copied(self, folder: RemotePath, home: Path) -> Entry | None:
        """Copy a shared entry; if it is damaged, remove it and return None, so that the caller reads the trace."""
        with _temporary_folder(home) as temporary:
            fetch_entry(folder, temporary)
            try:
                copy = Entry.load(temporary)
                for name in TABLES:
                    copy.tables.scan(name)
            except (DamagedEntryError, DamagedTableError) as error:
                logger.warning("rebuilding a shared cache entry: %s: %s", folder, error)
                with suppress(OSError):
                    (folder / MANIFEST).unlink(missing_ok=True)
                return None
            kept = _publish(temporary, home / folder.name)
        self._tidy(home, keep=kept)
        return kept

    def _share(self, source: Location, kept: Entry) -> None:
        """Copy an entry to the shared cache; if that fails, only log a warning.

        Other machines then read the trace themselves.
        """
        if self.shared is not None and kept.folder is not None:
            try:
                share_entry(kept.folder, self.shared / _home_name(source) / kept.folder.name)
            except OSError as error:
                logger.warning("the cache %s cannot be written: %s", self.shared, error)

    def add(self, source: Location, read: Callable[[Path], Reading]) -> Entry:
        """Call `read` with a folder, into which it writes the tables of `source`; make this folder an entry.

        If the call is interrupted, it leaves no files behind. The files are not synced to disk: if a power cut damages
        them, their checksums no longer match, and the trace is read again.

        Raises:
            CacheWriteError: the folder cannot be written.
        """
        home = self._home(source)
        stamp = Stamp.of(source)
        with _temporary_folder(home) as temporary:
            reading = read(temporary)
            with _write_errors(self.folder):
                content_hash = reading.content_hash
                tables = FolderTables(temporary, _sums_of(temporary))
                write_manifest(temporary, Entry(reading.header, reading.health, content_hash, tables, temporary, stamp))
                kept = _publish(temporary, home / f"{content_hash}-r{READER_VERSION}")
        self._tidy(home, keep=kept)
        self._share(source, kept)
        return kept

    def _home(self, source: Location) -> Path:
        """Return the folder of all entries of `source`; each user has a separate one, which nobody else can read."""
        return self.folder / _home_name(source, user=_user())

    def _entry_folders(self, source: Location) -> list[Path]:
        try:
            return sorted(self._home(source).glob(f"*-r{READER_VERSION}"))
        except OSError:
            return []

    def _tidy(self, home: Path, *, keep: Entry) -> None:
        """Remove outdated entries of the trace and files of killed processes, and limit the size of the cache."""
        with suppress(OSError):
            folders = list(home.iterdir())
            remove_left_behind(folders)
            for folder in folders:
                if _is_outdated(folder, keep):
                    shutil.rmtree(folder, ignore_errors=True)
        make_room(self.folder, self.limit_bytes, keep=keep.folder)


def user_cache_folder() -> Path:
    """Return the folder in HOLOTRACE_CACHE_DIR if this is a local path, else the user's default cache folder."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named and not is_url(named):
        return Path(named).expanduser()
    return platformdirs.user_cache_path("holotrace", appauthor=False)


def _home_name(source: Location, *, user: str = "") -> str:
    address = str(source) if isinstance(source, RemotePath) else os.path.realpath(source)
    return hashlib.sha256(os.fsencode(f"{address}{user}")).hexdigest()[:24]


def _user() -> str:
    """Return what is appended to a trace's path before it is hashed: a NUL, which no path contains, and the user id.

    On systems without user ids, return an empty string.
    """
    return f"\0{os.getuid()}" if hasattr(os, "getuid") else ""


def _limit_bytes() -> int:
    text = os.environ.get(LIMIT_VARIABLE, "")
    if text and not text.isdecimal():
        message = f"{LIMIT_VARIABLE}={text!r} is not a number of bytes"
        raise InvalidOptionError(message)
    return int(text) if text else DEFAULT_LIMIT_BYTES


def _sums_of(folder: Path) -> dict[str, TableSums]:
    """Return the checksums of all tables, computed in parallel."""
    with ThreadPoolExecutor(thread_name_prefix="holotrace-sum") as pool:
        return dict(zip(TABLES, pool.map(lambda name: TableSums.of(arrow_file(folder, name)), TABLES), strict=True))


@contextmanager
def _temporary_folder(home: Path) -> Iterator[Path]:
    """Create a private folder in `home`, and remove it afterwards unless it was renamed."""
    temporary = home / temporary_name()
    try:  # create the folder inside `try`: if Ctrl-C arrives during its creation, `finally` still removes it
        with _write_errors(home.parent):
            home.parent.mkdir(parents=True, exist_ok=True)
            _make_folder(temporary)
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        with suppress(OSError):
            home.rmdir()  # fails unless the folder is empty


def _make_folder(folder: Path) -> None:
    """Create a folder and its parent; try again if another process removes the empty parent in between."""
    for attempt in range(_TRIES):
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            folder.mkdir(mode=0o700)
        except FileNotFoundError:
            if attempt == _TRIES - 1:
                raise
        else:
            return


@contextmanager
def _write_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"the cache {folder} cannot be written ({error.strerror or error})"
        raise CacheWriteError(message) from error
    except DamagedEntryError as error:  # another process removed the new entry because the trace file had changed
        message = f"entries disappear from the cache {folder} right after they are written ({error})"
        raise CacheWriteError(message) from error


def _publish(temporary: Path, target: Path) -> Entry:
    """Rename a complete entry to its final name; if another process was faster, return its entry instead."""
    for file in temporary.iterdir():
        file.chmod(0o600)
    try:
        temporary.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        with suppress(DamagedEntryError):
            return Entry.load(target)
        shutil.rmtree(target)
        temporary.rename(target)
    return Entry.load(target)


def _touch(folder: Path) -> None:
    """Record that the entry was used, because the least recently used entries are removed first."""
    with suppress(OSError):
        os.utime(folder / MANIFEST)


def _is_outdated(folder: Path, keep: Entry) -> bool:
    """Return whether `folder` is an entry for earlier content of the trace, or was written by an older reader."""
    _, separator, version = folder.name.rpartition("-r")
    return folder != keep.folder and bool(separator) and version.isdecimal() and int(version) <= READER_VERSION
