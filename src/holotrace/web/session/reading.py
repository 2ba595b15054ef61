"""The progress of reading files, shown on pages that wait for the files."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass
class _File:
    name: str
    total_bytes: int
    done_bytes: int = 0


class Reading:
    """A `Progress` that remembers the file that each thread reads."""

    def __init__(self) -> None:
        """Start with no file being read."""
        self._files: dict[int, _File] = {}

    def start(self, total_bytes: int, description: str) -> None:
        """Begin to read a file in this thread."""
        self._files[threading.get_ident()] = _File(description, total_bytes)

    def advance(self, byte_count: int, /) -> None:
        """Count bytes that this thread has read."""
        file = self._files.get(threading.get_ident())
        if file is not None:
            file.done_bytes += byte_count

    def finish(self) -> None:
        """Forget the file that this thread has read."""
        self._files.pop(threading.get_ident(), None)

    def text(self) -> str:
        """Say which files are being read, such as `reading rank0.json.gz: 45 %`; empty if none."""
        return "; ".join(f"reading {file.name}: {_percent(file)} %" for file in list(self._files.values()))


def _percent(file: _File) -> int:
    return min(100, 100 * file.done_bytes // max(1, file.total_bytes))
