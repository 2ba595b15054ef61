"""Fixtures for tests in a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress

import pytest

from browsing import REAL_TRACES, chromium


@pytest.fixture(scope="package")
def browser() -> Iterator[object]:
    """Start a headless browser; skip the test if none is installed."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def log_folder(real_traces, tmp_path_factory):
    """Return a folder like a log folder of TensorBoard, with one run per real trace; use a temporary cache."""
    folder = tmp_path_factory.mktemp("logs")
    for name, path in REAL_TRACES.items():
        with suppress(pytest.skip.Exception):
            shutil.copytree(real_traces / path, folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield folder
