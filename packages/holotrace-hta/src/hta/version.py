"""The version, at HTA's import path."""

from __future__ import annotations

import re
from importlib.metadata import version

__version__ = version("holotrace")
__version_tuple__ = tuple(map(int, re.findall(r"\d+", __version__)[:3]))
