"""Turn our docstrings into reStructuredText.

The docstrings are written for readers of the code: backticks mark code, and columns are aligned with spaces. This module
escapes text that reStructuredText would treat as markup, turns aligned lines into lists, keeps other indented lines as they
are, and turns paths of documentation pages into links.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ALIGNED = re.compile(r"\S+(?:, \S+)*(?: {2,}\S|$)")
_SECTION = re.compile(r"(Args|Returns|Raises|Yields|Example|Examples|Attributes|Note):$")
_MARKUP = re.compile(r"(?<!`)([|*])|(?<=\w)(_)(?!\w)")
_TYPE = re.compile(r"(u?int|float)\d+|str|bool|int|float|list.*|struct.*|Decimal.*")
_PAGE = re.compile(r"docs/([\w/-]+)\.md")
_CODE = re.compile(r"(``?[^`]+``?)")


def restructured(lines: list[str]) -> list[str]:
    """Return the reStructuredText of a docstring."""
    paragraphs = [list(group) for is_text, group in groupby(lines, key=lambda line: bool(line.strip())) if is_text]
    result: list[str] = []
    section = False
    for paragraph in paragraphs:
        indent = _indent(paragraph[0])
        if _SECTION.match(paragraph[0]):
            section = True
        elif indent == 0:
            section = False
        result += [*_paragraph(paragraph, indent=indent, in_section=section), ""]
    return result


def _paragraph(paragraph: list[str], *, indent: int, in_section: bool) -> list[str]:
    if paragraph[0].lstrip().startswith(">>> "):
        return paragraph
    blanks = " " * (4 if in_section else 0)
    if _is_table(paragraph, indent):
        nesting = "  " if indent > len(blanks) else ""
        return [f"{blanks}{nesting}{line}" for line in _bullets(paragraph, indent)]
    if indent >= len(blanks) + 4:
        return [f"{blanks}::", "", *(f"{blanks}    {line[min(indent, _indent(line)) :]}" for line in paragraph)]
    return [_escaped(line) for line in paragraph]


def _is_table(paragraph: list[str], indent: int) -> bool:
    rows = [line.strip() for line in paragraph if _indent(line) == indent]
    return "  " in rows[0] and all(_ALIGNED.match(row) and "  = " not in row for row in rows)


def _bullets(paragraph: list[str], indent: int) -> list[str]:
    """Return the rows as a list; each item has the name as code, the type in italics, and the meaning."""
    bullets: list[str] = []
    for line in paragraph:
        if _indent(line) > indent and bullets:
            bullets.append(f"  {_escaped(line.strip())}")
            continue
        name, *cells = re.split(" {2,}", line.strip())
        kind = [f"*{cells.pop(0)}*"] if cells and _TYPE.fullmatch(cells[0]) else []
        head = " ".join([f"* ``{name}``", *kind])
        bullets.append(": ".join([head, *map(_escaped, cells)]))
    return bullets


def _escaped(line: str) -> str:
    parts = _CODE.split(line)
    return "".join(
        f"``{part.strip('` ')}``" if part.startswith("`") else _linked(_MARKUP.sub(r"\\\1\2", part)) for part in parts
    )


def _linked(text: str) -> str:
    return _PAGE.sub(r":doc:`/\1`", text)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _process(_app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    lines[:] = restructured(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the conversion; it must run before napoleon turns sections into fields."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    return {"parallel_read_safe": True}
