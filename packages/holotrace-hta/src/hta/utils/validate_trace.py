"""Checking the args of a trace file, as scripts written for HTA do; `holotrace check --strict` looks at much more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from holotrace.errors import HolotraceError, InvalidOptionError
from holotrace.export.event_reader import EventReader
from holotrace.export.trace_text import pieces
from hta.configs.default_values import EVENT_ARGS, AttributeSpec, ValueType
from hta.facade.imports.elsewhere import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

_LEVELS = {
    "minimal": EVENT_ARGS.ARGS_MINIMUM,
    "standard": EVENT_ARGS.ARGS_DEFAULT,
    "default": EVENT_ARGS.ARGS_DEFAULT,
    "complete": EVENT_ARGS.ARGS_COMPLETE,
}
_TYPES: dict[ValueType, tuple[type, ...]] = {
    ValueType.Int: (int,),
    ValueType.Float: (int, float, Decimal),
    ValueType.String: (str,),
    ValueType.Object: (object,),
}


def get_argument_spec(level: str = "default") -> list[AttributeSpec]:
    """Return the args of a level: minimal, standard (or default), complete.

    Raises:
        InvalidOptionError: there is no such level.
    """
    if level not in _LEVELS:
        message = f"level={level!r} is none of: {', '.join(_LEVELS)}"
        raise InvalidOptionError(message)
    return list(_LEVELS[level])


def validate_trace_format(
    trace_file_path: str,
    level: str = "standard",
    ignore_missing_arguments: bool = True,  # noqa: FBT001, FBT002 -- HTA's signature
) -> tuple[bool, dict[str, Any]]:
    """Return whether the args of all events of a file have the types that are known of them.

    Args:
        trace_file_path: the file, which is read event by event.
        level: which args are known: minimal, standard, complete.
        ignore_missing_arguments: let args pass that are not among them.

    Returns:
        Whether all is well, and what is not: trace_read_error (the file cannot be read), args_data_type (args that are
        no object), skipped_arguments ({arg: events} of args that are not known, where those are not let pass) and
        type_violations ({arg: the first value of another type}).

    Raises:
        InvalidOptionError: there is no such level.
    """
    known = {spec.raw_name: spec for spec in get_argument_spec(level)}
    try:
        found = _checked(_args_of(trace_file_path), known)
    except HolotraceError as error:
        return False, {"trace_read_error": str(error)}
    if ignore_missing_arguments:
        del found["skipped_arguments"]
    errors = {name: value for name, value in found.items() if value}
    return not errors, errors


def _args_of(path: str) -> Iterator[Any]:
    reader = EventReader(path, pieces(path))
    reader.head()
    return (event["args"] for event in reader.events() if "args" in event)


def _checked(args_of_events: Iterable[Any], known: Mapping[str, AttributeSpec]) -> dict[str, Any]:
    unknown: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    no_object = ""
    for args in args_of_events:
        if not isinstance(args, dict):
            no_object = no_object or f"the args of an event are no object: {str(args)[:80]}"
            continue
        unknown.update(name for name in args if name not in known)
        wrong = _violations(args, known) | wrong
    return {"args_data_type": no_object, "skipped_arguments": dict(unknown), "type_violations": wrong}


def _violations(args: Mapping[str, Any], known: Mapping[str, AttributeSpec]) -> dict[str, str]:
    return {
        name: f"{str(value)[:80]!r} is no {known[name].value_type.name}"
        for name, value in args.items()
        if name in known and not isinstance(value, _TYPES[known[name].value_type])
    }
