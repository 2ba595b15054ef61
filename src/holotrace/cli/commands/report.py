"""`holotrace report`: all results for a job in one HTML file."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.commands.summary import print_verdict
from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import Force, Target
from holotrace.cli.output import console, print_line
from holotrace.export.new_file import expect_page
from holotrace.locations import located, status_of
from holotrace.units import size_text

Output = Annotated[
    Target,
    typer.Option("--output", "-o", parser=located, metavar="FILE", help="Write the report to this path or URL."),
]

_IN_THIS_FOLDER = located("report.html")


@with_option_groups
def report(
    job: JobOptions,
    *,
    output: Output = _IN_THIS_FOLDER,
    force: Force = False,
) -> None:
    """Check that the file can be written, write the report, and print the verdict."""
    expect_page(output, overwrite=force)
    from holotrace.html_report.report import report as write_report  # noqa: PLC0415 -- loads plotly and jinja2

    with opened_job(job) as (trace, executor):
        summary = write_report(trace, output, title=job.reading.title, overwrite=force, executor=executor)
    to = console()
    print_verdict(to, summary)
    print_line(to, f"{output} ({size_text(status_of(output).size or 0)})")
