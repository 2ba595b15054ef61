"""Short names, as in HTA."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

_MEMORY = re.compile(r"Memcpy|Memset|dma")
_UNNAMED = "(anonymous namespace)::"
_CLOSING = {"<": ">", "(": ")"}


def shorten_name(name: str) -> str:
    """Shorten a name as HTA does: remove template arguments, parameters and the return type.

    Anonymous namespaces are removed with their `::`. Three kinds of names stay unchanged: names of copies and memsets,
    names without brackets, and names that would become empty, such as `<built-in method …>`.
    """
    if _MEMORY.match(name) or not ("<" in name or "(" in name):
        return name
    bare = _without_brackets(name.replace("->", "").replace(_UNNAMED, "")).strip()
    return bare.rsplit(" ", 1)[-1] or name


def shared_texts(strings: pl.Series, ids: pl.Series) -> npt.NDArray[Any]:
    """Return the text of each string id as a Python object, None for null; equal strings share one object to save memory."""
    numbers = ids.fill_null(len(strings)).to_numpy()
    is_used = np.zeros(len(strings) + 1, np.bool_)
    is_used[numbers] = True
    distinct = np.flatnonzero(is_used[:-1])
    known = np.empty(len(is_used), dtype=object)  # None everywhere
    known[distinct] = strings.gather(distinct).to_list()
    shared: npt.NDArray[Any] = known[numbers]
    return shared


def _without_brackets(name: str) -> str:
    """Remove matching brackets with their content; if an opening bracket has no match, remove the rest of the name."""
    kept, expected = [], []
    for character in name:
        if character in _CLOSING:
            expected.append(_CLOSING[character])
        elif expected:
            expected = expected[:-1] if character == expected[-1] else expected
        else:
            kept.append(character)
    return "".join(kept)
