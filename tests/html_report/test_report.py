"""The report: one HTML file that needs nothing else and trusts nobody."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from plotly.offline import get_plotlyjs

import holotrace
from holotrace.catalogue import ANALYSES
from holotrace.drawing.plotly_js import plotly_js_for
from holotrace.html_report import report
from holotrace.html_report.report import Contents, render_report, write_report
from holotrace.ingest.file_health import FileHealth, file_health
from holotrace.question import Analysis
from holotrace.store.trace import SkippedFile, Trace
from holotrace.testing.builder import TraceBuilder
from holotrace.units import percent_text
from holotrace.whole_job.summary import summary
from jobs import MARKUP, cpu_job, gpu_job

LARGEST_BYTES = 8_000_000


class Page(HTMLParser):
    """What a browser makes of a page: its elements, its scripts, its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        """Keep the element."""
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, _tag) -> None:
        """Text from now on belongs to the page."""
        self._inside = ""

    def handle_data(self, data) -> None:
        """Keep the text of scripts apart from what is read."""
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


def contents_of(trace: Trace, **changes) -> Contents:
    """Return what a report on a job shows."""
    return Contents(**{"source": "runs/42", "summary": summary(trace), "files": file_health(trace), **changes})


@pytest.fixture(scope="module")
def text() -> str:
    """The report on the small GPU job."""
    return render_report(contents_of(gpu_job().build()))


@pytest.fixture(scope="module")
def page(text) -> Page:
    """The same as a browser sees it."""
    return Page(text)


def test_the_verdict_stands_first(page) -> None:
    """After name and size of the job, the first thing said is the verdict."""
    found = summary(gpu_job().build()).verdict
    assert found in page.text
    assert page.text.index(found) < page.text.index("Temporal breakdown")


def test_the_page_names_no_other_address(text, page) -> None:
    """It works from disk without a network: nothing is loaded, nothing is sent."""
    sources = [attributes.get(name) for _, attributes in page.elements for name in ("src", "href", "action", "data")]
    assert all(source.startswith("#") for source in sources if source)
    ours = text.replace(page.scripts[1], "")
    assert not re.findall(r"https?://(?!www\.w3\.org)", ours)


def test_plotly_is_embedded_once(text) -> None:
    """It is most of the page's size; nothing in this job has modules, which alone need all of it."""
    assert text.count(plotly_js_for([])) == 1
    assert get_plotlyjs() not in text


def test_only_our_scripts_may_run(page) -> None:
    """The policy names the hash of each script, and forbids connections, frames, forms and plug-ins."""
    policy = next(each["content"] for each in page.named("meta") if each.get("http-equiv") == "Content-Security-Policy")
    data, *scripts = page.scripts
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert f"script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}';" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert json.loads(data)["figures"].keys() == {analysis.name for analysis in ANALYSES}


def test_no_script_hides_in_attributes(page) -> None:
    """Event handlers in attributes would be refused by the policy."""
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]


def test_names_from_a_trace_are_text(text, page) -> None:
    """A kernel called `<script>…` adds no element; its letters are there to read."""
    assert MARKUP in page.text
    assert MARKUP not in text
    assert len(page.named("script")) == 3


def test_every_text_from_outside_is_escaped() -> None:
    """Paths, errors, reasons, findings and options come from outside as well."""
    bad = "<img src=x onerror=alert(1)>\x1b"
    file = FileHealth(path=bad, rank=0, rank_origin="file name", error=bad)
    found = contents_of(gpu_job().build(), source=bad, files=(file,), skipped=(SkippedFile(bad, bad),))
    assert not Page(render_report(found)).named("img")


def test_every_analysis_has_its_place(page) -> None:
    """Heading, figure, tables, definitions and the line of Python."""
    places = {attributes.get("id") for _, attributes in page.elements}
    for analysis in ANALYSES:
        assert {analysis.name, f"figure-{analysis.name}"} <= places
        assert analysis.title in page.text
        assert f"holotrace.{analysis.name}(holotrace.open_trace('runs/42'))" in page.text
        assert all(term in page.text for term, _ in analysis.definitions)
        assert all(view.caption in page.text for view in analysis.views)


def test_an_analysis_without_rows_says_what_to_record(page) -> None:
    """Above its empty tables."""
    assert "rank 0 has no memory events" in page.text
    assert "record with profile_memory=True" in page.text


def test_figures_are_there_for_light_and_dark_pages(page) -> None:
    """The page switches between two templates."""
    assert json.loads(page.scripts[0])["templates"].keys() == {"light", "dark"}


def test_tables_are_bounded_and_say_so(monkeypatch) -> None:
    """Of more rows than a page bears, the most telling are kept and the rest are counted."""
    monkeypatch.setattr(report, "MOST_ROWS", (1,))
    text = Page(render_report(contents_of(gpu_job().build()))).text
    assert "1 of 2 rows, those with the largest “idle”. All of them: holotrace temporal-breakdown … --json" in text


def test_many_findings_are_folded_away() -> None:
    """A reader sees a dozen, and opens the rest."""
    found = replace(summary(gpu_job().build()), findings=tuple(f"finding {number}" for number in range(20)))
    text = Page(render_report(Contents("x", found, ()))).text
    assert "8 more" in text
    assert "finding 19" in text


