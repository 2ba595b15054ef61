"""`holotrace operator-memory`: what operators allocate and free, and the life of every block of memory."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.analysis import ResultOptions, run_analysis
from holotrace.cli.job import JobOptions
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import CompatMode

Start = Annotated[
    int | None, typer.Option("--start-ns", metavar="NS", help="Only from this moment on, as --json prints times.")
]
End = Annotated[int | None, typer.Option("--end-ns", metavar="NS", help="Only until this moment.")]


@with_option_groups
def operator_memory(
    job: JobOptions,
    shown: ResultOptions,
    *,
    start_ns: Start = None,
    end_ns: End = None,
    compat: CompatMode = None,
) -> None:
    """Say what each operator allocates and frees on each device, and how long each block of memory lives."""
    window = {"start_ns": start_ns, "end_ns": end_ns}
    run_analysis("operator_memory", job, shown, compat=compat, **window)
