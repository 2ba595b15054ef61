"""For a broken file, every page and timeline request gets a response that is not a server error."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip("dash", reason="the extra web is not installed")
pytest.importorskip("dash_ag_grid", reason="the extra web is not installed")
pytest.importorskip("dash_mantine_components", reason="the extra web is not installed")

from broken_files import BROKEN, write_broken
from holotrace.web.pages import PAGES
from holotrace.web.parts.page import Page
from holotrace.web.session.selection import Selection
from web_client import DEADLINE_S, WebClient, texts

QUICK = ("odd_inputs.json",)
ROWS = {"startRow": 0, "endRow": 20, "filterModel": {}, "sortModel": []}
ON_EVERY_FILE = ("overview", "timeline", "health")
FILES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in BROKEN]


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> WebClient:
    """Serve all broken files, each as a run."""
    folder = tmp_path_factory.mktemp("broken")
    write_broken(folder)
    return WebClient(folder)


def run_of(client: WebClient, name: str) -> str:
    """Return the id of the run with the given broken file."""
    return next(run.id for run in client.session.runs if run.name == name)


def pages_for(name: str) -> list[Page]:
    """Return the pages to test with a broken file.

    For a file in QUICK, these are all pages; for any other file, the pages in ON_EVERY_FILE and a third of all pages.
    A third of the pages is enough, because the tests of the command line compute and draw all results for every
    broken file.
    """
    third = list(BROKEN).index(name) % 3
    return [
        page for number, page in enumerate(PAGES) if name in QUICK or page.name in ON_EVERY_FILE or number % 3 == third
    ]


@pytest.mark.parametrize("name", FILES)
def test_every_page_answers(name, client, caplog) -> None:
    """Every page of a broken file shows text without a traceback, and nothing is logged as an error."""
    run = run_of(client, name)
    for page in pages_for(name):
        query = Selection(page.name, run=run).query()
        shown = [client.page(query), *(client.part(query, part) for part in page.parts)]
        shown_text = " ".join(text for part in shown for text in texts(part))
        assert "a bug in holotrace" not in shown_text, (page.name, shown_text)
        assert "Traceback" not in shown_text, (page.name, shown_text)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("name", FILES)
def test_the_timeline_answers(name, client) -> None:
    """Every timeline request for a broken file gets a status below 500."""
    asked = {"run": run_of(client, name), "rank": 0}
    rows = answer(client, "rows", **asked).json
    spans = {"start": 0, "end": max(1, rows["length"]), "pixels": 1000, "rows": f"0-{len(rows['rows'])}"}
    for address, parameters in {
        "ranks": {},
        "slices": spans,
        "counters": spans,
        "links": {"event": 0},
        "counter": {**spans, "counter": 0},
        "search": {"text": "a"},
        "span": spans,
        "event": {"event": 0},
        "path": spans,
        "findings": spans,
    }.items():
        assert answer(client, address, **asked, **parameters).status_code < 500, address


def answer(client: WebClient, address: str, **parameters: object) -> Any:
    """Poll an address of the timeline until its response is ready."""
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        response = client.http.get(f"/timeline/{address}", query_string=parameters)
        if response.status_code != 202:
            return response
        time.sleep(0.05)
    message = f"{address} was not ready in {DEADLINE_S} s"
    raise TimeoutError(message)
