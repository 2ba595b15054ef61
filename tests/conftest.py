"""Fixtures and options that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from golden import GoldenTables

settings.register_profile("hta", deadline=None)  # a shared machine is no clock
settings.load_profile("hta")

TESTS = Path(__file__).parent
BESIDE_THE_REPOSITORY = TESTS.parent.parent / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--rewrite-golden`."""
    parser.addoption(
        "--rewrite-golden", action="store_true", help="write the golden tables anew instead of comparing with them"
    )


@pytest.fixture(scope="session")
def real_traces() -> Path:
    """The folder of real traces that are not part of the repository; skips where it is absent."""
    return _folder("HTA_REAL_TRACES", "traces")


@pytest.fixture(scope="session")
def goldens() -> Path:
    """The folder of results that other tools gave for the real traces; skips where it is absent."""
    return _folder("HTA_GOLDENS", "goldens")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> GoldenTables:
    """Compare a table with its golden copy in tests/golden, or write the copy with `--rewrite-golden`."""
    return GoldenTables(TESTS / "golden", rewrite=request.config.getoption("--rewrite-golden"))


def _folder(variable: str, name: str) -> Path:
    folder = Path(os.environ.get(variable) or BESIDE_THE_REPOSITORY / name)
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; {variable} may name another folder")
    return folder
