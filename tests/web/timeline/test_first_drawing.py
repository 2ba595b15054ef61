"""In a real browser, modules that the timeline does not need at first load after the first drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, visit
from drawn_timeline import Drawn

if TYPE_CHECKING:
    from playwright.sync_api import Route

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_events_are_requested_before_the_other_parts(url, browser) -> None:
    """The browser requests the first events before the map's data and before the modules that load later."""
    with visit(browser, url) as seen:
        Drawn(seen).until("it.minimap?.busy.size === 2")  # after this, the first visit sends no more requests
        requested: list[str] = []
        seen.page.on("request", lambda request: requested.append(request.url.partition("/timeline/")[2]))
        seen.page.reload()
        Drawn(seen).until("it.minimap?.busy.size === 2")
        first = next(at for at, name in enumerate(requested) if name.startswith("slices?"))
        before = [name.partition("?")[0] for name in requested[:first]]
        assert not {"later.js", "window/minimap.js", "sql/sql_box.js", "area/area.js", "busy"} & set(before)
        assert [name.partition("?")[0] for name in requested].count("busy") == 2
        assert not seen.troubles


@pytest.mark.slow
def test_the_list_of_flags_waits_for_its_module(url, browser) -> None:
    """Events are drawn while the other modules load; the list of flags opens once its module is loaded."""
    with visit(browser, url) as seen:
        held: list[Route] = []
        seen.page.route("**/timeline/later.js", lambda route: held.append(route))  # noqa: PLW0108 -- playwright sets an attribute of the function
        seen.page.reload()
        drawn = Drawn(seen)
        seen.page.mouse.click(*drawn.ruler(100_000))
        drawn.until("it.flags.all.length === 1")
        assert not drawn.details.is_visible()
        held[0].continue_()
        drawn.details.get_by_label("name of the flag").wait_for(timeout=PATIENCE_MS)
        assert not seen.troubles
