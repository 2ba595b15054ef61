"""Options that come in groups: a command takes the group as one argument, and typer sees each option."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

from typer.models import ArgumentInfo


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the fields of its arguments that are dataclasses as arguments of their own.

    Those with a place on the command line come before the command's own, options come last.
    """
    hints = inspect.get_annotations(
        command, eval_str=True
    )  # get_type_hints of Python 3.10 makes an optional of a default
    groups = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    own = [each.replace(annotation=hints[name]) for name, each in _parameters(command) if name not in groups]
    added = [parameter for group in groups.values() for parameter in _fields(group)]
    parameters = sorted([*own, *added], key=lambda each: not (each in added and _is_argument(each)))

    @functools.wraps(command)
    def expanded(**values: Any) -> None:  # noqa: ANN401 -- whatever the options hold
        made = {name: _take(group, values) for name, group in groups.items()}
        command(**made, **values)

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    return expanded


def _parameters(command: Callable[..., None]) -> Iterator[tuple[str, inspect.Parameter]]:
    for name, each in inspect.signature(command).parameters.items():
        yield name, each.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _fields(group: Any) -> Iterator[inspect.Parameter]:  # noqa: ANN401 -- a dataclass, which has no type of its own
    """Return the options of a group, and of the groups in it."""
    hints = get_type_hints(group, include_extras=True)
    for each in dataclasses.fields(group):
        hint = hints[each.name]
        if dataclasses.is_dataclass(hint):
            yield from _fields(hint)
        else:
            default = inspect.Parameter.empty if each.default is dataclasses.MISSING else each.default
            yield inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _is_argument(parameter: inspect.Parameter) -> bool:
    return any(isinstance(each, ArgumentInfo) for each in getattr(parameter.annotation, "__metadata__", ()))


def _take(group: Any, values: dict[str, Any]) -> Any:  # noqa: ANN401 -- a dataclass in, an instance of it out
    """Take the options of a group out of `values`, and make the group of them."""
    hints = get_type_hints(group)
    made = {
        each.name: _take(hints[each.name], values)
        if dataclasses.is_dataclass(hints[each.name])
        else values.pop(each.name)
        for each in dataclasses.fields(group)
    }
    return group(**made)
