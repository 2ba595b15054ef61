"""One entry of the cache: the tables of a trace file, and a manifest with checksums and the status of the file."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from holotrace.errors import HolotraceError, UnreadableTraceError
from holotrace.locations import Location, RemotePath, drafted, status_of
from holotrace.schema import READER_VERSION, TABLES
from holotrace.store.tables.arrow_tables import FolderTables, MemoryTables, Tables, arrow_file, schema_fingerprint
from holotrace.store.tables.checksums import TableSums, is_sealed, sealed, unsealed

MANIFEST = "manifest.json"
"""Name of the manifest, which is written last, so an entry with a manifest is complete."""

# If a file is changed again within the resolution of its time stamp, it looks unchanged. The coarsest resolution is
# FAT's 2 s: https://learn.microsoft.com/en-us/windows/win32/sysinfo/file-times
_TIMESTAMP_RESOLUTION_NS = 2_000_000_000


class DamagedEntryError(HolotraceError):
    """An entry of the cache is incomplete; the cache rebuilds it."""


class OtherVersionError(DamagedEntryError):
    """An entry of the cache was written by another version; the cache rebuilds it."""


@dataclass(frozen=True)
class Reading:
    """The output of a reader: two JSON strings, and the tables if they were not written to a folder."""

    header: str
    health: str
    tables: MemoryTables

    @property
    def content_hash(self) -> str:
        """Return the hash of the bytes of the trace file."""
        return str(json.loads(self.health)["content_hash"])


@dataclass(frozen=True)
class Stamp:
    """The status of a file (see `holotrace.locations.Status`), and the time `taken_ns` at which it was looked up."""

    size: int | None
    mtime_ns: int
    taken_ns: int
    etag: str = ""
    changed_ns: int = 0
    inode: int = 0

    @classmethod
    def of(cls, location: Location) -> Stamp:
        """Return the current stamp of a file.

        Raises:
            UnreadableTraceError: the file no longer exists, or access is denied.
        """
        taken_ns = time.time_ns()
        try:
            status = status_of(location)
        except HolotraceError:
            raise
        except OSError as error:
            message = f"{location} cannot be read: {error.strerror or 'it does not exist'}"
            raise UnreadableTraceError(message) from error
        is_time_unknown = isinstance(location, RemotePath) and not status.mtime_ns
        mtime_ns = taken_ns if is_time_unknown else status.mtime_ns
        return cls(status.size, mtime_ns, taken_ns, status.etag, status.changed_ns, status.inode)

    def surely_same_as(self, now: Stamp) -> bool:
        """Return whether the file is surely unchanged, judging by its `etag` or, without one, by its times.

        If the file was changed just before its stamp was taken, its times prove nothing: time stamps are coarse, so
        the file may have been changed once more without getting a new time.
        """
        if self.etag or now.etag:
            return (self.size, self.etag) == (now.size, now.etag)
        settled = max(self.mtime_ns, self.changed_ns) < self.taken_ns - _TIMESTAMP_RESOLUTION_NS
        return settled and replace(self, taken_ns=0) == replace(now, taken_ns=0)


@dataclass(frozen=True)
class Entry:
    """The content of one trace file: two JSON strings and the tables."""

    header: str
    health: str
    content_hash: str
    tables: Tables
    folder: Path | None = None
    stamp: Stamp | None = None

    @classmethod
    def in_memory(cls, reading: Reading) -> Entry:
        """Return the output of a reader as an entry that is only in memory, not in a cache."""
        return cls(reading.header, reading.health, reading.content_hash, reading.tables)

    @classmethod
    def load(cls, folder: Path) -> Entry:
        """Open the entry in `folder` and check that it is complete; checksums are verified when tables are read.

        Raises:
            DamagedEntryError: the entry is incomplete or was written by another version.
        """
        try:
            data = (folder / MANIFEST).read_bytes()
            _check_version(folder, data)
            manifest = unsealed(data)
            sums = {name: TableSums.from_json(manifest["tables"][name]) for name in TABLES}
            _check_sizes(folder, sums)
            return cls(
                manifest["header"],
                manifest["health"],
                manifest["content_hash"],
                FolderTables(folder, sums),
                folder,
                Stamp(**manifest["stamp"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            message = f"{folder / MANIFEST}: {error}"
            raise DamagedEntryError(message) from error

    def is_of(self, source: Location, content_hash: Callable[[Location], str]) -> bool:
        """Return whether the entry matches the file `source`; read the file only if the stamps are not conclusive."""
        now = Stamp.of(source)
        if self.stamp is None or self.stamp.size != now.size:
            return False
        if self.stamp.surely_same_as(now):
            return True
        if content_hash(source) != self.content_hash:
            return False
        self._restamp(now)
        return True

    def remove(self) -> None:
        """Delete the entry's files, ignoring errors."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _restamp(self, now: Stamp) -> None:
        """Record that the content was unchanged at `now`; if that fails, the next use compares the content again."""
        if self.folder is not None:
            with suppress(OSError, DamagedEntryError):
                write_manifest(self.folder, replace(self, stamp=now))


def _check_version(folder: Path, data: bytes) -> None:
    manifest = json.loads(data)
    written_by = manifest["reader_version"], manifest["schema"]
    if written_by != (READER_VERSION, schema_fingerprint()) or not is_sealed(data):
        message = f"{folder} was written by another version: {written_by}"
        raise OtherVersionError(message)


def _check_sizes(folder: Path, sums: Mapping[str, TableSums]) -> None:
    for name, expected in sums.items():
        size = arrow_file(folder, name).stat().st_size
        if size != expected.byte_count:
            message = f"{name}.arrow has {size:,} bytes instead of {expected.byte_count:,}"
            raise ValueError(message)


def write_manifest(folder: Path, entry: Entry) -> None:
    """Write the manifest beside the tables, atomically."""
    if not isinstance(entry.tables, FolderTables):
        message = f"{folder} contains no tables"
        raise DamagedEntryError(message)
    manifest = {
        "reader_version": READER_VERSION,
        "schema": schema_fingerprint(),
        "content_hash": entry.content_hash,
        "stamp": vars(entry.stamp),
        "tables": {name: vars(sums) for name, sums in entry.tables.sums.items()},
        "health": entry.health,
        "header": entry.header,
    }
    with drafted(folder / MANIFEST, sync=False) as file:
        Path(file.name).chmod(0o600)
        file.write(sealed(manifest))
