"""Fixtures: a job to query and a separate cache."""

from __future__ import annotations

from pathlib import Path

import pytest

import holotrace
from holotrace.store.cache import FOLDER_VARIABLE
from holotrace.store.trace import Trace
from holotrace.testing.synthetic import write_job


@pytest.fixture(scope="session")
def job(tmp_path_factory) -> Trace:
    """Write four ranks with steps, operators, collectives and annotations; rank 3 is slower than the others."""
    folder = tmp_path_factory.mktemp("sql") / "traces"
    write_job(folder, ranks=4, steps=3, layers=2)
    return holotrace.open_trace(folder, cache=False)


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch) -> Path:
    """Use a temporary cache folder instead of the user's cache."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"
