"""Read the logs that torch.compile writes if TORCH_TRACE is set: functions, failed guards, and source lines of kernels.

Each process writes a file `dedicated_log_torch_trace_<…>.log` or, in distributed training, `…_rank_<N>_<…>.log`.
A record is one line: glog's prefix, then JSON. If the next lines begin with a tab, they are the payload of the record.
Files may be compressed with gzip. https://github.com/pytorch/tlparse reads the same files, and copies them into its
output as `raw.log` or, with `--all-ranks-html`, as `rank_<N>/raw.log`.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from holotrace.enrich.host.frames import is_user_frame
from holotrace.errors import InvalidOptionError
from holotrace.locations.location import Address, Location, located

_RECORD = re.compile(r"^[VIWEC]\d{4} [^\]]*\] (\{.*)$")
_RANK = re.compile(r"_rank_(\d+)_")
_FOLDER = re.compile(r"^rank_(\d+)$")
_ENDINGS = (".log", ".log.gz")
_GZIP = b"\x1f\x8b"
_WANTED = re.compile(r'^[^{]*\{"(compilation_metrics|inductor_output_code|artifact)"')
_KERNEL_LINES = "inductor_provenance_tracking_kernel_stack_traces"
"""Name of the record that lists the Python stacks behind each kernel; it is written only with INDUCTOR_PROVENANCE=1."""

_KERNEL_PATH = re.compile(r"^\t?# kernel path: (\S+)$")
_KERNEL_NAME = re.compile(r"^\t?(\w+) = async_compile\.")
_FRAME = re.compile(r'^\s*File "(.+)", line (\d+), in (.+)$', re.MULTILINE)
_LONGEST_REASON = 300


@dataclass(frozen=True)
class Compilation:
    """One compilation of a frame.

    function  such as `train.py(8): forward`; None if unknown
    reason    the failed guards of earlier versions; None for a first version
    """

    function: str | None
    reason: str | None


@dataclass(frozen=True)
class CompileLog:
    """The compilations of one process.

    compilations  by region, such as `0/1`; regions with contradictory records are left out
    kernel_lines  lines of the user's code that each kernel was generated from; the keys are the names of the kernels
                  and, if known, the names of their files
    """

    compilations: dict[str, Compilation] = field(default_factory=dict)
    kernel_lines: dict[str, str] = field(default_factory=dict)

    def lines_of(self, kernel: str, file: str | None) -> str | None:
        """Return the source lines that a kernel was generated from; None if unknown."""
        return self.kernel_lines.get(_file_name(file)) if file else self.kernel_lines.get(kernel)


@dataclass(frozen=True)
class CompileLogs:
    """The logs of a job: one for each known rank, and one for processes of unknown rank."""

    of_ranks: dict[int, CompileLog] = field(default_factory=dict)
    of_any: CompileLog | None = None

    def of(self, rank: int) -> CompileLog:
        """Return the log of a rank; an empty log if there is none."""
        return self.of_ranks.get(rank) or self.of_any or CompileLog()


def read_compile_logs(address: Address) -> CompileLogs:
    """Read a single log file, or all logs in a folder that TORCH_TRACE named or that tlparse wrote.

    Raises:
        InvalidOptionError: the file does not exist, or no file in the folder records a compilation.
    """
    location = located(address)
    files = _files(location)
    logs: dict[int | None, list[CompileLog]] = defaultdict(list)
    for file in files:
        for rank, log in _read(file).items():
            logs[rank].append(log)
    if not any(log.compilations for parts in logs.values() for log in parts):
        message = f"{location} has no log of torch.compile; give the folder that TORCH_TRACE names, or a file in it"
        raise InvalidOptionError(message)
    joined = {rank: _joined(parts) for rank, parts in logs.items()}
    return CompileLogs({rank: log for rank, log in joined.items() if rank is not None}, joined.get(None))


def _files(location: Location) -> list[Location]:
    try:
        if not location.is_dir():
            return [location]
        inside: list[Location] = list(location.iterdir())
        of_ranks: list[Location] = [
            file for folder in inside if _FOLDER.match(folder.name) for file in folder.iterdir()
        ]
    except OSError as error:
        message = f"{location} cannot be read: {error}"
        raise InvalidOptionError(message) from error
    return sorted((file for file in (*inside, *of_ranks) if file.name.endswith(_ENDINGS)), key=str)


def _read(file: Location) -> dict[int | None, CompileLog]:
    """Return one log per rank from a file; the rank is None if neither the record nor the file's path names it."""
    named = _RANK.search(file.name) or _FOLDER.match(file.parent.name)
    parts: dict[int | None, _Collected] = defaultdict(_Collected)
    for record, payload in _records(_lines(file)):
        rank = record.get("rank", int(named[1]) if named else None)
        parts[rank if isinstance(rank, int) else None].add(record, payload)
    return {rank: part.log() for rank, part in parts.items()}


def _lines(file: Location) -> Iterator[str]:
    try:
        content = file.read_bytes()
        text = (gzip.decompress(content) if content.startswith(_GZIP) else content).decode("utf-8", "replace")
    except (OSError, EOFError, zlib.error) as error:
        message = f"{file} cannot be read: {error}"
        raise InvalidOptionError(message) from error
    yield from text.split("\n")


