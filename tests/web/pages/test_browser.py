"""In a real browser, every page shows the content of the trace and says what was not recorded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

import polars as pl
from dash import html

import holotrace
import holotrace.figures
from browsing import PATIENCE_MS, expect_rows, run_called, serving, visit, walk
from holotrace.html_report.report import Contents, write_report
from holotrace.ingest.file_health import file_health
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from holotrace.units import unbroken
from holotrace.web.pages import PAGES
from holotrace.web.parts.page import Page, Table
from holotrace.web.parts.slow_parts import part
from holotrace.web.server.server import Address, bound_server
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Scope, Session
from holotrace.web.shell import app
from holotrace.web.tables.box import table_box
from holotrace.whole_job.summary import summary
from jobs import HOSTILE, gpu_job, hostile_job
from matrices import slow_except

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
"""The time limit is long, because pages are slow on a busy machine."""


@pytest.fixture(scope="module")
def served(log_folder):
    """Serve the real traces."""
    with serving(log_folder) as session_and_url:
        yield session_and_url


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Serve a job of two ranks."""
    folder = tmp_path_factory.mktemp("small")
    gpu_job().write(folder)
    with serving(folder) as session_and_url:
        yield session_and_url


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dlrm_8rank", "ddp_gloo_4rank", "cpu_only"])
def test_every_page_shows_its_figure_and_tables(served, browser, name, real_traces) -> None:
    """Every page of a real trace shows its figure and rows, or says why it has none."""
    session, url = served
    scope = Scope(run_called(session, name, real_traces))
    with visit(browser, url + Selection(run=scope.run).query()) as seen:
        frame = seen.page.main_frame
        seen.settle(frame, "Overview")
        for page in walk(seen, frame, session, scope):
            seen.keep(f"{name}-{page}")


@pytest.mark.parametrize("name", slow_except(["dlrm_8rank", "cpu_only"], ["cpu_only"]))
def test_the_first_page_shows_the_verdict(served, browser, name, real_traces) -> None:
    """The overview shows the verdict of `holotrace summary`, for jobs with and without GPU work."""
    session, url = served
    scope = Scope(run_called(session, name, real_traces))
    with visit(browser, url + Selection(run=scope.run).query()) as seen:
        seen.settle(seen.page.main_frame, "Overview")
        assert unbroken(summary(session.trace(scope)).verdict) in seen.page.locator(".holotrace-verdict").inner_text()


@pytest.mark.slow
def test_health_lists_every_file(served, browser, real_traces) -> None:
    """The health page lists every file of the run."""
    session, url = served
    selection = Selection("health", run=run_called(session, "dlrm_8rank", real_traces))
    count = len(file_health(session.whole(selection.scope.run)))
    with visit(browser, url + selection.query()) as seen:
        seen.settle(seen.page.main_frame, "Health")
        expect_rows(seen.page.locator("section.holotrace-table").first, count)
        assert not seen.troubles


@pytest.mark.slow
def test_a_search_narrows_the_table_and_stays_in_the_address(small, browser) -> None:
    """Searching for `gemm` leaves one row; opening the address with the search shows only that row."""
    session, url = small
    address = url + Selection("kernel_breakdown", run=session.runs[0].id).query()
    with visit(browser, address) as seen:
        seen.settle(seen.page.main_frame, "Kernel breakdown")
        box = seen.page.locator("section.holotrace-table", has_text="Kernels, over all ranks")
        expect_rows(box, 3)
        box.get_by_placeholder("search").fill("gemm")
        seen.page.wait_for_function("() => location.search.includes('q.kernel_breakdown.1=gemm')")
        expect_rows(box, 1)
        assert "gemm" in box.locator(".ag-row").inner_text()
        shared = seen.page.url
        assert not seen.troubles
    with visit(browser, shared) as again:
        again.settle(again.page.main_frame, "Kernel breakdown")
        again.page.wait_for_function("() => document.querySelector('input[value=gemm]')")
        assert not again.troubles


