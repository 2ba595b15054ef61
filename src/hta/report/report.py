"""From an overview to one HTML file.

The page carries plotly.js, its data and its styles, and forbids itself every connection: the policy in its head lets
only the two scripts run whose hashes it names. All text from traces passes through jinja2's escaping or, inside the
JSON of the figures, through `_json_in_html`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import plotly.io
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

import hta
from hta.catalogue import ANALYSES, Analysis
from hta.figures.names import printable
from hta.figures.theme import SURFACES, template
from hta.ingest.file_health import FileHealth
from hta.overview import Overview, shown_analyses
from hta.report.atomic import write_atomically
from hta.store.trace import SkippedFile
from hta.tables import PrintedTable, print_frame, print_view
from hta.units import percent_text, size_text

MOST_ROWS = 200
"""Rows of one table; what is beyond is counted, and named is the command that prints all."""

MOST_FINDINGS = 12
"""Findings shown at once; the others are folded away."""

MOST_FILES = 512
"""Rows of the table of files, and of the one of skipped files."""


@dataclass(frozen=True)
class Contents:
    """What a report shows: where the traces are, what was found in them, and the health of their files."""

    source: str
    overview: Overview
    files: tuple[FileHealth, ...]
    skipped: tuple[SkippedFile, ...] = ()


@dataclass(frozen=True)
class _Section:
    """One analysis on the page."""

    analysis: Analysis
    tables: tuple[PrintedTable, ...]
    python: str


def write_report(contents: Contents, path: Path) -> None:
    """Write the report to `path`, whole or not at all.

    Raises:
        OSError: the file cannot be written there.
    """
    write_atomically(path, render_report(contents))


def render_report(contents: Contents) -> str:
    """Return the report as the text of an HTML file."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["size"] = size_text
    environment.filters["percent"] = percent_text
    environment.filters["printable"] = printable
    environment.filters["file_name"] = lambda path: Path(path).name
    scripts = [Markup(_script(text)) for text in (get_plotlyjs(), _resource("script.js"))]  # noqa: S704 -- ours
    return environment.from_string(_resource("template.html.j2")).render(
        contents=contents,
        overview=contents.overview,
        recommendations=contents.overview.advice.recommendations.to_dicts(),
        titles={each.name: each.title for each in shown_analyses(contents.overview)},
        sections=_sections(contents),
        missing_titles=[each.title for each in ANALYSES if each.name in contents.overview.missing],
        cpu_side=_cpu_side(contents.overview),
        most_files=MOST_FILES,
        most_findings=MOST_FINDINGS,
        policy=_policy(scripts),
        style=Markup(_resource("style.css")),  # noqa: S704 -- ours
        scripts=scripts,
        figures=Markup(_json_in_html(_figures(contents.overview))),  # noqa: S704 -- escaped for this place
        version=hta.__version__,
        made_at=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        event_count=sum(file.event_count for file in contents.files),
        byte_count=sum(file.bytes_read for file in contents.files),
    )


def _sections(contents: Contents) -> list[_Section]:
    return [_section(analysis, contents) for analysis in shown_analyses(contents.overview)]


def _section(analysis: Analysis, contents: Contents) -> _Section:
    result = contents.overview.results[analysis.name]
    tables = tuple(print_view(view, result, MOST_ROWS) for view in analysis.views)
    return _Section(analysis, tables, f"hta.{analysis.name}(hta.open_trace({contents.source!r}))")


def _cpu_side(overview: Overview) -> PrintedTable:
    return print_frame("The CPU side of each rank", overview.cpu_side, MOST_ROWS, telling="mean_step_ns")


def _figures(overview: Overview) -> dict[str, Any]:
    figures = {each.name: each.plot(overview.results[each.name]) for each in shown_analyses(overview)}
    return {
        "figures": {name: json.loads(plotly.io.to_json(figure)) for name, figure in figures.items()},
        "templates": {theme: template(theme).to_plotly_json() for theme in SURFACES},
    }


def _json_in_html(value: object) -> str:
    """Return JSON that no parser of HTML can take for markup."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _policy(scripts: Iterable[str]) -> str:
    """Return the content security policy: these scripts, inline styles, images made by the page; no connection."""
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    rest = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {hashes}; {rest}"


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _script(text: str) -> str:
    """Return a script as a browser sees it, so that its hash agrees: with plain line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _resource(name: str) -> str:
    return files("hta.report").joinpath(name).read_text(encoding="utf-8")
