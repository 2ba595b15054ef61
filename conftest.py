"""Fixtures and options that all tests share."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from golden import GoldenTables
from reference_data import folder_of

settings.register_profile("few", deadline=None, max_examples=5)
settings.register_profile("quick", deadline=None, max_examples=25)  # no deadline, because busy machines are slow
settings.register_profile("thorough", deadline=None, max_examples=50)
settings.load_profile(
    "quick"
)  # `make test-all` selects the profile `thorough`, and `make test-lowest` the profile `few`

_LONG_SECONDS = 600

TESTS = Path(__file__).parent / "tests"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--rewrite-golden`."""
    parser.addoption(
        "--rewrite-golden", action="store_true", help="rewrite the golden tables instead of comparing with them"
    )


def pytest_sessionstart() -> None:
    """Disable garbage collection while pytest collects tests: it frees little but takes a quarter of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Enable garbage collection again, except for the modules and tests loaded so far, which live until the end."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest tests first, then the remaining browser tests, so that no long test runs alone at the end."""
    items.sort(key=lambda item: (-_longest_seconds(item), item.get_closest_marker("browser") is None))


def _longest_seconds(item: pytest.Item) -> float:
    """Return the timeout of a test in seconds if it is ten minutes or more, else 0."""
    timeout = item.get_closest_marker("timeout")
    seconds = timeout.args[0] if timeout and timeout.args else 0
    return float(seconds) if seconds >= _LONG_SECONDS else 0


@pytest.fixture(scope="session")
def real_traces() -> Path:
    """Return the folder of real traces."""
    return folder_of("traces")


@pytest.fixture(scope="session")
def goldens() -> Path:
    """Return the folder with other tools' results for the real traces."""
    return folder_of("goldens")


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory) -> Iterator[None]:
    """Use a temporary cache, so tests neither read nor fill the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> GoldenTables:
    """Return an object that compares a table with its golden file; with `--rewrite-golden`, it overwrites the file."""
    return GoldenTables(TESTS / "golden", rewrite=request.config.getoption("--rewrite-golden"))
