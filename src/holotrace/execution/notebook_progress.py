"""A progress bar in a notebook; it appears after one second of work and disappears when the work ends."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

from holotrace.execution.progress import SILENT, Progress
from holotrace.visible_text import visible

_PATIENCE_S = 1.0
"""The bar appears after this many seconds; shorter work shows no bar."""

_REDRAW_S = 0.2


def default_progress() -> Progress:
    """Return a progress bar in a notebook, and a silent display anywhere else."""
    return NotebookProgress() if _in_notebook() else SILENT


def _in_notebook() -> bool:
    """Return whether this process runs a notebook: IPython has a kernel in a notebook, but none in a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


class NotebookProgress:
    """One HTML bar for each file, which IPython updates in place."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self._description = ""
        self._total = self._done = 0
        self._drawn_at = 0.0
        self._handle: Any = None

    def start(self, total_bytes: int, description: str) -> None:
        """Start counting the bytes of a file."""
        self._description, self._total, self._done = description, total_bytes, 0
        self._drawn_at = time.monotonic() + _PATIENCE_S - _REDRAW_S

    def advance(self, byte_count: int, /) -> None:
        """Count bytes, and redraw the bar every 0.2 s."""
        self._done += byte_count
        if time.monotonic() - self._drawn_at >= _REDRAW_S:
            self._draw(self._bar())

    def finish(self) -> None:
        """Remove the bar."""
        if self._handle is not None:
            self._draw("")
            self._handle = None

    def _bar(self) -> str:
        name = escape(visible(self._description))
        percent = f"{self._done / self._total:.0%}" if self._total else ""
        return f'<progress value="{self._done}" max="{max(self._total, 1)}"></progress> reading {name} {percent}'

    def _draw(self, html: str) -> None:
        from IPython.display import HTML, display  # noqa: PLC0415 -- available in notebooks

        self._drawn_at = time.monotonic()
        if self._handle is None:
            self._handle = display(HTML(html), display_id=True)
        elif self._handle is not None:
            self._handle.update(HTML(html))
