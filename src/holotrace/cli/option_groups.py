"""Groups of options: a command takes a dataclass as one argument, but typer sees each field as a separate option."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, get_type_hints

import typer
from typer.models import ArgumentInfo

from holotrace.questions.options import Option


def with_option_groups(command: Callable[..., None], options: Iterable[Option] = ()) -> Callable[..., None]:
    """Return the command with each field of its dataclass arguments as a separate parameter.

    Positional fields come first, then the command's other parameters, then the remaining fields. Each option in
    `options` also becomes a parameter. If the user sets the option, the command receives the value in the argument whose
    name is `Option.argument`.
    """
    hints = inspect.get_annotations(command, eval_str=True)  # in Python 3.10, get_type_hints adds None to types
    groups = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    own = [parameter.replace(annotation=hints[name]) for name, parameter in _parameters(command) if name not in groups]
    fields = [parameter for group in groups.values() for parameter in _fields(group)]
    by_argument = {option.argument: option for option in options}
    asked = map(_parameter, by_argument.values())
    parameters = sorted(
        [*asked, *own, *fields], key=lambda parameter: not (parameter in fields and _is_positional(parameter))
    )

    @functools.wraps(command)
    def expanded(**values: Any) -> None:  # noqa: ANN401 -- values of any type
        made = {name: _take(group, values) for name, group in groups.items()}
        read = {name: _read(option, values.pop(name)) for name, option in by_argument.items()}
        command(**made, **values, **{name: value for name, value in read.items() if value is not None})

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def read_or_refuse(read: Callable[[Any], Any], value: object) -> Any:  # noqa: ANN401 -- any return value
    """Convert the value of an option; raise BadParameter if the value is invalid."""
    try:
        return read(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _parameters(command: Callable[..., None]) -> Iterator[tuple[str, inspect.Parameter]]:
    for name, parameter in inspect.signature(command).parameters.items():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            yield name, parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _parameter(option: Option) -> inspect.Parameter:
    kind = option.kind if option.default is not None else option.kind | None
    info = typer.Option(option.name, metavar=option.metavar, min=option.minimum, help=option.help)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(option.argument, keyword, default=option.default, annotation=Annotated[kind, info])


def _read(option: Option, value: object) -> Any:  # noqa: ANN401 -- values of any type
    return None if value is None or value == [] else read_or_refuse(option.read, value)


def _fields(group: Any) -> Iterator[inspect.Parameter]:  # noqa: ANN401 -- there is no type for dataclasses
    """Return the options of a group and of all groups nested in it."""
    hints = get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint):
            yield from _fields(hint)
        else:
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _is_positional(parameter: inspect.Parameter) -> bool:
    return any(isinstance(info, ArgumentInfo) for info in getattr(parameter.annotation, "__metadata__", ()))


def _take(group: Any, values: dict[str, Any]) -> Any:  # noqa: ANN401 -- takes a dataclass, returns an instance
    """Remove the values of the group's fields from `values`, and return an instance of the group with these values."""
    hints = get_type_hints(group)
    made = {
        field.name: _take(hints[field.name], values)
        if dataclasses.is_dataclass(hints[field.name])
        else values.pop(field.name)
        for field in dataclasses.fields(group)
    }
    return group(**made)
