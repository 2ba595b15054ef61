"""`holotrace user-annotations`: the time of annotated parts of the program, and their kernels."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.analysis import ResultOptions, run_analysis
from holotrace.cli.job import JobOptions
from holotrace.cli.option_groups import with_option_groups

Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="REGEX", help="Only annotations with this in their name; may be repeated."),
]
MergeSteps = Annotated[bool, typer.Option("--merge-steps", help="Add up the steps under the name ProfilerStep.")]


@with_option_groups
def user_annotations(
    job: JobOptions,
    shown: ResultOptions,
    *,
    allow: Allow = None,
    merge_steps: MergeSteps = False,
) -> None:
    """Say how long annotated parts of the program take on the GPU and the CPU, and which kernels run under them."""
    run_analysis(
        "user_annotations",
        job,
        shown,
        allow=allow or None,
        merge_steps=merge_steps,
    )
