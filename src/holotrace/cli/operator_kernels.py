"""`holotrace operator-kernels`: which kernels each operator launches, how soon, and forward or backward."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.analysis import ResultOptions, run_analysis
from holotrace.cli.job import JobOptions
from holotrace.cli.option_groups import with_option_groups

Memory = Annotated[bool, typer.Option("--memory", help="Count copies and memsets as well as kernels.")]


@with_option_groups
def operator_kernels(
    job: JobOptions,
    shown: ResultOptions,
    *,
    memory: Memory = False,
) -> None:
    """Say which kernels each operator launches, how soon, and how long they and those of its backward operator take."""
    run_analysis("operator_kernels", job, shown, include_memory=memory)
