"""The interface between long-running work and a progress display."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A progress display, such as the bar of the command line or of a notebook."""

    def start(self, total_bytes: int, description: str) -> None:
        """Begin a task that processes `total_bytes`, such as reading one file."""

    def advance(self, byte_count: int, /) -> None:
        """Count `byte_count` more bytes as done."""

    def finish(self) -> None:
        """End the task; called once for each `start`, also after an error."""


class Silent:
    """Shows nothing."""

    def start(self, total_bytes: int, description: str) -> None:
        """Do nothing."""

    def advance(self, byte_count: int, /) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""


SILENT = Silent()
"""The default progress display: none."""
