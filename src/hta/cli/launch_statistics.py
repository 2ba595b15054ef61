"""`hta launch-statistics`: what launching the work of the devices costs."""

from __future__ import annotations

from typing import Annotated

import typer

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, Force, NoCache, Ranks, Sources, Workers

RuntimeCutoff = Annotated[
    float, typer.Option("--runtime-cutoff-us", min=0, help="A call that takes longer than this is slow (µs).")
]
DelayCutoff = Annotated[
    float,
    typer.Option("--delay-cutoff-us", min=0, help="Work that starts later than this after its call is late (µs)."),
]
Launches = Annotated[bool, typer.Option("--launches", help="Add a row for each launch to the JSON.")]


def launch_statistics(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    runtime_cutoff_us: RuntimeCutoff = 50,
    delay_cutoff_us: DelayCutoff = 100,
    launches: Launches = False,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say what launching costs: short kernels, slow calls, late starts."""
    run_analysis(
        "launch_statistics",
        JobOptions(sources, ranks, workers, no_cache),
        as_json=as_json,
        figure=figure,
        force=force,
        runtime_cutoff_ns=round(1_000 * runtime_cutoff_us),
        delay_cutoff_ns=round(1_000 * delay_cutoff_us),
        include_launches=launches,
    )
