"""`holotrace ingest`: save a job as one store."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import Target
from holotrace.cli.output import console, print_line
from holotrace.ingest.write_store import Ingested, write_store
from holotrace.locations import located
from holotrace.units import counted, size_text

Store = Annotated[
    Target,
    typer.Option(
        "--output",
        "-o",
        parser=located,
        metavar="STORE",
        help="The folder or URL of the store; created if missing.",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Write every rank again, even if unchanged, and replace ranks that were read from other files.",
    ),
]


@with_option_groups
def ingest(job: JobOptions, *, output: Store, force: Overwrite = False) -> None:
    """Write only ranks that are new or have changed, so a second run continues where an interrupted one stopped."""
    with opened_job(job) as (trace, executor):
        done = write_store(trace, output, overwrite=force, executor=executor)
    to = console()
    for line in _lines(done):
        print_line(to, line)


def _lines(done: Ingested) -> list[str]:
    written = sum(rank.byte_count for rank in done.written)
    verdict = (
        f"{done.store}: {counted(len(done.contents.ranks), 'rank')}; {counted(len(done.written), 'rank')} written "
        f"({size_text(written)}), {len(done.unchanged):,} unchanged, {counted(len(done.contents.skipped), 'file')} skipped"
    )
    return [verdict, *(f"skipped  {file.path}: {file.reason}" for file in done.contents.skipped)]
