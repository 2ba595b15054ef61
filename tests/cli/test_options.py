"""Options that several commands share."""

from __future__ import annotations

import pytest
import typer

from holotrace.cli.options import parse_ranks


@pytest.mark.parametrize(
    ("text", "ranks"),
    [("3", [3]), ("0-2", [0, 1, 2]), ("9,0-2,1", [0, 1, 2, 9]), ("4-4", [4]), ("0-9:4,1", [0, 1, 4, 8])],
)
def test_ranks_are_numbers_and_ranges(text, ranks) -> None:
    """The result has each rank once, in ascending order."""
    assert parse_ranks(text) == ranks


@pytest.mark.parametrize(
    "text", ["", "a", "1-", "-1", "1,,2", "1;2", "7-0", "3:2", "0-3:", "0-99999999999", "0-2000000", "1" * 5_000]
)
def test_other_texts_are_refused(text) -> None:
    """The message shows the accepted form."""
    with pytest.raises(typer.BadParameter):
        parse_ranks(text)
