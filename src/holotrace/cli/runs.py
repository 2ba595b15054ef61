"""`holotrace runs`: what a log folder holds."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import polars as pl
import typer

from holotrace.cli.options import AsJson, without_secret
from holotrace.cli.output import console, print_json, print_line, print_table
from holotrace.ingest.runs import Run, Runs, find_runs
from holotrace.locations import name_of
from holotrace.store.trace import SkippedFile
from holotrace.tables import print_frame

_ONLY_WHERE_SO = ("missing workers", "unreadable")
_MOST_ROWS = 200
_SHORTEST_RANGE = 4

Folder = Annotated[
    str,
    typer.Argument(
        metavar="FOLDER", parser=without_secret, help="The folder, or its URL, that the profiler writes its runs into."
    ),
]


def runs(folder: Folder, *, as_json: AsJson = False) -> None:
    """List the runs in a log folder and its subfolders: their workers, their spans, and each file that is left out."""
    found = find_runs(folder)
    if as_json:
        print_json(_as_dict(found))
        return
    to = console()
    print_line(to, _verdict(found), "bold")
    for file in _unreadable(found):
        print_line(to, f"unreadable  {file.path}: {file.reason}", "yellow")
    if found.runs:
        print_table(to, print_frame("Each span of each run", _spans(found), _MOST_ROWS, telling="bytes"))
    for file in found.skipped:
        if not file.is_unreadable:
            print_line(to, f"left out  {file.path}: {file.reason}")


def _verdict(found: Runs) -> str:
    files = sum(len(run.recordings) for run in found.runs)
    told = f"{_counted(len(found.runs), 'run')} of {_counted(files, 'trace')}" if found.runs else "no trace"
    unreadable = len(_unreadable(found))
    told += f", {_counted(unreadable, 'file')} that cannot be read" if unreadable else ""
    return f"{found.folder}: {told}, {_counted(len(found.skipped) - unreadable, 'file')} left out."


def _unreadable(found: Runs) -> list[SkippedFile]:
    return [file for file in found.skipped if file.is_unreadable]


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _spans(found: Runs) -> pl.DataFrame:
    rows = [_span(run, span) for run in found.runs for span in run.spans or (None,)]
    empty = [name for name in _ONLY_WHERE_SO if not any(row[name] for row in rows)]
    return pl.DataFrame(rows).drop(empty)


def _span(run: Run, span: int | None) -> dict[str, str | int | None]:
    """Return the row of a span; a run of which nothing can be read has a row without one."""
    recordings = () if span is None else run.of_span(span)
    return {
        "run": run.name,
        "span": span,
        "traces": len(recordings),
        "bytes": sum(each.byte_count for each in recordings),
        "ranks": _ranks([each.rank for each in recordings]),
        "workers": _listed([each.worker for each in recordings]),
        "missing workers": _listed([name for name in run.workers if name not in {each.worker for each in recordings}]),
        "unreadable": _listed([name_of(each.path) for each in run.unreadable]),
    }


def _ranks(ranks: list[int | None]) -> str:
    known = sorted(rank for rank in ranks if rank is not None)
    if len(known) > _SHORTEST_RANGE and known == list(range(known[0], known[-1] + 1)):
        return f"{known[0]}-{known[-1]}"
    return _listed(["?" if rank is None else str(rank) for rank in ranks])


def _listed(names: list[str]) -> str:
    return ", ".join(names)


def _as_dict(found: Runs) -> dict[str, Any]:
    return {
        "folder": found.folder,
        "runs": [dataclasses.asdict(run) | {"workers": run.workers, "spans": run.spans} for run in found.runs],
        "skipped_files": [dataclasses.asdict(file) for file in found.skipped],
    }
