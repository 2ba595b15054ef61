"""Make all pictures of the documentation, and the page that shows them: `make pictures`.

The traces are the recordings in the repository. The browser is chromium, or the one that HOLOTRACE_CHROMIUM names.
"""

from __future__ import annotations

import gallery
import layers
import questions
import web_pages
from browser import opened_browser


def main() -> None:
    """Draw the layers, one figure per question and the pages, each light and dark; write the gallery."""
    layers.write_pictures()
    with opened_browser() as browser:
        questions.write_pictures(browser)
        web_pages.write_pictures(browser)
    gallery.write_page()


if __name__ == "__main__":
    main()
