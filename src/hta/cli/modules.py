"""`hta modules`: the time of each module of the model, forward and backward."""

from __future__ import annotations

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, CompatMode, Figure, Force, NoCache, Ranks, Sources, Workers


def modules(  # noqa: PLR0913 -- one argument an option
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
    """Say how long each module of the model takes on the host and on devices, forward and backward."""
    options = JobOptions(sources, ranks, workers, no_cache)
    run_analysis("modules", options, as_json=as_json, figure=figure, force=force, compat=compat)
