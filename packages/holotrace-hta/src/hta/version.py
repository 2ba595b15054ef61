"""The version, where scripts written for Holistic Trace Analysis look it up."""

from __future__ import annotations

import re
from importlib.metadata import version

__version__ = version("holotrace")
__version_tuple__ = tuple(map(int, re.findall(r"\d+", __version__)[:3]))
