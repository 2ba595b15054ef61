"""Tables of rules about names: which rules are in force, how workers receive rules, and how rule files are read.

Rules added by the program have the highest priority, then rules in the file named by an environment variable, then the
rules that ship with holotrace. `Trace.map` sends the caller's added rules along with its function, so workers apply
them too.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from holotrace.errors import InvalidOptionError

Argument = TypeVar("Argument")
T = TypeVar("T")
Rule = TypeVar("Rule")

RulesInForce: TypeAlias = "tuple[tuple[str, tuple[Any, ...]], ...]"
"""For each table, the name of its environment variable and its rules in force, without the shipped rules.

Every process already has the shipped rules, and sending hundreds of rules with each call would take time.
Sending them would also make each call compute the facts of `derived_under_rules` again: these facts are reused only if
the rules are equal, but copies of shipped rules are never equal, because they contain `functools.partial` objects.
"""

_TABLES: dict[str, RuleTable[Any]] = {}
_IN_FORCE: ContextVar[Mapping[str, tuple[Any, ...]] | None] = ContextVar("rules in force", default=None)


class RuleTable(Generic[Rule]):
    """Rules that derive one property from a name, for example the kind of a kernel from its name.

    Args:
        shipped: the rules that come with holotrace.
        variable: environment variable with the path of a rule file; also the name of the table.
        wanted: the keys of a rule in a rule file, for error messages.
        read: makes a rule from one object in the file; its second argument is the object's position, for messages.
    """

    def __init__(
        self,
        shipped: tuple[Rule, ...],
        *,
        variable: str,
        wanted: str,
        read: Callable[[dict[str, Any], str], Rule],
    ) -> None:
        self._shipped, self._variable, self._wanted, self._read = shipped, variable, wanted, read
        self._added: list[Rule] = []
        _TABLES[variable] = self

    def add(self, rule: Rule) -> None:
        """Add a rule with priority over all others."""
        self._added.insert(0, rule)

    def remove_added(self) -> None:
        """Remove all rules that `add` has added."""
        self._added.clear()

    def active(self) -> tuple[Rule, ...]:
        """Return the rules in force, by priority."""
        return (*self.own(), *self._shipped)

    def own(self) -> tuple[Rule, ...]:
        """Return the rules in force, except those that ship with holotrace, by priority."""
        in_force = _IN_FORCE.get()
        if in_force is not None and self._variable in in_force:
            return in_force[self._variable]
        path = os.environ.get(self._variable)
        return (*self._added, *(self.from_file(path) if path else ()))

    def from_file(self, path: str | Path) -> tuple[Rule, ...]:
        """Read the list `rules` of a JSON or TOML file.

        Raises:
            InvalidOptionError: the file cannot be read, or an entry is not a rule; the message says where.
        """
        try:
            entries = _parsed(str(path), Path(path).read_text(encoding="utf-8")).get("rules")
        except OSError as error:
            message = f"the rule file {path} cannot be read: {error.strerror}"
            raise InvalidOptionError(message) from error
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            message = f"{path} has no list `rules` of objects with {self._wanted}"
            raise InvalidOptionError(message)
        return tuple(self._read(entry, f"{path}, rule {number}") for number, entry in enumerate(entries, start=1))


def rules_in_force() -> RulesInForce:
    """Return the rules in force in every table, except those that ship with holotrace."""
    return tuple((variable, table.own()) for variable, table in sorted(_TABLES.items()))


def under_rules(rules: RulesInForce, function: Callable[[Argument], T], argument: Argument) -> T:
    """Call a function with `rules` instead of this process's added rules and rule files; shipped rules also apply."""
    token = _IN_FORCE.set(dict(rules))
    try:
        return function(argument)
    finally:
        _IN_FORCE.reset(token)


def checked_pattern(pattern: object, where: str) -> str:
    """Return the pattern of a rule after checking it; `where` names the rule in error messages.

    Raises:
        InvalidOptionError: the pattern is not a string, is empty, or is not a regular expression.
    """
    try:
        re.compile(str(pattern))
    except re.error as error:
        message = f"{where}: {pattern!r} is not a regular expression: {error}"
        raise InvalidOptionError(message) from error
    if not isinstance(pattern, str) or not pattern:
        message = f"{where}: the pattern of a rule must be a string that is not empty"
        raise InvalidOptionError(message)
    return pattern


def _parsed(path: str, text: str) -> dict[str, Any]:
    try:
        content = _toml(path, text) if path.endswith(".toml") else json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"{path} is not valid {'TOML' if path.endswith('.toml') else 'JSON'}: {error}"
        raise InvalidOptionError(message) from error
    return content if isinstance(content, dict) else {}


def _toml(path: str, text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 -- absent from Python 3.10

        return tomllib.loads(text)
    message = f"{path}: reading TOML needs Python 3.11; write the rules as JSON"
    raise InvalidOptionError(message)
