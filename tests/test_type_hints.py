"""`typing.get_type_hints`, which editors and documentation tools use, resolves every public annotation."""

from __future__ import annotations

import inspect
import pkgutil
import typing
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest

import holotrace
import hta

NEEDS_AN_EXTRA = ("holotrace.web",)


def public_modules() -> list[ModuleType]:
    """Return the modules of `holotrace` with public names, and all modules of `hta`.

    All modules of `hta` are included because scripts may import any of them.
    """
    listing = [module for module in modules_below(holotrace) if hasattr(module, "__all__")]
    return [holotrace, *listing, *modules_below(hta)]


def modules_below(package: ModuleType) -> list[ModuleType]:
    """Import and return all modules of a package, except those that need an optional package."""
    names = [module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [import_module(name) for name in names if not name.startswith((*NEEDS_AN_EXTRA, "holotrace.__main__"))]


def public_names(module: ModuleType) -> list[str]:
    """Return the names in `__all__` or, without it, the public names that the module defines."""
    own = (name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__)
    return list(getattr(module, "__all__", None) or [name for name in own if not name.startswith("_")])


def annotated(value: object) -> Iterator[object]:
    """Yield the given function, or the given class and the functions behind its public members."""
    if inspect.isclass(value):
        yield value
        for name, member in vars(value).items():
            if not name.startswith("_") or name == "__init__":
                yield from annotated(unwrapped(member))
    elif inspect.isfunction(value):
        yield value


def unwrapped(member: object) -> object:
    """Return the function behind a property or method, or None for a nested class."""
    for attribute in ("fget", "func", "__func__"):
        member = getattr(member, attribute, member)
    return None if inspect.isclass(member) else member


@pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.__name__)
def test_type_hints_of_public_names_resolve(module: ModuleType, monkeypatch) -> None:
    """All public annotations can be resolved at run time, except for one type from fsspec, which is optional."""
    monkeypatch.setattr("holotrace.locations.remote_path.AbstractFileSystem", object, raising=False)
    for name in public_names(module):
        for function_or_class in annotated(getattr(module, name)):
            assert isinstance(typing.get_type_hints(function_or_class), dict)
