"""Takes pictures of the pages of `holotrace serve`, of the tab in TensorBoard, and of a report."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from browser import PATIENCE_MS, ROOT, THEMES, picture_path, write_picture

from holotrace.web.server.server import Address, bound_server
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page, ViewportSize

RUNS = {
    "dlrm_8rank": "tests/reference/traces/dlrm_8rank",
    "ddp_gloo_4rank": "examples/ddp_gloo_4rank",
    "before": "tests/reference/traces/trace_compare/base",
    "after": "tests/reference/traces/trace_compare/test",
}
PAGES = {
    "overview": "dlrm_8rank",
    "timeline": "dlrm_8rank",
    "distributed": "dlrm_8rank",
    "stragglers": "ddp_gloo_4rank",
    "diff": "after",
    "health": "ddp_gloo_4rank",
}
"""The pages to draw, and the run that each page shows."""

SIZE: ViewportSize = {"width": 1280, "height": 800}
REPORT_SIZE: ViewportSize = {"width": 1180, "height": 900}
_SETTLED = """() => {
  if (!document.querySelector('#page h1') || document.querySelector('#page .mantine-Loader-root')) {
    return false;
  }
  const timeline = document.getElementById('timeline');
  if (timeline && !(Number(timeline.dataset.drawn) > 0)) {
    return false;
  }
  if (document.querySelector('#page .ag-root') && !document.querySelector('#page .ag-row')) {
    return false;
  }
  return [...document.querySelectorAll('#page .dash-graph')].every((graph) => graph.querySelector('.main-svg'));
}"""
_DRAWS_FOR_MS = 1_500
"""How long to wait before taking a picture, because the timeline's counters load after the rest of the page."""


def write_pictures(browser: Browser) -> None:
    """Write a light and a dark picture of each page."""
    with tempfile.TemporaryDirectory() as folder:
        traces = Path(folder) / "traces"
        for name, source in RUNS.items():
            shutil.copytree(ROOT / source, traces / name)
        _served_pages(browser, traces)
        _report(browser, traces)
        _tensorboard(browser, traces / "dlrm_8rank")


def _served_pages(browser: Browser, traces: Path) -> None:
    session = Session([traces], cache=False)
    ids = {run.name: run.id for run in session.runs}
    with bound_server(session, Address(port=0, has_token=False)) as server:
        threading.Thread(target=server.run, daemon=True).start()
        for name, run in PAGES.items():
            options = (("control", ids["before"]),) if name == "diff" else ()
            url = server.url + Selection(name, run=ids[run], options=options).query()
            for page in _both_themes(browser, name):
                page.goto(url, timeout=PATIENCE_MS)
                page.wait_for_function(_SETTLED, timeout=PATIENCE_MS)


def _report(browser: Browser, traces: Path) -> None:
    _run("report", "dlrm_8rank", "-o", "report.html", folder=traces)
    for page in _both_themes(browser, "report", REPORT_SIZE):
        page.goto((traces / "report.html").as_uri(), timeout=PATIENCE_MS)
        page.wait_for_selector(".main-svg", timeout=PATIENCE_MS)


def _tensorboard(browser: Browser, run: Path) -> None:
    with _tensorboard_server(run) as url:
        for page in _both_themes(browser, "tensorboard"):
            page.goto(f"{url}#holotrace", timeout=PATIENCE_MS)
            frame = page.frame_locator("iframe").last
            frame.locator("#page h1").wait_for(timeout=PATIENCE_MS)
            frame.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)


@contextmanager
def _tensorboard_server(run: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", run, "--port", str(port), "--host", "127.0.0.1"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603 -- our own command
    try:
        assert server.stderr  # noqa: S101 -- for the type checker
        next(line for line in server.stderr if "http://" in line)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()


def _both_themes(browser: Browser, name: str, size: ViewportSize = SIZE) -> Iterator[Page]:
    """Yield a window for each theme; after the caller has opened a page in the window, write a picture of the page."""
    for theme in THEMES:
        page = browser.new_page(viewport=size, color_scheme=theme)
        yield page
        page.wait_for_timeout(_DRAWS_FOR_MS)
        write_picture(page, picture_path("pages", name, theme))
        page.close()


def _run(*arguments: str, folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "holotrace", *arguments], cwd=folder, check=True)  # noqa: S603 -- our own command
