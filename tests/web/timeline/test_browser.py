"""In a real browser, the timeline draws events and reacts to keys, mouse and selection."""

from __future__ import annotations

from functools import partial

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, visit
from drawn_timeline import LABELS_PX, LENGTH_NS, RULER_PX, Drawn, length, serving
from holotrace.testing import write_job
from holotrace.web.timeline import routes
from jobs import MARKUP

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.mark.slow
def test_a_search_in_the_address_selects_the_longest_match(url, browser) -> None:
    """`find=` in the address selects the longest kernel with that name, and shows its details and launch."""
    with visit(browser, f"{url}&find={MARKUP}") as seen:
        drawn = Drawn(seen)
        drawn.details.get_by_text("launch", exact=True).wait_for(timeout=PATIENCE_MS)

        assert drawn.details.locator("h2").inner_text() == MARKUP
        assert "kernel of 10 µs at 240 µs" in drawn.details.locator("p").inner_text()
        assert drawn.details.locator("li button").first.inner_text() == "cudaLaunchKernel (1 µs)"
        assert "event=0:" in seen.page.url
        assert drawn.window == (225_000, 265_000)
        seen.keep("timeline-selected")
        seen.page.keyboard.press("Escape")
        drawn.details.wait_for(state="hidden")
        assert "event=" not in seen.page.url
        assert not seen.troubles


@pytest.mark.slow
def test_keys_move_through_time(url, browser) -> None:
    """W and S zoom, A and D pan, and 0 shows everything; arrow keys work only while the canvas has the focus."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        everything = drawn.window
        for key, moved in (
            ("w", lambda before, after: length(after) < 0.9 * length(before)),
            ("d", lambda before, after: after[0] > before[0] and after[1] > before[1]),
            ("a", lambda before, after: after[0] < before[0] and after[1] < before[1]),
            ("s", lambda before, after: length(after) > 1.1 * length(before)),
        ):
            drawn.hold_until(key, partial(moved, drawn.window))
        drawn.hold_until("w", lambda window: length(window) < 0.9 * LENGTH_NS)
        before = drawn.window
        drawn.hold("ArrowRight")
        assert drawn.window == before
        seen.page.locator(".holotrace-timeline-view canvas").focus()
        drawn.hold_until("ArrowRight", lambda window: window[0] > before[0])
        seen.page.keyboard.press("0")

        assert drawn.window == everything == (0, LENGTH_NS)
        assert not seen.troubles


@pytest.mark.slow
def test_ranks_of_two_hosts_are_on_one_clock(tmp_path, browser) -> None:
    """The clocks of two hosts differ by up to 50 ms, but on the timeline, both end the last collective simultaneously.

    The headings name the hosts and show how uncertain each corrected clock is.
    """
    write_job(tmp_path, ranks=2, ranks_per_host=1, steps=2, clock_offset_us=50_000)
    ends = """[...it.ranks[%d].lanes.values()].flat().filter((slice) => slice.name.text.startsWith("ncclDev"))
        .map((slice) => slice.start + slice.length + it.ranks[%d].offset)"""
    with serving(tmp_path) as address, visit(browser, address) as seen:
        drawn = Drawn(seen)
        drawn.until("it.ranks.every(({ clock }) => clock.host)")
        reference, other = drawn.of("it.ranks.map(({ clock }) => clock)")
        first = max(drawn.of(ends % (0, 0)))
        seen.keep("timeline-two-hosts")
        drawn.of("(it.view.scroll = it.view.bottom, it.changed())")
        drawn.until(f"({ends % (1, 1)}).length")
        second = max(drawn.of(ends % (1, 1)))

        assert (reference["host"], reference["halfWidth"], other["host"]) == ("node-00", 0, "node-01")
        assert abs(other["lines"][0]["offset"]) > 1_000_000
        assert abs(first - second) <= other["halfWidth"]
        assert not seen.troubles


def test_the_mouse_moves_through_time(url, browser) -> None:
    """The mouse wheel zooms with Ctrl and pans with Shift; dragging pans too."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        pointer = drawn.at(100_000, 0, "stream 7")
        seen.page.mouse.move(*pointer)
        seen.page.keyboard.down("Control")
        seen.page.mouse.wheel(0, -300)
        seen.page.keyboard.up("Control")
        drawn.until("it.view.end - it.view.start < 300000")
        assert drawn.at(100_000, 0, "stream 7")[0] == pytest.approx(pointer[0], abs=1)

        before = drawn.window
        seen.page.keyboard.down("Shift")
        seen.page.mouse.wheel(0, 120)
        seen.page.keyboard.up("Shift")
        drawn.until(f"it.view.start > {before[0] + 1_000}")
        before = drawn.window
        drawn.drag(pointer, (pointer[0] + 200, pointer[1]))
        assert drawn.window[0] < before[0]
        assert length(drawn.window) == pytest.approx(length(before))
        assert not seen.troubles


