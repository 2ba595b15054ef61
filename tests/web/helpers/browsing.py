"""Shared by the tests in a real browser: the browser, the traces, and checks of pages."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import pytest

from holotrace.catalogue import ANALYSES, COMPARISONS
from holotrace.errors import HolotraceError
from holotrace.figures import further_figures_of
from holotrace.testing.chromium import MISSING, chromium_path
from holotrace.web.pages import PAGES
from holotrace.web.session.selection import Selection

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Frame, Locator, Page

    from holotrace.web.parts.page import Page as WebPage
    from holotrace.web.session.session import Scope, Session

PATIENCE_MS = 240_000
"""How long to wait for a page; the limit is long, because pages are slow on a busy machine."""

VIEWPORT = {"width": 1440, "height": 1000}

SCREENSHOTS = os.environ.get("HOLOTRACE_SCREENSHOTS")
"""The folder for screenshots, set by `make test-pages`; without it, no screenshots are taken."""

REAL_TRACES = {
    "resnet50": "tensorboard/resnet50_num_workers_0",
    "dlrm_8rank": "dlrm_8rank",
    "ddp_gloo_4rank": "ddp_gloo_4rank",
    "amd_mi250": "amd_mi250",
    "cpu_only": "cpu_only",
}


FIRST_FIGURES = ("temporal_breakdown", "step_time")
"""The overview shows the figures of these analyses if their input was recorded."""

_DOWNLOADED = ("http", "ws")
_TENSORBOARDS_OWN = "/font-roboto/"
"""The path of TensorBoard's fonts; failed requests for it are ignored.

With --path_prefix, TensorBoard requests its fonts from a wrong address.
"""


_SEEN = """() => {
  const all = selector => [...document.querySelectorAll(`#page ${selector}`)];
  const grids = all('.ag-root-wrapper');
  grids.find(grid => !grid.querySelector('.ag-row')?.innerText.trim())?.scrollIntoView();
  return {
    title: all('h1')[0]?.innerText ?? '',
    isWhole: !document.querySelector('#page .mantine-Loader-root, #selectors .mantine-Loader-root, #page .holotrace-awaited')
      && all('.dash-graph').every(graph => graph.querySelector('.main-svg'))
      && grids.every(grid => grid.querySelector('.ag-row, .ag-overlay-no-rows-center'))
      && all('.ag-row').every(row => row.innerText.trim()),
    figures: all('.js-plotly-plot .main-svg:first-child').length,
    tables: grids.filter(grid => grid.querySelector('[row-index="0"]')?.innerText.trim()).length,
  };
}"""
"""Returns the content of a page, and whether all parts are loaded, figures are drawn and no row is blank.

