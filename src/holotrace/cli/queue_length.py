"""`holotrace queue-length`: how much launched work waits before each stream."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.analysis import ResultOptions, run_analysis
from holotrace.cli.job import JobOptions
from holotrace.cli.option_groups import with_option_groups

FullLength = Annotated[
    int, typer.Option("--full-length", min=1, help="From this many waiting launches on a queue counts as full.")
]


@with_option_groups
def queue_length(
    job: JobOptions,
    shown: ResultOptions,
    *,
    full_length: FullLength = 1_024,
) -> None:
    """Say how much work waits before each stream, launched and not yet begun, and how long its queue was full."""
    run_analysis("queue_length", job, shown, full_length=full_length)
