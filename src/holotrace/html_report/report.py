"""The summary of a job as one HTML file.

The page contains its data, its styles, and the bundle of plotly.js that its figures need. Its content security policy
forbids all connections, and all scripts except two, which it identifies by hash. Jinja2 escapes all text from
traces, except the JSON of figures, which `_json_in_html` escapes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from itertools import accumulate
from typing import Any

import plotly.graph_objects as go
import plotly.io
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

import holotrace
from holotrace.analyses.diagnosis.finding_details import FindingDetails, finding_details, threshold_text
from holotrace.analyses.diagnosis.headline_facts import headline_facts
from holotrace.catalogue import ANALYSES
from holotrace.drawing.detached_heading import detached
from holotrace.drawing.names import printable
from holotrace.drawing.plotly_js import plotly_js_for
from holotrace.drawing.theme import SURFACES, template
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.export.new_file import expect_page
from holotrace.figures import figure_of, further_figures_of
from holotrace.ingest.file_health import FileHealth, file_health
from holotrace.locations import Address, Location, drafted, located, name_of
from holotrace.questions.question import Analysis, Result
from holotrace.questions.tables import PrintedTable, print_frame, print_view
from holotrace.store.trace import Trace
from holotrace.units import duration_text, percent_text, size_text, unbroken
from holotrace.whole_job.summary import Summary, has_rows, shown_analyses, summary_of

MOST_BYTES = 8_000_000
"""Maximum size of the file, small enough to be mailed or attached to a ticket."""

MOST_FIGURE_BYTES = 1_500_000
"""Maximum size of all figures together; the report omits the largest figures until the others fit."""

MOST_ROWS = (200, 50, 10)
"""Limits on the number of rows per table. The report uses the first limit that makes the file small enough, or the last
limit if none does. If rows are omitted, a note gives their number and the command that prints all rows.
"""

MOST_REASONS = 12
"""Maximum number of reasons that the report lists if an analysis has no data."""

MOST_RANKS = 16
"""Maximum number of ranks that a finding lists."""

MOST_CAVEATS = 500
"""Maximum number of caveats."""

_WHOLE_JOB = "The whole job"

MOST_FILES = 512
"""Maximum number of rows in the table of files, and in the table of skipped files."""


@dataclass(frozen=True)
class Contents:
    """The contents of a report: the location of the traces, their summary, and the health of their files."""

    source: str
    summary: Summary
    files: tuple[FileHealth, ...]


@dataclass(frozen=True)
class _Figure:
    """A figure as JSON; the other fields come from `holotrace.drawing.detached_heading.Detached`."""

    title: str
    explanation: str
    height: int
    narrow_height: int
    drawing: dict[str, Any]


@dataclass(frozen=True)
class _Section:
    """One analysis on the page; if all its tables are empty, `missing` says why."""

    position: int
    analysis: Analysis
    answer: str
    tables: tuple[PrintedTable, ...]
    missing: tuple[str, ...]
    python: str


def report(
    trace: Trace, path: Address, *, title: str = "", overwrite: bool = False, executor: Executor = IN_PROCESS
) -> Summary:
    """Write all results for a job into one HTML file that works offline; return the summary that the file shows.

    Args:
        trace: the job.
        path: where to write the report: a path or URL that ends in .html.
        title: name of the job on the page; by default the folder or file of the traces.
        overwrite: replace the file if it exists.
        executor: processes the ranks.

    Raises:
        InvalidOptionError: the name does not end in .html, the file exists, or its folder cannot be written.
        OSError: the file cannot be written.

    >>> import tempfile
    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = holotrace.report(small_job(), f"{folder}/report.html")
    >>> "idle_time" in summary.results
    True
    """
    target = located(path)
    expect_page(target, overwrite=overwrite)
    whole = summary_of(trace, [analysis.name for analysis in ANALYSES], executor=executor)
    covered = trace.select(whole.ranks)
    files = file_health(covered, executor=executor)
    write_report(Contents(title or _place(covered), whole, files), target)
    return whole


def _place(trace: Trace) -> str:
    """Return the job's file if there is only one, otherwise the folder of the first file."""
    sources = [rank_trace.source for rank_trace in trace.ranks.values()]
    return sources[0] if len(sources) == 1 else sources[0].rpartition("/")[0] or sources[0]


