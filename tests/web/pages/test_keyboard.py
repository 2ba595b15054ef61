"""Everything can be selected with the keyboard, and nothing moves for users who prefer reduced motion."""

from __future__ import annotations

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, Visit, serving, visit
from holotrace.testing import write_job
from holotrace.web.session.selection import Selection

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

MOST_TABS = 60


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Serve two small jobs."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("before", "after"):
        write_job(folder / name, ranks=2, steps=3, layers=2)
    with serving(folder) as session_and_url:
        yield session_and_url


def tab_to(seen: Visit, selector: str) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(MOST_TABS):
        seen.page.keyboard.press("Tab")
        if seen.page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    message = f"Tab never reaches {selector}"
    raise AssertionError(message)


@pytest.mark.slow
def test_two_runs_are_ticked_and_compared(served, browser) -> None:
    """Tab moves to the runs, Space ticks two of them, and Enter follows the link that compares them."""
    _, url = served
    with visit(browser, url) as seen:
        seen.settle(seen.page.main_frame, "Runs")
        for _ in range(2):
            tab_to(seen, "input[type=checkbox]")
            seen.page.keyboard.press("Space")
        assert seen.page.get_by_role("checkbox", checked=True).count() == 2
        seen.page.locator("h1").click()
        tab_to(seen, "#compare")
        seen.page.keyboard.press("Enter")
        seen.settle(seen.page.main_frame, "Compare")
        assert not seen.troubles


@pytest.mark.slow
def test_a_finding_opens_and_leads_to_the_timeline(served, browser) -> None:
    """Enter opens a finding; the next presses of Tab move to its links."""
    session, url = served
    with visit(browser, url + Selection("overview", run=session.runs[0].id).query()) as seen:
        seen.settle(seen.page.main_frame, "Overview")
        tab_to(seen, "details[data-finding] > summary")
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_function("() => location.search.includes('finding=')", timeout=PATIENCE_MS)
        tab_to(seen, "details[data-finding][open] a[href*='view=timeline']")
        seen.page.keyboard.press("Enter")
        seen.settle(seen.page.main_frame, "Timeline")
        assert not seen.troubles


def test_a_row_of_a_table_is_selected_and_shown_on_the_timeline(served, browser) -> None:
    """Space selects the row of the focused cell; Enter shows the row on the timeline."""
    session, url = served
    with visit(browser, url + Selection("kernels", run=session.runs[0].id).query()) as seen:
        seen.settle(seen.page.main_frame, "Kernels")
        seen.page.locator(".ag-row").first.wait_for(timeout=PATIENCE_MS)
        seen.page.locator(".holotrace-search input").first.focus()
        tab_to(seen, ".ag-header-cell")
        seen.page.keyboard.press("ArrowDown")
        seen.page.keyboard.press("ArrowDown")
        seen.page.keyboard.press("Space")
        seen.page.locator(".ag-row-selected").wait_for(timeout=PATIENCE_MS)
        seen.page.get_by_role("link", name="in the timeline").first.wait_for(timeout=PATIENCE_MS)
        seen.page.keyboard.press("Enter")
        seen.settle(seen.page.main_frame, "Timeline")
        assert not seen.troubles


@pytest.mark.slow
@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_moves_for_those_who_ask_for_less_motion(served, browser, motion) -> None:
    """With `prefers-reduced-motion: reduce`, no element has a transition or animation that takes time."""
    session, url = served
    durations = """() => [...new Set([...document.querySelectorAll('*')].flatMap(element => {
      const { animationName, animationDuration, transitionDuration } = getComputedStyle(element);
      return [...transitionDuration.split(', '), ...(animationName === 'none' ? [] : animationDuration.split(', '))];
    }))]"""
    address = url + Selection("kernels", run=session.runs[0].id).query()
    with visit(browser, address, reduced_motion=motion) as seen:
        seen.settle(seen.page.main_frame, "Kernels")
        found = set(seen.page.evaluate(durations))
        assert found == {"0s"} if motion == "reduce" else len(found) > 1
        assert not seen.troubles
