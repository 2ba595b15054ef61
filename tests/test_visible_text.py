"""Text from a trace can neither control a terminal nor run in a spreadsheet."""

from __future__ import annotations

import json

import pytest

from holotrace.visible_text import inert_cell, visible, visible_json
from hostile import ACTING, FORMULAS, steering


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 名前 é\u00a0x", "plain 名前 é\u00a0x"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b31m", r"\x9b31m"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\u202e\u2066\u2028\u200b\x7f", r"\u202e\u2066\u2028\u200b\x7f"),
        ("\ud800", r"\ud800"),
    ],
)
def test_control_characters_are_escaped(text, shown) -> None:
    """Control characters become visible escapes, other characters stay, and escaping again changes nothing."""
    assert (visible(text), visible(visible(text))) == (shown, shown)


def test_escaped_json_has_the_same_meaning() -> None:
    """Escaped JSON has no control characters and parses to the same value."""
    value = {"name": f"{ACTING}\U000e0041", "list": [1, None]}
    text = visible_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert steering(text) == set()
    assert json.loads(text) == value


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_gets_an_apostrophe(text) -> None:
    """A cell that begins like a formula gets an apostrophe, so a spreadsheet shows it as text."""
    assert inert_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "gemm", "-1", "+1.5e-3", "a=b", "'=1"])
def test_other_text_is_unchanged(text) -> None:
    """Names and numbers that are not formulas stay unchanged."""
    assert inert_cell(text) == text