@pytest.mark.slow
def test_a_click_shows_the_details_of_an_event(url, browser) -> None:
    """The details of an operator link to the step that contains it, its kernel and its backward operator."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        seen.page.mouse.click(*drawn.at(15_000, 1, "thread 1", depth=1))
        drawn.details.get_by_text("MmBackward0 (50 µs)").wait_for(timeout=PATIENCE_MS)

        facts = drawn.details.locator("dl").inner_text()
        relations = [line.inner_text() for line in drawn.details.locator("li").all()]
        assert "[[2, 3]]" in facts
        assert "1700000000000010000" in facts
        assert sorted(line.split("\n")[0] for line in relations) == [
            "backwardMmBackward0 (50 µs)",
            "insideProfilerStep#1 (200 µs)",
            "workgemm (100 µs)",
        ]
        assert drawn.of("it.links.map((link) => link.relation).sort().join()") == "backward,work"
        seen.keep("timeline-arrows")
        drawn.details.get_by_text("gemm (100 µs)").click()
        drawn.details.get_by_text("cudaLaunchKernel (1 µs)").wait_for(timeout=PATIENCE_MS)
        assert "kernel of 100 µs at 50 µs, rank 1" in drawn.details.locator("p").inner_text()
        assert not seen.troubles


@pytest.mark.slow
def test_search_steps_through_the_matches(url, browser) -> None:
    """Enter goes from the first match to the second and back; typing in the search box does not move the view."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        before = drawn.window
        seen.page.keyboard.press("/")
        seen.page.keyboard.type("gemm")
        drawn.status.get_by_text("2 found", exact=True).wait_for()
        assert drawn.window == before
        for number in (1, 2, 1):
            seen.page.keyboard.press("Enter")
            drawn.status.get_by_text(f"{number} of 2 found").wait_for()
        seen.page.keyboard.press("Shift+Enter")
        drawn.status.get_by_text("2 of 2 found").wait_for()

        assert drawn.of("it.selected.rank") == 1
        assert not seen.troubles


@pytest.mark.slow
def test_a_span_on_the_ruler_is_described(url, browser) -> None:
    """A drag on the ruler selects a span, whose totals and busy times are shown.

    F zooms to the span, and the address contains it.
    """
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        drawn.drag(drawn.ruler(100_000), drawn.ruler(200_000))
        drawn.details.locator(".holotrace-totals").wait_for(timeout=PATIENCE_MS)
        span = drawn.of("it.span")
        tables = [table.inner_text() for table in drawn.details.locator("table").all()]

        assert [span["start"], span["end"]] == pytest.approx([100_000, 200_000], abs=1_000)  # type: ignore[index]  # an object
        assert "GPU 0 stream 7\t50 %" in tables[1].replace("\n", "")
        assert "gemm" in tables[0]
        assert "at=1700000000000" in seen.page.url
        seen.keep("timeline-span")
        seen.page.keyboard.press("f")
        assert drawn.window == (span["start"], span["end"])  # type: ignore[index]  # an object
        address = seen.page.url
        seen.page.keyboard.press("Escape")
        drawn.details.wait_for(state="hidden")
        assert "at=" not in seen.page.url
        seen.page.goto(address)
        again = Drawn(seen)
        again.details.locator(".holotrace-totals").wait_for(timeout=PATIENCE_MS)
        assert again.of("it.span") == span
        assert not seen.troubles


