"""Fixtures: traces on disk, and a separate cache folder for every test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holotrace.ingest.kineto import KinetoReader
from holotrace.store.cache import FOLDER_VARIABLE
from holotrace.store.trace_file import TraceFile

WriteTrace = Callable[..., Path]


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a temporary cache folder instead of the user's cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    return folder


@pytest.fixture
def write_trace(tmp_path: Path) -> WriteTrace:
    """Return a function that writes a trace with one kernel per name: `write_trace("a.json", ["gemm"], rank=3)`."""

    def write(file_name: str, kernels: list[str], **header: Any) -> Path:
        path = tmp_path / file_name
        args = {"stream": 7, "registers per thread": 32}
        events = [
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": 1, "args": args}
            for start, name in enumerate(kernels)
        ]
        path.write_text(json.dumps(header | {"traceEvents": events}), encoding="utf-8")
        return path

    return write


@pytest.fixture
def open_file() -> Callable[..., TraceFile]:
    """Return a function that opens a trace with the real reader: `open_file(path, cache=False)`."""

    def open_(path: Path, **options: Any) -> TraceFile:
        return TraceFile(str(path), KinetoReader(), **options)

    return open_