def _records(lines: Iterable[str]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield each record of a kind that `_Collected` needs, with its payload; skip damaged records."""
    record: dict[str, Any] | None = None
    payload: list[str] = []
    for line in lines:
        if line.startswith("\t"):
            if record is not None:
                payload.append(line[1:])
            continue
        if record is not None:
            yield record, payload
        record, payload = _record(line), []
    if record is not None:
        yield record, payload


def _record(line: str) -> dict[str, Any] | None:
    text = _RECORD.match(line)
    if text is None or not _WANTED.match(line):
        return None
    try:
        record = json.loads(text[1])
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


class _Collected:
    """Collects the records of one process."""

    def __init__(self) -> None:
        self._compilations: dict[str, Compilation] = {}
        self._lines: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._files: dict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, record: dict[str, Any], payload: list[str]) -> None:
        """Read one record."""
        metrics, artifact = record.get("compilation_metrics"), record.get("artifact")
        if isinstance(metrics, dict):
            self._add_metrics(metrics)
        elif "inductor_output_code" in record:
            self._add_code(_region(record), payload)
        elif isinstance(artifact, dict) and artifact.get("name") == _KERNEL_LINES:
            for kernel, lines in _kernel_lines("\n".join(payload)).items():
                self._lines[_region(record), kernel].add(lines)

    def _add_metrics(self, metrics: dict[str, Any]) -> None:
        region = metrics.get("compile_id")
        if isinstance(region, str) and metrics.get("is_forward", True):
            self._compilations[region] = Compilation(_function(metrics), _reason(metrics.get("recompile_reason")))

    def _add_code(self, region: str, payload: list[str]) -> None:
        """Store the name of each kernel's source file.

        Inductor writes the path of this file in a comment above the kernel.
        """
        path = ""
        for line in payload:
            if named := _KERNEL_PATH.match(line):
                path = named[1]
            elif kernel := _KERNEL_NAME.match(line):
                if path:
                    self._files[region, kernel[1]].add(_file_name(path))
                path = ""

    def log(self) -> CompileLog:
        """Return the log; leave out each kernel whose source lines differ between records."""
        by_name: dict[str, set[str]] = defaultdict(set)
        for (region, kernel), lines in self._lines.items():
            for name in (kernel, *self._files.get((region, kernel), ())):
                by_name[name] |= lines
        return CompileLog(self._compilations, _unambiguous(by_name))


def _unambiguous(texts_of: dict[str, set[str]]) -> dict[str, str]:
    return {name: min(texts) for name, texts in texts_of.items() if len(texts) == 1}


def _region(record: dict[str, Any]) -> str:
    return f"{record.get('frame_id')}/{record.get('frame_compile_id')}"


def _function(metrics: dict[str, Any]) -> str | None:
    file, line, name = (metrics.get(key) for key in ("co_filename", "co_firstlineno", "co_name"))
    return f"{file}({line}): {name}" if isinstance(name, str) and isinstance(file, str) else None


def _reason(text: object) -> str | None:
    """Return the reason as one line, shortened if necessary, without the stack that follows it."""
    if not isinstance(text, str):
        return None
    reason = " ".join(text.split("\nUser stack trace:")[0].split())
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…"


def _kernel_lines(payload: str) -> dict[str, str]:
    """Return, for each kernel, the innermost line of user code in each of its stacks.

    In the payload, the key `name:2` is the second call of the kernel `name`.
    """
    try:
        stacks = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    lines: dict[str, set[str]] = defaultdict(set)
    for kernel, traces in stacks.items() if isinstance(stacks, dict) else ():
        lines[kernel.partition(":")[0]] |= {line for trace in _texts(traces) if (line := _innermost(trace))}
    return {kernel: "; ".join(sorted(named)) for kernel, named in lines.items() if named}


def _texts(traces: object) -> list[str]:
    return [trace for trace in traces if isinstance(trace, str)] if isinstance(traces, list) else []


def _innermost(trace: str) -> str | None:
    """Return the innermost frame of user code in a Python stack, in the profiler's format."""
    frames = pl.Series([f"{file}({line}): {name}" for file, line, name in _FRAME.findall(trace)], dtype=pl.String)
    of_user = frames.filter(is_user_frame(frames))
    return of_user[-1] if len(of_user) else None


def _file_name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _joined(logs: list[CompileLog]) -> CompileLog:
    """Merge the logs of all processes of a rank; leave out entries that differ between two logs."""
    if len(logs) == 1:
        return logs[0]
    compilations: dict[str, set[Compilation]] = defaultdict(set)
    lines: dict[str, set[str]] = defaultdict(set)
    for log in logs:
        for region, compilation in log.compilations.items():
            compilations[region].add(compilation)
        for kernel, text in log.kernel_lines.items():
            lines[kernel].add(text)
    return CompileLog(
        {region: min(said, key=str) for region, said in compilations.items() if len(said) == 1},
        _unambiguous(lines),
    )
