"""`holotrace gpu-summary`: how well each GPU is used."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.analysis import ResultOptions, run_analysis
from holotrace.cli.job import JobOptions
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import CompatMode

Parts = Annotated[int, typer.Option("--parts", min=1, help="Parts of the time series.")]


@with_option_groups
def gpu_summary(
    job: JobOptions,
    shown: ResultOptions,
    *,
    parts: Parts = 100,
    compat: CompatMode = None,
) -> None:
    """Say what each GPU is, how busy, how well filled, and how much of its kernel time is on tensor cores."""
    run_analysis("gpu_summary", job, shown, parts=parts, compat=compat)
