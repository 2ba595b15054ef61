"""Merged files for Perfetto, each with several ranks on one clock."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from holotrace.errors import InvalidOptionError
from holotrace.export.merged.merged_trace import MERGED_NAME, write_merged_trace
from holotrace.locations import RemoteStream
from holotrace.store.trace import RankTrace, Trace
from holotrace.store.trace_file import TraceFile
from holotrace.web.session.bound_files import native_trace

MOST_FILES = 2
"""Maximum number of files that are kept; each may take several hundred MB."""


class MergedFiles:
    """The most recently used files, in a temporary folder that is deleted when the server ends."""

    def __init__(self) -> None:
        """Start without files."""
        self._lock = threading.Lock()
        self._files: OrderedDict[Hashable, Path] = OrderedDict()
        self._folder: Path | None = None
        self._numbers = itertools.count()

    def file(self, key: Hashable, trace: Trace) -> Path:
        """Return the merged file of a trace's ranks; write it if it does not exist. Only one file is written at a time.

        Raises:
            InvalidOptionError: the trace is a store.
            HolotraceError: see `holotrace.export.merged.merged_trace.write_merged_trace`.
        """
        with self._lock:
            file = self._files.pop(key, None) or self._made(trace)
            self._files[key] = file
            while len(self._files) > MOST_FILES:
                with suppress(OSError):  # Windows cannot delete a file while it is being sent
                    self._files.popitem(last=False)[1].unlink()
        return file

    def _made(self, trace: Trace) -> Path:
        for rank_trace in trace.ranks.values():
            _trace_file(rank_trace)
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="holotrace-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        file = self._folder / f"{next(self._numbers)}_{MERGED_NAME}"
        write_merged_trace(trace, file, opened=_opened)
        return file


def _opened(rank_trace: RankTrace) -> AbstractContextManager[Path | RemoteStream]:
    return native_trace(_trace_file(rank_trace))


def _trace_file(rank_trace: RankTrace) -> TraceFile:
    """Return the trace file of a rank; raise an error for a store, because the path stored in it may point anywhere."""
    file = rank_trace.file
    if not isinstance(file, TraceFile):
        message = "a store does not contain the trace file"
        raise InvalidOptionError(message)
    return file
