"""Perfetto, which the extra `perfetto` installs, shows the merged timeline unchanged."""

from __future__ import annotations

import gzip
import json
import threading
from urllib.request import urlopen

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, visit
from holotrace.testing import write_job
from holotrace.web.server.server import Address, bound_server
from holotrace.web.session.session import Session
from holotrace.web.timeline.perfetto import perfetto_folder

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(perfetto_folder() is None, reason="the extra `perfetto` is not installed"),
]

QUERY = """
    async (sql) => {
        const result = await window.app.trace.engine.query(sql);
        const rows = [];
        for (const row = result.iter({}); row.valid(); row.next()) {
            rows.push(result.columns().map((name) => `${row.get(name)}`));
        }
        return rows;
    }
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory, browser):
    """Return the events of the merged file, and a function that runs SQL in the window of *Open in Perfetto*."""
    folder = tmp_path_factory.mktemp("job")
    write_job(folder, ranks=4, ranks_per_host=2, steps=3, clock_offset_us=50_000, clock_drift_ppm=100)
    with bound_server(Session([folder], cache=False), Address(port=0, has_token=False)) as server:
        threading.Thread(target=server.run, daemon=True).start()
        with visit(browser, f"{server.url}?view=timeline") as seen:
            seen.page.wait_for_function("() => window.holotrace?.timeline?.ranks.length === 4", timeout=PATIENCE_MS)
            with seen.page.expect_popup() as opened:
                seen.page.get_by_role("button", name="Open in Perfetto").click()
            opened.value.wait_for_function("() => window.app && window.app.trace", timeout=PATIENCE_MS)
            run = seen.page.evaluate("() => window.holotrace.timeline.run")
            with urlopen(f"{server.url.rstrip('/')}/timeline/file?run={run}&ranks=0,1,2,3") as file:  # noqa: S310
                content = json.loads(gzip.decompress(file.read()))
            yield content["traceEvents"], lambda sql: opened.value.evaluate(QUERY, sql)


def test_perfetto_reports_no_errors(shown) -> None:
    """The statistics of Perfetto report no errors and no lost data."""
    _, query = shown
    assert query("select name, value from stats where severity != 'info' and value > 0") == []


def test_perfetto_has_every_event_to_the_nanosecond(shown) -> None:
    """Each slice has the start and duration from the file, in whole nanoseconds; instants have no length."""
    events, query = shown
    written = sorted((ns(event["ts"]), ns(event.get("dur", 0))) for event in events if event["ph"] in "Xi")
    assert sorted((int(start), int(length)) for start, length in query("select ts, dur from slice")) == written


def test_perfetto_names_the_processes_and_draws_the_arrows(shown) -> None:
    """Process names include the clock error, such as `(± 2 µs)`, and every flow of the file is drawn as an arrow."""
    events, query = shown
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert {name for (name,) in query("select name from process where pid > 0")} == names
    assert any("(± " in name for name in names)
    assert query("select count(*) from flow") == [[str(sum(event["ph"] == "f" for event in events))]]


def ns(microseconds: float) -> int:
    """Convert a time in the file from microseconds to whole nanoseconds."""
    return round(1_000 * microseconds)
