"""`hta kernel-sequences`: which sequences of kernels operators launch again and again."""

from __future__ import annotations

from typing import Annotated

import typer

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, Force, NoCache, Ranks, Sources, Workers

Operator = Annotated[
    str | None,
    typer.Option("--operator", metavar="NAME", help="Only operators and annotations whose name contains this."),
]
MinKernels = Annotated[int, typer.Option("--min-kernels", min=1, help="Leave out calls that launch fewer kernels.")]


def kernel_sequences(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    operator: Operator = None,
    min_kernels: MinKernels = 3,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Count the sequences of kernels that calls of operators launch."""
    options = JobOptions(sources, ranks, workers, no_cache)
    settings = {"operator_name": operator, "min_kernel_count": min_kernels}
    run_analysis("kernel_sequences", options, as_json=as_json, figure=figure, force=force, **settings)
