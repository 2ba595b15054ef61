"""`holotrace idle-time`: what the idle devices were waiting for."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.analysis import ResultOptions, run_analysis
from holotrace.cli.job import JobOptions
from holotrace.cli.option_groups import with_option_groups

GapThreshold = Annotated[
    float,
    typer.Option(
        "--gap-threshold-us", min=0, help="A wait from launch to start this long or longer has another cause (µs)."
    ),
]


@with_option_groups
def idle_time(
    job: JobOptions,
    shown: ResultOptions,
    *,
    gap_threshold_us: GapThreshold = 30,
) -> None:
    """Say what idle devices and streams were waiting for: the host, the kernel's start, or something else."""
    threshold_ns = round(1_000 * gap_threshold_us)
    run_analysis("idle_time", job, shown, gap_threshold_ns=threshold_ns)
