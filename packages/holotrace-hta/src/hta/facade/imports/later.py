"""Functions whose modules are imported when they are first called: a script waits only for what it uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def called_later(modules: Mapping[str, str]) -> dict[str, Callable[..., Any]]:
    """Return {name: a function that imports the one of that name, and calls it}, from {name: its module}."""
    return {name: _later(module, name) for name, module in modules.items()}


def _later(module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 -- whatever the function takes and returns
        return getattr(import_module(module), name)(*arguments, **options)

    return call
