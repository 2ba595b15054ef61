"""In a real browser, rows of the timeline can be pinned, hidden, filtered and moved, and the address records this."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, visit
from drawn_timeline import Drawn, serving
from holotrace.testing import write_job
from holotrace.web.timeline import routes

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

SHOWN = "it.view.items.flatMap((item) => item.kind === 'row' ? [`${item.rank.number} ${item.row.label}`] : [])"
ALL = [f"{rank} {label}" for rank in (0, 1) for label in ("thread 1", "thread 2", "stream 7", "stream 20")]


def without(*rows: str) -> list[str]:
    """Return all rows except the given ones."""
    return [row for row in ALL if row not in rows]


@pytest.mark.slow
def test_a_pinned_row_stays_at_the_top(url, browser) -> None:
    """The pin button on a label keeps the row visible while other rows scroll; the address lists pinned rows."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        assert drawn.of(SHOWN) == ALL
        drawn.press("pin", 1, "stream 7")
        assert drawn.of(SHOWN) == ["1 stream 7", *without("1 stream 7")]
        assert "rows=pin.1.2" in seen.page.url
        drawn.of("(it.view.scroll = 50, it.changed())")
        assert drawn.of("it.view.y(it.view.items[0].top)") == 34
        seen.page.mouse.click(*drawn.at(100_000, 1, "stream 7"))
        drawn.details.locator("h2").get_by_text("gemm").wait_for(timeout=PATIENCE_MS)
        seen.keep("timeline-pinned")
    with visit(browser, f"{url}&rows=pin.1.2,0.0~hide.0.3") as seen:
        drawn = Drawn(seen)
        assert drawn.of(SHOWN) == ["1 stream 7", "0 thread 1", *without("1 stream 7", "0 thread 1", "0 stream 20")]
        assert not seen.troubles


@pytest.mark.slow
def test_a_hidden_row_comes_back_when_its_event_is_requested(url, browser) -> None:
    """The button on a label hides its row; the row returns when a search finds one of its events."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        drawn.press("hide", 0, "thread 2")
        assert drawn.of(SHOWN) == without("0 thread 2")
        seen.page.get_by_role("button", name="rows (1 hidden)").wait_for()
        seen.page.keyboard.press("/")
        seen.page.keyboard.type("MmBackward0")
        drawn.status.get_by_text("2 found", exact=True).wait_for()
        seen.page.keyboard.press("Enter")
        drawn.details.locator("h2").get_by_text("MmBackward0").wait_for(timeout=PATIENCE_MS)
        assert drawn.of(SHOWN) == ALL
        assert not seen.troubles


def test_rows_are_filtered_by_text(url, browser) -> None:
    """Only rows and counters with all words of the filter are shown; the address contains the filter."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        seen.page.get_by_role("button", name="rows", exact=True).click()
        box = seen.page.get_by_role("searchbox", name="filter rows")
        box.fill("rank 1 stream")
        assert drawn.of(SHOWN) == ["1 stream 7", "1 stream 20"]
        seen.page.get_by_text("2 of 8 rows shown").wait_for()
        assert drawn.of("it.ranks.length") == 2
        assert re.search(r"rows=find\.rank\+1\+stream", seen.page.url)
        seen.keep("timeline-rows-list")
        seen.page.get_by_role("button", name="show all", exact=True).click()
        assert drawn.of(SHOWN) == ALL
        seen.page.keyboard.press("Escape")
        assert "rows=" not in seen.page.url
        assert not seen.troubles


@pytest.mark.slow
def test_rows_are_moved_with_the_keyboard(url, browser) -> None:
    """Buttons in the list move, pin and hide rows; a pressed button keeps the focus, so it can be pressed again."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        seen.page.get_by_role("button", name="rows", exact=True).click()
        seen.page.get_by_role("button", name="move rank 0, thread 1 down").focus()
        for expected in ([1, 0, 2, 3], [1, 2, 0, 3], [1, 2, 3, 0], [1, 2, 3, 0]):
            seen.page.keyboard.press("Enter")
            assert drawn.of("it.rows.shown(it.ranks[0]).map((row) => row.at)") == expected
        assert "rows=order.0.1.2.3.0" in seen.page.url
        seen.page.get_by_role("button", name="pin rank 1, GPU 0 stream 7").focus()
        seen.page.keyboard.press("Space")
        assert drawn.of(SHOWN)[0] == "1 stream 7"  # type: ignore[index]  # a list
        seen.page.keyboard.press("Escape")
        seen.page.get_by_role("searchbox", name="filter rows").wait_for(state="hidden")
        assert seen.page.evaluate("document.activeElement.textContent") == "rows"
        assert not seen.troubles


@pytest.mark.slow
def test_rows_are_moved_with_the_mouse(url, browser) -> None:
    """Dragging a label above another label moves its row; dragging it to another rank has no effect."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        drawn.drag(drawn.label(0, "stream 20"), drawn.label(0, "thread 1"))
        assert drawn.of("it.rows.shown(it.ranks[0]).map((row) => row.label)")[0] == "stream 20"  # type: ignore[index]  # a list
        before = drawn.of(SHOWN)
        drawn.drag(drawn.label(0, "thread 2"), drawn.label(1, "thread 1"))
        assert drawn.of(SHOWN) == before
        assert not seen.troubles


@pytest.mark.slow
def test_the_late_rank_comes_first(tmp_path, browser, monkeypatch) -> None:
    """At first, two of ten ranks are drawn; then the late rank 7 and a typical rank appear above them, with reasons."""
    write_job(tmp_path, ranks=10, steps=2, ranks_per_host=10, straggler_rank=7)
    monkeypatch.setattr(routes, "MOST_RANKS", 2)
    with serving(tmp_path) as address, visit(browser, address) as seen:
        drawn = Drawn(seen, ranks=2)
        drawn.until("it.ranks.length > 2")
        drawn.until("it.ranks[0].reason")
        numbers = drawn.of("it.ranks.map(({ number }) => number)")
        assert numbers[0] == 7  # type: ignore[index]  # a list
        assert str(drawn.of("it.ranks[0].reason")).startswith("late: others wait")
        assert str(drawn.of("it.ranks[1].reason")).startswith("typical: waits")
        drawn.until("it.ranks[0].lanes.size")
        seen.keep("timeline-late-rank")
        assert not seen.troubles