@pytest.mark.slow
def test_a_span_with_shift_covers_the_rows_that_it_touches(url, browser) -> None:
    """If a span is dragged with Shift over a stream of rank 0, its totals exclude threads and other ranks."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        x, y = drawn.at(100_000, 0, "stream 7")
        seen.page.keyboard.down("Shift")
        drawn.drag((x, y - 3), (drawn.at(200_000, 0, "stream 7")[0], y + 3))
        seen.page.keyboard.up("Shift")
        drawn.details.locator(".holotrace-totals").wait_for(timeout=PATIENCE_MS)

        assert [caption.inner_text() for caption in drawn.details.locator("caption").all()] == [
            "Totals: 1 event with 1 name50 µs in all rows together",
            "rank 0",
        ]
        assert drawn.window == (0, LENGTH_NS)
        assert not seen.troubles


@pytest.mark.slow
def test_m_selects_the_span_of_the_selected_event(url, browser) -> None:
    """If a kernel of 100 µs is selected, key M makes its time range the selected span."""
    with visit(browser, f"{url}&ranks=0&find=gemm") as seen:
        drawn = Drawn(seen, ranks=1)
        drawn.details.get_by_text("launch", exact=True).wait_for(timeout=PATIENCE_MS)
        seen.page.keyboard.press("m")
        drawn.details.get_by_text("100 µs from 50 µs to 150 µs").wait_for(timeout=PATIENCE_MS)

        assert drawn.of("[it.span.start, it.span.end]") == [50_000, 150_000]
        assert not seen.troubles


@pytest.mark.slow
def test_the_critical_path_is_drawn_over_the_events(url, browser) -> None:
    """The critical path of the second-to-last step, or of a span, is drawn; a click on a segment selects its event."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        seen.page.get_by_role("button", name="critical path").click()
        drawn.until("it.ranks.every((rank) => rank.path)")
        legend = seen.page.locator(".holotrace-timeline-legend")
        legend.get_by_role("button", name="critical path of rank 0, ProfilerStep#1").click()
        assert drawn.window[0] == pytest.approx(-4_000)
        seen.page.keyboard.press("0")
        assert "show=path" in seen.page.url
        assert drawn.of("it.ranks[0].path.marks.size") > 0  # type: ignore[operator]  # a number
        seen.keep("timeline-critical-path")
        seen.page.mouse.click(*drawn.band("path", 60_000, 0))
        drawn.details.locator("h2").wait_for()
        assert drawn.of("it.selected.rank") == 0

        drawn.drag(drawn.ruler(210_000), drawn.ruler(380_000))
        drawn.details.get_by_role("button", name="critical path of this span").click()
        legend.get_by_text("critical path of rank 0, time range").wait_for(timeout=PATIENCE_MS)
        seen.page.get_by_role("button", name="critical path", exact=True).click()
        legend.get_by_text("computation").wait_for()
        assert "show=" not in seen.page.url
        assert not seen.troubles


@pytest.mark.slow
def test_findings_are_marked_and_listed(url, browser) -> None:
    """The idle GPU and the wait for rank 1 are marked and listed; a click on a mark or entry shows its time range."""
    with visit(browser, f"{url}&show=findings") as seen:
        drawn = Drawn(seen)
        wait = drawn.details.get_by_role("button", name="waits 60 µs for rank 1 in all_reduce")
        wait.wait_for(timeout=PATIENCE_MS)
        drawn.until("it.toolbar.status.textContent === ''")
        seen.keep("timeline-findings")
        wait.click()
        assert drawn.window == (170_000, 410_000)
        drawn.until("it.selected && it.selected.at")
        assert drawn.of("it.view.shows(it.selected.rank, it.selected.at[0], it.selected.at[1])")
        assert wait.is_visible()
        seen.page.keyboard.press("0")
        seen.page.mouse.move(*drawn.band("findings", 200_000, 0, below=3))
        seen.page.locator(".holotrace-timeline-tip").get_by_text("GPU 0 is idle for 90 µs").wait_for()
        seen.page.mouse.click(*drawn.band("findings", 200_000, 0, below=3))
        assert drawn.of("[it.focus.start, it.focus.end]") == [150_000, 240_000]
        assert not seen.troubles


