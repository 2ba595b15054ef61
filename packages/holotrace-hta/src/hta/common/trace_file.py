"""Trace files by rank, and reading and writing them whole, as scripts written for HTA do."""

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
    """Return whether the folder holds traces, and {rank: file}, with ranks as `holotrace.open_trace` finds them."""
    try:
        return True, get_trace_files(trace_dir)
    except HolotraceError:
        return False, {}


def create_rank_to_trace_dict(file_list: Iterable[str] | str) -> tuple[bool, dict[int, str]]:
    """Return True and {rank: file} of these files; of a folder, as before HTA 0.5, what `…_from_dir` returns.

    Raises:
        TraceNotFoundError, DuplicateRankError: a file is missing, or two have the same rank.
    """
    if isinstance(file_list, str):
        return create_rank_to_trace_dict_from_dir(file_list)
    return True, _files(list(file_list))


def get_trace_files(trace_path: str) -> dict[int, str]:
    """Return {rank: file} of a folder.

    Raises:
        TraceNotFoundError: it holds no trace.
    """
    return _files(trace_path)


def read_trace(file_path: str) -> dict[str, Any]:
    """Return the content of a file, plain or gzip, as Python's json reads it.

    Raises:
        TraceNotFoundError: there is no such file.
        NotATraceError: it is no valid JSON as it stands; `holotrace.open_trace` reads it all the same.
    """
    try:
        content = located(file_path).read_bytes()
        raw: Any = json.loads(gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content)
    except FileNotFoundError as error:
        message = f"there is no file {file_path}"
        raise TraceNotFoundError(message) from error
    except HolotraceError:
        raise
    except (ValueError, RecursionError, OSError, EOFError) as error:
        message = (
            f"{file_path} is no valid JSON as it stands, plain or gzip: {error}; holotrace check says what is wrong"
        )
        raise NotATraceError(message) from error
    return raw if isinstance(raw, dict) else {"traceEvents": raw}


def write_trace(trace_data: dict[str, Any], file_path: str) -> None:
    """Write a trace, compressed where the file's name ends in `.gz`; makes the folder if it is missing.

    A file of that name is replaced.

    Raises:
        InvalidOptionError: its folder cannot be written.
    """
    _write(trace_data, located(file_path))


def update_trace_rank(file_path: str, rank: int) -> None:
    """Give a file another rank, in place: its `distributedInfo.rank`.

    Raises:
        TraceNotFoundError, NotATraceError: there is no such file, or it is no valid JSON.
    """
    trace = read_trace(file_path)
    trace["distributedInfo"] = {**(trace.get("distributedInfo") or {}), "rank": rank}
    _write(trace, located(file_path))


def _files(source: str | list[str]) -> dict[int, str]:
    return {rank: each.source for rank, each in open_trace(source).ranks.items()}


def _write(trace: dict[str, Any], path: Location) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, overwrite=True) as file:
        file.write(event_text(trace).encode())
