"""The SQL box of the timeline, in a real browser."""

from __future__ import annotations

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")
pytest.importorskip("duckdb", reason="the extra `sql` is not installed")

from browsing import PATIENCE_MS, visit
from drawn_timeline import Drawn
from jobs import MARKUP

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def ask(drawn: Drawn, query: str) -> None:
    """Type a query into the box, and send it with the keyboard."""
    box = drawn.details.get_by_role("textbox", name="SQL query")
    box.fill(query)
    box.press("Control+Enter")


@pytest.mark.slow
def test_a_row_of_an_answer_leads_to_its_event(url, browser) -> None:
    """The table shows names as text and all digits of times; it stays open when a row's button selects its event."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        seen.page.get_by_role("button", name="SQL").click()
        ask(drawn, "SELECT rank, event_index, start_ns, name FROM kernels ORDER BY rank DESC, start_ns LIMIT 2")
        drawn.details.get_by_text("2 rows").wait_for(timeout=PATIENCE_MS)

        lines = [line.inner_text().split("\t") for line in drawn.details.locator("table tr").all()]
        assert lines[0] == ["", "rank", "event_index", "start_ns", "name"]
        assert (lines[1][1], *lines[1][3:]) == ("1", "1700000000000050000", "gemm")
        assert lines[2][4] == MARKUP
        seen.keep("timeline-sql")
        drawn.details.get_by_role("button", name="show row 1 on the timeline").click()
        drawn.until("it.selected && it.selected.at")
        assert drawn.of("[it.selected.rank, it.selected.at[2]]") == [1, 50_000]
        assert drawn.of("it.view.shows(1, it.selected.at[0], it.selected.at[1])")
        assert drawn.details.locator("table").is_visible()
        assert "sql=SELECT" in seen.page.url
        assert not seen.troubles


@pytest.mark.slow
def test_a_time_without_an_event_is_shown(url, browser) -> None:
    """A row with a rank and a time has a button that shows it on the timeline; a row without them has none."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        seen.page.get_by_role("button", name="SQL").click()
        ask(drawn, "SELECT 1 AS rank, 1700000000000100000 AS start_ns, 1700000000000200000 AS end_ns")
        drawn.details.get_by_role("button", name="show row 1").click(timeout=PATIENCE_MS)
        drawn.until("it.focus")
        assert drawn.of("[it.focus.rank, it.focus.start, it.focus.end]") == [1, 100_000, 200_000]
        ask(drawn, "SELECT count(*) AS kernels FROM kernels")
        drawn.details.get_by_text("1 row", exact=True).wait_for(timeout=PATIENCE_MS)
        assert drawn.details.locator("table").inner_text() == "kernels\n6"
        assert not seen.troubles


@pytest.mark.slow
def test_a_wrong_query_gets_its_reason(url, browser) -> None:
    """An invalid query stays in the box with the reason beside it; a query in the address runs only on a click."""
    with visit(browser, f"{url}&sql=SELECT+nothing+FROM+kernels") as seen:
        drawn = Drawn(seen)
        seen.page.get_by_role("button", name="SQL").click()
        box = drawn.details.get_by_role("textbox", name="SQL query")
        assert box.input_value() == "SELECT nothing FROM kernels"
        assert drawn.details.locator("table").count() == 0
        drawn.details.get_by_role("button", name="run").click()
        drawn.details.get_by_text('"nothing" not found').wait_for(timeout=PATIENCE_MS)
        assert box.input_value() == "SELECT nothing FROM kernels"
        drawn.details.get_by_text("views and their columns").click()
        drawn.details.get_by_text("a call of a PyTorch operator on the host").wait_for(timeout=PATIENCE_MS)
        assert all("400" in trouble for trouble in seen.troubles)
