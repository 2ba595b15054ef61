"""`holotrace stragglers`: which rank the others wait for in their collectives."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.analysis import ResultOptions, run_analysis
from holotrace.cli.job import JobOptions
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import Annotation, parse_ranks

Steps = Annotated[str | None, typer.Option("--steps", metavar="0-7,9", help="Only collectives of these steps.")]


@with_option_groups
def stragglers(
    job: JobOptions,
    shown: ResultOptions,
    *,
    steps: Steps = None,
    annotation: Annotation = None,
) -> None:
    """Say which rank the others wait for, from the durations of collectives, whatever the clocks of the hosts say."""
    chosen = None if steps is None else parse_ranks(steps)
    run_analysis("stragglers", job, shown, steps=chosen, annotation=annotation)
