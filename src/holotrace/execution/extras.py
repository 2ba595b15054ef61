"""Optional packages that only some executors need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from holotrace.errors import InvalidOptionError


def imported(module: str, *, extra: str) -> Any:  # noqa: ANN401 -- a module of a package without types
    """Return a module of an optional package.

    Raises:
        InvalidOptionError: the package is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        message = f"{module} is not installed: pip install 'holotrace[{extra}]'"
        raise InvalidOptionError(message) from error
