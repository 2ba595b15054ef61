"""Parameters of tests: `make test` uses some of them, and `make test-all` uses all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")

QUICK_COMMANDS = frozenset({"summary", "check", "idle-time", "critical-path", "operators", "stragglers"})
"""The commands that `make test` runs.

Two analyse the whole job, one is an analysis without options, and three have options or several tables.
"""


def slow_except(values: Iterable[T], quick: Iterable[object]) -> list[object]:
    """Return the values as test parameters; those outside `quick` are marked as slow."""
    chosen = set(quick)
    return [value if value in chosen else pytest.param(value, marks=pytest.mark.slow) for value in values]


def each_command(commands: Iterable[str]) -> pytest.MarkDecorator:
    """Return a mark that runs a test once per command; runs for commands outside QUICK_COMMANDS are marked as slow."""
    return pytest.mark.parametrize("command", slow_except(commands, QUICK_COMMANDS))