Scrolls to the first table without rows, because a table requests its rows only when it is visible.
"""


@dataclass
class Visit:
    """A browser tab, and the errors that occurred in it."""

    page: Page
    troubles: list[str] = field(default_factory=list)

    def settle(self, frame: Frame, title: str) -> None:
        """Wait until the page with this title is complete."""
        self.expect(frame, title=title)

    def expect(self, frame: Frame, **wanted: object) -> None:
        """Wait until the page is complete and has the wanted title, number of figures or number of filled tables."""
        script = f"wanted => {{ const seen = ({_SEEN})(); return Object.keys(wanted).every(key => seen[key] === wanted[key]); }}"
        try:
            frame.wait_for_function(script, arg={**wanted, "isWhole": True}, timeout=PATIENCE_MS)
        except self._timeout as error:
            message = f"expected {wanted}, saw {value_of(frame, _SEEN)}, and {self.troubles or 'no trouble'}"
            raise AssertionError(message) from error

    @property
    def _timeout(self) -> type[Exception]:
        from playwright.sync_api import TimeoutError as Timeout  # noqa: PLC0415 -- playwright may not be installed

        return Timeout

    def keep(self, name: str) -> None:
        """Save a screenshot if the folder for screenshots is set."""
        if SCREENSHOTS:
            self.page.screenshot(path=Path(SCREENSHOTS) / f"{name}.jpeg", type="jpeg", quality=70)


def value_of(page: Page | Frame, script: str) -> Any:
    """Run a JavaScript function in the page and return its result, or fail if the page is frozen.

    `evaluate` is not used, because it would wait for a frozen page without a limit.
    """
    # The wait ends when JavaScript treats the value as true. A list is always true, so the result is put into a list.
    wrapped = f"async () => [await ({script})()]"
    return page.wait_for_function(wrapped, timeout=PATIENCE_MS).json_value()[0]


def run_called(session: Session, name: str, real_traces: Path) -> str:
    """Return the id of the run for one of the `REAL_TRACES`; skip the test if its recording is missing."""
    _ = real_traces / REAL_TRACES[name]
    return next(run.id for run in session.runs if run.name == name)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium; skip the test if Chromium or its driver is missing."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install --group browser")
    path = chromium_path()
    if path is None:
        pytest.skip(MISSING)
    # Chromium creates sockets in its temporary folder, and the path of a socket may have at most 108 bytes:
    # https://man7.org/linux/man-pages/man7/unix.7.html
    with TemporaryDirectory(prefix="holotrace-", dir="/tmp") as folder, driver.sync_playwright() as playwright:
        environment = {**os.environ, "TMPDIR": folder}
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], env=environment)
        yield started
        started.close()


@contextmanager
def visit(browser: Browser, url: str, *, color_scheme: str | None = None, **options: Any) -> Iterator[Visit]:
    """Open an address; record every error and every request to another host.

    Visits share a tab, because loading the scripts in a new tab takes a second of CPU time. A visit that passes
    options for Playwright's browser context gets its own tab.
    """
    with _own_tab(browser, **options) if options else _shared_tab(browser) as page:
        page.emulate_media(color_scheme=color_scheme or "null")
        seen = Visit(page)
        with _watching(seen, urlsplit(url).netloc):
            page.goto(url, timeout=PATIENCE_MS)
            yield seen


@contextmanager
def _own_tab(browser: Browser, **options: Any) -> Iterator[Page]:
    with browser.new_context(viewport=VIEWPORT, **options) as context:
        yield context.new_page()


_SHARED_TABS: WeakKeyDictionary[Browser, Page] = WeakKeyDictionary()


@contextmanager
def _shared_tab(browser: Browser) -> Iterator[Page]:
    """Lend the shared tab and clean it up afterwards; after an error, the next visit gets a new tab."""
    page = _SHARED_TABS.pop(browser, None) or browser.new_context(viewport=VIEWPORT).new_page()
    try:
        yield page
        _forget_visit(page)
        _SHARED_TABS[browser] = page
    finally:
        if browser not in _SHARED_TABS:
            page.context.close()


def _forget_visit(page: Page) -> None:
    """Close other tabs, and reset stored choices, intercepted requests, the mouse and the size."""
    for other in page.context.pages:
        if other != page:
            other.close()
    page.evaluate("() => { try { localStorage.clear(); sessionStorage.clear(); } catch { } }")  # about:blank has none
    page.unroute_all(behavior="ignoreErrors")
    page.context.unroute_all(behavior="ignoreErrors")
    page.context.clear_cookies()
    page.goto("about:blank")
    page.mouse.move(0, 0)
    page.set_viewport_size(VIEWPORT)


@contextmanager
def _watching(seen: Visit, host: str) -> Iterator[None]:
    def failed(address: str, what: str) -> None:
        if _TENSORBOARDS_OWN not in address:
            seen.troubles.append(f"{what}: {address}")

    def request(sent: Any) -> None:
        parts = urlsplit(sent.url)
        if parts.scheme.startswith(_DOWNLOADED) and parts.netloc != host:
            failed(sent.url, "foreign request")

    handlers: dict[str, Callable[[Any], object]] = {
        "request": request,
        "response": lambda got: got.status >= 400 and failed(got.url, str(got.status)),
        "pageerror": lambda error: failed(str(error), "exception"),
        "dialog": lambda dialog: (failed(dialog.message, "dialog"), dialog.dismiss()),
        "console": lambda message: message.type == "error" and failed(message.location["url"], message.text),
    }
    for event, handler in handlers.items():
        seen.page.on(event, handler)
    yield
    for event, handler in handlers.items():
        seen.page.remove_listener(event, handler)


@contextmanager
def serving(folder) -> Iterator[tuple[Session, str]]:
    """Serve a folder like `holotrace serve`; return the session and its address."""
    from holotrace.web.server.server import Address, bound_server  # noqa: PLC0415 -- waitress may not be installed
    from holotrace.web.session.session import Session  # noqa: PLC0415

    session = Session([folder])
    with bound_server(session, Address(port=0, has_token=False)) as server:
        threading.Thread(target=server.run, daemon=True).start()
        yield session, server.url


def go_to(frame: Frame, name: str) -> None:
    """Click the link to a page in the navigation."""
    frame.locator(f'#nav a[href*="view={name}&"]').click()


def expect_rows(table: Locator, count: int) -> None:
    """Wait until a table has this many rows, all with text."""
    rows = table.locator(".ag-center-cols-container .ag-row").filter(has_text=re.compile(r"\S"))
    deadline = time.monotonic() + PATIENCE_MS / 1_000
    while rows.count() != count and time.monotonic() < deadline:
        table.page.wait_for_timeout(50)
    assert rows.count() == count


def walk(seen: Visit, frame: Frame, session: Session, scope: Scope) -> Iterator[str]:
    """Visit all pages of a run; compare each page with the library's results, then yield the page's name."""
    for page in PAGES:
        go_to(frame, page.name)
        expect_page(seen, frame, page, session, Selection(page.name, run=scope.run))
        yield page.name
    assert not seen.troubles


def expect_page(seen: Visit, frame: Frame, page: WebPage, session: Session, selection: Selection) -> None:
    """Check a page's number of figures, number of filled tables, and the reasons that it shows for missing tables."""
    made = [_outcome(lambda make=make: len(make(session, selection).frame) > 0) for make in page.tables.values()]
    reasons = {outcome for outcome in made if isinstance(outcome, str)}
    figures = int(True in made and page.name != "health")
    if page.name == "diff":
        figures = len(COMPARISONS) - len(reasons)
    if page.name == "overview":
        figures, reasons = len(session.results(selection.scope, FIRST_FIGURES)), set()
    elif figures and page.name in {question.name for question in ANALYSES}:
        figures += len(further_figures_of(page.name, session.result(selection.scope, page.name)))
    seen.expect(frame, title=page.title, figures=figures, tables=made.count(True))
    text = frame.locator("#page").inner_text().replace("\u00a0", " ")
    assert all(reason in text for reason in reasons)
    if page.name == "timeline":
        drawn = frame.locator('#timeline[data-drawn]:not([data-drawn="0"])')
        drawn.wait_for(state="attached", timeout=PATIENCE_MS)


def _outcome(make: Callable[[], object]) -> object:
    """Call `make`; return its result, or the message of the HolotraceError that it raises."""
    try:
        return make()
    except HolotraceError as error:
        return str(error)