@pytest.mark.slow
@pytest.mark.parametrize("begins", ["typed", *slow_except(["a page on this disk", "a page of another site"], [])])
def test_the_address_with_the_token_opens_the_pages(browser, tmp_path, begins) -> None:
    """An address with the token works if typed, opened by the file that `--open` writes, or linked on another site.

    Once the page is open, the address bar no longer shows the token.
    """
    gpu_job().write(tmp_path / "job")
    with bound_server(Session([tmp_path / "job"], cache=False), Address(port=0)) as server:
        threading.Thread(target=server.run, daemon=True).start()
        address = server.url.partition("?")[0]
        with browser.new_context() as context, elsewhere(tmp_path) as other:
            page = context.new_page()
            if begins == "typed":
                page.goto(server.url)
            elif begins == "a page on this disk":
                page.goto(link_to(server.url, tmp_path / "open.html").as_uri())
            else:
                link_to(server.url, tmp_path / "link.html")
                page.goto(f"{other}/link.html")
                page.get_by_text("here").click()
            page.get_by_text("Verdict").wait_for(timeout=PATIENCE_MS)
            assert "token" not in page.url
            assert page.url.startswith(address)

            link_to(f"{address}?view=health", tmp_path / "shared.html")
            page.goto(f"{other}/shared.html")
            page.get_by_text("here").click()
            page.get_by_role("heading", name="Health").wait_for(timeout=PATIENCE_MS)
        with browser.new_context() as stranger:
            page = stranger.new_page()
            assert page.goto(address).status == 401
            assert "open the address that holotrace serve printed" in page.inner_text("body")


def link_to(url: str, path: Path) -> Path:
    """Write a page with a link to the address.

    If the page is named open.html, it also redirects to the address, like the file that `--open` writes.
    """
    leads = f'<meta http-equiv="refresh" content="0;url={url}">' if path.name == "open.html" else ""
    path.write_text(f'{leads}<a href="{url}">here</a>')
    return path


