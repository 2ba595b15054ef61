"""Pages of real recordings fit wide and narrow windows, and axe finds no serious faults in light or dark mode.

The package axe-playwright-python contains axe's script; https://github.com/dequelabs/axe-core lists its rules.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")
pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is missing: pip install --group browser")

import holotrace
from browsing import PATIENCE_MS, Visit, go_to, serving, value_of, visit
from holotrace.testing.synthetic import write_job
from holotrace.web.pages import PAGES
from holotrace.web.parts.page import Page as WebPage
from holotrace.web.session.selection import Selection
from reference_data import IN_THE_REPOSITORY

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.slow]

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
GRAVE = ("serious", "critical")
WIDTHS = (1440, 390)
LOOKS = 3
NOTHING: dict[str, Any] = {"violations": []}
RUNS = (
    "() => axe.run({ exclude: ['.ag-root-wrapper'] }, { resultTypes: ['violations'], preload: false })",
    """async () => {
      const table = document.querySelector('.ag-root-wrapper');
      table?.scrollIntoView({ block: 'center' });
      await new Promise(resolve => setTimeout(resolve, 200));
      return table && axe.run(table, { resultTypes: ['violations'], preload: false });
    }""",
)
"""Scrolls to the first table before the check, because AG Grid fills a grid's headers only once the grid is visible.

`preload` is off, because it would make each check request all style sheets again. The style sheets are needed only by
a rule that is off by default.
"""

SCHEME = "() => document.documentElement.dataset.mantineColorScheme ?? document.documentElement.dataset.theme ?? ''"
MANY_RANKS = 128

TRACES = IN_THE_REPOSITORY / "traces"
EXAMPLES = IN_THE_REPOSITORY.parents[1] / "examples" / "gpu" / "traces"
RECORDINGS = {
    "ddp_gloo_4rank": TRACES / "ddp_gloo_4rank",
    "generation": EXAMPLES / "generation",
    "two_rank_128": TRACES / "two_rank_128",
}
ABOUT_RANKS = {
    "communication_overlap",
    "stragglers",
    "wait_causes",
    "distributed",
    "collectives",
    "parallelism",
    "straggler_cost",
    "source_lines",
    "modules",
    "memory_timeline",
    "operator_memory",
    "user_annotations",
}
SOME_PAGES = {
    "ddp_gloo_4rank": ABOUT_RANKS,
    "generation": {page.name for page in PAGES} - ABOUT_RANKS,
    "two_rank_128": {"overview", "kernels", "operators", "kernel_breakdown", "collectives"},
    "many_ranks": {"overview", "timeline", "stragglers", "temporal_breakdown"},
}
"""Pages to visit for each recording; each page is visited at least once, and some also with long names or 128 ranks."""

MOST_PAGES = 6
"""The largest number of pages that one test visits.

With few pages per test, the test processes share the work evenly. If a page hangs, only one test fails, and it fails
within minutes.
"""


def visits() -> list[object]:
    """Return test parameters: each is a recording and a group of its pages."""
    found: list[object] = []
    for name, names in SOME_PAGES.items():
        pages = [page for page in PAGES if page.name in names]
        for first in range(0, len(pages), MOST_PAGES):
            group = pages[first : first + MOST_PAGES]
            found.append(pytest.param(name, group, id=f"{name}-{group[0].name}"))
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Serve three recordings (with a GPU, without a GPU, and with long names) and a job of 128 ranks."""
    folder = tmp_path_factory.mktemp("axe")
    for name, path in RECORDINGS.items():
        shutil.copytree(path, folder / name)
    write_job(folder / "many_ranks", ranks=MANY_RANKS, steps=2, layers=1)
    with serving(folder) as session_and_url:
        yield session_and_url


@pytest.mark.parametrize(("name", "pages"), visits())
def test_axe_finds_nothing_serious_on_any_page(served, browser, name, pages) -> None:
    """Each page passes twice: light at a width of 1440 px, and dark at 390 px."""
    session, url = served
    run = next(known.id for known in session.runs if known.name == name)
    with visit(browser, url + Selection("health", run=run).query(), bypass_csp=True) as seen:
        seen.settle(seen.page.main_frame, "Health")
        found = [trouble for page in pages for trouble in troubles_at(seen, page)]
        assert not seen.troubles
    assert not found, "\n".join(found)


