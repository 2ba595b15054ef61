"""`holotrace launch-statistics`: what launching the work of the devices costs."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.analysis import ResultOptions, run_analysis
from holotrace.cli.job import JobOptions
from holotrace.cli.option_groups import with_option_groups

RuntimeCutoff = Annotated[
    float, typer.Option("--runtime-cutoff-us", min=0, help="A call that takes longer than this is slow (µs).")
]
DelayCutoff = Annotated[
    float,
    typer.Option("--delay-cutoff-us", min=0, help="Work that starts later than this after its call is late (µs)."),
]
Launches = Annotated[bool, typer.Option("--launches", help="Add a row for each launch to the JSON.")]


@with_option_groups
def launch_statistics(
    job: JobOptions,
    shown: ResultOptions,
    *,
    runtime_cutoff_us: RuntimeCutoff = 50,
    delay_cutoff_us: DelayCutoff = 100,
    launches: Launches = False,
) -> None:
    """Say what launching costs: short kernels, slow calls, late starts."""
    run_analysis(
        "launch_statistics",
        job,
        shown,
        runtime_cutoff_ns=round(1_000 * runtime_cutoff_us),
        delay_cutoff_ns=round(1_000 * delay_cutoff_us),
        include_launches=launches,
    )
