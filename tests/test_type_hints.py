"""`typing.get_type_hints` resolves every annotation of a public name, as editors and documentation tools do."""

from __future__ import annotations

import inspect
import pkgutil
import typing
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest

import holotrace

NEEDS_AN_EXTRA = ("holotrace.web",)


def public_modules() -> list[ModuleType]:
    """Return the modules that list their public names."""
    names = [module.name for module in pkgutil.walk_packages(holotrace.__path__, "holotrace.")]
    modules = [import_module(name) for name in names if not name.startswith((*NEEDS_AN_EXTRA, "holotrace.__main__"))]
    return [holotrace, *(module for module in modules if hasattr(module, "__all__"))]


def annotated(value: object) -> Iterator[object]:
    """Yield a function, or a class with its public methods."""
    if inspect.isclass(value):
        yield value
        for name, member in vars(value).items():
            if not name.startswith("_") or name == "__init__":
                yield from annotated(unwrapped(member))
    elif inspect.isfunction(value):
        yield value


def unwrapped(member: object) -> object:
    """Return the function of a property or method, or None for a class inside a class."""
    for attribute in ("fget", "func", "__func__"):
        member = getattr(member, attribute, member)
    return None if inspect.isclass(member) else member


@pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.__name__)
def test_type_hints_of_public_names_resolve(module: ModuleType, monkeypatch) -> None:
    """Public annotations use no name that only type checkers import, except a type of the extra fsspec."""
    monkeypatch.setattr("holotrace.locations.remote_path.AbstractFileSystem", object, raising=False)
    for name in module.__all__:
        for function_or_class in annotated(getattr(module, name)):
            assert isinstance(typing.get_type_hints(function_or_class), dict)
