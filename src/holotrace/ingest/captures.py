"""Find captures: recordings that show which operators launched the kernels of CUDA and HIP graphs.

vLLM writes captures to `capture_traces/graph_capture_rank_0.*`, SGLang to `capture_traces/bs_32_rank0.json.gz` or
`graph_capture_profile/`. A file `execution_details.json` in the same folder lists the batch size of each capture.
Captures next to a trace are found automatically.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from holotrace.errors import NotATraceError, TraceNotFoundError, UnreadableTraceError
from holotrace.execution.progress import SILENT, Progress
from holotrace.ingest.discover import nothing_there
from holotrace.ingest.kineto import KinetoReader, peek
from holotrace.ingest.rank_names import is_capture_name, rank_in_name
from holotrace.locations import Address, RemotePath, address_text, is_url, located, name_of, scan
from holotrace.store.cache import CacheOption
from holotrace.store.captures import Capture, batch_sizes
from holotrace.store.trace import RankTrace
from holotrace.store.trace_file import Reader, TraceFile

CaptureOption: TypeAlias = Address | Iterable[Address] | None
"""The type of `capture` in `holotrace.open_trace`."""

CAPTURE_FOLDERS = ("capture_traces", "graph_capture_profile")
"""Folders into which inference engines write captures, next to the traces in which the captured graphs are replayed."""

_DETAILS = "execution_details.json"
_MOST_BYTES = 256 << 20
"""Annotation files and lists of batch sizes that are larger than this are not read."""

_TENSOR_RANK = re.compile(r"^cuda_graph_capture-.*-TP-(\d{1,7})\.")
"""SGLang's file names contain the rank within the tensor-parallel group."""

_NODE_ID = re.compile(r"\d{1,20}")


def _reader_of(_: str) -> Reader:
    return KinetoReader()


@dataclass(frozen=True)
class CaptureFiles:
    """The capture files of a job; they are listed when a rank first needs them.

    paths      captures, annotation files and lists of batch sizes, or folders that contain such files
    named      whether the user gave the paths; if so, a path to any other kind of file is an error
    reader_of  returns the reader of a file, or None if reading the file is not allowed
    """

    paths: tuple[str, ...]
    cache: CacheOption = True
    progress: Progress = SILENT
    named: bool = True
    reader_of: Callable[[str], Reader | None] = _reader_of

    def __reduce__(
        self,
    ) -> tuple[type[CaptureFiles], tuple[tuple[str, ...], CacheOption, Progress, bool, Callable[[str], Reader | None]]]:
        """Pickle without `progress`, because workers do not report progress."""
        return CaptureFiles, (self.paths, self.cache, SILENT, self.named, self.reader_of)

    def of_rank(self, rank: int, texts: pl.Series) -> tuple[Capture, ...]:
        """Return the captures that explain a rank's graph replays.

        `texts` are the strings in the rank's trace. For each batch size in these strings, return the captures with the
        same batch size or, if there are none, with the next larger one. Captures without a batch size are included
        too. If no batch size matches, all captures are returned. A rank without captures uses the captures of the
        lowest rank that has any.
        """
        files = self._of_rank(rank)
        sizes = sorted({file.batch_size for file in files if file.batch_size is not None})
        ran = batch_sizes(texts).drop_nulls().unique().to_list()
        wanted = {next((size for size in sizes if size >= one), None) for one in ran} - {None}
        chosen = [file for file in files if not wanted or file.batch_size is None or file.batch_size in wanted]
        return tuple(Capture(RankTrace(rank, self._opened(file.path)), file.batch_size) for file in chosen)

    def annotations(self) -> Mapping[int, Mapping[str, Any]]:
        """Return the annotations of graph nodes, by node id."""
        return {node: said for path in self._files[1] for node, said in _annotations(path).items()}

    def _opened(self, path: str) -> TraceFile:
        reader = self.reader_of(path)
        if reader is None:
            message = f"reading {path} is not allowed"
            raise UnreadableTraceError(message)
        return TraceFile(path, reader, cache=self.cache, progress=self.progress)

    def _of_rank(self, rank: int) -> list[_File]:
        files = self._files[0]
        ranks = {file.rank for file in files}
        taken = rank if rank in ranks else min((one for one in ranks if one is not None), default=None)
        return [file for file in files if file.rank is None or file.rank == taken]

    @cached_property
    def _files(self) -> tuple[list[_File], list[str]]:
        """Return the captures, and the annotation files."""
        listed = [file for path in self.paths for file in _listed(path) if self.reader_of(file) is not None]
        sizes = {name: size for path in listed if name_of(path) == _DETAILS for name, size in _details(path).items()}
        captures, annotations = [], []
        for path in listed:
            if name_of(path) == _DETAILS:
                continue
            if peek(path).is_trace:
                captures.append(_described(path, sizes))
            elif _annotations(path):
                annotations.append(path)
            elif self.named and path in self.paths:
                message = (
                    f"{path} is neither the recording of a capture nor a JSON file of annotations by graph node id"
                )
                raise NotATraceError(message)
        return captures, annotations


