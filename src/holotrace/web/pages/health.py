"""The page about the files of a run: ranks, profiler options and damage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import dash_mantine_components as dmc
import polars as pl
from dash import html
from dash.development.base_component import Component

from holotrace.ingest.file_health import FileHealth, file_health
from holotrace.ingest.trace_writer import other_writer_text
from holotrace.units import counted
from holotrace.web.parts.components import answer_block, definitions, python_block, title_block
from holotrace.web.parts.page import Page, Table
from holotrace.web.parts.python_code import python_of
from holotrace.web.parts.slow_parts import part
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Scope, Session
from holotrace.web.tables.box import table_box

QUESTION = "Can the files be trusted?"

_ALL_FILES = "This page shows all files of the run; it ignores the selection of ranks, steps and devices."

_TERMS = (
    ("clean", "all events were read as written"),
    ("repaired", "errors that the profiler made in the file were repaired; no event was lost"),
    ("with losses", "some events could not be read and were skipped"),
    ("unreadable", "the file contains no trace or cannot be opened"),
    ("rank from", "source of the rank number"),
    ("options", "profiler options that were on; data that need another option are missing from the trace"),
)
_STATES = ("unreadable", "with losses", "repaired", "clean")

_FILES = {
    "rank": pl.Int32,
    "file": pl.String,
    "state": pl.String,
    "event_count": pl.Int64,
    "gpu_work_count": pl.Int64,
    "file_bytes": pl.Int64,
    "json_bytes": pl.Int64,
    "format": pl.String,
    "rank_from": pl.String,
    "options": pl.String,
    "error": pl.String,
}
_FINDINGS = {
    "rank": pl.Int32,
    "kind": pl.String,
    "severity": pl.String,
    "count": pl.Int64,
    "first_byte": pl.Int64,
    "example": pl.String,
}
_IMPORTS = ("from holotrace.ingest.file_health import file_health",)
_EXAMPLE_LENGTH = 300


def _layout(session: Session, selection: Selection) -> Component:
    code = python_of(
        "file_health(trace)", session.run(selection.scope.run), Scope(selection.scope.run), imports=_IMPORTS
    )
    whole = [dmc.Text(_ALL_FILES, c="dimmed", size="sm")] if selection.is_narrow else []
    parts = [*whole, part("files"), definitions(_TERMS), python_block(code)]
    return html.Article([title_block("Health", QUESTION), *parts])


def _shown(session: Session, selection: Selection) -> Component:
    made = {name: make(session, selection) for name, make in HEALTH.tables.items()}
    tables = [table_box(name, table, selection) for name, table in made.items() if len(table.frame) or name == _ALL]
    return html.Div([answer_block(answer(_health(session, selection))), *tables])


def answer(files: Sequence[FileHealth]) -> str:
    """Return one sentence with the number of files in each state."""
    foreign = next((file.other_writer for file in files if file.other_writer), "")
    if foreign:
        count = sum(bool(file.other_writer) for file in files)
        which = (
            "The file was"
            if len(files) == 1
            else f"{count:,} of {len(files):,} files {'was' if count == 1 else 'were'}"
        )
        return f"{which} {other_writer_text(foreign)}."
    states = Counter[str](file.state for file in files)
    events = counted(sum(file.event_count for file in files), "event")
    if set(states) == {"clean"}:
        are_clean = "The file is clean" if len(files) == 1 else f"The {len(files):,} files are clean"
        return f"{are_clean}: {events}, all read as written."
    each = [f"{states[state]:,} {state}" for state in _STATES if states[state]]
    return f"{counted(len(files), 'file')}: {', '.join(each)}; {events}."


def _files(session: Session, selection: Selection) -> Table:
    rows = [_file_row(file) for file in _health(session, selection)]
    return Table("Each file", pl.DataFrame(rows, schema=_FILES), "file_bytes")


def _noticed(session: Session, selection: Selection) -> Table:
    rows = [
        (
            file.rank,
            finding.kind,
            finding.severity,
            finding.count,
            min(finding.offsets, default=None),
            finding.example[:_EXAMPLE_LENGTH],
        )
        for file in _health(session, selection)
        for finding in file.findings
    ]
    return Table("Findings of the reader", pl.DataFrame(rows, schema=_FINDINGS, orient="row"), "count")


def _left_out(session: Session, selection: Selection) -> Table:
    skipped = session.whole(selection.scope.run).skipped
    rows = [(Path(file.path).name, file.reason) for file in skipped]
    return Table(
        "Skipped files", pl.DataFrame(rows, schema={"file": pl.String, "reason": pl.String}, orient="row"), "file"
    )


def _health(session: Session, selection: Selection) -> tuple[FileHealth, ...]:
    """Return the health of all files, including those of ranks that are not selected."""
    run = selection.scope.run
    return session.remember(Scope(run), "health", lambda: file_health(session.whole(run)))


def _file_row(file: FileHealth) -> dict[str, object]:
    return {
        "rank": file.rank,
        "file": Path(file.path).name,
        "state": file.state,
        "event_count": file.event_count,
        "gpu_work_count": file.gpu_event_count,
        "file_bytes": file.bytes_read,
        "json_bytes": file.bytes_decoded,
        "format": file.format,
        "rank_from": file.rank_origin,
        "options": ", ".join(file.options),
        "error": file.error,
    }


_ALL = "health.files"
HEALTH = Page(
    name="health",
    title="Health",
    question=QUESTION,
    section="Files",
    layout=_layout,
    parts={"files": _shown},
    tables={_ALL: _files, "health.findings": _noticed, "health.skipped": _left_out},
)
