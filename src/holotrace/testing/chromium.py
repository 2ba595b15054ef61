"""The browser that looks at the pages."""

from __future__ import annotations

import os
import shutil

MISSING = "no chromium; apt-get install chromium, or HOLOTRACE_CHROMIUM names one"


def chromium_path() -> str | None:
    """Return the path of a chromium on this machine, that of `HOLOTRACE_CHROMIUM` if there is one; None where there is none."""
    names = (os.environ.get("HOLOTRACE_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, filter(None, names))), None)