@contextmanager
def elsewhere(folder: Path) -> Iterator[str]:
    """Serve a folder under another host name of this machine, so that the browser treats it as another site."""
    handler = partial(QuietFiles, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


class QuietFiles(SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def buttons_of(seen) -> set[str]:
    """Return the names of the buttons on the figures."""
    seen.page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=PATIENCE_MS)
    seen.page.locator(".js-plotly-plot").first.hover()
    return set(seen.page.eval_on_selector_all(".modebar-btn", "all => all.map(button => button.dataset.title)"))


@pytest.mark.slow
def test_no_figure_offers_to_upload_itself(small, browser, tmp_path) -> None:
    """Figures have no upload button, whether on a page, in a report or in a file written by plotly."""
    session, url = small
    trace = session.whole(session.runs[0].id)
    whole = summary(trace)
    report, figure = tmp_path / "report.html", tmp_path / "figure.html"
    write_report(Contents("job", whole, file_health(trace)), report)
    figure.write_text(holotrace.figures.plot_idle_time(whole.results["idle_time"]).to_html(include_plotlyjs=True))
    for address in (f"{url}?view=idle_time", report.as_uri(), figure.as_uri()):
        with visit(browser, address) as seen:
            buttons = buttons_of(seen)
            assert any("Download" in button for button in buttons), address
            assert not [button for button in buttons if "Share" in button or "cloud" in button.lower()], address


LONG_ROWS = 500_000


def long_page() -> Page:
    """Return a page whose table has half a million rows."""
    numbers = pl.int_range(LONG_ROWS, eager=True)
    frame = pl.DataFrame({"operator": pl.select(pl.format("operator {}", numbers)).to_series(), "call_count": numbers})
    table = Table("Many rows", frame, "call_count")
    return Page(
        name="long",
        title="Long",
        question="Are all rows there?",
        section="",
        layout=lambda *_: html.Article([html.H1("Long"), part("rows")]),
        parts={"rows": lambda *_: table_box("long.0", table, Selection())},
        tables={"long.0": lambda *_: table},
    )


@pytest.mark.slow
def test_a_table_of_half_a_million_rows_scrolls_without_blank_rows(tmp_path, browser, monkeypatch) -> None:
    """After scrolling with the wheel or the scroll bar, every visible row is filled."""
    monkeypatch.setattr(app, "PAGES", (*PAGES, long_page()))
    gpu_job().write(tmp_path)
    rows_in_view = """() => {
      const box = document.querySelector('.ag-body-viewport, .ag-grid-scrolling-container').getBoundingClientRect();
      return [...document.querySelectorAll('.ag-center-cols-container .ag-row')].filter(row => {
        const {top, bottom} = row.getBoundingClientRect();
        return bottom > box.top + 1 && top < box.bottom - 1;
      }).map(row => [row.ariaRowIndex - 2, row.innerText.trim().split(/\\s*\\n\\s*/).join(' ')]);
    }"""
    filled = f"() => {{ const rows = ({rows_in_view})(); return rows.length > 10 && rows.every(row => row[1]); }}"
    with serving(tmp_path) as (_, url), visit(browser, f"{url}?view=long") as seen:
        seen.settle(seen.page.main_frame, "Long")
        grid = seen.page.locator(".ag-root-wrapper")
        grid.hover()
        for leap in (0, 400, 400, 400, 0.25, 0.9, 0.1, 1.0, 0.5):
            if isinstance(leap, float):
                scroll = "(box, part) => { box.scrollTop = part * (box.scrollHeight - box.clientHeight); }"
                seen.page.locator(".ag-body-viewport").evaluate(scroll, leap)
            else:
                seen.page.mouse.wheel(0, leap)
            seen.page.wait_for_timeout(100)  # the grid needs time to react
            seen.page.wait_for_function(filled, timeout=PATIENCE_MS)
            for number, text in seen.page.evaluate(rows_in_view):
                assert text == f"operator {number} {number:,}"
        assert number > LONG_ROWS / 3
        assert not seen.troubles


@pytest.mark.slow
def test_only_the_selected_rank_is_shown(small, browser) -> None:
    """With `ranks=1` in the address, the table has one row."""
    session, url = small
    with visit(browser, url + Selection("temporal_breakdown", run=session.runs[0].id, ranks=(1,)).query()) as seen:
        seen.settle(seen.page.main_frame, "Temporal breakdown")
        expect_rows(seen.page.locator("section.holotrace-table"), 1)
        assert not seen.troubles


def test_selectors_and_controls_of_tables_change_page_and_address(small, browser) -> None:
    """Selecting a rank or a grouping with the mouse changes page and address; so does the key for the next page."""
    session, url = small
    with visit(browser, url + Selection("kernel_breakdown", run=session.runs[0].id).query()) as seen:
        page, frame = seen.page, seen.page.main_frame
        seen.expect(frame, title="Kernel breakdown", figures=1, tables=2)
        box = page.locator("section.holotrace-table", has_text="Kernels, over all ranks")
        expect_rows(box, 3)
        box.get_by_placeholder("group by").click()
        page.get_by_role("option", name="kind", exact=True).click()
        page.wait_for_function("() => location.search.includes('by.kernel_breakdown.1=kernel_kind')")
        expect_rows(box, 2)
        page.get_by_placeholder("all 2 ranks").click()
        page.get_by_role("option", name="1", exact=True).click()
        page.wait_for_function("() => location.search.includes('ranks=1')")
        expect_rows(box, 1)
        page.keyboard.press("Escape")
        page.locator("h1").first.click()
        page.keyboard.press("]")
        seen.settle(frame, "Kernels")
        assert "ranks=1" in page.url
        page.keyboard.press("/")
        page.wait_for_function("() => document.activeElement.placeholder === 'search'")
        assert not seen.troubles


@pytest.mark.slow
def test_a_span_is_selected_and_cleared(tmp_path, browser) -> None:
    """If a run has two recordings, the page shows the newer one until the older one is selected."""
    for stamp, kernel in ((1700000000000, "gemm"), (1700000060000, "relu")):
        (file,) = TraceBuilder().kernel(kernel, start_us=0, duration_us=5).write(tmp_path)
        file.rename(tmp_path / f"host_1.{stamp}.pt.trace.json")
    with serving(tmp_path) as (_, url), visit(browser, f"{url}?view=kernel_breakdown") as seen:
        page, frame = seen.page, seen.page.main_frame
        seen.expect(frame, title="Kernel breakdown", figures=1, tables=2)
        assert "relu" in page.locator("#page").inner_text()
        page.get_by_placeholder("newest span").click()
        page.get_by_role("option", name="span 1 of 2").click()
        page.wait_for_function("() => location.search.includes('~1')")
        page.wait_for_function("() => document.querySelector('#page').innerText.includes('gemm')", timeout=PATIENCE_MS)
        assert not seen.troubles


NOT_MARKUP = "() => !document.querySelector('img[src=x], [onerror], #page script, .main-svg image')"


def test_names_from_a_trace_are_text(tmp_path, browser) -> None:
    """A kernel named `<img onerror…>` appears as text on the kernels page and on the timeline."""
    hostile_job().write(tmp_path / "<img src=x onerror=alert(2)>")
    with serving(tmp_path) as (session, url):
        for page in PAGES:
            if page.name not in {"kernels", "timeline"}:
                continue
            with visit(browser, url + Selection(page.name, run=session.runs[0].id).query()) as seen:
                seen.settle(seen.page.main_frame, page.title)
                assert seen.page.evaluate(NOT_MARKUP)
                assert page.name == "timeline" or HOSTILE in seen.page.locator("#page").inner_text()
                assert not seen.troubles


@pytest.mark.slow
def test_names_from_a_trace_are_text_on_every_page(tmp_path, browser) -> None:
    """Names of kernels and runs that contain `<img onerror…>` appear as text on every page."""
    hostile_job().write(tmp_path / "<img src=x onerror=alert(2)>")
    hostile_job().write(tmp_path / "other")
    with serving(tmp_path) as (session, url), visit(browser, url) as seen:
        frame = seen.page.main_frame
        seen.settle(frame, "Runs")
        seen.page.goto(url + Selection(run=session.runs[0].id).query())
        seen.settle(frame, "Overview")
        shown = set()
        for page in walk(seen, frame, session, Scope(session.runs[0].id)):
            assert frame.evaluate(NOT_MARKUP)
            shown |= {page} if HOSTILE in frame.locator("#page").inner_text() else set()
    assert {"kernels", "operators", "modules", "user_annotations", "kernel_breakdown", "diff"} <= shown


@pytest.mark.slow
def test_names_from_a_trace_are_text_in_the_report(tmp_path, browser) -> None:
    """Names with `<img onerror…>` appear as text in a report opened from disk."""
    opened = hostile_job().build()
    write_report(Contents(HOSTILE, summary(opened), file_health(opened)), tmp_path / "report.html")
    with visit(browser, (tmp_path / "report.html").as_uri()) as seen:
        seen.page.evaluate(
            "() => document.querySelectorAll('details.section').forEach(section => { section.open = true; })"
        )
        seen.page.wait_for_function("() => document.querySelectorAll('.main-svg').length > 9", timeout=PATIENCE_MS)
        assert seen.page.evaluate(NOT_MARKUP.replace("#page script", "main script"))
        assert HOSTILE in seen.page.locator("main").inner_text()
        seen.keep("report")
        assert not seen.troubles


@pytest.mark.slow
def test_the_button_switches_the_colours_of_pages_figures_and_tables(small, browser) -> None:
    """The button makes the page, its figures and its tables dark at once; after a reload, they are still dark."""
    session, url = small
    with visit(browser, url + Selection("idle_time", run=session.runs[0].id).query(), color_scheme="light") as seen:
        seen.settle(seen.page.main_frame, "Idle time")
        text = "() => getComputedStyle(document.querySelector('.js-plotly-plot .xtick text')).fill"
        light = seen.page.evaluate(text)
        seen.page.locator("#dark").click()
        seen.page.wait_for_function(
            "() => document.documentElement.dataset.mantineColorScheme === 'dark'"
            " && document.documentElement.dataset.agThemeMode === 'dark'"
        )
        seen.page.wait_for_function(f"before => ({text})() !== before", arg=light)
        seen.page.reload()
        seen.page.wait_for_function("() => document.documentElement.dataset.mantineColorScheme === 'dark'")
        assert not seen.troubles


@pytest.mark.slow
def test_tables_are_downloaded(small, browser) -> None:
    """The CSV link of a table downloads a header and all rows."""
    session, url = small
    with visit(browser, url + Selection("temporal_breakdown", run=session.runs[0].id).query()) as seen:
        seen.settle(seen.page.main_frame, "Temporal breakdown")
        with seen.page.expect_download() as download:
            seen.page.get_by_text("CSV", exact=True).first.click()
        lines = download.value.path().read_text(encoding="utf-8").splitlines()
        assert len(lines) == 3  # a header and two devices
        assert not seen.troubles


@pytest.mark.slow
def test_an_open_finding_stays_in_the_address(tmp_path, browser) -> None:
    """A click opens a finding and closes the previous one; the new address opens the same finding."""
    write_job(tmp_path, ranks=2, steps=3, layers=2)
    with serving(tmp_path) as (session, url), visit(browser, url + Selection(run=session.runs[0].id).query()) as seen:
        page = seen.page
        seen.settle(page.main_frame, "Overview")
        findings = page.locator("details[data-finding]")
        names = findings.evaluate_all("all => all.map(one => one.dataset.finding)")
        assert len(names) > 1
        for name, finding in zip(names, findings.all(), strict=True):
            finding.locator("summary").click()
            page.wait_for_function("name => location.search.includes(`finding=${name}`)", arg=name)
            assert page.locator("details[data-finding][open]").count() == 1
        shared = page.url
        page.goto("about:blank")
        page.goto(shared)
        seen.settle(page.main_frame, "Overview")
        assert page.locator("details[data-finding][open]").get_attribute("data-finding") == names[-1]
        assert not seen.troubles


@pytest.mark.slow
def test_two_ticked_runs_are_compared(tmp_path, browser) -> None:
    """The list of runs fits a phone, shows key facts of each run, and links to the comparison of two ticked runs."""
    for name, length_us in (("before", 100), ("after", 200)):
        builder = TraceBuilder().step(1, 0, 300).operator("aten::mm", start_us=1, duration_us=20)
        builder.kernel("gemm", start_us=40, duration_us=length_us, launch_us=10).write(tmp_path / name)
    with serving(tmp_path) as (_, url), visit(browser, url) as seen:
        page, frame = seen.page, seen.page.main_frame
        page.set_viewport_size({"width": 390, "height": 900})
        seen.settle(frame, "Runs")
        assert page.title() == "Runs · holotrace"
        assert page.locator("html").get_attribute("lang") == "en"
        assert page.locator(".holotrace-run-step").all_inner_texts() == ["300 µs", "300 µs"]
        assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert not page.get_by_role("link", name="Compare the two ticked runs").is_visible()
        page.keyboard.press("?")
        assert "next page" in page.get_by_role("dialog").inner_text()
        page.keyboard.press("Escape")
        for tick in page.get_by_role("checkbox").all():
            tick.check()
        page.get_by_role("link", name="Compare the two ticked runs").click()
        seen.expect(frame, title="Compare", figures=2)
        assert "aten::mm" in page.locator(".holotrace-answer").first.inner_text()
        assert page.title().startswith("Compare · ")
        assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert not seen.troubles
