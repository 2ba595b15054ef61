"""`hta gpu-summary`: how well each GPU is used."""

from __future__ import annotations

from typing import Annotated

import typer

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, CompatMode, Figure, Force, NoCache, Ranks, Sources, Workers

Parts = Annotated[int, typer.Option("--parts", min=1, help="Parts of the time series.")]


def gpu_summary(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    parts: Parts = 100,
    compat: CompatMode = None,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say what each GPU is, how busy, how well filled, and how much of its kernel time is on tensor cores."""
    options = JobOptions(sources, ranks, workers, no_cache)
    run_analysis("gpu_summary", options, as_json=as_json, figure=figure, force=force, parts=parts, compat=compat)
