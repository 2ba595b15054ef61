"""The timeline fills the window; the list of pages can be hidden, and the details resized."""

from __future__ import annotations

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, visit
from drawn_timeline import Drawn
from matrices import slow_except

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

SIZES = {"wide": (1440, 1000), "narrow": (390, 844), "low": (1024, 600)}
_BOXES = """() => {
  const box = (selector) => document.querySelector(selector).getBoundingClientRect().toJSON();
  return { page: document.scrollingElement.scrollHeight, around: document.scrollingElement.scrollWidth,
    canvas: box('.holotrace-timeline-view canvas'), header: box('header.mantine-AppShell-header'), nav: box('nav') };
}"""


@pytest.mark.parametrize("size", slow_except(SIZES, ["narrow"]))
def test_the_timeline_fills_the_window(url, browser, size) -> None:
    """The canvas reaches the lower right corner of the window, the page does not scroll, and nothing overlaps."""
    width, height = SIZES[size]
    with visit(browser, url) as seen:
        seen.page.set_viewport_size({"width": width, "height": height})
        Drawn(seen)
        boxes = seen.page.evaluate(_BOXES)
        seen.keep(f"timeline-{size}")

        assert (boxes["page"], boxes["around"]) == (height, width)
        assert width - 30 < boxes["canvas"]["right"] <= width
        assert height - 30 < boxes["canvas"]["bottom"] <= height
        assert boxes["canvas"]["height"] > 0.6 * (height - boxes["header"]["height"])
        assert boxes["canvas"]["left"] >= max(boxes["nav"]["right"], 0)
        assert not seen.troubles


@pytest.mark.slow
def test_the_list_of_pages_can_be_hidden(url, browser) -> None:
    """The button or the key `b` hides the list; the canvas fills the free space, and the browser stores the choice."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        button, nav = seen.page.locator("#sidebar"), seen.page.locator("nav")
        narrow = drawn.of("it.view.width")
        button.click()
        nav.wait_for(state="hidden")
        drawn.until(f"it.view.width > {narrow} + 200")
        assert button.get_attribute("aria-expanded") == "false"

        seen.page.reload()
        drawn = Drawn(seen)
        assert nav.is_hidden()
        seen.page.keyboard.press("b")
        nav.wait_for(state="visible")
        drawn.until(f"it.view.width === {narrow}")
        assert button.get_attribute("aria-expanded") == "true"
        assert not seen.troubles


@pytest.mark.slow
def test_a_narrow_window_shows_the_list_of_pages_over_the_page(url, browser) -> None:
    """On a phone, the list is closed at first; it opens over the page, and a link or Escape closes it."""
    with visit(browser, url) as seen:
        seen.page.set_viewport_size({"width": 390, "height": 844})
        Drawn(seen)
        nav = seen.page.locator("nav")
        assert nav.is_hidden()
        for close in (
            lambda: seen.page.keyboard.press("Escape"),
            lambda: nav.get_by_role("link", name="Timeline").click(),
        ):
            seen.page.locator("#sidebar").click()
            nav.wait_for(state="visible")
            close()
            nav.wait_for(state="hidden")
        assert not seen.troubles


@pytest.mark.slow
def test_the_details_can_be_resized(url, browser) -> None:
    """Dragging the bar, or arrow keys on it, resizes the details; the browser stores the height; Enter resets it."""
    with visit(browser, f"{url}&find=gemm") as seen:
        drawn = Drawn(seen)
        drawn.details.get_by_text("launch", exact=True).wait_for(timeout=PATIENCE_MS)
        bar = seen.page.get_by_role("separator", name="height of the details")
        box = bar.bounding_box()
        assert box is not None
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        drawn.drag(middle, (middle[0], middle[1] - 200))
        assert drawn.details.bounding_box()["height"] == pytest.approx(_height(drawn, 32) + 200, abs=12)  # type: ignore[index]  # it is visible
        share = float(bar.get_attribute("aria-valuenow") or 0)
        bar.press("ArrowDown")
        assert float(bar.get_attribute("aria-valuenow") or 0) == pytest.approx(share - 4, abs=1)
        seen.page.reload()
        Drawn(seen)
        assert float(bar.get_attribute("aria-valuenow") or 0) == pytest.approx(share - 4, abs=1)
        bar.press("Enter")
        assert bar.get_attribute("aria-valuenow") == "32"
        assert not seen.troubles


def _height(drawn: Drawn, percent: float) -> float:
    return float(drawn.of("it.root.clientHeight")) * percent / 100  # type: ignore[arg-type]  # a number


@pytest.mark.slow
def test_the_details_never_hide_the_selected_event(url, browser) -> None:
    """An event in the lowest row stays visible when the panel with its details opens or grows."""
    with visit(browser, url) as seen:
        seen.page.set_viewport_size({"width": 1024, "height": 560})
        drawn = Drawn(seen)
        drawn.of("(it.view.scroll = 1e9, it.changed())")
        seen.page.wait_for_timeout(300)
        seen.page.mouse.click(*drawn.at(100_000, 1, "stream 7"))
        drawn.details.get_by_text("launch", exact=True).wait_for(timeout=PATIENCE_MS)
        shown = "it.view.shows(it.selected.rank, ...it.selected.at.slice(0, 2))"
        drawn.until(shown)
        bar = seen.page.get_by_role("separator", name="height of the details")
        for _ in range(6):
            bar.press("ArrowUp")
        seen.page.wait_for_timeout(300)
        assert drawn.of(shown)
        assert drawn.of("it.frame.clientHeight") < 200  # type: ignore[operator]  # a number
        seen.keep("timeline-large-details")
        seen.page.get_by_title("close (Escape)").click()
        drawn.details.wait_for(state="hidden")
        assert not seen.troubles


@pytest.mark.slow
def test_ranks_that_a_run_lacks_are_said_to_be_missing(url, browser) -> None:
    """If none of the selected ranks are in the run, the page says so."""
    with visit(browser, f"{url}&ranks=99") as seen:
        seen.page.get_by_text("this run does not contain the chosen ranks; choose others above").wait_for(
            timeout=PATIENCE_MS
        )
        assert not seen.troubles
