"""`hta operator-kernels`: which kernels each operator launches, how soon, and forward or backward."""

from __future__ import annotations

from typing import Annotated

import typer

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, Force, NoCache, Ranks, Sources, Workers

Memory = Annotated[bool, typer.Option("--memory", help="Count copies and memsets as well as kernels.")]


def operator_kernels(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    memory: Memory = False,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say which kernels each operator launches, how soon, and how long they and those of its backward operator take."""
    options = JobOptions(sources, ranks, workers, no_cache)
    run_analysis("operator_kernels", options, as_json=as_json, figure=figure, force=force, include_memory=memory)
