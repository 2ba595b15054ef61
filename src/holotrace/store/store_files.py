"""The JSON files in the store of a job: their names, and how they are written, read and verified."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from holotrace.errors import HolotraceError, NotATraceError, UnreadableTraceError
from holotrace.locations import Location, drafted, scan
from holotrace.schema import READER_VERSION
from holotrace.store.access import narrowed
from holotrace.store.tables.arrow_tables import schema_fingerprint
from holotrace.store.tables.checksums import is_sealed, sealed, unsealed

VERSION = 2
"""Version of the layout; increase this number when the layout changes."""

STORE_MANIFEST = "_holotrace_store.json"
"""The file that marks a folder as a store."""

RANKS_FOLDER = "_holotrace_ranks"
"""The folder inside a store that contains one state file per rank."""

LEFT_OUT_FOLDER = "_holotrace_left_out"
RANK_MANIFEST = "_holotrace_rank.json"
RANK_FOLDER = "rank="
STORE, STATE, LEFT_OUT, RANK = "holotrace store", "state of a rank", "file left out", "rank of an holotrace store"
"""The value of `format` in each kind of JSON file."""

Json: TypeAlias = dict[str, Any]


def rank_folder(store: Location, rank: int) -> Location:
    """Return the folder of a rank's tables."""
    return store / f"{RANK_FOLDER}{rank}"


def state_file(store: Location, rank: int) -> Location:
    """Return the file that records whether a rank is complete."""
    return store / RANKS_FOLDER / f"{rank}.json"


def left_out_file(store: Location, path: str) -> Location:
    """Return the file that records why the trace file at `path` was skipped."""
    return store / LEFT_OUT_FOLDER / f"{hashlib.sha256(path.encode(errors='surrogatepass')).hexdigest()[:24]}.json"


def names_in(folder: Location) -> list[str]:
    """Return the names in a folder; empty if the folder does not exist.

    Raises:
        UnreadableTraceError: the folder cannot be listed.
    """
    try:
        return [child.name.rstrip("/") for child in scan(folder)]
    except FileNotFoundError:
        return []
    except HolotraceError:
        raise
    except OSError as error:
        message = f"{folder} cannot be read: {error.strerror or error}"
        raise UnreadableTraceError(message) from error


def read_sealed(path: Location, kind: str) -> Json:
    """Read a JSON file of a store and verify its checksum.

    Raises:
        NotATraceError: the file does not belong to a store, or was written by another version of holotrace.
        UnreadableTraceError: the file cannot be read, or is damaged.
    """
    with damage_reported(path):
        data = path.read_bytes()
        raw = unsealed(data) if is_sealed(data) else dict(json.loads(data))
        known = raw["format"], raw["version"], raw["schema"]
    if known[0] != kind:
        message = f"{path} does not belong to a holotrace store"
        raise NotATraceError(message)
    if known[1:] != (VERSION, schema_fingerprint()):
        message = f"{path.parent} was written by another version of holotrace; run holotrace ingest again, or use that version"
        raise NotATraceError(message)
    if not is_sealed(data):
        message = f"{path} is damaged; run holotrace ingest again"
        raise UnreadableTraceError(message)
    return raw


def write_sealed(path: Location, kind: str, content: Json, *, source: str = "", replace: bool = True) -> None:
    """Write a JSON file of a store atomically (see `drafted`), readable only by users who may read the trace `source`.

    Raises:
        OSError: the file cannot be written.
    """
    with drafted(path, replace=replace) as file:
        file.write(sealed_file(kind, content))
        if source and isinstance(path, Path):
            file.flush()
            with narrowed(Path(file.name), source):
                pass


def sealed_file(kind: str, content: Json) -> bytes:
    """Return the bytes of a JSON file of a store: checksum, format, versions and `content`."""
    versions = {"version": VERSION, "schema": schema_fingerprint(), "reader_version": READER_VERSION}
    return sealed({"format": kind, **versions, **content}, indent=1)


@contextmanager
def damage_reported(path: Location) -> Iterator[None]:
    """Turn any error in reading a JSON file of a store into an UnreadableTraceError with a clear message."""
    try:
        yield
    except HolotraceError:
        raise
    except FileNotFoundError as error:
        message = f"{path} is missing; run holotrace ingest again"
        raise UnreadableTraceError(message) from error
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise UnreadableTraceError(message) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"{path} is damaged; run holotrace ingest again"
        raise UnreadableTraceError(message) from error
