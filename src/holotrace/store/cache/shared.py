"""Cache entries at a URL; machines that share them copy an entry instead of reading the trace again."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from holotrace.locations import RemotePath, drafted, is_url, located, scan
from holotrace.schema import READER_VERSION, TABLES
from holotrace.store.cache.entry import MANIFEST
from holotrace.store.tables.arrow_tables import arrow_file
from holotrace.store.tables.checksums import unsealed

logger = logging.getLogger("holotrace")

_COPIED_AT_ONCE = 8 << 20


def shared_manifests(home: RemotePath) -> Iterator[tuple[RemotePath, dict[str, Any]]]:
    """Yield the folder and the manifest of each complete entry of this version; skip unreadable entries."""
    for folder in _entry_folders(home):
        try:
            yield folder, unsealed((folder / MANIFEST).read_bytes())
        except (OSError, ValueError) as error:  # noqa: PERF203 -- one entry must not hide the others
            logger.info("ignoring a shared cache entry: %s", error)


def fetch_entry(folder: RemotePath, to: Path) -> None:
    """Copy the files of an entry into an empty folder.

    Raises:
        OSError: the files cannot be copied.
    """
    for name in TABLES:
        with closing((folder / f"{name}.arrow").open()) as source, arrow_file(to, name).open("wb") as target:
            shutil.copyfileobj(source, target, _COPIED_AT_ONCE)
    (to / MANIFEST).write_bytes((folder / MANIFEST).read_bytes())


def share_entry(folder: Path, to: RemotePath) -> None:
    """Copy an entry to a URL, the manifest last; do nothing if the entry already exists there.

    Raises:
        OSError: the entry cannot be written.
    """
    if (to / MANIFEST).exists():
        return
    to.mkdir()
    for path in [*(arrow_file(folder, name) for name in TABLES), folder / MANIFEST]:
        with path.open("rb") as source, drafted(to / path.name) as target:
            shutil.copyfileobj(source, target, _COPIED_AT_ONCE)


def shared_folder(option: object) -> RemotePath | None:
    """Return the folder at a URL; None for an option that is not a URL."""
    if isinstance(option, str) and is_url(option):
        option = located(option)
    return option if isinstance(option, RemotePath) else None


def _entry_folders(home: RemotePath) -> list[RemotePath]:
    try:
        names = [child.name for child in scan(home) if child.is_dir]
    except FileNotFoundError:
        return []
    return [home / name for name in sorted(names) if name.endswith(f"-r{READER_VERSION}")]
