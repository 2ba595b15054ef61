"""What the tests that drive a browser share: the browser, the traces, and what a page shows."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from hta.catalogue import ANALYSES, analysis
from hta.errors import HtaError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Frame, Locator, Page

    from hta.web.session import Scope, Session

PATIENCE_MS = 60_000
"""How long a page may take on a machine that does other things as well."""

SCREENSHOTS = Path(__file__).parent.parent / "build" / "screenshots"

REAL_TRACES = {
    "resnet50": "tensorboard/resnet50_num_workers_0",
    "dlrm_8rank": "dlrm_8rank",
    "ddp_gloo_4rank": "ddp_gloo_4rank",
    "amd_mi250": "amd_mi250",
    "cpu_only": "cpu_only",
}

_ANALYSES = {each.name for each in ANALYSES}
_DOWNLOADED = ("http", "ws")
_TENSORBOARDS_OWN = "/font-roboto/"
"""Under --path_prefix TensorBoard asks for its fonts at the wrong address, and beside Dash it imports a library twice."""


@dataclass
class Visit:
    """A tab of the browser, and what went wrong in it."""

    page: Page
    troubles: list[str] = field(default_factory=list)

    def settle(self, frame: Frame, title: str) -> None:
        """Wait until the page of that title shows all of its parts."""
        frame.locator("#page h2", has_text=title).first.wait_for(timeout=PATIENCE_MS)
        frame.wait_for_function(
            "() => !document.querySelector('#page .mantine-Loader-root, #selectors .mantine-Loader-root')"
            " && [...document.querySelectorAll('#page .dash-graph')].every(each => each.querySelector('.main-svg'))"
            " && [...document.querySelectorAll('#page .ag-root-wrapper .ag-row')].every(each => each.innerText.trim())",
            timeout=PATIENCE_MS,
        )

    def keep(self, name: str) -> None:
        """Keep a picture of what is seen."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.jpeg", type="jpeg", quality=80)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser; skips the test where it or its driver is missing."""
    driver = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install --group browser")
    names = (os.environ.get("HTA_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if name and (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no chromium; apt-get install chromium, or HTA_CHROMIUM names one")
    with driver.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@contextmanager
def visit(browser: Browser, url: str, **options: Any) -> Iterator[Visit]:
    """Open an address in a tab of its own, and write down every error and every foreign request."""
    with browser.new_context(viewport={"width": 1440, "height": 1000}, **options) as context:
        seen = Visit(context.new_page())
        _watch(seen, urlsplit(url).netloc)
        seen.page.goto(url, timeout=PATIENCE_MS)
        yield seen


def _watch(seen: Visit, host: str) -> None:
    def failed(address: str, what: str) -> None:
        if _TENSORBOARDS_OWN not in address:
            seen.troubles.append(f"{what}: {address}")

    def request(sent: Any) -> None:
        parts = urlsplit(sent.url)
        if parts.scheme.startswith(_DOWNLOADED) and parts.netloc != host:
            failed(sent.url, "foreign request")

    seen.page.on("request", request)
    seen.page.on("response", lambda got: got.status >= 400 and failed(got.url, str(got.status)))
    seen.page.on("pageerror", lambda error: failed(str(error), "exception"))
    seen.page.on("dialog", lambda dialog: (failed(dialog.message, "dialog"), dialog.dismiss()))
    seen.page.on("console", lambda said: said.type == "error" and failed(said.location["url"], said.text))


def go_to(frame: Frame, name: str) -> None:
    """Click on a page in the navigation."""
    frame.locator(f'#nav a[href*="view={name}&"]').click()


def expect_filled_tables(frame: Frame, count: int) -> None:
    """Wait until so many tables have a first row with text in it."""
    frame.wait_for_function(
        "count => [...document.querySelectorAll('#page .ag-root-wrapper')].filter("
        "grid => [...grid.querySelectorAll('[row-index=\"0\"] .ag-cell')].some(cell => cell.innerText.trim())"
        ").length === count",
        arg=count,
        timeout=PATIENCE_MS,
    )


def expect_rows(table: Locator, count: int) -> None:
    """Wait until a table has so many rows, all of them with text."""
    rows = table.locator(".ag-center-cols-container .ag-row").filter(has_text=re.compile(r"\S"))
    deadline = time.monotonic() + PATIENCE_MS / 1_000
    while rows.count() != count and time.monotonic() < deadline:
        table.page.wait_for_timeout(50)
    assert rows.count() == count


def expect_analyses(frame: Frame, parts: Iterable[str], session: Session, scope: Scope) -> None:
    """Compare what is seen with what the analyses give that are parts of the page."""
    expected = [_outcome(session, scope, name) for name in parts if name in _ANALYSES]
    reasons = [each for each in expected if isinstance(each, str)]
    tables = [each for each in expected if not isinstance(each, str)]
    if expected:
        expect_filled_tables(frame, sum(tables))
        assert figures(frame) >= len(tables)
    text = frame.locator("#page").inner_text()
    assert all(reason in text for reason in reasons)


def _outcome(session: Session, scope: Scope, name: str) -> int | str:
    """Return how many tables of an analysis have rows, or why it cannot be made."""
    try:
        result = session.result(scope, name)
    except HtaError as error:
        return str(error)
    return sum(len(view.table(result)) > 0 for view in analysis(name).views)


def figures(frame: Frame) -> int:
    """Return how many figures are drawn."""
    return frame.locator("#page .js-plotly-plot .main-svg .plot, #page .js-plotly-plot .pielayer").count()
