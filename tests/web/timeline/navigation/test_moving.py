"""Moving through the timeline with keys, the map, flags and links, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, visit
from drawn_timeline import LENGTH_NS, Drawn, length, serving
from holotrace.testing import write_job
from jobs import MARKUP

if TYPE_CHECKING:
    from playwright.sync_api import Route

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

WINDOW = "&window=1700000000000040000-1700000000000140000"


def heading(drawn: Drawn, text: str) -> None:
    """Wait until the details show an event with this name."""
    drawn.details.locator("h2").get_by_text(text, exact=True).wait_for(timeout=PATIENCE_MS)


@pytest.mark.slow
def test_keys_and_buttons_lead_along_the_row(url, browser) -> None:
    """The keys `.` and `,` and the buttons select the next or previous event of the stream without zooming."""
    with visit(browser, f"{url}&ranks=0&find=gemm") as seen:
        drawn = Drawn(seen, ranks=1)
        heading(drawn, "gemm")
        before = length(drawn.window)
        seen.page.keyboard.press(".")
        heading(drawn, MARKUP)
        drawn.status.get_by_text("2 of 2 on this row").wait_for()
        assert length(drawn.window) == pytest.approx(before)
        assert drawn.window[0] <= 240_000
        assert drawn.window[1] >= 250_000
        seen.page.keyboard.press(".")
        drawn.status.get_by_text("2 of 2 on this row; none after it").wait_for()
        seen.page.keyboard.press(",")
        heading(drawn, "gemm")
        drawn.details.get_by_title("next event on this row (.)").click()
        heading(drawn, MARKUP)
        assert not seen.troubles


@pytest.mark.slow
def test_keys_alone_select_and_lead_from_lane_to_lane(url, browser) -> None:
    """`.` selects the first visible event; J then selects the event below, and K the event above.

    If there is no event above or below, the status says so.
    """
    with visit(browser, f"{url}&ranks=0") as seen:
        drawn = Drawn(seen, ranks=1)
        seen.page.keyboard.press(".")
        heading(drawn, "ProfilerStep#1")
        for key, name in (("j", "aten::mm"), ("j", "cudaLaunchKernel"), ("k", "aten::mm"), ("k", "ProfilerStep#1")):
            seen.page.keyboard.press(key)
            heading(drawn, name)
        seen.page.keyboard.press("k")
        drawn.status.get_by_text("no events above").wait_for()
        assert not seen.troubles


@pytest.mark.slow
def test_n_leads_along_the_name(url, browser) -> None:
    """From a launch call, N and Shift N select the next or previous launch call, even with other events in between."""
    with visit(browser, f"{url}&ranks=0") as seen:
        drawn = Drawn(seen, ranks=1)
        seen.page.mouse.click(*drawn.at(20_500, 0, "thread 1", depth=2))
        heading(drawn, "cudaLaunchKernel")
        for key, number in (("n", 2), ("n", 3), ("Shift+N", 2)):
            seen.page.keyboard.press(key)
            drawn.status.get_by_text(f"{number} of 3 of this name").wait_for()
        drawn.until("it.selected.at?.[2] === 220000")
        drawn.details.get_by_title("previous event with this name (Shift N)").click()
        drawn.status.get_by_text("1 of 3 of this name").wait_for()
        assert not seen.troubles


@pytest.mark.slow
def test_the_map_moves_the_visible_range(url, browser) -> None:
    """A brush on the map marks the visible range; it can be drawn, dragged, resized and moved with keys."""
    with visit(browser, f"{url}&ranks=0") as seen:
        drawn = Drawn(seen, ranks=1)
        drawn.until("it.minimap?.busy.size === 1")
        brush = seen.page.get_by_role("slider", name="visible part of the recording")
        box = seen.page.locator(".holotrace-timeline-map").bounding_box()
        assert box is not None

        def at(time_ns: float) -> tuple[float, float]:
            return box["x"] + 1 + drawn.of(f"it.minimap.x({time_ns})"), box["y"] + box["height"] / 2  # type: ignore[operator]  # a number

        def shows(start: float, end: float) -> bool:
            return drawn.window == pytest.approx((start, end), abs=1_500)

        assert drawn.of("it.minimap.busy.get(0).percent.findIndex((share) => share > 0)") == 64
        seen.page.keyboard.press("w")
        seen.page.keyboard.press("0")
        drawn.of("it.movement.moveTo(0, 1000)")
        drawn.drag(at(100_000), at(200_000))
        assert shows(100_000, 200_000)
        drawn.drag(at(150_000), at(250_000))
        assert shows(200_000, 300_000)
        drawn.drag(at(300_000), at(380_000))
        assert shows(200_000, 380_000)
        seen.page.mouse.click(*at(100_000))
        assert shows(10_000, 190_000)
        brush.press("ArrowRight")
        assert shows(28_000, 208_000)
        brush.press("ArrowUp")
        assert shows(46_000, 190_000)
        assert brush.get_attribute("aria-valuetext") == "46.0 µs to 190.0 µs of 400 µs" or brush.get_attribute(
            "aria-valuetext"
        )
        seen.keep("timeline-map")
        assert not seen.troubles


@pytest.mark.slow
def test_the_map_shows_every_rank(tmp_path, browser) -> None:
    """The map shows all ranks, including the late ones, which the timeline lists first."""
    write_job(tmp_path, ranks=4, steps=2, layers=1)
    with serving(tmp_path) as address, visit(browser, address) as seen:
        seen.page.wait_for_function("() => window.holotrace.timeline?.minimap?.busy.size === 4", timeout=PATIENCE_MS)
        assert not seen.troubles


@pytest.mark.slow
def test_flags_are_set_named_shown_and_deleted(url, browser) -> None:
    """A click on the ruler or Shift F sets a flag; in the list, flags can be renamed, shown and deleted."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        seen.page.mouse.click(*drawn.ruler(100_000))
        name = drawn.details.get_by_label("name of the flag")
        name.wait_for()
        seen.page.keyboard.type("forward ends")
        seen.page.keyboard.press("Enter")
        assert drawn.of("it.flags.all.map(({ name }) => name)") == ["forward ends"]
        seen.page.mouse.move(*drawn.at(300_000, 0, "stream 7"))
        seen.page.keyboard.press("Shift+F")
        seen.page.keyboard.type(MARKUP)
        seen.page.keyboard.press("Escape")
        assert drawn.of("it.flags.all.map(({ time }) => time)") == pytest.approx([100_000, 300_000], abs=1_000)
        seen.page.wait_for_function("() => location.search.includes('bold') && location.search.includes('panel=flags')")
        address = seen.page.url
        seen.keep("timeline-flags")

        seen.page.goto(address)
        drawn = Drawn(seen)
        fields = drawn.details.get_by_label("name of the flag")
        assert [field.input_value() for field in fields.all()] == ["forward ends", MARKUP]
        drawn.of("it.movement.moveTo(0, 20000)")
        drawn.details.get_by_title(f"show {MARKUP}").click()
        drawn.until("it.view.start < 300000 && it.view.end > 300000")
        assert length(drawn.window) == pytest.approx(20_000)
        drawn.details.get_by_title("delete forward ends").click()
        assert drawn.of("it.flags.all.length") == 1
        seen.page.get_by_role("button", name="flags").click()
        drawn.details.wait_for(state="hidden")
        seen.page.wait_for_function("() => !location.search.includes('panel=')")
        assert "flags=17" in seen.page.url
        assert not seen.troubles


