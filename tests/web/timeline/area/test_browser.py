"""The totals and the flame graph of an area of the timeline, in a real browser."""

from __future__ import annotations

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, visit
from drawn_timeline import Drawn
from jobs import MARKUP

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

BOTH_STEPS = "at=1700000000000000000-1700000000000400000"


def rows_of(drawn: Drawn) -> dict[str, list[str]]:
    """Return the cells of the totals, by name."""
    lines = drawn.details.locator(".holotrace-totals tbody tr").all()
    cells = [[cell.inner_text() for cell in line.locator("td").all()] for line in lines]
    return {name: rest for name, *rest in cells}


@pytest.mark.slow
def test_the_totals_of_an_area(url, browser) -> None:
    """Two kernels named gemm take 200 µs in total.

    A click on a heading sorts the table, and a click on a name shows the longest event with that name.
    """
    with visit(browser, f"{url}&{BOTH_STEPS}") as seen:
        drawn = Drawn(seen)
        table = drawn.details.locator(".holotrace-totals")
        table.wait_for(timeout=PATIENCE_MS)

        rows = rows_of(drawn)
        assert rows["gemm"] == ["kernel", "2", "200 µs", "200 µs", "100 µs", "100 µs", "100 µs"]
        assert rows["aten::mm"][:4] == ["cpu op", "2", "180 µs", "178 µs"]
        assert MARKUP in rows
        drawn.details.get_by_role("button", name="whole ns").click()
        assert rows_of(drawn)["gemm"][2:4] == ["200,000 ns", "200,000 ns"]
        drawn.details.get_by_role("button", name="whole ns").click()
        assert table.locator("th[aria-sort=descending]").inner_text() == "self ▾"
        table.get_by_role("button", name="count", exact=True).click()
        drawn.details.locator("th[aria-sort=descending]").get_by_text("count").wait_for(timeout=PATIENCE_MS)
        seen.keep("timeline-area")
        drawn.details.get_by_role("button", name="gemm").first.click()
        drawn.until("it.selected && it.selected.at")
        assert drawn.of("it.view.shows(it.selected.rank, it.selected.at[0], it.selected.at[1])")
        assert table.is_visible()
        assert "event=0:" in seen.page.url
        assert not seen.troubles


@pytest.mark.slow
def test_the_flame_graph_of_an_area(url, browser) -> None:
    """Steps are the outer blocks, operators the inner; arrow keys select a block, and Enter shows it at full width."""
    with visit(browser, f"{url}&{BOTH_STEPS}") as seen:
        drawn = Drawn(seen)
        graph = drawn.details.locator(".holotrace-flames-graph")
        graph.wait_for(timeout=PATIENCE_MS)
        said = drawn.details.locator(".holotrace-flames-said")

        assert "Flame graph: 900 µs on the selected threads" in drawn.details.inner_text()
        graph.locator("button[tabindex='0']").focus()
        assert said.inner_text() == "ProfilerStep#1: 400 µs (44 %), self 220 µs, events: 2"
        seen.page.keyboard.press("ArrowDown")
        assert said.inner_text() == "aten::mm: 180 µs (20 %), self 178 µs, events: 2"
        seen.page.keyboard.press("Enter")
        box = graph.locator("button:focus").bounding_box()
        assert box is not None
        assert box["width"] == pytest.approx(graph.bounding_box()["width"], abs=2)  # type: ignore[index]  # not null
        seen.keep("timeline-flames")
        seen.page.keyboard.press("Escape")
        assert drawn.of("it.span !== null")
        assert graph.locator("button:focus").bounding_box()["width"] < box["width"] / 2  # type: ignore[index]  # not null
        drawn.details.get_by_role("button", name="show the longest", exact=True).click()
        drawn.until("it.selected && it.selected.at && it.selected.at[3] === 90000")
        assert not seen.troubles