@pytest.mark.slow
def test_counters_show_their_values(url, browser) -> None:
    """The counter of GPU 0 shows 100 % at 100 µs and 0 % at 200 µs."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        drawn.until("it.ranks[0].counters.length && it.ranks[0].counters[0].series")
        tip = seen.page.locator(".holotrace-timeline-tip")
        for time_ns, text in ((100_000, "GPU 0 busy\n100 %"), (200_000, "GPU 0 busy\n0.0 %")):
            seen.page.mouse.move(*drawn.band("counter", time_ns, 0))
            assert tip.inner_text() == text
        labels = drawn.of("it.ranks[0].counters.map((counter) => counter.label)")
        assert {"GPU 0 busy", "queue of stream 7", "queue of stream 20"} <= set(labels)  # type: ignore[call-overload]  # texts
        assert not seen.troubles


@pytest.mark.slow
def test_threads_and_ranks_fold(url, browser) -> None:
    """A click on a rank's label hides its rows; a click on a thread's label hides its nested calls."""
    with visit(browser, url) as seen:
        drawn = Drawn(seen)
        before = drawn.of("it.view.bottom")
        seen.page.mouse.click(drawn.on_page(LABELS_PX / 2, 0)[0], drawn.at(0, 0, "thread 1")[1])
        lower = drawn.of("it.view.bottom")
        seen.page.mouse.click(*drawn.on_page(40, RULER_PX + 10))

        assert before > lower > drawn.of("it.view.bottom")  # type: ignore[operator]  # numbers
        assert drawn.of("it.view.items.filter((item) => item.rank.number === 0).length") == 1
        assert not seen.troubles


@pytest.mark.parametrize(
    ("scheme", "expected"), [pytest.param("light", (255, 255, 255), marks=pytest.mark.slow), ("dark", (23, 28, 35))]
)
def test_the_canvas_has_the_colours_of_the_page(url, browser, scheme, expected) -> None:
    """The canvas is white in light mode and #171c23 in dark mode."""
    with visit(browser, url, color_scheme=scheme) as seen:
        Drawn(seen)
        wanted = ",".join(map(str, expected))
        seen.page.wait_for_function(
            "() => document.querySelector('.holotrace-timeline-view canvas').getContext('2d')"
            f".getImageData(3, 3, 1, 1).data.slice(0, 3).join() === '{wanted}'",
            timeout=PATIENCE_MS,
        )
        seen.keep(f"timeline-{scheme}")
        assert not seen.troubles


def test_a_row_of_a_table_leads_to_the_timeline(url, browser) -> None:
    """A table row links to its event on the timeline, or else to its time, or else to a search for its name."""
    with visit(browser, url) as seen:
        link = "window.dash_clientside.holotrace.timeline([[{}]])[0]"
        row = "{'rank|exact': '1', rank: '1', 'name|exact': 'gemm'%s}"
        for more, expected in (
            ("", "find=gemm"),
            (", 'event_index|exact': '1,234'", "event=1:1234"),
            (", 'at_ns|exact': '1,700,000,000,000,050,000 ns'", "at=1700000000000050000"),
            (", 'start_ns|exact': '50 ns', 'duration_ns|exact': '1,000 ns'", "at=50-1050"),
        ):
            address = seen.page.evaluate(link.replace("{}", row % more))
            assert address.startswith("?view=timeline")
            assert f"{expected}&ranks=1" in address


@pytest.mark.slow
def test_a_click_on_a_table_goes_to_the_timeline(url, browser) -> None:
    """After a click on a kernel's table row, the link `in the timeline` selects the longest kernel with that name."""
    with visit(browser, url.replace("view=timeline", "view=kernel_breakdown")) as seen:
        row = seen.page.locator("#page .ag-center-cols-container .ag-row").filter(has_text="gemm").first
        row.click(timeout=PATIENCE_MS)
        seen.page.get_by_role("link", name="in the timeline").first.click()
        drawn = Drawn(seen, ranks=2)
        drawn.details.locator("h2").get_by_text("gemm").wait_for(timeout=PATIENCE_MS)

        assert drawn.window == (-100_000, 300_000)
        assert not seen.troubles


@pytest.mark.slow
def test_a_row_about_one_event_leads_to_that_event(url, browser) -> None:
    """The link of a critical-path segment selects exactly the segment's event, not another event with the same name."""
    with visit(browser, url.replace("view=timeline", "view=critical_path")) as seen:
        table = seen.page.locator("#page section.holotrace-table", has_text="The longest segments of each path")
        row = table.locator(".ag-center-cols-container .ag-row").first
        link = table.get_by_role("link", name="in the timeline")
        while not link.count():  # rows are visible before they can be selected
            row.click(timeout=PATIENCE_MS)
            seen.page.wait_for_timeout(500)
        rank, event, name, *_ = row.inner_text().split("\n")
        link.click()
        drawn = Drawn(seen, ranks=1)
        drawn.details.locator("h2").get_by_text(name).wait_for(timeout=PATIENCE_MS)

        assert drawn.of("[it.selected.rank, it.selected.event]") == [int(rank), int(event)]
        assert not seen.troubles


