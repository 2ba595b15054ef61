"""`holotrace report`: everything in one HTML file."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.figure_files import expect_a_page
from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import Force, Target
from holotrace.cli.output import console, print_line
from holotrace.cli.summary import print_verdict
from holotrace.ingest.file_health import file_health
from holotrace.locations import located, status_of
from holotrace.units import size_text
from holotrace.whole_job.summary import summary as summarize

Output = Annotated[
    Target,
    typer.Option("--output", "-o", parser=located, metavar="FILE", help="Where to write the report: a path or a URL."),
]

_IN_THIS_FOLDER = located("report.html")


@with_option_groups
def report(
    job: JobOptions,
    *,
    output: Output = _IN_THIS_FOLDER,
    force: Force = False,
) -> None:
    """Write one HTML file with the verdict, figures, tables and file health; it works offline."""
    expect_a_page(output, overwrite=force)
    from holotrace.html_report.report import Contents, write_report  # noqa: PLC0415 -- loads plotly and jinja2

    with opened_job(job) as (trace, executor):
        found = summarize(trace, executor=executor)
        files = file_health(trace, executor=executor)
    write_report(Contents(job.reading.title, found, files, trace.skipped), output)
    to = console()
    print_verdict(to, found)
    print_line(to, f"{output} ({size_text(status_of(output).size or 0)})")
