"""HTA's check of the args in a trace file; `holotrace check --strict` checks much more."""

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
    """Return the args that a level checks; levels are minimal, standard (or default) and complete.

    Raises:
        InvalidOptionError: the level does not exist.
    """
    if level not in _LEVELS:
        message = f"level={level!r} must be one of: {', '.join(_LEVELS)}"
        raise InvalidOptionError(message)
    return list(_LEVELS[level])


def validate_trace_format(
    trace_file_path: str,
    level: str = "standard",
    ignore_missing_arguments: bool = True,  # noqa: FBT001, FBT002 -- HTA's signature
) -> tuple[bool, dict[str, Any]]:
    """Return whether the args of all events in a file have the expected types.

    Args:
        trace_file_path: the file; read event by event.
        level: the set of known args: minimal, standard or complete.
        ignore_missing_arguments: accept unknown args.

    Returns:
        Whether the check passed, and the errors: trace_read_error (the file is not readable), args_data_type (args that are not
        an object), skipped_arguments ({unknown arg: number of events}, unless ignored) and type_violations ({arg: the first
        value that has a wrong type}).

    Raises:
        InvalidOptionError: the level does not exist.
    """
    known = {spec.raw_name: spec for spec in get_argument_spec(level)}
    try:
        checked = _checked(_args_of(trace_file_path), known)
    except HolotraceError as error:
        return False, {"trace_read_error": str(error)}
    if ignore_missing_arguments:
        del checked["skipped_arguments"]
    errors = {name: value for name, value in checked.items() if value}
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
            no_object = no_object or f"the args of an event are not an object: {str(args)[:80]}"
            continue
        unknown.update(name for name in args if name not in known)
        wrong = _violations(args, known) | wrong
    return {"args_data_type": no_object, "skipped_arguments": dict(unknown), "type_violations": wrong}


def _violations(args: Mapping[str, Any], known: Mapping[str, AttributeSpec]) -> dict[str, str]:
    return {
        name: f"{str(value)[:80]!r} is not of type {known[name].value_type.name}"
        for name, value in args.items()
        if name in known and not isinstance(value, _TYPES[known[name].value_type])
    }
