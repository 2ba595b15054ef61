"""Descriptions of the questions' options; `holotrace.cli` turns them into command-line options."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from holotrace.errors import InvalidOptionError

_RANGE = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?")
_MOST_NUMBERS = 1_000_000


def _unchanged(value: Any) -> Any:  # noqa: ANN401 -- each option has its own type
    return value


@dataclass(frozen=True)
class Option:
    """An option that sets one argument of a question's computation.

    argument  name of the argument
    help      what the option does
    kind      type of the value: str, int, float, bool, a Literal, or list[str] if the option may be repeated
    default   value if the option is not given; None selects the computation's default
    flag      name on the command line; by default made from the argument, such as `--full-length`
    metavar   placeholder for the value in the help
    minimum   lowest valid number
    read      converts the value to the argument; raises ValueError for an invalid value
    """

    argument: str
    help: str
    kind: Any = str
    default: Any = None
    flag: str = ""
    metavar: str | None = None
    minimum: float | None = None
    read: Callable[[Any], Any] = _unchanged

    @property
    def name(self) -> str:
        """The name of the option on the command line."""
        return self.flag or f"--{self.argument.replace('_', '-')}"


def nanoseconds(time_us: float) -> int:
    """Convert microseconds to whole nanoseconds."""
    return round(1_000 * time_us)


def numbers(text: str) -> list[int]:
    """Parse a list of numbers such as `0-7,9`, or `0-63:8` for every 8th; return each number once, in ascending order.

    Raises:
        InvalidOptionError: the text is not a list of numbers, or a range has more than a million numbers.
    """
    listed: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            message = f"{text!r} is not a list of numbers; write it like 0-7,9, or 0-63:8 for every 8th"
            raise InvalidOptionError(message)
        numbers_of_part = _range(*match.groups())
        if numbers_of_part[_MOST_NUMBERS:]:
            message = f"{part!r} has more than {_MOST_NUMBERS:,} numbers; write a shorter range"
            raise InvalidOptionError(message)
        listed.update(numbers_of_part)
    if not listed:
        message = f"{text!r} contains no number; write a range from the lower number to the higher"
        raise InvalidOptionError(message)
    return sorted(listed)


def _range(first: str, last: str | None, step: str | None) -> range:
    return range(int(first), int(last or first) + 1, int(step or 1) or 1)


ANNOTATION = Option("annotation", "Use the host annotations of this name as steps, numbered from 0.", metavar="NAME")
COMPAT = Option(
    "compat",
    "Give the same numbers as PyTorch's TensorBoard plugin, including its quirks.",
    kind=Literal["torch_tb_profiler"],
)
