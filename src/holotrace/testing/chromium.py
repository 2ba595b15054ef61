"""The browser for tests of pages."""

from __future__ import annotations

import os
import shutil

MISSING = "chromium is missing; install it with apt-get install chromium, or set HOLOTRACE_CHROMIUM to its path"


def chromium_path() -> str | None:
    """Return the path of Chromium: that of `HOLOTRACE_CHROMIUM` or, without it, a browser on the PATH; None if missing."""
    names = (os.environ.get("HOLOTRACE_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, filter(None, names))), None)
