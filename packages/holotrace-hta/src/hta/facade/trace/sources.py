"""The locations of the traces that HTA's constructors open."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from holotrace.errors import InvalidOptionError, WrongTypeError
from holotrace.ingest.discover import TraceSource
from holotrace.locations import is_url, located


def source_of(trace_files: Mapping[int, str] | Mapping[str, str] | Sequence[str] | None, trace_dir: str) -> TraceSource:
    """Return the source for `holotrace.open_trace`: the files, or the folder if `trace_files` is None.

    Raises:
        InvalidOptionError: a key is not a rank number, either as an integer or as text.
    """
    if trace_files is None:
        return trace_dir
    if isinstance(trace_files, Mapping):
        return {_rank(rank): _located(path, trace_dir) for rank, path in trace_files.items()}
    if not isinstance(trace_files, Iterable):
        message = f"trace_files={trace_files!r} is neither {{rank: file}} nor a list of files"
        raise WrongTypeError(message)
    return [_located(path, trace_dir) for path in trace_files]


def _located(path: str, trace_dir: str) -> str:
    """Resolve a relative path against `trace_dir` if the file exists there."""
    if is_url(path):
        return path
    inside = located(trace_dir) / path if is_url(trace_dir) else Path(trace_dir, Path(path).expanduser())
    return str(inside) if not path.startswith(f".{os.sep}") and inside.exists() else path


def _rank(key: int | str) -> int:
    """Convert a key to a rank; keys from JSON objects are text."""
    try:
        return int(key)
    except ValueError as error:
        message = f"trace_files has the key {key!r}; keys are ranks, such as 0"
        raise InvalidOptionError(message) from error
