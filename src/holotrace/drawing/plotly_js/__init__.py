"""plotly.js, which draws figures in a browser: the complete library, or a small build that suffices for most figures.

The file `plotly-basic.min.js` in this folder comes unmodified from the npm package plotly.js-basic-dist-min, version
`VERSION`, under the MIT licence in LICENSE. The Python package plotly contains the complete library, 4.8 MB; a browser
takes about a second to parse it, even if a page needs little of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from plotly.offline import get_plotlyjs, get_plotlyjs_version

VERSION = "4.1.1"
SHA256 = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
TYPES = frozenset({"bar", "pie", "scatter"})
"""Trace types that the small build can draw."""


@cache
def small_plotly_js() -> bytes | None:
    """Return the small build; None if the installed plotly writes figures for another major version of plotly.js."""
    is_same_major = get_plotlyjs_version().partition(".")[0] == VERSION.partition(".")[0]
    return files(__package__).joinpath("plotly-basic.min.js").read_bytes() if is_same_major else None


def plotly_js_for(figures: Iterable[Mapping[str, Any]]) -> str:
    """Return the smallest plotly.js that can draw these figures, given in the form of plotly's `to_json`."""
    used = {trace.get("type", "scatter") for figure in figures for trace in figure["data"]}
    small = small_plotly_js() if used <= TYPES else None
    return get_plotlyjs() if small is None else small.decode()
