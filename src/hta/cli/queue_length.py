"""`hta queue-length`: how much launched work waits before each stream."""

from __future__ import annotations

from typing import Annotated

import typer

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, Force, NoCache, Ranks, Sources, Workers

FullLength = Annotated[
    int, typer.Option("--full-length", min=1, help="From this many waiting launches on a queue counts as full.")
]


def queue_length(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    full_length: FullLength = 1_024,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say how much work waits before each stream, launched and not yet begun, and how long its queue was full."""
    options = JobOptions(sources, ranks, workers, no_cache)
    run_analysis("queue_length", options, as_json=as_json, figure=figure, force=force, full_length=full_length)
