"""Make the pictures of the README from the running pages: `make pictures`.

Serves a synthetic job of 8 ranks, opens its pages and its report in a headless browser, and writes docs/images/<page>.png and
report.png. The browser is chromium, or the one that HOLOTRACE_CHROMIUM names.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from holotrace.testing.chromium import MISSING, chromium_path
from holotrace.testing.synthetic import write_job
from holotrace.web.server.server import Address, bound_server
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Session

IMAGES = Path(__file__).parent.parent / "docs" / "images"
PAGES = ("overview", "timeline", "distributed")
SIZE = {"width": 1280, "height": 800}
REPORT_SIZE = {"width": 1180, "height": 1320}
PATIENCE_MS = 60_000
SETTLED = """() => {
  if (!document.querySelector('#page h2') || document.querySelector('#page .mantine-Loader-root')) {
    return false;
  }
  const timeline = document.getElementById('timeline');
  if (timeline && !(Number(timeline.dataset.drawn) > 0)) {
    return false;
  }
  return [...document.querySelectorAll('#page .dash-graph')].every((graph) => graph.querySelector('.main-svg'));
}"""
DRAWS_FOR_MS = 1_000
"""Counters of the timeline and rows of tables come after the page has settled."""


def main() -> None:
    """Write one picture per page, and one of the report."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "sample_job"
        write_job(job)
        session = Session([job], cache=False)
        with bound_server(session, Address(port=0, has_token=False)) as server, sync_playwright() as playwright:
            threading.Thread(target=server.run, daemon=True).start()
            browser = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
            for name in PAGES:
                _picture(browser, server.url + Selection(name).query(), IMAGES / f"{name}.png")
            _picture_of_report(browser, job, Path(folder) / "report.html")
            browser.close()


def _chromium() -> str:
    found = chromium_path()
    if found is None:
        raise SystemExit(MISSING)
    return found


def _picture(browser: Browser, url: str, path: Path) -> None:
    page = browser.new_page(viewport=SIZE, color_scheme="light")
    page.goto(url, timeout=PATIENCE_MS)
    page.wait_for_function(SETTLED, timeout=PATIENCE_MS)
    page.wait_for_timeout(DRAWS_FOR_MS)
    page.screenshot(path=path)
    page.close()


def _picture_of_report(browser: Browser, job: Path, report: Path) -> None:
    command = [sys.executable, "-m", "holotrace", "report", job.name, "-o", report]
    subprocess.run(command, cwd=job.parent, check=True)  # noqa: S603 -- our own command
    page = browser.new_page(viewport=REPORT_SIZE, color_scheme="light")
    page.goto(report.as_uri(), timeout=PATIENCE_MS)
    page.wait_for_selector(".main-svg", timeout=PATIENCE_MS)
    page.wait_for_timeout(DRAWS_FOR_MS)
    page.screenshot(path=IMAGES / "report.png")
    page.close()


if __name__ == "__main__":
    main()
