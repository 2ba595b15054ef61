"""Names that HTA's modules have only because they import them, and that scripts import from there all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_of(module: str, elsewhere: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module: it finds names in the modules where they are, when they are asked for.

    Args:
        module: its name.
        elsewhere: {name: the module that has it}.
    """

    def found(name: str) -> Any:  # noqa: ANN401 -- as many types as names
        if name not in elsewhere:
            message = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(message)
        return getattr(import_module(elsewhere[name]), name)

    return found
