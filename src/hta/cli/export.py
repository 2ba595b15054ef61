"""`hta export`: a trace in the formats of other tools."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from hta.cli.job import JobOptions, opened_job
from hta.cli.options import Force, NoCache, Ranks, Sources
from hta.cli.output import console, print_line
from hta.export.new_file import expect_writable_folder
from hta.export.tables import export_tables
from hta.export.trace_with_counters import write_traces_with_counters
from hta.store.trace import Trace
from hta.units import size_text


class ExportFormat(str, Enum):
    """What `--to` takes."""

    perfetto = "perfetto"
    csv = "csv"
    parquet = "parquet"


To = Annotated[
    ExportFormat,
    typer.Option("--to", help="perfetto: copies of the files with counters; csv, parquet: the tables of each rank."),
]
Folder = Annotated[
    Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write; made if it is missing.")
]


def export(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    to: To,
    output: Folder,
    force: Force = False,
    ranks: Ranks = None,
    no_cache: NoCache = False,
) -> None:
    """Write the trace for other tools: Perfetto, or anything that reads CSV or Parquet."""
    expect_writable_folder(output if output.exists() else output.absolute().parent)
    with opened_job(JobOptions(sources, ranks, None, no_cache)) as (trace, _):
        _print_files(_exported(trace, to, output, force=force))


def _exported(trace: Trace, to: ExportFormat, output: Path, *, force: bool) -> Iterable[Path]:
    if to is ExportFormat.perfetto:
        output.mkdir(exist_ok=True)
        return write_traces_with_counters(trace, output, overwrite=force).values()
    return export_tables(trace, output, "csv" if to is ExportFormat.csv else "parquet", overwrite=force)


def _print_files(paths: Iterable[Path]) -> None:
    to = console()
    for path in paths:
        print_line(to, f"{path} ({size_text(path.stat().st_size)})")
