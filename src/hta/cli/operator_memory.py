"""`hta operator-memory`: what operators allocate and free, and the life of every block of memory."""

from __future__ import annotations

from typing import Annotated

import typer

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, CompatMode, Figure, Force, NoCache, Ranks, Sources, Workers

Start = Annotated[
    int | None, typer.Option("--start-ns", metavar="NS", help="Only from this moment on, as --json prints times.")
]
End = Annotated[int | None, typer.Option("--end-ns", metavar="NS", help="Only until this moment.")]


def operator_memory(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    start_ns: Start = None,
    end_ns: End = None,
    compat: CompatMode = None,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say what each operator allocates and frees on each device, and how long each block of memory lives."""
    options = JobOptions(sources, ranks, workers, no_cache)
    window = {"start_ns": start_ns, "end_ns": end_ns}
    run_analysis("operator_memory", options, as_json=as_json, figure=figure, force=force, compat=compat, **window)
