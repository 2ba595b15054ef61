"""`hta report`: everything in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hta.cli.job import JobOptions, opened_job
from hta.cli.options import Force, NoCache, Ranks, Sources, Workers
from hta.cli.output import console, print_line
from hta.export.new_file import expect_writable
from hta.ingest.file_health import file_health
from hta.overview import overview
from hta.units import size_text

Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the report.")]


def report(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    output: Output = Path("report.html"),
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Write one HTML file with the verdict, figures, tables and file health; it works offline."""
    expect_writable(output, overwrite=force)
    _report(JobOptions(sources, ranks, workers, no_cache), output)


def _report(options: JobOptions, output: Path) -> None:
    from hta.report.report import Contents, write_report  # noqa: PLC0415 -- loads plotly and jinja2

    with opened_job(options) as (trace, executor):
        found = overview(trace.readable(executor), executor=executor)
        files = file_health(trace, executor=executor)
    write_report(Contents(options.title, found, files, trace.skipped), output)
    to = console()
    print_line(to, found.verdict, "bold")
    print_line(to, f"{output} ({size_text(output.stat().st_size)})")
