"""Options of questions: their values, and the arguments they set."""

from __future__ import annotations

import inspect

import pytest

from holotrace.catalogue import ANALYSES, COMPARISONS
from holotrace.errors import InvalidOptionError
from holotrace.options import Option, nanoseconds, numbers

OPTIONS = [(question, option) for question in (*ANALYSES, *COMPARISONS) for option in question.options]


@pytest.mark.parametrize(
    ("text", "listed"),
    [("3", [3]), ("0-2", [0, 1, 2]), ("9,0-2,1", [0, 1, 2, 9]), ("4-4", [4]), ("0-9:4,1", [0, 1, 4, 8])],
)
def test_a_list_of_numbers_has_numbers_and_ranges(text, listed) -> None:
    """The result has each number once, in ascending order."""
    assert numbers(text) == listed


@pytest.mark.parametrize(
    "text", ["", "a", "1-", "-1", "1,,2", "1;2", "7-0", "3:2", "0-3:", "0-99999999999", "0-2000000", "1" * 5_000]
)
def test_other_texts_are_refused(text) -> None:
    """The error shows the right form."""
    with pytest.raises(InvalidOptionError, match="write"):
        numbers(text)


def test_microseconds_become_whole_nanoseconds() -> None:
    """Rounded to the nearest."""
    assert (nanoseconds(30), nanoseconds(0.0015)) == (30_000, 2)


@pytest.mark.parametrize(("question", "option"), OPTIONS, ids=lambda value: getattr(value, "argument", value.name))
def test_an_option_sets_an_argument_and_repeats_its_default(question, option) -> None:
    """Without options, a command computes what the function without arguments does."""
    argument = inspect.signature(question.compute).parameters[option.argument]
    if option.default is not None:
        assert option.read(option.default) == argument.default


def test_an_option_is_named_after_its_argument_unless_it_says_otherwise() -> None:
    """Underscores become dashes."""
    assert Option("full_length", "").name == "--full-length"
    assert Option("gap_threshold_ns", "", flag="--gap-threshold-us").name == "--gap-threshold-us"
