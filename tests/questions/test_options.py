"""An option of an analysis turns the text that a user enters into the value of an argument."""

from __future__ import annotations

import inspect

import pytest

from holotrace.catalogue import ANALYSES, COMPARISONS
from holotrace.errors import InvalidOptionError
from holotrace.questions.options import Option, nanoseconds, numbers

OPTIONS = [(question, option) for question in (*ANALYSES, *COMPARISONS) for option in question.options]


@pytest.mark.parametrize(
    ("text", "listed"),
    [("3", [3]), ("0-2", [0, 1, 2]), ("9,0-2,1", [0, 1, 2, 9]), ("4-4", [4]), ("0-9:4,1", [0, 1, 4, 8])],
)
def test_a_list_of_numbers_has_numbers_and_ranges(text, listed) -> None:
    """The text `9,0-2,1` means 0, 1, 2 and 9; `0-9:4` means every fourth number."""
    assert numbers(text) == listed


@pytest.mark.parametrize(
    "text", ["", "a", "1-", "-1", "1,,2", "1;2", "7-0", "3:2", "0-3:", "0-99999999999", "0-2000000", "1" * 5_000]
)
def test_other_texts_are_refused(text) -> None:
    """The error for an invalid list of numbers shows how to write a valid one."""
    with pytest.raises(InvalidOptionError, match="write"):
        numbers(text)


def test_microseconds_become_whole_nanoseconds() -> None:
    """30 µs becomes 30,000 ns, and 0.0015 µs is rounded to 2 ns."""
    assert (nanoseconds(30), nanoseconds(0.0015)) == (30_000, 2)


@pytest.mark.parametrize(("question", "option"), OPTIONS, ids=lambda value: getattr(value, "argument", value.name))
def test_an_option_sets_an_argument_and_repeats_its_default(question, option) -> None:
    """The default of an option equals the default of its argument."""
    argument = inspect.signature(question.compute).parameters[option.argument]
    if option.default is not None:
        assert option.read(option.default) == argument.default


def test_an_option_is_named_after_its_argument_unless_it_says_otherwise() -> None:
    """By default, the option of the argument full_length is --full-length; `flag=` sets a different name."""
    assert Option("full_length", "").name == "--full-length"
    assert Option("gap_threshold_ns", "", flag="--gap-threshold-us").name == "--gap-threshold-us"