def test_endless_findings_are_counted() -> None:
    """Of more than a reader would open, the rest are counted."""
    found = replace(summary(gpu_job().build()), findings=tuple(f"finding {number}." for number in range(2_000)))
    text = Page(render_report(Contents("x", found, ()))).text
    assert "The first 500 of 2,000. All of them: holotrace summary … --json" in text
    assert "finding 499." in text
    assert "finding 500." not in text


def test_findings_come_before_contents_and_contents_before_analyses(page) -> None:
    """First what was noticed and to try; then where to read on, by the headings of the pages."""
    finding = summary(gpu_job().build()).findings[0]
    contents = page.text.index("Contents")
    assert page.text.index(finding) < contents < page.text.index("What the words mean")
    linked = [each["href"] for each in page.named("a")]
    assert linked[-len(ANALYSES) - 1 :] == [f"#{analysis.name}" for analysis in by_section()] + ["#files"]


def by_section() -> list[Analysis]:
    """Return the analyses as the contents list them: headings in the order of their first analysis."""
    headings = list(dict.fromkeys(analysis.section for analysis in ANALYSES))
    return sorted(ANALYSES, key=lambda analysis: headings.index(analysis.section))


def test_tables_shrink_until_the_file_is_small_enough(monkeypatch) -> None:
    """Fewer rows rather than a file that no mail takes; the last number of rows is taken whatever comes of it."""
    found = contents_of(gpu_job().build())
    whole = len(render_report(found).encode())
    monkeypatch.setattr(report, "MOST_ROWS", (200, 1))
    monkeypatch.setattr(report, "MOST_BYTES", whole - 1)
    smaller = render_report(found)
    assert len(smaller.encode()) < whole
    assert "1 of 2 rows" in Page(smaller).text


def test_the_largest_figures_are_left_out_and_that_is_said(monkeypatch) -> None:
    """The page has a sentence where a figure would be, and no data for it."""
    monkeypatch.setattr(report, "MOST_FIGURE_BYTES", 0)
    page = Page(render_report(contents_of(gpu_job().build())))
    assert json.loads(page.scripts[0])["figures"] == {}
    assert page.text.count("The figure is left out: with it, this file would be larger than") == len(ANALYSES)
    assert not [each for each in page.named("div") if str(each.get("id")).startswith("figure-")]


def test_files_are_listed_with_their_health() -> None:
    """What was repaired is told with its place in the file."""
    trace = gpu_job().build()
    page = Page(render_report(contents_of(trace, skipped=(SkippedFile("notes.txt", "a text"),))))
    assert "rank0.pt.trace.json" in page.text
    assert "1 file left out" in page.text
    assert "notes.txt" in page.text


def test_repairs_are_listed(tmp_path) -> None:
    """A file that was cut off shows what was lost."""
    content = gpu_job().json()
    (tmp_path / "rank0.json").write_bytes(content[: len(content) // 2])
    text = Page(render_report(contents_of(holotrace.open_trace(tmp_path, cache=False)))).text
    assert "first at byte" in text


def test_a_job_without_gpu_work_has_a_report() -> None:
    """The CPU side instead of figures, and no heading without content."""
    page = Page(render_report(contents_of(cpu_job().build())))
    assert "No GPU work was recorded" in page.text
    assert "The CPU side of each rank" in page.text
    assert "Temporal breakdown, Kernel breakdown, Communication overlap, Idle time" in page.text
    assert "measure GPU work, so there is nothing for them to show" in page.text
    assert json.loads(page.scripts[0])["figures"].keys() >= {
        "critical_path",
        "user_annotations",
        "step_time",
        "distributed",
    }


@pytest.mark.slow
def test_a_report_on_many_ranks_stays_small(tmp_path) -> None:
    """128 ranks with long kernel names fit a page that opens at once."""
    name = "void f<" + "x" * 20_000 + ">()"
    builder = TraceBuilder()
    for rank in range(128):
        builder.rank(rank).kernel(name, start_us=0, duration_us=5).kernel("nccl", start_us=7, duration_us=rank + 1)
    write_report(contents_of(builder.build()), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < LARGEST_BYTES


def test_the_report_is_written_whole(tmp_path) -> None:
    """What is on disk is what was rendered, and nothing else lies beside it."""
    path = tmp_path / "report.html"
    path.write_text("older")
    write_report(contents_of(gpu_job().build()), path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_a_cpu_table_with_unknown_steps_is_printed() -> None:
    """A rank without steps has a dash."""
    found = summary(TraceBuilder().operator("aten::mm", start_us=0, duration_us=1).build())
    assert isinstance(found.cpu_side, pl.DataFrame)
    assert percent_text(None) in Page(render_report(Contents("x", found, ()))).text


def test_resources_are_plain_text() -> None:
    """The hash of a script is that of its text with plain line ends."""
    folder = Path(report.__file__).parent
    for name in ("script.js", "style.css", "template.html.j2"):
        assert b"\r" not in (folder / name).read_bytes()