def test_axe_finds_nothing_serious_in_the_parts_of_the_timeline(served, browser) -> None:
    """An area's totals and flame graph, a query's answer, and the list of rows have no serious accessibility faults."""
    pytest.importorskip("duckdb", reason="the extra `sql` is not installed")
    session, url = served
    run = next(known.id for known in session.runs if known.name == "two_rank_128")
    with visit(browser, url, bypass_csp=True) as seen:
        seen.page.goto(url + Selection("timeline", run=run).query())
        seen.settle(seen.page.main_frame, "Timeline")
        seen.page.wait_for_function("() => window.holotrace.timeline?.ranks.length === 2", timeout=PATIENCE_MS)
        seen.page.evaluate(
            "() => { const it = window.holotrace.timeline; it.selection.setSpan({ ...it.view.whole, rows: null }); it.selection.describeSpan(); }"
        )
        seen.page.locator(".holotrace-flames").wait_for(timeout=PATIENCE_MS)
        found = [*troubles_in_both_schemes(seen, "area")]
        seen.page.get_by_role("button", name="SQL").click()
        seen.page.get_by_role("textbox", name="SQL query").press("Control+Enter")
        seen.page.get_by_text("20 rows", exact=True).wait_for(timeout=PATIENCE_MS)
        seen.page.get_by_role("button", name="rows", exact=True).click()
        found += troubles_in_both_schemes(seen, "query and rows")
        assert not seen.troubles
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_axe_finds_nothing_serious_in_a_report(browser, tmp_path, scheme: str, width: int) -> None:
    """A report with very long names has no serious accessibility faults when all its sections are expanded."""
    holotrace.report(holotrace.open_trace(RECORDINGS["two_rank_128"]), tmp_path / "report.html")
    with visit(browser, (tmp_path / "report.html").as_uri(), bypass_csp=True, color_scheme=scheme) as seen:
        seen.page.evaluate(
            "() => document.querySelectorAll('.advice details, .caveats, #files details').forEach(one => { one.open = true; })"
        )
        found = troubles_of(seen, width, "report")
    assert not found, "\n".join(found)


def troubles_at(seen: Visit, page: WebPage) -> Iterator[str]:
    """Yield the faults of a page: first in light mode in a wide window, then in dark mode in a narrow window."""
    seen.page.set_viewport_size({"width": WIDTHS[0], "height": 1000})
    go_to(seen.page.main_frame, page.name)
    seen.settle(seen.page.main_frame, page.title)
    value_of(seen.page, "() => document.querySelectorAll('#page details').forEach(one => { one.open = true; })")
    for width in WIDTHS:
        yield from troubles_of(seen, width, page.title)
        seen.page.set_viewport_size({"width": WIDTHS[0], "height": 1000})
        seen.page.locator("#dark").click()


def troubles_in_both_schemes(seen: Visit, what: str) -> Iterator[str]:
    """Yield the faults of the page in its current state, in light and dark, at all widths."""
    for _ in ("light", "dark"):
        for width in WIDTHS:
            yield from troubles_of(seen, width, what)
        seen.page.set_viewport_size({"width": WIDTHS[0], "height": 1000})
        seen.page.locator("#dark").click()


def troubles_of(seen: Visit, width: int, what: str) -> list[str]:
    """Return the faults of the page at one width.

    If faults are found, the check is repeated, because figures and tables may still be adapting to the width.
    """
    seen.page.set_viewport_size({"width": width, "height": 1000})
    seen.page.wait_for_timeout(100)
    troubles: list[str] = []
    for _ in range(LOOKS):
        troubles = [f"{what}, {trouble}" for trouble in troubles_now(seen, width)]
        if not troubles:
            break
        seen.page.wait_for_timeout(1_000)
    return troubles


def troubles_now(seen: Visit, width: int) -> Iterator[str]:
    """Yield the faults of the page."""
    scheme = value_of(seen.page, SCHEME)
    too_wide = value_of(seen.page, "() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if too_wide > 0:
        yield f"{scheme}, {width} px: {too_wide} px wider than the window"
    if not value_of(seen.page, "() => 'axe' in window"):
        seen.page.evaluate(AXE)
    rules: list[dict[str, Any]] = [rule for run in RUNS for rule in (value_of(seen.page, run) or NOTHING)["violations"]]
    for rule in rules:
        if rule["impact"] in GRAVE:
            yield f"{scheme}, {width} px: {rule['id']}: {[node['html'][:160] for node in rule['nodes'][:3]]}"
