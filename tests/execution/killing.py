"""Functions that tests call in workers; some kill their process, as the system does when it runs out of memory."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def killed_once(mark: Path) -> str:
    """Create the file `mark` and kill this worker; if the file exists already, return "done"."""
    if not mark.exists():
        mark.touch()
        kill()
    return "done"


def kill() -> None:
    """Kill this process with SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def slow(number: int) -> int:
    """Wait 50 ms, then return the number."""
    time.sleep(0.05)
    return number


def slow_process_id() -> int:
    """Wait 50 ms, then return the id of this process."""
    return slow(os.getpid())


def write_slowly(folder: Path) -> None:
    """Create a file, wait a minute, and remove the file, even if the wait is interrupted."""
    draft = folder / f"draft-{os.getpid()}"
    draft.touch()
    try:
        time.sleep(60)
    finally:
        draft.unlink()