def write_report(contents: Contents, path: Location) -> None:
    """Write the report to `path`, atomically.

    Raises:
        OSError: the file cannot be written there.
    """
    page = render_report(contents)
    with drafted(path) as file:
        file.write(page.encode())


def render_report(contents: Contents) -> str:
    """Return the report as the text of an HTML file.

    The page omits the largest figures if all figures together exceed `MOST_FIGURE_BYTES`. The number of rows per table
    is limited to the first value in `MOST_ROWS` that keeps the file within `MOST_BYTES`, or to the last value if none
    does. Notes say what was omitted.
    """
    figures = _fitting(_figures(contents.summary))
    for rows in MOST_ROWS:
        text = _rendered(contents, figures, rows)
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


def _sentence(text: str) -> str:
    return unbroken(printable(text))


def _rendered(contents: Contents, figures: dict[str, _Figure], rows: int) -> str:
    sections, caveats = _sections(contents, rows), _caveats(contents.summary)
    shown = [section for section in sections if not section.missing]
    count = sum(len(sentences) for _, sentences in caveats)
    drawings = {name: figure.drawing for name, figure in figures.items()}
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["size"] = size_text
    environment.filters["percent"] = percent_text
    environment.filters["printable"] = printable
    environment.filters["sentence"] = _sentence
    environment.filters["file_name"] = name_of
    scripts = [Markup(_script(text)) for text in (plotly_js_for(drawings.values()), _pages_script())]  # noqa: S704 -- our text, not from a trace
    return environment.from_string(_resource("template.html.j2")).render(
        contents=contents,
        summary=contents.summary,
        shown=shown,
        first_position=shown[0].position if shown else -1,
        empty=[section for section in sections if section.missing],
        caveats=caveats,
        caveat_count=f"{count:,}",
        caveats_left_out=len(contents.summary.findings) - MOST_CAVEATS if count == MOST_CAVEATS else 0,
        drawn=figures,
        most_bytes=MOST_BYTES,
        headline=headline_facts(contents.summary.diagnosis) if contents.summary.covers_one_job else (),
        found=_found(contents.summary),
        most_ranks=MOST_RANKS,
        threshold=threshold_text,
        duration=duration_text,
        titles={analysis.name: analysis.title for analysis in shown_analyses(contents.summary)},
        missing_titles=[analysis.title for analysis in ANALYSES if analysis.name in contents.summary.missing],
        cpu_side=_cpu_side(contents.summary, rows),
        most_files=MOST_FILES,
        most_listed=MOST_CAVEATS,
        policy=_policy(scripts),
        style=Markup(_style()),  # noqa: S704 -- our text, not from a trace
        scripts=scripts,
        figures=Markup(_json_in_html(_with_templates(drawings))),  # noqa: S704 -- already escaped
        version=holotrace.__version__,
        made_at=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        event_count=sum(file.event_count for file in contents.files),
        byte_count=sum(file.bytes_read for file in contents.files),
    )


def _found(summary: Summary) -> tuple[FindingDetails, ...]:
    return finding_details(summary.diagnosis) if summary.covers_one_job else ()


def _sections(contents: Contents, rows: int) -> list[_Section]:
    analyses = enumerate(shown_analyses(contents.summary))
    return [_section(position, analysis, contents, rows) for position, analysis in analyses]


def _section(position: int, analysis: Analysis, contents: Contents, rows: int) -> _Section:
    result = contents.summary.results[analysis.name]
    tables = tuple(print_view(view, result, rows) for view in analysis.views)
    reasons = result.findings[:MOST_REASONS] or ("no events of this kind",)
    missing = () if any(table.rows for table in tables) else reasons
    return _Section(
        position,
        analysis,
        result.answer,
        tables,
        missing,
        f"holotrace.{analysis.name}(holotrace.open_trace({contents.source!r}))",
    )


