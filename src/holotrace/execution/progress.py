"""How long work tells how far it is, without knowing who shows it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """What a progress display offers; the command line draws a bar, a notebook may draw another."""

    def start(self, total_bytes: int, description: str) -> None:
        """Begin a piece of work of `total_bytes`, such as one file."""

    def advance(self, byte_count: int, /) -> None:
        """Add `byte_count` to the work done so far."""

    def finish(self) -> None:
        """End the piece of work; called once for each `start`, also after an error."""


class Silent:
    """Shows nothing."""

    def start(self, total_bytes: int, description: str) -> None:
        """Do nothing."""

    def advance(self, byte_count: int, /) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""


SILENT = Silent()
"""The progress used where none is given."""
