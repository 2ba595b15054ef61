"""The timeline in a real browser: what it draws, its keys, and what is said about an event."""

from __future__ import annotations

import threading
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, visit
from hta.web.server import Address, bound_server
from hta.web.session import Session
from hta.web.timeline import routes
from jobs import MARKUP, gpu_job

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]  # one browser and one server


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Serve two ranks, one with a kernel whose name is markup."""
    folder = tmp_path_factory.mktemp("job")
    gpu_job().write(folder)
    with bound_server(Session([folder], cache=False), Address(port=0)) as server:
        threading.Thread(target=server.run, daemon=True).start()
        yield f"{server.url}?view=timeline"


def window_of(request) -> tuple[int, int]:
    """Return the window that a request asks for."""
    asked = parse_qs(urlsplit(request.url).query)
    return int(asked["start"][0]), int(asked["end"][0])


def asks_for_slices(request) -> bool:
    """Say whether a request is one for what to draw."""
    return "timeline/slices" in request.url


def test_a_name_that_is_found_is_selected_and_explained(url, browser) -> None:
    """The way from a table: the longest event of that name, with its launch, as text; the address keeps it."""
    with visit(browser, f"{url}&find={MARKUP}") as seen:
        details = seen.page.locator(".hta-timeline-details")
        details.get_by_text("launch", exact=True).wait_for(timeout=PATIENCE_MS)

        assert details.locator("h4").inner_text() == MARKUP
        assert "kernel of 10 µs" in details.locator("p").inner_text()
        assert details.locator("li button").first.inner_text() == "cudaLaunchKernel (1 µs)"
        assert "event=0%3A" in seen.page.url
        seen.keep("timeline-selected")
        seen.page.locator(".hta-timeline canvas").focus()
        seen.page.keyboard.press("Escape")
        details.wait_for(state="hidden")
        assert "event=" not in seen.page.url
        assert not seen.troubles


def test_keys_and_wheel_move_through_time(url, browser) -> None:
    """W and the wheel ask for less time, D for later, 0 for everything."""
    with visit(browser, url) as seen:
        page = seen.page
        seen.settle(page.main_frame, "Timeline")
        page.locator(".hta-timeline canvas").wait_for()
        page.wait_for_load_state("networkidle")
        windows = []
        for key in ("0", "w", "d"):
            with page.expect_request(asks_for_slices) as caught:
                page.keyboard.down(key)
                page.wait_for_timeout(300)
                page.keyboard.up(key)
            page.wait_for_load_state("networkidle")
            with page.expect_request(asks_for_slices) as caught:
                page.get_by_role("button", name="counters").click()  # asks for the same window again
            windows.append(window_of(caught.value))
        everything, closer, later = windows

        assert closer[1] - closer[0] < 0.9 * (everything[1] - everything[0])
        assert later[0] > closer[0]
        assert not seen.troubles


def test_search_goes_from_one_to_the_next(url, browser) -> None:
    """Of three events found the first is shown, then the second; typing moves nothing."""
    with visit(browser, url) as seen:
        page = seen.page
        page.locator(".hta-timeline canvas").wait_for(timeout=PATIENCE_MS)
        page.wait_for_load_state("networkidle")
        page.keyboard.press("/")
        page.keyboard.type("gemm")
        status = page.locator(".hta-timeline-status")
        status.get_by_text("2 found", exact=True).wait_for()
        page.keyboard.press("Enter")
        status.get_by_text("1 of 2 found").wait_for()
        page.keyboard.press("Enter")
        status.get_by_text("2 of 2 found").wait_for()

        assert not seen.troubles


@pytest.mark.parametrize(("scheme", "expected"), [("light", (255, 255, 255)), ("dark", (23, 28, 35))])
def test_the_drawing_follows_the_page(url, browser, scheme, expected) -> None:
    """Its background is the page's."""
    with visit(browser, url, color_scheme=scheme) as seen:
        drawn = seen.page.locator(".hta-timeline canvas")
        drawn.wait_for(timeout=PATIENCE_MS)
        wanted = f"canvas => canvas.getContext('2d').getImageData(3, 3, 1, 1).data.slice(0, 3).join() === '{','.join(map(str, expected))}'"
        seen.page.wait_for_function(
            f"() => ({wanted})(document.querySelector('.hta-timeline canvas'))", timeout=PATIENCE_MS
        )
        seen.keep(f"timeline-{scheme}")
        assert not seen.troubles


def test_ranks_that_are_left_out_are_counted(url, browser, monkeypatch) -> None:
    """Of two ranks one is drawn, and the page says so."""
    monkeypatch.setattr(routes, "MOST_RANKS", 1)
    with visit(browser, url) as seen:
        seen.page.get_by_text("1 of 2 ranks; choose others above").wait_for(timeout=PATIENCE_MS)
