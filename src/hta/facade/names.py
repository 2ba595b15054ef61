"""Names as HTA shortens them."""

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
    """Shorten a name as HTA does: no template arguments, no parameters, no return type.

    Names of copies and memsets, and names without brackets, stay as they are. Anonymous namespaces leave no `::::`
    behind, and a name of which nothing would be left, such as `<built-in method …>`, stays whole.
    """
    if _MEMORY.match(name) or not ("<" in name or "(" in name):
        return name
    bare = _without_brackets(name.replace("->", "").replace(_UNNAMED, "")).strip()
    return bare.rsplit(" ", 1)[-1] or name


def shared_texts(texts: pl.Series) -> npt.NDArray[Any]:
    """Return texts as Python objects, None for null; equal texts are one object, so that many rows cost little."""
    distinct = texts.drop_nulls().unique(maintain_order=True)
    codes = texts.cast(pl.Enum(distinct)).to_physical().fill_null(len(distinct))
    known = np.full(len(distinct) + 1, None, dtype=object)
    known[:-1] = distinct.to_list()
    shared: npt.NDArray[Any] = known[codes.to_numpy()]
    return shared


def _without_brackets(name: str) -> str:
    """Drop what stands between brackets that match; an opening one without its partner drops the rest."""
    kept, expected = [], []
    for character in name:
        if character in _CLOSING:
            expected.append(_CLOSING[character])
        elif expected:
            expected = expected[:-1] if character == expected[-1] else expected
        else:
            kept.append(character)
    return "".join(kept)
