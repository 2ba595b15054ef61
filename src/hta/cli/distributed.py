"""`hta distributed`: how the ranks share the work, and how much of their communication is waiting."""

from __future__ import annotations

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, CompatMode, Figure, Force, NoCache, Ranks, Sources, Workers


def distributed(  # noqa: PLR0913 -- one argument an option
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
    """Say how each rank's steps divide into computing and communicating, and what of the latter is waiting."""
    options = JobOptions(sources, ranks, workers, no_cache)
    run_analysis("distributed", options, as_json=as_json, figure=figure, force=force, compat=compat)
