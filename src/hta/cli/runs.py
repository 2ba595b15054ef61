"""`hta runs`: what a log folder holds."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import polars as pl
import typer

from hta.cli.options import AsJson, without_secret
from hta.cli.output import console, print_json, print_line, print_table
from hta.ingest.runs import Run, Runs, find_runs
from hta.tables import print_frame

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
    if found.runs:
        print_table(to, print_frame("Each span of each run", _spans(found), _MOST_ROWS, telling="bytes"))
    for file in found.skipped:
        print_line(to, f"left out  {file.path}: {file.reason}")


def _verdict(found: Runs) -> str:
    files = sum(len(run.recordings) for run in found.runs)
    told = f"{_counted(len(found.runs), 'run')} of {_counted(files, 'trace')}" if found.runs else "no trace"
    return f"{found.folder}: {told}, {_counted(len(found.skipped), 'file')} left out."


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _spans(found: Runs) -> pl.DataFrame:
    rows = [_span(run, span) for run in found.runs for span in run.spans]
    is_complete = not any(row["missing workers"] for row in rows)
    return pl.DataFrame(rows).drop(["missing workers"] if is_complete else [])


def _span(run: Run, span: int) -> dict[str, str | int]:
    recordings = run.of_span(span)
    return {
        "run": run.name,
        "span": span,
        "traces": len(recordings),
        "bytes": sum(each.byte_count for each in recordings),
        "ranks": _ranks([each.rank for each in recordings]),
        "workers": _listed([each.worker for each in recordings]),
        "missing workers": _listed([name for name in run.workers if name not in {each.worker for each in recordings}]),
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
