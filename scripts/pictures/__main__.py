"""Draw the pictures of the documentation: `make pictures`, or `python scripts/pictures idle_time` for one question.

The traces are recordings in the repository. The browser is chromium, or the program that HOLOTRACE_CHROMIUM names.
"""

from __future__ import annotations

import sys

import layers
import web_pages
from browser import opened_browser

import questions


def main(names: list[str]) -> None:
    """Draw light and dark figures of the named questions; without names, draw all figures, the layers and the pages."""
    with opened_browser() as browser:
        questions.write_pictures(browser, names)
        if not names:
            layers.write_pictures()
            web_pages.write_pictures(browser)


if __name__ == "__main__":
    main(sys.argv[1:])
