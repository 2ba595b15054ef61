"""Axes that show names; if there are too many names, the axis shows only some of them, and its title says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MOST_NAMED = 40
"""Maximum number of names that an axis shows in full; plotly would silently omit names from longer lists."""

_TICKS = 24
_SHORT_KEY = 4


def category_axis(keys: Sequence[str], title: str, labels: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the settings of an axis that shows `keys` in order, and labels only every n-th key if there are many.

    n is a power of two because rank counts often are. Plotly rotates names that do not fit side by side.
    """
    step = 1 if len(keys) <= MOST_NAMED else _step(keys)
    named = f"every {_ordinal(step)} is named" if step > 1 else ""
    text = f"{title} ({named})" if title and named else title or named
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": list(keys),
        "title": {"text": text},
        "tickmode": "array",
        "tickvals": list(keys)[::step],
        "ticktext": list(labels or keys)[::step],
        "autotickangles": [0, 90],
        "showgrid": False,
    }


def _ordinal(power_of_two: int) -> str:
    """Return the ordinal of a power of two greater than 1, for example `4th` or `32nd`."""
    is_second = power_of_two % 10 == 2 and power_of_two % 100 != 12  # noqa: PLR2004 -- 512th, not 512nd
    return f"{power_of_two}{'nd' if is_second else 'th'}"


def _step(keys: Sequence[str]) -> int:
    room = _TICKS if len(keys[-1]) <= _SHORT_KEY else _TICKS // 2
    return 1 << (-(-len(keys) // room) - 1).bit_length()
