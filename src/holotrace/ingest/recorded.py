"""Open the recording of a finished `torch.profiler.profile` without naming a file."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Protocol, runtime_checkable

from holotrace.errors import InvalidOptionError


@runtime_checkable
class Profiler(Protocol):
    """A profiler that can export its last recording, such as `torch.profiler.profile`."""

    def export_chrome_trace(self, path: str, /) -> None:
        """Write the recording as a trace file (https://docs.pytorch.org/docs/stable/profiler.html)."""


def export(profiler: Profiler) -> str:
    """Write a profiler's recording to a temporary file and return its path.

    The file has its own folder; `keep_while_used` deletes the file and the folder.

    Raises:
        InvalidOptionError: the profiler is still running, has recorded nothing, or was already exported.
    """
    folder = tempfile.mkdtemp(prefix="holotrace-")
    path = Path(folder, "profiler.pt.trace.json")
    try:
        profiler.export_chrome_trace(str(path))
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        reason = " ".join(str(error).split()) or type(error).__name__
        message = f"the profiler cannot export its recording ({reason}); stop it first, or open its file if it was already exported"
        raise InvalidOptionError(message) from error
    return str(path)


def keep_while_used(path: str, user: object) -> None:
    """Delete an exported file and its folder when `user` is garbage-collected, or when Python exits."""
    weakref.finalize(user, shutil.rmtree, Path(path).parent, ignore_errors=True)