@pytest.mark.slow
def test_a_copied_link_shows_the_same(url, browser) -> None:
    """The address contains the visible range, the scroll position, the selection and the overlays."""
    state = """({ window: [it.view.start, it.view.end].map(Math.round), top: it.view.anchor(), shown: [...it.shown],
        selected: it.selected && [it.selected.rank, it.selected.event] })"""
    with visit(browser, f"{url}&show=counters") as seen:
        seen.page.set_viewport_size({"width": 1024, "height": 600})
        drawn = Drawn(seen)
        seen.page.mouse.click(*drawn.at(15_000, 0, "thread 1", depth=1))
        drawn.details.get_by_text("MmBackward0 (50 µs)").wait_for(timeout=PATIENCE_MS)
        drawn.of("it.movement.moveTo(5000, 90000)")
        seen.page.mouse.move(*drawn.on_page(600, 100))
        seen.page.mouse.wheel(0, 130)
        drawn.until("it.view.scroll > 0")
        seen.page.wait_for_function("() => /window=.*/.test(location.search) && /top=/.test(location.search)")
        seen.page.wait_for_timeout(600)
        first, address = drawn.of(state), seen.page.url
        assert "run=" in address
    with visit(browser, address) as seen:
        seen.page.set_viewport_size({"width": 1024, "height": 600})
        drawn = Drawn(seen)
        drawn.details.get_by_text("MmBackward0 (50 µs)").wait_for(timeout=PATIENCE_MS)
        drawn.until("it.view.scroll > 0")
        seen.page.wait_for_timeout(400)

        assert drawn.of(state) == first
        assert not seen.troubles


@pytest.mark.slow
def test_the_window_of_the_address_comes_before_the_zoom_to_its_event(url, browser) -> None:
    """With `window=` in the address, the event is selected without zooming to it.

    Key `0` shows the whole recording and removes `window` from the address.
    """
    with visit(browser, f"{url}&ranks=0{WINDOW}&find=gemm") as seen:
        Drawn(seen, ranks=1)
        seen.page.wait_for_function("() => location.search.includes('event=')")
        seen.page.keyboard.press("0")
        seen.page.wait_for_function("() => !location.search.includes('window=')")
        address = seen.page.url
    with visit(browser, address + WINDOW) as seen:
        drawn = Drawn(seen, ranks=1)
        heading(drawn, "gemm")
        assert drawn.window == (40_000, 140_000)
        seen.page.keyboard.press("0")
        assert drawn.window == (0, LENGTH_NS)
        assert not seen.troubles


@pytest.mark.slow
def test_a_visitor_who_has_moved_the_view_stays_there(url, browser) -> None:
    """If the visitor moves the view before the requested event arrives, the event is selected without zooming to it."""
    address = f"{url}&ranks=0{WINDOW}&find=gemm"
    with visit(browser, address) as seen:
        held: list[Route] = []
        seen.page.route("**/timeline/event?*", lambda route: held.append(route))  # noqa: PLW0108 -- playwright sets an attribute of the function
        seen.page.goto(address)
        drawn = Drawn(seen, ranks=1)
        drawn.until("it.selected !== null")
        seen.page.keyboard.press("0")
        assert drawn.window == (0, LENGTH_NS)
        held[0].continue_()
        heading(drawn, "gemm")
        assert drawn.window == (0, LENGTH_NS)
        assert not seen.troubles


@pytest.mark.slow
def test_the_question_mark_lists_the_keys(url, browser) -> None:
    """`?` opens a dialog with the keys for moving between events and for setting flags."""
    with visit(browser, url) as seen:
        Drawn(seen)
        seen.page.keyboard.press("?")
        keys = seen.page.get_by_role("dialog", name="Keys")
        keys.wait_for()
        text = keys.inner_text()
        assert all(meaning in text for meaning in ("next event on the row", "with the same name", "set a flag"))
        seen.page.keyboard.press("Escape")
        keys.wait_for(state="hidden")
        assert not seen.troubles
