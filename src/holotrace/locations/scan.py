"""The entries of a folder, local or at a URL."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holotrace.locations.location import located
from holotrace.locations.remote_path import RemotePath
from holotrace.locations.status import Status, remote_status


@dataclass(frozen=True)
class Child:
    """An entry of a folder; `status` is None if the listing does not include the status."""

    path: str
    name: str
    is_dir: bool
    status: Status | None = None


def scan(folder: str | Path | RemotePath) -> list[Child]:
    """Return the entries of a folder except hidden entries; links are followed.

    The paths begin with `folder` as the caller wrote it.

    Raises:
        FileNotFoundError: the folder does not exist.
        OSError: the folder cannot be listed; an UnreachableError for URLs.
    """
    location = located(folder)
    if isinstance(location, RemotePath):
        return [_child(location, name, entry) for name, entry in location.listed() if not name.startswith(".")]
    with os.scandir(folder if isinstance(folder, str) else location) as entries:
        return [Child(entry.path, entry.name, entry.is_dir()) for entry in entries if not entry.name.startswith(".")]


def readable_children(folder: str | Path | RemotePath) -> list[Child]:
    """Return the entries of a folder like `scan`; empty if the folder cannot be listed."""
    try:
        return scan(folder)
    except OSError:
        return []


def _child(folder: RemotePath, name: str, entry: Mapping[str, Any]) -> Child:
    is_dir = entry.get("type") == "directory"
    return Child(str(folder / name), name.rstrip("/"), is_dir, None if is_dir else remote_status(entry))
