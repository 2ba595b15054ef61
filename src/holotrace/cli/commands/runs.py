"""`holotrace runs`: the runs in a log folder."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import polars as pl
import typer

from holotrace.cli.options import AsJson, without_secret
from holotrace.cli.output import console, print_json, print_line, print_table
from holotrace.ingest.runs import Run, Runs, find_runs
from holotrace.locations import name_of
from holotrace.questions.tables import print_frame
from holotrace.store.trace import SkippedFile
from holotrace.units import counted

_OFTEN_EMPTY = ("missing workers", "unreadable")
_MOST_ROWS = 200
_SHORTEST_RANGE = 4

Folder = Annotated[
    str,
    typer.Argument(
        metavar="FOLDER", parser=without_secret, help="The folder into which the profiler writes runs, or its URL."
    ),
]


def runs(folder: Folder, *, as_json: AsJson = False) -> None:
    """List the runs in a log folder, with unreadable and skipped files."""
    listed = find_runs(folder)
    if as_json:
        print_json(_as_dict(listed))
        return
    to = console()
    print_line(to, _verdict(listed), "bold")
    for file in _unreadable(listed):
        print_line(to, f"unreadable  {file.path}: {file.reason}", "yellow")
    if listed.runs:
        print_table(to, print_frame("Spans of each run", _spans(listed), _MOST_ROWS, telling="bytes"))
    for file in listed.skipped:
        if not file.is_unreadable:
            print_line(to, f"skipped  {file.path}: {file.reason}")


def _verdict(listed: Runs) -> str:
    files = sum(len(run.recordings) for run in listed.runs)
    counts = f"{counted(len(listed.runs), 'run')} with {counted(files, 'trace')}" if listed.runs else "no trace"
    unreadable = len(_unreadable(listed))
    counts += f", {counted(unreadable, 'unreadable file')}" if unreadable else ""
    return f"{listed.folder}: {counts}, {counted(len(listed.skipped) - unreadable, 'file')} skipped."


def _unreadable(listed: Runs) -> list[SkippedFile]:
    return [file for file in listed.skipped if file.is_unreadable]


def _spans(listed: Runs) -> pl.DataFrame:
    rows = [_span(run, span) for run in listed.runs for span in run.spans or (None,)]
    empty = [name for name in _OFTEN_EMPTY if not any(row[name] for row in rows)]
    return pl.DataFrame(rows).drop(empty)


def _span(run: Run, span: int | None) -> dict[str, str | int | None]:
    """Return the row for one span of a run; `span` is None if the run has no readable file."""
    recordings = () if span is None else run.of_span(span)
    return {
        "run": run.name,
        "span": span,
        "traces": len(recordings),
        "bytes": sum(recording.byte_count for recording in recordings),
        "ranks": _ranks([recording.rank for recording in recordings]),
        "workers": _joined([recording.worker for recording in recordings]),
        "missing workers": _joined(
            [name for name in run.workers if name not in {recording.worker for recording in recordings}]
        ),
        "unreadable": _joined([name_of(file.path) for file in run.unreadable]),
    }


def _ranks(ranks: list[int | None]) -> str:
    known = sorted(rank for rank in ranks if rank is not None)
    if len(known) > _SHORTEST_RANGE and known == list(range(known[0], known[-1] + 1)):
        return f"{known[0]}-{known[-1]}"
    return _joined(["?" if rank is None else str(rank) for rank in ranks])


def _joined(names: list[str]) -> str:
    return ", ".join(names)


def _as_dict(listed: Runs) -> dict[str, Any]:
    return {
        "folder": listed.folder,
        "runs": [dataclasses.asdict(run) | {"workers": run.workers, "spans": run.spans} for run in listed.runs],
        "skipped_files": [dataclasses.asdict(file) for file in listed.skipped],
    }
