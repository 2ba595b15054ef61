"""`hta user-annotations`: the time of annotated parts of the program, and their kernels."""

from __future__ import annotations

from typing import Annotated

import typer

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, Force, NoCache, Ranks, Sources, Workers

Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="REGEX", help="Only annotations with this in their name; may be repeated."),
]
MergeSteps = Annotated[bool, typer.Option("--merge-steps", help="Add up the steps under the name ProfilerStep.")]


def user_annotations(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    allow: Allow = None,
    merge_steps: MergeSteps = False,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say how long annotated parts of the program take on the GPU and the CPU, and which kernels run under them."""
    options = JobOptions(sources, ranks, workers, no_cache)
    run_analysis(
        "user_annotations",
        options,
        as_json=as_json,
        figure=figure,
        force=force,
        allow=allow or None,
        merge_steps=merge_steps,
    )
