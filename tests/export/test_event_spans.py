"""Where events stand in the text of a file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta.export.event_spans import event_spans

texts = st.text(st.sampled_from('a"\\{}[],:\n é'), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
events = st.dictionaries(texts, values, max_size=3)


def found(*pieces: str) -> list[str]:
    """Return the texts of the events in pieces of a list."""
    spans = event_spans(piece.encode() for piece in pieces)
    return [each.text[s:e].decode() for each in spans for s, e in zip(each.starts, each.ends, strict=True)]


@settings(max_examples=200)
@given(st.lists(events, max_size=4), st.sampled_from([",", " ,\n "]), st.booleans(), st.data())
def test_every_event_is_found_wherever_the_text_is_cut(listed, separator, is_ascii, data) -> None:
    """Braces and quotes in strings, escaped or not, begin and end nothing; a piece may end within a letter."""
    written = [json.dumps(event, ensure_ascii=is_ascii) for event in listed]
    whole = separator.join(written).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    spans = list(event_spans(pieces))

    assert [each.text[s:e].decode() for each in spans for s, e in zip(each.starts, each.ends, strict=True)] == written


@pytest.mark.parametrize("slashes", range(6))
def test_an_even_number_of_backslashes_lets_a_string_end(slashes) -> None:
    """After an odd number the quote belongs to the string, and so does the brace behind it."""
    inside = '"}' if slashes % 2 else '","b":"}'
    event = '{"a":"' + "\\" * slashes + inside + '"}'

    assert json.loads(event)
    assert found(event + ",{}") == [event, "{}"]


def test_what_is_no_object_is_no_event_and_neither_is_one_that_does_not_end() -> None:
    """As in the tables of a trace."""
    assert found("1,null,[2],{},", '"{}"', ',{"a":{}') == ["{}"]


def test_a_list_without_events_has_none() -> None:
    """Nor has no text."""
    assert found() == found("") == found(" \n") == []
