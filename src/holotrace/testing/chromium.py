"""Find the browser that tests of HTML pages use."""

from __future__ import annotations

import os
import shutil

MISSING = "chromium is missing; install it with apt-get install chromium, or set HOLOTRACE_CHROMIUM to its path"


def chromium_path() -> str | None:
    """Return the path of Chromium, from `HOLOTRACE_CHROMIUM` or else from the PATH; None if it is not found."""
    names = (os.environ.get("HOLOTRACE_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, filter(None, names))), None)
