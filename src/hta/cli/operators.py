"""`hta operators`: the time of each operator on the host and on the devices."""

from __future__ import annotations

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, CompatMode, Figure, Force, NoCache, Ranks, Sources, Workers


def operators(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    compat: CompatMode = None,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say how long each operator takes on the host and on devices, by name, by input shapes and by call stack."""
    options = JobOptions(sources, ranks, workers, no_cache)
    run_analysis("operators", options, as_json=as_json, figure=figure, force=force, compat=compat)
