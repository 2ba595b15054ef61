"""`holotrace kernel-sequences`: which sequences of kernels operators launch again and again."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.analysis import ResultOptions, run_analysis
from holotrace.cli.job import JobOptions
from holotrace.cli.option_groups import with_option_groups

Operator = Annotated[
    str | None,
    typer.Option("--operator", metavar="NAME", help="Only operators and annotations whose name contains this."),
]
MinKernels = Annotated[int, typer.Option("--min-kernels", min=1, help="Leave out calls that launch fewer kernels.")]


@with_option_groups
def kernel_sequences(
    job: JobOptions,
    shown: ResultOptions,
    *,
    operator: Operator = None,
    min_kernels: MinKernels = 3,
) -> None:
    """Count the sequences of kernels that calls of operators launch."""
    settings = {"operator_name": operator, "min_kernel_count": min_kernels}
    run_analysis("kernel_sequences", job, shown, **settings)
