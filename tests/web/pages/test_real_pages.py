"""Every page returns rows of a real trace to browser-like requests."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

pytest.importorskip("dash", reason="the extra web is not installed")
pytest.importorskip("dash_ag_grid", reason="the extra web is not installed")
pytest.importorskip("dash_mantine_components", reason="the extra web is not installed")

from holotrace.web.pages import PAGES
from holotrace.web.parts.page import Page
from holotrace.web.session.selection import Selection
from reference_data import IN_THE_REPOSITORY
from web_client import WebClient, texts

TRACES = IN_THE_REPOSITORY / "traces"
RECORDINGS = {
    "compiled_regions": "../../../examples/gpu/traces/compiled",
    "cupti_counters": "cupti",
    "inference": "../../../examples/gpu/traces/generation",
    "memory_timeline": "ddp_gloo_4rank",
    "modules": "ddp_gloo_4rank",
    "operator_memory": "ddp_gloo_4rank",
    "source_lines": "ddp_gloo_4rank",
}
"""Pages that need a special recording."""


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> WebClient:
    """Serve a copy of each recording as a run; a link out of the served folder would not be followed."""
    folder = tmp_path_factory.mktemp("real")
    for name in {"two_rank_128", *RECORDINGS.values()}:
        shutil.copytree(TRACES / name, folder / Path(name).name)
    return WebClient(folder)


def run_of(client: WebClient, page: str) -> str:
    """Return the id of the run with which a page is tested."""
    name = Path(RECORDINGS.get(page, "two_rank_128")).name
    return next(run.id for run in client.session.runs if run.name == name)


@pytest.mark.parametrize("page", [page for page in PAGES if page.tables], ids=lambda page: page.name)
def test_every_page_has_rows_of_a_real_recording(client, page: Page) -> None:
    """All parts of a page load without errors, and at least one table has rows."""
    selection = Selection(page.name, run=run_of(client, page.name))

    for name in page.parts:
        part = client.part(selection.query(), name)
        assert not {"Error", "Not in this recording"} & set(texts(part))
    assert any(len(make(client.session, selection).frame) for make in page.tables.values())


def test_only_the_timeline_and_the_list_of_runs_have_no_tables() -> None:
    """Every page except the list of runs and the timeline has tables."""
    assert [page.name for page in PAGES if not page.tables] == ["runs", "timeline"]


def test_the_timeline_has_slices_of_a_real_recording(client) -> None:
    """The timeline of a real recording has rows, and the first three have slices."""
    run = run_of(client, "timeline")
    rows = answer(client, f"/timeline/rows?run={run}&rank=0")
    slices = answer(client, f"/timeline/slices?run={run}&rank=0&start=0&end={rows['length']}&pixels=1000&rows=0,1,2")

    assert len(rows["rows"]) > 0
    assert len(slices["lanes"]) > 0


def answer(client: WebClient, path: str) -> dict[str, object]:
    """Poll until the response is ready."""
    while (response := client.get(path)).status_code == 202:
        time.sleep(0.05)
    assert response.status_code == 200, response.data
    return response.json
