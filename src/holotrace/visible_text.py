"""Text that comes from a trace, made safe to show: a name must not act where it is printed.

Names, paths and messages are whatever the traced program or a sender wrote. A terminal obeys control characters in
them, a reader is misled by marks that reverse the direction of writing, and a spreadsheet runs cells that begin like a
formula (https://owasp.org/www-community/attacks/CSV_Injection).
"""

from __future__ import annotations

import re
import unicodedata

FORMULA_START = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
"""How a text begins that a spreadsheet may take for a formula, for regular expressions of Python and of Polars; the
last four are the wide forms of the first."""

PLAIN_NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
"""A text that is a number means the same with or without being run."""

LONGEST_TEXT = 20_000
"""Characters of a text that are shown: longer names are an attack, or a mistake, and would fill a page or a terminal."""

_ACTS = re.compile(FORMULA_START)
_IS_NUMBER = re.compile(PLAIN_NUMBER)


def bounded(text: str) -> str:
    """Cut a text that is far too long to be shown, and say how much is left out."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ({len(text) - LONGEST_TEXT:,} more letters)"


def visible(text: str) -> str:
    r"""Write each character that steers a terminal or hides as its escape, such as `\x1b`, `\n` or `\u202e`."""
    return text if text.isprintable() else "".join(map(_visible_letter, text))


def visible_json(text: str) -> str:
    r"""Write what would steer a terminal in a JSON text as `\u001b`, which means the same; line breaks stay."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(letter if letter == "\n" or _is_visible(letter) else _json_escape(letter) for letter in text)


def inert_cell(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run as a formula."""
    return f"'{text}" if _ACTS.match(text) and not _IS_NUMBER.match(text) else text


def _visible_letter(letter: str) -> str:
    return letter if _is_visible(letter) else letter.encode("unicode_escape").decode("ascii")


def _is_visible(letter: str) -> bool:
    """Whether a letter has a shape of its own; the many kinds of spaces count as having one."""
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _json_escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start : start + 2].hex()}" for start in range(0, len(units), 2))
