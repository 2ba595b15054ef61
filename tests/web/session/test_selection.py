"""The selection of a page is stored in the query string of its address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.web.session.selection import MOST_NUMBERS, Selection, numbers_of, text_of

NUMBERS = st.none() | st.lists(st.integers(0, 10**6), min_size=1, max_size=40).map(
    lambda numbers: tuple(sorted(set(numbers)))
)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
OPTIONS = st.dictionaries(st.from_regex(r"\A[a-z][a-z0-9_.]{0,20}\Z"), WORDS, max_size=5)
RESERVED = {"view", "run", "ranks", "steps", "devices"}


@given(WORDS, st.none() | WORDS, st.tuples(NUMBERS, NUMBERS, NUMBERS), OPTIONS)
def test_reading_an_address_undoes_writing_it(view, run, numbers, options) -> None:
    """Parsing the query string of a selection returns the selection."""
    kept = tuple(sorted((key, value) for key, value in options.items() if key not in RESERVED))
    selection = Selection(view, run, *numbers, kept)
    assert Selection.from_query(selection.query()) == selection


@given(st.text())
def test_any_text_is_an_address(text) -> None:
    """Any query string can be parsed as a selection; writing and parsing this selection does not change it."""
    selection = Selection.from_query(text)
    assert Selection.from_query(selection.query()) == selection


@given(st.sets(st.integers(0, 300)))
def test_reading_ranges_undoes_writing_them(numbers) -> None:
    """A set of numbers is written as ranges such as 0-3,7; parsing them returns the same set."""
    assert set(numbers_of(text_of(numbers)) or ()) == numbers


@pytest.mark.parametrize(
    "text", ["", "x", "1-", "-1", "3-1", "1,,2", "1;2", f"0-{MOST_NUMBERS}", "0-99999,100000-999999", "²", "9" * 30]
)
def test_an_invalid_list_of_numbers_selects_all(text) -> None:
    """A list that is invalid or has more than MOST_NUMBERS numbers selects everything."""
    assert numbers_of(text) is None


def test_a_link_to_another_page_keeps_the_part_of_the_run() -> None:
    """A link to another page keeps the run and the ranks, but not the search text of a table."""
    here = Selection.from_query("?view=idle_time&run=abc&ranks=0-2&q.idle_time.0=gemm")
    assert here.at("health").query() == "?view=health&run=abc&ranks=0-2"
