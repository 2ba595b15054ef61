"""The directive `public-names` documents the public names of a package, from all modules or only from the given ones.

    .. public-names:: holotrace
       :from: store ingest

Sphinx warns about each public name that no page documents, so that the API reference stays complete.
"""

from __future__ import annotations

import inspect
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

PACKAGES = ("holotrace", "holotrace.figures", "holotrace.testing")
logger = logging.getLogger(__name__)


class PublicNames(SphinxDirective):
    """Document the names in the `__all__` of a package, sorted by module; within a module, functions come first."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Callable[[str], str]]] = {
        "from": directives.unchanged,
        "except": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """Return the nodes that autodoc creates for the names."""
        package = self.arguments[0]
        wanted, unwanted = (_prefixes(self.options.get(option, "")) for option in ("from", "except"))
        homes = {name: _module(package, name) for name in public_names(package)}
        names = [
            name
            for name, home in homes.items()
            if (not wanted or home.startswith(wanted)) and not (unwanted and home.startswith(unwanted))
        ]
        lines = [
            line for name in sorted(names, key=lambda name: _order(package, name)) for line in _autodoc(package, name)
        ]
        container = nodes.container()
        nested_parse_with_titles(self.state, StringList(lines, source=self.env.docname), container)
        return container.children


def _prefixes(modules: str) -> tuple[str, ...]:
    return tuple(f"holotrace.{module}" for module in modules.split())


def public_names(package: str) -> list[str]:
    """Return the public names of a package, without `__version__` and submodules."""
    names = import_module(package).__all__
    return [name for name in names if not name.startswith("__") and not inspect.ismodule(_value(package, name))]


def _value(package: str, name: str) -> object:
    return getattr(import_module(package), name)


def _module(package: str, name: str) -> str:
    return str(getattr(_value(package, name), "__module__", package))


def _order(package: str, name: str) -> tuple[str, bool, str]:
    return _module(package, name), inspect.isclass(_value(package, name)), name


def _autodoc(package: str, name: str) -> list[str]:
    value = _value(package, name)
    if inspect.isfunction(value):
        return [f".. autofunction:: {package}.{name}", ""]
    if not inspect.isclass(value):
        return [f".. autodata:: {package}.{name}", "   :no-value:", ""]
    if issubclass(value, Exception):
        return [f".. autoexception:: {package}.{name}", "   :show-inheritance:", ""]
    options = ["   :members:", *(["   :undoc-members:"] if issubclass(value, Enum) else [])]
    return [f".. autoclass:: {package}.{name}", *options, ""]


def _without_fields(_app: object, what: str, _name: str, value: object, *_: object) -> tuple[str, str] | None:
    """Hide the signatures of result classes, because users never create results."""
    is_result = what == "class" and "findings" in getattr(value, "__dataclass_fields__", ())
    return ("", "") if is_result else None


def _report_missing(_app: Sphinx, env: BuildEnvironment) -> None:
    documented = env.get_domain("py").objects  # type: ignore[attr-defined]
    for package in PACKAGES:
        for name in public_names(package):
            if f"{package}.{name}" not in documented:
                logger.warning("no page of docs/reference/api documents %s.%s", package, name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and the check that all names are documented."""
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-process-signature", _without_fields)
    app.connect("env-check-consistency", _report_missing)
    return {"parallel_read_safe": True}
