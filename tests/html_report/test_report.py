"""The report is one self-contained HTML file that treats text from traces as untrusted."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from plotly.offline import get_plotlyjs

import holotrace
from holotrace.catalogue import ANALYSES
from holotrace.drawing.names import printable
from holotrace.drawing.plotly_js import plotly_js_for, small_plotly_js
from holotrace.drawing.theme import SURFACES
from holotrace.errors import InvalidOptionError
from holotrace.html_report import report
from holotrace.html_report.report import Contents, render_report, write_report
from holotrace.ingest.file_health import FileHealth, file_health
from holotrace.questions.question import Analysis
from holotrace.store.trace import SkippedFile, Trace
from holotrace.testing import TraceBuilder, small_job
from holotrace.units import percent_text, unbroken
from holotrace.whole_job.summary import Summary, has_rows, summary, summary_of
from jobs import MARKUP, cpu_job, gpu_job

LARGEST_BYTES = 8_000_000


class Page(HTMLParser):
    """A parsed page: elements, scripts, and text with plain spaces between numbers and units."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        """Record an element; for a script element, begin a new script."""
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, _tag) -> None:
        """Treat the text after an element's end as visible."""
        self._inside = ""

    def handle_data(self, data) -> None:
        """Add the text to the current script or to the visible text; ignore text inside a style element."""
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data.replace("\u00a0", " ")

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements with the given tag."""
        return [attributes for name, attributes in self.elements if name == tag]


def everything(trace: Trace) -> Summary:
    """Return a summary with the results of all analyses, like the summary in a report."""
    return summary_of(trace, [analysis.name for analysis in ANALYSES])


def contents_of(trace: Trace, **changes) -> Contents:
    """Return the contents of a report."""
    return Contents(**{"source": "runs/42", "summary": everything(trace), "files": file_health(trace), **changes})


@cache
def contents_of_gpu_job() -> Contents:
    """Return the contents of the report on the small GPU job; they are computed once."""
    return contents_of(gpu_job().build())


def lacking_a_file(path: str, reason: str) -> Summary:
    """Return the summary of a job with a skipped file."""
    return replace(contents_of_gpu_job().summary, skipped=(SkippedFile(path, reason),))


@pytest.fixture(scope="module")
def text() -> str:
    """Return the HTML of the report on the small GPU job."""
    return render_report(contents_of_gpu_job())


@pytest.fixture(scope="module")
def page(text) -> Page:
    """Return the report on the small GPU job, parsed."""
    return Page(text)


def test_the_verdict_comes_first(page) -> None:
    """The verdict precedes the first analysis."""
    verdict = contents_of_gpu_job().summary.verdict
    assert verdict in page.text
    assert page.text.index(verdict) < page.text.index("Temporal breakdown")


def test_the_page_names_no_other_address(text, page) -> None:
    """The page works offline: neither its elements nor our scripts refer to another address."""
    sources = [attributes.get(name) for _, attributes in page.elements for name in ("src", "href", "action", "data")]
    assert all(source.startswith("#") for source in sources if source)
    ours = text.replace(page.scripts[1], "")
    assert not re.findall(r"https?://(?!www\.w3\.org)", ours)


@pytest.mark.skipif(small_plotly_js() is None, reason="this plotly has a different major version of plotly.js")
def test_plotly_is_embedded_once(text) -> None:
    """The page contains the small build of plotly.js once, and does not contain the full build."""
    assert text.count(plotly_js_for([])) == 1
    assert get_plotlyjs() not in text


def test_only_our_scripts_may_run(page) -> None:
    """The content security policy allows two scripts by their hashes and forbids everything else by default."""
    policy = next(meta["content"] for meta in page.named("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    data, *scripts = page.scripts
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert f"script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}';" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert json.loads(data)["figures"].keys() == {analysis.name for analysis in with_rows()}


def test_no_script_hides_in_attributes(page) -> None:
    """No element has an event handler such as `onclick`, which the content security policy would block."""
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]


def test_names_from_a_trace_are_text(text, page) -> None:
    """A kernel called `<script>…` is readable text and adds no script element."""
    assert MARKUP in page.text
    assert MARKUP not in text
    assert len(page.named("script")) == 3


def test_every_text_from_outside_is_escaped() -> None:
    """An `<img>` in a path, in an error or in the reason for a skipped file becomes text, not an element."""
    bad = "<img src=x onerror=alert(1)>\x1b"
    file = FileHealth(path=bad, rank=0, rank_origin="file name", error=bad)
    contents = Contents(bad, lacking_a_file(bad, bad), (file,))
    assert not Page(render_report(contents)).named("img")


def test_every_analysis_with_data_has_a_section(page) -> None:
    """The section of an analysis has a heading, the answer, a figure, tables, definitions and a line of Python."""
    ids = {attributes.get("id") for _, attributes in page.elements}
    results = contents_of_gpu_job().summary.results
    for analysis in with_rows():
        assert {analysis.name, f"figure-{analysis.name}"} <= ids
        assert analysis.title in page.text
        assert printable(results[analysis.name].answer) in page.text
        assert f"holotrace.{analysis.name}(holotrace.open_trace('runs/42'))" in page.text
        assert all(term in page.text for term, _ in analysis.definitions)


def test_only_the_first_section_is_open_when_the_page_is_opened(page) -> None:
    """Each section except the first is folded into one line with its title and answer."""
    sections = [details for details in page.named("details") if "section" in (details.get("class") or "")]
    assert len(sections) == len(with_rows()) + 1  # plus the section about the files
    assert [section["id"] for section in sections if "open" in section] == [by_section()[0].name]


def test_analyses_without_rows_say_what_to_record_in_one_folded_list(page) -> None:
    """The end of the page says that memory events are missing, and that profile_memory=True records them."""
    lacking = [analysis for analysis in ANALYSES if analysis not in with_rows()]
    heading = f"No data for {', '.join(analysis.title for analysis in lacking)}"
    assert page.text.index("Files and their health") < page.text.index(heading)
    reasons = page.text[page.text.index(heading) :]
    assert "no memory events were recorded" in reasons
    assert "record with profile_memory=True" in reasons
    assert not {f"figure-{analysis.name}" for analysis in lacking} & {
        attributes.get("id") for _, attributes in page.elements
    }


def test_figures_have_a_template_for_light_and_dark_pages(page) -> None:
    """The page contains a light and a dark figure template."""
    assert json.loads(page.scripts[0])["templates"].keys() == {"light", "dark"}


def test_long_tables_are_cut_with_a_note(monkeypatch) -> None:
    """A table cut to 1 of 2 rows keeps the row with more idle time; its note names the command that prints all rows."""
    monkeypatch.setattr(report, "MOST_ROWS", (1,))
    text = Page(render_report(contents_of_gpu_job())).text
    assert "The 1 of 2 rows with the largest “idle”. All rows: holotrace temporal-breakdown … --json" in text


def test_caveats_are_grouped_by_the_analysis_that_noticed_them() -> None:
    """Before the sections, a folded list gives the number of caveats, and groups the caveats by analysis."""
    whole = contents_of_gpu_job().summary
    text = Page(render_report(Contents("runs/42", whole, ()))).text
    count = len(whole.findings)
    assert f"{count} caveat{'s'[: count != 1]}" in text
    for finding in whole.findings:
        first = next(analysis for analysis in with_rows() if finding in whole.results[analysis.name].findings)
        group, told = text.index(first.title), text.index(finding)
        assert group < told < text.index("What the words mean")


def test_too_many_caveats_are_cut_with_a_note() -> None:
    """Of 2,000 caveats, the page lists 500; a note names the command that prints all of them."""
    many = replace(contents_of_gpu_job().summary, findings=tuple(f"finding {number}." for number in range(2_000)))
    text = Page(render_report(Contents("x", many, ()))).text
    assert "The first 500 of 2,000 caveats. All caveats: holotrace summary … --json" in text
    assert "finding 499." in text
    assert "finding 500." not in text


def with_rows() -> list[Analysis]:
    """Return the analyses with data in the small GPU job."""
    results = contents_of_gpu_job().summary.results
    return [analysis for analysis in ANALYSES if analysis.name in results and has_rows(results[analysis.name])]


def by_section() -> list[Analysis]:
    """Return the analyses with data, in the order of the page."""
    headings = list(dict.fromkeys(analysis.section for analysis in ANALYSES))
    return sorted(with_rows(), key=lambda analysis: headings.index(analysis.section))


@pytest.mark.slow
def test_tables_shrink_until_the_file_is_small_enough(monkeypatch) -> None:
    """A report above the size limit is written again with fewer rows in its tables."""
    contents = contents_of_gpu_job()
    whole = len(render_report(contents).encode())
    monkeypatch.setattr(report, "MOST_ROWS", (200, 1))
    monkeypatch.setattr(report, "MOST_BYTES", whole - 1)
    smaller = render_report(contents)
    assert len(smaller.encode()) < whole
    assert "1 of 2 rows" in Page(smaller).text


def test_figures_that_do_not_fit_are_left_out_with_a_note(monkeypatch) -> None:
    """If no figure fits into the size limit, a note replaces each figure, and the page contains no figure data."""
    monkeypatch.setattr(report, "MOST_FIGURE_BYTES", 0)
    page = Page(render_report(contents_of_gpu_job()))
    assert json.loads(page.scripts[0])["figures"] == {}
    assert page.text.count("This figure was omitted to keep the file below") == len(with_rows())
    assert not [div for div in page.named("div") if str(div.get("id")).startswith("figure-")]


def test_files_are_listed_with_their_health() -> None:
    """The page lists the files of the ranks, counts the skipped files and names them."""
    page = Page(render_report(replace(contents_of_gpu_job(), summary=lacking_a_file("notes.txt", "a text"))))
    assert "rank0.pt.trace.json" in page.text
    assert "1 file left out" in page.text
    assert "notes.txt" in page.text


@pytest.mark.slow
def test_repairs_are_listed(tmp_path) -> None:
    """For a file cut in half, the page names the byte at which the loss begins."""
    content = gpu_job().json()
    (tmp_path / "rank0.json").write_bytes(content[: len(content) // 2])
    text = Page(render_report(contents_of(holotrace.open_trace(tmp_path, cache=False)))).text
    assert "first at byte" in text


@pytest.mark.slow
def test_a_job_without_gpu_work_has_a_report() -> None:
    """Without GPU work, the page shows the host side of each rank and names the analyses that need GPU work."""
    page = Page(render_report(contents_of(cpu_job().build())))
    assert "no GPU work was recorded" in page.text
    assert "The CPU side of each rank" in page.text
    assert "Temporal breakdown, Kernel breakdown, Communication overlap, Idle time" in page.text
    assert "measure GPU work, and none was recorded" in page.text
    assert json.loads(page.scripts[0])["figures"].keys() >= {
        "critical_path",
        "user_annotations",
        "step_time",
        "distributed",
    }


@pytest.mark.slow
def test_a_report_on_many_ranks_stays_small(tmp_path) -> None:
    """A report on 48 ranks whose kernel names have 50,000 characters is smaller than 8 MB."""
    name = "void f<" + "x" * 50_000 + ">()"
    builder = TraceBuilder()
    for rank in range(48):
        builder.rank(rank).kernel(name, start_us=0, duration_us=5).kernel("nccl", start_us=7, duration_us=rank + 1)
    write_report(contents_of(builder.build()), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < LARGEST_BYTES


def test_the_report_is_written_whole(tmp_path) -> None:
    """Writing a report replaces an older report and leaves no temporary file."""
    path = tmp_path / "report.html"
    path.write_text("older")
    write_report(contents_of_gpu_job(), path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_cpu_table_with_unknown_steps_is_printed() -> None:
    """The CPU percentage of a rank without steps is shown as a dash."""
    without_steps = summary(TraceBuilder().operator("aten::mm", start_us=0, duration_us=1).build())
    assert isinstance(without_steps.cpu_side, pl.DataFrame)
    assert percent_text(None) in Page(render_report(Contents("x", without_steps, ()))).text


def test_resources_are_plain_text() -> None:
    """The source files of the page have no carriage returns, which would change the hashes of the scripts."""
    folder = Path(report.__file__).parent
    for name in ("script.js", "style.css", "template.html.j2"):
        assert b"\r" not in (folder / name).read_bytes()


@pytest.mark.slow
def test_a_report_is_written_from_python(tmp_path) -> None:
    """`holotrace.report` writes the page and returns the summary; only `overwrite=True` replaces a file."""
    path = tmp_path / "report.html"
    job = small_job()
    job_summary = holotrace.report(job, path, title="a small job")
    page = path.read_text(encoding="utf-8")

    assert job_summary == everything(job)
    assert "a small job" in page
    assert unbroken(job_summary.verdict) in page
    with pytest.raises(InvalidOptionError, match="already exists"):
        holotrace.report(job, path)
    holotrace.report(job, path, overwrite=True)


@pytest.mark.slow
def test_a_report_is_named_after_the_folder_of_its_traces(tmp_path) -> None:
    """The title of a report on one file names the file; the title of a report on two files names their folder."""
    for ranks, name in (({0, 1}, str(tmp_path / "job")), ({0}, str(tmp_path / "job" / "rank0.pt.trace.json"))):
        builder = TraceBuilder()
        for rank in ranks:
            builder.rank(rank).kernel("gemm", start_us=0, duration_us=5)
        paths = builder.write(tmp_path / "job")
        holotrace.report(holotrace.open_trace(paths, cache=False), tmp_path / f"{len(ranks)}.html")
        assert name in (tmp_path / f"{len(ranks)}.html").read_text(encoding="utf-8")


def test_a_report_is_an_html_file(tmp_path) -> None:
    """For `report.pdf`, the error asks for a name that ends in .html."""
    with pytest.raises(InvalidOptionError, match=r"ends in \.html"):
        holotrace.report(small_job(), tmp_path / "report.pdf")


def test_the_page_has_the_colours_of_its_figures() -> None:
    """The light and dark schemes set the colours of `SURFACES`; the style sheet only refers to these colours."""
    style = render_report(contents_of_gpu_job())
    for surface in SURFACES.values():
        declared = "".join(f"--{name}: {color}; " for name, color in vars(surface).items())
        assert declared in style
    sheet = (Path(report.__file__).parent / "style.css").read_text(encoding="utf-8")
    used = set(re.findall(r"var\(--([a-z]+)\)", sheet))
    assert used <= {*vars(SURFACES["light"]), "height"}
    assert not re.search(r"#[0-9a-f]{6}", sheet)
