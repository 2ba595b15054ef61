"""Starts the browser that draws pages, and writes pictures of its window."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from playwright.sync_api import Browser, Page, sync_playwright

from holotrace.testing.chromium import MISSING, chromium_path

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
IMAGES = ROOT / "docs" / "images"
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
PATIENCE_MS = 60_000
_QUALITY = 82


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """Start a headless browser; close it at the end."""
    path = chromium_path()
    if path is None:
        raise SystemExit(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--hide-scrollbars"])
        yield browser
        browser.close()


def picture_path(folder: str, name: str, theme: str) -> Path:
    """Return the path of a picture: `<name>.webp`, or `<name>.dark.webp`."""
    return IMAGES / folder / f"{name}{'.dark' if theme == 'dark' else ''}.webp"


def write_picture(page: Page, path: Path) -> None:
    """Write a picture of the window as WebP; a PNG file would be four times as large."""
    session = page.context.new_cdp_session(page)
    answer = session.send("Page.captureScreenshot", {"format": "webp", "quality": _QUALITY})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(answer["data"]))
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")  # noqa: T201 -- progress of a script