@dataclass(frozen=True)
class _File:
    path: str
    rank: int | None
    batch_size: int | None


def captures_named(capture: Address | Iterable[Address], cache: CacheOption, progress: Progress) -> CaptureFiles:
    """Return the captures at these paths.

    Raises:
        TraceNotFoundError: a path does not exist.
    """
    many = [capture] if isinstance(capture, (str, Path, RemotePath)) or not isinstance(capture, Iterable) else capture
    paths = tuple(address_text(path) for path in many)
    for path in paths:
        if not located(path).exists():
            raise TraceNotFoundError(nothing_there(path))
    return CaptureFiles(tuple(path if is_url(path) else str(Path(path).absolute()) for path in paths), cache, progress)


def captures_beside(folder: Path, cache: CacheOption, progress: Progress) -> CaptureFiles | None:
    """Return the captures that an inference engine wrote into a local folder of traces; None if there are none."""
    try:
        children = scan(folder.absolute())
    except OSError:
        return None
    of_engines = [
        child.path
        for child in children
        if is_capture_name(child.name) or (child.is_dir and child.name in CAPTURE_FOLDERS)
    ]
    return CaptureFiles(tuple(sorted(of_engines)), cache, progress, named=False) if of_engines else None


def _listed(path: str) -> list[str]:
    if not located(path).is_dir():
        return [path]
    return sorted(child.path for child in scan(path) if not child.is_dir and ".json" in child.name)


def _described(path: str, sizes: Mapping[str, int]) -> _File:
    name = name_of(path)
    in_name = batch_sizes(pl.Series([name])).item()
    in_tensor_group = _TENSOR_RANK.search(name)
    rank = int(in_tensor_group[1]) if in_tensor_group else rank_in_name(path)
    return _File(path, rank, sizes.get(name, in_name))


def _details(path: str) -> dict[str, int]:
    """Return {file name of a capture: its batch size} as listed in an `execution_details.json`."""
    listed = _json(path)
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    return {
        row["file"]: row["batch_size"]
        for row in rows
        if isinstance(row.get("file"), str) and type(row.get("batch_size")) is int
    }


def _annotations(path: str) -> dict[int, dict[str, Any]]:
    """Return a file's annotations of graph nodes: `{"42": {"module_fqn": "layers.0"}}`, or a list of objects per node.

    PyTorch records these annotations if the graph is captured with `torch.cuda.graph(..., enable_annotations=True)`.
    """
    written = _json(path)
    if not isinstance(written, dict) or not all(_NODE_ID.fullmatch(key) for key in written):
        return {}
    return {int(node): _merged(said) for node, said in written.items()}


def _merged(said: object) -> dict[str, Any]:
    parts = said if isinstance(said, list) else [said]
    return {
        key: value
        for part in parts
        for key, value in (part if isinstance(part, dict) else {"name": part}).items()
        if isinstance(key, str)
    }


def _json(path: str) -> object:
    """Return the content of a JSON file; None if the file is damaged, too large or not JSON."""
    location = located(path)
    try:
        with location.open("rb") as file:
            raw = file.read(_MOST_BYTES)
        if name_of(path).endswith(".gz"):
            with gzip.open(location.open("rb")) as packed:
                raw = packed.read(_MOST_BYTES)
        return json.loads(raw)
    except (OSError, EOFError, ValueError, RecursionError, UnreadableTraceError):
        return None
