"""Fixtures: traces on disk, and a separate cache folder for every test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holotrace.store.cache import FOLDER_VARIABLE


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a temporary cache folder, which is neither the user's cache nor the folder of the traces."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    return folder


@pytest.fixture
def write_trace(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a small trace: `write_trace("a.json", rank=3, collective_ranks=[3])`."""

    def write(
        file_name: str, *, rank: int | None = None, collective_ranks: tuple[int, ...] = (), **header: Any
    ) -> Path:
        path = tmp_path / file_name
        args = [{"Collective name": "allreduce", "Rank": named} for named in collective_ranks] or [{"stream": 7}]
        common = {"ph": "X", "cat": "kernel", "name": file_name, "pid": 0, "tid": 7, "ts": 1, "dur": 1}
        info = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 8}}
        events = [common | {"args": event_args} for event_args in args]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(info | header | {"traceEvents": events}), encoding="utf-8")
        return path

    return write
