"""Calls for workers: some kill the process that runs them, as the system does where memory runs out."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def killed_once(mark: Path) -> str:
    """Kill the worker, except where `mark` says that this happened before."""
    if not mark.exists():
        mark.touch()
        kill()
    return "done"


def kill() -> None:
    """End this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def slow(number: int) -> int:
    """Take a moment."""
    time.sleep(0.05)
    return number


def write_slowly(folder: Path) -> None:
    """Write a file that is removed at the end, however that comes about."""
    draft = folder / f"draft-{os.getpid()}"
    draft.touch()
    try:
        time.sleep(60)
    finally:
        draft.unlink()
