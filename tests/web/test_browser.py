"""Every page, in a real browser, shows what the trace has and says what it has not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import REAL_TRACES, expect_analyses, expect_rows, figures, go_to, visit
from hta.ingest.file_health import file_health
from hta.overview import overview
from hta.web.pages import PAGES
from hta.web.server import Address, bound_server
from hta.web.session import Scope, Session
from hta.web.state import Selection
from jobs import MARKUP, gpu_job

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser"), pytest.mark.timeout(300)]
"""One browser and one server, whose pages are patient on a machine that does other things as well."""


@contextmanager
def serving(folder) -> Iterator[tuple[Session, str]]:
    """Serve a folder as `hta serve` does, and return its address."""
    session = Session([folder])
    with bound_server(session, Address(port=0)) as server:
        threading.Thread(target=server.run, daemon=True).start()
        yield session, server.url


@pytest.fixture(scope="module")
def served(log_folder):
    """The real traces."""
    with serving(log_folder) as session_and_url:
        yield session_and_url


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A job of two ranks with a kernel whose name is markup."""
    folder = tmp_path_factory.mktemp("small")
    gpu_job().write(folder)
    with serving(folder) as session_and_url:
        yield session_and_url


def run_called(session: Session, name: str) -> str:
    """Return the id of a run."""
    return next(run.id for run in session.runs if run.name == name)


@pytest.mark.parametrize("name", REAL_TRACES)
def test_every_page_shows_its_figure_and_table(served, browser, name) -> None:
    """Figure and rows of each analysis that the trace allows, and the reason for each that it does not."""
    session, url = served
    scope = Scope(run_called(session, name))
    with visit(browser, url + Selection(run=scope.run).query()) as seen:
        frame = seen.page.main_frame
        seen.settle(frame, "Overview")
        for page in PAGES:
            go_to(frame, page.name)
            seen.settle(frame, page.title)
            expect_analyses(frame, page.parts, session, scope)
            seen.keep(f"{name}-{page.name}")
        assert not seen.troubles


@pytest.mark.parametrize("name", ["resnet50", "cpu_only"])
def test_the_first_page_says_the_verdict(served, browser, name) -> None:
    """The sentence of `hta summary`, with GPU work and without."""
    session, url = served
    scope = Scope(run_called(session, name))
    with visit(browser, url + Selection(run=scope.run).query()) as seen:
        seen.settle(seen.page.main_frame, "Overview")
        assert figures(seen.page.main_frame) == (0 if name == "cpu_only" else 1)
        assert session.remembered(scope, "overview", overview).verdict in seen.page.locator(".hta-verdict").inner_text()


def test_health_lists_every_file(served, browser) -> None:
    """One row a file."""
    session, url = served
    selection = Selection("health", run=run_called(session, "dlrm_8rank"))
    count = len(file_health(session.whole(selection.scope.run)))
    with visit(browser, url + selection.query()) as seen:
        seen.settle(seen.page.main_frame, "Health")
        expect_rows(seen.page.locator("section.hta-table").first, count)
        assert not seen.troubles


def test_a_search_narrows_the_table_and_stays_in_the_address(small, browser) -> None:
    """Typing asks the server for the rows that match; the address leads another reader to the same rows."""
    session, url = small
    address = url + Selection("kernel_breakdown", run=session.runs[0].id).query()
    with visit(browser, address) as seen:
        seen.settle(seen.page.main_frame, "Kernel breakdown")
        box = seen.page.locator("section.hta-table", has_text="Kernels, over all ranks")
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


def test_a_rank_that_is_chosen_is_the_only_one_shown(small, browser) -> None:
    """The address of rank 1 shows rank 1."""
    session, url = small
    with visit(browser, url + Selection("temporal_breakdown", run=session.runs[0].id, ranks=(1,)).query()) as seen:
        seen.settle(seen.page.main_frame, "Temporal breakdown")
        expect_rows(seen.page.locator("section.hta-table"), 1)
        assert not seen.troubles


def test_names_from_a_trace_are_text(small, browser) -> None:
    """A kernel called `<script>…` is read, not run."""
    session, url = small
    with visit(browser, url + Selection("kernel_breakdown", run=session.runs[0].id).query()) as seen:
        seen.settle(seen.page.main_frame, "Kernel breakdown")
        assert MARKUP in seen.page.locator("#page").inner_text()
        assert not seen.troubles


def test_the_button_switches_the_colours_of_pages_figures_and_tables(small, browser) -> None:
    """Dark and back, without asking the server for the page again; the choice is remembered."""
    session, url = small
    with visit(browser, url + Selection("idle_time", run=session.runs[0].id).query(), color_scheme="light") as seen:
        seen.settle(seen.page.main_frame, "Idle time")
        text = "() => getComputedStyle(document.querySelector('.js-plotly-plot .gtitle')).fill"
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


def test_tables_are_downloaded(small, browser) -> None:
    """The link under a table gives all of its rows."""
    session, url = small
    with visit(browser, url + Selection("temporal_breakdown", run=session.runs[0].id).query()) as seen:
        seen.settle(seen.page.main_frame, "Temporal breakdown")
        with seen.page.expect_download() as download:
            seen.page.get_by_text("CSV", exact=True).first.click()
        lines = download.value.path().read_text(encoding="utf-8").splitlines()
        assert len(lines) == 3  # headings and two devices
        assert not seen.troubles
