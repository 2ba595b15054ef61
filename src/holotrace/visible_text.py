"""Make text from a trace safe to show.

Names, paths and messages come from the traced program, or from the sender of the file. A terminal obeys control
characters, bidirectional marks mislead readers (https://www.unicode.org/reports/tr36/), and spreadsheets run
cells that begin like a formula (https://owasp.org/www-community/attacks/CSV_Injection).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from html import escape

FORMULA_START = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
"""Regular expression, for Python and Polars, that matches texts which a spreadsheet may run as a formula. The four code
points at the end are the full-width forms of `=`, `+`, `-` and `@`."""

PLAIN_NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
"""Regular expression that matches plain numbers, which a spreadsheet shows unchanged."""

LONGEST_TEXT = 20_000
"""Longest text to show, in characters; a longer name is an attack or a mistake, and would fill the page or terminal."""

_ACTS = re.compile(FORMULA_START)
_IS_NUMBER = re.compile(PLAIN_NUMBER)


def bounded(text: str) -> str:
    """Truncate a text that is too long to show, and append the number of characters that were cut off."""
    return (
        text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ({len(text) - LONGEST_TEXT:,} more characters)"
    )


def visible(text: str) -> str:
    r"""Replace control and invisible characters by escapes such as `\x1b`, `\n` or `\u202e`."""
    return text if text.isprintable() else "".join(map(_visible_letter, text))


def visible_json(text: str) -> str:
    r"""Replace control and invisible characters in JSON by equivalent escapes such as `\u001b`; line breaks stay."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(letter if letter == "\n" or _is_visible(letter) else _json_escape(letter) for letter in text)


def html_text(text: str) -> str:
    """Return a text as escaped HTML, truncated if it is too long and with its invisible characters replaced."""
    return escape(visible(bounded(text)))


def html_table(headings: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "") -> str:
    """Return an HTML table of texts."""
    lines = [_html_row("th", headings), *(_html_row("td", row) for row in rows)]
    head = f"<caption>{html_text(caption)}</caption>" if caption else ""
    return f"<table>{head}{''.join(lines)}</table>"


def inert_cell(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run as a formula."""
    return f"'{text}" if _ACTS.match(text) and not _IS_NUMBER.match(text) else text


def _html_row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _visible_letter(letter: str) -> str:
    return letter if _is_visible(letter) else letter.encode("unicode_escape").decode("ascii")


def _is_visible(letter: str) -> bool:
    """Return whether a character is visible; all kinds of spaces count as visible."""
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _json_escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start : start + 2].hex()}" for start in range(0, len(units), 2))
