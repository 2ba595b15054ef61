"""`hta idle-time`: what the idle devices were waiting for."""

from __future__ import annotations

from typing import Annotated

import typer

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, Force, NoCache, Ranks, Sources, Workers

GapThreshold = Annotated[
    float,
    typer.Option(
        "--gap-threshold-us", min=0, help="A wait from launch to start this long or longer has another cause (µs)."
    ),
]


def idle_time(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    gap_threshold_us: GapThreshold = 30,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say what idle devices and streams were waiting for: the host, the kernel's start, or something else."""
    options = JobOptions(sources, ranks, workers, no_cache)
    threshold_ns = round(1_000 * gap_threshold_us)
    run_analysis("idle_time", options, as_json=as_json, figure=figure, force=force, gap_threshold_ns=threshold_ns)