def _cpu_side(summary: Summary, rows: int) -> PrintedTable:
    return print_frame("The CPU side of each rank", summary.cpu_side, rows, telling="mean_step_ns")


def _caveats(summary: Summary) -> list[tuple[str, list[str]]]:
    """Return the distinct findings of the summary, each under the title of the first analysis that reports it."""
    groups: dict[str, list[str]] = {}
    titles = _first_noticed(summary)
    for finding in summary.findings[:MOST_CAVEATS]:
        groups.setdefault(titles.get(finding, _WHOLE_JOB), []).append(finding)
    return list(groups.items())


def _first_noticed(summary: Summary) -> dict[str, str]:
    """Return, for each finding, the title of the first analysis that has rows and reports the finding."""
    titles: dict[str, str] = {}
    for analysis in (shown for shown in shown_analyses(summary) if has_rows(summary.results[shown.name])):
        for finding in summary.results[analysis.name].findings:
            titles.setdefault(finding, analysis.title)
    return titles


def _figures(summary: Summary) -> dict[str, _Figure]:
    """Return the figures of the analyses whose tables have rows."""
    names = [analysis.name for analysis in shown_analyses(summary) if has_rows(summary.results[analysis.name])]
    figures = {key: figure for name in names for key, figure in _figures_of(name, summary.results[name])}
    return {name: _drawn(figure) for name, figure in figures.items()}


def _drawn(figure: go.Figure) -> _Figure:
    title, explanation, alone, height, narrow_height = detached(figure)
    return _Figure(title, explanation, height, narrow_height, json.loads(plotly.io.to_json(alone)))


def _figures_of(name: str, result: Result) -> Iterator[tuple[str, go.Figure]]:
    yield name, figure_of(name, result)
    for part, figure in further_figures_of(name, result).items():
        yield f"{name}-{part}", figure


def _fitting(figures: dict[str, _Figure]) -> dict[str, _Figure]:
    """Omit the largest figures until the others fit; return those in their original order."""
    sizes = {name: len(_json_in_html(figure.drawing)) for name, figure in figures.items()}
    rising = sorted(sizes, key=lambda name: sizes[name])
    totals = accumulate(sizes[name] for name in rising)
    kept = {name for name, total in zip(rising, totals, strict=True) if total <= MOST_FIGURE_BYTES}
    return {name: figure for name, figure in figures.items() if name in kept}


def _with_templates(figures: dict[str, Any]) -> dict[str, Any]:
    return {"figures": figures, "templates": {theme: template(theme).to_plotly_json() for theme in SURFACES}}


def _json_in_html(value: object) -> str:
    """Return JSON in which the characters of HTML markup are escaped."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _policy(scripts: Iterable[str]) -> str:
    """Return the content security policy: allow these scripts, inline styles and the page's own images, but no connections."""
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    rest = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {hashes}; {rest}"


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _script(text: str) -> str:
    """Return a script with LF line endings, because browsers convert line endings before they compute the hash."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _pages_script() -> str:
    """Return the page's script together with the module that it imports, because the page cannot load files."""
    module = files("holotrace").joinpath("web/assets/shell/figure_names.js").read_text(encoding="utf-8")
    _import, _, script = _resource("script.js").partition("\n")
    return f"{module}\n{script}"


def _style() -> str:
    """Return the style sheet, with the colours of the figures for light and dark pages."""
    light, dark = (
        f"color-scheme: {scheme}; " + "".join(f"--{name}: {color}; " for name, color in vars(surface).items())
        for scheme, surface in SURFACES.items()
    )
    schemes = f"""\
:root {{ {light}}}
@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark}}} }}
:root[data-theme="dark"] {{ {dark}}}
"""
    return schemes + _resource("style.css")


def _resource(name: str) -> str:
    return files("holotrace.html_report").joinpath(name).read_text(encoding="utf-8")
