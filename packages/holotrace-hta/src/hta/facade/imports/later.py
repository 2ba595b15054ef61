"""Modules and functions that are imported on first use, so a script loads only those it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def submodules_of(package: str) -> Callable[[str], ModuleType]:
    """Return a package's `__getattr__`, which imports a submodule when a script first reads it as an attribute."""

    def imported(name: str) -> ModuleType:
        module = f"{package}.{name}"
        if name.startswith("_") or find_spec(module) is None:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        return import_module(module)

    return imported


def called_later(modules: Mapping[str, str]) -> dict[str, Callable[..., Any]]:
    """Return `{name: function}` for `{name: module}`; each function imports `name` from its module and calls it."""
    return {name: _later(module, name) for name, module in modules.items()}


def _later(module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 -- forwards any signature
        return getattr(import_module(module), name)(*arguments, **options)

    return call
