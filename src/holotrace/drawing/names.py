"""Readable kernel names: short on an axis, complete in the hover, and escaped everywhere.

Names come from the traced program, so they are untrusted text. Plotly renders tags such as `<b>` and `<a href>` in
labels and hovers. If MathJax is loaded, Plotly also renders TeX between dollar signs. `label_text` escapes both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from holotrace.algorithms.signatures import demangled, signature
from holotrace.visible_text import bounded, visible

LABEL_LENGTH = 80
HOVER_WIDTH = 90
HOVER_LENGTH = 1_800

MOST_COMPARED = 500
"""If at most this many names share a short name, the words that differ are added to it. If more names share a short
name, numbers are added instead."""

_PIECES = (re.compile(r"[^<>(),\s]+"), re.compile(r"[^<>(),\s_]+"))
"""Patterns that match the words of a name, to find the words in which names differ. If the words that the first pattern
finds are too long to show, the second pattern also splits them at underscores."""

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})


def short_name(name: str, length: int = LABEL_LENGTH) -> str:
    """Shorten a name to at most `length` characters.

    A C++ signature always loses its return type, namespaces and parameter list. It keeps as many template arguments as
    fit, because they distinguish instances of one kernel. Other names are cut only if they are too long. Two names may
    have the same short name, so do not use it as a key; `short_names` returns distinct names.
    """
    return _cut(_readable(name), length)


def short_names(names: Iterable[str], length: int = LABEL_LENGTH) -> dict[str, str]:
    """Return a distinct short name for each name in a table or on an axis.

    If `short_name` returns the same text for several names, their short names also contain the namespaces, template
    arguments or parameters that differ. If they are still equal, all but the first get a number.
    """
    short = {name: short_name(name, length) for name in names}
    for equal in _equal_groups(short):
        short.update(_if_distinct({name: _cut(_qualified(name), length) for name in equal}))
    for text in (_readable, demangled):
        for pieces in _PIECES:
            for equal in _equal_groups(short):
                short.update(_with_differences(equal, [pieces.findall(text(name)) for name in equal], length))
    return _numbered(short, length)


def printable(text: str) -> str:
    r"""Replace control characters and text-direction marks with escapes such as `\x1b`; cut very long text."""
    return visible(bounded(text))


def label_text(text: str) -> str:
    """Escape `text` so that plotly shows it literally."""
    return printable(text).translate(_ENTITIES)


def short_labels(names: Iterable[str], length: int = LABEL_LENGTH) -> dict[str, str]:
    """Shorten and escape the names on one axis; no two have the same label."""
    return {name: label_text(text) for name, text in short_names(names, length).items()}


def cut_label(name: str, length: int = LABEL_LENGTH) -> str:
    """Cut and escape an axis label; unlike `short_labels`, keep namespaces such as `aten` in `aten::mm`."""
    return label_text(_cut(name, length))


def cut_labels(names: Iterable[str], length: int = LABEL_LENGTH) -> dict[str, str]:
    """Cut and escape each name on an axis; see `cut_label`."""
    return {name: cut_label(name, length) for name in names}


def hover_text(name: str) -> str:
    """Escape a name for a hover, and break it into lines of `HOVER_WIDTH` characters.

    If the name is longer than `HOVER_LENGTH`, show only its beginning and the number of characters that follow.
    """
    kept = name[:HOVER_LENGTH]
    lines = [label_text(kept[start : start + HOVER_WIDTH]) for start in range(0, len(kept), HOVER_WIDTH)]
    left_out = len(name) - len(kept)
    return "<br>".join([*lines, f"… and {left_out:,} more characters"] if left_out else lines)


def _readable(name: str) -> str:
    read = signature(name)
    return demangled(name).strip() or name if read is None else str(read)


def _qualified(name: str) -> str:
    read = signature(name)
    return name if read is None else "::".join((*read.scopes, str(read)))


def _equal_groups(short: dict[str, str]) -> list[list[str]]:
    """Return the groups of names with equal short names; each group is sorted, whatever the order of `short`."""
    groups = defaultdict(list)
    for name, text in short.items():
        groups[text].append(name)
    return [sorted(names) for names in groups.values() if len(names) > 1]


def _with_differences(names: Sequence[str], pieces: list[list[str]], length: int) -> dict[str, str]:
    """Return {name: text}; each text shows how the name differs from the others, such as `kernel<…GemmA, 128…>`.

    The result is empty if the words do not distinguish all names.
    """
    if len(names) > MOST_COMPARED:
        return {}
    varying = zip(names, _differences(pieces), strict=True)
    return _if_distinct({name: _cut(f"{_head(name, length)}<{differing}>", length) for name, differing in varying})


def _if_distinct(short: dict[str, str]) -> dict[str, str]:
    return short if len(set(short.values())) == len(short) else {}


def _differences(pieces: list[list[str]]) -> list[str]:
    """Return, for each list, the words that differ from the other lists, with ellipses in place of the common words."""
    if len(set(map(len, pieces))) > 1:
        shared = _shared_ends(pieces)
        return [_between_ellipses(", ".join(of_name[shared[0] : len(of_name) - shared[1]])) for of_name in pieces]
    varying = [index for index, column in enumerate(zip(*pieces, strict=True)) if len(set(column)) > 1]
    return [_between_ellipses(_joined(of_name, varying)) for of_name in pieces]


def _between_ellipses(text: str) -> str:
    return f"…{text}…" if text else "…"


def _joined(pieces: list[str], kept: list[int]) -> str:
    """Join the kept words: adjacent words with a comma, others with an ellipsis."""
    gaps = ["…" if index > before + 1 else ", " for before, index in pairwise(kept)]
    return "".join(f"{gap}{pieces[index]}" for gap, index in zip(["", *gaps], kept, strict=False))


def _shared_ends(lists: list[list[str]]) -> tuple[int, int]:
    """Return how many words at the beginning, and how many at the end, are equal in all lists."""
    shortest = min(map(len, lists))
    ahead = next((at for at in range(shortest) if len({pieces[at] for pieces in lists}) > 1), shortest)
    left = shortest - ahead
    return ahead, next((at for at in range(left) if len({pieces[-1 - at] for pieces in lists}) > 1), left)


def _head(name: str, length: int) -> str:
    read = signature(name)
    return _cut(name if read is None else read.name, length // 2)


def _numbered(short: dict[str, str], length: int) -> dict[str, str]:
    """Append numbers to equal short names."""
    taken = set(short.values())
    for equal in _equal_groups(short):
        number = 1
        for name in equal[1:]:
            while (numbered := _with_number(short[name], number, length)) in taken:
                number += 1
            short[name] = numbered
            taken.add(numbered)
    return short


def _with_number(text: str, number: int, length: int) -> str:
    ending = f" #{number + 1}"
    return f"{text[: length - len(ending)]}{ending}"


def _cut(name: str, length: int) -> str:
    """Cut C++ templates at the end and all other names in the middle: names such as `triton_…_35` differ at the end."""
    if len(name) <= length and len(shown := visible(name)) <= length:
        return shown
    tail = 0 if "<" in name else length // 3
    head = _beginning(name, length - 1 - tail).rstrip(" <,(:")
    return f"{head}…{_ending(name, tail)}"


def _beginning(text: str, length: int) -> str:
    """Return the beginning of a text in at most `length` visible characters; an escape is kept or dropped as a unit."""
    return "".join(_fitting(text[:length], length))


def _ending(text: str, length: int) -> str:
    return "".join(_fitting(text[: -length - 1 : -1], length)[::-1])


def _fitting(letters: str, length: int) -> list[str]:
    shown = [visible(letter) for letter in letters]
    return [letter for letter, end in zip(shown, accumulate(map(len, shown)), strict=True) if end <= length]
