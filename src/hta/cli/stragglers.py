"""`hta stragglers`: which rank the others wait for in their collectives."""

from __future__ import annotations

from typing import Annotated

import typer

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import Annotation, AsJson, Figure, Force, NoCache, Ranks, Sources, Workers, parse_ranks

Steps = Annotated[str | None, typer.Option("--steps", metavar="0-7,9", help="Only collectives of these steps.")]


def stragglers(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    steps: Steps = None,
    annotation: Annotation = None,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say which rank the others wait for, from the durations of collectives, whatever the clocks of the hosts say."""
    options = JobOptions(sources, ranks, workers, no_cache)
    chosen = None if steps is None else parse_ranks(steps)
    run_analysis(
        "stragglers", options, as_json=as_json, figure=figure, force=force, steps=chosen, annotation=annotation
    )