def test_the_time_in_the_address_is_shown(url, browser) -> None:
    """`at=START-END` in the address selects the span and shows it with a margin."""
    with visit(browser, f"{url}&at=1700000000000100000-1700000000000150000") as seen:
        drawn = Drawn(seen)
        drawn.details.get_by_text("50 µs from 100 µs to 150 µs").wait_for(timeout=PATIENCE_MS)
        assert drawn.window == (25_000, 225_000)
        assert not seen.troubles


@pytest.mark.slow
def test_the_time_in_the_address_may_be_on_the_clock_of_a_rank(tmp_path, browser) -> None:
    """The times in `at=1:START-END` are on rank 1's clock; the span is selected on the axis, and rank 1 is shown."""
    write_job(tmp_path, ranks=2, ranks_per_host=1, steps=2, clock_offset_us=50_000)
    with serving(tmp_path) as address:
        with visit(browser, address) as seen:
            drawn = Drawn(seen)
            drawn.until("it.ranks.every(({ clock }) => clock.host)")
            origin, shift = drawn.of("[String(it.ranks[1].origin), it.ranks[1].offset]")  # type: ignore[misc]  # a text and a number
        with visit(browser, f"{address}&at=1:{int(origin) + 1_000_000}-{int(origin) + 2_000_000}") as seen:
            drawn = Drawn(seen, ranks=None)  # the details may cover rank 1 before its events arrive
            drawn.details.get_by_text("1 ms from").wait_for(timeout=PATIENCE_MS)

            start, end = drawn.of("[it.span.start, it.span.end]")  # type: ignore[misc]  # two numbers
            assert (start, end) == pytest.approx((shift + 1_000_000, shift + 2_000_000), abs=1_000)
            assert drawn.of("it.view.isVisible(it.view.items.find(({ rank }) => rank.number === 1))")
            assert not seen.troubles


@pytest.mark.slow
def test_ranks_that_are_left_out_are_counted(url, browser, monkeypatch) -> None:
    """With a limit of one rank, the page says `1 of 2 ranks`; a link to an event on rank 1 shows both ranks."""
    monkeypatch.setattr(routes, "MOST_RANKS", 1)
    with visit(browser, url) as seen:
        seen.page.get_by_text("1 of 2 ranks shown; choose others above").wait_for(timeout=PATIENCE_MS)
        event = Drawn(seen, ranks=1).of("it.ranks[0].lanes.get('0/0')[0].event")
    with visit(browser, f"{url}&event=1:{event}") as seen:
        drawn = Drawn(seen, ranks=2)
        assert "rank 1" in drawn.details.locator("p").inner_text()
        assert not seen.troubles


@pytest.mark.slow
@pytest.mark.parametrize(("chosen", "title"), [("", "2 ranks"), ("&ranks=1", "rank 1")])
def test_perfetto_on_its_site_gets_the_trace_by_message(url, browser, chosen, title) -> None:
    """The page sends PING to Perfetto's window and, when PONG comes back, sends the trace file.

    If several ranks are selected, their files are merged first.
    """
    stand_in = """
        window.opener && window.addEventListener("message", ({ data, source, origin }) => {
            if (data === "PING") { source.postMessage("PONG", origin); }
            else { document.title = `${data.perfetto.title}: ${data.perfetto.buffer.byteLength} bytes`; }
        });
    """
    which = "rank=1" if chosen else "ranks=0,1"
    with visit(browser, url + chosen) as seen:
        Drawn(seen, ranks=1 if chosen else 2)
        seen.page.context.route(
            "https://ui.perfetto.dev/**",
            lambda route: route.fulfill(body=f"<script>{stand_in}</script>", content_type="text/html"),
        )
        with seen.page.expect_popup() as opened:
            seen.page.get_by_role("button", name="Open in Perfetto").click()
        opened.value.wait_for_function("() => document.title.includes('bytes')", timeout=PATIENCE_MS)
        size = seen.page.evaluate(
            f"async () => (await (await fetch(`timeline/file?run=${{window.holotrace.timeline.run}}&{which}`)).arrayBuffer()).byteLength"
        )
        assert opened.value.title() == f"{title}: {size} bytes"
