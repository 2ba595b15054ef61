"""Functions with HTA's names that find trace files by rank, and read and write whole files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holotrace.errors import HolotraceError, NotATraceError, TraceNotFoundError
from holotrace.export.event_json import event_text
from holotrace.export.new_file import new_file
from holotrace.ingest.open_trace import open_trace
from holotrace.locations import Location, located
from hta.facade.imports.elsewhere import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

_GZIP_MAGIC = b"\x1f\x8b"


def create_rank_to_trace_dict_from_dir(trace_dir: str) -> tuple[bool, dict[int, str]]:
    """Return whether the folder contains traces, and {rank: file}; ranks are the same as in `holotrace.open_trace`."""
    try:
        return True, get_trace_files(trace_dir)
    except HolotraceError:
        return False, {}


def create_rank_to_trace_dict(file_list: Iterable[str] | str) -> tuple[bool, dict[int, str]]:
    """Return True, which means success, and {rank: file} for a list of files.

    The argument can also be a folder, because HTA accepted folders before version 0.5.

    Raises:
        TraceNotFoundError, DuplicateRankError: a file is missing, or two files have the same rank.
    """
    if isinstance(file_list, str):
        return create_rank_to_trace_dict_from_dir(file_list)
    return True, _files(list(file_list))


def get_trace_files(trace_path: str) -> dict[int, str]:
    """Return {rank: file} for the traces in a folder.

    Raises:
        TraceNotFoundError: the folder contains no trace.
    """
    return _files(trace_path)


def read_trace(file_path: str) -> dict[str, Any]:
    """Return the parsed JSON of a file, plain or gzip.

    Raises:
        TraceNotFoundError: the file does not exist.
        NotATraceError: the file is not valid JSON; `holotrace.open_trace` may still read it.
    """
    try:
        content = located(file_path).read_bytes()
        raw: Any = json.loads(gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content)
    except FileNotFoundError as error:
        message = f"{file_path} does not exist"
        raise TraceNotFoundError(message) from error
    except HolotraceError:
        raise
    except (ValueError, RecursionError, OSError, EOFError) as error:
        message = f"{file_path} is not valid JSON, plain or gzip: {error}; run `holotrace check` for details"
        raise NotATraceError(message) from error
    return raw if isinstance(raw, dict) else {"traceEvents": raw}


def write_trace(trace_data: dict[str, Any], file_path: str) -> None:
    """Write a trace, compressed if the file name ends in `.gz`; creates the folder if it is missing.

    Replaces an existing file.

    Raises:
        InvalidOptionError: the folder is not writable.
    """
    _write(trace_data, located(file_path))


def update_trace_rank(file_path: str, rank: int) -> None:
    """Set a file's `distributedInfo.rank` in place.

    Raises:
        TraceNotFoundError, NotATraceError: the file does not exist, or is not valid JSON.
    """
    trace = read_trace(file_path)
    trace["distributedInfo"] = {**(trace.get("distributedInfo") or {}), "rank": rank}
    _write(trace, located(file_path))


def _files(source: str | list[str]) -> dict[int, str]:
    return {rank: rank_trace.source for rank, rank_trace in open_trace(source).ranks.items()}


def _write(trace: dict[str, Any], path: Location) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, overwrite=True) as file:
        file.write(event_text(trace).encode())
