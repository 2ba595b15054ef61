"""Kernel names for people: short enough for an axis, whole in the hover, never markup.

Names come from the traced program, so they are untrusted text. Plotly renders tags such as `<b>` and `<a href>` in
labels and hovers, and TeX between dollar signs where MathJax is loaded; `label_text` makes them plain again.
"""

from __future__ import annotations

import re

LABEL_LENGTH = 80
HOVER_WIDTH = 90
HOVER_LENGTH = 1_800
_SCANNED_LENGTH = 4_000

_NOISE = re.compile(r"^void\s+|\(anonymous namespace\)::|std::|::operator\(\)\(\) const|(?<=[\w>]) const\b")
_NAMESPACES = re.compile(r"(?:\b[A-Za-z_]\w*::)+(?=[A-Za-z_])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})


def short_name(name: str, length: int = LABEL_LENGTH) -> str:
    """Shorten a C++ signature to at most `length` characters; short names that are no signatures stay as they are.

    Return type, namespaces and the parameter list go; template arguments stay as far as there is room, since they
    tell two instances of one kernel apart. Two names may become the same text: never use it as a key.
    """
    scanned = name[:_SCANNED_LENGTH]
    if name.endswith(")"):
        scanned = _without_parameters(scanned)
    return _cut(_without_namespaces(scanned), length)


def printable(text: str) -> str:
    """Replace characters that steer a terminal or reverse the reading order; a name must not act when printed."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "�" for letter in text)


def label_text(text: str) -> str:
    """Escape `text` so that plotly shows it character by character."""
    return printable(text).translate(_ENTITIES)


def short_label(name: str, length: int = LABEL_LENGTH) -> str:
    """Shorten and escape a name for an axis."""
    return label_text(short_name(name, length))


def cut_label(name: str, length: int = LABEL_LENGTH) -> str:
    """Cut and escape a name that is no C++ signature for an axis: `aten::mm` keeps its namespace."""
    return label_text(_cut(name, length))


def hover_text(name: str) -> str:
    """Escape a whole name for a hover, in lines of `HOVER_WIDTH`; what is beyond `HOVER_LENGTH` is counted."""
    kept = name[:HOVER_LENGTH]
    lines = [label_text(kept[start : start + HOVER_WIDTH]) for start in range(0, len(kept), HOVER_WIDTH)]
    left_out = len(name) - len(kept)
    return "<br>".join([*lines, f"… and {left_out:,} more characters"] if left_out else lines)


def _without_namespaces(name: str) -> str:
    return _NAMESPACES.sub("", _NOISE.sub("", name)).strip()


def _without_parameters(name: str) -> str:
    """Drop from the first parenthesis that follows a name; not `Memcpy HtoD (Pinned -> Device)`, `k<(Mode)0>`."""
    depth = 0
    for position, character in enumerate(name):
        if character == "<":
            depth += 1
        elif character == ">":
            depth = max(0, depth - 1)
        elif character == "(" and depth == 0 and (name[position - 1].isalnum() or name[position - 1] in "_>"):
            return name[:position]
    return name


def _cut(name: str, length: int) -> str:
    """Cut templates at the end, and generated names such as `triton_…_35`, which differ there, in the middle."""
    if len(name) <= length:
        return name
    tail = 0 if "<" in name else length // 3
    head = name[: length - 1 - tail].rstrip(" <,(:")
    return f"{head}…{name[len(name) - tail :]}"
